# SPDX-License-Identifier: Apache-2.0
"""No training, but work.

verdict: BUSY
words: crunch
within: 8
attach: before after
quick: yes
"""
from fault_job import began, work_until_client


def crunch():
    return sum(n * n for n in range(20000))


work_until_client()
began()
while True:
    crunch()
