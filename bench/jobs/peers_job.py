# SPDX-License-Identifier: Apache-2.0
"""A target of bench/sampler.py: peers_job.py THREADS FRAMES WORK. The main thread works some 25 frames deep, the other threads
sleep in stacks of FRAMES frames (at least the three of every thread). WORK is `python`, or `torch`: steps of a small model.
"""

import sys
import threading
import warnings

import sampler_job

STARTING = 3  # frames that threading has on the stack of each thread
never = threading.Lock()


def wait(more):
    """`more` frames, then none: the lock's method is C."""
    if more > 1:
        return wait(more - 1)
    never.acquire()


def descend(more, step):
    if more:
        return descend(more - 1, step)
    while True:
        step()


def python_step():
    return sampler_job.work(3)


def torch_step():
    warnings.simplefilter("ignore")  # of modules that torch would like to have
    import torch

    torch.set_num_threads(1)  # the same number of threads on every machine
    model = torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())])
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(32, 64)

    def step():
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()

    step()
    return step


def main():
    threads, frames, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    step = torch_step() if work == "torch" else python_step
    never.acquire()
    more = max(0, frames - STARTING)
    for _ in range(threads - 1):
        target, args = (wait, (more,)) if more else (never.acquire, ())
        threading.Thread(target=target, args=args, daemon=True).start()
    print("ready", flush=True)
    descend(17, step)


main()
