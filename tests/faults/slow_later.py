# SPDX-License-Identifier: Apache-2.0
"""Steps become twice as long.

verdict: SLOW
words: the last
within: 15
attach: before
"""
import time

from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on(8)
    began()
    while True:
        inputs, classes = loop.random()
        loop.step((inputs.repeat(4, 1), classes.repeat(4)))
        time.sleep(0)


train()
