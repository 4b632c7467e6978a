# SPDX-License-Identifier: Apache-2.0
"""The training waits for a program that does not end.

verdict: STUCK
words: upload \({here}\)
within: 10
attach: before
"""
import subprocess

from fault_job import Loop, began


def upload():
    subprocess.run(["sleep", "100000"])  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    upload()


train()
