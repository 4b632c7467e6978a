#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SQL over the ranks of a job of torchrun on hosts that are namespaces with an sshd each (hosts.py). What is measured, as JSON: how
long a scan of one column of the last 60 s takes, of all ranks, once the hosts are reached; and the first one, which reaches them.

    accept_sql.py --python PYTHON-WITH-TORCH [--hosts 4] [--ranks 2] [--runs 20] [--json FILE]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from accept_hosts import HostsJob, wait_until  # noqa: E402
from hosts import Hosts, missing  # noqa: E402
from ranks import ROOT, put_figures  # noqa: E402

SCANS = {
    "steps": "SELECT rank, count(*) AS n, avg(duration_ms) AS value FROM python.steps WHERE timestamp > now() - 60 GROUP BY 1",
    "samples": "SELECT rank, count(*) AS n, max(tid) AS value FROM python.samples WHERE timestamp > now() - 60 GROUP BY 1",
    "collectives": "SELECT rank, count(*) AS n, avg(duration_ms) AS value FROM python.collectives WHERE timestamp > now() - 60 GROUP BY 1",
}


def measure(args, hosts, statement):
    """Milliseconds of each run: the first reaches the hosts."""
    command = hosts.client(args.probing, "cluster", "query", statement, "--hosts", hosts.names(), "--json", "--watch", "0.2")
    # what enters a namespace is the parent of what runs there: all of them end together
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        found = [json.loads(process.stdout.readline()) for _ in range(args.runs + 1)]
        os.killpg(process.pid, signal.SIGTERM)
    took = sorted(answer["elapsed_ms"] for answer in found[1:])
    last = found[-1]["rows"]
    return {"first_ms": found[0]["elapsed_ms"], "median_ms": took[len(took) // 2], "most_ms": took[-1], "ranks": len(last), "rows": sum(row["n"] for row in last),
            "right": took[len(took) // 2] <= 300 and len(last) == args.hosts * args.ranks}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PROBING_TEST_TORCH_PYTHON", sys.executable), help="one with torch")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2, help="of each host")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=65, help="until the tables have the last 60 s")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.build, args.python = os.path.abspath(args.build), os.path.abspath(args.python)
    args.probing = os.path.join(args.build, "probing")
    if missing():
        sys.exit(f"accept_sql: {missing()}")
    figures = {"hosts": args.hosts, "ranks": args.hosts * args.ranks}
    with tempfile.TemporaryDirectory() as folder, Hosts(folder, args.hosts, args.build) as hosts:
        job = HostsJob(args.python, os.path.join(folder, "job"), hosts, args.ranks)
        try:
            job.wait("ready", limit=300)
            attached = hosts.client(args.probing, "cluster", "attach", "--hosts", hosts.names())
            wait_until(lambda: subprocess.run(attached, capture_output=True, check=False).returncode == 0, 60, "an agent in each rank")
            time.sleep(args.seconds)
            figures.update({name: measure(args, hosts, statement) for name, statement in SCANS.items()})
        finally:
            job.close()
    put_figures(figures, args.json)
    return 0 if all(figures[name]["right"] for name in SCANS) else 1


if __name__ == "__main__":
    sys.exit(main())
