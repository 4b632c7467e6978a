# SPDX-License-Identifier: Apache-2.0
"""An evaluation that takes minutes.

verdict: EVALUATING
words: evaluate \({file}
within: 8
attach: before
quick: yes
"""
from fault_job import Loop, began


def evaluate(loop):
    with loop.torch.no_grad():
        while True:
            inputs, classes = loop.random()
            loop.criterion(loop.model(inputs), classes).item()


def train():
    loop = Loop()
    loop.go_on()
    began()
    evaluate(loop)


train()
