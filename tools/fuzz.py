#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets that are built, each from its corpus, and prints a line of JSON for each: executions, seconds, what was found.

usage: tools/fuzz.py BUILD [--runs N] [--seconds S] [--only TEXT] [--jobs N] [--anew]
       tools/fuzz.py BUILD --record

Each runs until it has had N executions in all or this run has taken S seconds, whichever is first; without --seconds, for as long as N
takes. What a target has had since it last fell, or anything that is linked into it was changed, is kept in BUILD/corpus/executions.json,
which begins as tests/fuzz/executions.json: so N may be reached in pieces, interrupted ones and those of others too; one that has had N does
not run. --anew counts from none. --record writes what there is by now back to tests/fuzz/executions.json. "executions" are those of this
run, "total" those so far, "finding" what it fell over, "cov" and "ft" the edges and features that were reached (libFuzzer's words).

The linker's map beside the program lists what is linked (BUILD/fuzzers/NAME.map) and the compiler's lists of what each object is made of:
the sources and headers of all objects of ours, the product's as well as the harness's, and deps.lock for those of others.

A unit that took too long by the clock is run again by itself: it is a finding only if it takes as long of a processor, for a machine may have
been busy with something else.

What makes a target fall lies in BUILD/found, what it has learnt in BUILD/corpus, where the next run goes on; the committed corpus is
only read. Options for libFuzzer that a target needs stand in tests/fuzz/NAME.options, "max_len = 512" a line; in capitals, "FUZZ_BLOCK_MB = 2",
is taken from its environment (tests/fuzz/blocks.c).
"""

import argparse
import concurrent.futures
import fcntl
import glob
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

UNIT_S = 10  # that an input may take
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORD = os.path.join(ROOT, "tests", "fuzz", "executions.json")


class Counts:
    """What each target has had, in a file: executions since it last fell, or its source was another."""

    def __init__(self, build, again=False):
        self.path = os.path.join(build, "corpus", "executions.json")
        self.build, self.digests = build, {}
        self.lock = threading.Lock()
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if again:
            self.write({})
        elif not os.path.exists(self.path):
            self.write(read_counts(RECORD))

    def of(self, name):
        row = read_counts(self.path).get(name, {})
        source = self.digest(name)
        return row if row and row["source"] == source else {"source": source, "executions": 0, "seconds": 0, "cov": 0, "ft": 0}

    def digest(self, name):
        """Of all that is linked; without a map of that, of the harness alone; None if it is missing."""
        if name not in self.digests:
            self.digests[name] = digest(linked(self.build, name) or [os.path.join(ROOT, "tests", "fuzz", name + ".c")])
        return self.digests[name]

    def add(self, name, executions, seconds, finding, coverage=(0, 0)):
        with self.lock, open(self.path + ".lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may count, too
            row = self.of(name)
            row["executions"] = 0 if finding else row["executions"] + executions
            row["seconds"] = 0 if finding else round(row["seconds"] + seconds)
            row["cov"], row["ft"] = max(row.get("cov", 0), coverage[0]), max(row.get("ft", 0), coverage[1])
            self.write({**read_counts(self.path), name: row})
            return row

    def write(self, rows, path=None):
        path = path or self.path
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1, sort_keys=True)
            file.write("\n")
        os.replace(path + ".new", path)


def read_counts(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return {}


def linked(build, name):
    """The sources and headers of all objects that are linked into a target; [] if nothing lists them."""
    try:
        with open(os.path.join(build, "fuzzers", name + ".map"), encoding="utf-8", errors="replace") as file:
            objects = set(re.findall(r"^(?:LOAD )?(\S+/lib\w+\.a\(\S+\.o\)|\S+\.o(?=\s))", file.read(), re.M))
    except FileNotFoundError:
        return []
    lists = set()
    for path in objects:
        member = re.fullmatch(r".*/lib(\w+)\.a\((\S+)\.o\)", path)
        if not member:
            lists.add(os.path.join(ROOT, path)[:-2] + ".d")
        else:  # folders are unknown: all of that name count
            folder = os.path.join(build, "obj", *(("tests",) if member[1] == "testsupport" else ("src", member[1])))
            lists.update(glob.glob(os.path.join(folder, "**", member[2] + ".d"), recursive=True))
    files = {os.path.join(ROOT, "deps.lock")}
    for path in lists:
        try:
            with open(path, encoding="utf-8") as file:
                files.update(os.path.normpath(os.path.join(ROOT, word)) for word in re.findall(r"[^\s\\:]+\.(?:[ch]|css|js|py)\b", file.read()))
        except FileNotFoundError:
            continue  # of a library that is not ours
    made = os.path.abspath(build) + os.sep
    return sorted(path for path in files if path.startswith(ROOT + os.sep) and not path.startswith(made) and os.path.exists(path))


def digest(paths):
    """Of the files' names and bytes; None: one is not there."""
    whole = hashlib.sha256()
    for path in paths:
        try:
            with open(path, "rb") as file:
                whole.update(os.path.relpath(path, ROOT).encode() + b"\0" + hashlib.sha256(file.read()).digest())
        except FileNotFoundError:
            return None
    return whole.hexdigest()


def folders(build, short):
    """Where inputs come from; new ones go to the first."""
    mine = os.path.join(build, "corpus", "fuzz_" + short)
    os.makedirs(mine, exist_ok=True)
    kept = [os.path.join(ROOT, "tests", "fuzz", "corpus", short), os.path.join(build, "tests", "seeds", short)]
    return [mine, *(folder for folder in kept if os.path.isdir(folder))]


def options(name):
    """Of this target: libFuzzer's, and its environment."""
    try:
        with open(os.path.join(ROOT, "tests", "fuzz", name + ".options"), encoding="utf-8") as file:
            rows = re.findall(r"^(\w+) *= *(\S+)$", file.read(), re.M)
    except FileNotFoundError:
        rows = []
    return [f"-{key}={value}" for key, value in rows if not key.isupper()], {key: value for key, value in rows if key.isupper()}


def execute(command, own, log, stop):
    """The status of the command; at its end it is asked to stop, and prints what it found."""
    # Freed memory is kept back for what a few inputs use, not for 256 MB of them: those would be pages never in a cache. Who allocated
    # it is reported when the finding is run again. A checked strstr() measures all the rest of the text at each call.
    env = {"ASAN_OPTIONS": "quarantine_size_mb=2:thread_local_quarantine_size_kb=256:malloc_context_size=2:intercept_strstr=0", **own, **os.environ}
    with open(log, "wb") as file, subprocess.Popen(command, stdout=file, stderr=file, env=env, start_new_session=True) as process:
        while True:
            try:
                return process.wait(0.2)
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    process.send_signal(signal.SIGINT)
                    process.wait()
                    return 0


def is_slow(program, unit):
    """Does one input really take too long?"""
    code = "import resource,subprocess,sys; subprocess.run(sys.argv[1:], capture_output=True); " \
           "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime)"
    done = subprocess.run([sys.executable, "-c", code, program, f"-timeout={6 * UNIT_S}", unit], capture_output=True, text=True, check=False)
    return float(done.stdout) >= UNIT_S


def piece(build, name, runs, seconds, stop):
    """A run of libFuzzer: executions, status, what was found or None, what it wrote, what it reached."""
    program = os.path.join(build, "fuzzers", name)
    log = os.path.join(build, name + ".log")
    # How rare an input is counts for nothing: to weigh that took up to a fifth of the time. Nobody else writes to the corpus: it is read once.
    flags, own = options(name)
    command = [program, f"-timeout={UNIT_S}", "-rss_limit_mb=2048", "-print_final_stats=1", "-entropic=0", "-reload=0",
               f"-artifact_prefix={os.path.join(build, 'found', name)}-", *flags]
    command += [f"-runs={runs}"] * bool(runs) + [f"-max_total_time={seconds}"] * bool(seconds)
    status = execute(command + folders(build, name[len("fuzz_"):]), own, log, stop)
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    # One that failed has their number in its statistics, or at least in the last line that it wrote about them.
    executions = re.findall(r"stat::number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\t", text, re.M)
    artifact = re.findall(r"Test unit written to (\S+)", text) if status else []  # else only what took long
    if not artifact and "libFuzzer: run interrupted" in text:
        status = 0  # by somebody, not by an input
    finding = artifact[-1] if artifact else f"status {status}" if status else None
    if artifact and "libFuzzer: timeout" in text and not is_slow(program, finding):
        os.remove(finding)
        status, finding = 0, None
    reached = re.findall(r"\bcov: (\d+) ft: (\d+)", text)
    return int(executions[-1]) if executions else 0, status, finding, text, tuple(map(int, reached[-1])) if reached else (0, 0)


def run(build, name, args, counts, stop):
    os.makedirs(os.path.join(build, "found"), exist_ok=True)
    row = counts.of(name)
    result = {"target": name, "executions": 0, "total": row["executions"], "seconds": 0, "inputs": 0, "status": 0, "finding": None}
    began, text = time.monotonic(), ""
    while not stop.is_set() and not result["status"] and (not args.runs or result["total"] < args.runs):
        seconds = time.monotonic() - began
        left = max(1, round(args.seconds - seconds)) if args.seconds else 0
        if args.seconds and seconds >= args.seconds:
            break
        executions, status, finding, text, coverage = piece(build, name, max(0, args.runs - result["total"]), left, stop)
        row = counts.add(name, executions, time.monotonic() - began - seconds, finding, coverage)
        result.update(executions=result["executions"] + executions, total=row["executions"], status=status, finding=finding, cov=row["cov"],
                      ft=row["ft"])
        if not executions:
            break
    result.update(seconds=round(time.monotonic() - began, 1), inputs=len(os.listdir(folders(build, name[len("fuzz_"):])[0])))
    return result, text


def run_all(build, names, args):
    """Did all go well?"""
    good, stop, counts = True, threading.Event(), Counts(build, args.anew)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(run, build, name, args, counts, stop) for name in names]
        for done in concurrent.futures.as_completed(waiting):
            result, text = done.result()
            print(json.dumps(result), flush=True)
            if result["status"] != 0:
                good = False
                print("\n".join(text.splitlines()[-30:]), file=sys.stderr)
    return good and not stop.is_set()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=0, help="executions in all")
    parser.add_argument("--seconds", type=int, default=0, help="of this run")
    parser.add_argument("--only", default="", help="targets whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--anew", action="store_true", help="count from none")
    parser.add_argument("--record", action="store_true", help="keep in the source what each target has had")
    args = parser.parse_args()
    if args.record:
        counts = Counts(args.build)
        counts.write({name: row for name, row in read_counts(counts.path).items() if counts.of(name) == row}, RECORD)
        return
    fuzzers = os.path.join(args.build, "fuzzers")
    names = sorted(name for name in os.listdir(fuzzers) if name.startswith("fuzz_") and "." not in name and args.only in name)
    if not names:
        sys.exit(f"no fuzz target in {fuzzers} is called *{args.only}*")
    if not args.runs and not args.seconds:
        sys.exit("how many executions (--runs), or how long (--seconds)?")
    sys.exit(0 if run_all(args.build, names, args) else 1)


if __name__ == "__main__":
    main()
