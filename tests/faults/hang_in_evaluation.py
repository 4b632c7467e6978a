# SPDX-License-Identifier: Apache-2.0
"""An evaluation that stands still is none.

verdict: STUCK
words: fetch \({here}\)
within: 10
attach: before
"""
import os

from fault_job import Loop, began

end, other = os.pipe()


def fetch():
    os.read(end, 1)  # here


def evaluate():
    fetch()


def train():
    loop = Loop()
    loop.go_on()
    began()
    evaluate()


train()
