# SPDX-License-Identifier: Apache-2.0
"""Every step writes 50 pages, and waits for the disk after each.

verdict: DISK
words: spill
within: 20
attach: before
needs: disk
"""
import os
import tempfile

from fault_job import Loop, began


def spill(fd):
    for page in range(50):
        os.pwrite(fd, bytes(4096), 4096 * page)


def train():
    loop = Loop(width=64)
    loop.go_on()
    began()
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        fd = os.open(file.name, os.O_WRONLY | os.O_SYNC)
        while True:
            spill(fd)
            loop.step()


train()
