# SPDX-License-Identifier: Apache-2.0
"""Two workers, each item takes them 3 ms.

verdict: INPUT-BOUND
words: waits for the loader
within: 12
attach: after
"""
import time

import torch
from fault_job import Loop, began, ready


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.randn(256), index % 10


def train():
    loop = Loop()
    began()
    ready()
    for batch in torch.utils.data.DataLoader(Items(), batch_size=32, num_workers=2):
        loop.step(batch)


train()
