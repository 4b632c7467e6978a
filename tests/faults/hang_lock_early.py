# SPDX-License-Identifier: Apache-2.0
"""A program that waits for a lock that it has itself, before it has trained anything.

verdict: HUNG
words: prepare \({here}\)
within: 10
attach: before after
quick: yes
"""
import threading

from fault_job import began, work_until_client

lock = threading.Lock()


def prepare():
    lock.acquire()
    began()
    lock.acquire()  # here


work_until_client()
prepare()
