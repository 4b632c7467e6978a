# SPDX-License-Identifier: Apache-2.0
"""The jobs of tests/targets/training with an agent in them, and what they say of themselves. Import `training_job` to use it.

    job = training_job("gan", "--no-loader", inject=True, env={...})
    job.wait_steps(30)              until the job itself has done 30 more
    job.rows("python.steps")        a table of the agent, from its file
    job.end()                       ends it and returns its Truth
"""

import bisect
import json
import os
import signal
import statistics

import pytest
import ring_file
from conftest import ROOT, inject_in_time, wait_until

JOBS = os.path.join(ROOT, "tests", "targets", "training")
ENV = {"OMP_NUM_THREADS": "1", "PROBING_MAX_MEMORY": "8MB", "PROBING_LOOK_SHARE": "100"}  # steps of a few ms: at each of them

CLOCKS = 0.0005  # seconds that the agent's clock and the job's may be apart


def read_log(path):
    """The lines that are whole."""
    try:
        with open(path, encoding="ascii") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


class Truth:
    """What a job wrote of itself: .steps, .events, .totals (None: it was ended before), .losses (text)."""

    def __init__(self, path):
        lines = read_log(path)
        self.steps = [line for line in lines if line["is"] == "step"]
        self.events = [line for line in lines if line["is"] == "event"]
        self.totals = next((line for line in lines if line["is"] == "end"), None)
        self.losses = [line["loss"] for line in self.steps]

    def match(self, rows):
        """[(row of python.steps, step)]: in turn, without a gap, each step ended when its row says: not before its last Optimizer.step was
        done, and not after that had returned. However late the job writes that down, a step that is missing or double is seen."""
        numbers = [row["step"] for row in rows]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        shift = bisect.bisect_left([step["ended"] for step in self.steps], rows[0]["timestamp"] - CLOCKS) + 1 - numbers[0]
        pairs = [(row, self.steps[row["step"] + shift - 1]) for row in rows if row["step"] + shift <= len(self.steps)]
        assert len(pairs) >= len(rows) - 1  # the job may have been ended before it wrote its last
        for row, step in pairs:
            assert step["within"] - CLOCKS <= row["timestamp"] <= step["ended"] + CLOCKS, f"not that of {row}: {step}"
        for (before, _), (row, _) in zip(pairs, pairs[1:]):
            assert abs(row["duration_ms"] / 1e3 - (row["timestamp"] - before["timestamp"])) <= CLOCKS, (before, row)
        return pairs


def took_ms(step):
    return (step["ended"] - step["began"]) * 1e3


def agree(pairs, share=0.75, percent=2.0, ms=1.0):
    """Are (ours, theirs), both in ms, the same within `percent` or `ms`, but for a share that the machine has disturbed, and in the mean?"""
    good = [abs(a - b) <= max(ms, percent / 100 * b) for a, b in pairs]
    bad = [pair for pair, is_good in zip(pairs, good) if not is_good]
    assert sum(good) >= share * len(good), f"{len(bad)} of {len(pairs)} differ: {bad[:10]}"
    assert statistics.median(abs(a - b) for a, b in pairs) <= max(ms, percent / 100 * statistics.median(b for _, b in pairs)) / 2
    # Where a process loses its processor between two readings of the clock, one pair can move the mean: of every twenty pairs the one that differs
    # most is left out, and none of fewer.
    calm = sorted(pairs, key=lambda pair: abs(pair[0] - pair[1]))[:len(pairs) - len(pairs) // 20]
    ours, theirs = (statistics.fmean(column) for column in zip(*calm))
    assert abs(ours - theirs) <= max(ms, percent / 100 * theirs), f"means differ: {ours} and {theirs}"


def armed(job):
    """The first step with reported variables."""
    def told():
        return [row for row in job.rows("python.steps") if row["lr"] is not None]
    wait_until(told, timeout=60, what="variables to be looked at", interval=0.2)
    return told()[0]["step"]


def accusations(job):
    """Verdicts that say something is wrong."""
    said = job.probing(str(job.pid), "verdict", "--json", timeout=60).ok().json()["verdicts"]
    return [verdict for verdict in said if verdict["level"] not in ("fine", "note")]


def is_so(said, truth):
    """Does the job's own log say the same as this verdict, at some time?"""
    evidence, took = said["evidence"], [step["ended"] - step["began"] for step in truth.steps]
    if said["code"] == "SLOW":
        old, new = evidence["before"], evidence["newest"]
        windows = [took[at:at + old + new] for at in range(len(took) - old - new + 1)]
        return any(statistics.median(w[old:]) > 1.4 * statistics.median(w[:old]) for w in windows)
    if said["code"] == "INPUT-BOUND":
        n, waited = evidence["n"], [step["data_s"] for step in truth.steps]
        return any(sum(waited[at:at + n]) > 0.9 * said["threshold"] * sum(took[at:at + n]) for at in range(len(took) - n + 1))
    return False


class TrainingJob:
    def __init__(self, target, log, data_dir, probing):
        self.target, self.log, self.data_dir, self.probing = target, log, data_dir, probing
        self.pid = target.pid

    def inject(self):
        inject_in_time(self.probing, self.pid)
        wait_until(lambda: self.status()["hooks"], timeout=60, what="torch to tell of its operations", interval=0.05)

    def status(self):
        return self.probing(str(self.pid), "status", "--json").ok().json()

    def steps(self):
        """What it has written of its steps so far."""
        return [line for line in read_log(self.log) if line["is"] == "step"]

    def count(self):
        return sum(line["is"] == "step" for line in read_log(self.log))

    def wait_steps(self, more, timeout=120):
        until = self.count() + more
        wait_until(lambda: self.count() >= until or not self.target.alive(), timeout, f"{more} more steps", interval=0.05)

    def rows(self, name):
        folders = ring_file.folders(self.data_dir, self.pid)
        return ring_file.read(folders[-1], name) if folders else []

    def end(self):
        """Ends it as its user would. What it says of itself."""
        if self.target.alive():
            os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: not self.target.alive(), 120, "the job's end")
        assert self.target.process.returncode == 0, self.target.output()
        truth = Truth(self.log)
        assert truth.totals is not None and truth.totals["steps"] == len(truth.steps)
        return truth


@pytest.fixture
def training_job(target, torch_python, torch_fork, tmp_path, data_dir, probing):
    """A factory of jobs: training_job(name, *args, inject=True, env=None, ranks=False)."""
    def make(name, *args, inject=True, env=None, ranks=False):
        log = str(tmp_path / f"{name}_{len(os.listdir(tmp_path))}.jsonl")
        run = target(os.path.join(JOBS, f"{name}.py"), "--log", log, *args, python=torch_python, fork=None if ranks else torch_fork,
                     env=dict(ENV, **(env or {})), timeout=180)
        made = TrainingJob(run, log + ".0" if ranks else log, data_dir, probing)
        if inject:
            made.inject()
        return made
    return make
