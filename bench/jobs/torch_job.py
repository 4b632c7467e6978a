# SPDX-License-Identifier: Apache-2.0
"""A job with torch for bench/training.py: answers each line on its standard input with a line of nanoseconds.

record N   CPU time of N torch.profiler.record_function, per one
idle N     the same of N additions of small tensors, which are not reported as operations
step N     the same of N training steps of a small model, per step
chain N    CPU time of a backward pass through N operations, per one
leaves N   the same of one that ends in N parameters
"""

import sys
import time

import torch

torch.set_num_threads(1)
model = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())])
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(32, 64)
small = torch.ones(16, 16)


def record():
    with torch.profiler.record_function("bench"):
        pass


def idle():
    torch.add(small, small)


def step():
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()


def chain(n):
    x = torch.ones(1, requires_grad=True)
    for _ in range(n):
        x = x + 1
    return x


def leaves(n):
    return torch.stack([torch.ones((), requires_grad=True) for _ in range(n)]).sum()


passes = {"chain": chain, "leaves": leaves}


acts = {"record": record, "idle": idle, "step": step}
for name in acts:
    acts[name]()
print("ready", flush=True)
for line in sys.stdin:
    name, n = line.split()
    if name in passes:
        end = passes[name](int(n))
        begin = time.thread_time_ns()
        end.backward()
        print((time.thread_time_ns() - begin) / int(n), flush=True)
        continue
    act = acts[name]
    begin = time.thread_time_ns()
    for _ in range(int(n)):
        act()
    print((time.thread_time_ns() - begin) / int(n), flush=True)
