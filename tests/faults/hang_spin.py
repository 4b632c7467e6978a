# SPDX-License-Identifier: Apache-2.0
"""The training counts without an end. What computes in one function for some seconds may be about to return: ten seconds of that are needed.

verdict: STUCK
words: settle \(
within: 14
attach: before
"""
from fault_job import Loop, began


def settle():
    n = 0
    while True:
        n += 1


def train():
    loop = Loop()
    loop.go_on()
    began()
    settle()


train()
