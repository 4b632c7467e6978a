# SPDX-License-Identifier: Apache-2.0
"""The training sleeps, far too long.

verdict: STUCK
words: backoff \({here}\)
within: 10
attach: before
quick: yes
"""
import time

from fault_job import Loop, began


def backoff():
    time.sleep(100000)  # here


def train():
    loop = Loop()
    loop.go_on()
    began()
    backoff()


train()
