# SPDX-License-Identifier: Apache-2.0
"""The training waits for a file that another process has locked.

verdict: STUCK
words: cached \({here}\)
within: 10
attach: before
"""
import fcntl
import os
import tempfile
import time

from fault_job import Loop, began

name = tempfile.mkstemp()[1]


def cached():
    with open(name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # here


def keeper():
    with open(name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        while os.getppid() == parent:
            time.sleep(1)
    os._exit(0)


def train():
    loop = Loop()
    loop.go_on()
    if os.fork() == 0:
        keeper()
    time.sleep(0.5)
    began()
    cached()


parent = os.getpid()
train()
