# SPDX-License-Identifier: Apache-2.0
"""torch.compile, before the first step.

verdict: COMPILING
words: torch compiles
within: 8
attach: before after
needs: compiler
"""
import torch
from fault_job import began, work_until_client

work_until_client()


def build():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: [x := (x * n + 1).relu() for n in range(200)][-1].sum(), backend="eager")
    return compiled(torch.randn(4))


began()
while True:
    build()
