#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the screens of probing-top cost, on a pseudo terminal, against DESIGN's budgets, and htop beside it. Prints one JSON object.

usage: bench/tui.py [--build DIR] [--python PATH] [--threads N] [--depth N] [--seconds S] [--keys N] [--starts N]

first_paint_ms   from the start of the program to its first byte on the terminal, on targets that have no agent yet; first_data_ms until
                 the Overview, which comes first, has where its main thread is: with the agent put in
key_to_paint_ms  from a key (down, up) until the program writes, with the view frozen so that nothing else makes it write; of Threads, as
                 the figures without a screen's name
key_to_paint_live_ms  the same of a key that opens or closes the help, while data come four times a second; until its text is there
cpu_pct          of one core with four snapshots a second, all threads of probing-top, by the kernel's account
private_mb, rss_mb   resident memory, without what it shares with other programs (libraries, its own code), and in all
switches_paused  voluntary context switches a second while the view is frozen: the agent is heard once in five seconds then
wakeups_paused   the same with an agent that has nothing to say: what the program wakes up for by itself
flame, top, timeline   the same with that screen open, for which samples come in all the time, of all threads; the timeline at the rate
                 that it moves at most
timeline_4hz     the same screen at four snapshots a second
overview, steps, tensors, modules, loader   the same with that screen open, which ask the tables every one to five seconds, on the training
                 example (null: there is no torch)
flame_graph      what BUILD/bench/flame says: a million samples, updates of a thousand, after ten million
htop             the same of htop (where there is one), over this machine's processes

--seconds 6 takes about five minutes. Figures are of a quiet machine; `load` says whether it was.
"""

import argparse
import json
import math
import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
sys.path.insert(0, os.path.join(ROOT, "tests", "functional"))
import procs  # noqa: E402
from pseudo_terminal import COLUMNS, ROWS, Screen  # noqa: E402
from fake_agent import FakeAgent, observe  # noqa: E402

FIRST_DATA = b"main screen_job.py:"  # on the Overview, where the main thread is
TRAINING_SCREENS = ("overview", "steps", "tensors", "modules", "loader")


def keys_of(build):
    """{name of an action: its first key}, as the program lists them: the screens', freeze and so on."""
    listed = subprocess.run([f"{build}/probing-top", "--list-keys"], capture_output=True, text=True, check=True).stdout
    keys = {}
    for line in listed.splitlines():
        _, key, action = line.split()[:3]
        if len(key) == 1:
            keys.setdefault(action, key)
    return keys


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        kb = {line.split(":")[0]: int(line.split()[1]) for line in f if line.split()[-1] == "kB"}
    return round((kb["Private_Clean"] + kb["Private_Dirty"]) / 1024, 2), round(kb["Rss"] / 1024, 2)


def summary(times):
    times = sorted(times)
    return {"median": round(statistics.median(times), 2), "p99": round(times[math.ceil(0.99 * (len(times) - 1))], 2), "worst": round(times[-1], 2)}


def key_times(screen, count, keys="jk"):
    times = []
    screen.type(keys[1])  # away from the last row, where the first key would do nothing
    screen.read(0.3)
    for i in range(count):
        screen.read(0.03)
        started = time.monotonic()
        screen.type(keys[i % 2])
        if not select.select([screen.fd], [], [], 5)[0]:
            raise SystemExit("tui: a key had no effect for five seconds")
        times.append(1e3 * (time.monotonic() - started))
    return summary(times)


def live_key_times(screen, count):
    times = []
    for _ in range(count):
        started = time.monotonic()
        screen.type("?")
        screen.wait_for(b"all keys")
        times.append(1e3 * (time.monotonic() - started))
        screen.type("q")
        screen.drain(0.05)
    return summary(times)


def cpu_over(screen, seconds):
    return cpu_and_pictures(screen, seconds)["cpu_pct"]


def cpu_and_pictures(screen, seconds):
    before, started = procs.all_cpu(screen.pid), time.monotonic()
    pictures = screen.drain(seconds)
    elapsed, cpu = time.monotonic() - started, procs.all_cpu(screen.pid) - before
    return {"cpu_pct": round(100 * cpu / elapsed, 3), "pictures_per_s": round(pictures / elapsed, 1),
            "ms_per_picture": round(1e3 * cpu / pictures, 2) if pictures else None}


def measure(args, pid, keys, delay="250ms", *options, live=False):
    """With the screen open that the keys open, and do what else they do."""
    screen = Screen(f"{args.build}/probing-top", "-d", delay, *options, str(pid))
    screen.wait_for(b"CONNECTED")
    screen.drain(1)
    screen.type(keys)
    screen.drain(4)
    out = {"delay": delay, **cpu_and_pictures(screen, args.seconds)}
    out["private_mb"], out["rss_mb"] = memory_mb(screen.pid)
    if live:
        out["key_to_paint_live_ms"] = live_key_times(screen, max(20, args.keys // 5))
    screen.type(args.key["freeze"])
    screen.drain(2)
    before, cpu, started = procs.all_switches(screen.pid), procs.all_cpu(screen.pid), time.monotonic()
    screen.drain(args.seconds)
    elapsed = time.monotonic() - started
    out["switches_paused"] = round((procs.all_switches(screen.pid) - before) / elapsed, 2)
    out["cpu_pct_paused"] = round(100 * (procs.all_cpu(screen.pid) - cpu) / elapsed, 3)
    out["key_to_paint_ms"] = key_times(screen, args.keys)
    screen.end()
    return out


def job_of(args, threads, depth):
    job = subprocess.Popen([args.python, os.path.join(ROOT, "bench", "jobs", "screen_job.py"), str(threads), str(depth)],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    job.stdout.readline()
    return job


def end_job(job):
    job.kill()
    job.wait()


def starts(args):
    """Until something, and until the job's main thread, is on the screen; each time with a job that has no agent."""
    paint, data = [], []
    for _ in range(args.starts):
        job = job_of(args, 4, 10)
        try:
            screen = Screen(f"{args.build}/probing-top", str(job.pid))
            if not select.select([screen.fd], [], [], 10)[0]:
                raise SystemExit("tui: nothing was painted for ten seconds")
            paint.append(1e3 * (time.monotonic() - screen.started))
            screen.wait_for(FIRST_DATA)
            data.append(1e3 * (time.monotonic() - screen.started))
            screen.end()
        finally:
            end_job(job)
    return {"first_paint_ms": summary(paint), "first_data_ms": summary(data)}


def wakeups(args, pid, keys):
    """Of a frozen screen whose agent is one of the tests' own, with a snapshot of the job, and then silent."""
    done = subprocess.run([f"{args.build}/probing", str(pid), "inject", "--json"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder, FakeAgent(f"{folder}/s", *observe(json.loads(done.stdout)["endpoint"])) as agent:
        agent.rate = 4 * len(agent.notification)
        screen = Screen(f"{args.build}/probing-top", agent.target)
        screen.wait_for(b"CONNECTED")
        screen.drain(1)
        screen.type(keys)
        screen.drain(2)
        screen.type(args.key["freeze"])
        screen.drain(1)
        agent.rate = 0
        screen.drain(2)
        before, started = procs.all_switches(screen.pid), time.monotonic()
        screen.drain(args.seconds)
        count = round((procs.all_switches(screen.pid) - before) / (time.monotonic() - started), 2)
        screen.end()
        return count


def measure_htop(args):
    path = shutil.which("htop")
    if not path:
        return None
    screen = Screen(path, "-d", "3")
    screen.drain(2)
    out = {"hz": 3.3, "processes": sum(name.isdigit() for name in os.listdir("/proc")), "cpu_pct": cpu_over(screen, args.seconds)}
    out["private_mb"], out["rss_mb"] = memory_mb(screen.pid)
    screen.type("Z")  # it has a pause of its own
    screen.drain(1)
    before, started = procs.all_switches(screen.pid), time.monotonic()
    screen.drain(args.seconds)
    out["switches_paused"] = round((procs.all_switches(screen.pid) - before) / (time.monotonic() - started), 2)
    out["key_to_paint_ms"] = key_times(screen, max(20, args.keys // 4), ("\x1b[B", "\x1b[A"))
    screen.end()
    return out


def flame_graph(args):
    program = os.path.join(args.build, "bench", "flame")
    if not os.access(program, os.X_OK):
        return None
    return json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


def measure_training(args):
    """Screens about training, on a job that trains."""
    out = dict.fromkeys(TRAINING_SCREENS)
    if subprocess.run([args.torch_python, "-c", "import torch"], capture_output=True, check=False).returncode:
        return out
    job = subprocess.Popen([args.torch_python, os.path.join(ROOT, "examples", "train.py")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1"))
    try:
        while "loss" not in job.stdout.readline():
            pass
        for name in TRAINING_SCREENS:
            out[name] = measure(args, job.pid, args.key[name])
            out[name]["wakeups_paused"] = wakeups(args, job.pid, args.key[name])
    finally:
        end_job(job)
    return out


def verdicts(out):
    rows = [("first paint after the start, ms, median", 300, out["first_paint_ms"]["median"])]
    for name in ("threads", "flame", "top", "timeline", "timeline_4hz", *TRAINING_SCREENS):
        part = out if name == "threads" else out[name]
        if not part:
            continue
        rows.append((f"{name}: key to paint, ms, 99th percentile", 16, part["key_to_paint_ms"]["p99"]))
        if name != "timeline":
            rows.append((f"{name}: % of a core at 4 Hz", 1, part["cpu_pct"]))
        rows.append((f"{name}: MB resident", 20, part["rss_mb"]))
        if "wakeups_paused" in part:
            rows.append((f"{name}: wake-ups a second of its own when paused", 0, part["wakeups_paused"]))
    if out["flame_graph"]:
        rows.append(("an update of 1,000 samples after 10 million, ms, 99th percentile", 16,
                     out["flame_graph"]["after_10m"]["update_1000_ms_p99"]))
    return [{"what": what, "budget": budget, "value": value, "kept": value <= budget} for what, budget, value in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--torch-python", default=os.environ.get("PROBING_TEST_TORCH_PYTHON", sys.executable), help="an interpreter with torch")
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--depth", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--starts", type=int, default=5)
    args = parser.parse_args()
    args.key = keys_of(args.build)
    out = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 2), "threads": args.threads, "depth": args.depth, **starts(args)}
    job = job_of(args, args.threads, args.depth)
    try:
        keys = {name: args.key[name] for name in ("threads", "flame", "top", "timeline")}
        for name in ("flame", "top"):
            keys[name] += args.key["on-cpu"]  # all time, of those that wait too
        keys["timeline_4hz"] = keys["timeline"]
        out.update(measure(args, job.pid, keys["threads"], live=True))
        out["wakeups_paused"] = wakeups(args, job.pid, keys["threads"])
        # 30 pictures a second are the most there are: snapshots and samples come as often, if the agent may spend so much.
        out["timeline"] = measure(args, job.pid, keys["timeline"], "33ms", "--budget", "50")
        for name in ("flame", "top", "timeline_4hz"):
            out[name] = measure(args, job.pid, keys[name])
            out[name]["wakeups_paused"] = wakeups(args, job.pid, keys[name])
    finally:
        end_job(job)
    out.update(measure_training(args))
    out["htop"] = measure_htop(args)
    out["flame_graph"] = flame_graph(args)
    out["verdicts"] = verdicts(out)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
