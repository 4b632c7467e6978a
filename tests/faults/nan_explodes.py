# SPDX-License-Identifier: Apache-2.0
"""A learning rate that is far too high.

verdict: NAN
words: loss
within: 12
attach: before
"""
import torch
from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=1e20)
    began()
    while True:
        inputs, classes = loop.random()
        optimizer.zero_grad()
        loss = loop.criterion(loop.model(inputs), classes)
        loss.backward()
        optimizer.step()


train()
