# SPDX-License-Identifier: Apache-2.0
"""The training waits for a lock that another thread keeps.

verdict: STUCK
words: train \({here}\)
within: 10
attach: before
quick: yes
"""
import threading
import time

from fault_job import Loop, began

lock = threading.Lock()


def keeper():
    with lock:
        time.sleep(100000)


def train():
    loop = Loop()
    loop.go_on()
    threading.Thread(target=keeper, daemon=True, name="keeper").start()
    time.sleep(0.2)
    began()
    with lock:  # here
        loop.step()


train()
