# SPDX-License-Identifier: Apache-2.0
"""`probing cluster verdict`: which rank keeps a job from going on. Real gloo jobs with planted faults (tests/cluster), whose own log is the truth;
all faults with eight ranks are long, and tests/cluster/accept.py counts them."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT, wait_until
from test_cluster import claim

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from ranks import SCRIPT, Job, is_right, planted  # noqa: E402

__all__ = ["claim"]

pytestmark = pytest.mark.timeout(300)

LATE_RANK = os.path.join(ROOT, "tests", "targets", "late_rank.py")

PATIENT_S = 60  # beside other tests

# Rank 1 has an agent of another version: it refuses who says hello, or knows none of the methods.
OLD_AGENT = f"""
import os, runpy, sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from agent_wire import BINARY, pack, unpack
from fake_agent import FakeAgent
from unix_server import Door, served_as_agent

class OldAgent(Door):
    def __init__(self, path, way):
        super().__init__(path)
        self.way = way

    def talk(self, client):
        import threading
        stream = client.makefile("rb")
        FakeAgent.handshake(client, stream)
        hello = dict(version=2, limits=dict(max_message=1 << 20, max_snapshot_hz=30.0, max_sample_hz=1000.0),
                     target=dict(pid=os.getpid(), uid=os.getuid(), host=os.uname().nodename, mode=1, agent_version="0.0.1", python_untested=False))
        while True:
            opcode, payload = FakeAgent.frame(stream)
            if opcode == BINARY:
                _, number, method, _ = unpack(payload)
                error = dict(code=4, message="version 1 is spoken here") if self.way == "hello" else dict(code=1, message="unknown method")
                answers = self.way == "methods" and method == "hello"
                FakeAgent.send(client, threading.Lock(), pack([1, number, None if answers else error, hello if answers else None]))

def run():
    runpy.run_path({SCRIPT!r}, run_name="__main__")

if os.environ["RANK"] == "1":
    with served_as_agent(OldAgent, WAY):
        run()
else:
    run()
"""


@pytest.fixture
def job(torch_python, torch_fork, tmp_path, data_dir):  # noqa: ARG001
    """Starts a job; fork=None: by torchrun."""
    jobs = []

    def start(fault, ranks=4, bad=3, fork=torch_fork, **more):
        jobs.append(Job(torch_python, tmp_path / f"job-{len(jobs)}", fault, ranks, bad, fork, **more))
        if fault != "before_first":
            jobs[-1].wait("ready")
        return jobs[-1]
    yield start
    for one in jobs:
        one.close()


def verdict(probing, job, *options):
    done = probing("cluster", "verdict", job.target(), "--json", *options, timeout=60)
    assert done.status in (0, 1), done
    return done.status, done.json()


def is_named(probing, job, *options):
    """A verdict that is right; the last one that was not, otherwise."""
    said = []

    def judged():
        status, document = verdict(probing, job, *options)
        said[:] = [is_right(job.fault, job.bad, document), status, document]
        return said[0] is None
    try:
        wait_until(judged, PATIENT_S, "the right verdict", interval=0.1)
    except pytest.fail.Exception:
        pytest.fail(f"{said}")
    return said[1:]


def test_stopped(job, probing, ptrace):
    """A job that moves, then hangs, and moves again: in the exit status, in words, and with the evidence."""
    one = job("stop")
    status, document = verdict(probing, one)
    assert status == 0 and [v["code"] for v in document["verdicts"]] == ["MOVING"], document
    assert document["world"] == 4 and document["ranks"] == "0-3" and document["missing"] is None
    assert any(g["moves"] and g["size"] == 4 and g["completed_max"] > 0 and g["members"] == "0-3" for g in document["groups"]), document["groups"]

    one.begin()
    status, document = is_named(probing, one)
    [v] = document["verdicts"]
    assert status == 1 and v["level"] == "bad" and v["brief"] == "HUNG RANK 3" and v["waiting"] == "0-2" and v["since_s"] >= 10
    assert v["op"] == "all_reduce" and v["number"] > 0 and not v["by_stacks"] and v["func"] == "stop_here"
    assert {e["witness"] for e in v["evidence"]} == {"counters", "stack", "kernel"} and "no rank has ended" in v["not"]
    words = probing("cluster", "verdict", one.target(), timeout=60)
    assert words.status == 1 and "HUNG RANK 3" in words.stdout and "is stopped by a signal in stop_here (training.py:" in words.stdout
    assert words.stderr == "" and "not: " in words.stdout

    one.end_fault()
    status, document = verdict(probing, one)
    assert status == 0 and document["verdicts"][0]["code"] == "MOVING", document


@pytest.mark.long
def test_circle(job, probing, ptrace):
    """Two groups in another order: only counters show who differs. Without agents the job hangs, and nobody is accused."""
    one = job("order")
    one.begin()

    def stands():
        found = verdict(probing, one, "--no-inject")
        return found if found[1]["verdicts"][0]["code"] != "MOVING" else None
    status, document = wait_until(stands, PATIENT_S, "a job that stands still", interval=0.1)
    [v] = document["verdicts"]
    assert v["by_stacks"] and v["ranks"] is None and v["code"] in ("ALL ALIKE", "WAITING"), v
    assert "rank 3 is in all_reduce, other_order (training.py:" in v["text"] and status == (v["code"] == "ALL ALIKE")
    status, document = is_named(probing, one)
    [v] = document["verdicts"]
    assert status == 1 and v["code"] == "DEADLOCK" and v["waiting"] == "0-2" and v["func"] == "other_order"
    assert sum(e["witness"] == "counters" for e in v["evidence"]) == 2

    # the same as tables; a name that is not a column's is refused at once
    def rows(sql):
        return probing("cluster", "query", one.target(), "--json", sql, timeout=60).ok().json()["rows"]
    [row] = rows("SELECT * FROM cluster.verdicts")
    assert {name: row[name] for name in ("code", "level", "cause", "ranks", "waiting", "func", "op")} == {
        "code": "DEADLOCK", "level": "bad", "cause": "ORDER", "ranks": "3", "waiting": "0-2", "func": "other_order", "op": "all_reduce"}
    assert row["since_s"] >= 10 and "rank 3, stack: " in row["evidence"] and row["by_stacks"] == 0
    joined = rows("SELECT v.ranks, g.behind, g.enqueued_max - g.enqueued_min AS apart FROM cluster.verdicts v JOIN cluster.groups g USING (pg)")
    assert joined == [{"ranks": "3", "behind": "3", "apart": 1}], joined
    refused = probing("cluster", "query", one.target(), "SELECT colour FROM cluster.groups", timeout=60)
    assert refused.status == 1 and "no such column: colour" in refused.stderr


@pytest.mark.long
@pytest.mark.parametrize("way", ["hello", "methods"])
def test_agent_of_another_version(way, job, probing, ptrace, tmp_path):
    """One rank's agent cannot be asked: the job is judged, the rank is named beside it, and its agent stays what it is."""
    script = tmp_path / "old.py"
    script.write_text(f"WAY = {way!r}\n" + OLD_AGENT)
    one = job("loader_queue", script=str(script))
    one.begin()
    is_named(probing, one)
    words = probing("cluster", "verdict", one.target(), timeout=60)
    assert words.status == 1 and "HUNG RANK 3" in words.stdout and "counters of 3 of 4 ranks (not of rank 1" in words.stdout, words
    # half of a job is no answer to SQL: it is refused, and the others can be named
    sql = "SELECT DISTINCT rank FROM python.threads"
    refused = probing("cluster", "query", one.target(), sql, timeout=60)
    assert refused.status in (1, 3) and not refused.stdout and ("version" in refused.stderr or "unknown method" in refused.stderr), refused
    assert "rank 1: " in refused.stderr, refused
    rows = probing("cluster", "query", f"job:{one.target()}/0,2-3", sql, "--json", timeout=60).ok().json()["rows"]
    assert [row["rank"] for row in rows] == [0, 2, 3]


@pytest.mark.long
@pytest.mark.parametrize("fault", ["loader_queue", "backward"])
def test_watch(fault, job, probing, ptrace):
    """Each new verdict is a line, from a job that moves until its end."""
    one = job(fault, ranks=2, bad=1)
    with subprocess.Popen([probing.path, "cluster", "verdict", one.target(), "--watch", "--json"], stdout=subprocess.PIPE, text=True) as watcher:
        try:
            first = json.loads(watcher.stdout.readline())
            assert first["verdicts"][0]["code"] in ("MOVING", "WAITING"), first
            one.begin()
            for line in watcher.stdout:
                document = json.loads(line)
                if document["verdicts"][0]["code"] == "HUNG":
                    break
            assert document["verdicts"][0]["code"] == "HUNG" and document["verdicts"][0]["ranks"] == "1" and document["verdicts"][0]["func"] == "next_batch", document
            one.end_fault()
            for line in watcher.stdout:
                document = json.loads(line)
                if document["verdicts"][0]["code"] == "MOVING":
                    break
            assert document["verdicts"][0]["code"] == "MOVING", document
            one.touch("end")
            assert watcher.wait(60) == 0
        finally:
            watcher.kill()


@pytest.mark.long
def test_all_end(job, probing, ptrace):
    """All ranks are killed at once: nothing is left to be judged, and why they have ended is printed."""
    one = job("none", ranks=2, bad=1)
    with subprocess.Popen([probing.path, "cluster", "verdict", one.target(), "--watch", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watcher:
        try:
            assert json.loads(watcher.stdout.readline())["verdicts"]
            for pid in one.pids().values():
                os.kill(pid, signal.SIGSEGV)
            said = watcher.communicate(timeout=90)[1]
            assert watcher.returncode == 1 and "ended: killed by " in said, said
        finally:
            watcher.kill()


@pytest.mark.long
@pytest.mark.parametrize("where", [[], ["--hosts", "here", "--via", "env RELAY_OF={host} {relay}"]], ids=["here", "hosts"])
def test_memory(where, job, probing, ptrace):
    """A rank that its control group has no memory for: who watches the job says why it has ended."""
    if "memory" not in planted(watched=True):
        pytest.skip("needs cgroups: none can be made here")
    one = job("memory")
    relay = ["--relay", f"{probing.path} relay --stdio"] if where else []
    with subprocess.Popen([probing.path, "cluster", "verdict", one.target(), "--watch", "--json", *where, *relay], stdout=subprocess.PIPE, text=True) as watcher:
        try:
            assert json.loads(watcher.stdout.readline())["verdicts"]
            one.begin()
            wrong = None
            for line in watcher.stdout:
                wrong = is_right(one.fault, one.bad, json.loads(line))
                if wrong is None:
                    break
            assert wrong is None
        finally:
            watcher.kill()


def test_no_job(probing):
    done = probing("cluster", "verdict", "nothing-like-it")
    assert done.status == 3 and done.stdout == ""
    # beside other tests there may be a job, with another name
    assert re.search("no job is named 'nothing-like-it'|no job with ranks was found", done.stderr), done


@pytest.mark.long
@pytest.mark.parametrize("fault", planted(watched=False))
def test_fault(fault, job, probing, ptrace):
    """Eight ranks: the rank and its line, and no other rank."""
    one = job(fault, ranks=8)
    if fault == "before_first":
        one.wait("fault", [one.bad])
    else:
        one.begin()
    is_named(probing, one)


@pytest.mark.long
def test_torchrun(job, probing, ptrace):
    one = job("loader_fifo", ranks=8, fork=None)
    one.begin()
    is_named(probing, one)


@pytest.mark.long
@pytest.mark.parametrize("fault", ["none", "slow", "checkpoint_short", "evaluate_short", "gil_short", "compile", "end"])
def test_fine(fault, job, probing, ptrace):
    """Nothing is bad about them, however often one asks."""
    one = job(fault, ranks=8)
    if fault != "none":
        one.touch("go")
    until = time.monotonic() + 25
    while time.monotonic() < until and not one.last(0, "end"):
        try:
            status, document = verdict(probing, one, "--wait", "4s")
        except AssertionError:
            assert one.last(0, "end"), one.tail()
            return
        assert status == 0, document["verdicts"]
        warned = [v for v in document["verdicts"] if v["level"] == "warning" and fault not in ("compile",)]
        # the slow one is named, and nobody else
        assert not [v for v in warned if (v["code"], v["ranks"], fault) != ("STRAGGLER", str(one.bad), "slow")], document["verdicts"]


@pytest.mark.long
def test_late_rank_in_sql(claim, probing, ptrace):
    """A rank that is started while its job is judged is not said to have no process."""
    def start(rank):
        return claim(rank, 4, source=LATE_RANK, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4")
    job = [start(rank) for rank in range(3)][0]
    query = [probing.path, "cluster", "query", f"job:{job.pid}", "--json", "SELECT ranks, text FROM cluster.verdicts"]
    with subprocess.Popen(query, stdout=subprocess.PIPE, text=True) as judging:
        try:
            # each rank that is watched has a reader
            wait_until(lambda: len(open(f"/proc/{judging.pid}/task/{judging.pid}/children", encoding="ascii").read().split()) >= 3, PATIENT_S, "three readers")
            start(3)
            [row] = json.loads(judging.communicate(timeout=60)[0])["rows"]
        finally:
            judging.kill()
    assert row["ranks"] == "3" and "feed (late_rank.py:" in row["text"], row


@pytest.mark.long
def test_some_that_start_again(claim, probing, ptrace):
    """Only some ranks are watched, also once one of them was started again."""
    def start(rank):
        return claim(rank, 4, source=LATE_RANK, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4")
    ranks = [start(rank) for rank in range(3)]
    watch = [probing.path, "cluster", "verdict", f"job:{ranks[0].pid}/0-1", "--watch", "--json", "--no-inject"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as watcher:
        def wait(wanted):
            for line in watcher.stdout:
                verdicts = json.loads(line)["verdicts"]
                if any(wanted(v) for v in verdicts):
                    return [v["waiting"] for v in verdicts]
            raise AssertionError("it has ended")
        try:
            assert "0-1" in wait(lambda v: v["waiting"] not in (None, "0"))
            os.kill(ranks[1].pid, signal.SIGKILL)
            ranks[1].process.wait()
            wait(lambda v: v["waiting"] != "0-1")
            start(1)
            assert "0-1" in wait(lambda v: v["waiting"] not in (None, "0"))
        finally:
            watcher.kill()
