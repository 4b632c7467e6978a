#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time of the signal handler goes, in which a thread copies its own frames. Prints one JSON object.

usage: bench/handler.py [--build DIR] [--python PATH] [--frames N] [--times N] [--released]

A thread of N frames copies itself a thousand times (--times), with warm caches (`warm`) and with caches that something else has filled (`cold`), as
those of a job are when a sample is taken every 10 ms. Medians, in microseconds: `whole` is the copy, `kernel` the copy when nothing may
be read directly, `read` the kernel's reading of the memory in that, `ranges` the same reading of no more than the frames take, `direct` those
frames without the kernel, `empty` a call of the kernel that reads 8 bytes, `delivery` the kernel's part of a signal. `reads` counts the
calls of the kernel in `whole`, `pieces` and `bytes` are of the one in `kernel`.
"""

import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOB = r"""
import ctypes, json, sys
library, frames, times = (ctypes.CDLL if sys.argv[4] == "released" else ctypes.PyDLL)(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
names = ("whole", "kernel", "read", "ranges", "direct", "delivery", "empty", "frames", "pieces", "bytes", "range_bytes", "reads")
class Cost(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in names]
def measure(more, cold):
    if more:
        return measure(more - 1, cold)
    cost = Cost()
    if library.handler_measure(cold, times, ctypes.byref(cost)) != 0:
        raise SystemExit(1)
    return {name: round(getattr(cost, name) / (1e3 if i < 7 else 1), 3) for i, name in enumerate(names)}
print(json.dumps({"warm": measure(frames - 2, 0), "cold": measure(frames - 2, 1)}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--frames", type=int, default=25)
    parser.add_argument("--times", type=int, default=1001, help="how often each part is timed, 1001 at most")
    parser.add_argument("--released", action="store_true", help="the thread has released the GIL, as in a long C call")
    args = parser.parse_args()
    library = os.path.join(args.build, "tests", "known", "known.so")
    command = [args.python, "-c", JOB, library, str(args.frames), str(args.times), "released" if args.released else "holding"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(json.dumps(json.loads(done.stdout), indent=1))


if __name__ == "__main__":
    main()
