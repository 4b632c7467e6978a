# SPDX-License-Identifier: Apache-2.0
"""A heap of objects, and full collections at each step.

verdict: GC PAUSES
words: collect
within: 12
attach: before
"""
import gc

from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    heap = [[n] for n in range(300000)]
    began()
    while heap:
        gc.collect()
        loop.step()


train()
