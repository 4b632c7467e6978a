# SPDX-License-Identifier: Apache-2.0
r"""Every step keeps a megabyte in a list.

verdict: MEMORY CREEP
words: held by kept in train, a list: \d+ more bytearray
within: 20
attach: before
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
