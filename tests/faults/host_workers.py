# SPDX-License-Identifier: Apache-2.0
"""Twelve workers that compute all the time, on few CPUs.

verdict: OVERSUBSCRIBED
words: workers
within: 18
attach: after
needs: two-cpus
"""
import torch
from fault_job import Loop, began, ready


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.randn(512), sum(range(4000000)) % 10


def train():
    loop = Loop(width=512)
    began()
    ready()
    for batch in torch.utils.data.DataLoader(Items(), batch_size=4, num_workers=12):
        loop.step(batch)


train()
