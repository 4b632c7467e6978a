#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tracing of allocations costs a job, and how well it agrees with others. Prints one JSON object.

usage: bench/alloc.py [--build DIR] [--pairs N] [--window S] [--every BYTES] [--parts PART,...] [--python PYTHON]
                      [--torch-python PYTHON] [--memray-python PYTHON]

Parts:
  train    examples/train.py in windows with and without tracing, in pairs of random order: by how many percent a step takes longer, by the clock
           and by CPU time of the job's threads; beside it what the agent itself says that it cost
  objects  the same for a loop that makes small Python objects and does nothing else: the worst case of the hooks
  blocks   and for one that makes blocks of 1 to 100 KiB
  agree    one job by tracemalloc, by memray (of --memray-python, if it is there) and by us: shares by function of what was allocated and of what
           lives, and the largest difference of one share, in percent of all

`verdicts` sets train against 2 %, and the differences against 5 %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
sys.path.insert(0, os.path.join(ROOT, "tests", "functional"))
import agent_wire  # noqa: E402
import procs  # noqa: E402
import windows  # noqa: E402

JOB = os.path.join(ROOT, "bench", "jobs", "alloc_job.py")
PARTS = ("train", "objects", "blocks", "agree")
BUDGET_PCT, AGREE_PCT = 2.0, 5.0
ROUNDS = 3000
SETTLE_S = 0.3
SITES = ("keep_large", "keep_text", "keep_list", "drop_large", "drop_dict", "keep_half")

TRACEMALLOC = """
import sys, json, tracemalloc
sys.path.insert(0, sys.argv[1])
import alloc_job
tracemalloc.start()
alloc_job.sites(int(sys.argv[2]))
live = {}
for trace in tracemalloc.take_snapshot().traces:
    frame = trace.traceback[0]
    live[frame.lineno] = live.get(frame.lineno, 0) + trace.size
names = {}
for site in alloc_job.SITES:
    code = site.__code__
    names[site.__name__] = (code.co_firstlineno, max(line for _, _, line in code.co_lines() if line))
print(json.dumps({name: sum(n for line, n in live.items() if first <= line <= last) for name, (first, last) in names.items()}))
"""

MEMRAY = """
import sys, json, memray
sys.path.insert(0, sys.argv[1])
import alloc_job
path = sys.argv[3]
with memray.Tracker(path, trace_python_allocators=True):
    alloc_job.sites(int(sys.argv[2]))
names = [site.__name__ for site in alloc_job.SITES]
allocated, live, where = dict.fromkeys(names, 0), dict.fromkeys(names, 0), {}
reader = memray.FileReader(path)
frees = {int(memray.AllocatorType.FREE), int(memray.AllocatorType.MUNMAP), int(memray.AllocatorType.PYMALLOC_FREE)}
PYTHON = {int(memray.AllocatorType[n]) for n in ("PYMALLOC_MALLOC", "PYMALLOC_CALLOC", "PYMALLOC_REALLOC")}
for record in reader.get_allocation_records():
    key = record.address, record.allocator in PYTHON or record.allocator == int(memray.AllocatorType.PYMALLOC_FREE)
    if record.allocator in frees or record.size == 0:
        name, size = where.pop(key, (None, 0))
        if name:
            live[name] -= size
        continue
    name, size = where.pop(key, (None, 0))
    if name:
        live[name] -= size
    stack = record.stack_trace(max_stacks=4)
    name = next((frame[0] for frame in stack if frame[0] in allocated), None)
    if name and key[1]:
        allocated[name] += record.size
        live[name] += record.size
        where[key] = name, record.size
print(json.dumps({"allocated": allocated, "live": live}))
"""


class Trace:
    """The lease "alloc", on and off, by a client that stays connected."""

    def __init__(self, build, pid, every):
        done = subprocess.run([f"{build}/probing", str(pid), "inject", "--json"], check=True, capture_output=True, text=True)
        self.client = agent_wire.Client(json.loads(done.stdout)["endpoint"].removeprefix("unix:"), timeout=60)
        self.every = every
        self.costs = []

    def lease(self):
        status = self.client.call("status")
        leases = agent_wire.rows(status["leases"], status["strings"], ("what",))
        return next((one for one in leases if one["what"] == "alloc"), {"owners": 0, "armed": False})

    def set(self, on):
        if on:
            self.client.call("arm", {"what": "alloc", "every": self.every, "steps": 0, "compiled": False})
            return
        cost = self.lease().get("cost_pct")
        if cost is not None:
            self.costs.append(cost)
        self.client.call("disarm", {"what": "alloc"})
        until = time.monotonic() + 20
        while (now := self.lease())["owners"] or now["armed"]:
            if time.monotonic() > until:
                raise SystemExit("alloc: the hooks do not go")
            time.sleep(0.01)

    def close(self):
        self.client.close()


def read_count(path):
    for _ in range(200):
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            time.sleep(0.01)
    return 0


def edge(path, pid):
    before = read_count(path)
    while (now := read_count(path)) == before:
        time.sleep(0.0005)
    return now, time.monotonic(), procs.job_cpu(pid)


def costs_of(args, command):
    """By how much a job is slower while it is traced."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "count")
        job = subprocess.Popen([part.replace("COUNT", path) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 120
            while read_count(path) < 20 and time.monotonic() < until:
                time.sleep(0.1)
            trace = Trace(args.build, job.pid, args.every)

            def window(on):
                if on:
                    trace.set(True)
                time.sleep(SETTLE_S)
                n, at, cpu = edge(path, job.pid)
                time.sleep(args.window)
                n_then, at_then, cpu_then = edge(path, job.pid)
                if on:
                    trace.set(False)
                return {"wall": (at_then - at) / (n_then - n), "cpu": (cpu_then - cpu) / (n_then - n)}

            window(True)  # code is seen for the first time
            slower = windows.alternate(args.pairs, window, ("wall", "cpu"))
            said = sorted(trace.costs)
            trace.close()
            return {"slower_pct": slower, "agent_says_pct": round(said[len(said) // 2], 3) if said else None}
        finally:
            job.kill()
            job.wait()


def shares(sums):
    total = sum(sums.values())
    return {name: 100 * n / total for name, n in sums.items()} if total else {}


def differ(ours, theirs):
    return round(max(abs(ours.get(name, 0) - theirs.get(name, 0)) for name in SITES), 2)


def ours_of(args):
    """The sums of the six functions, by their stacks: what a comprehension allocates is its function's."""
    with tempfile.TemporaryDirectory() as scratch:
        path, go = os.path.join(scratch, "count"), os.path.join(scratch, "go")
        job = subprocess.Popen([args.python, JOB, "sites", path, str(args.rounds), go])
        try:
            while not os.path.exists(path):
                time.sleep(0.01)
            trace = Trace(args.build, job.pid, args.every_agree)
            trace.set(True)
            with open(go, "w", encoding="ascii"):
                pass
            while read_count(path) < args.rounds:
                time.sleep(0.05)
            trace.set(False)
            text = ("SELECT fold(stack_id) AS stack, sum(allocated_bytes) AS allocated, sum(allocated_bytes) - sum(freed_bytes) AS live"
                    " FROM memory_allocations WHERE domain = 'python' GROUP BY stack_id")
            done = subprocess.run([f"{args.build}/probing", str(job.pid), "query", text, "--json"], check=True, capture_output=True, text=True)
            trace.close()
        finally:
            job.kill()
            job.wait()
    allocated, live = dict.fromkeys(SITES, 0), dict.fromkeys(SITES, 0)
    for row in json.loads(done.stdout)["rows"]:
        name = next((one for one in SITES if one in (row["stack"] or "")), None)
        if name:
            allocated[name] += row["allocated"]
            live[name] += row["live"]
    return allocated, live


def part_agree(args):
    folder = os.path.dirname(JOB)

    def run(python, text, *more):
        done = subprocess.run([python, "-c", text, folder, str(args.rounds), *more], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    allocated, live = (shares(sums) for sums in ours_of(args))
    out = {"ours": {"allocated_pct": allocated, "live_pct": live}}
    theirs = run(args.python, TRACEMALLOC)
    if theirs:
        out["tracemalloc"] = {"live_pct": shares(theirs), "largest_difference_pct": differ(live, shares(theirs))}
    with tempfile.TemporaryDirectory() as scratch:
        theirs = run(args.memray_python or args.python, MEMRAY, os.path.join(scratch, "memray.bin"))
    if theirs:
        out["memray"] = {"allocated_pct": shares(theirs["allocated"]), "live_pct": shares(theirs["live"]),
                         "largest_difference_pct": max(differ(allocated, shares(theirs["allocated"])), differ(live, shares(theirs["live"])))}
    return out


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1].split("\n\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--window", type=float, default=2.0)
    parser.add_argument("--every", type=int, default=512 * 1024)
    parser.add_argument("--every-agree", type=int, default=64 * 1024)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--torch-python", default=os.path.join(ROOT, "build", "venv", "bin", "python"))
    parser.add_argument("--memray-python")
    args = parser.parse_args()
    parts, out = args.parts.split(","), {}
    if "train" in parts and os.path.exists(args.torch_python):
        out["train"] = costs_of(args, [args.torch_python, os.path.join(ROOT, "examples", "train.py"), "--counter", "COUNT",
                                       "--eval-every", "1000000", "--workers", "0"])
    for part in ("objects", "blocks"):
        if part in parts:
            out[part] = costs_of(args, [args.python, JOB, part, "COUNT"])
    if "agree" in parts:
        out["agree"] = part_agree(args)
    train, agree = out.get("train"), out.get("agree", {})
    found = [agree[name]["largest_difference_pct"] for name in ("tracemalloc", "memray") if name in agree]
    out["verdicts"] = {"train_slower_2_pct": train and train["slower_pct"]["cpu"]["median"] <= BUDGET_PCT,
                       "agrees_5_pct": max(found) <= AGREE_PCT if found else None}
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
