#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to have the ranks of many hosts on one screen: probing-top with a relay for each of --hosts hosts, which answer by a script
(tests/cluster/fake_relay.py), on a terminal of 160x50. Prints one JSON object.

usage: bench/fleet.py [--build DIR] [--hosts N] [--ranks N] [--keys N] [--seconds S] [--check]

When all else is measured one rank stays in its loader: `verdict_s` is how long after that it is named. Then the relays of two hosts fall
silent: `silent_s` is until their ranks are shown without news. With --check the exit status is 1 if
a budget was exceeded.
"""

import argparse
import json
import os
import re
import select
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
import procs  # noqa: E402
from pseudo_terminal import Screen  # noqa: E402

FAKE = os.path.join(ROOT, "tests", "cluster", "fake_relay.py")
BUDGETS = {"all_s": 8.0, "cpu_pct": 10.0, "rss_mb": 64.0, "key_p99_ms": 16.0, "verdict_s": 15.0}


def value_of(path, key):
    with open(path, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


def wait_for(screen, text, seconds=30):
    """Until it is on the screen: most pictures are only what has changed, and a repaint is all."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        screen.type("\x0c")
        if text in re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|\(B)", b"", screen.read(0.2)):
            return
    raise SystemExit(f"fleet: {text!r} did not come in {seconds:g} seconds")


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def key_times(screen, count):
    """From a key to the first byte of the picture that shows it."""
    times = []
    for i in range(count):
        screen.read(0.05)
        started = time.monotonic()
        screen.type("jk"[i % 2])
        if not select.select([screen.fd], [], [], 5)[0]:
            raise SystemExit("fleet: a key had no effect for five seconds")
        times.append(1e3 * (time.monotonic() - started))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=8, help="of a host")
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    world = args.hosts * args.ranks
    begin = time.time()
    hang = 15 + args.seconds + args.keys * 0.08  # when all else is measured
    silent = hang + 30
    via = (f"{sys.executable} -SE {FAKE} {{host}} --hosts {args.hosts} --ranks {args.ranks} --begin {begin} --hang {world // 3}@{hang} "
           f"--silent f1@{silent},f{args.hosts - 1}@{silent}")
    screen = Screen(f"{args.build}/probing-top", "job:", "--hosts", f"f[0-{args.hosts - 1}]", "--via", via)
    out = {"hosts": args.hosts, "ranks": world}
    wait_for(screen, f"/{world} ranks".encode())
    out["first_s"] = round(time.time() - begin, 2)
    wait_for(screen, f"{world}/{world} ranks".encode())
    out["all_s"] = round(time.time() - begin, 2)
    screen.drain(2)
    cpu, started = procs.all_cpu(screen.pid), time.monotonic()
    screen.drain(args.seconds)
    elapsed = time.monotonic() - started
    out["cpu_pct"] = round(100 * (procs.all_cpu(screen.pid) - cpu) / elapsed, 2)
    out["rss_mb"] = round(value_of(f"/proc/{screen.pid}/status", "VmRSS:") / 1024, 1)
    times = key_times(screen, args.keys)
    out["key_p50_ms"], out["key_p99_ms"] = round(statistics.median(times), 2), round(percentile(times, 0.99), 2)
    wait_for(screen, f"HUNG RANK {world // 3}".encode(), hang + 60)
    out["verdict_s"] = round(time.time() - begin - hang, 1)
    wait_for(screen, b"no news", 90)
    out["silent_s"] = round(time.time() - begin - silent, 1)
    screen.end()
    out["exceeded"] = [name for name, most in BUDGETS.items() if out[name] > most]
    print(json.dumps(out, indent=2))
    if args.check and out["exceeded"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
