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
REGION = 72 * 1024 // PAGE
FEWEST_STEPS, MOST_STEPS = 20, 400


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
    """Kills it at every step; what is left of that is left by the steps known for it. How many left a mapping, an EINTR."""
    mappings = interruptions = 0
    for number in range(1, MOST_STEPS):
        size, interrupted = victim.pages(), victim.interrupted()
        done = stepper(victim, agent_path, when, number, signal.SIGKILL)
        what = f"{victim.kind}, killed {when} step {number}: {done.steps}"
        victim.settle(what)
        left, seen = victim.pages() - size, victim.interrupted() - interrupted
        if victim.kind != "python":  # which asks for memory and gives it back
            assert left in ((0, REGION) if done.may_leave_a_mapping() else (0,)), f"{what}: {left} pages"
        assert seen <= (victim.kind == "epoll" and done.may_interrupt()), what
        mappings += done.may_leave_a_mapping() and left == REGION
        interruptions += seen
        if not done.signalled:
            assert "could not load" in done.stderr and number > FEWEST_STEPS, (what, done.stderr)
            return mappings, interruptions
        assert done.status == -signal.SIGKILL, what
    raise AssertionError(f"more than {MOST_STEPS} steps")


@pytest.mark.timeout(1500 if FULL else 240)
def test_killed_after_every_step(victims, stepper, inject, broken_agent, agent):
    def matrix(victim):
        stepper(victim, broken_agent)
        victim.settle("the first")  # libc keeps an arena and a stack for the next thread
        for when in ("before", "half", "after") if FULL else ("after",):
            mappings, interruptions = kill_everywhere(stepper, victim, broken_agent, when)
            print(f"{victim.kind}, {when}: {mappings} mappings left, {interruptions} calls interrupted")
        inject(victim.pid, agent).ok()
        victim.goes_on()
    in_parallel(matrix, victims)
