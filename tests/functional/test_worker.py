# SPDX-License-Identifier: Apache-2.0
"""What the agent asks the interpreter for with the GIL: values of any type. It never waits without end, and leaves nothing."""

import json
import os
import signal
import threading
import time

import pytest

from agent_job import job  # noqa: F401
from agent_wire import Client

# On a machine that does other things too an answer may have to be asked for again.
pytestmark = pytest.mark.timeout(300)

# Each text is what repr() says, where the test says nothing else.
VALUES = r'''
import collections, datetime, decimal, enum, fractions, functools, json, os, pathlib, re, sys, threading, time, types, uuid

marker = sys.argv[1]

class Plain:
    pass

class Evil:
    def touched(self, *_):
        open(marker, "w").close()
        raise SystemExit
    __repr__ = __str__ = __len__ = __iter__ = __getattr__ = __hash__ = __eq__ = touched

    @property
    def __class__(self):
        self.touched()

class Meta(type):
    def touched(cls, *_):
        open(marker, "w").close()
        raise SystemExit
    __repr__ = __hash__ = __eq__ = __getattribute__ = touched

class Text(str):
    def touched(self, *_):
        open(marker, "w").close()
        raise SystemExit
    __repr__ = __str__ = touched

class Color(enum.Enum):
    RED = 1

def values(ready, free):
    number = 1 + 2j; span = range(3); part = slice(1, None, 2); octets = bytearray(b"ab"); queue = collections.deque([1, "x"], maxlen=4)
    day = datetime.date(2020, 1, 2); when = datetime.datetime(2020, 1, 2, 3, 4); length = datetime.timedelta(3); price = decimal.Decimal("1.50")
    third = fractions.Fraction(1, 3); name = uuid.UUID(int=7); path = pathlib.PurePosixPath("/a/b"); pattern = re.compile("a+b")
    color = Color.RED; record = types.SimpleNamespace(a=1); half = functools.partial(int, base=2)
    def generator():
        yield free
    steps = generator(); lock = threading.Lock()
    told = {k: repr(v) for k, v in locals().items() if k not in ("ready", "free", "generator")}
    plain = Plain(); evil = Evil(); meta = Meta("WithMeta", (), {})(); items = collections.deque(Evil() for _ in range(9)); huge = bytearray(10**8)
    file = open(Text(os.devnull)); expression = re.compile(Text("b+")); match = re.match("c+", "c" * 5000)
    told["plain"] = repr(plain)
    os.write(ready, (json.dumps(told) + "\n").encode())
    time.sleep(3600)

values(int(os.environ["READY_FD"]), Plain())
'''

DATACLASS = r'''
import dataclasses, os, time

@dataclasses.dataclass
class Config:
    rate: float
    layers: list
    name: str = "x"

    def __repr__(self):
        return "own repr"

def values():
    config = Config(0.5, [1, 2])
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

values()
'''


def locals_of(result, func):
    """{name: text} of the innermost frame of a function in the main thread; and the document's note."""
    document = result.ok().json()
    for frame in document["threads"][0]["frames"]:
        if frame["func"].split(".")[-1] == func and frame["locals"] is None:
            return {}, "the frame moved"
        if frame["func"].split(".")[-1] == func:
            return {name: v["repr"] for name, v in frame["locals"].items()}, document["note"]
    return {}, f"no frame of {func} in {document['threads'][0]['frames']}"


def read_locals(probing, pid, func, *options):
    """The same, read again while the machine is too slow for the worker's deadline."""
    deadline = time.monotonic() + 90
    while True:
        seen, note = locals_of(probing(pid, "backtrace", "--locals", "--json", *options), func)
        if note is None:
            return seen
        if "runs without a GIL" in note:
            pytest.skip(note)
        assert time.monotonic() < deadline, note


def test_everything_in_one_answer(ptrace, target, probing, tmp_path, wait_until):
    """Native frames, values that only the worker can tell, and tasks; each variable stays with its frame."""
    job = target(VALUES, tmp_path / "evil")

    def told():
        document = probing(job.pid, "backtrace", "--native", "--locals", "--tasks", "--json", timeout=90).ok().json()
        thread = document["threads"][0]
        # Not at rest yet, or the machine was too slow for the worker's deadline.
        return document if document["note"] is None and thread["native_merge"] == "merged" else None
    document = wait_until(told, 90, "an answer with everything")
    assert document["threads"][0]["tasks"] == []
    frames = document["threads"][0]["frames"]
    assert any(f["kind"] == "native" for f in frames)
    assert all(f["locals"] is None for f in frames if f["kind"] == "native")
    values = [f for f in frames if f["func"] == "values"]
    assert len(values) == 1 and values[0]["locals"]["queue"]["repr"] == "deque([1, 'x'], maxlen=4)"
    assert values[0]["locals"]["number"]["repr"] == "(1+2j)"


def test_each_who_asks_gets_what_it_asked_for(job):  # noqa: F811
    """Questions that one look answers: native frames and values go to those who want them, and to nobody else."""
    with Client(job().start()) as client:
        for _ in range(20):
            wants = [{"native": True}, {}, {"native": True, "locals": True}, {"locals": True}, {"tasks": True}]
            asked = {client.send("threads", want): want for want in wants}
            while asked:
                message = client.message()
                if message[0] != 1:
                    continue
                want = asked.pop(message[1])
                assert message[2] is None, message[2]
                kinds = set(message[3]["frames"]["kind"])
                assert (1 in kinds) == want.get("native", False) and (kinds <= {0} or "native" in want), (want, kinds)
                assert want.get("locals") or "locals" not in message[3]
                assert want.get("tasks") or "tasks" not in message[3]


def test_values_of_any_type(each_python, ptrace, target, probing, tmp_path):
    marker = tmp_path / "evil"
    job = target(VALUES, marker, python=each_python)
    told = json.loads(job.ready)
    seen = read_locals(probing, job.pid, "values")
    for name, text in told.items():
        if name == "half":
            assert seen[name] == "functools.partial(<class 'int'>)"
        elif name == "lock" or name == "steps":
            assert seen[name].split(" at ")[0] == text.split(" at ")[0]
        else:
            assert seen[name] == text
    assert seen["evil"].startswith("<__main__.Evil object at 0x")
    assert seen["meta"].startswith("<__main__.WithMeta object at 0x")
    assert seen["items"].startswith("deque([<__main__.Evil object at 0x") and seen["items"].endswith("... 4 more])") or \
        len(seen["items"]) > 150
    assert seen["huge"].startswith("bytearray(b'\\x00") and len(seen["huge"]) < 300
    assert " object at 0x" in seen["file"] and " object at 0x" in seen["expression"] and len(seen["match"]) < 200
    assert seen["free"].startswith("<__main__.Plain object at 0x")
    assert not marker.exists(), "code of the target was run"
    assert job.alive() and job.output() == ""


def test_dataclasses_and_own_reprs(python_for, ptrace, target, probing):
    job = target(DATACLASS, python=python_for("3.11"))
    assert read_locals(probing, job.pid, "values")["config"] == "Config(rate=0.5, layers=[1, 2], name='x')"
    assert read_locals(probing, job.pid, "values", "--repr")["config"] == "own repr"
    # From outside nothing is asked: the type alone is known.
    seen, _ = locals_of(probing(job.pid, "backtrace", "--locals", "--json", "--no-inject"), "values")
    assert seen["config"] == "<__main__.Config object>"


STUCK = r'''
import os, time

class Stuck:
    def __repr__(self):
        while True:
            pass

class Fails:
    def __repr__(self):
        raise KeyError("x")

class Kind:
    def __repr__(self):
        return "kind"

def values():
    kind = Kind(); fails = Fails(); stuck = Stuck()
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    while True:
        time.sleep(0.01)

values()
'''


def test_a_repr_that_does_not_end_is_ended(each_python, ptrace, target, probing, wait_until):
    job = target(STUCK, python=each_python)
    assert probing(job.pid, "backtrace", "--locals").ok()
    result = probing(job.pid, "backtrace", "--locals", "--repr", "--json").ok()
    if "runs without a GIL" in (result.json()["note"] or ""):
        pytest.skip("this Python runs without a GIL")
    assert "values of types made in Python" in result.json()["note"]
    # What was found before is there.
    for frame in result.json()["threads"][0]["frames"]:
        if frame["func"] == "values":
            assert frame["locals"]["stuck"]["repr"].startswith("<__main__.Stuck object")
    # The repr was interrupted: the worker is free again, and may leave.
    wait_until(lambda: probing(job.pid, "eject").status == 0, 60, "the worker to be free")
    assert job.alive() and job.output() == ""


# ---- the GIL is not to be had ----

HOG = r'''
import ctypes, mmap, os, sys, threading, time
hog = ctypes.PyDLL(sys.argv[1])
shared = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 4096)
begin, stop = ctypes.c_int.from_buffer(shared, 0), ctypes.c_int.from_buffer(shared, 8)
counter = ctypes.c_uint64(0)

class Other:
    def __repr__(self):
        hog.gilhog_spin(ctypes.byref(counter), ctypes.byref(stop))
        return "let go"

def work():
    thing = Other()
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    turns = 0
    while not begin.value:
        turns += sum(range(100)) > 0
    hog.gilhog_spin(ctypes.byref(counter), ctypes.byref(stop))
    while True:
        time.sleep(0.01)

work()
'''


class Flags:
    """Words that a job reads."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(4096))

    def set(self, at):
        with open(self.path, "r+b") as file:
            file.seek(at)
            file.write((1).to_bytes(4, "little"))


@pytest.fixture
def hog(target, build_dir, tmp_path):
    """hog(python): a job that computes until .flags.set(0), and then holds the GIL in C until .flags.set(8)."""
    library = os.path.join(build_dir, "tests", "targets", "gilhog.so")
    if not os.path.exists(library):
        pytest.fail(f"{library} is not built")

    def make(python=None):
        flags = Flags(tmp_path / "flags")
        job = target(HOG, library, flags.path, python=python)
        job.flags = flags
        return job
    return make


def test_without_the_gil_there_is_an_answer_in_time(each_python, ptrace, hog, probing, wait_until):
    job = hog(each_python)
    assert read_locals(probing, job.pid, "work")["thing"].startswith("<__main__.Other object at 0x")
    job.flags.set(0)

    def refused():
        document = probing(job.pid, "backtrace", "--locals", "--tasks", "--json").ok().json()
        return f"thread {job.pid} holds it" in (document["note"] or "") and document
    document = wait_until(refused, 60, "the GIL to be held for ever")
    assert "values of types made in Python" in document["note"]
    assert document["threads"][0]["frames"], "what memory tells is told"
    # The answer does not wait until the worker has given up.
    status = wait_until(lambda: (s := probing(job.pid, "status", "--json").ok().json())["gil"]["refused"] and s, 30, "the refusal to be counted")
    assert status["gil"]["holds"] >= 1
    # What it has in Python cannot be taken out without the GIL: it says so, and works on.
    ejected = probing(job.pid, "eject")
    assert ejected.status == 1 and "waits for the GIL" in ejected.stderr
    job.flags.set(8)
    assert read_locals(probing, job.pid, "work")["thing"].startswith("<__main__.Other object at 0x")
    wait_until(lambda: probing(job.pid, "eject").status == 0, 60, "the agent to be gone")
    wait_until(lambda: not any(n.startswith("probing-") for n in job.thread_names().values()), 60, "our threads to end")
    assert job.alive() and job.output() == ""


def test_eject_while_the_worker_cannot_end(ptrace, hog, probing, wait_until):
    """A repr of the job's holds the GIL in C: the asker is answered, eject says why not now, and works later."""
    job = hog()
    result = probing(job.pid, "backtrace", "--repr", "--json").ok()
    assert "holds it" in result.json()["note"] or "more than" in result.json()["note"]
    refused = probing(job.pid, "eject")
    assert refused.status == 1 and "when it has finished" in refused.stderr and len(refused.stderr.splitlines()) == 1
    # All is as it was: stacks are shown, and who asks for values again is answered too.
    assert probing(job.pid, "backtrace", "--json").ok().json()["threads"][0]["frames"]
    assert probing(job.pid, "backtrace", "--locals", "--json").ok().json()["note"]
    job.flags.set(8)
    # And what can be armed was not given up for a leaving that did not come.
    assert read_locals(probing, job.pid, "work")["thing"].startswith("<__main__.Other object at 0x")
    armed = probing(job.pid, "memory", "--trace", "--seconds", "1", "--json", timeout=60).ok()
    assert "is leaving" not in armed.stdout + armed.stderr
    wait_until(lambda: probing(job.pid, "eject").status == 0, 60, "the hog to end")
    wait_until(lambda: not any(n.startswith("probing-") for n in job.thread_names().values()), 60, "our threads to end")
    assert job.alive() and job.output() == ""


# ---- the interpreter ends ----

ENDING = r'''
import atexit, os, sys, threading, time

class Thing:
    pass

def busy():
    thing = Thing()
    while True:
        sum(range(100))

def at_the_end():
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        sum(range(1000))

for _ in range(2):
    threading.Thread(target=busy, daemon=True).start()
atexit.register(at_the_end)
os.write(int(os.environ["READY_FD"]), b"ready\n")
time.sleep(float(sys.argv[1]))
sys.exit(7)
'''


@pytest.mark.parametrize("life", [0.4, 0.9])
def test_a_job_that_ends_meanwhile_ends_as_it_would(each_python, ptrace, target, probing, life):
    job = target(ENDING, life, python=each_python)
    while job.alive():
        probing(job.pid, "backtrace", "--locals", "--tasks")
    assert job.process.returncode == 7 and job.output() == ""


INTERRUPTED = r'''
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)
except KeyboardInterrupt:
    pass
'''


def test_an_interrupt_still_ends_the_job(each_python, ptrace, target, probing):
    job = target(INTERRUPTED, python=each_python)
    probing(job.pid, "backtrace", "--locals").ok()
    os.kill(job.pid, signal.SIGINT)
    assert job.process.wait(timeout=60) == 0 and job.output() == ""


# ---- what it leaves ----

LOOK = ("[len(__import__('gc').get_objects()), len(os.listdir('/proc/self/task')), "
        "len(threading.enumerate()), len(sys._current_frames()), len(sys.modules)]")


def test_a_thousand_requests_leave_nothing(job, python_for):  # noqa: F811
    """Objects, threads, thread states and modules are as many as before."""
    j = job(python_for("3.11"))
    endpoint = j.start()
    j.do("spawn('rester', wait_for_ever)")
    j.do("spawn('deep', recurse, 30)")
    client = Client(endpoint)

    def ask(n):
        for _ in range(n):
            document = client.call("threads", {"locals": True, "tasks": True})
            assert document["threads"]
    ask(20)
    j.do("__import__('gc').collect()")
    before = j.do(LOOK)
    ask(1000)
    j.do("__import__('gc').collect()")
    after = j.do(LOOK)
    assert after[1:] == before[1:]
    assert abs(after[0] - before[0]) <= 10
    status = client.call("status")
    assert status["gil_holds"] >= 100
    client.call("eject")
    client.close()


def test_the_worker_is_there_only_when_it_is_needed(job, python_for, wait_until):  # noqa: F811
    j = job(python_for("3.11"))
    client = Client(j.start())
    client.call("threads")
    assert "probing-py" not in j.agent_threads()
    client.call("threads", {"locals": True})
    assert "probing-py" in j.agent_threads()
    assert j.do("[t.name for t in threading.enumerate()]") == ["MainThread"]
    assert j.do("len(sys._current_frames())") == 1
    client.call("eject")
    wait_until(lambda: not j.agent_threads(), 60, "our threads to end")
    client.close()


def test_a_child_has_no_worker(job, python_for):  # noqa: F811
    j = job(python_for("3.11"))
    client = Client(j.start())
    client.call("threads", {"locals": True})
    child = j.do("fork_child()")
    assert child["threads"] == 1 and child["start"][0] == 0
    assert client.call("threads", {"locals": True})["threads"]
    client.close()
    os.kill(child["pid"], signal.SIGKILL)


def test_many_ask_at_once(job, python_for):  # noqa: F811
    """More than can wait: each is answered."""
    j = job(python_for("3.11"))
    endpoint = j.start()
    clients = [Client(endpoint) for _ in range(8)]
    errors = []

    def ask(client):
        try:
            for _ in range(20):
                assert client.call("threads", {"locals": True, "repr": True, "tasks": True})["threads"]
        except Exception as error:  # told below
            errors.append(error)
    threads = [threading.Thread(target=ask, args=(c,)) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors and not any(t.is_alive() for t in threads)
    for c in clients:
        c.close()
