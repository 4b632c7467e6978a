# SPDX-License-Identifier: Apache-2.0
"""What is read of a process that does not keep still: the GIL, CPU time, moving stacks, names that change, forks."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import is_free_threaded, program_runner, run_command

HEAD = '''
import ctypes, os, sys, threading, time

def ready(text="ready"):
    os.write(int(os.environ["READY_FD"]), f"{text}\\n".encode())

def start(function, *arguments, name=None):
    thread = threading.Thread(target=function, args=arguments, name=name, daemon=True)
    thread.start()
    return thread
'''

# A thread waits for the GIL while the main thread never gives it up.
KEEPS_GIL = HEAD + '''
sys.setswitchinterval(1e-5)
begun = threading.Event()

def other():
    begun.set()
    while True:
        sum(range(100))

start(other, name="other")
begun.wait()
hold = ctypes.PyDLL(None).sleep

def keep_for_ever():
    ready()
    hold(3600)

keep_for_ever()
'''

CONTENTION = HEAD + '''
def burn():
    while True:
        sum(range(50))

for n in range(4):
    start(burn, name=f"burn {n}")
start(time.sleep, 3600, name="sleeper")
ready()
burn()
'''

# Two chains of calls with no stable frame: every legal stack is a run of a's or of b's.
CHAINS = HEAD + '''
def make(letter):
    source = "".join(f"def {letter}{n}():\\n    {letter}{n + 1}()\\n" + f"    {letter}{n + 1}()\\n" * (n == 3)
                     for n in range(1, 7)) + f"def {letter}7(): pass\\n"
    exec(source, globals())

make("a")
make("b")
ready()
while True:
    a1()
    b1()
'''

# Threads that live a moment, each inside a function of its own name. Identifiers are used again at once.
SHORT_LIVES = HEAD + '''
def template(seconds):
    time.sleep(seconds)

ready()
for n in range(10**9):
    name = f"life_{n}"
    if hasattr(template.__code__, "replace"):
        names = {"co_name": name}
        if hasattr(template.__code__, "co_qualname"):
            names["co_qualname"] = name
        code = template.__code__.replace(**names)
    else:  # before 3.8
        c = template.__code__
        code = type(c)(c.co_argcount, c.co_kwonlyargcount, c.co_nlocals, c.co_stacksize, c.co_flags, c.co_code, c.co_consts,
                       c.co_names, c.co_varnames, c.co_filename, name, c.co_firstlineno, c.co_lnotab)
    function = type(template)(code, globals(), name)
    thread = start(function, 0.003, name=name)
    thread.join()
'''

CODE_CHURN = HEAD + '''
ready()
for n in range(10**9):
    name = f"made_{n}"
    space = {"time": time}
    exec(compile(f"def {name}():\\n    time.sleep(0.002)\\n", name, "exec"), space)
    space[name]()
    del space
'''

RENAMES = HEAD + '''
thread = start(time.sleep, 3600, name="before")
ready()
sys.stdin = None
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
thread.name = "after"
time.sleep(3600)
'''

FORKS = HEAD + '''
def child_rest():
    reader, writer = os.pipe()
    os.read(reader, 1)

start(time.sleep, 3600, name="parent's")
child = os.fork()
if child == 0:
    child_rest()
ready(child)
os.waitpid(child, 0)
'''

SUB_INTERPRETER = HEAD + '''
def run(own, source):
    if own is None:  # before 3.8 there is no module for it
        ctypes.pythonapi.Py_NewInterpreter()
        ctypes.pythonapi.PyRun_SimpleString(source.encode())
    interpreters.run_string(own, source)

own = None
if sys.version_info >= (3, 8):
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    own = interpreters.create()
start(run, own, "import time\\ndef in_sub(): time.sleep(3600)\\nin_sub()\\n", name="sub")
ready()
time.sleep(3600)
'''

NO_THREADING = '''
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
time.sleep(3600)
'''

NO_THREADING_FORKS = '''
import _thread, os, time
def second():
    child = os.fork()
    if child == 0:
        child_rest()
    os.write(int(os.environ["READY_FD"]), b"%d\\n" % child)
    os.waitpid(child, 0)
def child_rest():
    while True:
        time.sleep(3600)
_thread.start_new_thread(second, ())
time.sleep(3600)
'''


@pytest.fixture(scope="session")
def run_dump(build_dir):
    return program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))


@pytest.fixture(scope="session")
def dump(run_dump):
    def snapshots(pid, count=1, interval_ms=20):
        return [json.loads(line) for line in run_dump(pid, count, interval_ms).ok().stdout.splitlines()]
    return snapshots


def by_name(snapshot):
    return {t["name"]: t for t in snapshot["threads"]}


GIL_ON = {"PYTHON_GIL": "1"}  # builds that can do without are to have one


def test_a_gil_that_is_never_given_up(each_python, ptrace, target, dump, wait_until):
    job = target(KEEPS_GIL, python=each_python, env=GIL_ON)

    def settled():
        snapshot = dump(job.pid)[0]
        main = snapshot["threads"][0]
        return snapshot if main["gil"] == "held" and by_name(snapshot)["other"]["gil"] == "waiting" else None

    snapshot = wait_until(settled, 10, "the GIL to be kept")
    main, other = snapshot["threads"][0], by_name(snapshot)["other"]
    assert snapshot["gil_tid"] == job.pid
    assert main["name"] == "MainThread" and main["state"] == "S"
    assert [f["func"] for f in main["frames"]] == ["keep_for_ever", "<module>"]
    assert other["frames"][0]["func"] == "other" and not other["torn"]


def test_a_gil_that_is_fought_for(each_python, ptrace, target, dump):
    job = target(CONTENTION, python=each_python, env=GIL_ON)
    snapshots = dump(job.pid, 100, 5)
    held = 0
    for snapshot in snapshots:
        holders = [t["tid"] for t in snapshot["threads"] if t["gil"] == "held"]
        assert len(holders) <= 1
        assert holders == ([snapshot["gil_tid"]] if snapshot["gil_tid"] > 0 else [])
        assert by_name(snapshot)["sleeper"]["gil"] == "none"
        held += len(holders)
    waiting = collections.Counter(t["name"] for s in snapshots for t in s["threads"] if t["gil"] == "waiting")
    assert held > 50
    assert set(waiting) == {"MainThread", "burn 0", "burn 1", "burn 2", "burn 3"}


def test_nobody_holds_a_gil_that_there_is_not(each_python, ptrace, target, dump):
    if not is_free_threaded(each_python):
        pytest.skip("needs free-threaded: this Python has a GIL")
    job = target(CONTENTION, python=each_python)
    for snapshot in dump(job.pid, 20, 5):
        assert snapshot["gil_tid"] == 0
        assert {t["gil"] for t in snapshot["threads"] if t["has_python"]} == {"none"}
        assert set(by_name(snapshot)) == {"MainThread", "sleeper", "burn 0", "burn 1", "burn 2", "burn 3"}


def test_cpu_time(any_python, ptrace, target, dump, wait_until):
    job = target(CONTENTION, python=any_python)
    found = []

    def asleep():  # it has to get the GIL first
        found[:] = dump(job.pid, 2, 500)
        return by_name(found[1])["sleeper"]["on_cpu"] == 0
    wait_until(asleep, 60, "the sleeper to sleep")
    first, last = found
    assert all(t["cpu_pct"] is None and t["on_cpu"] == -1 for t in first["threads"])
    assert first["process"]["cpu_pct"] is None
    threads = by_name(last)
    assert threads["sleeper"]["cpu_pct"] == 0
    busy = sum(t["cpu_pct"] for t in last["threads"])
    assert 20 < busy < 130 and abs(busy - last["process"]["cpu_pct"]) < 20
    assert [last["seq"] - first["seq"], last["process"]["n_threads"]] == [1, 6]
    assert last["process"]["rss_bytes"] > 1 << 20 and 0 < last["process"]["uptime_s"] < 600


def test_stacks_that_never_keep_still(each_python, ptrace, target, dump):
    job = target(CHAINS, python=each_python)
    count = collections.Counter()
    for snapshot in dump(job.pid, 3000, 0):
        thread = snapshot["threads"][0]
        names = [f["func"] for f in thread["frames"]][::-1]
        letter = names[1][0] if len(names) > 1 else "a"
        legal = names[:1] == ["<module>"] and names[1:] == [f"{letter}{n}" for n in range(1, len(names))]
        count["legal" if legal else "impossible", "torn" if thread["torn"] else "whole"] += 1
    assert sum(count.values()) == 3000
    # A reader that loses its CPU between its looks may find the same frames again.
    assert count["impossible", "whole"] <= 90, count
    assert job.alive()


def test_a_new_thread_is_not_called_as_the_one_before(each_python, ptrace, target, dump):
    job = target(SHORT_LIVES, python=each_python)
    seen = set()
    for snapshot in dump(job.pid, 400, 5):
        for thread in snapshot["threads"][1:]:
            functions = [f["func"] for f in thread["frames"] if f["func"].startswith("life_")]
            if functions and thread["name"] and not thread["torn"]:
                assert functions == [thread["name"]]
                seen.add(thread["name"])
    assert len(seen) > 5
    assert job.alive()


def test_code_that_comes_and_goes(each_python, ptrace, target, dump):
    job = target(CODE_CHURN, python=each_python)
    seen = set()
    for snapshot in dump(job.pid, 500, 3):
        thread = snapshot["threads"][0]
        if thread["torn"]:
            continue
        for frame in thread["frames"]:
            if frame["func"].startswith("made_"):
                assert frame["file"] == frame["func"] and frame["line"] in (1, 2)
                seen.add(frame["func"])
    assert len(seen) > 50


def test_a_renamed_thread(each_python, ptrace, target, run_dump, tmp_path):
    job = target(RENAMES, tmp_path / "rename", python=each_python)
    reader = subprocess.Popen([run_dump.path, str(job.pid), "400", "10"], stdout=subprocess.PIPE, text=True)
    try:
        names = []
        for line in reader.stdout:
            names.append(json.loads(line)["threads"][1]["name"])
            if len(names) == 5:
                (tmp_path / "rename").touch()
            if names[-1] == "after":
                break
    finally:
        reader.kill()
        reader.wait()
    assert names[0] == "before" and names[-1] == "after" and set(names) == {"before", "after"}


def test_a_forked_child(each_python, ptrace, target, dump, wait_until):
    job = target(FORKS, python=each_python)
    child = int(job.ready)

    def settled():
        threads = dump(child)[0]["threads"]
        return threads if threads[0]["frames"] and threads[0]["frames"][0]["func"] == "child_rest" else None

    threads = wait_until(settled, 10, "the child to rest")
    assert [(t["tid"], t["name"], t["has_python"]) for t in threads] == [(child, "MainThread", True)]


def test_a_sub_interpreter(each_python, ptrace, target, dump, wait_until):
    job = target(SUB_INTERPRETER, python=each_python)

    def settled():
        thread = by_name(dump(job.pid)[0]).get("sub")
        return thread if thread and thread["frames"] and thread["frames"][0]["func"] == "in_sub" else None

    if int(dump(job.pid)[0]["version"].split(".")[1]) < 13:
        # A thread state of a sub-interpreter does not say which thread runs it, so it is not shown as any thread's.
        def at_rest():  # it has left the function in which it said that it is ready
            threads = by_name(dump(job.pid)[0])
            return threads if [f["func"] for f in threads["MainThread"]["frames"]] == ["<module>"] else None

        assert sorted(wait_until(at_rest, 10, "the main thread to sleep")) == ["MainThread", "sub"]
        return
    thread = wait_until(settled, 10, "the other interpreter's function")
    assert [f["func"] for f in thread["frames"]] == ["in_sub", "<module>"]
    assert thread["tid"] in job.tids() and thread["tid"] != job.pid


def test_who_is_main_without_the_threading_module(each_python, ptrace, target, dump, wait_until):
    job = target(NO_THREADING_FORKS, python=each_python, flags=["-S", "-E"])
    child = int(job.ready)

    def rest():  # the second one has written that it is ready, and goes on to wait: until then its stack may be read half
        threads = dump(job.pid)[0]["threads"]
        return {t["tid"]: t for t in threads} if all(t["state"] == "S" and t["frames"] for t in threads) else None

    threads = wait_until(rest, 10, "both threads to rest")
    assert len(threads) == 2 and all(t["has_python"] for t in threads.values()), threads
    assert {tid: t["name"] for tid, t in threads.items()} == {tid: "MainThread" if tid == job.pid else None for tid in threads}, threads

    def settled():
        threads = dump(child)[0]["threads"]
        return threads if threads[0]["frames"] and threads[0]["frames"][0]["func"] == "child_rest" else None

    threads = wait_until(settled, 10, "the child to rest")  # of a thread that was not main: it is now
    assert [(t["tid"], t["name"]) for t in threads] == [(child, "MainThread")]


def test_another_pid_namespace(any_python, ptrace, dump, tmp_path, wait_until):
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rpf", "true"], capture_output=True).returncode:
        pytest.skip("needs namespaces: unshare may not make one")
    script = tmp_path / "inside.py"
    script.write_text(HEAD + "start(time.sleep, 3600, name='second')\nprint(os.getpid(), flush=True)\ntime.sleep(3600)\n")
    outer = subprocess.Popen(["unshare", "-rpf", any_python, str(script)], stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    try:
        assert outer.stdout.readline() == "1\n"
        children = f"/proc/{outer.pid}/task/{outer.pid}/children"
        with open(children, encoding="ascii") as file:
            pid = int(file.read())
        threads = dump(pid)[0]["threads"]
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.wait()
    assert [(t["tid"], t["name"]) for t in threads] == [(1, "MainThread"), (2, "second")]
    assert all(t["frames"] and t["gil"] == "none" for t in threads)


def test_the_version_of_torch(torch_python, ptrace, target, dump):
    told = run_command([torch_python, "-c", "import torch; print(torch.__version__)"], timeout=120).ok().stdout.strip()
    job = target(HEAD + "import torch\nready()\ntime.sleep(3600)\n", python=torch_python)
    assert dump(job.pid)[0]["torch"] == told.partition("+")[0]


def test_what_is_not_python(run_dump, ptrace):
    sleeper = subprocess.Popen(["sleep", "3600"])
    try:
        result = run_dump(sleeper.pid)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert result.status == 3 and f"process {sleeper.pid} is not a Python process" in result.stderr
    result = run_dump(sleeper.pid)
    assert result.status == 3 and f"no process {sleeper.pid}" in result.stderr


def test_a_zombie(run_dump, ptrace, wait_until):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    wait_until(lambda: open(f"/proc/{child.pid}/stat").read().rpartition(")")[2].split()[0] == "Z", 10, "a zombie")
    result = run_dump(child.pid)
    child.wait()
    assert result.status == 3 and "zombie" in result.stderr


def test_the_end_of_the_process_is_noticed(any_python, ptrace, target, run_dump):
    job = target(HEAD + "ready()\ntime.sleep(3600)\n", python=any_python)
    reader = subprocess.Popen([run_dump.path, str(job.pid), "1000000", "10"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    assert json.loads(reader.stdout.readline())["seq"] == 1
    job.end()
    error = reader.communicate(timeout=20)[1]
    assert reader.returncode == 4 and f"process {job.pid} has ended" in error


def test_a_process_that_is_just_starting(each_python, ptrace, run_dump):
    """At whatever moment it is looked at, the answer is a snapshot or one clear line."""
    answers = collections.Counter()
    for n in range(60):
        job = subprocess.Popen([each_python, "-c", "import time; time.sleep(60)"])
        time.sleep(n / 2000)  # another moment each time; nothing depends on its length
        try:
            result = run_dump(job.pid)
            assert result.status in (0, 3), result
            assert len(result.stderr.splitlines()) == (result.status != 0), result
            answers[result.status] += 1
        finally:
            job.kill()
            job.wait()
    assert answers[0] > 0
