# SPDX-License-Identifier: Apache-2.0
"""Reading from outside with --block: exact stacks of running threads, and a job that does not notice, however we end."""

import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from conftest import wait_until
from outside_support import LEGAL, calls, inside, outside_sample, thread_states  # noqa: F401 (fixtures)

LOOKS = 3000


def impossible(stacks):
    """How often a stack was taken for whole that the program cannot have."""
    return {stack: times[0] for stack, times in stacks.items() if stack not in LEGAL and times[0]}


@pytest.mark.timeout(120)
def test_no_impossible_stack(each_python, calls, outside_sample, ptrace):  # noqa: F811
    running = calls(python=each_python)
    stacks, totals = outside_sample(running.pid, LOOKS, "block")
    assert impossible(stacks) == {}
    assert sum(times[0] for times in stacks.values()) >= LOOKS * 0.95 - totals["failed"], stacks
    assert totals["held"] > LOOKS / 2, totals  # it was stopped, and not by chance asleep
    assert len(stacks) >= 10, stacks  # and not always at the same place
    running.goes_on()


@pytest.mark.timeout(120)
def test_torn_stacks_are_marked_without_it(calls, outside_sample):  # noqa: F811
    """Without stopping, a stack that changed is marked; what is not marked is legal but for a few."""
    running = calls()
    for _ in range(10):  # on a machine that does nothing else a stack seldom changes within a look
        stacks, totals = outside_sample(running.pid, LOOKS, "passive")
        assert totals["held"] == 0
        assert sum(impossible(stacks).values()) <= LOOKS * 0.05
        torn = sum(times[1] for times in stacks.values())
        if torn:
            break
    assert torn > 0
    running.goes_on()


def test_the_time_stopped_is_told(calls, probing, probing_top, ptrace):  # noqa: F811
    running = calls()
    before = inside(running.job)
    document = probing(str(running.pid), "backtrace", "--block", "--json").ok().json()
    main = document["threads"][0]
    assert main["state"] == "R" and 0 < main["stopped_us"] < 100_000 and main["torn"] is False
    assert tuple(f["func"] for f in reversed(main["frames"])) in LEGAL
    # on a busy machine it cannot always be stopped in time
    wait_until(lambda: re.search(r"Thread MainThread .*, stopped for \d+\.\d\d ms", probing(str(running.pid), "backtrace", "--block").ok().stdout),
               60, "a thread that was stopped")
    document = probing_top("--export", "json", "--duration", "1", "--block", str(running.pid)).ok().json()
    assert document["sampling"]["samples"] >= 1 and document["sampling"]["torn"] == 0
    for stack in document["samples"]:
        assert tuple(f["func"] for f in reversed(stack["frames"])) in LEGAL
    running.goes_on()
    assert inside(running.job) == before


def test_exact_but_not_stopped_without_it(calls, probing):  # noqa: F811
    running = calls()
    document = probing(str(running.pid), "backtrace", "--no-inject", "--json").ok().json()
    assert document["threads"][0]["stopped_us"] == 0 and document["target"]["blocking"] is False


def test_what_was_left_out_is_said(calls, probing_top, ptrace):  # noqa: F811
    """Folded stacks have no place for it: a line on stderr, only when it matters."""
    running = calls()

    def told():
        """On a busy machine the job may hardly run while it is looked at."""
        return probing_top("--export", "folded", "--duration", "1", "--no-inject", str(running.pid)).ok().stderr
    line = wait_until(told, 60, "samples that had to be left out")
    assert re.fullmatch(r"probing-top: \d+ of \d+ samples were left out: .*--block.*\n", line), line
    assert probing_top("--export", "folded", "--duration", "1", "--block", str(running.pid)).ok().stderr == ""
    assert probing_top("--export", "json", "--duration", "1", "--no-inject", str(running.pid)).ok().stderr == ""


# --- a job that does not notice ---------------------------------------------------------------------------------

BLOCKING = """
import ctypes, json, os, sys, threading, time
native = ctypes.CDLL(sys.argv[1])
class Count(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("calls", "interrupted", "wrong")]
kinds = native.blocking_kinds()
counts, stop = [Count() for _ in range(kinds)], ctypes.c_int(0)
def run(kind):
    if native.blocking_run(kind, ctypes.byref(counts[kind]), ctypes.byref(stop)) != 0:
        counts[kind].wrong += 1000
threads = [threading.Thread(target=run, args=(kind,)) for kind in range(kinds)]
for thread in threads:
    thread.start()
while any(count.calls < 5 for count in counts):
    time.sleep(0.01)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
sys.stdin = None
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
stop.value = 1
for thread in threads:
    thread.join()
print(json.dumps([[c.calls, c.interrupted, c.wrong] for c in counts]))
"""


@pytest.mark.timeout(120)
def test_calls_that_wait_are_not_interrupted(target, outside_sample, probing_top, build_dir, ptrace, tmp_path):  # noqa: F811
    job = target(BLOCKING, os.path.join(build_dir, "tests", "targets", "blocking.so"), tmp_path / "enough")
    _, totals = outside_sample(job.pid, 300, "block")
    probing_top("--export", "folded", "--duration", "1", "--block", str(job.pid)).ok()
    (tmp_path / "enough").touch()
    job.process.wait(timeout=30)
    assert job.process.returncode == 0, job.output()
    counts = json.loads(job.output())
    assert totals["held"] >= 100, totals
    assert all(calls >= 5 for calls, _, _ in counts)
    assert [interrupted for _, interrupted, _ in counts] == [0] * len(counts), counts
    assert [wrong for _, _, wrong in counts] == [0] * len(counts), counts


SIGNALS = """
import json, os, signal, sys
reader, writer = os.pipe()
os.set_blocking(reader, False)
os.set_blocking(writer, False)
signal.signal(signal.SIGUSR1, lambda number, frame: None)
signal.set_wakeup_fd(writer)  # the C handler writes a byte for each that comes
sent = arrived = 0
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while not os.path.exists(sys.argv[1]):
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGUSR1)
        sent += 1
    try:
        arrived += len(os.read(reader, 65536))
    except BlockingIOError:
        pass
print(json.dumps([sent, arrived]))
"""


@pytest.mark.timeout(120)
def test_signals_arrive(target, outside_sample, ptrace, tmp_path):  # noqa: F811
    """A signal that was on its way when the thread was stopped takes its course."""
    job = target(SIGNALS, tmp_path / "enough")
    _, totals = outside_sample(job.pid, 2000, "block")
    (tmp_path / "enough").touch()
    assert job.process.wait(timeout=30) == 0, job.output()
    sent, arrived = json.loads(job.output())
    assert totals["held"] > 1000 and sent > 1000 and sent == arrived, (totals, sent, arrived)


def reader_of(program, pid):
    return subprocess.Popen([program, "--export", "folded", "--duration", "60", "--block", str(pid)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", (signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
def test_we_end_at_any_moment(calls, probing_top, ptrace, how):  # noqa: F811
    running = calls()
    chance = random.Random(7)
    for _ in range(12):
        reader = reader_of(probing_top.path, running.pid)
        wait_until(lambda: len(os.listdir(f"/proc/{reader.pid}/task")) > 1, what="the reader to run")
        time.sleep(chance.uniform(0.01, 0.15))  # any moment will do: that is what is tested
        reader.send_signal(how)
        assert reader.wait(timeout=20) == -how
        reader.stdout.close()
        reader.stderr.close()
        running.goes_on()


def test_it_dies_while_stopped(calls, probing_top, ptrace):  # noqa: F811
    running = calls()
    reader = reader_of(probing_top.path, running.pid)
    wait_until(lambda: len(os.listdir(f"/proc/{reader.pid}/task")) > 1, what="the reader to run")
    os.kill(running.pid, signal.SIGKILL)
    out, err = reader.communicate(timeout=30)
    assert (reader.returncode, out) == (4, "") and err.count("\n") == 1 and "has ended" in err


def test_two_at_the_same_time(calls, probing_top, ptrace):  # noqa: F811
    """Only one can trace a thread: the other reads it as it runs, and neither harms the job."""
    running = calls()
    readers = [subprocess.Popen([probing_top.path, "--export", "json", "--duration", "1", "--block", str(running.pid)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for reader in readers:
        out, err = reader.communicate(timeout=60)
        assert reader.returncode == 0 or "is being traced" in err or "not allowed" in err, err
    running.goes_on()
    assert not any(state in "tT" for state in thread_states(running.pid).values())
