#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sampling costs the machine and the job. Prints one JSON object.

us_per_tick is without the first two seconds, in which every thread and code object is seen for the first time.

usage: bench/sampler.py [--build DIR] [--seconds S] [--rounds N] [--train-rounds N]

cost_pct is CPU time of everything the sampler does, of one core: for us the agent's threads, the client, and what handlers
spend on the job's threads; for austin and py-spy (when VENV/bin or PATH has them; ./run bench installs them) their process.
job_cost_pct is how much more CPU the job needed for the same work, in windows with and without sampling that alternate.
"""

import argparse
import glob
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Job:
    def __init__(self, python, idle, hot):
        self.process = subprocess.Popen([python, os.path.join(ROOT, "bench", "jobs", "sampler_job.py"), str(idle), str(hot)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def mark(self):
        """(loops, CPU seconds) of the busy threads"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        loops, cpu = self.process.stdout.readline().split()
        return int(loops), float(cpu)

    def end(self):
        self.process.kill()
        self.process.wait()


def agent_cpu_s(pid):
    total = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(task + "/comm", encoding="utf-8") as comm:
                if comm.read().startswith("probing-"):
                    with open(task + "/schedstat", encoding="utf-8") as stat:
                        total += int(stat.read().split()[0])
        except OSError:
            continue
    return total / 1e9


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def status_of(build, pid):
    done = subprocess.run([f"{build}/probing", str(pid), "status", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["sampler"]


def run_ours(build, pid, seconds, mode):
    """CPU seconds of agent, client and handlers, and the samples taken."""
    before, agent = status_of(build, pid), agent_cpu_s(pid)
    children = children_cpu_s()
    options = ["--gentle"] if mode == "gentle" else []
    started = time.monotonic()
    subprocess.run([f"{build}/probing-top", "--export", "folded", "--duration", f"{seconds}s", "-o", os.devnull, *options,
                    str(pid)], check=True)
    elapsed = time.monotonic() - started
    client, ours = children_cpu_s() - children, agent_cpu_s(pid) - agent
    after = status_of(build, pid)
    handled = after["exact"] - before["exact"]
    handlers = handled * (after["us_per_signal"] or 0) / 1e6
    return {"cost_pct": 100 * (client + ours + handlers) / elapsed, "agent_pct": 100 * ours / elapsed,
            "client_pct": 100 * client / elapsed, "handlers_pct": 100 * handlers / elapsed,
            "samples": after["samples"] - before["samples"], "exact": handled,
            "torn": after["torn"] - before["torn"], "us_per_signal": after["us_per_signal"]}


def run_tool(command, seconds):
    children, started = children_cpu_s(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait(20)
    elapsed = time.monotonic() - started
    return {"cost_pct": 100 * (children_cpu_s() - children) / elapsed}


def median_of(rounds):
    return {key: round(statistics.median(r[key] for r in rounds), 4) for key in rounds[0] if rounds[0][key] is not None}


def against_others(args, python, tools):
    """10 threads, one busy, 25 frames, 100 Hz: all in turn on the same job."""
    job = Job(python, 9, 1)
    subprocess.run([f"{args.build}/probing", str(job.pid), "inject"], check=True, stdout=subprocess.DEVNULL)
    rounds = {name: [] for name in ["exact", "gentle", *tools]}
    for _ in range(args.rounds):
        for mode in ("exact", "gentle"):
            rounds[mode].append(run_ours(args.build, job.pid, args.seconds, mode))
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "out")
            commands = {"austin": ["-i", "10ms", "-x", str(args.seconds), "-o", out, "-p", str(job.pid)],
                        "py-spy": ["record", "-r", "100", "-d", str(args.seconds), "-f", "raw", "-o", out, "-p", str(job.pid)]}
            for name, path in tools.items():
                rounds[name].append(run_tool([path, *commands[name]], args.seconds + 5))
    job.end()
    out = {name: median_of(r) for name, r in rounds.items()}
    if "austin" in out and out["austin"]["cost_pct"]:
        out["exact_of_austin"] = round(out["exact"]["cost_pct"] / out["austin"]["cost_pct"], 3)
    return out


# --- one thread-sample, without clients: the agent's own ticks at a rate, in the job ------------------------------

TICKS = r'''
import ctypes, json, sys, threading, time
sys.path.insert(0, sys.argv[1])
import sampling
idle, hot, hz, seconds, mode = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]), sys.argv[7]
event = threading.Event()
def deep(n):
    if n: return deep(n - 1)
    event.wait()
def work(n):
    if n: return work(n - 1)
    for i in range(200): hash(str(i))
until = time.monotonic() + 3600
def busy():
    while time.monotonic() < until: work(22)
for _ in range(idle): threading.Thread(target=deep, args=(18,), daemon=True).start()
for _ in range(hot): threading.Thread(target=busy, daemon=True).start()
time.sleep(0.2)
sampler = sampling.Sampling(sys.argv[2], hz, mode)
time.sleep(seconds + 2)
print(json.dumps(sampler.stop()), flush=True)
import os
os._exit(0)
'''


def ticks(args, python, idle, hot, hz):
    done = subprocess.run([python, "-c", TICKS, os.path.join(ROOT, "tests", "known"),
                           os.path.join(args.build, "tests", "known", "known.so"), str(idle), str(hot), str(hz),
                           str(args.seconds), "exact"], capture_output=True, text=True, check=True)
    r = json.loads(done.stdout)
    return {"threads": idle + hot + 1, "busy": hot, "hz": hz, "us_per_tick": round(r["cpu_ns"] / r["ticks"] / 1e3, 2),
            "handler_us": round(r["handler_ns"] / r["handled"] / 1e3, 2) if r["handled"] else None,
            "cost_pct": round(100 * (r["cpu_ns"] + r["handler_ns"]) / (args.seconds * 1e9), 3),
            "samples": r["samples"], "exact": r["exact"], "torn": r["torn"]}


def per_thread(args, python):
    rows = [ticks(args, python, 9, 1, hz) for hz in (100, 1000)]
    rows += [ticks(args, python, n, 0, 100) for n in (20, 200)] + [ticks(args, python, n, 0, 1000) for n in (20, 200)]
    few, many = rows[2], rows[3]
    return {"rows": rows, "us_per_idle_thread": round((rows[5]["us_per_tick"] - rows[4]["us_per_tick"]) / 180, 3),
            "us_per_running_thread": round(rows[1]["us_per_tick"] - rows[4]["us_per_tick"] * 11 / 21
                                           + (rows[1]["handler_us"] or 0), 2),
            "idle_200_of_20": round(many["us_per_tick"] / few["us_per_tick"], 2)}


# --- the training example -----------------------------------------------------------------------------------------

def training(args, python):
    with tempfile.TemporaryDirectory() as scratch:
        counter = os.path.join(scratch, "steps")
        job = subprocess.Popen([python, os.path.join(ROOT, "examples", "train.py"), "--counter", counter, "--eval-every",
                                "1000000", "--workers", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return training_windows(args, job, counter)
        finally:
            job.kill()
            job.wait()


def training_windows(args, job, counter):
    clock = lambda: int(open(f"/proc/{job.pid}/task/{job.pid}/schedstat", encoding="utf-8").read().split()[0]) / 1e9
    def steps():
        for _ in range(100):
            try:
                return int(open(counter, encoding="utf-8").read())
            except (OSError, ValueError):
                time.sleep(0.01)
        return 0
    deadline = time.monotonic() + 120
    while steps() < 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    subprocess.run([f"{args.build}/probing", str(job.pid), "inject"], check=True, stdout=subprocess.DEVNULL)
    costs = {True: [], False: []}
    for i in range(2 * args.train_rounds):
        on = i % 2 == 1
        client = subprocess.Popen([f"{args.build}/probing-top", "--export", "folded", "--duration", f"{args.seconds}s", "-o",
                                   os.devnull, str(job.pid)]) if on else None
        first, cpu = steps(), clock()
        time.sleep(args.seconds)
        costs[on].append((clock() - cpu) / max(1, steps() - first))
        if client:
            client.wait()
    ratios = [100 * (b / a - 1) for a, b in zip(costs[False], costs[True])]
    return {"cpu_ms_per_step": round(1e3 * statistics.median(costs[False]), 3),
            "job_cost_pct": round(statistics.median(ratios), 3),
            "spread_pct": [round(q, 2) for q in statistics.quantiles(ratios, n=4)] if len(ratios) > 1 else None,
            "windows": len(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train-rounds", type=int, default=10)
    args = parser.parse_args()
    if args.seconds == int(args.seconds):
        args.seconds = int(args.seconds)
    tools = {}
    for name in ("austin", "py-spy"):
        path = os.path.join(args.build, "bench-venv", "bin", name)
        path = path if os.path.exists(path) else shutil.which(name)
        if path:
            tools[name] = path
    out = {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "python": args.python.rpartition("/")[2]}
    out["per_thread"] = per_thread(args, args.python)
    out["ten_threads_100hz"] = against_others(args, args.python, tools)
    if args.train_rounds and subprocess.run([args.python, "-c", "import torch"], capture_output=True).returncode == 0:
        out["training"] = training(args, args.python)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
