# SPDX-License-Identifier: Apache-2.0
"""The loss is NaN from some step on.

verdict: NAN
words: loss
within: 10
attach: before after
quick: yes
"""
import torch
from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    with torch.no_grad():
        loop.model[0].weight[0, 0] = float("nan")
    began()
    while True:
        inputs, classes = loop.random()
        loop.optimizer.zero_grad()
        loss = loop.criterion(loop.model(inputs), classes)
        loss.backward()
        loop.optimizer.step()


train()
