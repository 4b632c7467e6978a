#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ClickHouse: rows of thousands of ranks into a server of its own that is killed and stays down for a while (bench/engine_rows.c writes them as
relays do), and what a relay that writes the ranks of a gloo job costs. Prints one JSON object.

usage: bench/engine.py [--build DIR] [--python PATH] [--seconds S] [--rate ROWS] [--senders N] [--down S] [--ranks N] [--window S] [--check]

--seconds 0 leaves out the rows, --ranks 0 the relay. With --check the exit status is 1 if a row was lost or is double, or a budget was exceeded.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "functional")]
import clickhouse  # noqa: E402

BUDGETS = {"relay_pct": 1.0, "relay_mb": 16.0}


def rows(args, server):
    """Are all there once, whatever was killed?"""
    writer = subprocess.Popen([os.path.join(args.build, "bench", "engine_rows"), server.url(), str(args.seconds), str(args.rate), str(args.senders)],
                              stdout=subprocess.PIPE, text=True)
    time.sleep(args.seconds / 4)
    server.kill()
    time.sleep(args.down)
    server.start()
    out, _ = writer.communicate(timeout=args.seconds + args.down + 600)
    sent = json.loads(out)
    began = time.monotonic()
    there = server.number("SELECT count() FROM probing.python_steps FINAL")
    size = server.ask("SELECT sum(bytes), sum(rows) FROM system.parts WHERE active AND database = 'probing' AND table = 'python_steps'")[0]
    return {**sent, "rate": args.rate, "down_s": args.down, "lost": max(0, sent["rows"] - there), "double": max(0, there - sent["rows"]),
            "sent_twice_not_merged_yet": int(size[1]) - there, "bytes_on_disk_per_row": round(int(size[0]) / max(1, int(size[1])), 1),
            "count_s": round(time.monotonic() - began, 1)}


def family(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid, *map(int, file.read().split())]


def cpu_s(pid):
    total = 0
    for one in family(pid):
        with open(f"/proc/{one}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def memory_mb(pid, names):
    total = 0
    for one in family(pid):
        with open(f"/proc/{one}/smaps_rollup", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith(names))
    return round(total / 1024, 1)


def relay(args, server, folder):
    """Processor time and memory of a relay with all its children, while it writes a job of so many ranks."""
    probing, times = os.path.join(args.build, "probing"), os.path.join(folder, "times")
    launcher = subprocess.Popen([args.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.ranks),
                                 os.path.join(ROOT, "bench", "jobs", "ranks_job.py"), times], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"), start_new_session=True)
    watching = None
    try:
        until = time.monotonic() + 300
        while not all(os.path.exists(f"{times}.{rank}") and os.path.getsize(f"{times}.{rank}") > 2000 for rank in range(args.ranks)):
            assert launcher.poll() is None and time.monotonic() < until, "the job has not started"
            time.sleep(0.1)
        job = json.loads(subprocess.run([probing, "cluster", "nodes", str(launcher.pid), "--json"], capture_output=True, check=True).stdout)["rows"][0]["job"]
        watching = subprocess.Popen([probing, "relay", "--to", server.url(), job], env=dict(os.environ, XDG_STATE_HOME=os.path.join(folder, "state")))
        until = time.monotonic() + 120
        while server.number(f"SELECT uniqExact(pid) FROM probing.python_collectives WHERE job = '{job}'") < args.ranks:
            assert watching.poll() is None and time.monotonic() < until, "no rows have come"
            time.sleep(1)
        costs = []
        for _ in range(max(1, int(args.window / 10))):
            before, began = cpu_s(watching.pid), time.monotonic()
            time.sleep(10)
            costs.append(100 * (cpu_s(watching.pid) - before) / (time.monotonic() - began))
        found = {"ranks": args.ranks, "relay_pct": round(statistics.mean(costs), 2), "windows_pct": [round(cost, 2) for cost in costs],
                 "relay_mb": memory_mb(watching.pid, ("Private_Clean", "Private_Dirty")), "relay_pss_mb": memory_mb(watching.pid, ("Pss:",)),
                 "processes": len(family(watching.pid))}
        written = server.ask(f"SELECT count() / (max(ts) - min(ts)) FROM probing.python_collectives WHERE job = '{job}'")[0][0]
        disk = server.ask("SELECT table, sum(bytes) / sum(rows) FROM system.parts WHERE active AND database = 'probing' AND rows > 100 GROUP BY table")
        return {**found, "collective_rows_per_s": round(float(written), 1), "bytes_per_row": {table: round(float(size)) for table, size in disk}}
    finally:
        for process in (watching, launcher):
            if process:
                (os.killpg if process is launcher else os.kill)(process.pid, signal.SIGTERM)
                process.wait(60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", default=os.environ.get("PYTHON", "python3"))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=int, default=60000)
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--down", type=float, default=120)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--window", type=float, default=60)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = clickhouse.Server(os.path.join(folder, "clickhouse"))
        server.start()
        try:
            subprocess.run([os.path.join(args.build, "probing"), "cluster", "init", server.url()], check=True, stdout=subprocess.DEVNULL)
            found = {"rows": rows(args, server) if args.seconds else None, "relay": relay(args, server, folder) if args.ranks else None}
        finally:
            server.kill()
    kept = {name: found["relay"][name] <= budget for name, budget in BUDGETS.items() if found["relay"]}
    if found["rows"]:
        kept.update(lost=found["rows"]["lost"] == 0, double=found["rows"]["double"] == 0)
    print(json.dumps({**found, "budgets": BUDGETS, "kept": kept}, indent=1))
    return 1 if args.check and not all(kept.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
