# SPDX-License-Identifier: Apache-2.0
r"""What grows is held by a class, which no variable leads to: the line is known, because allocations are traced.

verdict: MEMORY CREEP
words: allocated in keep \({here}\)
within: 20
attach: before
traced: yes
"""
from fault_job import Loop, began


class Store:
    kept = []


def keep():
    Store.kept.append(bytearray(b"x" * (1 << 22)))  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    while True:
        loop.step()
        keep()


train()
