# SPDX-License-Identifier: Apache-2.0
"""Keys that arm something in a training job, in a real terminal: what they begin the same key ends, and leaving the TUI ends too,
however it is left. The job trains on, and computes what it would."""

import os
import re
import signal

import pytest

from conftest import wait_until as wait
from test_tui_tmux import Screen
from training_job import training_job  # noqa: F401

pytestmark = pytest.mark.timeout(400)


def lease(job, what):
    """As the agent tells it; None: it tells nothing of that."""
    return next((one for one in job.status()["leases"] if one["what"] == what), None)


def is_held(job, what):
    return bool(lease(job, what) and lease(job, what)["clients"])


def wait_held(job, what):
    wait(lambda: is_held(job, what), 60, f"{what} to be armed", interval=0.1)


def wait_none(job, what):
    """Nobody has it, and nothing of it is in the job."""
    wait(lambda: not (one := lease(job, what)) or (one["clients"] == 0 and not one["hooks_in"]), 60, f"{what} to be disarmed", interval=0.1)


@pytest.fixture
def opened(training_job, tmux, tmp_path, wait_until, probing_top, ptrace):  # noqa: F811
    """The job, and a function that looks at it in a terminal."""
    job = training_job("cnn")
    job.wait_steps(5)
    screens = []

    def look():
        folder = tmp_path / f"screen{len(screens)}"
        folder.mkdir()
        screen = Screen(tmux, folder, 160, 45, wait_until)
        screens.append(screen)
        screen.shell(f"{probing_top.path} --screen threads {job.pid}; echo LEFT-$?")
        screen.wait_for("CONNECTED", 90)
        return screen

    yield job, look
    for screen in screens:
        screen.close()


def to_modules(screen):
    screen.keys("8")
    screen.wait_for("parameters", 90)


def to_steps(screen):
    screen.keys("6")
    screen.wait_for("steps/s", 90)


def leave(screen):
    screen.keys("q")
    screen.wait_for("LEFT-0", 60)


def test_one_key_arms_and_disarms(opened):
    """The times of modules: on, off, on, and off by leaving. What was looked into is in the table."""
    job, look = opened
    screen = look()
    to_modules(screen)
    screen.keys("X")
    screen.wait_for("Time the modules of some training steps?", 60)
    assert not lease(job, "trace") or not lease(job, "trace")["owners"]
    screen.keys("y")
    wait_held(job, "trace")
    wait(lambda: lease(job, "trace")["looks"] >= 2, 90, "steps to be looked into", interval=0.1)
    screen.keys("X")
    wait(lambda: re.search(r"trace: (stops after|over|\d+ steps? seen)", screen.text()), 60, "that it ends, or has ended")
    wait_none(job, "trace")
    screen.wait_gone("trace: stops after", 60)  # the next key is another wish
    screen.keys("X")
    wait_held(job, "trace")
    leave(screen)
    wait_none(job, "trace")
    wait(lambda: any(row["stage"] == "forward" for row in job.rows("python.torch_trace")), 60, "rows of modules", interval=0.1)
    job.wait_steps(5)
    job.end()


@pytest.mark.parametrize("key, what, to", [("X", "trace", to_modules), ("V", "nan", to_steps)])
def test_a_terminal_that_goes_disarms(opened, key, what, to):
    """A client that is killed, and one whose terminal is closed; a job that is stopped meanwhile has it armed still."""
    job, look = opened
    for number in (signal.SIGKILL, signal.SIGHUP):
        screen = look()
        to(screen)
        pid = int(screen.tmux("list-panes", "-F", "#{pane_pid}"))
        top = wait(lambda p=pid: children(p), 30, "the program in the terminal", interval=0.1)[0]
        os.kill(job.pid, signal.SIGSTOP)  # no step ends by itself: it is armed when the client goes
        try:
            screen.keys(key)
            screen.wait_for({"trace": "Time the modules", "nan": "Search the next steps"}[what], 60)
            screen.keys("y")
            screen.wait_for({"trace": "timing modules", "nan": "searching for"}[what], 60)
            os.kill(top, number)
        finally:
            os.kill(job.pid, signal.SIGCONT)
        wait_none(job, what)
    job.wait_steps(5)
    job.end()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def test_a_hunt_ends_by_itself(opened):
    job, look = opened
    screen = look()
    to_steps(screen)
    screen.keys("V")
    screen.wait_for("Search the next steps for NaN?", 60)
    screen.keys("y")
    screen.wait_for("nothing non-finite in", 90)
    row = wait(lambda: job.rows("python.nonfinite"), 60, "its row", interval=0.1)[-1]
    assert row["stage"] == "none"
    wait_none(job, "nan")
    leave(screen)
    job.end()


def test_a_profiler_is_run_by_the_second_key_alone(opened):
    """The first one counts what it would cost: left then, nothing is run."""
    job, look = opened
    screen = look()
    to_steps(screen)
    screen.keys("K")
    screen.wait_for("press the key again to do it", 120)
    wait_none(job, "profiler")
    assert not [row for row in job.rows("profiling_data") if row["kind"] == "profiler"]
    screen.keys("K")
    wait(lambda: [row for row in job.rows("profiling_data") if row["kind"] == "profiler"], 120, "rows of the profiler", interval=0.2)
    wait_none(job, "profiler")
    leave(screen)
    job.wait_steps(5)
    job.end()
