# SPDX-License-Identifier: Apache-2.0
"""The target of bench/sampler.py: sampler_job.py IDLE BUSY; idle threads wait 20 frames deep, busy ones work 25 deep.

For each line on standard input it prints the loops that the busy threads have made and their CPU time.
"""

import sys
import threading
import time

done = []


def deep(n, event):
    if n:
        return deep(n - 1, event)
    event.wait()


def work(n):
    if n:
        return work(n - 1)
    total = 0
    for i in range(200):
        total += hash(str(i))
    return total


def busy(place):
    clock = time.pthread_getcpuclockid(threading.get_ident())
    while True:
        for _ in range(50):
            work(22)
        place[0] += 50
        place[1] = time.clock_gettime(clock)


def main():
    idle, hot = int(sys.argv[1]), int(sys.argv[2])
    event = threading.Event()
    for _ in range(idle):
        threading.Thread(target=deep, args=(18, event), daemon=True).start()
    for _ in range(hot):
        done.append([0, 0.0])
        threading.Thread(target=busy, args=(done[-1],), daemon=True).start()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(sum(p[0] for p in done), sum(p[1] for p in done), flush=True)


if __name__ == "__main__":
    main()
