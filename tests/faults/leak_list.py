# SPDX-License-Identifier: Apache-2.0
"""Every step keeps a megabyte in a list.

verdict: MEMORY CREEP
words: .
within: 20
attach: before
pending: it takes half a minute until growth is called steady; the part of memory does it in 20 s
"""
from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    began()
    kept = []
    while True:
        loop.step()
        kept.append(bytearray(b"x" * (1 << 20)))


train()
