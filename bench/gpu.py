#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What reading GPUs costs, with 8 made-up devices: no GPU is needed, and the figures say nothing of a real driver. Prints one JSON object.

usage: bench/gpu.py [--build DIR] [--rounds N] [--seconds S]

Parts:
  allocator  python.gpu_memory, asked again and again: how long the job's GIL is held, for dictionaries as large as those of torch's allocator
  poller     CPU time of the process that asks the driver, one of the client, and of the client itself, while a query is repeated each second

`verdicts` sets the figures beside their budgets: 2 ms of the GIL, 1 % of a core. bench/gpu.sh has the checks that need a device.
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
import procs  # noqa: E402

DEVICES = 8
HOLD_BUDGET_US = 2000
POLLER_BUDGET_PCT = 1.0

# A stand-in of torch whose functions are of C, and make their answer anew each time.
JOB = r"""
import marshal, sys, time, types
torch, c, cuda = [sys.modules.setdefault(name, types.ModuleType(name)) for name in ("torch", "torch._C", "torch.cuda")]
counts = {"current": 1 << 33, "peak": 1 << 34, "allocated": 1 << 40, "freed": 1 << 39}
kinds = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
         "requested_bytes", "oversize_allocations", "oversize_segments")
stats = {kind: {pool: dict(counts) for pool in ("all", "small_pool", "large_pool")} for kind in kinds}
stats.update(num_alloc_retries=0, num_ooms=0, num_sync_all_streams=0, num_device_alloc=9, num_device_free=0, max_split_size=-1)
blob = marshal.dumps(stats)
class Devices(dict):
    def __missing__(self, device):
        return marshal.loads(blob)
c._cuda_memoryStats = Devices().__getitem__
c._cuda_getDeviceCount = (DEVICES_BITS).bit_length
cuda._initialized = True
print("ready", flush=True)
while True:
    sum(range(1000))
    time.sleep(0.0005)
"""


def probing(build, *args, env=None):
    done = subprocess.run([os.path.join(build, "probing"), *map(str, args)], capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"gpu: probing {' '.join(map(str, args))}: {done.stderr.strip()}")
    return done.stdout


def gil(build, pid):
    return json.loads(probing(build, pid, "status", "--json"))["gil"]


def measure_allocator(build, rounds):
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "job.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(JOB.replace("DEVICES_BITS", str((1 << DEVICES) - 1)))
        job = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=dict(os.environ, PROBING_DATA_DIR=folder))
        try:
            job.stdout.readline()
            probing(build, job.pid, "inject")
            probing(build, job.pid, "query", "SELECT * FROM python.gpu_memory")  # the unit is compiled
            before = gil(build, job.pid)
            rows = 0
            for _ in range(rounds):
                rows = json.loads(probing(build, job.pid, "query", "--json", "SELECT count(*) AS n FROM python.gpu_memory"))["rows"][0]["n"]
            after = gil(build, job.pid)
        finally:
            job.kill()
            job.wait()
    held_us = after["holds"] * after["us_per_hold"] - before["holds"] * (before["us_per_hold"] or 0)
    return {"devices": rows, "rounds": rounds, "us_longest_hold": after["us_longest_hold"], "us_held_per_query": round(held_us / rounds, 1),
            "holds_per_query": round((after["holds"] - before["holds"]) / rounds, 1)}


def cpu_of(pids):
    return sum(procs.all_cpu(pid) for pid in pids)


def measure_poller(build, seconds):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(os.path.abspath(build), "tests", "targets", "fake_nvml.so"), os.path.join(folder, "libnvidia-ml.so.1"))
        script = os.path.join(folder, "nvml.txt")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"devices {DEVICES}\nutil * 50\n")
        job = subprocess.Popen([sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(1e6)"], stdout=subprocess.PIPE, text=True)
        watch = None
        try:
            job.stdout.readline()
            watch = subprocess.Popen([os.path.join(build, "probing"), str(job.pid), "query", "--no-inject", "--watch", "1s", "SELECT count(*) FROM gpu_metrics"],
                                     stdout=subprocess.DEVNULL, env=dict(os.environ, LD_LIBRARY_PATH=folder, FAKE_NVML=script))
            time.sleep(3)
            with open(f"/proc/{watch.pid}/task/{watch.pid}/children", encoding="ascii") as file:
                children = [int(pid) for pid in file.read().split()]
            before = cpu_of(children), cpu_of([watch.pid])
            time.sleep(seconds)
            after = cpu_of(children), cpu_of([watch.pid])
        finally:
            for process in filter(None, (watch, job)):
                process.kill()
                process.wait()
    return {"devices": DEVICES, "seconds": seconds, "processes": len(children), "poller_cpu_pct": round((after[0] - before[0]) / seconds * 100, 3),
            "client_cpu_pct": round((after[1] - before[1]) / seconds * 100, 3)}


def verdict(value, budget):
    return {"value": value, "budget": budget, "ok": value <= budget}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", "build"))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    report = {"allocator": measure_allocator(args.build, args.rounds), "poller": measure_poller(args.build, args.seconds)}
    report["verdicts"] = {"us_longest_hold": verdict(report["allocator"]["us_longest_hold"], HOLD_BUDGET_US),
                          "poller_cpu_pct": verdict(report["poller"]["poller_cpu_pct"], POLLER_BUDGET_PCT)}
    print(json.dumps(report, indent=2))
    return 0 if all(one["ok"] for one in report["verdicts"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
