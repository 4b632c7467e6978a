# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is written by pickle and fsync, which are not torch's.

verdict: CHECKPOINT
words: save_state \({file}
within: 15
attach: before
"""
import pickle
import time

from fault_job import Loop, began


def save_state(loop):
    data = pickle.dumps({name: value.tolist() for name, value in loop.model.state_dict().items()})
    time.sleep(0.2)
    return data


def train():
    loop = Loop(width=128, batch=32)
    loop.go_on()
    began()
    while True:
        loop.step()
        if loop.steps % 50 == 0:
            save_state(loop)


train()
