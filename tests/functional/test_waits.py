# SPDX-License-Identifier: Apache-2.0
"""What waiting threads wait for: by the agent and from outside, in jobs that know it."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from agent_job import job  # noqa: F401

MINORS = ["3.9", "3.11", "3.12", "3.13", "3.14", "3.15"]

HEAD = """
import os, queue, socket, subprocess, sys, threading, time

def start(function, *args, name=None):
    thread = threading.Thread(target=function, args=args, name=name or function.__name__, daemon=True)
    thread.start()
    return thread

def ready():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    time.sleep(3600)
"""

# A thread for each kind; its name is the test's key.
KINDS = HEAD + """
class Cache:
    def __init__(self):
        self.lock = threading.Lock()

cache, again, made = Cache(), threading.RLock(), threading.Condition()
done, few, jobs, results = threading.Event(), threading.Semaphore(0), queue.Queue(), queue.Queue(2)
meeting = threading.Barrier(3)
taken = threading.Event()

def holder():
    with cache.lock:
        with again:
            taken.set()
            while True:
                time.sleep(0.05)

def lock(cache):
    with cache.lock:
        pass

def lock_acquire():
    cache.lock.acquire()

def lock_timeout():
    cache.lock.acquire(timeout=3000)

def rlock():
    with again:
        pass

def condition():
    with made:
        made.wait()

def event():
    done.wait()

def semaphore():
    few.acquire()

def barrier():
    meeting.wait()

def get():
    jobs.get()

def put():
    for i in range(3):
        results.put(i)

def join(thread):
    thread.join()

def sleep():
    time.sleep(3600)

held = start(holder)
taken.wait()
for function in lock_acquire, lock_timeout, rlock, condition, event, semaphore, barrier, get, put, sleep:
    start(function)
start(lock, cache)
start(join, held)
ready()
"""

# What a thread says, and the thread that it names.
SAYS = {
    "lock": ("lock", "Lock cache.lock", "holder", "likely"),
    "lock_acquire": ("lock", "Lock cache.lock", "holder", "likely"),
    "lock_timeout": ("lock", "Lock cache.lock", "holder", "likely"),
    "rlock": ("rlock", "RLock again", "holder", "sure"),
    "condition": ("condition", "Condition made", None, None),
    "event": ("event", "Event done", None, None),
    "semaphore": ("semaphore", "Semaphore few", None, None),
    "barrier": ("barrier", "Barrier meeting, 1 of 3 are there", None, None),
    "get": ("queue", "Queue jobs, empty", None, None),
    "put": ("queue", "Queue results, full (2)", None, None),
    "join": ("thread", "the end of thread holder", "holder", "sure"),
    "sleep": ("sleep", "sleep", None, None),
}


def dump(probing, pid, *options):
    document = probing(str(pid), "dump", "--json", *options).ok().json()
    return {t["name"]: t for t in document["threads"] if t["name"]}


def waits(probing, pid, *options):
    return {name: t["waits_for"] for name, t in dump(probing, pid, *options).items()}


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_kinds(target, probing, python_for, wait_until, minor, how):
    j = target(KINDS, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    threads = wait_until(lambda: (lambda d: d if all(n in d and d[n]["waits_for"] for n in SAYS) else None)(
        dump(probing, j.pid, *options)), what="all threads to wait")
    tids = {name: t["tid"] for name, t in threads.items()}
    for name, (kind, what, holder, sure) in SAYS.items():
        said = threads[name]["waits_for"]
        assert said["kind"] == kind and (said["what"] == what or name == "sleep"), (name, said)
        assert said["tid"] == (tids[holder] if holder else None) and said["holder"] == sure, (name, said)
        assert not said["deadlock"]
        assert said["gives_up"] == (name in ("lock_timeout", "sleep")), (name, said)
    assert 2000 < threads["lock_timeout"]["waits_for"]["left_s"] <= 3000
    if minor not in ("3.9",):  # before 3.11 time.sleep has no absolute end
        assert 3000 < threads["sleep"]["waits_for"]["left_s"] <= 3600


DEADLOCKS = {
    "locks": ("Lock", "Lock", """
def one():
    with first:
        here.wait()
        with second:
            pass

def two():
    with second:
        here.wait()
        with first:
            pass
"""),
    "mixed": ("RLock", "Lock", """
def one():
    with first:
        here.wait()
        with second:
            pass

def two():
    with second:
        here.wait()
        with first:
            pass
"""),
    "twice": ("Lock", "Lock", """
def one():
    with first:
        here.wait()
        inner()

def inner():
    with first:
        pass

def two():
    here.wait()
    with first:
        pass
"""),
}


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("kind", DEADLOCKS)
@pytest.mark.parametrize("minor", MINORS)
def test_deadlock(target, probing, python_for, wait_until, minor, kind, how):
    first, second, functions = DEADLOCKS[kind]
    source = HEAD + f"first, second, here = threading.{first}(), threading.{second}(), threading.Barrier(2)\n" + functions
    j = target(source + "start(one)\nstart(two)\nready()\n", python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []

    def said():
        d = dump(probing, j.pid, *options)
        return d if d["one"]["waits_for"] and d["one"]["waits_for"]["deadlock"] else None
    threads = wait_until(said, what="the deadlock to be said")
    one, two = threads["one"]["waits_for"], threads["two"]["waits_for"]
    if kind == "twice":
        assert one["tid"] == threads["one"]["tid"] and not two["deadlock"]
        assert two["tid"] == threads["one"]["tid"]
    else:
        assert one["tid"] == threads["two"]["tid"] and two["tid"] == threads["one"]["tid"] and two["deadlock"]
        assert one["what"] == f"{second} second" and two["what"] == f"{first} first"
    text = probing(str(j.pid), "dump", *options).ok().stdout
    assert "    DEADLOCK: waits for Lock" in text
    rows = probing(str(j.pid), "query", "SELECT name, waits_for, waits_kind, waits_tid, deadlock FROM python.threads "
                   "WHERE deadlock", "--format", "json").ok().json()["rows"]
    assert {r["name"] for r in rows} == ({"one"} if kind == "twice" else {"one", "two"})


# Who waits for a condition's Lock again, after it was woken, is in a block of `with` that does not hold it.
WOKEN = HEAD + """
lock = threading.Lock()
made = threading.Condition(lock)
def woken():
    with made:
        made.wait()
def keep():
    lock.acquire()
    made.notify()
    ready()
start(woken)
while not made._waiters:
    time.sleep(0.01)
start(keep)
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_a_lock_that_is_taken_again(target, probing, python_for, wait_until, minor, how):
    j = target(WOKEN, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []

    def said():
        threads = dump(probing, j.pid, *options)
        waits = threads["woken"]["waits_for"]
        return threads if waits and waits["kind"] == "lock" else None
    threads = wait_until(said, what="the wait for the lock")
    waits = threads["woken"]["waits_for"]
    assert not waits["deadlock"] and waits["tid"] in (None, threads["keep"]["tid"]), waits


# Functions in files of torch's names. What runs below one of them has waits of its own.
TORCH = HEAD + """
def of_torch(path, source):
    exec(compile(source, "/opt/torch/" + path, "exec"), globals())

of_torch("distributed/elastic/multiprocessing/errors/__init__.py", "def wrapper(f): f()")
of_torch("distributed/fsdp/fully_sharded_data_parallel.py", "def forward(f): f()")
of_torch("distributed/elastic/agent/server/api.py", "def monitor(): time.sleep(3600)")
of_torch("distributed/checkpoint/state_dict_saver.py", "def save(): os.read(quiet, 1)")
of_torch("distributed/distributed_c10d.py", "def gather(): os.read(quiet, 1)")
of_torch("distributed/c10d_logger.py", "def log(f): f()")
of_torch("distributed/distributed_c10d.py", "def gather_object(): log(gather)")
of_torch("distributed/checkpoint/utils.py", "def reduce_scatter(): gather_object()")
of_torch("_ops.py", "def call(): os.read(quiet, 1)")
of_torch("distributed/_functional_collectives.py", "def wait_tensor(): call()")
of_torch("distributed/rpc/api.py", "def api():\\n with guard: pass")
quiet, _ = os.pipe()
first, second, here, guard = threading.Lock(), threading.Lock(), threading.Barrier(2), threading.Lock()
guard.acquire()

def one():
    with first:
        here.wait()
        with second:
            pass

def two():
    with second:
        here.wait()
        with first:
            pass

def asleep():
    time.sleep(3600)

start(wrapper, one, name="one")
start(wrapper, two, name="two")
start(forward, asleep, name="forward")
for function in monitor, save, reduce_scatter, wait_tensor, api:
    start(function)
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_what_waits_below_torch_is_itself(target, probing, python_for, wait_until, minor, how):
    j = target(TORCH, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    names = "one", "two", "forward", "monitor", "save", "reduce_scatter", "wait_tensor", "api"
    said = wait_until(lambda: (lambda d: d if all(d.get(n) for n in names) else None)(waits(probing, j.pid, *options)),
                      what="all threads to wait")
    assert said["one"]["deadlock"] and said["two"]["deadlock"] and said["one"]["what"] == "Lock second", said
    assert said["forward"]["kind"] == said["monitor"]["kind"] == "sleep", said
    assert said["save"]["kind"] == "pipe" and said["api"]["what"] == "Lock guard", said
    assert said["reduce_scatter"]["what"] == "gather_object of torch.distributed", said
    assert said["wait_tensor"]["what"] == "wait_tensor of torch.distributed", said


# A coroutine that blocks keeps its loop from its events.
BLOCKED_LOOP = HEAD + """
import asyncio
lock, jobs = threading.Lock(), queue.Queue()
lock.acquire()
kept, _ = os.pipe()  # the child ends with this process

async def sleeps():
    time.sleep(3600)

async def locks():
    lock.acquire()

async def gets():
    jobs.get()

async def runs():
    subprocess.run([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=kept)

async def idle():
    await asyncio.Event().wait()

for function in sleeps, locks, gets, runs, idle:
    start(lambda function=function: asyncio.run(function()), name=function.__name__)
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_a_loop_that_is_blocked(target, probing, python_for, wait_until, minor, how):
    j = target(BLOCKED_LOOP, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    kinds = {"sleeps": "sleep", "locks": "lock", "gets": "queue", "runs": "child", "idle": "loop"}
    wait_until(lambda: (lambda d: {n: (d.get(n) or {}).get("kind") for n in kinds} == kinds)(waits(probing, j.pid, *options)),
               what="what blocks the loops")


# What executors run waits by itself; a worker without work, and one of each that has some.
WORKERS = HEAD + """
import asyncio, concurrent.futures, ctypes
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)
libc.pthread_mutex_init(mutex, None)
libc.pthread_mutex_lock(mutex)
jobs, done, meeting, later, lock = queue.Queue(), threading.Event(), threading.Barrier(2), concurrent.futures.Future(), threading.Lock()
lock.acquire()
pools = []

def submit(name, function, *args, **options):
    pools.append(concurrent.futures.ThreadPoolExecutor(1, name, **options))
    pools[-1].submit(function, *args)

submit("gets", jobs.get)
submit("waits", done.wait)
submit("meets", meeting.wait)
submit("results", later.result)
submit("mutex", libc.pthread_mutex_lock, mutex)
submit("acquires", lock.acquire)
submit("starts", int, initializer=done.wait)
submit("idle", int)
start(lambda: asyncio.run(asyncio.to_thread(jobs.get)), name="loop")
ready()
"""
WORKS = {"gets_0": ("queue", "Queue, empty"), "waits_0": ("event", "Event"), "meets_0": ("barrier", "Barrier, 1 of 2 are there"),
         "results_0": ("future", "Future"), "mutex_0": ("native lock", None), "acquires_0": ("lock", "Lock"),
         "starts_0": ("event", "Event"), "idle_0": ("queue", "work for its executor"), "asyncio_0": ("queue", "Queue, empty")}


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_workers_that_are_at_work(target, probing, python_for, wait_until, minor, how):
    j = target(WORKERS, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    said = wait_until(lambda: (lambda d: d if all(d.get(n) for n in WORKS) else None)(waits(probing, j.pid, *options)),
                      what="all threads to wait")
    for name, (kind, what) in WORKS.items():
        assert said[name]["kind"] == kind and what in (None, said[name]["what"]), (name, said[name])


# One feeder waits for items, another for the lock under which it writes.
FEEDERS = HEAD + """
import multiprocessing
idle, stuck = multiprocessing.Queue(), multiprocessing.Queue()
idle.put(1)
idle.get()
stuck._wlock.acquire()
stuck.put(1)
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_feeders_of_queues(target, probing, python_for, wait_until, minor, how):
    j = target(FEEDERS, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []

    def said():
        threads = probing(str(j.pid), "dump", "--json", *options).ok().json()["threads"]
        return sorted(t["waits_for"]["what"] for t in threads if t["name"] and t["name"].startswith("QueueFeeder") and t["waits_for"])
    wait_until(lambda: said() == ["items for its multiprocessing.Queue", "the lock for writing to its multiprocessing.Queue"],
               what="both feeders to wait")


# What others change while the thread itself sleeps on.
CHANGES = HEAD + """
meeting, jobs = threading.Barrier(4), queue.Queue()
own = os.pipe()

def meets():
    meeting.wait()

def reads():
    os.read(own[0], 1)

start(meets)
start(reads)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
start(meets, name="second")
kept, _ = os.pipe()  # the child ends with this process
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=kept, pass_fds=own[1:])
os.close(own[1])
time.sleep(3600)
"""


def test_what_others_change_is_looked_at_again(target, probing, wait_until, tmp_path):
    j = target(CHANGES, tmp_path / "go")
    probing(str(j.pid), "inject").ok()
    said = wait_until(lambda: (lambda d: d if d.get("meets") and d.get("reads") else None)(waits(probing, j.pid)), what="both threads to wait")
    assert said["meets"]["what"] == "Barrier meeting, 1 of 4 are there" and said["reads"]["pid"] is None, said
    (tmp_path / "go").touch()
    wait_until(lambda: "2 of 4" in waits(probing, j.pid)["meets"]["what"], timeout=30, what="the second to be seen")
    wait_until(lambda: waits(probing, j.pid)["reads"]["pid"], timeout=30, what="the child to be seen")


# Not from outside: there a thread is stopped for its native frames, and has moved.
@pytest.mark.parametrize("minor", ["3.7", "3.9", "3.10", "3.11", "3.13", "3.14"])
def test_kinds_with_native_frames(target, probing, ptrace, python_for, wait_until, minor):
    j = target(KINDS, python=python_for(minor))
    options = ["--native"]
    threads = wait_until(lambda: (lambda d: d if all(n in d and d[n]["waits_for"] for n in SAYS) else None)(
        dump(probing, j.pid, *options)), what="all threads to wait")
    for name, (kind, what, _, sure) in SAYS.items():
        said = threads[name]["waits_for"]
        assert said["kind"] == kind and (said["what"] == what or name == "sleep") and said["holder"] == sure, (name, said)
    # the same without them: the answers are kept
    for name, t in dump(probing, j.pid, *options[1:]).items():
        assert name not in SAYS or name == "sleep" or not t["waits_for"] or t["waits_for"]["what"] == SAYS[name][1], t


# The same function in several threads, with other locks in its variables.
CALLS = HEAD + """
class Account:
    def __init__(self):
        self.lock = threading.Lock()

one, two, three = Account(), Account(), Account()
several = [threading.Lock() for _ in range(4)]

def transfer(src, dst):
    with src.lock:
        with dst.lock:
            pass

def worker(lock):
    lock.acquire()
    time.sleep(3600)

def wants(lock):
    with lock:
        pass

def begin():
    for i, lock in enumerate(several):
        start(worker, lock, name=f"worker {i}")
    while not all(lock.locked() for lock in several):
        time.sleep(0.01)
    for i, lock in enumerate(several):
        start(wants, lock, name=f"wants {i}")

two.lock.acquire()
start(transfer, one, two, name="from one")
start(transfer, two, three, name="from two")
begin()
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_each_call_has_its_own_variables(target, probing, python_for, wait_until, minor, how):
    j = target(CALLS, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    names = "from one", "from two", *(f"wants {i}" for i in range(4))
    threads = wait_until(lambda: (lambda d: d if all(n in d and d[n]["waits_for"] for n in names) else None)(dump(probing, j.pid, *options)),
                         what="all threads to wait")
    assert threads["from one"]["waits_for"]["what"] == "Lock dst.lock" and threads["from two"]["waits_for"]["what"] == "Lock src.lock"
    for i in range(4):
        assert threads[f"wants {i}"]["waits_for"]["tid"] == threads[f"worker {i}"]["tid"], (i, threads)


# Up to 3.13 a thread that has left `with` may have the address of the bound __exit__ on its stack still, where that of another
# thread is by now, which waits.
LEFT = HEAD + """
lock, places, left = threading.Lock(), [], threading.Event()

def leaves():
    for _ in (1,):
        for _ in (1,):
            for _ in (1,):
                for _ in (1,):
                    enter, exits = lock.__enter__, lock.__exit__
                    places.append(id(exits))
                    del exits, enter
                    with lock:
                        pass
    left.set()
    time.sleep(3600)

def enters():
    kept = [lock.__exit__ for _ in range(5000)]
    found = [i for i, one in enumerate(kept) if id(one) == places[0]]
    if found:
        at, other = found[0], (found[0] + 1) % len(kept)
        kept[at] = None
        kept[other] = None
    with lock:
        pass

start(leaves)
left.wait()
lock.acquire()
start(enters)
ready()
"""


# The same on the stack of the thread that waits: above the block that it enters lies the address of an __exit__ that was freed.
LEFT_ITSELF = HEAD + """
lock, kept = threading.Lock(), []

def keep():
    kept.extend([lock.__exit__ for _ in range(5000)])

def enters():
    for _ in (1,):
        for _ in (1,):
            for _ in (1,):
                for _ in (1,):
                    enter, exits = lock.__enter__, lock.__exit__
                    del exits, enter
    keep()
    with lock:
        pass

lock.acquire()
start(enters)
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("source", [LEFT, LEFT_ITSELF], ids=["another", "itself"])
@pytest.mark.parametrize("minor", MINORS)
def test_who_has_left_does_not_hold(target, probing, python_for, wait_until, minor, source, how):
    j = target(source, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    threads = wait_until(lambda: (lambda d: d if "enters" in d and d["enters"]["waits_for"] else None)(dump(probing, j.pid, *options)),
                         what="the wait for the lock")
    said = threads["enters"]["waits_for"]
    assert said["what"] == "Lock lock" and said["tid"] in (None, threads["MainThread"]["tid"]) and said["holder"] != "likely", said


# A handler runs on top of Condition.wait, in which the lock is not held; a condition with an __enter__ of its own.
LET_GO = HEAD + """
import signal
lock, other = threading.Lock(), threading.Lock()
made = threading.Condition(lock)

class Own(threading.Condition):
    def __enter__(self):
        self.acquire()
        return self

own = Own(other)

def handles(*_):
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    time.sleep(3600)

def keeps():
    while not made._waiters:
        time.sleep(0.01)
    lock.acquire()
    start(wants)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(3600)

def wants():
    with lock:
        pass

def enters():
    with own:
        pass

signal.signal(signal.SIGUSR1, handles)
other.acquire()
start(enters)
start(keeps)
with made:
    made.wait()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", MINORS)
def test_a_lock_that_was_let_go_of(target, probing, python_for, wait_until, minor, how):
    j = target(LET_GO, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    threads = wait_until(lambda: (lambda d: d if all(n in d and d[n]["waits_for"] for n in ("wants", "enters")) else None)(
        dump(probing, j.pid, *options)), what="the waits for both locks")
    assert threads["wants"]["waits_for"]["tid"] == threads["keeps"]["tid"], threads["wants"]
    said = threads["enters"]["waits_for"]
    assert not said["deadlock"] and said["tid"] != threads["enters"]["tid"], said


POLLS = HEAD + """
import select
reader, writer = os.pipe()
full = os.pipe()
os.set_blocking(full[1], False)
try:
    while True:
        os.write(full[1], b"x" * 65536)
except BlockingIOError:
    pass
many = select.epoll()
for _ in range(500):
    many.register(os.dup(reader), select.EPOLLIN)

def polls():
    many.poll()

def selects():
    select.select([reader], [full[1]], [])

start(polls)
start(selects)
os.write(int(os.environ["READY_FD"]), f"{reader} {full[1]}\\n".encode())
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
def test_all_descriptors_are_counted(target, probing, wait_until, how):
    j = target(POLLS)
    reader, full = j.ready.split()
    options = ["--no-inject"] if how == "outside" else []
    said = wait_until(lambda: (lambda d: d if d.get("polls") and d.get("selects") else None)(waits(probing, j.pid, *options)),
                      what="both threads to wait")
    assert said["polls"]["what"].startswith("any of 500 descriptors: pipe "), said["polls"]
    assert said["selects"]["what"] == f"any of 2 descriptors: pipe {reader}, pipe {full}", said["selects"]


# Locks that are taken again and again, a queue, a condition: never a deadlock, and never a thread that holds what it waits for.
HEALTHY = HEAD + """
one, two, made, jobs = threading.Lock(), threading.RLock(), threading.Condition(), queue.Queue(4)

def both():
    while True:
        with one:
            with two:
                time.sleep(0.001)

def produce():
    while True:
        jobs.put(1)

def consume():
    while True:
        jobs.get()
        with one:
            pass

def wake():
    while True:
        with made:
            made.notify_all()
        time.sleep(0.0005)

def woken():
    while True:
        with made:
            made.wait()
            time.sleep(0.0005)

for function in both, both, produce, consume, consume, wake, woken, woken, woken:
    start(function)
ready()
"""


@pytest.mark.parametrize("minor", MINORS)
def test_healthy_jobs_are_not_accused(target, probing, python_for, minor):
    j = target(HEALTHY, python=python_for(minor))
    for options in ([], ["--no-inject"]):
        for _ in range(25):
            document = probing(str(j.pid), "dump", "--json", *options).ok().json()
            for t in document["threads"]:
                said = t["waits_for"]
                assert not said or (not said["deadlock"] and said["tid"] != t["tid"]), t


FILES = HEAD + """
quiet = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
listener = socket.create_server(("127.0.0.1", 0))
own = os.pipe()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], stdout=subprocess.PIPE)
stopped = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])

def peer():
    quiet.recv(100)

def accept():
    listener.accept()

def pipe():
    child.stdout.read()

def nobody():
    os.read(own[0], 1)

def child_wait():
    stopped.wait()

def fifo():
    os.read(0, 1)

for function in peer, accept, pipe, nobody, child_wait:
    start(function)
print(child.pid, stopped.pid, listener.getsockname()[1], flush=True)
os.write(int(os.environ["READY_FD"]), f"{child.pid} {stopped.pid} {listener.getsockname()[1]}\\n".encode())
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.13", "3.14", "3.15"])
def test_files(target, probing, python_for, wait_until, minor, how):
    options = ["--no-inject"] if how == "outside" else []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        j = target(FILES, str(port), python=python_for(minor))
        connection, _ = server.accept()
        child, stopped, listens = map(int, j.ready.split())
        names = "peer", "accept", "pipe", "nobody", "child_wait"
        try:
            os.kill(stopped, signal.SIGSTOP)
            # on a busy machine there may be no time to search for the other end of a pipe
            said = wait_until(lambda: (lambda d: d if all(d.get(n) for n in names) and d["nobody"]["detail"] and d["pipe"]["pid"] else None)(
                waits(probing, j.pid, *options)), timeout=30, what="all threads to wait")
            assert said["peer"]["kind"] == "socket" and f"peer 127.0.0.1:{port}, established" in said["peer"]["detail"]
            assert "0 bytes to read" in said["peer"]["detail"]
            assert said["accept"]["kind"] == "socket" and f"127.0.0.1:{listens}" in said["accept"]["detail"]
            assert said["pipe"]["kind"] == "pipe" and said["pipe"]["pid"] == child
            # some descriptors of other processes may not be read, by root either
            assert said["nobody"]["detail"] in ("only this process has the other end",
                                                "this process has the other end, and no other that may be read")
            assert said["child_wait"]["kind"] == "child" and said["child_wait"]["pid"] == stopped
            assert "is stopped" in said["child_wait"]["detail"]
            os.kill(stopped, signal.SIGCONT)
            wait_until(lambda: "sleeps" in waits(probing, j.pid, *options)["child_wait"]["detail"],
                       what="the child to sleep on")
        finally:
            connection.close()
            for pid in child, stopped:
                os.kill(pid, signal.SIGKILL)


LOOP = HEAD + """
import asyncio, concurrent.futures

async def idle():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    await asyncio.Event().wait()

pool = concurrent.futures.ThreadPoolExecutor(2, "pool")
started = threading.Barrier(3)
for _ in range(2):
    pool.submit(started.wait)
started.wait()
future = concurrent.futures.Future()
start(lambda: future.result(), name="future")
asyncio.run(idle())
"""


@pytest.mark.parametrize("minor", MINORS)
def test_loops_and_pools(target, probing, python_for, wait_until, minor):
    j = target(LOOP, python=python_for(minor))
    names = "MainThread", "pool_0", "pool_1", "future"
    said = wait_until(lambda: (lambda d: d if all(d.get(n) for n in names) else None)(waits(probing, j.pid)),
                      what="all threads to wait")
    assert said["MainThread"]["what"] == "events of its asyncio loop"
    assert said["pool_0"]["what"] == "work for its executor" and said["pool_1"]["kind"] == "queue"
    assert said["future"]["kind"] == "future" and said["future"]["what"].startswith("Future")


FILE_LOCK = HEAD + """
import fcntl
file = open(sys.argv[1], "w")
start(lambda: fcntl.flock(file, fcntl.LOCK_EX), name="flock")
ready()
"""


def test_file_locks_have_their_owner(target, probing, wait_until, tmp_path):
    path = tmp_path / "lock"
    owner = subprocess.Popen(["flock", "--no-fork", path, "sleep", "3600"])
    try:
        wait_until(lambda: path.exists() and any(str(path.stat().st_ino) in line for line in open("/proc/locks")),
                   what="the lock")
        j = target(FILE_LOCK, str(path))
        said = wait_until(lambda: waits(probing, j.pid).get("flock"), what="the thread to wait")
        assert said["kind"] == "file lock" and str(path) in said["detail"] and said["pid"] == owner.pid
    finally:
        owner.kill()
        owner.wait()


# The first byte is locked by one process, the next hundred by another; the job waits for some of those.
LOCK_BYTES = """
import fcntl, os, sys, time
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX, int(sys.argv[2]), int(sys.argv[3]))
os.write(1, b"locked\\n")
time.sleep(3600)
"""
WAIT_FOR_BYTES = HEAD + """
import fcntl
file = open(sys.argv[1], "r+")
start(lambda: fcntl.lockf(file, fcntl.LOCK_EX, 10, 50), name="lockf")
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
def test_who_has_another_part_of_the_file_is_not_named(target, probing, wait_until, tmp_path, any_python, how):
    path = tmp_path / "parts"
    path.write_bytes(b"x" * 200)
    options = ["--no-inject"] if how == "outside" else []
    owners = []
    try:
        for part in (100, 1), (1, 0), (20, 150):
            owners.append(subprocess.Popen([any_python, "-c", LOCK_BYTES, path, *map(str, part)], stdout=subprocess.PIPE))
            assert owners[-1].stdout.readline() == b"locked\n"
        j = target(WAIT_FOR_BYTES, str(path))
        said = wait_until(lambda: waits(probing, j.pid, *options).get("lockf"), what="the thread to wait")
        assert said["kind"] == "file lock" and said["pid"] == owners[0].pid, (said, [o.pid for o in owners])
    finally:
        for owner in owners:
            owner.kill()
            owner.wait()
            owner.stdout.close()


# A job that is nobody now, in a namespace in which it may see no process of another user; what it waits for is root's.
HIDDEN = HEAD + """
import ctypes
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], stdout=subprocess.PIPE)
lock, taken = threading.Lock(), threading.Event()
if sys.argv[1] == "nobody":
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: as if it had begun so

def holder():
    with lock:
        taken.set()
        time.sleep(3600)

def locks():
    with lock:
        pass

def child_wait():
    child.wait()

def pipe():
    child.stdout.read()

start(holder)
taken.wait()
for function in locks, child_wait, pipe:
    start(function)
os.write(int(os.environ["READY_FD"]), f"{child.pid} {child.stdout.fileno()}\\n".encode())
time.sleep(3600)
"""


@pytest.fixture
def in_namespaces(tmp_path):
    """Starts HIDDEN by a command that makes namespaces; (pid of the job, what it wrote)."""
    started = []

    def run(unshare, who):
        if subprocess.run(["unshare", *unshare, "sh", "-c", "mount -t proc -o hidepid=2 proc /proc"], capture_output=True).returncode:
            pytest.skip("needs namespaces: /proc may not be mounted in one")
        path = tmp_path / "hidden.py"
        path.write_text(HIDDEN)
        reader, writer = os.pipe()
        started.append(subprocess.Popen(
            ["unshare", *unshare, "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh", sys.executable, path, who],
            pass_fds=(writer,), stdin=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, READY_FD=str(writer))))
        os.close(writer)
        with os.fdopen(reader) as ready:
            words = ready.readline().split()
        assert len(words) == 2
        with open(f"/proc/{started[-1].pid}/task/{started[-1].pid}/children", encoding="ascii") as children:
            below = children.read().split()
        return int(below[0]) if "-f" in unshare else started[-1].pid, *map(int, words)

    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def hidden_waits(probing, pid, wait_until, *options):
    names = "locks", "child_wait", "pipe"
    threads = wait_until(lambda: (lambda d: d if all(d.get(n, {}).get("waits_for") for n in names) else None)(
        dump(probing, pid, *options)), what="all threads to wait")
    said = threads["locks"]["waits_for"]
    assert said["what"] == "Lock lock" and said["tid"] == threads["holder"]["tid"]
    return {name: threads[name]["waits_for"] for name in names}


def test_what_proc_hides_is_not_known(in_namespaces, probing, ptrace, wait_until):
    pid, child, fd = in_namespaces(["-m"], "nobody")
    said = hidden_waits(probing, pid, wait_until)
    assert said["child_wait"]["kind"] == "child" and said["child_wait"]["pid"] == child and not said["child_wait"]["detail"], said
    assert said["pipe"]["what"] == f"pipe {fd}" and said["pipe"]["pid"] is None
    assert said["pipe"]["detail"] == "no process that may be read has the other end"
    said = hidden_waits(probing, pid, wait_until, "--no-inject")
    assert said["pipe"]["pid"] == child and "sleeps" in said["child_wait"]["detail"]


def test_numbers_of_another_namespace_are_not_ours(in_namespaces, probing, ptrace, wait_until):
    pid, child, _ = in_namespaces(["-m", "-p", "-f"], "root")
    said = hidden_waits(probing, pid, wait_until)
    assert said["child_wait"]["pid"] == said["pipe"]["pid"] == child and "sleeps" in said["child_wait"]["detail"]
    said = hidden_waits(probing, pid, wait_until, "--no-inject")
    assert said["child_wait"]["pid"] == child and not said["child_wait"]["detail"] and said["pipe"]["pid"] is None


MANY = HEAD + """
gate = threading.Lock()

def worker():
    with gate:
        pass

gate.acquire()
threading.stack_size(65536)
for i in range(1500):
    start(worker)
ready()
"""


def test_thousands_of_threads_are_bounded(target, probing, wait_until):
    j = target(MANY, timeout=60)

    def all_said():
        d = probing(str(j.pid), "dump", "--json", timeout=60).ok().json()
        waiting = [t for t in d["threads"] if t["waits_for"] and t["waits_for"]["kind"] == "lock"]
        return len(waiting) >= 1500
    wait_until(all_said, timeout=30, what="every thread's lock")
    document = probing(str(j.pid), "dump", "--json", timeout=60).ok().json()
    assert document["cost_us"] < 2000000


# So many that a limit or a search through all of them for each of them would show.
CROWD = HEAD + """
gate, again, taken = threading.Lock(), threading.RLock(), threading.Event()

def holder():
    with gate:
        with again:
            taken.set()
            time.sleep(3600)

def locks():
    with gate:
        pass

def rlocks():
    with again:
        pass

start(holder)
taken.wait()
threading.stack_size(262144)
made = 0
try:
    while made < int(sys.argv[1]):
        start(rlocks if made % 2 else locks)
        made += 1
except (RuntimeError, MemoryError):
    pass
os.write(int(os.environ["READY_FD"]), f"{made}\\n".encode())
with gate:
    pass
"""


# Ten thousand of them take the machine from the tests beside this one (`make soak ONLY=threads`).
THREADS = int(os.environ.get("PROBING_TEST_THREADS", "2000"))


@pytest.fixture
def crowd(target):
    j = target(CROWD, str(THREADS), timeout=120)
    j.made = int(j.ready)
    if j.made < THREADS // 2:
        pytest.skip(f"needs threads: a process may have {j.made} here")
    return j


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["agent", "outside"])
def test_thousands_of_threads(crowd, probing, wait_until, how):
    options = ["--no-inject"] if how == "outside" else []

    def crowded():
        """Once all are read, in a machine that has time for it; nothing that is said before is wrong."""
        document = probing(str(crowd.pid), "dump", "--json", *options, timeout=60).ok().json()
        threads = {t["name"]: t for t in document["threads"]}
        holder = threads["holder"]["tid"] if "holder" in threads else None
        for t in document["threads"]:
            said = t["waits_for"]
            assert not said or (not said["deadlock"] and said["tid"] in (None, holder)), t
        assert len(document["threads"]) == crowd.made + 2 or document["incomplete"]
        named = [t for t in document["threads"] if t["waits_for"] and t["waits_for"]["tid"] == holder]
        return document if len(named) == crowd.made + 1 and not document["incomplete"] else None
    document = wait_until(crowded, timeout=300, what="all waits and their holder")
    assert all(t["has_python"] and t["frames"] for t in document["threads"])
    kinds = [t["waits_for"]["kind"] for t in document["threads"]]
    assert kinds.count("lock") == crowd.made // 2 + 1 + crowd.made % 2 and kinds.count("rlock") == crowd.made // 2
    rows = probing(str(crowd.pid), "query", "SELECT count(*) AS n, count(DISTINCT waits_tid) AS holders FROM python.threads", *options,
                   "--format", "json", timeout=60).ok().json()["rows"]
    assert rows[0]["n"] == crowd.made + 2 and rows[0]["holders"] <= 1
    probing(str(crowd.pid), "verdict", *options, timeout=60).ok()
    if how == "agent":
        status = probing(str(crowd.pid), "status", "--json").ok().json()
        assert status["rss_bytes"] < 64 << 20
        probing(str(crowd.pid), "eject", timeout=60).ok()
        assert len(crowd.tids()) == crowd.made + 2


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["agent", "outside"])
def test_thousands_of_threads_on_the_screen(crowd, probing_top, how):
    options = ["--no-inject"] if how == "outside" else []
    text = probing_top("--export", "txt", "--screen", "threads", *options, str(crowd.pid), timeout=120).ok().stdout
    assert f"threads {crowd.made + 2}" in text


VERDICT = HEAD + """
first, second, here = threading.Lock(), threading.Lock(), threading.Barrier(2)

def one():
    with first:
        here.wait()
        with second:
            pass

def two():
    with second:
        here.wait()
        with first:
            pass

threads = [start(one), start(two)]
os.write(int(os.environ["READY_FD"]), b"ready\\n")
for t in threads:
    t.join()
"""


def test_a_deadlock_is_the_verdict(target, probing, wait_until):
    j = target(VERDICT)
    lines = VERDICT.splitlines()
    where = [lines.index("        with second:") + 1, lines.index("        with first:") + 1]

    def said():
        verdicts = probing(str(j.pid), "verdict", "--json").ok().json()["verdicts"]
        return next((v for v in verdicts if v["code"] == "DEADLOCK"), None)
    verdict = wait_until(said, timeout=15, what="the verdict")
    assert verdict["level"] == "bad"
    for word in ("one (", "two (", f":{where[0]})", f":{where[1]})", "Lock first", "Lock second"):
        assert word in verdict["text"], verdict


# Two threads with native mutexes, and two with one and a Lock: who has a mutex is not known, so there is no cycle.
NATIVE = HEAD + """
import ctypes
libc = ctypes.CDLL(None)
first, second, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
for m in first, second, mutex:
    libc.pthread_mutex_init(m, None)
lock, here, there = threading.Lock(), threading.Barrier(2), threading.Barrier(2)

def one():
    libc.pthread_mutex_lock(first)
    here.wait()
    libc.pthread_mutex_lock(second)

def two():
    libc.pthread_mutex_lock(second)
    here.wait()
    libc.pthread_mutex_lock(first)

def with_lock():
    with lock:
        there.wait()
        libc.pthread_mutex_lock(mutex)

def with_mutex():
    libc.pthread_mutex_lock(mutex)
    there.wait()
    with lock:
        pass

for function in one, two, with_lock, with_mutex:
    start(function)
ready()
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
@pytest.mark.parametrize("minor", ["3.9", "3.13", "3.14", "3.15"])
def test_cycles_through_native_mutexes_are_not_known(target, probing, python_for, wait_until, minor, how):
    j = target(NATIVE, python=python_for(minor))
    options = ["--no-inject"] if how == "outside" else []
    kinds = {"one": "native lock", "two": "native lock", "with_lock": "native lock", "with_mutex": "lock"}
    threads = wait_until(lambda: (lambda d: d if all(n in d and (d[n]["waits_for"] or {}).get("kind") == kind for n, kind in kinds.items()) else None)(
        dump(probing, j.pid, *options)), what="all threads to wait")
    assert all(not t["waits_for"]["deadlock"] for t in threads.values() if t["waits_for"])
    assert all(threads[name]["waits_for"]["tid"] is None for name in ("one", "two", "with_lock"))
    assert threads["with_mutex"]["waits_for"]["tid"] == threads["with_lock"]["tid"]
    assert threads["with_mutex"]["waits_for"]["holder"] == "likely"


# Objects with the names and attributes of locks, that are none; and locks that are made and freed all the while.
FAKES = HEAD + """
class Lock:
    def __init__(self):
        self._lock = self._block = self
        self._owner = threading.get_ident()
        self._count = 1
    def acquire(self):
        time.sleep(3600)
    __enter__ = acquire
    def __exit__(self, *why):
        pass

class RLock(Lock):
    pass

class Condition:
    _lock, _waiters = 7, [1, None, "x"]
    def wait(self):
        time.sleep(3600)

class Event:
    _cond, _flag = Condition, 3
    def wait(self):
        Condition().wait()

class Queue:
    mutex = not_empty = not_full = "none"
    queue, maxsize = None, "many"
    def get(self):
        Event().wait()

def enters(lock):
    with lock:
        pass

def churns():
    while True:
        locks = [threading.Lock() for _ in range(50)]
        for lock in locks:
            lock.acquire()
            lock.acquire(timeout=0.0005)
        del locks, lock

start(enters, Lock(), name="Lock")
start(enters, RLock(), name="RLock")
start(Condition().wait, name="Condition")
start(Event().wait, name="Event")
start(Queue().get, name="Queue")
for _ in range(4):
    start(churns)
ready()
"""


@pytest.mark.parametrize("minor", MINORS)
def test_what_looks_like_a_lock_and_locks_that_are_freed(target, probing, python_for, wait_until, minor):
    j = target(FAKES, python=python_for(minor))
    fakes = "Lock", "RLock", "Condition", "Event", "Queue"
    for options in ([], ["--no-inject"]):
        wait_until(lambda: all((waits(probing, j.pid, *options).get(name) or {}).get("kind") == "sleep" for name in fakes),  # noqa: B023
                   what="those that sleep to be seen")
        for _ in range(20):
            for t in dump(probing, j.pid, *options).values():
                said = t["waits_for"]
                assert not said or not said["deadlock"], t
                if t["name"] in fakes:
                    assert said is None or (said["kind"] == "sleep" and said["tid"] is None), t


# In a network of its own: the peer is that of its network, whatever there is of the same number in ours.
OTHER_NETWORK = HEAD + """
import ctypes, fcntl, struct
if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
    os.write(int(os.environ["READY_FD"]), b"refused\\n")
    sys.exit(0)
control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up and running
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
far, _ = server.accept()
far.send(b"abc")
start(lambda: (client.recv(3), client.recv(1)), name="peer")
os.write(int(os.environ["READY_FD"]), f"{server.getsockname()[1]}\\n".encode())
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["agent", "outside"])
def test_sockets_of_another_network_namespace(target, probing, wait_until, how):
    j = target(OTHER_NETWORK)
    if j.ready.strip() == "refused":
        pytest.skip("needs netns: no network of its own can be made")
    options = ["--no-inject"] if how == "outside" else []
    said = wait_until(lambda: (lambda d: d if d and d["detail"] else None)(waits(probing, j.pid, *options).get("peer")), what="its peer")
    assert said["kind"] == "socket" and f"peer 127.0.0.1:{j.ready.strip()}, established, 0 bytes to read" in said["detail"], said


# Rank 1 makes the groups and sleeps; threads of rank 0 wait for it, each in another operation and group.
COLLECTIVES = HEAD + """
import torch
from torch import distributed
rank = int(os.environ.get("RANK", "0"))
meeting = os.environ["MEETING"]
other = None if rank else subprocess.Popen([sys.executable, __file__], env=dict(os.environ, RANK="1"), pass_fds=())
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)

def barrier(group):
    distributed.barrier(group=group)

def all_reduce(group):
    distributed.all_reduce(torch.ones(1), group=group)

def broadcast(group):
    distributed.broadcast(torch.ones(1), src=1, group=group)

def recv(group):
    distributed.recv(torch.ones(1), src=1, group=group)

def handle(group):
    work = distributed.all_reduce(torch.ones(1), group=group, async_op=True)
    work.wait()

functions = barrier, all_reduce, broadcast, recv, handle
groups = [distributed.new_group([0, 1]) for _ in functions]
if rank:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    time.sleep(3600)
for function, group in zip(functions, groups):
    start(function, group)
ready()
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["agent", "outside"])
def test_collectives(target, torch_python, probing, wait_until, tmp_path, how):
    options = ["--no-inject"] if how == "outside" else []
    j = target(COLLECTIVES, python=torch_python, timeout=120,
               env={"MEETING": str(tmp_path / "meeting"), "GLOO_SOCKET_IFNAME": "lo"})
    names = "barrier", "all_reduce", "broadcast", "recv", "handle"
    said = wait_until(lambda: (lambda d: d if all(d.get(n) for n in names) else None)(waits(probing, j.pid, *options)), timeout=60,
                      what="all threads to wait")
    for name in names[:4]:
        assert said[name]["kind"] == "collective" and said[name]["what"] == f"{name} of torch.distributed, group of 2", said[name]
    # an operation that was begun elsewhere: only that it is in native code
    assert said["handle"]["kind"] == "native lock" and said["handle"]["tid"] is None, said["handle"]
    assert not any(one["deadlock"] for one in said.values() if one)


# --- afterwards ---------------------------------------------------------------------------------------------------

DIES = HEAD + """
first, second, here, jobs = threading.Lock(), threading.Lock(), threading.Barrier(2), queue.Queue()
""" + DEADLOCKS["locks"][2] + """
def get():
    jobs.get()

def wakes():
    while True:
        time.sleep(0.2)

for function in one, two, get, wakes:
    start(function)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
with first:
    pass
"""


def stands(probing, pid):
    """The threads of which it is written what they wait for."""
    rows = probing(str(pid), "query", "SELECT thread, kind, what, deadlock, waits_s FROM python.waits", "--json").ok().json()["rows"]
    return {row["thread"]: row for row in rows}


@pytest.mark.parametrize("how", ["died", "recorded"])
def test_waits_are_known_afterwards(target, probing, probing_top, ptrace, wait_until, tmp_path, how):
    j = target(DIES)
    probing(str(j.pid), "inject").ok()
    known = wait_until(lambda: (lambda rows: rows if {"MainThread", "one", "two", "get"} <= rows.keys() else None)(stands(probing, j.pid)),
                       timeout=30, what="rows of what stands")
    assert known["one"]["deadlock"] and known["two"]["deadlock"] and not known["MainThread"]["deadlock"]
    assert known["get"]["kind"] == "queue" and known["get"]["what"] == "Queue jobs, empty" and known["get"]["waits_s"] >= 2
    assert "wakes" not in known
    # sampling begins three seconds after the agent, unless somebody wants it sooner
    sampled = "SELECT count(DISTINCT tid) AS n FROM python.samples"
    wait_until(lambda: probing(str(j.pid), "query", sampled, "--json").ok().json()["rows"][0]["n"] >= 5, what="samples of all threads")
    tids = {name: t["tid"] for name, t in dump(probing, j.pid).items()}
    of = str(j.pid)
    if how == "recorded":
        of = str(tmp_path / "run.db")
        probing(str(j.pid), "record", "--duration", "2s", "-o", of, timeout=60).ok()
    j.process.kill()
    j.process.wait()
    document = probing(of, "dump", "--json").ok().json()
    threads = {t["name"]: t for t in document["threads"]}
    for name, what, holder in (("one", "Lock second", "two"), ("two", "Lock first", "one"), ("MainThread", "Lock first", "one")):
        said = threads[name]["waits_for"]
        assert said["what"] == what and said["tid"] == tids[holder] and said["holder"] == "likely" and said["for_s"] >= 2
        assert said["deadlock"] == (name != "MainThread")
    # one that slept for a moment: unknown, and said so
    assert threads["wakes"]["waits_for"] is None and "not run for two seconds" in document["note"]
    text = probing(of, "dump").ok().stdout
    assert f"    DEADLOCK: waits for Lock second, likely held by two ({tids['two']}) in two (" in text
    assert "(what threads waited for is recorded of those that had not run for two seconds)" in text
    verdict = next(v for v in probing(of, "verdict", "--json").ok().json()["verdicts"] if v["code"] == "DEADLOCK")
    lines = DIES.splitlines()
    for word in ("one (", "two (", f":{lines.index('        with second:') + 1})", "Lock first", "Lock second", "likely held by"):
        assert word in verdict["text"], verdict
    report = probing(of, "report", "--format", "md", "-o", "-").ok().stdout
    assert "DEADLOCK: waits for Lock first, likely held by one" in report
    screen = probing_top("--export", "txt", "--screen", "threads", "--cols", "200", of).ok().stdout
    assert "DEADLOCK: Lock" in screen and "(not recorded)" in screen
    if how == "died":
        refused = probing(of, "query", "SELECT waits_for FROM python.threads")
        assert refused.status == 1 and "it is made in a running job" in refused.stderr


def test_tables_without_waits_say_so(target, probing, ptrace, wait_until):
    """An agent that was there for a moment only: nothing is known, and nothing is said against anybody."""
    j = target(DIES)
    probing(str(j.pid), "inject").ok()
    wait_until(lambda: probing(str(j.pid), "query", "SELECT count(*) AS n FROM python.samples", "--json").ok().json()["rows"][0]["n"], what="samples")
    j.process.kill()
    j.process.wait()
    document = probing(str(j.pid), "dump", "--json").ok().json()
    assert document["threads"]
    if all(t["waits_for"] is None for t in document["threads"]):  # unless the machine was that slow
        assert "not run for two seconds" in document["note"]
        found = probing(str(j.pid), "verdict", "--json").ok().json()
        assert "DEADLOCK" not in [v["code"] for v in found["verdicts"]]
        deadlock = next(check for check in found["checks"] if check["code"] == "DEADLOCK")
        assert deadlock["result"] in ("unknown", "fine")
        assert deadlock["result"] != "fine" or "evidence is against" not in (deadlock["reason"] or "")
