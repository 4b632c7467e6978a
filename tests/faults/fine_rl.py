# SPDX-License-Identifier: Apache-2.0
"""An actor in an environment made of numpy, a learner now and then.

fine: MOVING SLOW BUSY
"""
import torch
from fault_job import Loop

loop = Loop(width=64, batch=32)
state = torch.zeros(1, 64)
while True:
    for _ in range(30):
        with torch.no_grad():
            state = torch.tanh(torch.nn.functional.pad(loop.model(state), (0, 54)))
    loop.step()
