# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio: those that the target itself knows, with what each awaits, below the thread of their loop."""

import json
import time

import pytest

# On a machine that does other things too an answer may have to be asked for again.
pytestmark = pytest.mark.timeout(300)

# Tasks with every kind of thing to wait for. The job tells of them when all are at rest.
JOB = r'''
import asyncio, gc, json, os, sys, threading, time, types

async def sleeper():
    await asyncio.sleep(3600)

async def numbers():
    for i in range(3):
        await sleeper()
        yield i

async def iterates():
    async for number in numbers():
        pass

@types.coroutine
def old_style():
    yield from sleeper()

async def delegates():
    await old_style()

class Awaitable:
    def __await__(self):
        return (yield from sleeper().__await__())

async def through_await():
    await Awaitable()

async def waits_for(task):
    await task

async def gathers(*tasks):
    await asyncio.gather(*tasks)

async def locks(lock):
    async with lock:
        await asyncio.sleep(3600)

def tell(tasks, thread):
    rows = []
    for task in tasks:
        top = task.get_stack(limit=1)[0]
        rows.append({"id": id(task), "name": task.get_name() if hasattr(task, "get_name") else None,
                     "coro": task._coro.__qualname__, "outermost": [top.f_code.co_filename, top.f_lineno]})
    return {"thread": thread, "tasks": rows}

told = []

async def main(ready):
    loop = asyncio.get_event_loop()
    make = loop.create_task
    lock = asyncio.Lock()
    first = make(iterates())
    second = make(delegates())
    others = [make(waits_for(first)), make(gathers(second, make(sleeper()))), make(locks(lock)), make(locks(lock)),
              make(through_await())]
    done = loop.create_future()
    done.set_result(None)
    for _ in range(20):
        await asyncio.sleep(0)
    everyone = asyncio.Task.all_tasks(loop) if not hasattr(asyncio, "all_tasks") else asyncio.all_tasks(loop)
    current = [t for t in everyone if t._coro.__qualname__ == "main"]
    loop.call_later(0.2, lambda: (told.append(tell([t for t in everyone if t not in current], threading.current_thread().name)),
                                  ready.set()))
    await asyncio.sleep(3600)

def run(ready):
    asyncio.new_event_loop().run_until_complete(main(ready))

ready = threading.Event(), threading.Event()
threading.Thread(target=run, args=(ready[0],), name="other loop", daemon=True).start()
ready[0].wait()
threading.Timer(0.01, lambda: (ready[1].wait(), os.write(int(os.environ["READY_FD"]), (json.dumps(told) + "\n").encode()))).start()
run(ready[1])
'''

# The functions of each task, innermost first; what asyncio itself adds on the inside is left out.
CHAINS = {
    "sleeper": ["sleeper"],
    "iterates": ["sleeper", "numbers", "iterates"],
    "delegates": ["sleeper", "old_style", "delegates"],
    "through_await": ["sleeper", "Awaitable.__await__", "through_await"],
    "waits_for": ["waits_for"],
    "gathers": ["gathers"],
    "locks": ["locks"],
}


def read_tasks(probing, pid, *options):
    """The document; read again while the machine is too slow for the worker's deadline."""
    deadline = time.monotonic() + 90
    while True:
        document = probing(pid, "backtrace", "--tasks", "--json", *options).ok().json()
        if document["note"] is None:
            return document
        assert time.monotonic() < deadline, document["note"]


def own(frames, script):
    return [f["func"].split(".<locals>.")[-1] for f in frames if f["file"] == script]


def check(document, told, script, version):
    by_thread = {t["name"]: t for t in document["threads"]}
    assert not document["other_tasks"] and len(told) == 2
    for loop in told:
        seen = {task["id"]: task for task in by_thread[loop["thread"]]["tasks"]}
        assert len([t for t in seen.values() if t["coro"] == "main"]) == 1
        assert {i for i, t in seen.items() if t["coro"] != "main"} == {t["id"] for t in loop["tasks"]}
        for expected in loop["tasks"]:
            task = seen[expected["id"]]
            assert task["name"] == expected["name"] and task["coro"] == expected["coro"]
            assert task["state"] == "pending" and not task["truncated"]
            outermost = task["frames"][-1]
            assert [outermost["file"], outermost["line"]] == expected["outermost"]
            chain = own(task["frames"], script)
            if version >= (3, 11):
                assert chain == CHAINS[task["coro"]] or task["coro"] == "through_await"
            else:  # without gc imported, or before qualified names, the tail may be short
                assert chain[-1] == task["coro"].split(".")[-1]
        names = {t["coro"]: t for t in seen.values()}
        assert names["waits_for"]["id"] in names["iterates"]["awaited_by"]
        assert names["gathers"]["id"] in names["delegates"]["awaited_by"]
        assert not names["main"]["awaited_by"]


def version_of(document):
    return tuple(int(part) for part in document["target"]["python"].split(".")[:2])


def test_tasks_are_those_that_the_target_knows(each_python, ptrace, target, probing):
    job = target(JOB, python=each_python)
    document = read_tasks(probing, job.pid)
    check(document, json.loads(job.ready), job.script, version_of(document))
    assert job.alive() and job.output() == ""


def test_from_outside_they_are_read_or_it_is_said_why_not(each_python, ptrace, target, probing):
    job = target(JOB, python=each_python)
    document = probing(job.pid, "backtrace", "--tasks", "--json", "--no-inject").ok().json()
    if version_of(document) >= (3, 14):
        assert document["note"] is None
        check(document, json.loads(job.ready), job.script, version_of(document))
    else:
        assert "before Python 3.14" in document["note"]
        assert all(t["tasks"] is None for t in document["threads"])


GROUPS = r'''
import asyncio, json, os

async def sleeper():
    await asyncio.sleep(3600)

class Group(asyncio.TaskGroup):
    pass

async def at_the_end():
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(sleeper(), name="end %d" % i) for i in range(3)]
        made[0].add_done_callback(print)

async def in_the_block():
    async with Group() as group:
        made = group.create_task(at_the_end(), name="inner group")
        await made

async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(in_the_block(), name="block")
        alone = asyncio.create_task(sleeper(), name="alone")
        for _ in range(20):
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.2, os.write, int(os.environ["READY_FD"]), b"ready\n")
        await asyncio.sleep(3600)

asyncio.run(main())
'''


@pytest.mark.parametrize("minor", ["3.11", "3.12", "3.13", "3.14"])
def test_tasks_of_a_group_are_awaited_by_its_parent(python_for, ptrace, target, probing, minor):
    job = target(GROUPS, python=python_for(minor))
    document = read_tasks(probing, job.pid)
    tasks = {t["name"]: t for t in document["threads"][0]["tasks"]}
    names = {t["id"]: t["name"] for t in tasks.values()}
    awaited_by = {name: [names[i] for i in t["awaited_by"]] for name, t in tasks.items()}
    main = next(name for name, t in tasks.items() if t["coro"] == "main")
    assert awaited_by == {main: [], "block": [main], "inner group": ["block"], "alone": [],
                          "end 0": ["inner group"], "end 1": ["inner group"], "end 2": ["inner group"]}
    assert job.alive() and job.output() == ""


# Python 3.6 makes its GIL with the first thread, and nobody can ask a main thread that stays in C to make one (test_gil_3_6.py).
HAD_A_THREAD = "import _thread\n_thread.start_new_thread(int, ())\n"

RUNNING = r'''
import asyncio, os, time

def deeper(n):
    if n:
        return deeper(n - 1)
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

async def inner():
    deeper(3)

async def runs():
    await inner()

async def main():
    task = asyncio.get_event_loop().create_task(runs(), **({"name": "one"} if hasattr(asyncio.Task, "set_name") else {}))
    await task

asyncio.new_event_loop().run_until_complete(main())
'''


def test_a_task_that_runs(each_python, ptrace, target, probing):
    job = target(HAD_A_THREAD + RUNNING, python=each_python)
    document = read_tasks(probing, job.pid)
    tasks = {t["coro"]: t for t in document["threads"][0]["tasks"]}
    assert tasks["runs"]["state"] == "running" and tasks["main"]["state"] == "pending"
    assert tasks["runs"]["awaited_by"] == [tasks["main"]["id"]]
    assert own(tasks["runs"]["frames"], job.script)[-1] == "runs"
    if version_of(document) >= (3, 14):
        assert own(tasks["runs"]["frames"], job.script) == ["deeper"] * 4 + ["inner", "runs"]


def test_no_tasks(each_python, ptrace, target, probing):
    """Without asyncio there are none, which is not the same as not known."""
    job = target(HAD_A_THREAD + 'import os, time\nos.write(int(os.environ["READY_FD"]), b"ready\\n")\ntime.sleep(3600)\n',
                 python=each_python)
    document = read_tasks(probing, job.pid)
    assert [t["tasks"] for t in document["threads"]] == [[]] and document["other_tasks"] == []


MANY = r'''
import asyncio, os

async def waits():
    await asyncio.sleep(3600)

async def main():
    tasks = [asyncio.ensure_future(waits()) for _ in range(2500)]
    await asyncio.sleep(0)
    asyncio.get_event_loop().call_later(0.05, os.write, int(os.environ["READY_FD"]), b"ready\n")
    await asyncio.gather(*tasks)

asyncio.new_event_loop().run_until_complete(main())
'''


def test_very_many_tasks_are_cut_with_a_mark(each_python, ptrace, target, probing):
    job = target(MANY, python=each_python)
    document = probing(job.pid, "backtrace", "--tasks", "--json").ok().json()
    if document["note"] is None:
        assert document["incomplete"] is True
        assert len(document["threads"][0]["tasks"]) == 2000
    else:
        assert "tasks are not known" in document["note"]


def test_as_text(python_for, ptrace, target, probing):
    job = target(JOB, python=python_for("3.11"))
    text = probing(job.pid, "backtrace", "--tasks").ok().stdout
    assert "iterates, pending, awaited by Task-" in text
    assert f"        iterates ({job.script}:" in text
    assert text.count("main, pending") == 2
