# SPDX-License-Identifier: Apache-2.0
"""A job that holds the GIL in C: clients that want code run learn it within their time, through every listener, and none of it runs later."""

import os
import signal
import subprocess
import time

import pytest

from agent_wire import Client
from tcp_client import TcpClient
from test_eval import HOG, again, evaluate, events, poke

pytestmark = pytest.mark.timeout(300)

HELD = "holds it"
NOTHING = "nothing was run, and nothing will be"


class Hog:
    """The job, its listeners, and what code of ours would leave if it were run."""

    def __init__(self, job, probing, folder, wait_until):
        self.job, self.probing, self.folder, self.wait_until = job, probing, folder, wait_until
        self.endpoint = probing(str(job.pid), "inject", "--json").ok().json()["endpoint"].removeprefix("unix:")
        self.door = probing(str(job.pid), "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]
        self.address = self.door["address"]

    def client(self, door, timeout=60.0):
        return Client(self.endpoint, timeout) if door == "unix" else TcpClient(self.address, token=self.door["token"], timeout=timeout)

    def name(self, door):
        return str(self.job.pid) if door == "unix" else self.address

    def code(self, mark):
        return f"mark = {mark!r}; open({str(self.folder)!r} + '/' + mark, 'w').close()"

    def wait_asked(self, mark):
        """That code is among those that were asked for."""
        self.wait_until(lambda: any(mark in text for _, text in events(self.probing, self.job.pid)[0]), 60, "it to wait")

    def let_go(self):
        """The GIL is free again; what was asked for until then would run now."""
        poke(self.job.pid, int(self.job.ready))
        assert again(self.probing, self.job.pid, "counter.value > 0", self.wait_until)["result"] == "True"
        assert evaluate(self.probing, self.job.pid, "1", "--main")["result"] == "1"

    def marks(self):
        return sorted(name for name in os.listdir(self.folder) if name.startswith("mark"))


@pytest.fixture
def hog(target, probing, build_dir, tmp_path, wait_until, ptrace):
    return Hog(target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so")), probing, tmp_path, wait_until)


@pytest.mark.parametrize("door", ["unix", "tcp"])
def test_said_in_time(hog, door):
    """eval and complete, as messages; stacks and status are there all the while."""
    with hog.client(door) as client:
        for method, code in (("eval", hog.code("mark")), ("eval", "1 + 1"), ("complete", "os.pa"), ("complete", "def f():")):
            began = time.monotonic()
            error = client.call_error(method, {"code": code.encode(), "name": "x", "timeout_s": 1.0, "whole": code.endswith(":")})
            assert HELD in error["message"] and NOTHING in error["message"], (method, error)
            assert time.monotonic() - began >= 0.9
            assert client.call("threads")["threads"] and client.call("status")
    hog.let_go()
    assert hog.marks() == []


@pytest.mark.parametrize("door", ["unix", "tcp"])
def test_the_client_goes(hog, door):
    """The client is gone before the GIL is free: nobody wants the result any more."""
    for where in (False, True):
        client = hog.client(door)
        client.send("eval", {"code": hog.code(f"mark_{where}").encode(), "name": "x", "timeout_s": 3600.0, "main": where})
        hog.wait_asked(f"mark_{where}")
        with hog.client(door) as other:
            assert "another eval is running" in other.call_error("eval", {"code": b"1", "timeout_s": 0.2})["message"]
            client.close()
            hog.wait_until(lambda: NOTHING in other.call_error("eval", {"code": b"1", "timeout_s": 0.2})["message"], 60, "it to be withdrawn")
    hog.let_go()
    assert hog.marks() == []


@pytest.mark.parametrize("door", ["unix", "tcp"])
def test_interrupted_while_it_waits(hog, door):
    """^C of the program withdraws what has not begun."""
    process = subprocess.Popen([hog.probing.path, "-t", hog.name(door), "eval", hog.code("mark"), "--timeout", "1h"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    hog.wait_asked("mark")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and said.count("\n") <= 1, said
    hog.let_go()
    assert hog.marks() == []


@pytest.mark.parametrize("door", ["unix", "tcp"])
def test_the_programs(hog, door):
    """eval, execute and repl, as people type them."""
    name = hog.name(door)
    for verb, more in (("eval", (hog.code("mark_eval"),)), ("execute", (hog.code("mark_execute"),))):
        done = hog.probing("-t", name, verb, *more, "--timeout", "1s", timeout=90)
        assert done.status == 1 and NOTHING in done.stderr and done.stderr.count("\n") == 1, done
    done = hog.probing("-t", name, "repl", "--timeout", "1s", stdin=hog.code("mark_repl") + "\n", timeout=90)
    assert done.status == 1 and NOTHING in done.stderr and done.stdout == "", done
    done = hog.probing("-t", name, "repl", "--timeout", "1s", "--keep-going", stdin="1\n%bt\n", timeout=90)
    assert done.status == 1 and "Thread " in done.stdout, "what needs no GIL works"
    hog.let_go()
    assert hog.marks() == []


TRACED = r'''
import os, sys, time
count = 0

def tracer(frame, event, arg):
    return tracer

def step():
    global count
    count += 1

sys.settrace(tracer)
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    step()
    time.sleep(0.0005)
'''


def test_a_traced_thread_goes_on(each_python, target, probing, wait_until, ptrace):
    """After code that ended by itself, just as it was interrupted, or was interrupted, a thread with a trace function gets on: nothing asks it
    for all time to look at what has come up (3.11: such a thread would never get past the beginning of a function)."""
    job = target(TRACED, python=each_python)
    codes = ["1", "n = 0\nwhile n < 200000: n += 1", "while True: pass", "import time\ntime.sleep(0.25)"]
    for code in codes:
        done = probing(str(job.pid), "eval", code, "--timeout", "200ms", timeout=90)
        assert done.status in (0, 1), done
        before = int(again(probing, job.pid, "count", wait_until)["result"])
        wait_until(lambda: int(again(probing, job.pid, "count", wait_until)["result"]) > before, 60, f"steps after {code!r}")
