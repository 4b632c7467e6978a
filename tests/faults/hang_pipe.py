# SPDX-License-Identifier: Apache-2.0
"""The training reads from a pipe into which nobody writes.

verdict: STUCK
words: next_record \({here}\)
within: 10
attach: before
"""
import os

from fault_job import Loop, began

end, other = os.pipe()


def next_record():
    return os.read(end, 100)  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    next_record()


train()
