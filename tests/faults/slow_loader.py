# SPDX-License-Identifier: Apache-2.0
"""Each item of the data set takes 2 ms, and there are no workers.

verdict: INPUT-BOUND
words: waits for the loader
within: 10
attach: before after
quick: yes
"""
import time

import torch
from fault_job import Loop, began, wait_for_client

slow = False


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if slow:
            time.sleep(0.002)
        return torch.randn(256), index % 10


def train():
    global slow
    loop = Loop()
    batches = iter(torch.utils.data.DataLoader(Items(), batch_size=16))
    for _ in range(20):
        loop.step(next(batches))
    for _ in wait_for_client():
        loop.step(next(batches))
    slow = True
    began()
    for batch in batches:
        loop.step(batch)


train()
