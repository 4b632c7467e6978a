# SPDX-License-Identifier: Apache-2.0
"""A target of bench/sampler.py: many_job.py LIBRARY PYTHON NATIVE: so many threads of either kind; one of Python and two native
ones work, the others wait.

For each line on standard input it prints the loops and the CPU seconds of the Python worker, then of the native ones.
"""

import ctypes
import sys
import threading
import time

import sampler_job


def main():
    library, python, native = ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    library.native_pieces.restype = library.native_cpu_ns.restype = ctypes.c_uint64
    if library.native_start(native - 2, 2) != 0:
        raise SystemExit("no native threads could be made")
    event = threading.Event()
    for _ in range(python - 2):  # the main thread is one of them
        threading.Thread(target=sampler_job.deep, args=(18, event), daemon=True).start()
    place = [0, 0.0]
    threading.Thread(target=sampler_job.busy, args=(place,), daemon=True).start()
    while place[0] == 0:
        time.sleep(0.01)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(place[0], place[1], library.native_pieces(), library.native_cpu_ns() / 1e9, flush=True)


main()
