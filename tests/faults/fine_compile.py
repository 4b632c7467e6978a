# SPDX-License-Identifier: Apache-2.0
"""A compiled model.

fine: MOVING COMPILING SLOW
needs: compiler
"""
import torch
from fault_job import Loop

loop = Loop()
loop.model = torch.compile(loop.model, backend="aot_eager")
while True:
    loop.step()
