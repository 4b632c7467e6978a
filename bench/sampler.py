#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sampling costs the machine and the job, against what it may cost and against other samplers. Prints one JSON object.

usage: bench/sampler.py [--build DIR] [--seconds S] [--rounds N] [--pairs N] [--only PART,...] [--jobs PATTERN,...] [--ways PATTERN,...]
       bench/sampler.py --table FILE      prints the tables of the documents from such an object

Parts:
  tick    one tick of the agent's sampler within a job, without a client: waking up, looking, signals; idle and running threads
  peers   1, 10 and 160 threads, idle ones with stacks of 3 and of 20 frames, one busy with Python or with torch, 100 Hz: agent, client,
          handlers and their delivery against each other sampler, in random order in each round, on one job at a time. Ours with a
          budget so wide that the rate that was asked for is kept: a cost is compared at the same number of samples. `exact_250` is 250
          a second, beside samplers that are faster, as `austin 1ms`. `as_shipped` is 100 with the usual budget of 1 %, where fewer
          samples are taken on a machine that is slow; kept_hz is the rate that was kept. A ratio is the median of those of all rounds,
          with an interval by resampling them. The other samplers are those of BUILD/bench-venv (tools/bench_peers.sh) and of PATH,
          profiling.sampling where --python has it (3.15), and what --peer NAME=PATH names: NAME begins with that of a row of PEERS
          ("austin 4=/opt/austin4/bin/austin"); that of a row stands for those that begin with it
  wakeups how often each thread of the agent and of probing-top wakes up, and what that costs, on a job that sleeps: with nobody
          connected, and with probing-top's first screen
  idle    20 and 200 idle threads, in turn: agent and client, at the full rate too
  training  examples/train.py (when torch is there): agent, client and handlers as shipped
  train   the same, without evaluations and workers, in windows with and without sampling, pinned and not
  many    a job of 160 threads, half of them native, in such windows

A pair of windows takes 2 * (--window + 0.3) seconds and is made --pairs times, for train twice as many (pinned and not): 100 pairs of one
second are 9 minutes of train and 4.5 of many.

Tools are measured while they are at work: what starting them costs is left out. CPU time is the kernel's account (schedstat) of the agent's threads, the client and the other tools. What handlers spend is the
agent's own account (time within the handler, and delivery as it measures it); the windows see what it really does to the job.
A tool that stops the job is charged that too: the time its busy thread neither ran nor waited for a CPU.
--jobs and --ways choose rows of `peers` by shell patterns: --only peers --jobs 'python_10_*' --ways exact,austin --rounds 7
takes two minutes; all of it, with 7 rounds of 4 seconds, an hour.
`verdicts` sets the figures beside their budgets: kept, missed, or undecided when a figure's interval reaches over its budget (a
machine with other work on it). A budget without a figure (a tool or torch is absent) is null.
"""

import argparse
import contextlib
import fnmatch
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
import procs  # noqa: E402
import pseudo_terminal  # noqa: E402
import switch  # noqa: E402
import windows  # noqa: E402

PARTS = ("tick", "peers", "wakeups", "idle", "training", "train", "many")
HZ = 100
PYTHON = "--python"  # the program of a peer that is a module of the job's own Python
WIDE_PCT = 50  # a budget that never stretches an interval
RATE_KEPT = 0.9  # of HZ, at least, else nothing is said of the cost at it
LEAD_S = 1  # a tool is up by then, and every thread has been seen
SETTLE_S = 0.3  # the same of the agent, when samples begin or end


def job_path(name):
    return os.path.join(ROOT, "bench", "jobs", name)


class Job:
    """A program that answers each line on its input with a line of counters."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"sampler: {command[1]} did not start")
        self.pid = self.process.pid

    def mark(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def end(self):
        self.process.kill()
        self.process.wait()


def inject(build, pid):
    subprocess.run([f"{build}/probing", str(pid), "inject"], check=True, stdout=subprocess.DEVNULL)


def status_of(build, pid):
    done = subprocess.run([f"{build}/probing", str(pid), "status", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["sampler"]


def client(build, pid, seconds, mode="exact", budget_pct=None, hz=HZ):
    options = ["--rate", str(hz)] + (["--gentle"] if mode == "gentle" else []) + (["--budget", str(budget_pct)] if budget_pct else [])
    return subprocess.Popen([f"{build}/probing-top", "--export", "folded", "--duration", f"{seconds:g}s", "-o", os.devnull,
                             *options, str(pid)], stderr=subprocess.DEVNULL)


def median_of(rows):
    known = {key: [row[key] for row in rows if row[key] is not None] for key in rows[0]}
    return {key: round(statistics.median(values), 4) for key, values in known.items() if values}


def chosen(names, patterns):
    """Those that one of the patterns matches, in their order."""
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(","))]


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


# --- tick: the agent's own ticks at a rate, in the job ------------------------------------------------------------

TICKS = r'''
import json, os, sys, threading, time
sys.path[:0] = [sys.argv[1], sys.argv[8]]
import sampler_job, sampling
idle, hot, hz, seconds, mode = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]), sys.argv[7]
event = threading.Event()
for _ in range(idle): threading.Thread(target=sampler_job.deep, args=(18, event), daemon=True).start()
for _ in range(hot): threading.Thread(target=sampler_job.busy, args=([0, 0.0],), daemon=True).start()
time.sleep(0.2)
sampler = sampling.Sampling(sys.argv[2], hz, mode)
time.sleep(seconds + 2)
print(json.dumps(sampler.stop()), flush=True)
os._exit(0)
'''


def known_library(args):
    return os.path.join(args.build, "tests", "known", "known.so")


def tick_row(args, idle, hot, hz):
    done = subprocess.run([args.python, "-c", TICKS, os.path.join(ROOT, "tests", "known"), known_library(args), str(idle),
                           str(hot), str(hz), str(args.seconds), "exact", os.path.join(ROOT, "bench", "jobs")],
                          capture_output=True, text=True, check=True)
    r = json.loads(done.stdout)
    row = {"us_per_tick": r["cpu_ns"] / r["ticks"] / 1e3, "us_looking": r["body_ns"] / r["ticks"] / 1e3,
           "us_handler": None, "us_signal_around": None, "samples": r["samples"], "exact": r["exact"], "torn": r["torn"]}
    row["us_waking"] = row["us_per_tick"] - row["us_looking"]
    if r["handled"]:
        row["us_handler"] = r["handler_ns"] / r["handled"] / 1e3
        row["us_signal_around"] = r["deliver_ns"] / r["handled"] / 1e3
    return row


def signal_us(args):
    """What it costs the sender to interrupt a thread on another CPU, without us."""
    code = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.native_signal_us.restype = ctypes.c_double; print(l.native_signal_us())"
    done = subprocess.run([args.python, "-c", code, known_library(args)], capture_output=True, text=True, check=True)
    return round(float(done.stdout), 2)


def part_tick(args):
    """Two seconds in which every thread and code object is seen for the first time are not in the figures."""
    kinds = {"idle_10_100hz": (10, 0, 100), "busy_1_of_10_100hz": (9, 1, 100), "idle_10_1khz": (10, 0, 1000),
             "busy_1_of_10_1khz": (9, 1, 1000), "idle_20_100hz": (20, 0, 100), "idle_200_100hz": (200, 0, 100),
             "idle_20_1khz": (20, 0, 1000), "idle_200_1khz": (200, 0, 1000)}
    rounds = {kind: [] for kind in kinds}
    signals = []
    for _ in range(args.rounds):
        signals.append(signal_us(args))
        for kind, what in kinds.items():
            rounds[kind].append(tick_row(args, *what))
    rows = {kind: median_of(r) for kind, r in rounds.items()}

    def between(key, kind, other):
        return [a[key] - b[key] for a, b in zip(rounds[kind], rounds[other])]

    running = statistics.median(between("us_looking", "busy_1_of_10_1khz", "idle_10_1khz"))
    ratios = [a["us_per_tick"] / b["us_per_tick"] for hz in ("100hz", "1khz")
              for a, b in zip(rounds["idle_200_" + hz], rounds["idle_20_" + hz])]
    handler = rows["busy_1_of_10_1khz"].get("us_handler", 0) + rows["busy_1_of_10_1khz"].get("us_signal_around", 0)
    return {"rows": rows, "us_idle_thread": {hz: round(statistics.median(between("us_per_tick", "idle_200_" + hz, "idle_20_" + hz)) / 180, 3)
                                             for hz in ("100hz", "1khz")},
            "us_running_thread": {"sampler": round(running, 2), "handler": round(handler, 2), "all": round(running + handler, 2),
                                  "of_it_interrupting_another_cpu": round(statistics.median(signals), 2)},
            "idle_200_of_20": round(statistics.median(ratios), 3), "idle_200_of_20_all": [round(r, 2) for r in ratios]}


# --- peers --------------------------------------------------------------------------------------------------------

JOBS = {  # name: threads, frames of an idle one, what the busy one does; see jobs/peers_job.py
    "python_1": (1, 0, "python"),
    "python_10_shallow": (10, 3, "python"),
    "python_10_deep": (10, 20, "python"),
    "python_160_shallow": (160, 3, "python"),
    "python_160_deep": (160, 20, "python"),
    "torch_1": (1, 0, "torch"),
    "torch_10_shallow": (10, 3, "torch"),
    "torch_10_deep": (10, 20, "torch"),
    "torch_160_shallow": (160, 3, "torch"),
    "torch_160_deep": (160, 20, "torch"),
}
OURS = {  # name: mode, budget, rate
    "exact": ("exact", WIDE_PCT, HZ),
    "exact_250": ("exact", WIDE_PCT, 250),
    "gentle": ("gentle", WIDE_PCT, HZ),
    "as_shipped": ("exact", None, HZ),
}
# name: program, its arguments, how it says at its end how many samples it took, whether those are of each thread
PEERS = {
    "austin": ("austin", "-i 10ms -x {seconds} -o {out} -p {pid}", r"Error rate\D*\d+/(\d+)", True),
    "austin 1ms": ("austin", "-i 1ms -x {seconds} -o {out} -p {pid}", r"Error rate\D*\d+/(\d+)", True),
    "py-spy": ("py-spy", "record -r {hz} -d {seconds} -f raw -o {out} -p {pid}", r"Samples: (\d+)", False),
    "py-spy nonblocking": ("py-spy", "record --nonblocking -r {hz} -d {seconds} -f raw -o {out} -p {pid}", r"Samples: (\d+)", False),
    "profiling.sampling": (PYTHON, "-m profiling.sampling attach -a -r {hz} -d {seconds} --collapsed -o {out} {pid}",
                           r"Captured (\d+) sample", False),
    "profiling.sampling blocking": (PYTHON, "-m profiling.sampling attach --blocking -a -r {hz} -d {seconds} --collapsed -o {out} {pid}",
                                    r"Captured (\d+) sample", False),
}
COLOURS = re.compile("\x1b\\[[0-9;]*m")


def find_peers(args):
    """{name: (path, version)} of those that start here."""
    places = {name: PEERS[name][0] for name in PEERS}
    for text in args.peer:
        name, _, path = text.partition("=")
        if name.partition(" ")[0] not in PEERS or not path:
            raise SystemExit(f"sampler: --peer is NAME=PATH, and NAME begins with one of {', '.join(PEERS)}")
        places.update(dict.fromkeys([name, *(row for row in PEERS if row.startswith(f"{name} "))], path))
    found = {}
    for name, program in places.items():
        question = ["--version"]
        if program == PYTHON:
            program, question = args.python, ["-c", "import profiling.sampling, sys; print(sys.version)"]
        elif "/" not in program:
            own = os.path.join(args.build, "bench-venv", "bin", program)
            program = own if os.path.exists(own) else shutil.which(program)
        done = program and subprocess.run([program, *question], capture_output=True, text=True)
        if done and done.returncode == 0:
            found[name] = (program, done.stdout.split("\n")[0])
    return found


def finish(process):
    """A tool that ends by itself; one that does not is asked to."""
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def edge(args, pid):
    """What the agent has counted, as soon as it has counted a batch (one a second), and when that was."""
    def read():
        s = status_of(args.build, pid)
        return s["samples"], s["exact"], s["torn"], s["samples"] * (s["us_per_sample"] or 0) / 1e6, s["exact"] * (s["us_per_signal"] or 0) / 1e6

    first, until = read(), time.monotonic() + 3
    while (now := read())[0] == first[0] and time.monotonic() < until:
        time.sleep(0.05)
    return now, time.monotonic()


def run_ours(args, job, threads, seconds, mode, budget_pct=WIDE_PCT, hz=HZ):
    """Agent, client and handlers in percent of a core, and the agent's own figures. The rate kept is that of `threads` Python threads; None: as the
    agent reports it."""
    process = client(args.build, job.pid, seconds + LEAD_S + 3, mode, budget_pct, hz)
    time.sleep(LEAD_S)
    before, counted = edge(args, job.pid)
    agent, own, started = procs.agent_cpu(job.pid), procs.all_cpu(process.pid), time.monotonic()
    time.sleep(seconds)
    agent, own, elapsed = procs.agent_cpu(job.pid) - agent, procs.all_cpu(process.pid) - own, time.monotonic() - started
    after, counted_then = edge(args, job.pid)
    kept = None if threads else status_of(args.build, job.pid)["kept_hz"]
    finish(process)
    samples, exact, torn, said, handlers = (b - a for a, b in zip(before, after))
    span = counted_then - counted
    agent_pct, client_pct, handlers_pct = 100 * agent / elapsed, 100 * own / elapsed, 100 * handlers / span
    return {"cost_pct": agent_pct + client_pct + handlers_pct, "agent_pct": agent_pct, "client_pct": client_pct, "handlers_pct": handlers_pct,
            "kept_hz": samples / span / threads if threads else kept, "us_per_sample": 1e6 * said / samples if samples else None,
            "us_per_sample_measured": 1e4 * (agent_pct + handlers_pct) * span / samples if samples else None,
            "exact": exact, "torn": torn, "us_per_signal": 1e6 * handlers / exact if exact else None}


def busy_thread(pid):
    """The thread that uses the CPU."""
    first = {tid: procs.schedstat(pid, tid)[0] for tid in procs.threads(pid)}
    time.sleep(0.3)
    return max(first, key=lambda tid: procs.schedstat(pid, tid)[0] - first[tid])


def run_peer(name, path, job, busy, threads, seconds):
    """Its CPU time, and the time in which the thread that never waits neither ran nor waited for a CPU. None: it failed."""
    _, arguments, count, of_each = PEERS[name if name in PEERS else name.partition(" ")[0]]
    lasts = int(seconds + 3)
    with tempfile.TemporaryDirectory() as scratch, open(os.path.join(scratch, "said"), "w+", encoding="utf-8", errors="replace") as said:
        command = [path, *arguments.format(hz=HZ, seconds=lasts, out=os.path.join(scratch, "out"), pid=job.pid).split(" ")]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        time.sleep(LEAD_S)
        ran, waited, _ = procs.schedstat(job.pid, busy)
        own, started = procs.all_cpu(process.pid), time.monotonic()
        time.sleep(seconds)
        ran_then, waited_then, _ = procs.schedstat(job.pid, busy)
        own, elapsed = procs.all_cpu(process.pid) - own, time.monotonic() - started
        finish(process)
        said.seek(0)
        taken = re.search(count, COLOURS.sub("", said.read()))
    if process.returncode != 0 and not taken:  # austin 4 ends with 254 at the end of its time
        return None
    stood = max(0.0, elapsed - (ran_then - ran) - (waited_then - waited))
    return {"cost_pct": 100 * (own + stood) / elapsed, "own_pct": 100 * own / elapsed, "stopped_pct": 100 * stood / elapsed,
            "kept_hz": int(taken[1]) / lasts / (threads if of_each else 1) if taken else None}


def one_job(args, job, peers, threads):
    """Rounds of all ways to sample one job, the order of each drawn."""
    dice, busy, seconds = random.Random(7), busy_thread(job.pid), max(1, int(args.seconds))
    ways = chosen([*OURS, *peers], args.ways)
    rounds = {name: [] for name in ways}
    run_ours(args, job, threads, 1, "exact")  # every code object is seen for the first time
    for _ in range(args.rounds):
        for name in dice.sample(ways, len(ways)):
            rounds[name].append(run_ours(args, job, threads, seconds, *OURS[name]) if name in OURS
                                else run_peer(name, peers[name][0], job, busy, threads, seconds))
    out = {name: median_of(rows) for name in ways if (rows := [row for row in rounds[name] if row])}
    for name in peers:
        for ours in ("exact", "exact_250", "as_shipped"):
            pairs = [(a, b) for a, b in zip(rounds.get(ours, []), rounds.get(name, [])) if b and b["cost_pct"]]
            if pairs:
                ratios = [a["cost_pct"] / b["cost_pct"] for a, b in pairs]
                out[f"{ours}_of_{name}"] = {"median": round(statistics.median(ratios), 3), "interval_95": windows.interval(ratios),
                                            "all": [round(r, 3) for r in ratios]}
    out["rate_kept"] = {ours: round(out[ours]["kept_hz"] / OURS[ours][2], 3) for ours in OURS if ours in out}
    if "us_per_sample" in out.get("exact", {}):
        out["said_of_measured"] = round(out["exact"]["us_per_sample"] / out["exact"]["us_per_sample_measured"], 3)
    return out


def part_peers(args):
    peers = find_peers(args)
    out = {"versions": {name: version for name, (_, version) in peers.items()}, "rounds": args.rounds, "jobs": {}}
    for name in chosen(JOBS, args.jobs):
        threads, frames, work = JOBS[name]
        python = args.torch_python if work == "torch" else args.python
        if work == "torch" and not has_torch(python):
            continue
        job = Job(python, job_path("peers_job.py"), str(threads), str(frames), work)
        try:
            inject(args.build, job.pid)
            out["jobs"][name] = one_job(args, job, peers, threads)
        finally:
            job.end()
    return out


# --- wakeups ------------------------------------------------------------------------------------------------------

def wakes_of(pids, seconds):
    """{thread: wake-ups a second, CPU time of each in us, percent of a core} within `seconds`."""
    def read():
        return {(pid, tid): (name, procs.switches(pid, tid), procs.schedstat(pid, tid)[0])
                for pid in pids for tid, name in procs.threads(pid).items()}

    before, started = read(), time.monotonic()
    time.sleep(seconds)
    after, elapsed = read(), time.monotonic() - started
    rows = {}
    for key, (name, switches, cpu) in after.items():
        _, switches_before, cpu_before = before.get(key, (name, 0, 0.0))
        wakes, spent = switches - switches_before, cpu - cpu_before
        row = rows.setdefault(name, {"per_s": 0.0, "us": None, "cpu_pct": 0.0})  # threads of one name together
        row["per_s"] += wakes / elapsed
        row["cpu_pct"] += 100 * spent / elapsed
    for row in rows.values():
        row["us"] = round(1e4 * row["cpu_pct"] / row["per_s"], 1) if row["per_s"] else None
        row["per_s"], row["cpu_pct"] = round(row["per_s"], 2), round(row["cpu_pct"], 4)
    return {name: row for name, row in sorted(rows.items()) if row["per_s"]}


def part_wakeups(args):
    """The job's own threads sleep all the while: what wakes up is ours."""
    job = Job(args.python, job_path("sampler_job.py"), "9", "0")
    seconds = 5 * args.seconds
    try:
        inject(args.build, job.pid)
        time.sleep(8 * args.seconds)  # what the attach itself set off is over; the sampler's sleep grows for 26 s
        out = {"nobody": wakes_of([job.pid], seconds)}
        screen = pseudo_terminal.Screen(os.path.join(args.build, "probing-top"), str(job.pid))
        screen.drain(5)
        reader = threading.Thread(target=screen.drain, args=(seconds + 1,))
        reader.start()
        out["probing_top"] = wakes_of([job.pid, screen.pid], seconds)
        reader.join()
        screen.end()
        for state in ("nobody", "probing_top"):
            rows = out[state].values()
            out[state + "_all"] = {key: round(sum(row[key] for row in rows), 4) for key in ("per_s", "cpu_pct")}
        return out
    finally:
        job.end()


# --- idle ---------------------------------------------------------------------------------------------------------

def part_idle(args):
    jobs = {n: Job(args.python, job_path("sampler_job.py"), str(n), "0") for n in (20, 200)}
    rounds = {n: [] for n in jobs}
    for n, job in jobs.items():
        inject(args.build, job.pid)
        run_ours(args, job, n + 1, 1, "exact")
    for _ in range(args.rounds):
        for n, job in jobs.items():
            row = run_ours(args, job, n + 1, max(3, int(args.seconds)), "exact")
            row["us_per_tick"] = 1e4 * row["agent_pct"] / row["kept_hz"]
            row["us_per_tick_with_client"] = 1e4 * row["cost_pct"] / row["kept_hz"]
            rounds[n].append(row)
    for job in jobs.values():
        job.end()
    out = {str(n): median_of(r) for n, r in rounds.items()}
    for key, name in (("us_per_tick", "agent_200_of_20"), ("us_per_tick_with_client", "all_200_of_20")):
        out[name] = round(statistics.median(b[key] / a[key] for a, b in zip(rounds[20], rounds[200])), 3)
    return out


# --- windows with and without sampling ----------------------------------------------------------------------------


def sampled_window(sampling, on, measure):
    """measure() while the job is sampled, or while it is not."""
    sampling.set(on)
    time.sleep(SETTLE_S)
    result = measure()
    sampling.set(False)
    return result


def both_ways(args, pid, sampling, measure, keys):
    """The windows with job and agent wherever the kernel puts them, and each on a CPU of its own."""
    cpus = sorted(os.sched_getaffinity(0))
    out = {"unpinned": windows.alternate(args.pairs, lambda on: sampled_window(sampling, on, measure), keys)}
    if len(cpus) > 1:
        procs.pin(pid, {cpus[0]}, {cpus[1]})
        os.sched_setaffinity(0, {cpus[1]})
        out["pinned"] = windows.alternate(args.pairs, lambda on: sampled_window(sampling, on, measure), keys)
        os.sched_setaffinity(0, set(cpus))
    return out


class Steps:
    """The training job's counter of steps, and moments at which it changes."""

    def __init__(self, path, pid):
        self.path, self.pid = path, pid

    def read(self):
        for _ in range(100):
            try:
                with open(self.path, encoding="utf-8") as f:
                    return int(f.read())
            except (OSError, ValueError):
                time.sleep(0.01)
        return 0

    def edge(self):
        """(steps, time, CPU seconds of the job) as soon as a step ends"""
        before = self.read()
        while (now := self.read()) == before:
            time.sleep(0.0005)
        return now, time.monotonic(), procs.job_cpu(self.pid)

    def window(self, seconds):
        steps, at, cpu = self.edge()
        time.sleep(seconds)
        steps_then, at_then, cpu_then = self.edge()
        return {"wall_ms_per_step": 1e3 * (at_then - at) / (steps_then - steps),
                "cpu_ms_per_step": 1e3 * (cpu_then - cpu) / (steps_then - steps)}


@contextlib.contextmanager
def training(args, *options):
    """examples/train.py after its first steps, and those that it counts."""
    with tempfile.TemporaryDirectory() as scratch:
        counter = os.path.join(scratch, "steps")
        job = subprocess.Popen([args.torch_python, os.path.join(ROOT, "examples", "train.py"), "--counter", counter, *options],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            steps, deadline = Steps(counter, job.pid), time.monotonic() + 120
            while steps.read() < 20 and time.monotonic() < deadline:
                time.sleep(0.1)
            yield job, steps
        finally:
            job.kill()
            job.wait()


def part_training(args):
    if not has_torch(args.torch_python):
        return None
    with training(args) as (job, _):
        inject(args.build, job.pid)
        run_ours(args, job, None, 12, "exact", None)  # code is seen for the first time
        rounds = [run_ours(args, job, None, args.seconds, "exact", None) for _ in range(args.rounds)]
        return {**median_of(rounds), "all": [round(row["cost_pct"], 3) for row in rounds],
                "interval_95": windows.interval([row["cost_pct"] for row in rounds])}


def part_train(args):
    if not has_torch(args.torch_python):
        return None
    with training(args, "--eval-every", "1000000", "--workers", "0") as (job, steps):
        sampling = switch.Switch(args.build, job.pid, HZ)
        plain = steps.window(args.window)
        sampled_window(sampling, True, lambda: steps.window(3))  # code is seen for the first time
        keys = ("wall_ms_per_step", "cpu_ms_per_step")
        return {"plain": {k: round(v, 3) for k, v in plain.items()}, "slower_pct": both_ways(args, job.pid, sampling, lambda: steps.window(args.window), keys)}


def many_window(job, seconds):
    loops, cpu, pieces, native_cpu = job.mark()
    at = time.monotonic()
    loops_then, pieces_then, deadline = loops, pieces, at + 60
    while (loops_then == loops or pieces_then == pieces) and time.monotonic() < deadline:  # a machine that is too busy gives a window more time
        time.sleep(seconds)
        loops_then, cpu_then, pieces_then, native_then = job.mark()
    wall = time.monotonic() - at
    return {"python_wall": wall / (loops_then - loops), "python_cpu": (cpu_then - cpu) / (loops_then - loops),
            "native_wall": wall / (pieces_then - pieces), "native_cpu": (native_then - native_cpu) / (pieces_then - pieces)}


def part_many(args):
    job = Job(args.python, job_path("many_job.py"), known_library(args), "80", "80")
    try:
        sampling = switch.Switch(args.build, job.pid, HZ)
        sampled_window(sampling, True, lambda: many_window(job, 3))
        agent, started = procs.agent_cpu(job.pid), time.monotonic()
        sampled_window(sampling, True, lambda: many_window(job, 3))
        cost = 100 * (procs.agent_cpu(job.pid) - agent) / (time.monotonic() - started)
        keys = ("python_wall", "python_cpu", "native_wall", "native_cpu")
        return {"agent_pct": round(cost, 3), "threads": len(procs.threads(job.pid)),
                "slower_pct": windows.alternate(args.pairs, lambda on: sampled_window(sampling, on, lambda: many_window(job, args.window)), keys)}
    finally:
        job.end()


# --- budgets ------------------------------------------------------------------------------------------------------

def look_up(out, *path):
    for key in path:
        out = out.get(key) if isinstance(out, dict) else None
    return out


def verdict(value, spread, budget, rate_kept=1):
    """kept, missed, or undecided: the figure's interval has the budget within it, or the machine was too busy for the rate asked for."""
    if value is None:
        return None
    if (spread and spread[0] <= budget < spread[1]) or rate_kept < RATE_KEPT:
        return "undecided"
    return "kept" if value <= budget else "missed"


BUDGETS = (  # name, budget, where the figure is
    ("ten threads, one busy, idle stacks of 3 frames: cost of austin's", 0.1, ("peers", "jobs", "python_10_shallow", "exact_of_austin", "median")),
    ("ten threads, one busy, idle stacks of 20 frames: cost of austin's", 0.1, ("peers", "jobs", "python_10_deep", "exact_of_austin", "median")),
    ("ten threads, one busy, idle stacks of 3 frames: cost of profiling.sampling's", 0.1,
     ("peers", "jobs", "python_10_shallow", "exact_of_profiling.sampling", "median")),
    ("ten threads, one busy, idle stacks of 20 frames: cost of profiling.sampling's", 0.1,
     ("peers", "jobs", "python_10_deep", "exact_of_profiling.sampling", "median")),
    ("torch, one thread, as shipped: percent of a core", 0.3, ("peers", "jobs", "torch_1", "as_shipped", "cost_pct")),
    ("training example, as shipped: percent of a core", 0.3, ("training", "cost_pct")),
    ("idle job, nobody connected: the agent, percent of a core", 0.03, ("wakeups", "nobody_all", "cpu_pct")),
    ("idle thread, us a tick at 100 Hz", 0.5, ("tick", "us_idle_thread", "100hz")),
    ("running thread-sample, us, handler and signal included", 6, ("tick", "us_running_thread", "all")),
    ("200 idle threads of 20: a tick", 2, ("tick", "idle_200_of_20")),
    ("200 idle threads of 20: the agent", 2, ("idle", "agent_200_of_20")),
    ("200 idle threads of 20: agent and client", 2, ("idle", "all_200_of_20")),
    ("training example slower, %, CPU a step", 0.5, ("train", "slower_pct", "unpinned", "cpu_ms_per_step", "median")),
    ("training example slower, %, time a step", 0.5, ("train", "slower_pct", "unpinned", "wall_ms_per_step", "median")),
    ("training example slower, %, pinned, CPU a step", 0.5, ("train", "slower_pct", "pinned", "cpu_ms_per_step", "median")),
    ("training example slower, %, pinned, time a step", 0.5, ("train", "slower_pct", "pinned", "wall_ms_per_step", "median")),
    ("160 threads slower, %, Python's CPU a loop", 1, ("many", "slower_pct", "python_cpu", "median")),
    ("160 threads slower, %, Python's time a loop", 1, ("many", "slower_pct", "python_wall", "median")),
    ("160 threads slower, %, native CPU a piece", 1, ("many", "slower_pct", "native_cpu", "median")),
    ("160 threads slower, %, native time a piece", 1, ("many", "slower_pct", "native_wall", "median")),
)


def verdicts(out):
    rows = []
    for what, budget, path in BUDGETS:
        value, around = look_up(out, *path), look_up(out, *path[:-1])
        spread = around.get("interval_95") if isinstance(around, dict) else None
        kept = look_up(out, *path[:3], "rate_kept", "exact") if path[0] == "peers" else 1
        rows.append({"what": what, "budget": budget, "value": value, "interval_95": spread, "verdict": verdict(value, spread, budget, kept or 0)})
    return rows


# --- tables -------------------------------------------------------------------------------------------------------

def words_of(name):
    threads, frames, work = JOBS[name]
    idle = f", {threads - 1} idle with {frames} frames" if threads > 1 else ""
    return f"{work}, {threads} thread{'s' if threads > 1 else ''}{idle}"


def cell(row, key="cost_pct", digits=2):
    return "" if row is None or row.get(key) is None else f"{row[key]:.{digits}f}"


def ratio_cell(ratio):
    if not ratio:
        return ""
    spread = ratio["interval_95"]
    return f"{ratio['median']:.2f}" + (f" ({spread[0]:.2f} to {spread[1]:.2f})" if spread else "")


def print_table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def tables(out):
    """Cost in percent of a core, and ours as a part of each other sampler's with the interval of 95 %."""
    peers = out.get("peers")
    if peers:
        present = [name for name in peers["versions"] if any(name in job for job in peers["jobs"].values())]
        heads = ["job", "ours", "kept Hz", "as shipped", "kept Hz", "at 250 Hz", "kept Hz"]
        for name in present:
            heads += [name, "kept Hz", f"ours of {name}", f"at 250 Hz of {name}"]
        rows = []
        for name, job in peers["jobs"].items():
            row = [words_of(name)]
            for ours in ("exact", "as_shipped", "exact_250"):
                row += [cell(job.get(ours)), cell(job.get(ours), "kept_hz", 0)]
            for peer in present:
                row += [cell(job.get(peer)), cell(job.get(peer), "kept_hz", 0), ratio_cell(job.get(f"exact_of_{peer}")), ratio_cell(job.get(f"exact_250_of_{peer}"))]
            rows.append(row)
        print_table(heads, rows)
    wakeups = out.get("wakeups")
    if wakeups:
        names = dict.fromkeys([*wakeups["nobody"], *wakeups["probing_top"]])
        rows = [[name] + [cell(wakeups[state].get(name), key, digits) for state in ("nobody", "probing_top")
                          for key, digits in (("per_s", 1), ("us", 0), ("cpu_pct", 3))] for name in names]
        print_table(["thread", "nobody connected: wake-ups a second", "us each", "% of a core",
                     "with probing-top: wake-ups a second", "us each", "% of a core"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--torch-python", default=None, help="for the training example (default: the same)")
    parser.add_argument("--seconds", type=float, default=4, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=float, default=1, help="seconds of a window with or without sampling")
    parser.add_argument("--pairs", type=int, default=40, help="of such windows")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--jobs", default="*", help="of peers: names or shell patterns")
    parser.add_argument("--ways", default="*", help="of peers: ours and other samplers, names or shell patterns")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="another sampler, or another version of one")
    parser.add_argument("--table", metavar="FILE", help="print the tables of what was measured before")
    args = parser.parse_args()
    if args.table:
        with open(args.table, encoding="utf-8") as document:
            tables(json.load(document))
        return
    args.torch_python = args.torch_python or args.python
    wanted = args.only.split(",")
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        raise SystemExit(f"sampler: no part is called {unknown[0]}; there are {', '.join(PARTS)}")
    out = {"cpus": os.cpu_count(), "load_before": round(os.getloadavg()[0], 2), "python": args.python.rpartition("/")[2]}
    for name in PARTS:
        if name in wanted:
            out[name] = globals()["part_" + name](args)
    out["load_after"] = round(os.getloadavg()[0], 2)
    out["verdicts"] = verdicts(out)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
