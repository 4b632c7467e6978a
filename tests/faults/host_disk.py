# SPDX-License-Identifier: Apache-2.0
"""Every step writes 64 MiB and waits until they are on the disk.

verdict: DISK
words: spill
within: 20
attach: before
needs: disk
"""
import os
import tempfile

from fault_job import Loop, began

data = os.urandom(64 << 20)


def spill(file):
    file.seek(0)
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def train():
    loop = Loop(width=64)
    loop.go_on()
    began()
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        while True:
            spill(file)
            loop.step()


train()
