# SPDX-License-Identifier: Apache-2.0
"""The injector ends, by SIGKILL or because it is asked to, after each of its steps in turn: the job lives, is not stopped, goes
on, with its registers, results, threads, descriptors, code and masks; and a new injector can do its work."""

import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import wait_until
from inject_support import agent, broken_agent, compile_agent, inject, tool, vectors
from kill_support import KINDS, PAGE, SIGNAL, Stepper, start_victim

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


@pytest.mark.long
@pytest.mark.timeout(1500 if FULL else 600)
def test_killed_after_every_step(victims, stepper, inject, broken_agent, agent):
    def matrix(victim):
        stepper(victim, broken_agent)
        victim.settle("the first")  # libc keeps an arena and a stack for the next thread
        for when in ("before", "half", "after") if FULL else ("after",):
            mappings, interruptions = kill_everywhere(stepper, victim, broken_agent, when)
            print(f"{victim.kind}, {when}: {mappings} mappings left, {interruptions} calls interrupted")
        inject(victim.pid, agent, 30000).ok()
        victim.goes_on()
    in_parallel(matrix, victims)


ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ask_everywhere(stepper, victim, agent_path):
    """Asks it to end at every step. How many times that was in time."""
    in_time = 0
    for number in range(1, MOST_STEPS):
        interrupted = victim.interrupted()
        done = stepper(victim, agent_path, "after", number, ASKED[number % len(ASKED)])
        what = f"{victim.kind}, asked after step {number}: {done.steps}: {done.stderr}"
        assert done.stderr.count("\n") == 1, what
        said = f"interrupted; process {victim.pid} is as it was\n"
        late = f"interrupted; the attach in process {victim.pid} ends by itself in a moment\n"  # the machine stood still
        if done.stderr != late:
            assert victim.same() is None, f"{what}: {victim.same()}"  # at once: it has not left anything to be done
        victim.settle(what)
        assert victim.interrupted() == interrupted, what
        assert (done.status, done.stderr) in ((1, said), (1, late)) or (done.status == 3 and "could not load" in done.stderr), what
        in_time += done.status == 1
        if not done.signalled:
            return in_time
    raise AssertionError(f"more than {MOST_STEPS} steps")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_asked_to_end_after_every_step(victims, stepper, broken_agent):
    def matrix(victim):
        stepper(victim, broken_agent)
        victim.settle("the first")
        size = victim.pages()
        in_time = ask_everywhere(stepper, victim, broken_agent)
        assert in_time > FEWEST_STEPS, f"{victim.kind}: {in_time}"
        assert victim.kind == "python" or victim.pages() == size
    in_parallel(matrix, victims)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_signal_for_the_job_at_every_step(target, tmp_path, build_dir, vectors, stepper, broken_agent):
    """It arrives once, with all that it carries, whether the injector lives or dies at that moment."""
    victims = [start_victim(target, tmp_path, build_dir, vectors, kind, number)
               for kind in ("futex", "read", "epoll") for number in range(2)]

    def matrix(victim):
        ends = signal.SIGKILL if victims.index(victim) % 2 else 0
        sent = carried = 0
        for number in range(1, MOST_STEPS):
            done = stepper(victim, broken_agent, "after", number, ends, to_job=SIGNAL)
            what = f"{victim.kind}, step {number}: {done.steps}"
            sent, carried = sent + done.signalled, carried + done.signalled * number
            wait_until(lambda: victim.signals()[0] >= sent, 20, f"{what}: signal {sent}, {victim.signals()}")
            assert victim.signals() == (sent, carried, 0), what
            victim.settle(what)
            if not done.signalled:
                assert number > FEWEST_STEPS
                return
        raise AssertionError(f"more than {MOST_STEPS} steps")
    in_parallel(matrix, victims)


@pytest.mark.parametrize("sig", ASKED)
def test_the_verb_is_asked_to_end(target, tmp_path, build_dir, vectors, ptrace, sig):
    """`probing inject`: one line, and the status of something that was not done; or it was done already."""
    victim = start_victim(target, tmp_path, build_dir, vectors, "futex")
    verb = subprocess.Popen([os.path.join(build_dir, "probing"), str(victim.pid), "inject"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: asked_at(verb.pid, sig) or verb.poll() is not None, 20, "the verb to be ready for signals")
    verb.send_signal(sig)
    out, err = verb.communicate(timeout=30)
    assert (verb.returncode, err) == (3, f"probing: interrupted; process {victim.pid} is as it was\n") or (
        verb.returncode == 0 and ("injected" in out or "already loaded" in out)), (verb.returncode, out, err)
    victim.goes_on()
    if verb.returncode == 3:
        assert victim.same() is None


def asked_at(pid, sig):
    """Does it hold this signal back?"""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return int(re.search(r"^SigBlk:\s*(\S+)", status.read(), re.M).group(1), 16) >> (sig - 1) & 1
    except (OSError, AttributeError):
        return False
