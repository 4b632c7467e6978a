#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Statements that people type, and joins, over `job:` of the ranks of a job of torchrun on this host, against plain SQLite over the same
rows (plain_sqlite.py). The ranks trace modules and allocations, and have a watched variable; they are stopped while they are read.

    accept_same.py --python PYTHON-WITH-TORCH [--ranks 8] [--seconds 60] [--json FILE]
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from plain_sqlite import PlainSqlite, folder_of, statements  # noqa: E402
from ranks import ROOT, Job, put_figures  # noqa: E402

SETTINGS = ("probing.torch_profiling=on,exprs=loss@step", "probing.trace_rate=20", "probing.memory_trace=on")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PROBING_TEST_TORCH_PYTHON", sys.executable), help="one with torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60, help="while the tables fill")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    probing = os.path.join(os.path.abspath(args.build), "probing")

    def run(*words):
        done = subprocess.run([probing, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"probing {' '.join(words)}: {done.returncode}: {done.stderr}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        job = Job(os.path.abspath(args.python), folder, "stop", args.ranks)
        try:
            job.wait("ready")
            run("cluster", "attach", job.target())
            pids = [pid for _, pid in sorted(job.pids().items())]
            for pid in pids:
                for setting in SETTINGS:
                    run("-t", str(pid), "config", setting)
            time.sleep(args.seconds)
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            backtraces = [row for pid in pids for row in json.loads(run("-t", str(pid), "query", "--no-inject", "--json", "SELECT * FROM python.backtrace"))["rows"]]
            asked = statements(ROOT)
            took = []

            def ask(text):
                answer = json.loads(run("cluster", "query", job.target(), "--no-inject", "--json", "--limit", "0", text))
                took.append(answer["elapsed_ms"])
                return answer["rows"]
            with PlainSqlite([(folder_of(pid), platform.node(), pid) for pid in pids], backtraces) as plain:
                differ = plain.differ(asked, ask)
                figures = {"ranks": len(pids), "statements": len(asked), "with_rows": sum(bool(plain.rows(one)) for one in asked), "rows": plain.count(),
                           "differ": differ, "most_ms": max(took)}
        finally:
            job.close()
    put_figures(figures, args.json)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
