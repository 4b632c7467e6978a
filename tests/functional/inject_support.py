# SPDX-License-Identifier: Apache-2.0
"""Jobs that count their steps in shared memory, agents compiled for the tests, and the injector, for test_inject_*.py."""

import os
import re
import shutil
import struct
import subprocess

import pytest

from conftest import run_command, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Counts its steps in a file of 8 bytes, mapped, so that the last step is there even while the GIL is held for ever.
COUNTER = """
import ctypes, mmap, os, struct, sys, threading, time
_file = open(sys.argv[1], "r+b")
_page = mmap.mmap(_file.fileno(), 64)
_file.close()
class Cell(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_uint64), ("bad", ctypes.c_uint64)]
cell = Cell.from_buffer(_page)
def ready():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
"""


class Job:
    """A target with a shared cell: steps it has done and things that went wrong in it."""

    def __init__(self, target, path):
        self.target = target
        self.pid = target.pid
        self.path = path

    def cell(self):
        with open(self.path, "rb") as file:
            return struct.unpack("QQ", file.read(16))

    def goes_on(self):
        """Steps rise and nothing of it is stopped."""
        before = self.cell()[0]
        wait_until(lambda: self.cell()[0] > before, 10, "the job's next step")
        wait_until(lambda: not any(state in "tT" for state in self.states().values()), 5, "no thread to be stopped")
        assert self.cell()[1] == 0, f"{self.cell()[1]} things went wrong in the job"

    def status(self, tid, key):
        with open(f"/proc/{self.pid}/task/{tid}/status", encoding="utf-8", errors="replace") as file:
            return re.search(rf"^{key}:\s*(\S+)", file.read(), re.M).group(1)

    def states(self):
        found = {}
        for tid in self.target.tids():
            try:
                found[tid] = self.status(tid, "State")
            except (OSError, AttributeError):
                continue
        return found

    def masks(self, tids):
        return {tid: self.status(tid, "SigBlk") for tid in tids}

    def maps(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()

    def code(self):
        """Executable mappings, without addresses' growth: where code is."""
        return sorted(line.split()[0] for line in self.maps() if line.split()[1][2] == "x")

    def memory_files(self):
        return [link for link in self.target.fds().values() if "libprobing" in link]


@pytest.fixture(scope="session")
def compile_agent(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    folder = tmp_path_factory.mktemp("agents")
    with open(os.path.join(ROOT, "VERSION"), encoding="ascii") as file:
        version = file.read().strip()

    def build(name, *flags, version=version):
        out = str(folder / f"{name}.so")
        subprocess.run([compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-D_GNU_SOURCE",
                        f"-I{ROOT}/src", f'-DAGENT_TEST_VERSION="{version}"', "-pthread", *flags, "-o", out,
                        os.path.join(HERE, "inject_agent", "agent.c")], check=True)
        return out
    return build


@pytest.fixture(scope="session")
def agent(compile_agent):
    return compile_agent("good")


@pytest.fixture(scope="session")
def broken_agent(compile_agent):
    """Passes every check from outside, but cannot be loaded."""
    return compile_agent("broken", "-DAGENT_TEST_UNDEFINED", "-Wl,-z,now")


@pytest.fixture(scope="session")
def vectors(build_dir):
    path = os.path.join(build_dir, "tests", "targets", "inject_vectors.so")
    assert os.path.exists(path), f"{path} is not built"
    return path


@pytest.fixture(scope="session")
def tool(build_dir):
    path = os.path.join(build_dir, "tests", "tools", "inject_once")
    assert os.path.exists(path), f"{path} is not built"
    return path


@pytest.fixture
def inject(tool, ptrace):
    """Injects and returns the result; the target may be on a busy machine, so it gets more time than a user's."""
    def run(pid, agent_path, timeout_ms=8000):
        return run_command([tool, pid, agent_path, timeout_ms])
    return run


@pytest.fixture
def job(target, tmp_path):
    def start(body, *args, **options):
        path = str(tmp_path / "cell")
        with open(path, "wb") as file:
            file.write(bytes(64))
        return Job(target(COUNTER + body, path, *args, **options), path)
    return start


def endpoint_of(result):
    assert os.path.exists(result["endpoint"]), result
    return result["endpoint"]


def check_nothing_left(running, before):
    code, fds, tids, masks = before
    wait_until(lambda: running.target.tids() == tids, 10, "our threads to be gone")
    wait_until(lambda: running.code() == code, 10, "our pages to be gone")
    assert running.target.fds() == fds
    assert running.masks(tids) == masks
    running.goes_on()


def snapshot(running):
    tids = running.target.tids()
    return running.code(), running.target.fds(), tids, running.masks(tids)


# --- jobs --------------------------------------------------------------------------------------------------

SLEEP = """
ready()
while True:
    time.sleep(0.02)
    cell.steps += 1
"""

LOCK = """
lock = threading.Lock()
lock.acquire()
def count():
    while True:
        time.sleep(0.02)
        cell.steps += 1
threading.Thread(target=count, daemon=True).start()
ready()
lock.acquire()
"""

SELECT = """
import select
ready()
while True:
    select.select([], [], [], 0.02)
    cell.steps += 1
"""

EPOLL = """
import select
poll = select.epoll()
ready()
while True:
    poll.poll(0.02)
    cell.steps += 1
"""

BUSY = """
ready()
while True:
    cell.steps += 1
    if sum(i * i for i in range(200)) != 2646700:
        cell.bad += 1
"""

MANY = """
def work(n):
    while True:
        time.sleep(0.005 + n * 0.0005)
        bytearray(n * 5000)
        cell.steps += 1
for n in range(60):
    threading.Thread(target=work, args=(n,), daemon=True).start()
ready()
while True:
    time.sleep(1)
"""

DEEP = """
def down(n):
    if n:
        return down(n - 1)
    ready()
    while True:
        time.sleep(0.02)
        cell.steps += 1
sys.setrecursionlimit(5000)
down(900)
"""

VECTORS = """
native = ctypes.PyDLL(sys.argv[2])
ready()
native.vectors_run(ctypes.byref(cell))
"""
