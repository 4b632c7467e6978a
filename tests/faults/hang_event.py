# SPDX-License-Identifier: Apache-2.0
"""The training waits for an event that nobody sets.

verdict: STUCK
words: train \({here}\)
within: 10
attach: before
"""
import threading

from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    began()
    threading.Event().wait()  # here


train()
