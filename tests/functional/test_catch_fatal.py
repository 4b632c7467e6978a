# SPDX-License-Identifier: Apache-2.0
"""Signals that end the job leave the stacks of all threads, and end it as they would have."""

import os
import re
import signal
import stat

import pytest

from test_catch import arm
from test_pause import value

pytestmark = pytest.mark.timeout(240)

JOB = r'''
import ctypes, faulthandler, mmap, os, signal, sys, threading, time

box = []
ALL = [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT]

def code(text):
    """Machine code as a function."""
    raw = bytes.fromhex(text)
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(raw)
    pages.append(page)
    return ctypes.addressof(ctypes.c_char.from_buffer(page))

def actions():
    """What the kernel has for each signal, as bytes."""
    found = []
    for number in ALL:
        raw = ctypes.create_string_buffer(32)
        assert libc.syscall(13, int(number), None, raw, 8) == 0
        found.append(raw.raw.hex())
    return found

pages = []
libc = ctypes.CDLL(None)

def kernel():
    ctypes.string_at(0)

def without_gil():
    libc.strlen.argtypes = [ctypes.c_void_p]
    libc.strlen(None)

def send():
    os.kill(os.getpid(), signal.SIGSEGV)

def divide():
    ctypes.CFUNCTYPE(ctypes.c_int)(code("31c999f7f9c3"))()

def illegal():
    ctypes.CFUNCTYPE(ctypes.c_int)(code("0f0b"))()

def beyond():
    with open(sys.argv[0], "rb") as file:
        page = mmap.mmap(os.memfd_create("empty") if hasattr(os, "memfd_create") else file.fileno(), 0 or 1, prot=mmap.PROT_READ)
    page[0]

def overflow():
    ctypes.CFUNCTYPE(ctypes.c_int)(code("e8fbffffff"))()

def in_thread():
    t = threading.Thread(target=kernel, name="doomed")
    t.start()
    t.join()

def renamed():
    threading.current_thread().name = "renamed"
    kernel()

def corrupt_in_thread():
    t = threading.Thread(target=corrupt, name="doomed")
    t.start()
    t.join()

def two():
    gate = threading.Barrier(3)
    def run():
        gate.wait()
        without_gil()
    for name in ("one", "two"):
        threading.Thread(target=run, name=name).start()
    gate.wait()
    time.sleep(600)

def corrupt():
    """The C library finds what it hands out in disorder, and ends the process while it has the lock of it."""
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = libc.malloc_usable_size.argtypes = [ctypes.c_size_t]
    libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
    size = 120 * 1024
    for _ in range(64):
        at = libc.malloc(size)
    ctypes.memset(at + libc.malloc_usable_size(at), 0xff, 8)
    for _ in range(64):
        libc.malloc(size)

class Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_byte * 128), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]

def mend():
    """From now on what reads from nowhere goes on behind that."""
    assert libc.sigaction(11, ctypes.byref(Action(handler=code("488382a800000007c3"), flags=4)), None) == 0

def touch():
    read = ctypes.PYFUNCTYPE(ctypes.c_int)(code("8b042500000000b82a000000c3"))
    numbers.append([read() for _ in range(1000)])

numbers = []

def spin():
    while True: sum(range(100)) # on one line: Python's own dump tells which

if "faulthandler" in sys.argv:
    faulthandler.enable()
threading.Thread(target=spin, name="spinner", daemon=True).start()
threading.Thread(target=time.sleep, args=(1000,), name="sleeper", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
go = sys.argv[1]
while True:
    if os.path.exists(go):
        with open(go) as file:
            what = file.read().split()
        os.unlink(go)
        for name in what:
            exec(name) if "." in name else globals()[name]()
    if box:
        box.pop()()
    time.sleep(0.002)
'''


@pytest.fixture
def job(target, tmp_path, wait_until):
    """A job that does what job.do(..) says."""
    made = []

    def start(*args, **more):
        go = tmp_path / f"go_{len(made)}"
        job = target(JOB, go, *args, name="crash.py", **more)

        def do(*what):
            wait_until(lambda: not go.exists(), 60, "what was to be done before")
            begun = tmp_path / "begun"
            begun.write_text(" ".join(what))
            begun.rename(go)
        job.do = do
        made.append(job)
        return job
    return start


def ending(job, wait_until):
    """Signal, and how it ended: killed, or killed with a dump of its memory; as the kernel tells its parent."""
    def look():
        return os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    found = wait_until(look, 60, "the job to end")
    job.process.wait(30)
    return found.si_status, found.si_code


def plain(text):
    """Without what is another in each process."""
    return re.sub(r"0x[0-9a-f]+", "0x..", text)


def known(probing, job, wait_until):
    """The agent has seen the job's threads. It begins to sample when a client has said how, which a backtrace does, or after some seconds."""
    probing(str(job.pid), "backtrace", timeout=60).ok()
    wait_until(lambda: probing(str(job.pid), "query", "SELECT 1 FROM python.samples WHERE thread = 'MainThread'", "--json",
                               timeout=60).ok().json()["rows"], 60, "the first samples")


def told(probing, job):
    return probing(str(job.pid), "catch", "--status", "--json", timeout=60).ok().json()


def only(probing, job):
    """The text of the one row that a crash is."""
    rows = probing(str(job.pid), "query", "SELECT text FROM probing.events WHERE kind = 'fatal signal'", "--json",
                   timeout=60).ok().json()["rows"]
    assert len(rows) == 1, rows
    return rows[0]["text"]


def path_in(document):
    return document["fatal_signal"].split("; stacks in ")[1]


def test_each_python(probing, job, each_python, wait_until):
    it = job(python=each_python)
    arm(probing, it)
    known(probing, it, wait_until)
    it.do("kernel")
    assert ending(it, wait_until)[0] == signal.SIGSEGV and it.output() == ""
    document = told(probing, it)
    what = f"SIGSEGV (nothing is mapped there, address 0x0) in thread MainThread ({it.pid})"
    assert document["fatal_signal"].startswith(what + "; stacks in /") and "kernel (" in document["stack"], document
    assert document["stack"].index("string_at") < document["stack"].index("kernel") < document["stack"].index("<module>")
    assert document["ended"].startswith("killed by " + what + " at string_at"), document
    path = path_in(document)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith(what + "\n") and "signal 11, code 1" in text and "rip 0x" in text
    main, spinner, sleeper = (text.index(f"Thread {name} (") for name in ("MainThread", "spinner", "sleeper"))
    assert text.index("    kernel (") > main and text.index("    spin (") > spinner and "Thread.run" in text[sleeper:] or "run (" in text[sleeper:]
    assert "[" in text[main:text.index("    string_at (")] or "+0x" in text[main:text.index("    string_at (")] # native frames
    back = probing(str(it.pid), "backtrace", timeout=60).ok().stdout
    assert "kernel (" in back and "spin (" in back and what in back
    text = probing(str(it.pid), "catch", "--status", timeout=60).ok().stdout
    assert text.startswith("ended: killed by SIGSEGV") and "kernel (" in text and path in text


ENDS = {
    "kernel": signal.SIGSEGV, "without_gil": signal.SIGSEGV, "send": signal.SIGSEGV, "in_thread": signal.SIGSEGV,
    "renamed": signal.SIGSEGV, "divide": signal.SIGFPE, "illegal": signal.SIGILL, "os.abort()": signal.SIGABRT, "two": signal.SIGSEGV,
}


@pytest.mark.parametrize("way", ["plain", "faulthandler before", "faulthandler after"])
@pytest.mark.parametrize("what", ENDS)
def test_ends_as_without_us(probing, job, any_python, wait_until, what, way):
    """The signal, whether memory is dumped, and every line of output."""
    before = ["faulthandler"] if way.endswith("before") else []
    first = ["faulthandler.enable()"] if way.endswith("after") else []
    twin = job(*before)
    twin.do(*first, what)
    expected = ending(twin, wait_until)
    assert expected[0] == ENDS[what]
    it = job(*before)
    arm(probing, it)
    known(probing, it, wait_until)
    it.do(*first, what)
    assert ending(it, wait_until) == expected
    if what != "two": # which of them Python's own dump calls the current one is by chance
        assert plain(it.output()) == plain(twin.output())
    document = told(probing, it)
    name = {"in_thread": "doomed", "renamed": "renamed", "two": "two"}.get(what, "MainThread")
    name = "one" if what == "two" and "thread one" in document["fatal_signal"] else name
    assert document["fatal_signal"].startswith(ENDS[what].name) and f"in thread {name} (" in document["fatal_signal"], document
    assert only(probing, it) == document["fatal_signal"]
    with open(path_in(document), encoding="utf-8") as file:
        assert file.readline().rstrip("\n") == document["fatal_signal"].split("; stacks in ")[0]
    assert {"os.abort()": "<module>", "in_thread": "kernel", "two": "without_gil"}.get(what, what) in document["stack"]


def test_stack_overflow(probing, job, any_python, wait_until):
    """With a stack for signals, as faulthandler makes it, it is reported. Without one the kernel ends it before anybody hears of it; but
    a thread that was sampled while it ran may have one of the agent's."""
    for more in ([], ["faulthandler"]):
        it = job(*more)
        arm(probing, it)
        known(probing, it, wait_until)
        it.do("overflow")
        assert ending(it, wait_until)[0] == signal.SIGSEGV
        document = told(probing, it)
        assert ("Segmentation fault" in it.output()) == bool(more)
        assert document["fatal_signal"] is not None or not more
        if document["fatal_signal"]:
            assert "overflow (" in document["stack"]


def touched(probing, job, wait_until, n):
    job.do("touch")
    return wait_until(lambda: value(probing, job, f"len(numbers) == {n} and numbers.pop(0)"), 60, "it to go on") == [42] * 1000


def test_a_handler_of_the_job_is_left_alone(probing, job, any_python, wait_until):
    """One that mends what has happened and goes on, as those of garbage collectors."""
    it = job()
    probing(str(it.pid), "inject", timeout=60).ok()
    it.do("mend")
    assert touched(probing, it, wait_until, 1)
    before = value(probing, it, "actions()")
    probing(str(it.pid), "catch").ok()
    document = told(probing, it)
    assert document["signals"] == "SIGBUS, SIGFPE, SIGILL, SIGABRT"
    assert document["left_alone"] == "SIGSEGV: the job has a handler of its own"
    text = probing(str(it.pid), "catch", "--status").ok().stdout
    assert "left alone: SIGSEGV: the job has a handler of its own\n" in text
    assert touched(probing, it, wait_until, 1)
    now = value(probing, it, "actions()")
    assert now[0] == before[0] and now[1:] != before[1:]
    it.do("signal.signal(signal.SIGBUS,lambda*a:None)")
    wait_until(lambda: value(probing, it, "signal.getsignal(signal.SIGBUS) != 0"), 60, "its handler")
    assert "SIGBUS: the job has put another handler there since" in told(probing, it)["left_alone"]
    probing(str(it.pid), "catch", "--off").ok()
    now = value(probing, it, "actions()")
    assert [now[i] == before[i] for i in range(5)] == [True, False, True, True, True]


@pytest.mark.parametrize("way", ["off", "eject"])
def test_what_was_there_is_there_again(probing, job, any_python, wait_until, way):
    it = job("faulthandler")
    before = value(probing, it, "actions()")
    for _ in range(3):
        arm(probing, it)
        assert all(a != b for a, b in zip(value(probing, it, "actions()"), before))
        probing(str(it.pid), *(["catch", "--off"] if way == "off" else ["eject"]), timeout=60).ok()
        assert value(probing, it, "actions()") == before
    it.do("kernel")
    assert ending(it, wait_until)[0] == signal.SIGSEGV and "Segmentation fault" in it.output()
    assert told(probing, it)["fatal_signal"] is None


def test_faulthandler_over_ours_may_put_it_back(probing, job, any_python, wait_until):
    """What lies below passes signals on when nothing is caught any more, and is not armed again."""
    it = job()
    before = value(probing, it, "actions()")
    arm(probing, it)
    it.do("faulthandler.enable()")
    wait_until(lambda: value(probing, it, "faulthandler.is_enabled()"), 60, "it")
    probing(str(it.pid), "catch", "--off").ok()
    probing(str(it.pid), "catch").ok()
    assert told(probing, it)["signals"] == "" and "faulthandler was enabled over" in told(probing, it)["left_alone"]
    probing(str(it.pid), "catch", "--off").ok()
    value(probing, it, "faulthandler.disable()\n1")
    assert value(probing, it, "actions()") != before # ours, which does nothing
    it.do("kernel")
    assert ending(it, wait_until)[0] == signal.SIGSEGV and it.output() == "" and told(probing, it)["fatal_signal"] is None


def test_children_are_left_alone(probing, job, any_python, wait_until):
    it = job()
    before = value(probing, it, "actions()")
    arm(probing, it)
    value(probing, it, "found = []\nbox.append(lambda: os.fork() or (os.write(1, repr(actions()).encode()), kernel()))\n1")
    wait_until(lambda: it.output().endswith("]"), 60, "the child to look")
    status = wait_until(lambda: value(probing, it, "os.waitpid(-1, os.WNOHANG)"), 60, "the child to end")
    while not status[0]:
        status = value(probing, it, "os.waitpid(-1, os.WNOHANG)")
    assert os.WTERMSIG(status[1]) == signal.SIGSEGV and it.output() == repr(before)
    rows = probing(str(it.pid), "query", "SELECT 1 FROM probing.events WHERE kind = 'fatal signal'", "--json").ok().json()["rows"]
    assert rows == [] and it.alive() and not told(probing, it)["caught"]


@pytest.mark.parametrize("what, name", [("corrupt", "MainThread"), ("corrupt_in_thread", "doomed")])
def test_the_lock_of_memory_is_taken(probing, job, any_python, wait_until, what, name):
    """All threads share one heap, and the thread that ends has its lock: the row and the text's head need none, nor does a name
    that nobody has known before."""
    it = job(env={"MALLOC_ARENA_MAX": "1", "PYTHONMALLOC": "pymalloc"})
    arm(probing, it)
    known(probing, it, wait_until)
    it.do(what)
    assert ending(it, wait_until)[0] == signal.SIGABRT
    document = told(probing, it)
    assert document["fatal_signal"].startswith(f"SIGABRT (raised by the process itself) in thread {name} (")
    assert only(probing, it) == document["fatal_signal"]
    with open(path_in(document), encoding="utf-8") as file:
        assert file.read().startswith("SIGABRT")


def test_killed_in_the_middle(probing, job, any_python, wait_until):
    tables = os.environ["PROBING_DATA_DIR"]
    for _ in range(3):
        it = job()
        arm(probing, it)
        known(probing, it, wait_until)
        it.do("kernel")
        folder = [one for one in os.listdir(tables) if one.startswith(f"{it.pid}-")][0]
        wait_until(lambda: os.path.exists(os.path.join(tables, folder, "fatal.txt")), 60, "the crash")
        os.kill(it.pid, signal.SIGKILL) # it is not waited for yet, so the number is still its
        assert ending(it, wait_until)[0] in (signal.SIGSEGV, signal.SIGKILL)
        assert probing(str(it.pid), "query", "SELECT count(*) FROM python.samples", "--json", timeout=60).ok()
