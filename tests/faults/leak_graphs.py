# SPDX-License-Identifier: Apache-2.0
r"""Losses that nobody calls backward() of are kept with their graphs, as those of a validation without no_grad().

verdict: MEMORY CREEP
words: held by losses in train, a list: \d+ more Tensor \[\] with its graph
within: 20
attach: before
"""
from fault_job import Loop, began


def train():
    loop = Loop(width=512, batch=256)
    loop.go_on()
    began()
    losses = []
    while True:
        loop.step()
        inputs, classes = loop.random()
        losses.append(loop.criterion(loop.model(inputs), classes))


train()
