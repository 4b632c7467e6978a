# SPDX-License-Identifier: Apache-2.0
"""The injector on live jobs, with a tiny agent of the tests' own: the job continues, and nothing is left."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import wait_until
from inject_support import (BUSY, DEEP, EPOLL, LOCK, MANY, SELECT, SLEEP, VECTORS, agent, broken_agent,
                            check_nothing_left, compile_agent, endpoint_of, inject, job, snapshot, tool, vectors)

__all__ = ["agent", "broken_agent", "compile_agent", "inject", "job", "tool", "vectors"]  # fixtures


# --- the job goes on --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("body", [SLEEP, LOCK, SELECT, EPOLL, BUSY, MANY, DEEP],
                         ids=["sleep", "lock", "select", "epoll", "busy", "60-threads", "deep"])
def test_the_job_goes_on(job, inject, agent, body):
    running = job(body)
    tids = running.target.tids()
    masks, code = running.masks(tids), running.code()
    first = inject(running.pid, agent).ok().json()
    assert not first["already"] and not first["reused"]
    assert first["borrowed_tid"] in tids and first["moment"]
    assert first["strategy"] == {"a": "a thread asleep in a system call", "r": "a thread at a safe point"}[first["moment"][0]]
    endpoint_of(first)
    running.goes_on()
    assert running.masks(tids) == masks
    # The agent's own code is new; the pages of ours and the memory file are gone.
    wait_until(lambda: not running.memory_files(), 5, "the memory file to be closed")
    ours = [line.split()[0] for line in running.maps() if "memfd:libprobing" in line and line.split()[1][2] == "x"]
    assert len(ours) == 1
    wait_until(lambda: running.code() == sorted(code + ours), 5, "our code page to be unmapped")
    second = inject(running.pid, agent).ok().json()
    assert second["already"] and second["stopped_us"] == 0 and second["endpoint"] == first["endpoint"]


def test_every_python(job, inject, agent, each_python):
    running = job(SLEEP, python=each_python)
    assert not inject(running.pid, agent).ok().json()["already"]
    running.goes_on()


# The result of a write that waits for a reader, beside a thread that sleeps or one that is busy.
BEGUN = """
import fcntl, os, sys, termios, threading, time
reader, writer = os.pipe()

def drains():
    while not int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, b"...."), "little"):
        time.sleep(0.01)
    time.sleep(0.05)
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    while not os.path.exists(sys.argv[1]):
        {beside}
    left = 1000000
    while left:
        left -= len(os.read(reader, left))

threading.Thread(target=drains, daemon=True).start()
print(os.write(writer, b"x" * 1000000), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("beside", ["time.sleep(0.05)", "sum(range(1000))"], ids=["asleep", "busy"])
def test_a_begun_write(target, probing, ptrace, tmp_path, beside):
    """It would end with what it has written: another thread is borrowed, and --block stops others only."""
    running = target(BEGUN.format(beside=beside), tmp_path / "enough")
    probing(str(running.pid), "dump", "--native", "--block", "--no-inject").ok()
    probing(str(running.pid), "inject").ok()
    (tmp_path / "enough").touch()
    running.process.wait(timeout=30)
    assert running.output().strip() == "1000000"


def is_asleep(target):
    """In one and the same call, now and a little later."""
    def look():
        with open(f"/proc/{target.pid}/syscall", encoding="ascii") as call:
            return target.state() == "S" and call.read()
    before = look()
    time.sleep(0.05)
    return before and look() == before


# The kernel writes the time that is left into the caller's memory whenever such a call is interrupted, by us too.
@pytest.mark.parametrize("call", ["select.select([], [], [], 1000)", "time.sleep(1000)", "select.poll().poll(1000000)",
                                  "signal.sigtimedwait([signal.SIGUSR1], 1000)", "threading.Event().wait(1000)"])
def test_a_job_that_only_waits_for_a_time(job, inject, agent, each_python, call):
    running = job(f"import select, signal, threading, time\nready()\n{call}\n", python=each_python)
    wait_until(lambda: is_asleep(running.target), 30, "the job to sleep")
    result = inject(running.pid, agent).ok().json()
    assert not result["already"] and result["moment"].startswith("asleep in ")
    wait_until(lambda: running.target.state() == "S", 30, "the job to sleep on")
    assert running.target.alive()


def test_a_job_that_waits_for_a_named_pipe(job, inject, agent, tmp_path):
    """Its read goes on as if nothing had been; a file's, of which not all systems take an interruption well, is left alone."""
    path = tmp_path / "commands"
    os.mkfifo(path)
    running = job("""
commands = os.open(sys.argv[2], os.O_RDWR)
ready()
while True:
    cell.steps += int(os.read(commands, 100))
""", str(path))
    wait_until(lambda: is_asleep(running.target), 30, "the job to read")
    assert inject(running.pid, agent).ok().json()["moment"] == "asleep in read"
    with open(path, "r+b", buffering=0) as pipe:
        pipe.write(b"41")
        wait_until(lambda: running.cell()[0] == 41, 30, "the job to have read")
        pipe.write(b"1")
        wait_until(lambda: running.cell()[0] == 42, 30, "the job to have read once more")
    assert running.target.alive()


def test_training_with_torch(training, inject, agent):
    before = training.counter()
    result = inject(training.pid, agent).ok().json()
    assert not result["already"]
    wait_until(lambda: training.counter() > before + 1, 60, "the training's next steps")
    assert training.state() in "RSD"


def test_gil_held_for_ever(job, inject, agent, vectors):
    """One thread, which holds the GIL in C and never makes a system call."""
    running = job(VECTORS, vectors)
    running.goes_on()
    result = inject(running.pid, agent).ok().json()
    assert result["moment"].startswith("running")
    running.goes_on()


def test_vector_registers_survive(job, inject, broken_agent, vectors):
    """The only thread there is to borrow computes in vector registers; 25 injections change none of them."""
    running = job(VECTORS, vectors)
    running.goes_on()
    for _ in range(25):
        assert "could not load the agent" in inject(running.pid, broken_agent).stderr
    running.goes_on()


def test_signals_arrive_once_and_in_turn(job, inject, broken_agent, build_dir):
    """The thread to borrow takes thousands of signals a second, each with a number."""
    running = job("""
native = ctypes.PyDLL(sys.argv[2])
ready()
native.queued_run(ctypes.byref(cell))
""", os.path.join(build_dir, "tests", "targets", "queued.so"))
    running.goes_on()
    for _ in range(150):
        assert "could not load the agent" in inject(running.pid, broken_agent).stderr
    running.goes_on()


@pytest.mark.parametrize("call", ["epoll", "nanosleep", "recv", "sigtimedwait", "semtimedop"])
def test_calls_see_no_eintr(job, inject, broken_agent, vectors, call):
    """The only thread sits in a call that the kernel ends with EINTR after a stop."""
    running = job("""
native = ctypes.CDLL(sys.argv[2])
function = getattr(native, "eintr_" + sys.argv[3])
ready()
while True:
    cell.bad += function()
    cell.steps += 1
""", vectors, call)
    running.goes_on()
    for _ in range(10):
        assert inject(running.pid, broken_agent).status == 3
    running.goes_on()


def test_two_hundred_times(job, inject, broken_agent):
    """Nothing adds up: threads, descriptors, executable pages and mappings are as after the first time."""
    running = job(MANY.replace("range(60)", "range(12)"))
    inject(running.pid, broken_agent)
    code, fds, tids = running.code(), running.target.fds(), running.target.tids()
    mappings = len(running.maps())
    deadline = time.monotonic() + 20
    times = 0
    while times < 200 and time.monotonic() < deadline:
        refused = inject(running.pid, broken_agent).stderr
        assert "could not load the agent" in refused or "try again" in refused  # on a machine that has no processor for it
        times += 1
    assert times >= 20
    running.goes_on()
    wait_until(lambda: running.target.tids() == tids, 5, "our threads to be gone")
    assert running.code() == code
    assert running.target.fds() == fds
    assert len(running.maps()) <= mappings + 8  # arenas of the job's own allocator come and go


# --- nothing is left when it fails --------------------------------------------------------------------------------

def test_an_agent_that_does_not_load(job, inject, broken_agent):
    running = job(SLEEP)
    before = snapshot(running)
    result = inject(running.pid, broken_agent)
    assert result.status == 3 and "a_function_that_does_not_exist" in result.stderr
    assert result.stderr.count("\n") == 1
    check_nothing_left(running, before)


def test_an_agent_that_is_slow_to_start(job, inject, compile_agent):
    """It cannot be called back any more: that is said, and who tries again finds it."""
    running = job(SLEEP)
    slow = compile_agent("slow", "-DAGENT_TEST_SLOW=8")
    result = inject(running.pid, slow, timeout_ms=3000)
    assert result.status == 3 and "try again" in result.stderr
    assert "still being started" in result.stderr or "was undone" in result.stderr  # a busy machine did not get so far
    found = []

    def there():
        again = inject(running.pid, slow, timeout_ms=3000)
        found.append(again.json() if again.status == 0 else None)
        return found[-1]
    wait_until(there, 60, "the agent")
    assert found[-1]["already"]
    running.goes_on()


def test_an_agent_that_refuses(job, inject, compile_agent):
    running = job(SLEEP)
    tids, fds = running.target.tids(), running.target.fds()
    result = inject(running.pid, compile_agent("refuses", "-DAGENT_TEST_FAILS"))
    assert result.status == 3 and "the test says no" in result.stderr
    wait_until(lambda: running.target.tids() == tids, 10, "our threads to be gone")
    assert running.target.fds() == fds
    running.goes_on()


def test_no_memory_for_a_thread(job, inject, agent):
    """RLIMIT_AS leaves no room: the system call on the borrowed thread or pthread_create fails, the job notices nothing."""
    running = job("""
import resource
ready()
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 1024, used + 400 * 1024))
cell.steps = 1
while True:
    time.sleep(0.02)
    cell.steps += 1
""")
    wait_until(lambda: running.cell()[0] > 0, 5, "the limit")
    before = snapshot(running)
    result = inject(running.pid, agent)
    assert result.status == 3 and str(running.pid) in result.stderr
    check_nothing_left(running, before)


@pytest.mark.parametrize("kind", ["threads", "registers"])
def test_the_injector_is_killed_at_any_moment(job, tool, inject, broken_agent, agent, vectors, kind):
    """SIGKILL, 60 times: the borrowed thread puts itself back, with all its registers and its mask."""
    running = job(VECTORS, vectors) if kind == "registers" else job(MANY.replace("range(60)", "range(6)"))
    running.goes_on()
    tids = running.target.tids()
    masks = running.masks(tids)
    whole = time.monotonic()
    inject(running.pid, broken_agent)
    whole = time.monotonic() - whole
    rng = random.Random(7)
    for _ in range(60):
        process = subprocess.Popen([tool, str(running.pid), broken_agent], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        until = time.monotonic() + rng.uniform(0, whole)
        while time.monotonic() < until:
            pass
        process.kill()
        process.wait()
    running.goes_on()
    wait_until(lambda: running.target.tids() == tids, 20, "the threads of killed injections to give up")
    assert running.masks(tids) == masks
    wait_until(lambda: not running.memory_files(), 5, "their memory files to be closed")
    inject(running.pid, agent).ok()
    running.goes_on()


def test_interrupted_by_the_user(job, tool, broken_agent, ptrace):
    """^C, SIGTERM and SIGHUP are answered when the job is as before."""
    running = job(MANY.replace("range(60)", "range(6)"))
    before = None
    rng = random.Random(11)
    for turn in range(60):
        process = subprocess.Popen([tool, str(running.pid), broken_agent], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + rng.uniform(0, 0.01)
        while time.monotonic() < until:
            pass
        process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[turn % 3])
        process.wait(10)
        now = snapshot(running)
        before = before or now
    check_nothing_left(running, before)


def test_two_at_the_same_time_load_one(job, tool, agent, ptrace):
    running = job(SLEEP)
    processes = [subprocess.Popen([tool, str(running.pid), agent, "8000"], stdout=subprocess.PIPE, text=True)
                 for _ in range(4)]
    answers = [json.loads(process.communicate(timeout=30)[0]) for process in processes]
    assert sorted(answer["already"] for answer in answers) == [False, True, True, True]
    assert len([line for line in running.maps() if "memfd:libprobing" in line and line.split()[1][2] == "x"]) == 1
    running.goes_on()


# --- an agent that is already loaded ---------------------------------------------------------------------------------

def park(result):
    """The test agent closes its socket and ends its thread; its code stays."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(result["endpoint"])
        sock.send(b"p")
        sock.recv(1)
    wait_until(lambda: not os.path.exists(result["endpoint"]), 5, "the agent to park")


def test_a_parked_agent_is_used_again(job, inject, agent):
    running = job(SLEEP)
    tids = running.target.tids()
    first = inject(running.pid, agent).ok().json()
    code = None
    for _ in range(3):
        park(first)
        wait_until(lambda: running.target.tids() == tids, 5, "the agent's thread to end")
        again = inject(running.pid, agent).ok().json()
        assert again["reused"] and not again["already"]
        wait_until(lambda: not [line for line in running.maps() if line.split()[1] == "r-xp" and len(line.split()) == 5],
                   5, "our pages to be gone")
        code = code or running.code()
        assert running.code() == code
    running.goes_on()


def test_a_parked_agent_of_another_version(job, inject, agent, compile_agent, tmp_path):
    """What is mapped decides: a library of our name with another version is named and left alone."""
    folder = tmp_path / "other"
    folder.mkdir()
    shutil.copy(compile_agent("other", version="0.0.7"), folder / "libprobing.so")
    running = job("""
ctypes.CDLL(sys.argv[2])
""" + SLEEP, str(folder / "libprobing.so"))
    before = snapshot(running)
    result = inject(running.pid, agent)
    assert result.status == 3 and "0.0.7" in result.stderr and "restart" in result.stderr
    check_nothing_left(running, before)


def test_a_prompt_is_borrowed_only_as_the_last_choice(job, inject, agent):
    """One thread, asleep in read(2) inside fgets: it holds the stream's lock and never lets go."""
    running = job("""
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
reader, writer = os.pipe()
stream = libc.fdopen(reader, b"r")
buffer = ctypes.create_string_buffer(16)
ready()
libc.fgets(buffer, 16, ctypes.c_void_p(stream))
""")

    def asleep_in_read():
        with open(f"/proc/{running.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("0 ")
    wait_until(asleep_in_read, 5, "the job to read")
    result = inject(running.pid, agent).ok().json()
    assert result["moment"] == "asleep in read, holding a stream's lock"
