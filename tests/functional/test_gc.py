# SPDX-License-Identifier: Apache-2.0
"""python.gc: sums over its rows are what gc.get_stats() says."""

import os
import signal

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until

ALWAYS = {"PROBING_SAMPLE_RATE": "20", "PROBING_MAX_MEMORY": "2MB"}
KEYS = ("collections", "collected", "uncollectable")

PREPARE = """
import gc
gc.disable()
def cycles(n):
    for i in range(n):
        a = []
        a.append(a)
def many_cycles():
    for i in range(20000):
        cycles(3)
def freeze():
    if hasattr(gc, "freeze"):
        gc.freeze()
def stats():
    return [[g[k] for k in ("collections", "collected", "uncollectable")] for g in gc.get_stats()]
"""

# What a job may do with its collector.
ACTS = ["gc.collect(0)", "gc.collect(1)", "gc.collect(2)", "cycles(50)", "gc.collect(0)", "freeze()", "cycles(7)", "gc.collect()",
        "gc.enable()", "many_cycles()", "gc.disable()", "cycles(5)", "gc.collect(1)"]


def rows(data_dir, j, table):
    folders = ring_file.folders(data_dir, j.pid)
    try:
        return ring_file.read(folders[-1], table) if folders else []
    except FileNotFoundError:  # the folder is made first
        return []


def wait_for_seconds(data_dir, j, n):
    """So many more of the agent's looks, each of which is a row of this table."""
    before = len(rows(data_dir, j, "probing.status"))
    wait_until(lambda: len(rows(data_dir, j, "probing.status")) >= before + n, timeout=60, what=f"{n} seconds", interval=0.1)


def sums(data_dir, j):
    out = [[0, 0, 0] for _ in range(3)]
    for row in rows(data_dir, j, "python.gc"):
        assert row["collections"] > 0 and row["step"] is None and (row["duration_ms"] is None or row["duration_ms"] >= 0)
        for i, key in enumerate(KEYS):
            out[row["generation"]][i] += row[key]
    return out


def test_sums_are_what_python_says(job, each_python, data_dir):  # noqa: F811
    j = job(python=each_python, env=ALWAYS)
    assert j.do(f"exec({PREPARE!r}, globals())") is None
    j.do("cycles(100)")
    j.do("gc.collect()")  # before the agent: nobody knows when
    with Client(j.start()) as client:
        # The first look may be late; what it finds is not told. From the first row on everything is.
        def is_watched():
            j.do("gc.collect(0)")
            return rows(data_dir, j, "python.gc") or client.call("status")["collect_note"]
        wait_until(is_watched, timeout=60, what="the collector to be watched", interval=0.2)
        note = client.call("status")["collect_note"]
    if note:  # static variables, whose symbols may have been stripped
        assert "python.gc" in note and j.do("sys.version_info < (3, 7)"), note
        assert rows(data_dir, j, "python.gc") == []
        return
    wait_for_seconds(data_dir, j, 3)
    told = sums(data_dir, j)
    assert told[0][0] > 0 and told[2] == [0, 0, 0]  # not what was before
    before = j.do("stats()")
    for act in ACTS:
        answer = j.do(act)
        assert answer is None or (act.startswith("gc.collect") and isinstance(answer, int)), (act, answer)
    after = j.do("stats()")
    wanted = [[b - a for a, b in zip(x, y)] for x, y in zip(before, after)]
    assert all(g[0] > 0 for g in wanted) and sum(g[1] for g in wanted) > 50, wanted
    def since():
        return [[b - a for a, b in zip(x, y)] for x, y in zip(told, sums(data_dir, j))]
    wait_until(lambda: since() == wanted, timeout=60, what=f"rows that make {wanted}", interval=0.2)
    wait_for_seconds(data_dir, j, 2)
    assert since() == wanted and j.do("stats()") == after


@pytest.mark.long
def test_collections_between_rests(job, any_python, data_dir):  # noqa: F811
    """While nobody runs the counters are not read; what somebody has collected then is there once each."""
    j = job(python=any_python, env=ALWAYS)
    j.do(f"exec({PREPARE!r}, globals())")
    Client(j.start()).close()

    def is_watched():
        j.do("gc.collect(0)")
        return rows(data_dir, j, "python.gc")
    wait_until(is_watched, timeout=60, what="the collector to be watched", interval=0.2)
    for _ in range(3):
        wait_for_seconds(data_dir, j, 5)  # a rest begins after two
        before = sums(data_dir, j)[1]
        collected = j.do("(cycles(9), gc.collect(1))[1]")
        wanted = [before[0] + 1, before[1] + collected, before[2]]
        wait_until(lambda: sums(data_dir, j)[1] == wanted, timeout=60, what=f"a row that makes {wanted}", interval=0.2)


FORKS = """
import gc
gc.disable()
def cycles(n):
    for i in range(n):
        a = []
        a.append(a)
def collect(sizes):
    return [(cycles(n), gc.collect(0))[1] for n in sizes]
def ours():
    return [c.__name__ for c in gc.callbacks if getattr(c, "__name__", "").startswith("probing")]
def child(before, after):
    # Collects, gets an agent of its own, collects when it is told to, and stays.
    answers, answer = os.pipe()
    asked, ask = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            seen = [os.getpid(), ours(), collect(before), start()]
            os.write(answer, json.dumps(seen).encode() + bytes([10]))
            os.read(asked, 1)
            collect(after)
            os.write(answer, json.dumps(ours()).encode() + bytes([10]))
            time.sleep(1000)
        finally:
            os._exit(0)
    return answers, ask
def read_answer(fd):
    return json.loads(os.fdopen(os.dup(fd), closefd=True).readline())
"""


def told(data_dir, pid):
    """The reported collections of a process, one a row."""
    folders = ring_file.folders(data_dir, pid)
    return [row["collected"] for row in ring_file.read(folders[-1], "python.gc") if row["duration_ms"] is not None] if folders else []


@pytest.mark.timeout(300)
def test_a_child_that_has_its_parents_callback(job, torch_fork, data_dir):  # noqa: F811
    """In a child of a fork the callback is still in its list: it is silent until the child has an agent too, and tells once then."""
    j = job(fork=torch_fork, env=dict(ALWAYS, OMP_NUM_THREADS="1"))
    assert j.do("__import__('torch') and None") is None
    assert j.do(f"exec({FORKS!r}, globals())") is None
    with Client(j.start()) as client:
        wait_until(lambda: j.do("ours()") and client.call("status")["gc_on"], timeout=60, what="the callback", interval=0.1)
        assert j.do("collect([3, 4])") == [3, 4]
        seen = []

        def both():  # the job's own may follow, and find nothing
            seen[:] = told(data_dir, j.pid)
            end = len(seen)
            while end and seen[end - 1] == 0:
                end -= 1
            return seen[:end][-2:] == [3, 4]
        try:
            wait_until(both, timeout=60, what="the parent's collections", interval=0.1)
        finally:
            print(f"collections that were reported: {seen[-20:]}; {client.call('status')['gc_on']}")
        assert j.do("exec('said, ask = child([11, 12, 13], [21, 22])', globals())") is None
        pid, inherited, collected, (result, error, endpoint) = j.do("read_answer(said)")
        try:
            assert result == 0, error
            assert inherited == ["probing_gc"] and collected == [11, 12, 13]
            with Client(endpoint) as of_child:
                wait_until(lambda: of_child.call("status")["gc_on"], timeout=60, what="the child's own callback", interval=0.1)
                j.do("os.write(ask, b'x')")
                assert j.do("read_answer(said)") == ["probing_gc"]  # not two of them
                wait_until(lambda: told(data_dir, pid) == [21, 22], timeout=60, what="the child's collections, each once", interval=0.1)
        finally:
            os.kill(pid, signal.SIGKILL)
        assert j.do("collect([5])") == [5]
        wait_until(lambda: told(data_dir, j.pid)[-1:] == [5], timeout=60, what="the parent to go on", interval=0.1)
        assert not set(told(data_dir, j.pid)) & {11, 12, 13, 21, 22}


KEPT = """
import gc, sys
gc.disable()
kept = []
def collect(n):
    kept.extend([] for _ in range(n))
    gc.collect()
    return len(gc.get_objects())
"""
SOME = 500  # objects that come and go in a job that does nothing else


def test_objects_that_the_last_full_collection_left(job, each_python, data_dir):  # noqa: F811
    """gc_objects of python.memory follows len(gc.get_objects()) from one full collection to the next, and is NULL where CPython does not keep it."""
    j = job(python=each_python, env=ALWAYS)
    assert j.do(f"exec({KEPT!r}, globals())") is None
    with Client(j.start()):
        def last():
            return (rows(data_dir, j, "python.memory") or [{"gc_objects": None}])[-1]["gc_objects"]
        for n in (20000, 50000):
            told = j.do(f"collect({n})")
            assert told > n
            if not (3, 7) <= tuple(j.do("sys.version_info[:2]")) <= (3, 13):
                wait_for_seconds(data_dir, j, 2)
                assert last() is None
                continue
            wait_until(lambda: last() and abs(last() - told) < SOME, timeout=60, what=f"{told} objects, not {last()}", interval=0.1)
        j.do("kept.clear()")  # which is known when garbage is collected again
        wait_for_seconds(data_dir, j, 2)
        assert last() is None or abs(last() - told) < SOME
        told = j.do("collect(0)")
        wait_until(lambda: last() is None or abs(last() - told) < SOME, timeout=60, what=f"{told} objects", interval=0.1)
