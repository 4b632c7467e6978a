# SPDX-License-Identifier: Apache-2.0
"""A running job is held, looked at with pdb over a socket or nc, and goes on with nothing of it left."""

import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from agent_wire import Client
from conftest import ROOT
from left_behind import LEFT
from tcp_client import STRANGER, as_user
from test_eval import HOG

pytestmark = pytest.mark.timeout(240)
IS_ROOT = os.geteuid() == 0

JOB = r'''
import os, sys, threading, time

count = beats = 0
box = []

def step(number):
    doubled = 2 * number
    return doubled

def other():
    global beats
    while True:
        beats += 1
        time.sleep(0.002)

def asleep():
    threading.Event().wait()

def speed():
    """Seconds that some Python takes, at best: a trace function makes it many times slower."""
    best = 1e9
    for _ in range(30):
        began = time.perf_counter()
        for i in range(2000):
            step(i)
        best = min(best, time.perf_counter() - began)
    return best

speeds = []

def work():
    global count
    while True:
        step(count)
        count += 1
        if box:
            speeds.append(box.pop()())
        time.sleep(0.002)

for run in (other, asleep):
    threading.Thread(target=run, name=run.__name__, daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
try:
    work()
except KeyboardInterrupt:
    print("interrupted in", sys.exc_info()[2].tb_next.tb_frame.f_code.co_name, flush=True)
    time.sleep(600)
'''

# What this verb may leave: names in modules, threads, descriptors that listen.
MORE = r'''
[t.name for t in __import__("threading").enumerate() if t.name not in ("MainThread", "other", "asleep")] + [
    n for n in __import__("__main__").__dict__ if n.startswith("__pdb")] + [n for n in ("readline",) if n in __import__("sys").modules]
'''


class Talker:
    """The other end of the debugger; what nc is for a person. `token`: said as the first line."""

    def __init__(self, address, token=None, uid=None, timeout=60.0):
        host, _, port = address.rpartition(":")
        with as_user(uid):
            self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            self.socket.settimeout(timeout)
            self.socket.connect((host.strip("[]"), int(port)))
        self.rest = b""
        if token:
            assert self.until(b"token: ") == "token: "
            self.socket.sendall(token.encode() + b"\n")

    def until(self, mark):
        while mark not in self.rest:
            data = self.socket.recv(65536)
            if not data:
                break
            self.rest += data
        got, mark, self.rest = self.rest.partition(mark)
        return (got + mark).decode()

    def prompt(self):
        got = self.until(b"(Pdb) ")
        assert got.endswith("(Pdb) "), got
        return got[:-6]

    def ask(self, line):
        self.socket.sendall(line.encode() + b"\n")
        return self.prompt()

    def end(self):
        try:
            got = self.until(b"\0")
        except ConnectionResetError:
            got = ""
        self.socket.close()
        return got

    def leave(self, line):
        self.socket.sendall(line.encode() + b"\n")
        return self.end()


def pause(probing, job, *options, **more):
    document = probing(str(job.pid), "pause", "--json", "--timeout", "60", *options, timeout=90, **more).ok().json()
    assert document["paused"] and len(document["token"]) == 48
    return document


def value(probing, job, code):
    return eval(probing(str(job.pid), "execute", "-", stdin=code, timeout=60).ok().stdout)


def is_paused(probing, job):
    return probing(str(job.pid), "pause", "--status", "--json").ok().json()["paused"]


def goes_on(probing, job, wait_until):
    """It does, in both threads, and nothing is left."""
    wait_until(lambda: not is_paused(probing, job), 60, "the pause to be over")
    before = value(probing, job, "count, beats")
    wait_until(lambda: all(now > then + 3 for now, then in zip(value(probing, job, "count, beats"), before)), 60, "the job to go on")
    assert value(probing, job, LEFT) == [] and value(probing, job, MORE) == []


def measure(probing, job, wait_until):
    """On its main thread, in its own frame."""
    before = value(probing, job, "box.append(speed)\nlen(speeds)")
    wait_until(lambda: value(probing, job, "len(speeds)") > before, 60, "a measurement")
    return value(probing, job, "speeds[-1]")


@pytest.mark.parametrize("minor", ["3.6", "3.8", "3.9", "3.11", "3.12", "3.13", "3.14"])
def test_held_and_let_go(probing, target, python_for, wait_until, minor):
    job = target(JOB, python=python_for(minor))
    speed = measure(probing, job, wait_until)
    for way in ("continue", "quit"):  # what is let go can be held again
        document = pause(probing, job)
        threads = {t["name"]: t for t in document["threads"]}
        assert set(threads) == {"MainThread", "other", "asleep"}, document
        assert threads["MainThread"]["held"] and " work" in threads["MainThread"]["where"] and threads["other"]["held"]
        assert not threads["asleep"]["held"] and "in C" in threads["asleep"]["where"]
        assert minor == "3.6" or threads["MainThread"]["tid"] in (0, job.pid)
        talker = Talker(document["address"], document["token"])
        assert "2 of 3 threads" in talker.prompt()
        held = talker.ask("p count, beats")
        talker.ask("p __import__('time').sleep(0.2)")
        assert talker.ask("p count, beats") == held
        assert "work()" in talker.ask("where") and "other" in talker.ask("stacks")
        assert re.search(r"> 0 +MainThread .* held at", talker.ask("threads"))
        number = re.search(r"(\d) +other ", talker.ask("threads")).group(1)
        assert "other()" in talker.ask("thread " + number) and "threading.py" in talker.ask("up")
        assert "other()" in talker.ask("down") and "beats" in talker.ask("list") and "*** thread takes" in talker.ask("thread 99")
        assert "Documented commands" in talker.ask("help") and "not stepped" in talker.ask("next") and "not stepped" in talker.ask("debug 1")
        assert "ZeroDivisionError" in talker.ask("p 1/0") and "'wide': [1," in talker.ask("pp {'wide': [1, 2]}")
        second = Talker(document["address"], document["token"])
        assert second.end() == "somebody else is connected already\n"
        assert value(probing, job, "1 + 1") == 2  # the agent goes on
        assert "the pause is over: " + way in talker.leave(way)
        goes_on(probing, job, wait_until)
    assert measure(probing, job, wait_until) < 3 * speed
    assert job.output() == ""


@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.12", "3.13"])
def test_what_was_looked_at_is_let_go(probing, target, python_for, wait_until, minor):
    """Values of variables live no longer for it."""
    job = target(r'''
import os, sys, time, weakref

class Thing: pass

refs = []

def work():
    n = 0
    while True:
        thing = Thing()
        refs.append(weakref.ref(thing))
        n += 1
        time.sleep(0.002)

os.write(int(os.environ["READY_FD"]), b"ready\n")
work()
''', python=python_for(minor))
    document = pause(probing, job)
    talker = Talker(document["address"], document["token"])
    talker.prompt()
    n = int(talker.ask("p n"))
    talker.ask("args")
    assert int(talker.ask("p n")) == n
    talker.leave("c")
    wait_until(lambda: value(probing, job, "len(refs)") > n + 5, 60, "the job to go on")
    alive = value(probing, job, "[i for i, r in enumerate(refs) if r() is not None]")
    total = value(probing, job, "len(refs)")
    assert len([i for i in alive if i < total - 1]) <= 1, (alive, total)


def test_a_client_that_vanishes(probing, target, any_python, wait_until):
    job = target(JOB)
    for line in ("", "p 1\n", "while True: pass\n"):
        document = pause(probing, job, "--limit", "8s")
        talker = Talker(document["address"], document["token"])
        talker.prompt()
        talker.socket.sendall(line.encode())
        talker.socket.close()
        goes_on(probing, job, wait_until)
    assert job.output() == ""


BEGIN, STATUS, END = 1, 2, 3  # as in src/wire/wire.h

# The names of the agent's own Python, once it has some, in the dict that has this one.
OURS = "import gc\nours = next(o for o in gc.get_objects() if type(o) is dict and {!r} in o and 'eval_open' in o)\n"

# Threads that come to Python from C: each makes its state without the GIL.
COMERS = r"""
import ctypes, os, threading, time
libc, came, count = ctypes.CDLL(None), 0, 0

@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def come(arg):
    global came
    came += 1

def bring():
    thread = ctypes.c_ulong()
    while True:
        if libc.pthread_create(ctypes.byref(thread), None, come, None) == 0:
            libc.pthread_join(thread, None)

for i in range(4):
    threading.Thread(target=bring, name="bring", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    count += 1
    time.sleep(0.001)
"""


@pytest.mark.parametrize("minor", ["3.8", "3.10", "3.11", "3.12"])
def test_threads_that_come_meanwhile(probing, target, python_for, wait_until, minor):
    """In 3.11 a thread's state is among the others before it is whole, and what is done to it then ends the job (one time in some hundreds)."""
    job = target(COMERS, python=python_for(minor), flags=["-X", "faulthandler"])
    endpoint = probing(str(job.pid), "inject", "--json", timeout=60).ok().json()["endpoint"].removeprefix("unix:")
    trace = OURS.format("pdb_server_functions") + "any(ours['pdb_server_functions']['trace'](None) for i in range(1000000)) or 'over'"
    with Client(endpoint, timeout=60.0) as client:
        for i in range(3):
            told = client.call("pause", {"action": BEGIN, "host": "127.0.0.1", "limit_s": 60.0, "timeout_s": 50.0})
            assert told["on"] and told["token"], (told, job.output())
            told = client.call("pause", {"action": END, "timeout_s": 50.0})
            assert told["was"] and not told["on"], (told, job.output())
            told = client.call("eval", {"code": trace, "timeout_s": 50.0, "name": "<test>"})
            assert told["result"] == b"'over'", (told, job.output())
    before = value(probing, job, "count, came")
    wait_until(lambda: all(now > then + 3 for now, then in zip(value(probing, job, "count, came"), before)), 60, "the job to go on")
    assert job.output() == ""


def test_the_time_is_over(probing, target, any_python, wait_until):
    """Also while somebody is connected, and while what they typed never ends."""
    job = target(JOB)
    pause(probing, job, "--limit", "1s")
    goes_on(probing, job, wait_until)
    for line in ("p 1", "while True: pass"):
        document = pause(probing, job, "--limit", "3s")
        talker = Talker(document["address"], document["token"])
        talker.prompt()
        assert "its time is over" in talker.leave(line)
        goes_on(probing, job, wait_until)


def test_off_eject_and_a_signal_let_go(probing, target, any_python, wait_until):
    job = target(JOB)
    document = pause(probing, job)
    again = probing(str(job.pid), "pause", timeout=60)
    assert again.status == 1 and again.stderr == f"probing: the job is paused already, at {document['address']}: pause --off ends that\n"
    assert probing(str(job.pid), "pause", "--off").ok().stdout == "the job continues\n"
    assert probing(str(job.pid), "pause", "--off").ok().stdout == "the job is not paused\n"
    goes_on(probing, job, wait_until)
    document = pause(probing, job)
    talker = Talker(document["address"], document["token"])
    talker.prompt()
    probing(str(job.pid), "eject", timeout=60).ok()
    assert "the pause is over: it was ended from outside" in talker.end()
    probing(str(job.pid), "inject", timeout=60).ok()
    goes_on(probing, job, wait_until)
    pause(probing, job)
    os.kill(job.pid, signal.SIGINT)
    wait_until(lambda: "interrupted in work" in job.output(), 60, "the signal to come up where it would have")
    wait_until(lambda: not is_paused(probing, job), 60, "the pause to be over")
    assert value(probing, job, LEFT) == [] and "Exception ignored" not in job.output()


def test_a_gil_that_is_never_had(probing, target, build_dir, any_python, wait_until):
    """Said within the time limit; and what was not begun is never done."""
    job = target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so"))
    done = probing(str(job.pid), "pause", "--timeout", "1", timeout=60)
    assert done.status == 1 and "nothing was run, and nothing will be" in done.stderr and done.stderr.count("\n") == 1, done
    with open(f"/proc/{job.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(int(job.ready))
        memory.write(b"\1")
    wait_until(lambda: probing(str(job.pid), "eval", "1").status == 0, 60, "the GIL to be had")
    assert not is_paused(probing, job) and value(probing, job, LEFT) == []


@pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")
def test_another_user_says_the_token(probing, target, any_python, wait_until):
    job = target(JOB)
    document = pause(probing, job)
    silent = Talker(document["address"], uid=STRANGER)
    assert silent.until(b"token: ") == "token: "
    for wrong in (b"nonsense\n", b"\n"):
        talker = Talker(document["address"], uid=STRANGER)
        if talker.until(b": ") == "token: ":
            talker.socket.sendall(wrong)
        assert "(Pdb)" not in talker.end()
    assert "too many tries" in Talker(document["address"], uid=STRANGER).end()
    assert is_paused(probing, job)
    silent.socket.sendall(b"x" * 1000)
    assert "(Pdb)" not in silent.end()

    def enter():
        talker = Talker(document["address"], uid=STRANGER)
        if talker.until(b": ") == "token: ":
            talker.socket.sendall(document["token"].encode() + b"\r\n")
            talker.prompt()
            return talker
        return None
    talker = wait_until(enter, 60, "the time of waiting to be over")
    assert "held at" in talker.ask("threads")
    talker.leave("c")
    goes_on(probing, job, wait_until)


def test_bad_input(probing, target, any_python):
    job = target(JOB)
    for bad, said in ((["nonsense"], "nonsense"), (["127.0.0.1:99999"], "99999"), (["--off", "--status"], "cannot be combined"),
                      (["--off", "1234"], "cannot be combined"), (["--limit", "0s"], "limit")):
        done = probing(str(job.pid), "pause", *bad)
        assert done.status == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    done = probing("--readonly", str(job.pid), "pause")
    assert done.status == 2 and "readonly" in done.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = probing(str(job.pid), "pause", f"127.0.0.1:{taken.getsockname()[1]}")
        assert done.status == 1 and "in use" in done.stderr and done.stderr.count("\n") == 1, done
    assert not is_paused(probing, job)
    traced = target(JOB.replace("os.write(", "sys.settrace(lambda *a: None)\nthreading.settrace(lambda *a: None)\nos.write("))
    done = probing(str(traced.pid), "pause")
    assert done.status == 1 and "the job has a trace function already" in done.stderr, done


def test_nc(probing, target, any_python, wait_until):
    program = shutil.which("nc") or shutil.which("ncat")
    if not program:
        pytest.skip("needs nc: no nc or ncat found")
    job = target(JOB)
    for how in ("two lines", "one line"):
        lines = probing(str(job.pid), "pause", timeout=90).ok().stdout.splitlines()
        assert lines[-4].startswith("nc 127.0.0.1 ") and re.fullmatch("[0-9a-f]{48}", lines[-3])
        command, said = (lines[-4], lines[-3] + "\n") if how == "two lines" else (lines[-1], "")
        done = subprocess.run(["sh", "-c", command.replace("nc ", program + " ")], input=said + "where\np count\ncontinue\n", capture_output=True,
                              text=True, timeout=60, check=False)
        assert "work()" in done.stdout and "the pause is over" in done.stdout
        goes_on(probing, job, wait_until)


@pytest.mark.long
def test_a_real_training_job_learns_the_same(probing, target, torch_python, tmp_path, wait_until):
    """Every loss of every step, with it held twice and without."""
    def train(name):
        return target(os.path.join(ROOT, "examples", "train.py"), "--workers", 1, "--losses", tmp_path / name, python=torch_python,
                      ready=r"step +1 ", timeout=180)

    def losses(name):
        return (tmp_path / name).read_text().splitlines()[:-1]  # of the last, half may be written
    job = train("held")
    for line in ("p loss", "stacks"):
        document = pause(probing, job)
        talker = Talker(document["address"], document["token"])
        assert "process" in talker.prompt() and "***" not in talker.ask(line).splitlines()[:1]
        steps = len(losses("held"))
        talker.leave("continue")
        wait_until(lambda: len(losses("held")) > steps + 10, 60, "it to train on")
    assert value(probing, job, LEFT) == []
    job.end()
    plain, steps = train("plain"), len(losses("held"))
    wait_until(lambda: len(losses("plain")) >= steps, 150, "as many steps")
    assert steps > 20 and losses("plain")[:steps] == losses("held")
