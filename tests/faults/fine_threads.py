# SPDX-License-Identifier: Apache-2.0
"""160 threads that wait for work, and a main thread that waits for them.

fine: IDLE WAITS
"""
import queue
import threading

from fault_job import ready


def serve():
    while True:
        jobs.get()


jobs = queue.Queue()
threads = [threading.Thread(target=serve) for _ in range(160)]
for thread in threads:
    thread.start()
ready()
for thread in threads:
    thread.join()
