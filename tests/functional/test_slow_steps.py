# SPDX-License-Identifier: Apache-2.0
"""Why slow steps were slow, by their samples: a job that plants a slow function in every so many steps, and writes down which."""

import re
import time

import pytest

from conftest import long_but, wait_until
from test_steps_screen import PATIENCE, screen_of  # noqa: F401
from training_job import Truth, training_job  # noqa: F401

pytestmark = pytest.mark.timeout(400)
PLANTED = {"wait_for_storage", "evaluate_metrics"}


def planted_in(events, row):
    """What the job did in that step: of its own log, by the time."""
    began = row["timestamp"] - row["duration_ms"] / 1e3
    return [event["event"] for event in events if began <= (event["began"] + event["ended"]) / 2 <= row["timestamp"]]


def explained(job):
    """[(slow step, its row, what the job did in it)] of a report."""
    document = job.probing(str(job.pid), "report", "--json", "--duration", "0.2", timeout=60).ok().json()
    events, rows = Truth(job.log).events, {row["step"]: row for row in document["steps"]}
    return [(slow, rows[slow["step"]], planted_in(events, rows[slow["step"]])) for slow in document["slow_steps"]]


def waits_for_a_cpu(pid):
    """Of the time in which its main thread could run, other processes have had the CPU for more than half, as the kernel says."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        ran, waited = map(int, file.read().split()[:2])
    return waited > ran


@pytest.mark.parametrize("by", long_but(["both"], ["sleep", "work", "both"]))
def test_the_function_is_named(training_job, by):  # noqa: F811
    job = training_job("slow_steps", "--by", by)
    found, named = [], []
    until = time.monotonic() + 120

    def enough():
        found[:] = explained(job)
        named[:] = [(slow, did[0]) for slow, _, did in found if did and slow["func"]]
        return len(named) >= 4 or (time.monotonic() > until and waits_for_a_cpu(job.pid))
    # Not every one: a thread that mostly sleeps is read seldom, and of one that other processes keep from running nothing is said.
    wait_until(enough, 240, "four slow steps with a function", interval=1)
    for slow, did in named:
        assert slow["func"] == did and slow["file"].endswith("slow_steps.py") and slow["line"] > 0, (slow, did)
        assert 200 < slow["more_ms"] < 700, slow
    for slow, row, did in found:  # others are slow because the machine is: nothing that the job did not do is said of them
        assert did or slow["func"] not in PLANTED, (slow, row)


def test_on_the_screen(training_job, screen_of):  # noqa: F811
    job = training_job("slow_steps")
    s = screen_of(job, 160, 40)
    s.type("6")
    s.wait_for("[6 Steps]", PATIENCE)
    wait_until(lambda: re.search(r"slow \(over .* in all: .*(wait_for_storage|evaluate_metrics) \(slow_steps\.py:\d+\) \d+ %", s.text()), PATIENCE,
               "the functions to be named")
    s.type("\\slow")
    s.keys("Enter")
    s.wait_for("FILTER slow", PATIENCE)
    wait_until(lambda: re.search(r"^ +\d+ .*x! .* (wait_for_storage|evaluate_metrics) \(slow_steps\.py:\d+\) \+\d+ ms", s.text(), re.M), PATIENCE,
               "a step with its function")
    s.type("q")
