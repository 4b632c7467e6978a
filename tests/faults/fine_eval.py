# SPDX-License-Identifier: Apache-2.0
"""Epochs of a second, each with an evaluation as long.

fine: MOVING SLOW EVALUATING BUSY
"""
import time

from fault_job import Loop


def evaluate():
    until = time.monotonic() + 1
    with loop.torch.no_grad():
        while time.monotonic() < until:
            inputs, classes = loop.random()
            loop.criterion(loop.model(inputs), classes).item()


loop = Loop()
while True:
    until = time.monotonic() + 1
    while time.monotonic() < until:
        loop.step()
    evaluate()
