# SPDX-License-Identifier: Apache-2.0
"""The Steps screen and the verdict in the Overview, in a real terminal, on a job of which it is known what it does."""

import re

import pytest
from conftest import wait_until
from test_tui_tmux import Screen
from training_job import training_job  # noqa: F401

pytestmark = pytest.mark.timeout(400)
PATIENCE = 120


@pytest.fixture
def screen_of(tmux, tmp_path, probing_top, ptrace):
    opened = []

    def start(job, columns=120, rows=40):
        s = Screen(tmux, tmp_path, columns, rows, wait_until)
        opened.append(s)
        state = tmp_path / "state"
        s.shell(f"XDG_STATE_HOME={state} XDG_CONFIG_HOME={state} {probing_top.path} --screen threads {job.pid}; echo status=$?")
        s.wait_for("Stack of ", PATIENCE)
        return s
    yield start
    for one in opened:
        one.close()


def newest(s):
    """Number of the step in the first row."""
    found = re.search(r"^ STEP.*\n +(\d+) ", s.text(), re.M)
    return int(found[1]) if found else 0


def rate(s):
    found = re.search(r"^ ([\d.]+) steps/s ", s.text(), re.M)
    return float(found[1]) if found else None


def test_steps_of_a_slow_loader(training_job, screen_of):  # noqa: F811
    job = training_job("slow_loader")
    s = screen_of(job)
    s.type("6")
    s.wait_for("[6 Steps]", PATIENCE)
    wait_until(lambda: newest(s) > 150, PATIENCE, "150 steps")
    text = s.text()
    cause = re.search(r"(\d+) of \d+ slow \(over 1\.2 x median\), .* in all: (\w+) (\d+) %", text)
    assert cause and cause[2] == "data", text
    assert re.search(r"^ step time +\d", text, re.M) and re.search(r"^ loader wait +\d+ %", text, re.M)
    s.type("Z")
    s.wait_for("Steps have stopped", PATIENCE)
    frozen, was = newest(s), rate(s)
    before = job.count()
    job.wait_steps(50)
    assert newest(s) == frozen
    truth = [line for line in job.steps() if line["step"] <= before][-100:]
    took = [step["ended"] - step["began"] for step in truth]
    assert 0.6 < was * sum(took) / len(took) < 1.6  # not quite the same steps
    s.type("Z")
    wait_until(lambda: newest(s) > frozen, PATIENCE, "newer steps")
    s.type("\\slow")
    s.keys("Enter")
    s.wait_for("FILTER slow", PATIENCE)
    rows = re.findall(r"^ +\d+ +\S+ m?s +[\d.]+x(.)", s.text(), re.M)
    assert rows and set(rows) == {"!"}
    s.keys("Escape")
    wait_until(lambda: "FILTER" not in s.text(), PATIENCE, "all steps")  # Escape and "-" at once are one key
    s.keys("-", "-", "-")
    s.wait_for("8 steps a column", PATIENCE)
    s.type("q")
    s.wait_for("status=0", PATIENCE)


def test_the_verdict_leads_to_it(training_job, screen_of, wait_until):  # noqa: F811
    job = training_job("slow_loader")
    s = screen_of(job, 80, 24)
    s.type("1")
    s.wait_for("INPUT-BOUND", PATIENCE)
    assert re.search(r"^ INPUT-BOUND +\d+ % of a step waits for the loader", s.text(), re.M), s.text()
    s.type("2")  # in few words on every other screen, beside what else must be seen
    s.wait_for("Stack of", PATIENCE)
    wait_until(lambda: "INPUT-BOUND" in "".join(s.text().splitlines()[3:4]), PATIENCE, "the header")
    s.type("1")
    s.wait_for("% of a step waits", PATIENCE)
    s.keys("Home", "Enter")
    s.wait_for("Loader", PATIENCE)
    s.type("Q")
    s.wait_for("status=0", PATIENCE)
