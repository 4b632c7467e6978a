# SPDX-License-Identifier: Apache-2.0
"""A long checkpoint.

verdict: SAVING
words: write_model \({here}\)
within: 8
attach: before
"""
import io
import time

import torch
from fault_job import Loop, began


class Slow(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        until = time.monotonic() + 2
        while time.monotonic() < until:
            sum(range(10000))
        return len(data)


def write_model(loop):
    torch.save(loop.model.state_dict(), Slow())  # here


def train():
    loop = Loop(layers=20)
    loop.go_on()
    began()
    while True:
        write_model(loop)


train()
