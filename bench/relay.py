#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to watch all ranks of a job: a gloo job of --ranks ranks with agents, in windows in which a relay reads it, as it does for the
Ranks screen (ranks, new stacks, steps and collectives), and in windows in which none does; and how long it takes to find the ranks, to see
where they stand, and to attach to all of them. Prints one JSON object.

usage: bench/relay.py [--build DIR] [--python PATH] [--ranks N] [--pairs N] [--window S] [--check]

`steps` is by how many percent a step took longer in the windows with a relay than in those beside them. The cost of the relay is the processor
time of its processes while it reads, and their memory. `packed` bytes are what `ssh -C` makes of them. With --check the exit status is 1 if a
budget was exceeded.
"""

import argparse
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "bench", "support"), os.path.join(ROOT, "tests", "functional")]
import windows  # noqa: E402
from agent_wire import Unpacker, pack  # noqa: E402

IDS = 7  # stacks that a request may name
BUDGETS = {"steps_pct": 0.3, "relay_pct": 1.0, "relay_mb": 16.0, "attach_s": 1.5}


class Relay:
    def __init__(self, probing, job):
        self.process = subprocess.Popen([probing, "relay", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.id = self.round = self.bytes = self.packed = 0
        self.packer = zlib.compressobj(6)  # ssh's level
        self.stacks = set()
        self.table("job", name=job)

    def table(self, table, **args):
        self.id += 1
        message = pack([0, self.id, "rows", {"table": table, "args": args}])
        self.process.stdin.write(struct.pack(">I", len(message)) + message)
        self.process.stdin.flush()
        size, = struct.unpack(">I", self.process.stdout.read(4))
        answer = self.process.stdout.read(size)
        error, result = Unpacker(answer).value()[2:]
        assert error is None, error
        self.bytes += size
        self.packed += len(self.packer.compress(answer) + self.packer.flush(zlib.Z_SYNC_FLUSH))
        return [dict(zip(result["columns"], row)) for row in result["rows"]]

    def read(self):
        self.bytes = self.packed = 0
        rows = self.table("ranks", after=self.round)
        self.round = rows[0]["round"]
        new = sorted({row["stack"] for row in rows if row["stack"] is not None} - self.stacks)
        for at in range(0, len(new), IDS):
            self.table("stacks", ids=",".join(f"{stack % 2 ** 64:016x}" for stack in new[at:at + IDS]))
        self.stacks.update(new)
        self.table("times")

    def pids(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def cpu_s(self):
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def memory_mb(self):
        """What it has for itself: the rest is shared with the program it was started from."""
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith(("Private_Clean", "Private_Dirty")))
        return total / 1024


def step_times(path, since, until):
    with open(path, encoding="ascii") as file:
        at = [t for t in map(float, file.read().split("\n")[:-1]) if since <= t <= until]
    return (at[-1] - at[0]) / (len(at) - 1) if len(at) > 2 else None


def seconds(command):
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return round(time.monotonic() - began, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", default=os.environ.get("PYTHON", "python3"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--window", type=float, default=3)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    probing = os.path.join(args.build, "probing")
    with tempfile.TemporaryDirectory() as folder:
        times = os.path.join(folder, "times")
        launcher = subprocess.Popen([args.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.ranks),
                                     os.path.join(ROOT, "bench", "jobs", "ranks_job.py"), times], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"), start_new_session=True)
        try:
            until = time.monotonic() + 300
            while not all(os.path.exists(f"{times}.{rank}") and os.path.getsize(f"{times}.{rank}") > 2000 for rank in range(args.ranks)):
                assert launcher.poll() is None and time.monotonic() < until, "the job has not started"
                time.sleep(0.1)
            job = str(launcher.pid)
            found = {"nodes_s": seconds([probing, "cluster", "nodes", job]), "stacks_s": seconds([probing, "cluster", "stacks", job, "-d", "0s"])}
            found["attach_s"] = seconds([probing, "cluster", "attach", job])
            relay = Relay(probing, job)
            relay.read()
            costs, sizes, packed = [], [], []

            def window(on):
                relay_cpu, began = relay.cpu_s(), time.monotonic()
                while time.monotonic() < began + args.window:
                    if on:
                        relay.read()
                        sizes.append(relay.bytes / args.ranks)
                        packed.append(relay.packed / args.ranks)
                    else:
                        time.sleep(min(0.2, max(0, began + args.window - time.monotonic())))
                ended = time.monotonic()
                if on:
                    costs.append(100 * (relay.cpu_s() - relay_cpu) / (ended - began))
                return {"step_s": step_times(times + ".0", began, ended)}

            steps = windows.alternate(args.pairs, window, ["step_s"])["step_s"]
            memory = relay.memory_mb()
            relay.process.stdin.close()
            relay.process.wait()
        finally:
            os.killpg(launcher.pid, signal.SIGTERM)
            launcher.wait()
    figures = {"steps_pct": steps["median"], "relay_pct": round(statistics.median(costs), 3), "relay_mb": round(memory, 1), "attach_s": found["attach_s"]}
    kept = {name: figures[name] <= budget for name, budget in BUDGETS.items()}
    # a machine with other work on it: the interval of the steps reaches over the budget
    if not kept["steps_pct"] and steps["interval_95"] and steps["interval_95"][0] <= BUDGETS["steps_pct"]:
        kept["steps_pct"] = "undecided"
    print(json.dumps({"ranks": args.ranks, **found, "steps": steps, "relay_pct": figures["relay_pct"], "relay_mb": figures["relay_mb"],
                      "bytes_per_rank_and_round": round(statistics.median(sizes)), "packed": round(statistics.median(packed)), "budgets": BUDGETS, "kept": kept}, indent=1))
    return 1 if args.check and not all(kept.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
