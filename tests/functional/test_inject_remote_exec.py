# SPDX-License-Identifier: Apache-2.0
"""Where no thread may be borrowed: from CPython 3.14 on its interpreter lets the agent in (PEP 768), and nothing else is changed."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import inject_in_time, is_free_threaded, run_command, wait_until
from inject_support import SLEEP, job

__all__ = ["job"]  # fixtures

DOOR = "the interpreter's remote debugging"
NEW = ("3.14", "3.15")


@pytest.fixture(params=NEW)
def new_python(request, python_for):
    return python_for(request.param)


TRACER = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = int(sys.argv[1])
assert libc.ptrace(0x4206, pid, None, None) == 0
print("tracing", flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    got, status = os.waitpid(pid, os.WNOHANG | 0x40000000)
    if got and os.WIFSTOPPED(status):
        libc.ptrace(7, pid, None, None if status >> 16 else os.WSTOPSIG(status))
"""


@contextlib.contextmanager
def traced(pid):
    """By somebody who lets it run and passes its signals on, as a debugger does after "continue"."""
    tracer = subprocess.Popen([sys.executable, "-c", TRACER, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert tracer.stdout.readline() == "tracing\n"
        yield tracer.pid
    finally:
        tracer.communicate()


FORBID_PTRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
numbers = [int(word) for word in sys.argv[1].split(",")]
code = [Filter(0x20, 0, 0, 0)]
code += [Filter(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
code += [Filter(6, 0, 0, 0x7fff0000), Filter(6, 0, 0, 0x50001)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code), (Filter * len(code))(*code))), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def without_ptrace(*command, numbers="101"):
    """The command, which may not make these system calls."""
    return [sys.executable, "-c", FORBID_PTRACE, numbers, *command]


def files_left(pid):
    return glob.glob(f"/proc/{pid}/root/*/probing-start-*") + glob.glob(f"/proc/{pid}/root/*/*/probing-start-*")


def check_nothing_of_ours(running):
    wait_until(lambda: not any(name.startswith("probing-") for name in running.target.thread_names().values()), 20,
               "our threads to be gone")
    assert not files_left(running.pid) and not running.memory_files()


def listed(probing, pid):
    return {row["pid"]: row for row in probing("list", "--json").ok().json()["processes"]}[pid]


# Says at its end what has come into its interpreter since it was ready.
WATCHED = """
import builtins, gc
gc.collect()
gc.disable()
before = set(sys.modules), set(dir(builtins)), set(globals())
ready()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
    cell.steps += 1
garbage = gc.collect()
print(sorted(set(sys.modules) - before[0]), sorted(set(dir(builtins)) - before[1]),
      sorted(set(globals()) - before[2] - {"before", "garbage"}), garbage)
"""


def test_a_traced_job(job, probing, ptrace, new_python, tmp_path):
    running = job(WATCHED, str(tmp_path / "end"), python=new_python)
    fds = running.target.fds()
    with traced(running.pid) as tracer:
        # The list says what injecting does.
        row = listed(probing, running.pid)
        assert (row["inspectable"], row["by_door"], row["why_not"]) == (True, True, None)
        result = inject_in_time(probing, running.pid)
        assert result["strategy"] == DOOR and not result["already"] and not result["reused"]
        assert result["stopped_us"] == 0 and result["borrowed_tid"] is None
        assert running.status(running.pid, "TracerPid") == str(tracer)
        document = probing(str(running.pid), "backtrace", "--json").ok().json()
        assert document["target"]["mode"] == "agent"
        assert probing(str(running.pid), "status", "--json").ok().json()["strategy"] == DOOR
        assert probing(str(running.pid), "inject", "--json").ok().json()["already"]
        probing(str(running.pid), "eject").ok()
        check_nothing_of_ours(running)
        again = inject_in_time(probing, running.pid)
        assert again["strategy"] == DOOR and again["reused"]
        probing(str(running.pid), "eject").ok()
    check_nothing_of_ours(running)
    assert running.target.fds() == fds
    # Without the tracer a thread is borrowed, and the same agent begins again.
    last = inject_in_time(probing, running.pid)
    assert last["strategy"].startswith("a thread ") and last["reused"]
    assert probing(str(running.pid), "status", "--json").ok().json()["strategy"] == last["strategy"]
    running.goes_on()
    (tmp_path / "end").touch()
    assert running.target.process.wait(60) == 0
    # Without a GIL code objects are left to the collector, whoever made them.
    garbage = r"\d+" if is_free_threaded(new_python) else "0"
    assert re.fullmatch(r"\[\] \[\] \[\] " + garbage + "\n", running.target.output()), running.target.output()


def test_a_job_of_many_threads(job, probing, ptrace, new_python):
    running = job("""
def count():
    while True:
        cell.steps += len([x for x in range(100)]) // 100
for _ in range(4):
    threading.Thread(target=count, daemon=True).start()
ready()
while True:
    time.sleep(0.001)
""", python=new_python)
    with traced(running.pid):
        for _ in range(5):
            assert inject_in_time(probing, running.pid)["strategy"] == DOOR
            probing(str(running.pid), "eject").ok()
    check_nothing_of_ours(running)
    running.goes_on()
    assert running.target.output() == ""


def test_no_signal_is_lost(job, probing, ptrace, new_python):
    """What is written beside the request for the script is the word in which the job's own requests are kept."""
    running = job("""
import signal
def on_signal(number, frame):
    cell.bad += 1
signal.signal(signal.SIGUSR1, on_signal)
ready()
while True:
    cell.steps += 1
""", python=new_python)
    for _ in range(6):
        process = subprocess.Popen(without_ptrace(probing.path, str(running.pid), "inject", "--timeout", "30s"),
                                   stdout=subprocess.DEVNULL)
        while process.poll() is None:
            handled = running.cell()[1]
            os.kill(running.pid, signal.SIGUSR1)
            wait_until(lambda: running.cell()[1] > handled, 30, "the handler", interval=0.0005)
        assert process.returncode == 0
        probing(str(running.pid), "eject").ok()
    assert running.cell()[1] > 6
    assert running.target.output() == ""


def test_turned_off(job, probing, ptrace, new_python):
    for options in ({"env": {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}}, {"flags": ["-X", "disable-remote-debug"]}):
        running = job(SLEEP, python=new_python, **options)
        with traced(running.pid) as tracer:
            done = probing(str(running.pid), "inject")
            assert done.status == 3 and done.stderr.count("\n") == 1, done
            assert f"traced by process {tracer}" in done.stderr and "PYTHON_DISABLE_REMOTE_DEBUG" in done.stderr
            row = listed(probing, running.pid)
            assert (row["inspectable"], row["by_door"]) == (False, False) and "its Python refused, too" in row["why_not"]
            document = probing(str(running.pid), "backtrace", "--json").ok().json()
            assert document["target"]["mode"] == "readonly"
        check_nothing_of_ours(running)
        running.goes_on()


def test_a_main_thread_that_does_not_come(job, probing, ptrace, new_python, tmp_path):
    """It waits for a lock; the request is taken back, and when it goes on, nothing happens."""
    running = job("""
lock = threading.Lock()
lock.acquire()
def let_go():
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    lock.release()
threading.Thread(target=let_go, daemon=True).start()
ready()
lock.acquire()
for i in range(1000):
    cell.steps += 1
    time.sleep(0.001)
""", str(tmp_path / "go"), python=new_python)
    with traced(running.pid):
        done = probing(str(running.pid), "inject", "--timeout", "1s")
        assert done.status == 3 and done.stderr.count("\n") == 1, done
        assert re.search(r"its main thread reached no safe point within \d+ ms \(it is asleep in futex\)", done.stderr)
        assert not files_left(running.pid)
        document = probing(str(running.pid), "backtrace", "--json").ok().json()
        assert document["target"]["mode"] == "readonly"
    (tmp_path / "go").touch()
    assert running.target.process.wait(60) == 0
    assert running.target.output() == "" and running.cell() == (1000, 0)


def test_the_injector_is_killed_while_it_waits(job, probing, ptrace, new_python, tmp_path):
    """What it has left in the job runs later, and takes itself away: then there is an agent that nobody waits for."""
    running = job("""
reader, writer = os.pipe()
def let_go():
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    os.write(writer, b"x")
threading.Thread(target=let_go, daemon=True).start()
ready()
os.read(reader, 1)
while True:
    cell.steps += 1
    time.sleep(0.001)
""", str(tmp_path / "go"), python=new_python)
    with traced(running.pid):
        process = subprocess.Popen([probing.path, str(running.pid), "inject", "--timeout", "60s"], stderr=subprocess.DEVNULL)
        wait_until(lambda: files_left(running.pid), 30, "the request")
        process.kill()
        process.wait()
        (tmp_path / "go").touch()
        running.goes_on()
        wait_until(lambda: not files_left(running.pid), 30, "the files to be gone")
    assert inject_in_time(probing, running.pid)
    running.goes_on()
    assert running.target.output() == ""


@pytest.mark.parametrize("numbers", ["101", "101,310,311"], ids=["ptrace", "process_vm_writev-too"])
def test_from_a_sandbox_without_ptrace(job, probing, ptrace, new_python, numbers):
    """A filter of our own forbids the call, not the memory: what the kernel permits decides."""
    running = job(SLEEP, python=new_python)
    done = run_command(without_ptrace(probing.path, str(running.pid), "inject", "--json", "--timeout", "30s", numbers=numbers),
                       timeout=60).ok()
    assert done.json()["strategy"] == DOOR
    running.goes_on()
    assert not files_left(running.pid)
