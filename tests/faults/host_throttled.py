# SPDX-License-Identifier: Apache-2.0
"""Its control group may use a tenth of a CPU.

verdict: THROTTLED
words: .
within: 20
attach: before
needs: cpu-cgroup
"""
import os

from fault_job import Loop, began


def train():
    loop = Loop()
    loop.go_on()
    with open(os.environ["FAULT_QUOTA_FILE"], "w", encoding="ascii") as file:
        file.write(os.environ["FAULT_QUOTA"])
    began()
    while True:
        loop.step()


train()
