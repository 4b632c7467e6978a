# SPDX-License-Identifier: Apache-2.0
"""A Python process that loads libprobing.so itself, so that tests of the agent do not depend on injection.

The job takes commands through a pipe, one a line, and answers with a line of JSON. Import `job` to use it.
"""

import json
import os

import pytest

from agent_wire import threads_of
from conftest import hold_without_waits_us

JOB = r'''
import ctypes, json, os, sys, threading, time, traceback

class Start(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("region", ctypes.c_uint64),
                ("region_size", ctypes.c_uint64), ("thread", ctypes.c_uint64), ("fd", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("error", ctypes.c_char * 256), ("endpoint", ctypes.c_char * 128)]

library = ctypes.CDLL(os.environ["AGENT"])
events = []

def start():
    args = Start(size=ctypes.sizeof(Start), abi_version=1, fd=-1)
    result = library.probing_start(ctypes.byref(args))
    return [result, args.error.decode(), args.endpoint.decode()]

def spawn(name, function, *args):
    ready = threading.Event()
    def run():
        ready.set()
        function(*args)
    threading.Thread(target=run, name=name, daemon=True).start()
    ready.wait()

def wait_for_ever():
    event = threading.Event()
    events.append(event)
    event.wait()

def recurse(n):
    if n == 0:
        wait_for_ever()
    recurse(n - 1)

def hot_inner():
    total = 0
    for i in range(2000):
        total += i * i
    return total

def hot_loop():
    while True:
        hot_inner()

def schläft_主():
    time.sleep(1000)

def keep_the_gil():
    ctypes.PyDLL(None).sleep(1000)

def at_rest():
    names = {t.ident: (t.name, t.native_id) for t in threading.enumerate()}
    stacks = {}
    for ident, frame in sys._current_frames().items():
        stack = []
        while frame:
            code = frame.f_code
            stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
            frame = frame.f_back
        stacks[names[ident][1]] = {"name": names[ident][0], "stack": stack}
    return stacks

def fork_child():
    """What a child of ours sees: the kinds of its descriptors, its threads, and an agent of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            links = []
            for fd in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink("/proc/self/fd/" + fd))
                except OSError:
                    pass
            seen = {"fds": links, "threads": len(os.listdir("/proc/self/task")), "start": start(), "pid": os.getpid()}
            os.write(writer, json.dumps(seen).encode() + b"\n")
            os.close(writer)
            time.sleep(100)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return json.loads(answer.readline())

def look():
    links = sorted(os.listdir("/proc/self/fd"))
    return {"fds": len(links), "threads": len(os.listdir("/proc/self/task")), "tids": os.listdir("/proc/self/task")}

sys.setrecursionlimit(5000)
commands = os.open(os.environ["COMMANDS"], os.O_RDWR)
answers = os.open(os.environ["ANSWERS"], os.O_RDWR)
os.write(int(os.environ["READY_FD"]), b"ready\n")
buffer = b""
while True:
    while b"\n" not in buffer:
        buffer += os.read(commands, 65536)
    line, buffer = buffer.split(b"\n", 1)
    try:
        answer = eval(line.decode())
    except Exception:
        answer = traceback.format_exc()
    os.write(answers, json.dumps(answer).encode() + b"\n")
'''


class Job:
    """The process and the pipes to it."""

    def __init__(self, target, commands, answers):
        self.target = target
        self.pid = target.pid
        self.commands = commands
        self.answers = os.fdopen(answers)
        self.endpoint = None  # of its agent

    def tell(self, command):
        os.write(self.commands, command.encode() + b"\n")

    def do(self, command):
        self.tell(command)
        return json.loads(self.answers.readline())

    def start(self):
        result, error, endpoint = self.do("start()")
        assert result == 0, error
        self.endpoint = endpoint
        return endpoint

    def agent_threads(self):
        return {name: tid for tid, name in self.target.thread_names().items() if name.startswith("probing-")}

    def longest_hold_us(self, client):
        return hold_without_waits_us(self.pid, client.call("status")["us_longest_gil_hold"])


@pytest.fixture
def job(target, tmp_path, build_dir):
    """A factory of jobs: job(python=None, fork=None, env=None, args=())."""
    agent = os.path.join(build_dir, "libprobing.so")
    if not os.path.exists(agent):
        pytest.fail(f"{agent} is not built")
    opened = []

    def make(python=None, fork=None, env=None, args=()):
        paths = [str(tmp_path / f"{name}_{len(opened)}") for name in ("commands", "answers")]
        for path in paths:
            os.mkfifo(path)
        fds = [os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths]
        # What is tested is what clients ask for: without the looks that are always taken.
        env = dict({"PROBING_SAMPLE_RATE": "0"}, **(env or {}), AGENT=agent, COMMANDS=paths[0], ANSWERS=paths[1])
        made = Job(target(JOB, *args, env=env, name="job.py", python=python, fork=fork), *fds)
        opened.append(made)
        return made

    yield make
    for made in opened:
        os.close(made.commands)
        made.answers.close()


def snapshot_by_name(client):
    return {thread["name"]: thread for thread in threads_of(client.call("threads"))}
