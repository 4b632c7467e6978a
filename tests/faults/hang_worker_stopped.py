# SPDX-License-Identifier: Apache-2.0
"""A DataLoader worker is stopped, as SIGSTOP does.

verdict: STUCK
words: train \({here}\)
within: 12
attach: before
"""
import os
import signal
import time

import torch
from fault_job import Loop, began, wait_for_client


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.randn(256), index % 10


def train():
    loop = Loop()
    loader = torch.utils.data.DataLoader(Items(), batch_size=16, num_workers=2)
    batches = iter(loader)
    for batch in batches:
        loop.step(batch)
        if loop.steps == 20:
            break
    for _ in wait_for_client():
        loop.step(next(batches))
    until = time.monotonic() + 2
    while time.monotonic() < until:
        loop.step(next(batches))
    for worker in batches._workers:
        os.kill(worker.pid, signal.SIGSTOP)
    began()
    while True:
        loop.step(next(batches))  # here


train()
