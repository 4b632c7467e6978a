# SPDX-License-Identifier: Apache-2.0
"""The first step does not end: a hook in its backward pass waits.

verdict: HUNG
words: hook \({here}\)
within: 10
attach: after
"""
import threading

from fault_job import Loop, began, ready

lock = threading.Lock()
lock.acquire()


def hook(grad):
    began()
    lock.acquire()  # here


def train():
    loop = Loop()
    loop.model[-1].weight.register_hook(hook)
    ready()
    loop.step()


train()
