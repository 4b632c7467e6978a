# SPDX-License-Identifier: Apache-2.0
r"""Each batch takes more than a second and there are no workers: whoever asks soon has seen few steps.

verdict: INPUT-BOUND
words: of a step waits for the loader .*, last \d+ steps?\).*mostly in (Images\.)?augment \({here}\)
within: 20
attach: after
"""
import time

import torch
from fault_job import Loop, began

slow = False


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def augment(self):
        if slow:
            time.sleep(0.35)  # here

    def __getitem__(self, index):
        self.augment()
        return torch.randn(256), index % 10


def train():
    global slow
    loop = Loop()
    batches = iter(torch.utils.data.DataLoader(Images(), batch_size=4))
    for _ in range(20):
        loop.step(next(batches))
    slow = True
    began()
    for batch in batches:
        loop.step(batch)


train()
