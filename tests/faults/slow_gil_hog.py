# SPDX-License-Identifier: Apache-2.0
"""A thread runs Python all the time.

verdict: GIL CONTENTION
words: hog
within: 12
attach: before
quick: yes
"""
import threading

from fault_job import Loop, began


def hog():
    n = 0
    while True:
        n += 1


def train():
    loop = Loop(width=64, batch=16)
    loop.go_on()
    threading.Thread(target=hog, name="hog", daemon=True).start()
    began()
    while True:
        loop.step()


train()
