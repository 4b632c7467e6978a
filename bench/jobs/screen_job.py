# SPDX-License-Identifier: Apache-2.0
"""The target of bench/tui.py: screen_job.py THREADS DEPTH; one of them computes, the others sleep now and then, each as deep as said."""

import sys
import threading
import time


def deep(n, work):
    if n > 0:
        return deep(n - 1, work)
    return work()


def compute():
    total = 0
    while True:
        for i in range(2000):
            total += hash(str(i))
        time.sleep(0)


def doze():
    while True:
        time.sleep(0.5)


def main():
    threads, depth = int(sys.argv[1]), int(sys.argv[2])
    for i in range(threads - 1):
        threading.Thread(target=deep, args=(depth - 5, doze if i else compute), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
