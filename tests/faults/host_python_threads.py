# SPDX-License-Identifier: Apache-2.0
"""Ten threads that compute without the GIL, on few CPUs.

verdict: OVERSUBSCRIBED
words: threads
within: 15
attach: before after
needs: few-cpus
"""
import hashlib
import threading

from fault_job import began, work_until_client


def crunch():
    data = b"x" * (1 << 24)
    while True:
        hashlib.sha256(data).digest()


work_until_client()
began()
for n in range(9):
    threading.Thread(target=crunch, name=f"crunch-{n}", daemon=True).start()
crunch()
