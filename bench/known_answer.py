#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many of the stacks that are shown never were: samples a program whose stacks are all known, and counts.

usage: bench/known_answer.py [--build DIR] [--samples N] [--mode exact,gentle] [--threads N] [--seconds S]
                             [--python PATH,PATH...]

One JSON object a Python and mode: samples, impossible (a caller that does not call that function), wrong_lines, torn (seen
to be torn, and not counted as impossible), unknown_frames (the code was gone), unanswered, broken (asked again).
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "known"))
import classify  # noqa: E402


def pythons():
    paths = [p for p in os.environ.get("PROBING_TEST_PYTHONS", "").split(":") if p]
    paths += [shutil.which(f"python3.{minor}") for minor in range(6, 16)]
    paths += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    found = {}
    for path in paths:
        if path and os.path.exists(path):
            done = subprocess.run([path, "-c", "import sys; print(sys.version.split()[0], sys.executable)"],
                                  capture_output=True, text=True)
            version, _, real = done.stdout.strip().partition(" ")
            if version.startswith("3.") and 6 <= int(version.split(".")[1]) <= 15:
                found.setdefault(".".join(version.split(".")[:2]), real)
    return list(found.values())


def measure(python, mode, args, classifier):
    library = os.path.join(args.build, "tests", "known", "known.so")
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "stacks")
        command = [python, classify.PROGRAM, library, out, mode, str(args.samples), str(args.threads), str(args.seconds)]
        timeout = 60 + (args.seconds or args.samples / 500)
        done = subprocess.run(command, timeout=timeout, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"known_answer: {python}: status {done.returncode}: {done.stderr.strip()[-500:]}")
        with open(out, encoding="utf-8") as f:
            return judge(f, python, mode, args.threads, classifier)


def judge(lines, python, mode, threads, classifier):
    ask = "import sys; print(sys.version.split()[0] + sys.abiflags.replace('m', ''))"  # t: free-threaded, d: debug
    version = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    result = {"python": version.stdout.strip(), "mode": mode, "threads": threads, "samples": 0, "impossible": 0,
              "wrong_lines": 0, "torn": 0, "with_unknown": 0, "distinct": 0, "examples": []}
    for line in lines:
        head, _, rest = line.rstrip("\n").partition(" ")
        if head != "stack":
            result[head] = float(rest) if "." in rest else int(rest)
            continue
        counts, *fields = rest.split("\t")
        seen, torn = (int(n) for n in counts.split())
        stack = [(fields[i], fields[i + 1], int(fields[i + 2])) for i in range(0, len(fields), 3)]
        result["samples"] += seen
        result["torn"] += torn
        result["distinct"] += 1
        if any(func == "?" for func, _, _ in stack):
            result["with_unknown"] += seen - torn
            continue
        wrong = classifier.verdict(stack)
        if wrong and seen > torn:
            kind = "impossible" if wrong.startswith("impossible") else "wrong_lines"
            result[kind] += seen - torn
            if len(result["examples"]) < 5:
                result["examples"].append([wrong, seen - torn])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--mode", default="exact,gentle")
    parser.add_argument("--threads", type=int, default=1, help="that run the program at the same time")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long, with fewer samples")
    parser.add_argument("--python", default="")
    args = parser.parse_args()
    classifier = classify.Classifier()
    bad = 0
    for python in args.python.split(",") if args.python else pythons():
        for mode in args.mode.split(","):
            result = measure(python, mode, args, classifier)
            print(json.dumps(result), flush=True)
            bad += mode == "exact" and result["impossible"] + result["wrong_lines"] > 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
