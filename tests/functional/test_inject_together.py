# SPDX-License-Identifier: Apache-2.0
"""Several of our programs come to one job at the same moment: whoever is second waits for the first, and uses its agent."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import wait_until
from inject_support import BUSY, SLEEP, job  # noqa: F401 (fixture)

FREEZE_AFTER = {"seized": 1, "stopped": 2}  # steps of the injection after which it holds the job's only thread


def slept(pid):
    """How many times the threads of a process's children have waited for something."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            try:
                for thread in os.listdir(f"/proc/{child}/task"):
                    with open(f"/proc/{child}/task/{thread}/status", encoding="utf-8") as file:
                        total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M).group(1))
            except OSError:
                continue
    return total


@pytest.fixture
def begun():
    """Starts a program; ends it after the test, whatever it does."""
    started = []

    def begin(*command):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process
    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def first(begun, build_dir, tmp_path, ptrace):
    """An injection that stands still while it traces the job, as one of our programs does that gets no processor; SIGCONT lets it go on."""
    program = shutil.copy(os.path.join(build_dir, "tests", "tools", "inject_step"), tmp_path / "probing")

    def hold(running, held):
        process = begun(program, "after", FREEZE_AFTER[held], int(signal.SIGSTOP), running.pid,
                        os.path.join(build_dir, "libprobing.so"), 80000)

        def stands():
            with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "T"
        wait_until(stands, 30, "the first to stand still")
        assert running.status(running.pid, "TracerPid") != "0"
        return process
    return hold


def programs(probing, probing_top, pid):
    return ([probing.path, pid, "backtrace", "--json"], [probing_top.path, "--export", "json", "--duration", "200ms", pid])


def modes(processes):
    found = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        target = json.loads(out)["target"]
        found.append((target["mode"], target["mode_reason"]))
    return found


@pytest.mark.parametrize("held", FREEZE_AFTER)
@pytest.mark.parametrize("body", [SLEEP, BUSY], ids=("asleep", "busy"))
def test_who_is_second_waits_for_the_first(job, first, begun, probing, probing_top, body, held):  # noqa: F811
    running = job(body)
    attaching = first(running, held)
    second = [begun(*command) for command in programs(probing, probing_top, running.pid)]
    for process in second:
        wait_until(lambda: process.poll() is not None or slept(process.pid) > 20, 30, "the second to have looked at the job")
    attaching.send_signal(signal.SIGCONT)
    assert modes(second) == [("agent", None)] * 2
    assert attaching.wait(60) == 0
    running.goes_on()


def test_who_waits_can_be_interrupted(job, first, begun, probing):  # noqa: F811
    running = job(SLEEP)
    attaching = first(running, "stopped")
    second = begun(probing.path, running.pid, "inject", "--timeout", "60s")
    wait_until(lambda: second.poll() is not None or slept(second.pid) > 20, 30, "the second to have looked at the job")
    second.send_signal(signal.SIGINT)
    _, err = second.communicate(timeout=20)
    assert (second.returncode, err) == (3, f"probing: interrupted; process {running.pid} is as it was\n")
    attaching.send_signal(signal.SIGCONT)
    assert attaching.wait(60) == 0
    running.goes_on()


def test_nobody_waits_longer_than_the_limit(job, first, probing):  # noqa: F811
    """The first does not end: then the job is read from outside, and why is said."""
    running = job(SLEEP)
    attaching = first(running, "stopped")
    refused = probing(running.pid, "inject", "--timeout", "1s")
    assert refused.status == 3
    # Who traces is a thread.
    who = re.fullmatch(rf"probing: process {running.pid} is being traced by process (\d+) \(probing\) at this moment: try again\n",
                       refused.stderr)
    assert who and who.group(1) in os.listdir(f"/proc/{attaching.pid}/task"), refused.stderr
    target = probing(running.pid, "backtrace", "--json", timeout=60).ok().json()["target"]
    assert target["mode"] == "readonly" and "try again" in target["mode_reason"]
    attaching.send_signal(signal.SIGCONT)
    assert attaching.wait(60) == 0
    running.goes_on()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_many_pairs_beside_load(job, begun, probing, probing_top):  # noqa: F811
    for _ in range(3 * (os.cpu_count() or 1)):
        begun(sys.executable, "-c", "while True: pass")
    for turn in range(8):
        running = job((SLEEP, BUSY)[turn % 2])
        text, top = programs(probing, probing_top, running.pid)
        pair = ((text, text), (top, top), (text, top))[turn % 3]
        assert modes([begun(*command) for command in pair]) == [("agent", None)] * 2
        running.goes_on()
        running.target.end()
