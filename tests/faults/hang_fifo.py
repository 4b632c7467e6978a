# SPDX-License-Identifier: Apache-2.0
"""The training opens a FIFO that nobody writes to.

verdict: STUCK
words: open_shard \({here}\)
within: 10
attach: before
"""
import os
import tempfile

from fault_job import Loop, began

name = os.path.join(tempfile.mkdtemp(), "shard")
os.mkfifo(name)


def open_shard():
    return open(name)  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    open_shard()


train()
