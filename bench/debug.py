#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Steps a second of a job of pure Python: before, while debugpy listens, with a client that has no breakpoints, after it has left.

usage: bench/debug.py [--build build] [--python PYTHON] [--path DIR-OF-DEBUGPY] [--seconds 5]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "functional"))
from dap_client import DapClient  # noqa: E402

JOB = """
import mmap, struct, sys
with open(sys.argv[1], "r+b") as f:
    page = mmap.mmap(f.fileno(), 8)
def part(i):
    return i * 3 & 255
def step():
    return sum(part(i) for i in range(1000))
n = 0
while True:
    step()
    n += 1
    page[:] = struct.pack("<Q", n)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--path")
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    with tempfile.NamedTemporaryFile() as counter:
        counter.write(b"\0" * 8)
        counter.flush()
        job = subprocess.Popen([args.python, "-c", JOB, counter.name])

        def rate(what):
            def count():
                with open(counter.name, "rb") as file:
                    return int.from_bytes(file.read(8), "little")
            time.sleep(1)
            first, since = count(), time.monotonic()
            time.sleep(args.seconds)
            print("%-30s %9.1f steps/s" % (what, (count() - first) / (time.monotonic() - since)), flush=True)

        def probing(*words):
            return subprocess.run([os.path.join(args.build, "probing"), str(job.pid), *words], check=True, capture_output=True, text=True).stdout
        try:
            rate("before")
            port = json.loads(probing("debug", "--json", *(["--path", args.path] if args.path else [])))["port"]
            rate("debugpy listens")
            client = DapClient(port)
            client.attach({})
            rate("attached, no breakpoints")
            client.ask("disconnect", terminateDebuggee=False)
            client.close()
            rate("after it has left")
            probing("debug", "--off")
            rate("after debug --off")
        finally:
            job.kill()
            job.wait()


if __name__ == "__main__":
    main()
