# SPDX-License-Identifier: Apache-2.0
"""The Memory screen in a real terminal, on a job that keeps what it allocates; and of one that has ended, and of a recording."""

import os
import re

import pytest
from test_sql_screen import PatientScreen

pytestmark = pytest.mark.timeout(400)

JOB = r'''
import os, time
kept = []
def keep():
    kept.append(bytearray(200000))
def churn():
    return len(bytearray(400000))
for _ in range(40):
    keep()
os.write(int(os.environ["READY_FD"]), b"ready\n")
os.close(int(os.environ["READY_FD"]))
while True:
    keep()
    churn()
    time.sleep(0.02)
'''
LINE = next(number for number, line in enumerate(JOB.split("\n"), 1) if "kept.append" in line)


@pytest.fixture
def leaking(target, data_dir):  # noqa: ARG001
    return target(JOB, name="leaking.py")


def test_tracing_by_a_key(leaking, ptrace, probing_top, tmux, tmp_path, wait_until):
    """From "not traced" to the line, its flame, its holder; and out again."""
    s = PatientScreen(tmux, tmp_path, 120, 32, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads {leaking.pid}; echo status=$?")
        s.wait_for("Stack of MainThread")
        s.type("M")
        s.wait_for("allocations are not traced: X starts it")
        s.type("X")
        s.wait_for("Trace allocations?")
        s.type("y")
        s.wait_for("tracing: from here")
        s.wait_for(f"leaking.py:{LINE}")
        s.wait_for("peak ")
        s.type("'")
        s.wait_for("GROWTH counts from here")
        wait_until(lambda: re.search(r"MiB +\+[\d.]+ [KM]iB .* keep ", s.text()), 60, "growth since the mark")
        s.type("b")
        s.wait_for("all that lives ")
        s.wait_for(f"keep (leaking.py:{LINE})")
        s.type("b")
        s.wait_for("bytearray")
        wait_until(lambda: re.search(r"\+[\d.]+ [KM]iB +\d+ +\+\d+ +\d+ s +no bound list +kept ", s.text()), 60, "its holder to grow")
        s.type("b")
        s.type("X")
        s.wait_gone("tracing: from here")
        s.type("q")
        s.type("q")
    finally:
        s.close()
    assert leaking.alive()


def test_read_only(leaking, ptrace, probing, probing_top, tmux, tmp_path, wait_until):
    """With --readonly the key is refused; what others have traced is shown."""
    probing(str(leaking.pid), "inject").ok()
    probing(str(leaking.pid), "config", "memory_trace=on").ok()
    s = PatientScreen(tmux, tmp_path, 80, 24, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads --readonly {leaking.pid}; echo status=$?")
        s.wait_for("Stack of MainThread")
        s.type("M")
        s.wait_for("by its settings")
        s.wait_for("keep")
        s.type("X")
        s.wait_for("readonly")
    finally:
        s.close()


def picture(probing_top, *args):
    return probing_top("--export", "txt", "--screen", "memory", "--rows", "45", "--cols", "160", *args, timeout=60).ok().stdout


def test_afterwards(leaking, ptrace, probing, probing_top, tmp_path, wait_until):
    """Of a recording, and of the job after kill -9: what was traced, and how much memory there was."""
    probing(str(leaking.pid), "inject").ok()
    assert "allocations are not traced" in picture(probing_top, str(leaking.pid))
    probing(str(leaking.pid), "config", "memory_trace=on").ok()
    text = "SELECT count(*) AS n FROM memory_allocations WHERE function_name = 'keep'"
    wait_until(lambda: probing(str(leaking.pid), "query", text, "--json").ok().json()["rows"][0]["n"] >= 3, 60, "rows")
    path = str(tmp_path / "run.db")
    probing(str(leaking.pid), "record", "-o", path, "--duration", "1s").ok()
    os.kill(leaking.pid, 9)
    leaking.process.wait(60)
    for what in (path, str(leaking.pid)):
        shown = picture(probing_top, what)
        assert f"leaking.py:{LINE}" in shown and "peak " in shown and "X starts it" not in shown, shown
