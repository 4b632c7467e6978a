# SPDX-License-Identifier: Apache-2.0
"""A cache of tensors without an end.

verdict: MEMORY CREEP
words: .
within: 20
attach: before
pending: it takes half a minute until growth is called steady; the part of memory does it in 20 s
"""
import functools

from fault_job import Loop, began


def train():
    loop = Loop()

    @functools.lru_cache(maxsize=None)
    def features(step):
        return loop.torch.ones(256, 1024)

    loop.go_on()
    began()
    while True:
        loop.step()
        features(loop.steps)


train()
