# SPDX-License-Identifier: Apache-2.0
"""Checkpoints are read before the first step.

verdict: LOADING
words: restore \({here}\)
within: 8
attach: before after
"""
import io

import torch
from fault_job import began, work_until_client


def restore(data):
    data.seek(0)
    return torch.load(data)  # here


work_until_client()
data = io.BytesIO()
torch.save([torch.randn(100) for _ in range(3000)], data)
began()
while True:
    restore(data)
