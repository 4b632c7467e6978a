# SPDX-License-Identifier: Apache-2.0
"""A thread sleeps in native code, and keeps the GIL: the training waits for it.

verdict: STUCK
words: waiting for the GIL
within: 12
attach: before
"""
import ctypes
import threading

from fault_job import Loop, began


def hog():
    began()
    ctypes.PyDLL(None).sleep(100000)


def train():
    loop = Loop()
    loop.go_on()
    threading.Thread(target=hog, name="hog", daemon=True).start()
    while True:
        loop.step()


train()
