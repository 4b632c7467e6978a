#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tables cost a job, whether or not anybody watches: CPU beside sampling, and memory beside the tables. Prints one JSON object.

usage: bench/collect.py [--build DIR] [--seconds S] [--python PYTHON]

Parts, each with the agent put in by `probing inject` and nobody connected while it is measured:
  train     examples/train.py (bench/jobs/sampler_job.py where torch is not there): the agent's own account, from `probing status`, of what
            collecting costs and what sampling does, and the kernel's of its threads
  apart     the same job with PROBING_SAMPLE_RATE=0, so that the kernel's account of the agent's threads is of the collecting alone
  memory    a Python that sleeps: what it has in RAM more than before, rings' files not counted, which no process has mapped

`verdicts` sets the figures beside their budgets: at most 0.2 % of a core beside the sampler, at most 8 MB beside the tables.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench", "support"))
import procs  # noqa: E402

CPU_BUDGET_PCT = 0.2
MEMORY_BUDGET = 8 << 20
WARM_S = 4  # caches are filled, the first looks are over
SLEEPER = "import sys, time\nprint('ready', flush=True)\ntime.sleep(1e6)"


class Job:
    def __init__(self, command, data_dir, **env):
        self.data_dir = data_dir
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, PROBING_DATA_DIR=data_dir, **env))
        if not self.process.stdout.readline():
            raise SystemExit(f"collect: {' '.join(command)} did not start")
        self.pid = self.process.pid
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.drain.wait()

    def rss(self):
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as rollup:
            return [int(line.split()[1]) << 10 for line in rollup if line.startswith("Rss:")][0]


def probing(build, *args):
    done = subprocess.run([os.path.join(build, "probing"), *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"collect: probing {' '.join(map(str, args))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def measure(build, job, seconds):
    """Inject; then what the agent's threads use by the kernel's account, and what the agent says."""
    probing(build, job.pid, "inject", "--json")
    time.sleep(WARM_S)
    at, cpu, passed = time.monotonic(), procs.agent_cpu(job.pid), procs.all_cpu(job.pid)
    time.sleep(seconds)
    elapsed, used, total = time.monotonic() - at, procs.agent_cpu(job.pid) - cpu, procs.all_cpu(job.pid) - passed
    status = probing(build, job.pid, "status", "--json")
    return {"seconds": round(elapsed, 1), "job_cpu_pct": round(100 * (total - used) / elapsed, 1),
            "agent_threads_pct": round(100 * used / elapsed, 4),
            "collect_pct": status["collection"]["overhead_pct"], "collect_us_per_s": status["collection"]["us_per_s"],
            "sampler_rate_hz": status["collection"]["rate_hz"], "agent_rss_bytes": status["rss_bytes"],
            "tables": {t["name"]: t["rows"] for t in status["tables"]},
            "table_bytes": sum(t["bytes"] for t in status["tables"])}


def measure_memory(build, python, data_dir, seconds):
    """Of a quiet process: RAM before, and after the agent has worked for a while."""
    added = []
    for _ in range(3):
        with Job([python, "-c", SLEEPER], data_dir) as job:
            time.sleep(0.5)
            before = job.rss()
            probing(build, job.pid, "inject", "--json")
            time.sleep(max(WARM_S, seconds / 4))
            added.append(job.rss() - before)
    return {"rss_added_bytes": int(statistics.median(added)), "rounds": added}


def job_command(python):
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        return "examples/train.py", [python, "-u", os.path.join(ROOT, "examples", "train.py")]
    return "bench/jobs/sampler_job.py", [python, "-u", os.path.join(ROOT, "bench", "jobs", "sampler_job.py"), "8", "2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    args = parser.parse_args()
    name, command = job_command(args.python)
    with tempfile.TemporaryDirectory(prefix="probing-collect-") as data_dir:
        with Job(command, data_dir) as job:
            train = measure(args.build, job, args.seconds)
        with Job(command, data_dir, PROBING_SAMPLE_RATE="0") as job:
            apart = measure(args.build, job, args.seconds)
        memory = measure_memory(args.build, args.python, data_dir, args.seconds)
    worst = max(v for v in (train["collect_pct"], apart["agent_threads_pct"]) if v is not None)
    print(json.dumps({
        "benchmark": "collect", "job": name, "train": train, "apart": apart, "memory": memory,
        "verdicts": {"cpu": {"pct": worst, "budget_pct": CPU_BUDGET_PCT, "kept": worst <= CPU_BUDGET_PCT},
                     "memory": {"bytes": memory["rss_added_bytes"], "budget_bytes": MEMORY_BUDGET,
                                "kept": memory["rss_added_bytes"] <= MEMORY_BUDGET}}}, indent=1))


if __name__ == "__main__":
    main()
