# SPDX-License-Identifier: Apache-2.0
r"""A cache of tensors without an end.

verdict: MEMORY CREEP
words: held by features in train, a lru_cache: \d+ more Tensor \[256, 1024\]
within: 20
attach: before
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
