# SPDX-License-Identifier: Apache-2.0
"""Every 50th step saves for 240 ms.

verdict: CHECKPOINT
words: save \({here}\)
within: 15
attach: before after
quick: long
"""
import io
import time

import torch
from fault_job import Loop, began


class Slow(io.RawIOBase):
    """A disk that takes 240 ms for a checkpoint."""

    def __init__(self):
        self.first = True

    def writable(self):
        return True

    def write(self, data):
        if self.first:
            time.sleep(0.24)
            self.first = False
        return len(data)


def save(loop):
    torch.save(loop.model.state_dict(), Slow())  # here


def train():
    loop = Loop(width=128, batch=32)
    loop.go_on()
    began()
    while True:
        loop.step()
        if loop.steps % 50 == 0:
            save(loop)


train()
