#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the screens of probing-top cost, on a pseudo terminal, against DESIGN's budgets. Prints one JSON object.

usage: bench/tui.py [--build DIR] [--python PATH] [--threads N] [--seconds S] [--keys N]

key_to_paint_ms  from a key (down, up) until the program writes, with the view paused so that nothing else makes it write
cpu_pct          of one core with four snapshots a second, all threads of probing-top, by the kernel's account
private_mb, rss_mb   resident memory, without what it shares with other programs (libraries, its own code), and in all
wakeups_paused   voluntary context switches a second while the view is paused
flame, top       the same with that screen open, for which samples come in all the time, of all threads
"""

import argparse
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
import procs  # noqa: E402

ROWS, COLUMNS = 50, 160


class Screen:
    """probing-top on a terminal of its own."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execv(command[0], command)

    def read(self, seconds):
        """What is written until nothing comes for so long."""
        out = b""
        while select.select([self.fd], [], [], seconds)[0]:
            out += os.read(self.fd, 1 << 16)
        return out

    def drain(self, seconds):
        """Read on for so long: a program that cannot write stands still."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 1 << 16)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        self.type("q")
        try:
            self.drain(1)
        except OSError:  # it has ended
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def switches(pid):
    total = 0
    for tid in procs.threads(pid):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            total += sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
    return total


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        kb = {line.split(":")[0]: int(line.split()[1]) for line in f if line.split()[-1] == "kB"}
    return round((kb["Private_Clean"] + kb["Private_Dirty"]) / 1024, 2), round(kb["Rss"] / 1024, 2)


def key_times(screen, count):
    times = []
    for i in range(count):
        screen.read(0.03)
        started = time.monotonic()
        screen.type("j" if i % 2 == 0 else "k")
        if not select.select([screen.fd], [], [], 5)[0]:
            raise SystemExit("tui: a key had no effect for five seconds")
        times.append(1e3 * (time.monotonic() - started))
    return sorted(times)


def measure(args, pid, keys=""):
    screen = Screen(f"{args.build}/probing-top", "-d", "250ms", str(pid))
    screen.drain(3)
    if keys:
        screen.type(keys)
        screen.drain(5)
    before, started = procs.all_cpu(screen.pid), time.monotonic()
    screen.drain(args.seconds)
    out = {"cpu_pct": round(100 * (procs.all_cpu(screen.pid) - before) / (time.monotonic() - started), 3)}
    out["private_mb"], out["rss_mb"] = memory_mb(screen.pid)
    screen.type(" ")
    screen.drain(1)
    times = key_times(screen, args.keys)
    out["key_to_paint_ms"] = {"median": round(statistics.median(times), 2), "p99": round(times[int(0.99 * (len(times) - 1))], 2),
                              "worst": round(times[-1], 2)}
    screen.drain(1)
    before, cpu, started = switches(screen.pid), procs.all_cpu(screen.pid), time.monotonic()
    screen.drain(args.seconds)
    elapsed = time.monotonic() - started
    out["wakeups_paused"] = round((switches(screen.pid) - before) / elapsed, 2)
    out["cpu_pct_paused"] = round(100 * (procs.all_cpu(screen.pid) - cpu) / elapsed, 3)
    screen.end()
    return out


def verdicts(out):
    rows = (("key to paint, ms, 99th percentile", 16, out["key_to_paint_ms"]["p99"]), ("% of a core at 4 Hz", 1, out["cpu_pct"]),
            ("key to paint in the Flame screen, ms, 99th percentile", 16, out["flame"]["key_to_paint_ms"]["p99"]),
            ("MB resident with the Flame screen", 20, out["flame"]["rss_mb"]),
            ("MB resident", 20, out["rss_mb"]), ("wake-ups a second when paused", 0, out["wakeups_paused"]))
    return [{"what": what, "budget": budget, "value": value, "kept": value <= budget} for what, budget, value in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--keys", type=int, default=200)
    args = parser.parse_args()
    job = subprocess.Popen([args.python, os.path.join(ROOT, "bench", "jobs", "sampler_job.py"), str(args.threads - 2), "1"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        job.stdout.readline()
        out = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "threads": args.threads, **measure(args, job.pid)}
        out["flame"] = measure(args, job.pid, "3a")  # a: all time, of those that wait too
        out["top"] = measure(args, job.pid, "4a")
    finally:
        job.kill()
        job.wait()
    out["verdicts"] = verdicts(out)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
