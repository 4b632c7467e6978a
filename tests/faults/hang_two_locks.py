# SPDX-License-Identifier: Apache-2.0
"""Two threads, two locks, in two orders.

verdict: DEADLOCK
words: {here}
within: 10
attach: before after
"""
import threading
import time

from fault_job import began, work_until_client

first, second = threading.Lock(), threading.Lock()


def other():
    with second:
        time.sleep(0.5)
        with first:
            pass


def main():
    with first:
        threading.Thread(target=other, name="other").start()
        time.sleep(0.2)
        began()
        with second:  # here
            pass


work_until_client()
main()
