# SPDX-License-Identifier: Apache-2.0
"""The job is out of everything: no memory, no descriptors, no threads, for the injector's thread or for the agent at any of its
calls. It is refused with the reason, or goes without something; the job is as before, and the agent goes out again."""

import os
import struct

import pytest

from agent_wire import Client, Closed
from conftest import long_but, wait_until
from inject_support import COUNTER, SLEEP, Job, check_nothing_left, inject, job, snapshot, tool

__all__ = ["inject", "job", "tool"]  # fixtures

FULL = bool(os.environ.get("PROBING_KILL_FULL"))
MEMORY, FILES, THREADS = 1, 2, 4
MOST_CALLS = 5000


@pytest.fixture
def real_agent(build_dir):
    return os.path.join(build_dir, "libprobing.so")


class Plan:
    """Which call of the agent fails (tests/targets/failing.c)."""

    LAYOUT = "QQQQQQQ"

    def __init__(self, path):
        self.path = path
        self.put(0, 0, 0, 0, 0, 0, 0)

    def put(self, *values):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack(self.LAYOUT, *values))

    def get(self):
        with open(self.path, "rb") as file:
            return struct.unpack(self.LAYOUT, file.read(struct.calcsize(self.LAYOUT)))

    def fail(self, code, kinds, first, every):
        self.put(*code, kinds, first, every, 0, 0)

    def stop(self):
        """No more of it. How many calls there were, how many failed."""
        before = self.get()
        self.put(*before[:3], 0, 0, 0, 0)
        return before[5:]


def agent_code(running):
    """Where the agent's code is mapped."""
    line, = [line for line in running.maps() if "memfd:libprobing" in line and line.split()[1] == "r-xp"]
    return [int(part, 16) for part in line.split()[0].split("-")]


def leave(running, endpoint):
    with Client(endpoint) as client:
        client.call("eject")
    wait_until(lambda: not os.path.exists(endpoint), 20, "the agent to leave")


def talk(endpoint):
    """Asks for what there is. The connection may be given up by the agent, the agent not."""
    try:
        with Client(endpoint, timeout=2.0) as client:
            for method, params in (("status", {}), ("threads", {}), ("threads", {"locals": True})):
                client.send(method, params)
                client.message()
    except (Closed, OSError, AssertionError):
        return


def look(running):
    return running.target.tids(), running.target.fds(), running.code()


def same(running, before):
    wait_until(lambda: look(running) == before, 20, f"the job to be as before: {before} became {look(running)}")
    running.goes_on()


@pytest.mark.timeout(1500 if FULL else 300)
@pytest.mark.parametrize("every", [False, True], ids=["one", "all-after-it"])
@pytest.mark.parametrize("kinds", long_but([MEMORY], [MEMORY, FILES, THREADS]), ids=["memory", "descriptors", "threads"])
def test_a_call_of_the_agent_fails(target, tmp_path, build_dir, inject, real_agent, kinds, every):
    path = str(tmp_path / "cell")
    plan = Plan(str(tmp_path / "plan"))
    with open(path, "wb") as file:
        file.write(bytes(64))
    failing = os.path.join(build_dir, "tests", "targets", "failing.so")
    running = Job(target(COUNTER + SLEEP, path, env={"LD_PRELOAD": failing, "FAILING_FILE": plan.path}), path)
    leave(running, inject(running.pid, real_agent).ok().json()["endpoint"])
    wait_until(lambda: len(running.target.tids()) == 1, 20, "the agent's threads to end")
    code, before = agent_code(running), look(running)
    refused = worked = 0
    first = 1
    while first < MOST_CALLS:
        plan.fail(code, kinds, first, every)
        done = inject(running.pid, real_agent)
        if done.status == 0:
            talk(done.json()["endpoint"])
        calls, failed = plan.stop()
        if done.status == 0:
            talk(done.json()["endpoint"])
            leave(running, done.json()["endpoint"])
            worked += 1
        else:
            assert done.status == 3 and done.stderr.count("\n") == 1 and str(running.pid) in done.stderr, done
            refused += 1
        same(running, before)
        if not failed:
            assert done.status == 0 and calls < first, (done, calls, first)
            break
        first += 1 if FULL or first < 16 else first // 4
    print(f"{calls} calls; refused {refused} times, did without {worked - 1} times")
    assert refused + worked > 2


# --- what the kernel refuses ----------------------------------------------------------------------------------------

FULL_TABLE = """
import resource
ready()
kept = [os.dup(0) for _ in range(8)]
resource.setrlimit(resource.RLIMIT_NOFILE, (kept[-1] + 1, 4096))
try:
    while True:
        kept.append(os.dup(0))
except OSError:
    pass
for _ in range(int(sys.argv[2])):
    os.close(kept.pop())
"""


@pytest.mark.parametrize("free, words", [(0, "cannot make a memory file (memfd_create): Too many open files"),
                                         (1, "cannot open shared object file: Too many open files")])
def test_no_descriptors(job, inject, real_agent, free, words):
    running = job(FULL_TABLE + SLEEP.replace("ready()", ""), str(free))
    running.goes_on()
    before = snapshot(running)
    done = inject(running.pid, real_agent)
    assert done.status == 3 and words in done.stderr, done
    check_nothing_left(running, before)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: RLIMIT_NPROC does not count root's threads, and is set for another user")
def test_no_threads(job, inject, real_agent):
    running = job("""
import resource
ready()
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
os.setresuid(54321, 54321, 54321)
""" + SLEEP.replace("ready()", ""))
    running.goes_on()
    before = snapshot(running)
    done = inject(running.pid, real_agent)
    assert done.status == 3 and "cannot create a thread" in done.stderr, done
    check_nothing_left(running, before)
