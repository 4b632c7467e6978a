# SPDX-License-Identifier: Apache-2.0
"""Jobs and checks for test_outside_*.py: nothing of us is in a process that was only read."""

import json
import os

import pytest

from conftest import run_command, wait_until

# A step is a number in shared memory, so that it can be seen rising whatever the interpreter does.
CALLS = """
import mmap, os, struct, sys
_file = open(sys.argv[1], "r+b")
_page = mmap.mmap(_file.fileno(), 64)
_file.close()
def a6(): pass
def a5(): a6()
def a4(): a5()
def a3(): a4(); a4()
def a2(): a3()
def a1(): a2()
def b6(): pass
def b5(): b6(); b6()
def b4(): b5()
def b3(): b4()
def b2(): b3()
def b1(): b2()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
steps = 0
while True:
    a1(); b1()
    steps += 1
    struct.pack_into("Q", _page, 0, steps)
"""

LEGAL = {tuple(["<module>"] + [f"{chain}{i}" for i in range(1, depth + 1)]) for chain in "ab" for depth in range(7)}


class Calls:
    """A job that does nothing but call functions: no two moments have the same stack."""

    def __init__(self, job, path):
        self.job, self.pid, self.path = job, job.pid, path

    def steps(self):
        with open(self.path, "rb") as file:
            return int.from_bytes(file.read(8), "little")

    def goes_on(self):
        before = self.steps()
        wait_until(lambda: self.steps() > before, 10, "the job's next step")
        wait_until(lambda: not any(state in "tT" for state in thread_states(self.pid).values()), 10,
                   "no thread to be stopped")


@pytest.fixture
def calls(target, tmp_path):
    def start(**options):
        path = str(tmp_path / "steps.bin")
        with open(path, "wb") as file:
            file.write(bytes(64))
        return Calls(target(CALLS, path, **options), path)
    return start


def thread_states(pid):
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as stat:
                found[int(tid)] = stat.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
    return found


def inside(job):
    """What would change if something were put into the job: code that is mapped, descriptors, threads, tracer, signals."""
    with open(f"/proc/{job.pid}/maps", encoding="utf-8", errors="replace") as maps:
        code = sorted(line.split()[0] for line in maps if line.split()[1][2] == "x")
    with open(f"/proc/{job.pid}/status", encoding="utf-8", errors="replace") as status:
        kept = [line for line in status if line.split(":")[0] in ("TracerPid", "SigBlk", "SigIgn", "SigCgt")]
    return code, job.fds(), job.tids(), kept


@pytest.fixture(scope="session")
def outside_sample(build_dir):
    """Looks many times from outside: ({stack: [times whole, times torn]}, {name: number} of totals)."""
    tool = os.path.join(build_dir, "tests", "tools", "outside_sample")

    def run(pid, count, mode, timeout=60):
        result = run_command([tool, pid, count, mode], timeout).ok()
        *lines, totals = result.stdout.splitlines()
        words = totals.split()[1:]
        stacks = {}
        for line in lines:
            whole, torn, names = line.split(" ", 2)
            stacks[tuple(names.split(";"))] = [int(whole), int(torn)]
        return stacks, {name: float(value) for name, value in zip(words[::2], words[1::2])}
    return run


def truth_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
