# SPDX-License-Identifier: Apache-2.0
"""The logging module writes to a handler that takes 10 ms.

verdict: LOGGING
words: report \({here}\)
within: 12
attach: before
"""
import logging
import time

from fault_job import Loop, began


class Remote(logging.Handler):
    def emit(self, record):
        time.sleep(0.01)


log = logging.getLogger("job")
log.addHandler(Remote())
log.setLevel(logging.INFO)


def report(loop):
    log.info("step %d", loop.steps)  # here


def train():
    loop = Loop(width=128, batch=32)
    loop.go_on()
    began()
    while True:
        loop.step()
        report(loop)


train()
