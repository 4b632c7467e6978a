# SPDX-License-Identifier: Apache-2.0
"""Stacks and names read from memory are what the target says of itself.

The target's threads come to rest in known places; one of them then writes what sys._current_frames() and threading say,
and only then the process is read from outside.
"""

import json
import os

import pytest

from conftest import program_runner

# Every target begins with this. report() waits until all threads but its own are at rest, that is, until two looks at
# them agree and each is inside a function whose name starts with "rest", and writes what the interpreter says of them.
PRELUDE = '''
import ctypes, json, os, sys, threading, time

def describe(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0])
        frame = frame.f_back
    return frames

def look(own):
    names = {t.ident: t.name for t in threading.enumerate()}
    return {i: {"name": names.get(i), "frames": describe(f)} for i, f in sys._current_frames().items() if i != own}

def report(threads):
    own = threading.get_ident()
    before = None
    while True:
        now = look(own)
        at_rest = all(any(f[0].split(".")[-1].startswith("rest") for f in t["frames"]) for t in now.values())
        if len(now) == threads and at_rest and now == before:
            break
        before = now
        time.sleep(0.02)
    os.write(int(os.environ["READY_FD"]), (json.dumps(now) + "\\n").encode())
    time.sleep(3600)

def start(function, *arguments, name=None):
    threading.Thread(target=function, args=arguments, name=name, daemon=True).start()
'''

PLACES = PRELUDE + '''
lock = threading.Lock()
lock.acquire()

def rest_sleep():
    time.sleep(3600)

def rest_lock():
    lock.acquire()

def rest_in_c():
    ctypes.CDLL(None).sleep(3600)

def rest_with_a_long_call():
    time.sleep(
        max(
            3600,
            1,
        )
    )

class Box:
    def rest_method(self):
        return (lambda: [time.sleep(3600) for _ in (1,)])()

    @property
    def rest_property(self):
        with lock:
            return 1

def numbers():
    yield 1
    try:
        yield from rest_inner()
    finally:
        pass

def rest_inner():
    yield 2
    time.sleep(3600)
    yield 3

def in_generator():
    return sum(x for x in numbers())

def key_of(_):
    rest_sleep()

def in_callback():
    sorted([2, 1], key=key_of)

def in_except():
    try:
        raise ValueError
    except ValueError:
        rest_sleep()

def many_lines():
    x = 0
''' + "".join(f"    x += {n}\n" for n in range(400)) + '''
    rest_sleep()

def unicode_source():
    source = "\\n" * 300 + "def rest_größe_µ():\\n    import time\\n\\n    time.sleep(3600)\\nrest_größe_µ()\\n"
    exec(compile(source, "/tmp/ordner-é/файл-€-\U0001F600.py", "exec"), {})

async def rest_coroutine():
    import asyncio
    await asyncio.sleep(0)
    rest_sleep()

def in_coroutine():
    import asyncio
    asyncio.new_event_loop().run_until_complete(rest_coroutine())

start(rest_sleep, name="plain")
start(rest_lock, name="größe")
start(rest_in_c, name="пример")
start(rest_with_a_long_call, name="漢字")
start(Box().rest_method, name="\U0001F600 smile")
start(lambda: Box().rest_property, name="")
start(in_generator, name="n" * 200)
start(in_callback)
start(in_except)
start(many_lines)
start(unicode_source)
start(in_coroutine)
start(report, 13, name="reporter")
rest_sleep()
'''

SIXTY = PRELUDE + '''
def rest(n):
    time.sleep(3600)

for n in range(60):
    exec(f"def place_{n}(): rest({n})")
    start(globals()[f"place_{n}"], name=f"worker {n}")
start(report, 61, name="reporter")
rest(None)
'''

DEEP = PRELUDE + '''
depth = int(sys.argv[1])
sys.setrecursionlimit(depth + 200)
threading.stack_size(512 * 1024 * 1024)

def down(n):
    if n:
        return down(n - 1) + 1
    return rest()

def rest():
    time.sleep(3600)

start(down, depth, name="deep")
start(report, 2, name="reporter")
rest()
'''


@pytest.fixture(scope="session")
def dump(build_dir):
    """Snapshots of a process, as pystack_dump prints them: dump(pid, count, interval_ms)."""
    run = program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))

    def snapshots(pid, count=1, interval_ms=20, *more):
        return [json.loads(line) for line in run(pid, count, interval_ms, *more).ok().stdout.splitlines()]
    return snapshots


def compare(job, snapshot):
    """Asserts that the snapshot says of each thread what the target wrote of it; returns the number compared."""
    told = json.loads(job.ready)
    seen = {str(t["ident"]): t for t in snapshot["threads"] if t["has_python"]}
    for ident, expected in told.items():
        thread = seen[ident]
        frames = [[f["func"], f["file"], f["line"]] for f in thread["frames"]]
        assert frames == expected["frames"]
        assert thread["name"] == expected["name"]
        assert not thread["torn"] and not thread["truncated"]
        assert thread["tid"] in job.tids()
        assert thread["state"] == "S"
    return len(told)


def test_every_kind_of_place(each_python, ptrace, target, dump):
    job = target(PLACES, python=each_python, name="plätze-\U0001F600.py")
    snapshot = dump(job.pid)[0]
    assert compare(job, snapshot) == 13
    main = snapshot["threads"][0]
    assert main["tid"] == job.pid and main["name"] == "MainThread"
    assert sorted(t["tid"] for t in snapshot["threads"]) == job.tids()
    assert snapshot["process"]["n_threads"] == len(job.tids())
    assert snapshot["gil_tid"] == 0
    assert {t["gil"] for t in snapshot["threads"]} == {"none"}


def test_sixty_threads(each_python, ptrace, target, dump):
    job = target(SIXTY, python=each_python)
    snapshot = dump(job.pid)[0]
    assert compare(job, snapshot) == 61
    assert len(snapshot["threads"]) == 62 and not snapshot["incomplete"]
    tids = [t["tid"] for t in snapshot["threads"]]
    assert tids[0] == job.pid and tids[1:] == sorted(tids[1:])


def test_recursion_of_900(each_python, ptrace, target, dump):
    job = target(DEEP, 900, python=each_python)
    snapshot = dump(job.pid)[0]
    compare(job, snapshot)
    deep = [t for t in snapshot["threads"] if t["name"] == "deep"][0]
    assert len(deep["frames"]) > 900


def test_the_innermost_frames_of_a_deeper_recursion_are_kept(each_python, ptrace, target, dump):
    job = target(DEEP, 5000, python=each_python)
    snapshot = dump(job.pid)[0]
    told = [t for t in json.loads(job.ready).values() if t["name"] == "deep"][0]
    deep = [t for t in snapshot["threads"] if t["name"] == "deep"][0]
    assert len(told["frames"]) > 5000
    assert [[f["func"], f["file"], f["line"]] for f in deep["frames"]] == told["frames"][:2048]
    assert deep["truncated"] and not deep["torn"] and snapshot["incomplete"]


@pytest.mark.parametrize("strategy", ["symbol", "section", "symtab", "cookie", "interp_head", "static-scan"])
def test_each_way_of_finding_the_interpreter(each_python, ptrace, target, dump, build_dir, strategy):
    job = target(PRELUDE + "def rest(): time.sleep(3600)\nstart(report, 1)\nrest()\n", python=each_python)
    run = program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))
    result = run(job.pid, 1, 0, strategy)
    if result.status != 0:
        assert result.status == 3 and "no CPython interpreter was found" in result.stderr
        minor = int(dump(job.pid)[0]["version"].split(".")[1])
        # symbols for debuggers may be stripped; the others exist from a version on, or up to one
        static = strategy in ("interp_head", "static-scan")
        assert strategy in ("symtab", "interp_head") or \
            (minor > 6 if static else minor < {"symbol": 7, "section": 10, "cookie": 13}[strategy])
        return
    snapshot = json.loads(result.stdout)
    assert snapshot["discovery"] == strategy
    assert compare(job, snapshot) == 1
