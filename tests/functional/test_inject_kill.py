# SPDX-License-Identifier: Apache-2.0
"""The injector ends, by SIGKILL or because it is asked to, after each of its steps in turn: the job lives, is not stopped, goes
on, with its registers, results, threads, descriptors, code and masks; and a new injector can do its work."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from inject_support import agent, broken_agent, compile_agent, inject, tool, vectors
from kill_support import KINDS, PAGE, Stepper, start_victim

__all__ = ["agent", "broken_agent", "compile_agent", "inject", "tool", "vectors"]  # fixtures

FULL = bool(os.environ.get("PROBING_KILL_FULL"))
ALL = (*KINDS, "registers", "python")
REGION = 80 * 1024 // PAGE
MOST_STEPS = 400


@pytest.fixture
def stepper(build_dir, ptrace):
    return Stepper(build_dir)


@pytest.fixture
def victims(target, tmp_path, build_dir, vectors):
    """One job of every kind, all at work."""
    return [start_victim(target, tmp_path, build_dir, vectors, kind) for kind in ALL]


def in_parallel(function, things):
    with ThreadPoolExecutor(len(things)) as pool:
        return [done.result() for done in [pool.submit(function, thing) for thing in things]]


def kill_everywhere(stepper, victim, agent_path, when):
    """How many steps there were."""
    for number in range(1, MOST_STEPS):
        done = stepper(victim, agent_path, when, number, signal.SIGKILL)
        victim.settle(f"killed {when} step {number}")
        print(victim.kind, when, number, victim.pages(), victim.interrupted())
        if done.returncode != -signal.SIGKILL:
            return number - 1
    raise AssertionError(f"more than {MOST_STEPS} steps")


@pytest.mark.timeout(1500 if FULL else 240)
def test_killed_after_every_step(victims, stepper, inject, broken_agent, agent):
    """What may be left is counted: one mapping for a kill in the moment between mmap and the step that sees to its end, and
    one EINTR for one in the moment between a stop and the step that makes the call be made again."""
    def matrix(victim):
        steps = stepper.steps(victim, broken_agent)
        victim.settle("the first")
        size = victim.pages()  # with what libc keeps of a thread that has ended
        for when in ("before", "half", "after") if FULL else ("after",):
            done = kill_everywhere(stepper, victim, broken_agent, when)
            assert done >= len(steps) // 2 > 10, (done, steps)
        left = victim.pages() - size
        print(f"{victim.kind}: {len(steps)} steps; {left // REGION} regions left, {victim.interrupted()} calls interrupted")
        rounds = 3 if FULL else 1
        assert left <= 5 * REGION * rounds or victim.kind == "python", f"{victim.kind}: {left} pages more than before"
        assert victim.interrupted() <= (6 * rounds if victim.kind == "epoll" else 0), victim.kind
        inject(victim.pid, agent).ok()
        victim.goes_on()
    in_parallel(matrix, victims)
