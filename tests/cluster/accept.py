#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `probing cluster verdict` is right about planted faults, and how fast: a job of eight ranks, whose own log is the truth.

    accept.py --runs 10 [--faults stop,gil] [--json FILE]     watched before the fault; a job that hangs already (--late)
    accept.py --healthy 3600                                  a job with pauses under 5 s, watched all the while: what was said wrongly

Prints a line a run, and the figures as JSON at the end.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from ranks import FAULTS, ROOT, Job, is_right, judge, planted, put_figures  # noqa: E402

sys.path.append(os.path.join(ROOT, "tests", "functional"))

LIMIT_S = 40
SLOW_S = 12.5  # what was judged meanwhile is printed


class Watcher:
    """`cluster verdict --watch` beside the job."""

    def __init__(self, probing, target, folder):
        self.path = os.path.join(folder, f"watch-{time.time()}.ndjson")
        self.file = open(self.path, "w", encoding="utf-8")
        self.process = subprocess.Popen([probing, "cluster", "verdict", target, "--watch", "--json"], stdout=self.file, stderr=subprocess.PIPE)

    def documents(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def wait(self, wanted, limit=60):
        """The first document that is wanted; None."""
        until, seen = time.monotonic() + limit, 0
        while time.monotonic() < until:
            documents = self.documents()
            for document in documents[seen:]:
                if wanted(document):
                    return document
            seen = len(documents)
            time.sleep(0.02)
        return None

    def close(self):
        self.process.kill()
        self.process.wait()
        self.file.close()


def is_moving(document):
    return document["verdicts"][0]["code"] == "MOVING"


def run_watched(probing, job, folder):
    """Seconds from the fault to the right verdict, what was wrong (None nothing), and the text."""
    watcher = Watcher(probing, job.target(), folder)
    try:
        if not watcher.wait(is_moving):
            return None, "the watcher has not seen it move", ""
        time.sleep(2 + random.random())
        at = job.begin()
        right = watcher.wait(lambda document: document["timestamp"] > at and is_right(job.fault, job.bad, document) is None, LIMIT_S)
        last = right or watcher.documents()[-1]
        wrong = [v["text"] for d in watcher.documents() if d["timestamp"] > at for v in d["verdicts"]
                 if v["level"] in ("warning", "bad") and v["ranks"] not in (None, str(job.bad))]
        text = last["verdicts"][0]["text"]
        if right and right["timestamp"] - at > SLOW_S:
            for d in watcher.documents():
                print(f"  {d['timestamp'] - at:.1f} s: " + "; ".join(f"{v['code']} {v['ranks']}: {v['text'][:300]}" for v in d["verdicts"]), flush=True)
        if not right:
            return None, is_right(job.fault, job.bad, last), text
        return right["timestamp"] - at, f"others were accused: {wrong}" if wrong else None, text
    finally:
        watcher.close()


def run_late(probing, job, _folder):
    """The same from the command on, for a job that has hung for a while."""
    job.begin()
    time.sleep(15)
    document, _, seconds = judge(probing, job.target())
    return seconds, is_right(job.fault, job.bad, document), document["verdicts"][0]["text"]


def run_start(probing, job, _folder):
    """A job that does not get to its first step."""
    job.wait("fault", [job.bad])
    time.sleep(1)
    at = job.last(job.bad, "fault")
    while time.time() < at + LIMIT_S:
        document, _, _ = judge(probing, job.target())
        wrong = is_right(job.fault, job.bad, document)
        if wrong is None:
            break
    return time.time() - at, wrong, document["verdicts"][0]["text"]


def count_faults(args, make):
    results = {}
    for fault in args.faults.split(",") if args.faults else planted(not args.late):
        how = run_start if fault == "before_first" else run_late if args.late else run_watched
        seconds, wrong, job = [], [], None
        for run in range(args.runs):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    if job is None:
                        job = make(fault)
                    took, why, text = how(args.probing, job, folder)
                    ends = FAULTS[fault].get("ends")
                    if ends:
                        job.end_fault()
                except (RuntimeError, TimeoutError, OSError, ValueError) as e:
                    took, why, text, ends = None, repr(e), "", False
                if args.fresh or not ends:
                    if job:
                        job.close()
                    job = None
            if why is None and took > args.within and fault != "before_first":
                why = f"right, but after {took:.1f} s"
            if why is None:
                seconds.append(round(took, 1))
            else:
                wrong.append(why)
            print(f"{fault} {run}: {'right' if why is None else 'WRONG'} {took if took is None else round(took, 1)} s: {why or text}", flush=True)
        if job:
            job.close()
        results[fault] = {"runs": args.runs, "right": len(seconds), "seconds": seconds, "max_s": max(seconds, default=None), "wrong": wrong}
    return results


def count_healthy(args, make):
    """Pauses of less than 5 s, of all kinds, one after the other: each is a chance to say something wrong."""
    kinds, pauses, said, moved = ["checkpoint_short", "evaluate_short", "gil_short", "stop"], 0, [], 0
    jobs = {kind: None for kind in kinds}
    until = time.monotonic() + args.healthy
    while time.monotonic() < until:
        kind = kinds[(pauses // args.same) % len(kinds)]
        for other, one in jobs.items():
            if one and other != kind:
                one[1].close()
                one[0].close()
                jobs[other] = None
        if not jobs[kind]:
            job = make(kind)
            jobs[kind] = job, Watcher(args.probing, job.target(), job.folder)
        job, watcher = jobs[kind]
        began = job.begin()
        if kind == "stop":
            time.sleep(random.uniform(1, 4.8))
            job.end_fault()
        else:
            job.wait("over", [job.bad], began, 60)
        pauses += 1
        time.sleep(random.uniform(0.5, 2))
        documents = watcher.documents()
        moved += is_moving(documents[-1]) if documents else 0
        for document in documents:
            said += [v["text"] for v in document["verdicts"] if v["level"] in ("warning", "bad")]
    for one in jobs.values():
        if one:
            one[1].close()
            one[0].close()
    # who never saw the job move has not judged it
    return {"seconds": args.healthy, "pauses": pauses, "moving": moved, "said": sorted(set(said)), "false": len(set(said)) or int(moved < pauses / 2)}


def make_parser(description):
    """Of the arguments that straggler.py has, too."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probing", default=os.path.join(os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")), "probing"))
    parser.add_argument("--python", default=os.environ.get("PROBING_TEST_TORCH_PYTHON", sys.executable), help="one with torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--bad", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--healthy", type=float, metavar="SECONDS")
    parser.add_argument("--json", metavar="FILE")
    return parser


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--faults", help="separated by commas; default: all")
    parser.add_argument("--late", action="store_true", help="ask about a job that has hung for 15 s")
    parser.add_argument("--fresh", action="store_true", help="a new job for each run, also where the fault can be taken back")
    parser.add_argument("--torchrun", action="store_true", help="started by torchrun, not forked from a process that has torch")
    parser.add_argument("--within", type=float, help="seconds in which it has to be right: 13 from the fault on, 5 from the command on (--late)")
    parser.add_argument("--same", type=int, default=20, help="pauses of one kind, one after the other, in one job (--healthy)")
    args = parser.parse_args()
    args.within = args.within or (5 if args.late else 13)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    fork = None
    if not args.torchrun:
        from torch_fork import TorchFork
        fork = TorchFork(args.python)

    with tempfile.TemporaryDirectory() as folder:
        made = []

        def make(fault):
            made.append(Job(args.python, os.path.join(folder, str(len(made))), fault, args.ranks, args.bad, fork))
            if fault != "before_first":
                made[-1].wait("ready")
            return made[-1]
        try:
            figures = count_healthy(args, make) if args.healthy else count_faults(args, make)
        finally:
            for job in made:
                if not job.output.closed:
                    job.close()
    if fork:
        fork.close()
    put_figures(figures, args.json)
    wrong = figures["false"] if args.healthy else sum(len(one["wrong"]) for one in figures.values())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
