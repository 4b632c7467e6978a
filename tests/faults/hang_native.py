# SPDX-License-Identifier: Apache-2.0
"""A program that waits in native code, for a semaphore that nobody posts.

verdict: HUNG
words: prepare \({here}\)
within: 10
attach: before after
"""
import ctypes

from fault_job import began, work_until_client


def prepare():
    libc = ctypes.CDLL(None)
    semaphore = ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)
    began()
    libc.sem_wait(semaphore)  # here


work_until_client()
prepare()
