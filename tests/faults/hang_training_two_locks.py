# SPDX-License-Identifier: Apache-2.0
"""The same in a job that trains.

verdict: DEADLOCK
words: {here}
within: 10
attach: before
"""
import threading
import time

from fault_job import Loop, began

first, second = threading.Lock(), threading.Lock()


def other():
    with second:
        time.sleep(0.5)
        with first:
            pass


def train():
    loop = Loop()
    loop.go_on()
    with first:
        threading.Thread(target=other, name="other").start()
        time.sleep(0.2)
        began()
        with second:  # here
            loop.step()


train()
