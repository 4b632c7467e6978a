#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many of the stacks that are shown never were: samples a program whose stacks are all known, and counts.

usage: bench/known_answer.py [--build DIR] [--samples N] [--mode MODE,MODE...] [--threads N] [--seconds S]
                             [--python PATH,PATH...]

Modes: exact, timed (timers on the thread's CPU clock) and gentle sample from within, as the agent does; no-inject and block read from another process, as those options do.
MODE:N is for another number of samples. Sampler and program are on two CPUs.
One JSON object a Python and mode: samples, impossible (a caller that does not call that function), wrong_lines, torn (seen
to be torn, and not counted as impossible), unknown_frames (the code was gone), unanswered, broken (asked again). The table of
all of them, on stderr, has a row a Python and a column a mode: of the samples that are shown as whole, how many are wrong, and
how many more are shown as torn. Exit status 1 when an exact sample, or one of a thread that is stopped, is wrong.
"""

import argparse
import contextlib
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

INSIDE = ("exact", "timed", "gentle")
OUTSIDE = ("no-inject", "block")
SAFE = ("exact", "timed", "block")  # no stack may be wrong


def pythons(minors=""):
    """minor version -> path of what the machine has, of "3.9,3.11" or all"""
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
    wanted = minors.split(",") if minors else found
    return {minor: path for minor, path in sorted(found.items(), key=lambda f: int(f[0].split(".")[1])) if minor in wanted}


def must_end_well(done, what):
    if done.returncode != 0:
        raise SystemExit(f"known_answer: {what}: status {done.returncode}: {done.stderr.strip()[-500:]}")


@contextlib.contextmanager
def program(python, threads):
    """The program, running by itself: its process"""
    command = [python, classify.PROGRAM, "-", "-", "-", "0", str(threads), "0"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"known_answer: {python} did not run the program")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure(python, mode, samples, args, classifier):
    tools = os.path.join(args.build, "tests", "known")
    timeout = 60 + (args.seconds or samples / 50)  # a busy machine takes a hundred times as long as an idle one
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "stacks")
        if mode in OUTSIDE:
            with program(python, args.threads) as process:
                command = [os.path.join(tools, "outside"), str(process.pid), out, mode, str(samples), str(args.seconds)]
                must_end_well(subprocess.run(command, timeout=timeout, capture_output=True, text=True), python)
        else:
            command = [python, classify.PROGRAM, os.path.join(tools, "known.so"), out, mode, str(samples), str(args.threads),
                       str(args.seconds)]
            must_end_well(subprocess.run(command, timeout=timeout, capture_output=True, text=True), python)
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


def wrong_of(result):
    return result["impossible"] + result["wrong_lines"]


def share(part, whole):
    """A part in percent, with as many digits as tell it from none"""
    percent = 100 * part / whole if whole else 0
    return "0 %" if not part else f"{percent:.{1 if percent >= 1 else 3}f} %"


def cell(result):
    shown = result["samples"] - result["torn"]
    return f"{wrong_of(result)} of {shown:,} ({share(wrong_of(result), shown)}), torn {share(result['torn'], result['samples'])}"


def table(results, out=sys.stderr):
    """Wrong stacks of those shown as whole, and those shown as torn: a row a Python, a column a mode"""
    modes = list(dict.fromkeys(r["mode"] for r in results))
    rows = [["python", *modes]]
    for python in dict.fromkeys(r["python"] for r in results):
        of = {r["mode"]: r for r in results if r["python"] == python}
        rows.append([python, *(cell(of[mode]) if mode in of else "-" for mode in modes)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip(), file=out)
    out.flush()


def modes_of(text, samples):
    """"exact,gentle:1000" -> [("exact", samples), ("gentle", 1000)]"""
    found = []
    for word in text.split(","):
        mode, _, number = word.partition(":")
        if mode not in INSIDE + OUTSIDE:
            raise SystemExit(f"known_answer: no mode {mode}; there are {', '.join(INSIDE + OUTSIDE)}")
        found.append((mode, int(number or samples)))
    return found


def measure_all(paths, args, tell):
    """A result of each Python and mode, told as it comes"""
    classifier = classify.Classifier()
    results = []
    for python in paths:
        for mode, samples in modes_of(args.mode, args.samples):
            results.append(measure(python, mode, samples, args, classifier))
            tell(results[-1])
    return results


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--mode", default="exact,gentle,no-inject,block")
    parser.add_argument("--threads", type=int, default=1, help="that run the program at the same time")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long, with fewer samples")
    parser.add_argument("--python", default="")
    return parser


def main():
    args = options().parse_args()
    paths = args.python.split(",") if args.python else pythons().values()
    results = measure_all(paths, args, lambda result: print(json.dumps(result), flush=True))
    table(results)
    return 1 if any(wrong_of(r) for r in results if r["mode"] in SAFE) else 0


if __name__ == "__main__":
    sys.exit(main())
