#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often and how fast the rank that is slower than the others is named, in real gloo jobs (uneven.py) under `cluster verdict --watch`.

    straggler.py --runs 20 [--faults slow,backward]     5 % more time of its own; 20 % more in the backward pass; another rank in turn
    straggler.py --healthy 3600                         nobody is slow: which verdicts come nevertheless

Prints a line a run, and the figures as JSON at the end.
"""

import json
import os
import signal
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from accept import Watcher, is_moving, make_parser  # noqa: E402
from ranks import FOLDER, Job  # noqa: E402

LIMIT_S = 60
UNEVEN = os.path.join(FOLDER, "uneven.py")
# The code of the verdict, and its causes
FAULTS = {
    "data": ("STRAGGLER", ["DATA"]),
    "slow": ("STRAGGLER", ["FORWARD", "COMPUTE"]),
    "backward": ("STRAGGLER", ["BACKWARD", "COMPUTE"]),
    "rotating": ("IMBALANCE", [None]),
}


def said(document):
    return [v for v in document["verdicts"] if v["code"] in ("STRAGGLER", "IMBALANCE")]


def is_right(job, document, *more):
    code, causes = FAULTS[job.fault]
    return any(v["code"] == code and v["ranks"] == (str(job.bad) if code == "STRAGGLER" else None) and v["cause"] in [*causes, *more] for v in said(document))


def run(args, job, folder):
    """Seconds from the fault until it is named, and to the right verdict, with the part that takes longer (None: never); verdicts that are
    wrong, and the text."""
    watcher = Watcher(args.probing, job.target(), folder)
    try:
        if not watcher.wait(is_moving):
            return None, None, ["the watcher has not seen it move"], ""
        time.sleep(args.before)
        at = job.begin()
        right = watcher.wait(lambda document: document["timestamp"] > at and is_right(job, document), LIMIT_S)
        documents = watcher.documents()
        wrong = sorted({v["text"] for d in documents for v in said(d) if v["code"] == "STRAGGLER" and v["ranks"] != str(job.bad) or job.fault == "rotating" and v["ranks"]})
        text = (said(right) if right else said(documents[-1]) or documents[-1]["verdicts"])[0]["text"]
        named = next((d["timestamp"] - at for d in documents if d["timestamp"] > at and is_right(job, d, "UNKNOWN")), None)
        return named, right["timestamp"] - at if right else None, wrong, text
    finally:
        watcher.close()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--before", type=float, default=5, help="seconds for which the job is watched before the fault")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        def with_job(fault, number, use):
            job = Job(args.python, os.path.join(folder, f"{fault}-{number}"), fault, args.ranks, args.bad, script=UNEVEN)
            try:
                job.wait("ready")
                return use(job)
            finally:
                job.close()

        def watch(job):
            watcher = Watcher(args.probing, job.target(), folder)
            time.sleep(args.healthy)
            texts = [v["text"] for d in watcher.documents() for v in said(d)]
            moving = any(is_moving(d) for d in watcher.documents())
            watcher.close()
            return {"seconds": args.healthy, "moving": moving, "said": texts, "false": len(texts) if moving else 1}

        if args.healthy:
            figures["healthy"] = with_job("healthy", 0, watch)
        for fault in [] if args.healthy else args.faults.split(","):
            seconds, wrong, names = [], [], []
            for number in range(args.runs):
                named, took, others, text = with_job(fault, number, lambda job: run(args, job, folder))
                if took is not None:
                    seconds.append(round(took, 1))
                if named is not None:
                    names.append(round(named, 1))
                wrong += others
                print(f"{fault} {number}: {'not named' if named is None else f'{named:.1f} s'}{'' if took is None else f', its part after {took:.1f} s'}: {text}{f'; WRONG {others}' if others else ''}", flush=True)
            figures[fault] = {"runs": args.runs, "right": len(seconds), "named": len(names), "named_s": names, "seconds": seconds, "max_s": max(seconds, default=None), "wrong": wrong}
    text = json.dumps(figures, indent=2)
    print(text)
    if args.json:
        with open(args.json, "w", encoding="ascii") as file:
            file.write(text + "\n")
    return int(any(one.get("false") or one.get("wrong") or one.get("right", 0) < one.get("runs", 0) for one in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
