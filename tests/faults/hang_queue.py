# SPDX-License-Identifier: Apache-2.0
"""The training takes from a queue whose producer has ended.

verdict: STUCK
words: train \({here}\)
within: 10
attach: before
"""
import queue

from fault_job import Loop, began

batches = queue.Queue()


def train():
    loop = Loop()
    loop.go_on()
    began()
    batches.get()  # here


train()
