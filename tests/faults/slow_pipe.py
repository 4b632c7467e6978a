# SPDX-License-Identifier: Apache-2.0
"""Whoever reads the job's output is slow: print blocks.

verdict: LOGGING
words: report \({here}\)
within: 15
attach: before
"""
import os
import time

from fault_job import Loop, began

end, out = os.pipe()


def reader():
    os.close(out)
    while os.read(end, 65536):
        time.sleep(0.2)
    os._exit(0)


def report(loop):
    os.write(out, b"x" * 20000)  # here


def train():
    loop = Loop(width=128, batch=32)
    loop.go_on()
    if os.fork() == 0:
        reader()
    os.close(end)
    began()
    while True:
        loop.step()
        report(loop)


train()
