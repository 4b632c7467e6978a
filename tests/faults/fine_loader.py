# SPDX-License-Identifier: Apache-2.0
"""Many workers that are quick enough.

fine: MOVING SLOW
"""
import torch
from fault_job import Loop


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 12

    def __getitem__(self, index):
        return torch.ones(256), index % 10


loop = Loop(width=256, batch=64)
loader = torch.utils.data.DataLoader(Items(), batch_size=256, num_workers=2, persistent_workers=True)
while True:
    for batch in loader:
        for _ in range(4):
            loop.step(batch)
