# SPDX-License-Identifier: Apache-2.0
"""torch.compile compiles for each new length of a batch.

verdict: RECOMPILING
words: train \({file}
within: 20
attach: before
needs: compiler
"""
import torch
from fault_job import Loop, began


def train():
    loop = Loop(width=32, batch=8)
    torch._dynamo.config.cache_size_limit = 10000
    torch._dynamo.config.automatic_dynamic_shapes = False
    loop.go_on()
    compiled = torch.compile(lambda x: (x * 2 + 1).relu().sum(), backend="eager")
    began()
    n = 1
    while True:
        n += 1
        for _ in range(3):
            loop.step()
        compiled(torch.randn(n, 3))


train()
