# SPDX-License-Identifier: Apache-2.0
"""Losses are kept with their graphs.

verdict: MEMORY CREEP
words: .
within: 20
attach: before
pending: what grows, made where, held by whom is the part of memory
"""
from fault_job import Loop, began


def train():
    loop = Loop(width=512, batch=256)
    loop.go_on()
    began()
    losses = []
    while True:
        losses.append(loop.step())


train()
