# SPDX-License-Identifier: Apache-2.0
"""A training job with much to be walked through, for bench/training.py: heap_job.py TENSORS OBJECTS

A small model is trained without end. Beside it lie TENSORS tensors, half of them in modules, and OBJECTS objects of Python, in lists of
instances that hold a list each. Prints "ready" when all of that is there. Garbage is not collected: that would be most of what is seen.
"""

import gc
import sys

import torch

torch.set_num_threads(1)
tensors, objects = int(sys.argv[1]), int(sys.argv[2])


class Item:
    def __init__(self, number):
        self.number = number
        self.near = [number]


gc.disable()
modules = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(tensors // 4))
others = [torch.zeros(4, 4) for _ in range(tensors // 2)]
items = [[Item(number) for number in range(1000)] for _ in range(objects // 3000)]
model = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(64, 256)
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
