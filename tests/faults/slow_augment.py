# SPDX-License-Identifier: Apache-2.0
"""The job makes its batches itself, in Python, between the steps.

verdict: OWN CODE
words: augment \({file}
within: 12
attach: before
"""
import random

from fault_job import Loop, began


def augment(loop):
    rows = [[random.gauss(0, 1) for _ in range(loop.width)] for _ in range(loop.batch)]
    return loop.torch.tensor(rows), loop.torch.randint(0, 10, (loop.batch,))


def train():
    loop = Loop()
    loop.go_on()
    began()
    while True:
        loop.step(augment(loop))


train()
