# SPDX-License-Identifier: Apache-2.0
"""Comparing in a real terminal, on a job that does other work from some moment on, and stepping back to before it did."""

import re

import pytest

from test_record import asked
from test_tui_tmux import Screen

pytestmark = pytest.mark.timeout(400)

PATIENCE_S = 120

# The first work until the file is there, the second from then on.
TURNING_JOB = """
import os, sys, time

def first_work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def second_work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def main():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    while not os.path.exists(sys.argv[1]):
        first_work(0.02)
    open(sys.argv[2], "w").close()
    while True:
        second_work(0.02)

main()
"""


@pytest.fixture
def turning(target, tmp_path, wait_until):
    """The job; .turn() makes it do the other work and waits until it does."""
    asked, done = tmp_path / "turn", tmp_path / "turned"
    job = target(TURNING_JOB, asked, done, name="turning_job.py")

    def turn():
        asked.touch()
        wait_until(done.exists, PATIENCE_S, "the other work")

    job.turn = turn
    return job


@pytest.fixture
def screen(tmux, tmp_path, wait_until):
    opened = []

    def start(command):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        opened.append(Screen(tmux, folder, 120, 30, wait_until))
        opened[-1].shell(f"{command}; echo status=$?")
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def delta(text, function):
    """DELTA of a function's row in Top."""
    row = re.search(r"^ *([-+]?[0-9.]+) +[0-9.?]+ +[0-9.?]+ +[-+]?[0-9.?]+ +[0-9.?]+ +[0-9.?]+ " + function + r"\b", text, re.M)
    return float(row[1]) if row else None


def wait_delta(s, wait_until, function, low, high):
    def found():
        got = delta(s.text(), function)
        return got is not None and low <= got <= high
    try:
        wait_until(found, PATIENCE_S, f"{function} with {low} to {high}")
    except pytest.fail.Exception as failure:
        pytest.fail(f"{failure.msg}:\n{s.text()}")


def test_since_the_mark(screen, turning, probing_top, ptrace, wait_until):
    s = screen(f"{probing_top.path} --screen threads {turning.pid}")
    s.wait_for("Stack of ", PATIENCE_S)
    s.type("4")
    wait_until(lambda: re.search(r"^ *[0-9.]+ +[0-9.]+ +[0-9.]+s +[0-9.]+s first_work", s.text(), re.M), PATIENCE_S, "samples")
    s.type("'")
    s.wait_for("mark set: ", PATIENCE_S)
    turning.turn()
    s.wait_for("second_work", PATIENCE_S)
    s.type(":window mark")
    s.keys("Enter")
    s.wait_for("since mark ", PATIENCE_S)
    s.type("d")
    s.wait_for(" DIFF ", PATIENCE_S)
    s.wait_for("since mark against the ", PATIENCE_S)
    wait_delta(s, wait_until, "second_work", 50, 100)
    wait_delta(s, wait_until, "first_work", -100, -50)
    s.type("3")
    s.wait_for("+second_work", PATIENCE_S)
    s.type("4")
    s.wait_for("sorted by DELTA", PATIENCE_S)
    s.type("d")
    s.wait_gone(" DIFF ", PATIENCE_S)
    s.type("2,")
    s.wait_for(" behind", PATIENCE_S)
    s.keys("End")
    s.wait_gone(" FROZEN ", PATIENCE_S)
    s.type("q")
    s.wait_for("status=0", PATIENCE_S)
    assert turning.alive()


@pytest.mark.long
def test_two_recordings(screen, turning, probing, probing_top, tmp_path, ptrace, wait_until):
    paths = [tmp_path / "first.db", tmp_path / "second.db"]

    def seen(function):
        text = f"SELECT count(*) FROM python.samples WHERE fold(stack_id) LIKE '%{function}%'"
        return asked(probing, turning.pid, text)[0][0] > 15

    wait_until(lambda: seen("first_work"), PATIENCE_S, "samples")
    probing(turning.pid, "record", "-o", paths[0]).ok()
    turning.turn()
    wait_until(lambda: seen("second_work"), PATIENCE_S, "samples of the other work")
    probing(turning.pid, "record", "-o", paths[1]).ok()
    refused = probing_top("--diff", turning.pid, "--export", "txt", "--once", paths[1])
    assert refused.status == 2 and "--diff is for the screens" in refused.stderr
    s = screen(f"{probing_top.path} --screen threads {paths[1]} --diff {paths[0]}")
    s.wait_for("Stack of ", PATIENCE_S)
    s.type("4")
    s.wait_for("against recording ", PATIENCE_S)
    wait_until(lambda: (delta(s.text(), "second_work") or 0) > 0 and (delta(s.text(), "first_work") or 0) < 0,
               PATIENCE_S, "both differences")
    s.type("q")
    s.wait_for("status=", PATIENCE_S)
