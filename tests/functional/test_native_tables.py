# SPDX-License-Identifier: Apache-2.0
"""probing.native=on: the stacks that are always kept have native frames where they belong; who wants none gets none."""

import os
import shutil
import signal
import subprocess

import pytest

from conftest import inject_in_time, wait_until
from test_native import NESTED, NESTED_ORDER, NESTED_PYTHON, is_part, native_calls

__all__ = ["native_calls"]  # fixtures

# The newest stack, innermost frame first.
NEWEST = """
WITH RECURSIVE up(stack_id, n) AS (
  SELECT stack_id, 0 FROM (SELECT stack_id FROM python.samples WHERE thread = 'MainThread' ORDER BY timestamp DESC LIMIT 1)
  UNION ALL
  SELECT k.parent_id, n + 1 FROM up JOIN python.stacks k ON k.stack_id = up.stack_id WHERE k.parent_id IS NOT NULL)
SELECT f.func, f.kind, f.file, f.lineno, k.depth FROM up JOIN python.stacks k ON k.stack_id = up.stack_id
JOIN python.frames f ON f.frame_id = k.frame_id ORDER BY n
"""
APART = "(native and Python frames do not fit together)"
ALWAYS = {"PROBING_SAMPLE_RATE": "50"}


def rows(probing, target, text):
    return probing("-t", str(target), "query", "--format", "json", text, timeout=60).ok().json()["rows"]


def count(probing, pid, where="1"):
    return rows(probing, pid, f"SELECT count(*) AS n FROM python.samples WHERE {where}")[0]["n"]


def newest(probing, pid):
    return rows(probing, pid, NEWEST)


def short(frame):
    return (frame["func"] or "?").split(".")[-1]


def with_native(probing, pid):
    """The newest stack, once it has native frames."""
    def look():
        frames = newest(probing, pid)
        return frames if any(f["kind"] == "native" for f in frames) and short(frames[0]) == "native_loop" else None
    return wait_until(look, 60, "a stack with native frames", interval=0.2)


def without_native(probing, pid):
    def look():
        frames = newest(probing, pid)
        return frames if frames and all(f["kind"] == "python" for f in frames) else None
    return wait_until(look, 60, "a stack without native frames", interval=0.2)


def check_order(frames, library):
    assert is_part(["native_loop", "native_compute", *NESTED_ORDER], [short(f) for f in frames]), frames
    assert [short(f) for f in frames if f["kind"] == "python"] == NESTED_PYTHON
    assert APART not in [f["func"] for f in frames]
    assert [f["depth"] for f in frames] == list(range(len(frames)))[::-1]
    native = [f for f in frames if f["kind"] == "native"]
    assert all(f["lineno"] is None for f in native)
    assert {f["file"] for f in native if short(f).startswith("native_")} == {library}


@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.12", "3.13"])
def test_set_while_it_runs(probing, probing_top, target, python_for, native_calls, ptrace, minor):
    job = target(NESTED, native_calls, "compute", python=python_for(minor), env=ALWAYS)
    inject_in_time(probing, job.pid)
    frames = without_native(probing, job.pid)
    assert [short(f) for f in frames] == NESTED_PYTHON
    assert probing("-t", str(job.pid), "config", "native").ok().stdout == "off\n"
    assert probing("-t", str(job.pid), "config", "native=on").ok().stdout == "on\n"
    check_order(with_native(probing, job.pid), native_calls)
    # As one line, too; and who wants no native frames has none.
    stacks = [r["stack"] for r in rows(probing, job.pid, "SELECT DISTINCT fold(stack_id) AS stack FROM python.samples")]
    assert any("native_loop (native_calls.so)" in stack and "key (" in stack for stack in stacks), stacks
    folded = probing_top("--duration", "1", "--export", "folded", str(job.pid), timeout=60).ok().stdout
    assert "plain " in folded and "native_" not in folded
    assert probing("-t", str(job.pid), "config", "native=off").ok().stdout == "off\n"
    without_native(probing, job.pid)
    # Nothing of it comes any more.
    now = rows(probing, job.pid, "SELECT max(timestamp) AS t FROM python.samples")[0]["t"]
    wait_until(lambda: count(probing, job.pid, f"timestamp > {now!r}") > 10, 60, "samples", interval=0.2)
    late = rows(probing, job.pid, f"SELECT DISTINCT fold(stack_id) AS stack FROM python.samples WHERE timestamp > {now!r}")
    assert late and not any("native_" in r["stack"] for r in late), late
    assert job.alive()


def test_set_by_the_environment_and_read_afterwards(probing, probing_top, target, native_calls, ptrace):
    job = target(NESTED, native_calls, "compute", env=dict(ALWAYS, PROBING_NATIVE="on"))
    inject_in_time(probing, job.pid)
    check_order(with_native(probing, job.pid), native_calls)
    os.kill(job.pid, signal.SIGKILL)
    job.process.wait(30)
    # Its tables are as they were; its stacks, for those who want no native frames, are those of Python.
    check_order(newest(probing, job.pid), native_calls)
    folded = probing_top("--export", "folded", str(job.pid), timeout=60).ok().stdout
    assert "plain " in folded and "native_" not in folded, folded
    document = probing_top("--once", "--export", "json", str(job.pid), timeout=60).ok().json()
    main = next(t for t in document["threads"] if t["name"] == "MainThread")
    assert [short(f) for f in main["frames"]] == NESTED_PYTHON


CPP = r'''
#include <unistd.h>
namespace shop { struct Till { template <class T> __attribute__((noinline)) T add(T a, volatile int *end); }; }
template <class T> T shop::Till::add(T a, volatile int *end) { while (!*end) a += 1; return a; }
extern "C" int compute(volatile int *end) { return shop::Till().add<int>(1, end) + 1; }
'''
CPP_JOB = r'''
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
os.write(int(os.environ["READY_FD"]), b"ready\n")
library.compute(ctypes.byref(ctypes.c_int(0)))
'''


def test_names_of_cpp_are_as_people_write_them(probing, target, ptrace, tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("needs a C++ compiler: none installed")
    source, library = tmp_path / "shop.cpp", str(tmp_path / "shop.so")
    source.write_text(CPP, encoding="utf-8")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, str(source)], check=True, capture_output=True)
    job = target(CPP_JOB, library, env=dict(ALWAYS, PROBING_NATIVE="on"))
    inject_in_time(probing, job.pid)
    wait_until(lambda: [f for f in newest(probing, job.pid) if f["func"] == "shop::Till::add<int>"],
               60, "the name", interval=0.2)
    line = rows(probing, job.pid, "SELECT fold(stack_id) AS s FROM python.samples ORDER BY timestamp DESC LIMIT 1")[0]["s"]
    assert line.endswith("compute (shop.so);shop::Till::add<int> (shop.so)"), line
