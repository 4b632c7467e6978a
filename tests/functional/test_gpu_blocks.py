# SPDX-License-Identifier: Apache-2.0
"""The blocks of torch's allocator on GPUs, by the stack that allocated them: the table, `memory --gpu`, and the Memory screen."""

import contextlib
import re
import sqlite3

import pytest
from conftest import hold_without_waits_us
from test_sql_screen import PatientScreen

pytestmark = pytest.mark.timeout(300)

# What torch has of CUDA, as far as it is asked. As there, each snapshot is a new object.
TORCH = r'''
import os, sys, time, types
torch, c, cuda, memory = [sys.modules.setdefault(name, types.ModuleType(name)) for name in ("torch", "torch._C", "torch.cuda", "torch.cuda.memory")]
MB, mode = 1048576, sys.argv[1]
def pools(now):
    return {"all": {"current": now, "peak": now, "allocated": now, "freed": 0}}
def stats(blocks, mib):
    return {"allocation": pools(blocks), "allocated_bytes": pools(mib * MB), "reserved_bytes": pools(2 * mib * MB),
            "active": pools(blocks), "inactive_split": pools(1), "segment": pools(2), "num_alloc_retries": 0, "num_ooms": 0}
devices = {0: stats(6, 448), 1: stats(1, 16)}
c._cuda_memoryStats = devices.__getitem__
c._cuda_getDeviceCount = (3).bit_length  # 2
c._cuda_isHistoryEnabled = "1".isdigit
os.environ.pop("TORCH_SYMBOLIZE_MODE", None)
if mode != "native":
    os.environ["TORCH_SYMBOLIZE_MODE"] = "dladdr"
cuda._initialized = True
def frame(name, file, line):
    return {"name": name, "filename": file, "line": line}
main = frame("<module>", "/job/train.py", 90)
step = [frame("forward", "/job/model.py", 12), frame("train;step", "/job/train.py", 40), main]
load = [frame("at::native::empty(c10::IntArrayRef)", "??", 0), frame("load", "/job/data.py", 7), main]
def block(state, mib, frames, rounding=0):
    return {"address": 1, "size": mib * MB, "requested_size": mib * MB - rounding, "state": state, "frames": frames}
def snapshot():
    if mode == "large":  # each of another stack
        return {"segments": [{"device": 0, "blocks": [block("active_allocated", 1, [frame("f%d" % i, "/job/a.py", 1 + i % 99)] + step * 20)
                                                      for i in range(20000)]}]}
    if mode == "lies":
        return {"segments": [None, 7, {"device": "x", "blocks": 3}, {"device": -1, "blocks": [None, {"state": 5, "size": -3, "frames": [None, 5, {}]}]},
                {"device": 1 << 70, "blocks": [{"state": "\33[2J" * 99, "size": 1 << 61, "requested_size": "much",
                 "frames": [frame("\33[31m" * 5000, "/" * 9000 + "\udc80.py", -5)] * 500}]}] + [[]] * 50}
    known = mode != "no stacks"
    return {"segments": [
        {"device": 0, "blocks": [block("active_allocated", 200, step * known), block("inactive", 50, step * known)]},
        {"device": 0, "blocks": [block("active_allocated", 100, step * known, 24), block("active_awaiting_free", 100, load * known),
                                 block("active_allocated", 48, [])]},
        {"device": 1, "blocks": [block("active_allocated", 16, load * known)]}]}
if mode == "old":
    def memory_snapshot():
        pass
else:
    def memory_snapshot(mempool_id=None, include_traces=True):
        pass
memory.memory_snapshot = memory_snapshot
if mode == "large":
    devices[0] = stats(19990, 448)
    prepared = [snapshot()]
class Answers(dict):
    def __missing__(self, options):
        if mode == "large":
            return prepared.pop()
        return snapshot() if options == (0, 0, False) else 7 / 0
c._cuda_memorySnapshot = Answers().__getitem__
if mode == "many":
    devices[0] = stats(20000, 448)
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    time.sleep(0.1)
    if mode == "large" and not prepared:  # it is asked again
        prepared.append(snapshot())
'''


def asked(probing, job, sql):
    done = probing(str(job.pid), "query", "--format", "json", sql, timeout=60).ok()
    return [list(row.values()) for row in done.json()["rows"]], done.stderr


STEP = "<module> (train.py:90);train:step (train.py:40);forward (model.py:12)"
LOAD = "<module> (train.py:90);load (data.py:7);at::native::empty(c10::IntArrayRef)"
MB = 1048576


def test_stacks(target, probing, ptrace, data_dir):  # noqa: ARG001
    """Blocks of one stack are one row; free ones have none; the place is a line of Python."""
    job = target(TORCH, "stacks")
    rows, said = asked(probing, job, "SELECT device, state, bytes, requested_bytes, blocks, function_name, file, lineno, stack FROM python.gpu_blocks")
    assert said == ""
    assert rows == [[0, "active_allocated", 300 * MB, 300 * MB - 24, 2, "forward", "/job/model.py", 12, STEP],
                    [0, "active_awaiting_free", 100 * MB, 100 * MB, 1, "load", "/job/data.py", 7, LOAD],
                    [0, "inactive", 50 * MB, 50 * MB, 1, None, None, None, None],
                    [0, "active_allocated", 48 * MB, 48 * MB, 1, None, None, None, None],
                    [1, "active_allocated", 16 * MB, 16 * MB, 1, "load", "/job/data.py", 7, LOAD]]
    text = probing(str(job.pid), "memory", "--gpu", "--top", "2", timeout=60).ok().stdout
    assert text == ("GPU 0: 498 MiB in torch's allocator: 448 MiB in use, 50.0 MiB free; 5 blocks\n"
                    "GPU 1: 16.0 MiB in torch's allocator: 16.0 MiB in use, 0 B free; 1 block\n\n"
                    "       BYTES    SHARE   BLOCKS  GPU  FUNCTION (FILE:LINE)\n"
                    "     300 MiB   64.7 %        2    0  forward (model.py:12)\n"
                    "     100 MiB   21.6 %        1    0  load (data.py:7)\n"
                    "and 2 more: --top 4 shows them\n")
    places = probing(str(job.pid), "memory", "--gpu", "--json", timeout=60).ok().json()["places"]
    assert sum(place["bytes"] for place in places) == 514 * MB and {place["pid"] for place in places} == {job.pid}
    assert places[0]["function_name"] == "forward" and places[0]["lineno"] == 12 and places[0]["blocks"] == 2
    wrong = probing(str(job.pid), "memory", "--gpu", "--trace")
    assert wrong.status == 2 and wrong.stderr == "probing: --trace and --gpu exclude each other\n"


@pytest.mark.parametrize(("mode", "said"), [
    ("no stacks", "no stacks are recorded: torch.cuda.memory._record_memory_history begins it"),
    ("many", "the allocator has 20007 blocks: to list more than 20000 would stop the job for too long"),
    ("native", "stacks are recorded: torch may take minutes to name C++ frames in them, unless TORCH_SYMBOLIZE_MODE is dladdr"),
    ("old", "a history of allocations is kept, and this torch lists blocks only with all of it")])
def test_what_is_not_there(target, probing, ptrace, data_dir, mode, said):  # noqa: ARG001
    """Without stacks the bytes are still there; the job is not stopped for more than is bearable."""
    job = target(TORCH, mode)
    rows, text = asked(probing, job, "SELECT state, sum(bytes), count(stack) FROM python.gpu_blocks GROUP BY 1 ORDER BY 1")
    assert text == f"probing: python.gpu_blocks: {said}\n"
    assert rows == ([["active_allocated", 364 * MB, 0], ["active_awaiting_free", 100 * MB, 0], ["inactive", 50 * MB, 0]]
                    if mode == "no stacks" else [])
    assert job.alive()


def test_a_recording_does_not_ask(target, probing, ptrace, tmp_path, data_dir):  # noqa: ARG001
    """It is not worth stopping the job for; what torch holds in all is there."""
    job = target(TORCH, "stacks")
    path = tmp_path / "job.db"
    probing(str(job.pid), "inject").ok()
    probing(str(job.pid), "record", "--duration", "1s", "-o", str(path), timeout=60).ok()
    assert asked(probing, job, "SELECT count(*) FROM python.gpu_memory")[0] == [[2]]
    with contextlib.closing(sqlite3.connect(path)) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        assert "python_gpu_blocks" not in tables and "python_gpu_memory" in tables
        assert db.execute("SELECT count(*) FROM python_gpu_memory").fetchone() == (2,)
    done = probing("-t", str(path), "memory", "--gpu")
    assert done.status == 1 and "python.gpu_blocks" in done.stderr and done.stderr.count("\n") == 1, done


@pytest.mark.timeout(300)
def test_many_stacks(target, probing, ptrace, data_dir, wait_until):  # noqa: ARG001
    """The GIL is never held for long but by torch; what is beyond the largest stacks is added up."""
    job = target(TORCH, "large")

    def whole():
        """Once the machine has time for all of them; before that it is known that something is left out."""
        rows, said = asked(probing, job, "SELECT sum(bytes), sum(blocks), count(*), count(stack) FROM python.gpu_blocks")
        if "IndexError" in said:  # the job has not made the next ones yet
            return None
        if "in 3 s" not in said:
            return rows, said
        assert (rows[0][1] or 0) < 20000, (rows, said)
        return None
    rows, said = wait_until(whole, 200, "all stacks")
    assert rows == [[20000 * MB, 20000, 1001, 1000]]
    assert said == "probing: python.gpu_blocks: only the largest 1000 of 20000 stacks are listed, the others as one\n"
    hold_us = probing(str(job.pid), "status", "--json").ok().json()["gil"]["us_longest_hold"]
    assert hold_without_waits_us(job.pid, hold_us) <= 2000


def test_lies(target, probing, ptrace, data_dir):  # noqa: ARG001
    """What is no number, no text, no device is not shown; texts are cut."""
    job = target(TORCH, "lies")
    done = probing(str(job.pid), "memory", "--gpu", timeout=60).ok()
    assert "\33" not in done.stdout + done.stderr and len(done.stdout) < 20000
    rows, _ = asked(probing, job, "SELECT device, bytes, length(stack), length(function_name) FROM python.gpu_blocks")
    assert [row[:2] for row in rows] == [[None, 1 << 61], [None, 0]] and rows[0][2] < 16384 and rows[0][3] <= 160
    assert job.alive()


@pytest.mark.long
def test_the_screen(target, probing, ptrace, probing_top, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """A flame graph by bytes, after the other views of Memory; each key reads it once."""
    job = target(TORCH, "stacks")
    probing(str(job.pid), "inject").ok()
    wait_until(lambda: asked(probing, job, "SELECT 1 FROM python.gpu_memory, python.memory WHERE gpu_allocated_mb > 0 LIMIT 1")[0], 60, "a row")
    s = PatientScreen(tmux, tmp_path, 120, 32, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen memory {job.pid}; echo status=$?")
        s.wait_for("on GPUs")
        s.type("b")
        s.type("b")
        s.wait_for("what variables hold")
        s.type("b")
        s.wait_for("all that lives   464 MiB, 100.0 %")
        wait_until(lambda: re.search(r"GPU 0  448 MiB", s.text()), 60, "the first device")
        assert re.search(r"forward \(model\.py:12\)  300 MiB", s.text()), s.text()
        assert re.search(r"\(stack not", s.text()), s.text()
        s.keys("Down")
        s.wait_for("GPU 0   448 MiB, 96.6 %")
        s.type("b")
        s.wait_for("allocations are not traced")
        s.type("q")
        s.type("q")
        s.wait_for("status=0")
    finally:
        s.close()
    assert job.alive()
