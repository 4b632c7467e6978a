# SPDX-License-Identifier: Apache-2.0
"""Interpreters whose memory does not hang together, or holds more than can be shown, or goes away, while they are looked at."""

import os

import pytest

from agent_job import job
from agent_wire import Client, threads_of
from hostile_support import define_in, wait_long, Watch

__all__ = ["job"]

# Evaluated in the job: what it defines is used by the expressions of the tests.
DEFINE = r'''
import ctypes, functools, json, os, sys, threading, time
hostile = ctypes.CDLL({library!r})
hostile.hostile_spin.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
counter, stop = ctypes.c_uint64(), ctypes.c_int()
def word(addr):
    return ctypes.c_uint64.from_address(addr)
NEW = sys.version_info >= (3, 11)
def place_of(frame):
    """Address of what a frame is in memory (Include/cpython/frameobject.h, Include/internal/pycore_frame.h)."""
    return word(id(frame) + 24).value if NEW else id(frame)
def link_of(frame):
    """Where its link to its caller lies."""
    return word(place_of(frame) + (24 if not NEW else 48 if sys.version_info[1] == 11 else 8))
def cycle_top(action):
    return cycle_middle(action)
def cycle_middle(action):
    return cycle_leaf(action)
def cycle_leaf(action):
    middle = sys._getframe().f_back
    link, inner = link_of(middle.f_back), place_of(middle)
    kept = link.value
    link.value = inner
    try:
        action()
    finally:
        link.value = kept
def deep(n, action):
    if n == 0:
        action()
    else:
        deep(n - 1, action)
released = threading.Event()
spin = functools.partial(hostile.hostile_spin, ctypes.addressof(counter), ctypes.addressof(stop))
'''


def define(job, build_dir):
    define_in(job, DEFINE.format(library=os.path.join(build_dir, "tests", "targets", "hostile.so")))


def looked_at(client, name):
    """The thread, as soon as it is known by its name."""
    return wait_long(lambda: {t["name"]: t for t in threads_of(client.call("threads"))}.get(name), what=name)


def short(frames):
    return [f["func"].rpartition(".")[2] for f in frames]


# --- frames that lead back to themselves ------------------------------------------------------------------------

def test_a_chain_of_frames_with_a_cycle(job, each_python, build_dir):
    j = job(each_python)
    define(j, build_dir)
    j.do("spawn('asleep', lambda: (cycle_top(lambda: released.wait()), wait_for_ever()))")
    with Client(j.start()) as client:
        asleep = wait_long(lambda: (lambda t: t if t["torn"] else None)(looked_at(client, "asleep")), what="the cycle")
        assert "cycle_leaf" in short(asleep["frames"]) and len(asleep["frames"]) <= 2048
        j.do("spawn('spins', lambda: (cycle_top(spin), wait_for_ever()))")
        wait_long(lambda: looked_at(client, "spins")["torn"], what="the other cycle")
        watch = Watch(client)
        spins = watch.of("spins", 30)
        assert any(s["torn"] for s in spins)
        assert not [s for s in spins if not s["torn"] and len(s["frames"]) > 64]
        assert j.do("[setattr(stop, 'value', 1), released.set()] and 1") == 1
        for name in ("asleep", "spins"):
            healed = wait_long(lambda n=name: (lambda t: t if "wait_for_ever" in short(t["frames"]) and not t["torn"] else None)(
                looked_at(client, n)), what="the stack to be whole again")
            assert short(healed["frames"])[-1] == "_bootstrap"
    assert j.target.alive()


# --- more than can be shown -------------------------------------------------------------------------------------

def depth_of(python_minor):
    return 1000000 if python_minor >= 11 else 4000


@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.12", "3.13"])
def test_a_stack_deeper_than_is_shown(job, python_for, build_dir, minor):
    """A million calls where calls of Python take none of the C stack. The innermost are kept."""
    j = job(python_for(minor))
    define(j, build_dir)
    n = depth_of(int(minor.split(".")[1]))
    j.do("sys.setrecursionlimit(10**7)")
    j.do("threading.stack_size(64 << 20)")
    j.do(f"spawn('asleep', deep, {n}, wait_for_ever)")
    j.do(f"spawn('spins', deep, {n}, spin)")
    wait_long(lambda: j.do("counter.value"), what="the bottom of the recursion")
    with Client(j.start()) as client:
        for name, leaf in (("asleep", "wait"), ("spins", "deep")):
            def is_cut(name=name, leaf=leaf):
                shown = looked_at(client, name)
                return shown if shown["truncated"] and short(shown["frames"])[0] == leaf else None
            shown = wait_long(is_cut, what="a stack that is cut")
            assert len(shown["frames"]) == 2048 and short(shown["frames"])[100:] == ["deep"] * 1948
        assert client.call("threads")["incomplete"]
        watch = Watch(client, 20)
        for sampled in watch.of("spins", 5)[:5] + watch.of("asleep", 5)[:5]:
            assert sampled["frames"][-1] == "(frames left out)"
            assert {f.rpartition(".")[2] for f in sampled["frames"][100:-1]} == {"deep"}
        j.do("[setattr(stop, 'value', 1)] and 1")
    assert j.target.alive()


# --- offsets and lists that are garbage -------------------------------------------------------------------------

# Words of _Py_DebugOffsets of 3.13 (Include/internal/pycore_debug_offsets.h): cookie, version, free_threaded, then the runtime:
# size, finalizing, interpreters_head; the interpreter: size, id, next, threads_head, ...
HEAD, THREADS_HEAD = 5, 9


def offsets_word(number):
    return f"word(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')) + {8 * number})"


@pytest.mark.parametrize("number,value", [(HEAD, 1 << 40), (THREADS_HEAD, 7), (1, 0x03630000), (4, 2**64 - 1)])
def test_offsets_that_are_garbage_are_refused(job, python_for, build_dir, number, value):
    j = job(python_for("3.13"))
    define(j, build_dir)
    kept = j.do(offsets_word(number) + ".value")
    j.do(f"setattr({offsets_word(number)}, 'value', {value})")
    with Client(j.start()) as client:
        status = client.call("status")
        assert status["note"] and not status["discovery"]
        assert client.call_error("threads")
        assert j.do("1 + 1") == 2
        j.do(f"setattr({offsets_word(number)}, 'value', {kept})")
        wait_long(lambda: client.send("threads") and client.answer(client.last_id)[0] is None, what="the next try")
        assert client.call("status")["discovery"]


def test_offsets_that_change_later_do_not_matter(job, python_for, build_dir):
    j = job(python_for("3.13"))
    define(j, build_dir)
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        watch = Watch(client)
        watch.of("hot", 10)
        for number in range(3, 60):
            j.do(f"setattr({offsets_word(number)}, 'value', 2**64 - 1)")
        for s in watch.of("hot", 60)[20:]:
            assert s["frames"][-1].rpartition(".")[2] == "_bootstrap"
        assert short(looked_at(client, "hot")["frames"])[-1] == "_bootstrap"


@pytest.mark.parametrize("value", [0x10, 2**63, 0x7000_0000_0000])
def test_a_list_of_interpreters_that_is_garbage(job, python_for, build_dir, value):
    """Nothing is shown then, and it is said; when it is as it was, everything is."""
    j = job(python_for("3.13"))
    define(j, build_dir)
    j.do("spawn('hot', hot_loop)")
    head = f"word(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime')) + {offsets_word(HEAD)}.value)"
    with Client(j.start()) as client:
        watch = Watch(client)
        watch.of("hot", 10)
        kept = j.do(head + ".value")
        before = client.call("status")["read_errors"]
        j.do(f"setattr({head}, 'value', {value})")
        def is_said():
            error, snapshot = client.answer(client.send("threads"))
            return error or snapshot["incomplete"]
        wait_long(is_said, what="the agent to say that it cannot read")
        j.do(f"setattr({head}, 'value', {kept})")
        wait_long(lambda: "hot" in [t["name"] for t in threads_of(client.answer(client.send("threads"))[1] or client.call("threads"))]
                   if not is_said() else False, what="everything to be shown again")
        watch.of("hot", len([s for s in watch.profile.samples if s["thread"] == "hot"]) + 20)
        assert client.call("status")["read_errors"] >= before
    assert j.target.alive()
