# SPDX-License-Identifier: Apache-2.0
"""The data has an infinite number now and then, and then nothing but NaN comes.

verdict: NAN
words: loss
within: 10
attach: before
"""
from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    inputs, classes = loop.random()
    inputs[3, 3] = float("inf")
    began()
    while True:
        loop.optimizer.zero_grad()
        loss = loop.criterion(loop.model(inputs), classes)
        loss.backward()
        loop.optimizer.step()


train()
