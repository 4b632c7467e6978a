# SPDX-License-Identifier: Apache-2.0
"""A replay buffer and a cache that fill up to their bounds, and garbage that comes and goes in waves.

fine: MOVING SLOW
"""
import functools
from collections import deque

import torch
from fault_job import Loop

replay, waves = deque(maxlen=300), []


@functools.lru_cache(maxsize=100)
def features(number):
    return torch.full((1 << 18,), float(number))


loop = Loop(width=512)
while True:
    loop.step()
    features(loop.steps)
    if loop.steps % 2:
        replay.append(torch.ones(1 << 19))
    waves.append(bytearray(1 << 20))
    if len(waves) > 100:
        waves.clear()
