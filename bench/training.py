#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a training job that its steps are told. Prints one JSON object.

usage: bench/training.py [--build DIR] [--pairs N] [--seconds S] [--python PYTHON]

Parts, each by turning probing.steps on and off in turn in one run of a job, with CPU time of the job's own thread:
  operation  what telling one operation (an optimizer step, a fetched batch, a record_function) takes, ns
  others     what an operation costs more that is not told, ns
  small      a training step of a small model, in which telling weighs most: percent, with and without the looks at backward passes
  train      examples/train.py: operations a step and time of a step, and by that what telling takes of it, percent

`verdicts` sets the last against its budget of 0.1 %. The job's Python must have torch.
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
import windows  # noqa: E402

BUDGET_PCT = 0.1


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


def measure_train(build, python, seconds, operation_ns):
    """How many operations a step has, and how long it takes: with what one costs that is what they take of it."""
    command = [python, os.path.join(ROOT, "examples", "train.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        drain = None
        try:
            while "step" not in (line := run.stdout.readline()):
                if not line:
                    raise SystemExit("training: examples/train.py did not start")
            drain = subprocess.Popen(["cat"], stdin=run.stdout, stdout=subprocess.DEVNULL)
            probing(build, run.pid, "inject")
            tell(build, run.pid, True)
            time.sleep(seconds)
            rows = json.loads(probing(build, run.pid, "query", "--format", "json", "--limit", "100000", """
                SELECT (SELECT count(*) FROM profiling_data) AS operations, count(*) AS steps, avg(duration_ms) AS ms,
                       count(backward_ms) AS looked, avg(CASE WHEN backward_ms IS NOT NULL THEN duration_ms END) AS looked_ms
                FROM python.steps WHERE duration_ms IS NOT NULL"""))["rows"][0]
        finally:
            run.kill()
            if drain:
                drain.wait()
    per_step = rows["operations"] / rows["steps"]
    return {"steps": rows["steps"], "step_ms": round(rows["ms"], 3), "operations_per_step": round(per_step, 2),
            "looked_into": rows["looked"], "looked_ms": rows["looked_ms"],
            "told_pct": round(per_step * operation_ns / (rows["ms"] * 1e6) * 100, 5)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", "build"))
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    report = measure_asked(args.build, args.python, args.pairs)
    report["train"] = measure_train(args.build, args.python, args.seconds, report["operation_ns"]["median"])
    report["verdicts"] = {"told_pct": {"value": report["train"]["told_pct"], "budget": BUDGET_PCT,
                                       "kept": report["train"]["told_pct"] <= BUDGET_PCT}}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
