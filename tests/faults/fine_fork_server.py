# SPDX-License-Identifier: Apache-2.0
"""A parent that waits for its children, and begins another when one ends.

fine: IDLE
"""
import os
import time

from fault_job import ready

ready()
while True:
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
    os.wait()
