# SPDX-License-Identifier: Apache-2.0
"""Sixteen threads of torch on few CPUs.

verdict: OVERSUBSCRIBED
words: threads
within: 15
attach: before
needs: few-cpus
"""
import torch
from fault_job import Loop, began


def train():
    loop = Loop(width=1024, batch=256)
    loop.go_on()
    torch.set_num_threads(16)
    began()
    while True:
        loop.step()


train()
