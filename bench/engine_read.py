#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to read a job of many ranks from a ClickHouse server of this machine. Prints one JSON object.

usage: bench/engine_read.py [--build DIR] [--ranks N] [--seconds S] [--keys N] [--rows N] [--only watch,hang,rows]

watch   probing-top on Ranks while relays (tests/cluster/engine_ranks.py) write each second: refresh_s between two pictures of new rows,
        key_to_paint_ms with them, CPU of the program in percent of a core, resident memory; stacks_ms from the key O to the tree of all stacks
hang    a rank stops: seconds from the fault until `cluster verdict --watch` names it, which rank, and a silent host that is named
rows    N rows of steps (36,000,000: 10,000 ranks, an hour), made by the server: `cluster ranks` and `cluster verdict` of the newest moment, and
        a verdict of the past, in seconds

Needs clickhouse-server. Figures are of a quiet machine; `load` says whether it was.
"""

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for folder in (("bench", "support"), ("tests", "functional"), ("tests", "cluster")):
    sys.path.insert(0, os.path.join(ROOT, *folder))
import procs  # noqa: E402
from clickhouse import Server  # noqa: E402
from engine_ranks import Job  # noqa: E402
from pseudo_terminal import Screen  # noqa: E402

NAME = "llama-71c0"


class Writer:
    def __init__(self, job):
        self.job, self.ends = job, threading.Event()
        self.thread = threading.Thread(target=job.run, args=(self.ends.is_set,), daemon=True)

    def __enter__(self):
        self.thread.start()
        while self.job.seconds < 3:
            time.sleep(0.1)
        return self.job

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join(60)


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return round(int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024, 1)


def watch(args, server):
    with Writer(Job(server.ask, NAME, ranks=args.ranks)):
        screen = Screen(f"{args.build}/probing-top", server.url(job=NAME))
        screen.wait_for(f"{args.ranks}/{args.ranks}".encode())
        screen.drain(5)
        cpu, began = procs.all_cpu(screen.pid), time.monotonic()
        pictures = screen.drain(args.seconds)
        elapsed = time.monotonic() - began
        out = {"refresh_s": round(elapsed / max(1, pictures), 2), "cpu_pct": round(100 * (procs.all_cpu(screen.pid) - cpu) / elapsed, 1)}
        times = []
        for i in range(args.keys):
            screen.read(0.03)
            began = time.monotonic()
            screen.type("jk"[i % 2])
            if not select.select([screen.fd], [], [], 5)[0]:
                raise SystemExit("engine_read: a key had no effect for five seconds")
            times.append(1e3 * (time.monotonic() - began))
        times.sort()
        out["key_to_paint_ms"] = {"median": round(times[len(times) // 2], 2), "p99": round(times[int(0.99 * (len(times) - 1))], 2)}
        out["rss_mb"] = rss_mb(screen.pid)
        began = time.monotonic()
        screen.type("O")
        screen.wait_for(b"[O Stacks]")
        out["stacks_ms"] = round(1e3 * (time.monotonic() - began), 1)
        screen.end()
    return out


def hang(args, server):
    job = Job(server.ask, NAME, ranks=args.ranks)
    victim = args.ranks // 2 + 1
    with Writer(job):
        with subprocess.Popen([f"{args.build}/probing", "cluster", "verdict", "--watch", server.url(job=NAME)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as verdict:
            time.sleep(5)
            fault = time.time()
            job.hang(victim, fault)
            job.silent = {7}
            said, named = None, threading.Event()
            silent = []

            def read_errors():
                for line in verdict.stderr:
                    if "gpu7" in line:
                        silent.append(time.time() - fault)

            threading.Thread(target=read_errors, daemon=True).start()
            for line in verdict.stdout:
                found = re.search(r"(HUNG|WAITS FOR) RANKS? (\S+)", line)
                if found:
                    said = {"after_s": round(time.time() - fault, 1), "code": found.group(1), "rank": found.group(2)}
                    break
            verdict.send_signal(signal.SIGINT)
    return {**(said or {}), "right": bool(said and said["rank"].split(",")[0] == str(victim)),
            "silent_host_named_after_s": round(silent[0], 1) if silent else None}


def timed(*command):
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"s": round(time.monotonic() - began, 2), "ok": done.returncode in (0, 1), "last": (done.stdout or done.stderr).strip().splitlines()[-1:]}


def rows(args, server):
    job, now = Job(server.ask, NAME, ranks=args.ranks), time.time()
    steps = args.rows // args.ranks
    job.started = now - steps
    job.put_stacks(now)
    for first in range(0, steps, 60):
        job.put_steps(job.started + min(first + 60, steps), 60)
    url = server.url(job=NAME)
    with Writer(job):  # it goes on
        return {"steps": server.number("SELECT count() FROM probing.python_steps"),
                "ranks": timed(f"{args.build}/probing", "cluster", "ranks", url, "-d", "0"),
                "verdict": timed(f"{args.build}/probing", "cluster", "verdict", url),
                "past": timed(f"{args.build}/probing", "cluster", "verdict", f"{url}&at=@{time.time() - 2:.0f}")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--ranks", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--keys", type=int, default=100)
    parser.add_argument("--rows", type=int, default=36_000_000)
    parser.add_argument("--only", default="watch,hang,rows")
    args = parser.parse_args()
    out = {"ranks": args.ranks, "load": os.getloadavg()[0]}
    for part in args.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(os.path.join(folder, "clickhouse"))
            server.start()
            try:
                subprocess.run([f"{args.build}/probing", "cluster", "init", server.url()], check=True, capture_output=True)
                out[part] = {"watch": watch, "hang": hang, "rows": rows}[part](args, server)
            finally:
                server.kill(signal.SIGTERM)
        print(json.dumps({part: out[part]}), file=sys.stderr, flush=True)
    json.dump(out, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
