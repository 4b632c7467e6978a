# SPDX-License-Identifier: Apache-2.0
"""Half of a step goes into the job's own metrics.

verdict: OWN CODE
words: log_metrics \({file}
within: 12
attach: before after
quick: long
"""
import time

from fault_job import Loop, began


def log_metrics(loop):
    until = time.perf_counter() + took
    total = 0
    while time.perf_counter() < until:
        total += sum(range(1000))
    return total


def train():
    global took
    loop = Loop()
    loop.go_on()
    began()
    while True:
        start = time.perf_counter()
        loop.step()
        took = time.perf_counter() - start
        log_metrics(loop)


took = 0
train()
