#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a training job that it is looked at, tier by tier. Prints one JSON object.

usage: bench/training.py [--build DIR] [--pairs N] [--seconds S] [--python PYTHON] [--parts PART,...]

T1, always on, by turning probing.steps on and off in turn in one run of a job, with CPU time of the job's own thread:
  operation  what telling one operation (an optimizer step, a fetched batch, a record_function) takes, ns
  others     what an operation costs more that is not told, ns
  small      a training step of a small model, in which telling weighs most: percent, with and without the looks at backward passes
  phases     what a node of a backward pass takes more while forward and backward of every step are known, ns: of an operation, and of a parameter
             (BACKWARD_WATCH_NODE_NS of the agent, by which it judges whether that may always be done)
  train      examples/train.py: operations a step and time of a step, and by that what telling, with the look at variables (losses from
             memory) that the agent itself has measured (CPU time of the thread), takes of it, percent
T2, modules are traced:
  traced     examples/train.py, by turning probing.torch_profiling on and off in turn in one run: by how many percent a step takes longer
             by the clock and by CPU time of the thread that trains (less of what others do on the machine is in that, but not the time
             for which the GIL was waited for), beside what the agent says of it (status); the share of steps that were looked into, and by how much
             each of them is longer than those just before it, which drifts less than windows do (what hooks cost outside of these steps is not in it)
T3, on request:
  look       one refresh of python.modules and python.tensors in a job with 10^4 tensors and 10^6 objects: how long it takes, how long the
             GIL is ours for it, by how much the steps meanwhile are longer; and the longest that we ever had the GIL at once
  hunt       hunts for the first NaN in examples/train.py: the longest that we had the GIL at once

`verdicts` sets these against their budgets: T1 0.1 %, T2 0.5 %, 2 ms for the GIL. The job's Python must have torch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
sys.path.insert(1, os.path.join(ROOT, "tests", "functional"))
import agent_wire  # noqa: E402
import procs  # noqa: E402
import windows  # noqa: E402

BUDGET_PCT = 0.1
TRACE_BUDGET_PCT = 0.5
HOLD_BUDGET_US = 2000
TENSORS, OBJECTS = 10_000, 1_000_000


def probing(build, *args):
    done = subprocess.run([os.path.join(build, "probing"), *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"training: probing {' '.join(map(str, args))}: {done.stderr.strip()}")
    return done.stdout


def status(build, pid):
    return json.loads(probing(build, pid, "status", "--json"))


def tell(build, pid, on):
    """Turned on or off, and so it is: the agent looks once a second."""
    probing(build, pid, "config", f"steps={'on' if on else 'off'}")
    until = time.monotonic() + 30
    while bool(status(build, pid)["hooks"]) != on:
        if time.monotonic() > until:
            raise SystemExit("training: torch is not told to tell" if on else "training: torch goes on telling")
        time.sleep(0.05)


class Asked:
    """bench/jobs/torch_job.py, with an agent."""

    def __init__(self, build, python):
        self.process = subprocess.Popen([python, os.path.join(ROOT, "bench", "jobs", "torch_job.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise SystemExit(f"training: {python} has no torch that works")
        probing(build, self.process.pid, "inject")

    def ask(self, what, n):
        self.process.stdin.write(f"{what} {n}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


# How often each is done at once: no more than the agent has room for until it looks again, which is what a job does.
COUNTS = {"record": 1000, "idle": 50000, "step": 300}
ROUNDS = 5
LOOK_S = 0.4  # the agent has looked by then


def ask_rounds(job):
    """CPU time of each, the median of a few rounds with the agent's looks between them."""
    seen = {name: [] for name in COUNTS}
    for _ in range(ROUNDS):
        for name, n in COUNTS.items():
            time.sleep(LOOK_S)
            seen[name].append(job.ask(name, n))
    return {name: statistics.median(values) for name, values in seen.items()}


def measure_asked(build, python, pairs):
    counts, says = COUNTS, []
    more = {name: [] for name in counts}
    with Asked(build, python) as job:
        for name, n in counts.items():
            job.ask(name, n)
        for pair in range(pairs):
            seen = {}
            for on in (True, False) if pair % 2 else (False, True):
                tell(build, job.process.pid, on)
                seen[on] = ask_rounds(job)
                if on:
                    says.append(status(build, job.process.pid)["hooks"][0])
            for name in counts:
                more[name].append((seen[True][name] - seen[False][name], seen[False][name]))
    return {"operation_ns": windows.summary([a for a, _ in more["record"]]), "others_ns": windows.summary([a for a, _ in more["idle"]]),
            "small_step_us": round(statistics.median(b for _, b in more["step"]) / 1e3, 1),
            "small_step_pct": windows.summary([a / b * 100 for a, b in more["step"]]), "agent_says_us": says[-1]["us_per_call"], "lost": says[-1]["lost"]}


class Phases:
    """Forward and backward of every step are known while it is there."""

    def __init__(self, build, job):
        self.build, self.job, self.pid, self.client = build, job, job.process.pid, None

    def turn(self, on):
        if self.client:
            self.client.connection.close()
        self.client = agent_wire.Client(status(self.build, self.pid)["endpoint"]) if on else None
        if on:
            self.client.call("arm", {"what": "phases", "steps": 0, "compiled": False})
        until = time.monotonic() + 30
        while status(self.build, self.pid)["steps"]["phases_on"] != on:
            if time.monotonic() > until:
                raise SystemExit("training: backward passes are not watched" if on else "training: backward passes go on being watched")
            self.job.ask("step", 300)  # what they cost is judged by the time in which there are some


NODES, PASSES = 2000, 30


def measure_phases(build, python, pairs):
    """The least of some passes: others on the machine only make them longer."""
    more = {"chain": [], "leaves": []}
    with Asked(build, python) as job:
        phases = Phases(build, job)
        for pair in range(pairs):
            seen = {}
            for on in (True, False) if pair % 2 else (False, True):
                phases.turn(on)
                seen[on] = {name: min(job.ask(name, NODES) for _ in range(PASSES)) for name in more}
            for name, values in more.items():
                values.append(seen[True][name] - seen[False][name])
        phases.turn(False)
    return {f"{name}_node_ns": windows.summary(values) for name, values in more.items()}


class Running:
    """A job that runs until it is left, with an agent; it is ready when it has printed `word`."""

    def __init__(self, build, word, *command):
        self.build, self.drain = build, None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while word not in (line := self.process.stdout.readline()):
            if not line:
                raise SystemExit(f"training: {command[1]} did not start")
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        probing(build, self.pid, "inject")
        tell(build, self.pid, True)

    def query(self, sql):
        return json.loads(probing(self.build, self.pid, "query", "--format", "json", "--limit", "0", sql))["rows"]

    def status(self):
        return status(self.build, self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.drain.wait()


def run_train(build, python):
    """Its steps are all alike: no evaluation is among them."""
    return Running(build, "step", python, os.path.join(ROOT, "examples", "train.py"), "--eval-every", "1000000000")


def measure_train(build, python, seconds, operation_ns):
    """How many operations a step has, and how long it takes: with what one costs that is what they take of it."""
    def variables(job):
        return next((hook for hook in job.status()["hooks"] if hook["name"] == "variables at Optimizer.step"), {"told": 0, "us_per_call": None})
    with run_train(build, python) as job:
        time.sleep(2)  # the first looks find out where things are
        before, began = variables(job), time.time()
        time.sleep(seconds)
        after, ended = variables(job), time.time()
        phases_pct = job.status()["steps"]["phases_pct"] or 0
        rows = job.query(f"""
            SELECT (SELECT count(*) FROM profiling_data WHERE timestamp > {began!r} AND timestamp <= {ended!r}) AS operations, count(*) AS steps,
                   avg(duration_ms) AS ms, count(loss) AS losses,
                   count(backward_ms) AS looked, avg(CASE WHEN backward_ms IS NOT NULL THEN duration_ms END) AS looked_ms
            FROM python.steps WHERE duration_ms IS NOT NULL AND timestamp > {began!r} AND timestamp <= {ended!r}""")[0]
    per_step, looks = rows["operations"] / rows["steps"], (after["told"] - before["told"]) / rows["steps"]
    phases_pct *= rows["looked"] / rows["steps"]  # what they take while backward passes are watched
    look_us = after["us_per_call"] or 0
    return {"steps": rows["steps"], "step_ms": round(rows["ms"], 3), "operations_per_step": round(per_step, 2),
            "looked_into": rows["looked"], "looked_ms": rows["looked_ms"], "with_loss": rows["losses"],
            "look_us": look_us, "looks_per_step": round(looks, 3), "phases_pct": round(phases_pct, 5),
            "told_pct": round((per_step * operation_ns + 1e3 * look_us * looks) / (rows["ms"] * 1e6) * 100 + phases_pct, 5)}


# ---- T2 ----

def lease(job):
    return next((lease for lease in job.status()["leases"] if lease["what"] == "trace"), None)


def trace(job, on):
    """Turned on or off, and so it is."""
    probing(job.build, job.pid, "config", f"torch_profiling={'on' if on else 'off'}")
    until = time.monotonic() + 60
    while (lease(job) is not None) != on:
        if time.monotonic() > until:
            raise SystemExit("training: modules are not traced" if on else "training: modules go on being traced")
        time.sleep(0.05)


def steps_between(job, begin, end):
    """Durations of steps in ms, without those for which the machine had no time (a look adds a few percent to a step, not half of it); and
    how many there were with those."""
    rows = job.query(f"SELECT duration_ms AS ms FROM python.steps WHERE timestamp > {begin!r} AND timestamp <= {end!r} AND duration_ms IS NOT NULL")
    middle = statistics.median(row["ms"] for row in rows)
    return [row["ms"] for row in rows if row["ms"] < 1.5 * middle], len(rows)


def excess_between(job, begin, end):
    """Of each step that was looked into, by how many ms it is longer than the median of the eight before it that were not; and the usual step."""
    where = f"WHERE timestamp > {begin!r} AND timestamp <= {end!r}"
    into = {row["step"] for row in job.query(f"SELECT DISTINCT step FROM python.torch_trace {where}")}
    rows = job.query(f"SELECT step, duration_ms AS ms FROM python.steps {where} AND duration_ms IS NOT NULL ORDER BY step")
    excess, before = [], []
    for row in rows:
        if row["step"] not in into:
            before.append(row["ms"])
        elif len(before) >= 8:
            excess.append(row["ms"] - statistics.median(before[-8:]))
    return excess, [row["ms"] for row in rows]


def measure_traced(build, python, pairs, seconds):
    says, steps, looks, excess, usual = [], {True: [], False: []}, [0, 0], [], []
    with run_train(build, python) as job:
        def window(on):
            trace(job, on)
            begin, before, cpu = time.time(), lease(job)["looks"] if on else 0, procs.schedstat(job.pid, job.pid)[0]
            time.sleep(seconds)
            end, cpu = time.time(), procs.schedstat(job.pid, job.pid)[0] - cpu
            if on:
                now = lease(job)
                says.append(now["overhead_pct"])
                looks[0] += now["looks"] - before
                more, all_ms = excess_between(job, begin, end)
                excess.extend(more)
                usual.extend(all_ms)
            found, count = steps_between(job, begin, end)
            looks[1] += count if on else 0
            steps[on].extend(found)
            return {"step": statistics.fmean(found), "cpu": cpu / count}
        trace(job, True)  # what is done once is not counted: units of Python are compiled
        time.sleep(seconds)
        more = windows.alternate(pairs, window, ["step", "cpu"])
        longest = job.status()["gil"]["us_longest_hold"]
    return {"step_ms": {name: {"median": round(statistics.median(steps[on]), 3), "mean": round(statistics.fmean(steps[on]), 3),
                               "quartiles": [round(q, 3) for q in statistics.quantiles(steps[on], n=4)[::2]], "steps": len(steps[on])}
                        for name, on in (("on", True), ("off", False))},
            "more_pct": more["step"], "more_cpu_pct": more["cpu"], "status_says_pct": windows.summary([pct for pct in says if pct is not None]),
            "looked_into_pct": round(100 * looks[0] / looks[1], 2),
            "step_looked_into_ms_more": windows.summary(excess),
            "by_steps_looked_into_pct": windows.summary([100 * looks[0] / looks[1] * ms / statistics.median(usual) for ms in excess]), "us_longest_gil_hold": longest}


# ---- T3: one look ----

def measure_look(build, python, rounds):
    with Running(build, "ready", python, os.path.join(ROOT, "bench", "jobs", "heap_job.py"), str(TENSORS), str(OBJECTS)) as job:
        report = {table: [] for table in ("python.modules", "python.tensors")}
        time.sleep(2)
        for _ in range(rounds + 1):
            for table, seen in report.items():
                before, began = job.status()["gil"], time.time()
                answer = job.query(f"SELECT count(*) AS n FROM {table}")[0]["n"]
                ended, after = time.time(), job.status()["gil"]
                time.sleep(1)
                usual = statistics.median(steps_between(job, began - 1, began)[0])
                during = job.query(f"SELECT sum(duration_ms) AS ms, count(*) AS n FROM python.steps WHERE timestamp > {began!r} AND timestamp <= {ended!r}")[0]
                held = (after["holds"] * after["us_per_hold"] - before["holds"] * (before["us_per_hold"] or 0)) / 1e3
                seen.append({"rows": answer, "seconds": ended - began, "gil_held_ms": held, "holds": after["holds"] - before["holds"],
                             "job_lost_ms": during["ms"] - usual * during["n"]})
        longest = job.status()["gil"]["us_longest_hold"]
    return {"tensors": TENSORS, "objects": OBJECTS, "us_longest_gil_hold": longest,
            **{table: {key: round(statistics.median(one[key] for one in seen[1:]), 3) for key in seen[0]} for table, seen in report.items()}}


# ---- on request: a NaN hunt ----

def measure_hunt(build, python, rounds):
    """Holds of the GIL for hunts for the first NaN, of which there is none: hooks are put in, parameters are looked at, hooks are taken out."""
    with run_train(build, python) as job:
        before = job.status()["gil"]["holds"]
        for _ in range(rounds):
            done = subprocess.run([os.path.join(build, "probing"), str(job.pid), "nan"], capture_output=True, text=True, check=False)
        after = job.status()["gil"]
    if after["holds"] < before + rounds:
        raise SystemExit(f"training: nothing was hunted: {done.stderr.strip()}")
    return {"rounds": rounds, "holds": after["holds"] - before, "us_longest_gil_hold": after["us_longest_hold"]}


def verdict(value, budget):
    return {"value": value, "budget": budget, "kept": value is not None and value <= budget}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", "build"))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--parts", default="operation,phases,train,traced,look,hunt")
    args = parser.parse_args()
    parts, report, verdicts = set(args.parts.split(",")), {}, {}
    if unknown := parts - {"operation", "phases", "train", "traced", "look", "hunt"}:
        raise SystemExit(f"training: there is no part {', '.join(sorted(unknown))}")
    if "train" in parts or "operation" in parts:
        report = measure_asked(args.build, args.python, args.pairs)
    if "train" in parts:
        report["train"] = measure_train(args.build, args.python, args.seconds, report["operation_ns"]["median"])
        verdicts["told_pct"] = verdict(report["train"]["told_pct"], BUDGET_PCT)
    if "phases" in parts:
        report["phases"] = measure_phases(args.build, args.python, args.pairs)
    if "traced" in parts:
        report["traced"] = measure_traced(args.build, args.python, args.pairs, args.seconds)
        verdicts["traced_pct"] = dict(verdict(report["traced"]["more_pct"]["median"], TRACE_BUDGET_PCT),
                                      interval_95=report["traced"]["more_pct"]["interval_95"])
        verdicts["traced_by_steps_pct"] = dict(verdict(report["traced"]["by_steps_looked_into_pct"]["median"], TRACE_BUDGET_PCT),
                                               interval_95=report["traced"]["by_steps_looked_into_pct"]["interval_95"])
        verdicts["traced_status_pct"] = verdict(report["traced"]["status_says_pct"]["median"], TRACE_BUDGET_PCT)
    if "look" in parts:
        report["look"] = measure_look(args.build, args.python, 5)
    if "hunt" in parts:
        report["hunt"] = measure_hunt(args.build, args.python, 5)
    holds = [report[part]["us_longest_gil_hold"] for part in ("traced", "look", "hunt") if part in report]
    if holds:
        verdicts["us_longest_gil_hold"] = verdict(max(holds), HOLD_BUDGET_US)
    report["verdicts"] = verdicts
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
