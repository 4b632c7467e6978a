# SPDX-License-Identifier: Apache-2.0
"""The training waits for an RLock that the thread keeper has: who holds it is to be named.

verdict: STUCK
words: keeper
within: 10
attach: before
"""
import threading
import time

from fault_job import Loop, began

lock = threading.RLock()


def keeper():
    with lock:
        time.sleep(100000)


def train():
    loop = Loop()
    loop.go_on()
    threading.Thread(target=keeper, daemon=True, name="keeper").start()
    time.sleep(0.2)
    began()
    with lock:
        loop.step()


train()
