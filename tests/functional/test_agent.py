# SPDX-License-Identifier: Apache-2.0
"""What the agent tells: facts, stacks, snapshots, samples, its own cost."""

import os
import re
import socket
import statistics
import subprocess
import threading
import time

import pytest

import agent_wire
from agent_job import job, snapshot_by_name
from agent_wire import Client, Profile, rows, threads_of

__all__ = ["job"]

HELD, WAITING = 3, 2


def cpu_seconds(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- what it says -----------------------------------------------------------------------------------------------

def test_hello_tells_the_facts(job):
    j = job()
    with Client(j.start()) as client:
        target = client.hello["target"]
    assert client.hello["version"] == 2
    assert client.hello["limits"]["max_message"] == 1 << 20
    assert target["pid"] == j.pid
    assert target["cmdline"].endswith("job.py")
    assert target["uid"] == os.geteuid()
    assert target["host"] == socket.gethostname()
    assert target["torch"] is None and target["rank"] is None
    assert abs(target["started_at"] - time.time()) < 120
    version = subprocess.run([target["exe"], "-c", "import platform; print(platform.python_version())"],
                             capture_output=True, text=True, check=True).stdout.strip()
    assert target["python"] == version


@pytest.mark.parametrize("minor", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_stacks_are_what_the_job_itself_sees(job, python_for, minor):
    j = job(python_for(minor))
    for command in ("spawn('wait', wait_for_ever)", "spawn('schläft 主', schläft_主)", "spawn('deep', recurse, 900)"):
        j.do(command)
    with Client(j.start()) as client:
        told = j.do("at_rest()")
        # Until the next command the main thread waits in os.read: only its own innermost frames are others than it told.
        seen = {str(t["tid"]): t for t in threads_of(client.call("threads"))}
    assert set(told) == set(seen)
    for tid, thread in told.items():
        frames = [[f["func"], f["file"], f["line"]] for f in seen[tid]["frames"]]
        assert seen[tid]["name"] == thread["name"]
        assert not seen[tid]["torn"]
        if int(tid) == j.pid:
            assert frames[0][0] == "<module>" and seen[tid]["name"] == "MainThread"
            continue
        assert len(frames) == len(thread["stack"])
        for (func, file, line), (told_func, told_file, told_line) in zip(frames, thread["stack"]):
            assert (func.rpartition(".")[2], file, line) == (told_func.rpartition(".")[2], told_file, told_line)


def test_own_threads_are_left_out(job):
    j = job()
    with Client(j.start()) as client:
        snapshot = client.call("threads")
        own = set(j.agent_threads().values())
    assert len(own) == 3
    assert not own & {t["tid"] for t in threads_of(snapshot)}
    assert snapshot["process"]["n_threads"] == len(threads_of(snapshot)) + 3
    assert 0 < snapshot["process"]["agent_rss_bytes"] < 8 << 20


def test_gil_held_for_ever(job):
    j = job()
    endpoint = j.start()
    j.do("spawn('waits', hot_loop)")
    j.tell("spawn('keeper', keep_the_gil)")
    deadline = time.monotonic() + 20
    while True:
        started = time.monotonic()
        with Client(endpoint) as client:
            threads = snapshot_by_name(client)
            assert client.call("status")["clients"] == 1
        if "keeper" in threads and threads["keeper"]["gil"] == HELD and threads["waits"]["gil"] == WAITING:
            break
        assert time.monotonic() < deadline, threads
    assert time.monotonic() - started < 1
    assert threads["keeper"]["frames"][0]["func"] == "keep_the_gil"
    assert threads["waits"]["frames"][-1]["func"].endswith("_bootstrap")


# --- streams ----------------------------------------------------------------------------------------------------

def test_snapshots_come_at_the_rate(job):
    j = job()
    with Client(j.start()) as client:
        client.subscribe("threads", 20)
        times = [client.notification("threads")["timestamp"] for _ in range(20)]
        gaps = [b - a for a, b in zip(times, times[1:])]
        assert 0.04 < statistics.median(gaps) < 0.1
        assert client.call("unsubscribe", {"stream": "threads"}) == {}
        client.notifications.clear()
        client.connection.socket.settimeout(0.5)
        with pytest.raises(socket.timeout):
            client.message()


def test_sessions_share_snapshots(job):
    j = job()
    endpoint = j.start()
    clients = [Client(endpoint) for _ in range(4)]
    for client in clients:
        client.subscribe("threads", 10)
    seqs = [[client.notification("threads")["seq"] for _ in range(8)] for client in clients]
    for client in clients:
        client.close()
    distinct = {seq for seen in seqs for seq in seen}
    assert len(distinct) < 24  # 32 were received


def test_samples_show_where_the_time_goes(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    j.do("spawn('asleep', wait_for_ever)")
    profile = Profile()
    with Client(j.start()) as client:
        client.subscribe("samples", 200)
        while sum(s["thread"] == "hot" for s in profile.samples) < 150:
            batch = client.notification("samples")
            profile.feed(batch)
            assert batch["dropped"] == 0
            assert 1000 < batch["period_us"] < 1e6
        status = client.call("status")
    hot = [s for s in profile.samples if s["thread"] == "hot" and s["on_cpu"]]
    asleep = [s for s in profile.samples if s["thread"] == "asleep"]
    assert len(hot) > 10
    assert sum(s["frames"][0] in ("hot_inner", "hot_loop") for s in hot) > 0.9 * len(hot)
    assert sum("hot_loop" in s["frames"] for s in hot) > 0.9 * len(hot)
    assert all("wait_for_ever" in s["frames"] and not s["torn"] for s in asleep)
    assert not any(s["on_cpu"] for s in asleep[1:])
    assert status["rate_hz"] == 200
    assert status["samples"] >= len(profile.samples)
    assert status["us_per_sample"] > 0


def test_a_second_subscriber_gets_all_definitions(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    endpoint = j.start()
    with Client(endpoint) as first, Client(endpoint) as second:
        first.subscribe("samples", 100)
        one, two = Profile(), Profile()
        for _ in range(3):
            one.feed(first.notification("samples"))
        second.subscribe("samples", 50)
        for _ in range(3):
            two.feed(second.notification("samples"))  # it refers to nothing it was not told
        second.call("unsubscribe", {"stream": "samples"})
        second.notifications.clear()
        second.subscribe("samples", 50)
        again = Profile()
        again.feed(second.notification("samples"))
    assert two.samples and again.samples


def test_a_batch_is_the_same_for_all_who_know_the_same(job):
    """Encoded once: also what it says of its cost is the same, which is measured again for each encoding."""
    j = job()
    j.do("spawn('hot', hot_loop)")
    endpoint = j.start()
    with Client(endpoint) as first, Client(endpoint) as second:
        first.subscribe("samples", 100)
        second.subscribe("samples", 50)
        batches = [[client.notification("samples") for _ in range(4)] for client in (first, second)]
    one, two = [{batch["cost_pct"]: batch for batch in of} for of in batches]
    both = set(one) & set(two)
    assert len(both) >= 2, (list(one), list(two))
    assert all(one[cost] == two[cost] for cost in both)


def test_the_end_of_samples_is_answered_behind_the_last(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        client.call("subscribe", {"stream": "samples", "rate_hz": 200.0, "batch_s": 4.0})
        deadline = time.monotonic() + 60
        while client.call("status")["samples"] < 150 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert client.call("unsubscribe", {"stream": "samples"}) == {}
        profile = Profile()
        for message in client.notifications:
            profile.feed(message[2])
        status = client.call("status")
        assert len(client.notifications) <= 12  # one at the beginning, then one every four seconds
        assert len(profile.samples) == status["samples"] >= 150 and status["dropped"] == 0
        assert client.call("unsubscribe", {"stream": "samples"}) == {}  # of no stream


def test_cost_stays_within_the_budget(job, probing):
    j = job()
    for n in range(20):
        j.do(f"spawn('deep {n}', recurse, 100)")
    for n in range(3):
        j.do(f"spawn('hot {n}', hot_loop)")
    with Client(j.start()) as client:
        client.subscribe("samples", 1000)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            client.notification("samples")
        tid = j.agent_threads()["probing-smp"]
        before, since = cpu_seconds(j.pid, tid), time.monotonic()
        while time.monotonic() < since + 3:
            client.notification("samples")
        pct = 100 * (cpu_seconds(j.pid, tid) - before) / (time.monotonic() - since)
        status = client.call("status")
        text = probing(j.pid, "status").ok().stdout
    assert status["budget_pct"] == 1
    assert status["stretched"] is True
    assert re.search(r"^sampling +[\d.]+ of 1000\.0 Hz to stay within 1 % of a core$", text, re.M), text
    assert pct < 3  # the clock of /proc counts in hundredths of a second


def test_nobody_asks_and_nothing_is_kept_nothing_happens(job):
    j = job(env={"PROBING_MAX_MEMORY": "0"})
    with Client(j.start()) as client:
        client.subscribe("samples", 100)
        client.notification("samples")
        tid = j.agent_threads()["probing-smp"]
    path = f"/proc/{j.pid}/task/{tid}/status"

    def switches():
        with open(path, encoding="utf-8", errors="replace") as status:
            return [line for line in status if line.startswith("voluntary_ctxt_switches")][0]

    deadline = time.monotonic() + 10
    while True:
        before = switches()
        time.sleep(1)
        if switches() == before:
            break
        assert time.monotonic() < deadline, "the sampler wakes up though nobody is there"


def test_reading_while_threads_come_and_go(job):
    """Threads that live for a moment, at a high rate: nothing crashes, every message is whole."""
    j = job()
    j.do("spawn('breeder', exec, 'while True:\\n t = threading.Thread(target=hot_inner)\\n t.start()\\n t.join()', globals())")
    profile = Profile()
    with Client(j.start()) as client:
        client.subscribe("samples", 1000)
        client.subscribe("threads", 30)
        seen = threading.Event()
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            message = client.message()
            if message[:2] == [2, "samples"]:
                profile.feed(message[2])
                seen.set()
            elif message[:2] == [2, "threads"]:
                assert threads_of(message[2])
    assert seen.is_set() and j.target.alive()


def test_golden_bytes_are_what_they_say(source_dir):
    """The files that the C code must write, read by this other implementation."""
    folder = os.path.join(source_dir, "tests", "wire", "golden")
    messages = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            messages[name.partition(".")[0]] = agent_wire.unpack(file.read())
    assert messages["hello"] == [0, 1, "hello", {"version": 2, "client": "0.1.0"}]
    assert messages["subscribe"] == [0, 3, "subscribe", {"stream": "samples", "rate_hz": 100.0, "budget_pct": 0.5}]
    assert messages["error"] == [1, 5, {"code": 2, "message": "the first request must be hello"}, None]
    assert messages["target"][3]["target"]["rank"] is None
    main, autograd = threads_of(messages["threads_notify"][2])
    assert [f["func"] for f in main["frames"]] == ["Trainer.step", "<module>"]
    assert (main["gil"], main["state"], main["on_cpu"]) == (HELD, "R", 1)
    assert autograd["cpu_pct"] is None and autograd["on_cpu"] is None and autograd["name"] is None
    profile = Profile()
    profile.feed(messages["samples"][2])
    assert profile.samples[0]["frames"] == ["Trainer.step", "<module>"]
    assert messages["chunk"][2]["data"] == b"a short one"
    assert messages["tables"][3]["tables"][0] == {"name": "python.samples", "head": b"the head"}
    assert messages["pull"][2:] == ["pull", {"table": "python.samples", "making": 4000000000, "first_seq": 5000000000,
                                             "rows": 7, "heap_used": 300}]
    assert messages["pulled"][3] == {"more": True, "anew": False, "pieces": b"rows"}
    assert messages["rows_ask"][2:] == ["rows", {"table": "python.modules", "args": {"root": "model", "limit": -5000000000}}]
    assert messages["rows"][3] == {"columns": ["path", "bytes"], "rows": [["model.0", 5000000000], [None, 0.5]],
                                   "more": True, "note": "there are more"}
    assert messages["arm"][2:] == ["arm", {"what": "trace", "limit_s": 60.0, "steps": 5, "compiled": False}]
    assert messages["disarm"][2:] == ["disarm", {"what": "trace", "steps": 0, "compiled": False}]
    assert messages["eval"][2:] == ["eval", {"code": b"1 + 1\n", "name": "<eval>", "timeout_s": 2.5, "output_bytes": 65536,
                                             "main": True, "tid": 4001, "depth": 3}]
    assert messages["evaluated"][3] == {"result": None, "output": b"a\n\0\xff", "type": b"ValueError", "message": b"",
                                        "traceback": b"ValueError\n", "duration_ms": 0.5, "truncated": True,
                                        "timed_out": True, "unended": False}
    assert messages["complete"][2:] == ["complete", {"code": b"if x:\n", "name": "<repl>", "timeout_s": 2.5, "output_bytes": 65536,
                                                     "main": False, "tid": 0, "depth": 0, "keep": True, "whole": True}]
    asked = {"leased": False, "timeout_s": 10.0}
    assert messages["debug"][2:] == ["debug", {"action": 1, "timeout_s": 30.0, "leased": True, "host": "127.0.0.1", "port": 5678,
                                               "path": "/srv/debugpy", "exposed": True,
                                               "places": ["/usr/lib/python3.12/site-packages", "/tmp/\udcff"]}]
    assert messages["pause"][2:] == ["pause", {"action": 1, "host": "::1", "port": 3344, "limit_s": 120.0, **asked}]
    assert messages["catch"][2:] == ["catch", {"action": 2, "host": None, "port": 0, "limit_s": None, **asked}]
    done = {"refused": None, "raised": None, "timed_out": False, "unended": False, "on": True, "was": False, "client": False}
    assert messages["debugpy"][3] == {**done, "client": True, "missing": None, "other": None, "host": "127.0.0.1", "port": 5678,
                                      "module": "/srv/debugpy/__init__.py", "version": "1.8.0", "user": "user 1000", "cwd": "/work", "compiles": True}
    paused = messages["paused"][3]
    assert rows(paused.pop("threads"), paused.pop("strings"), ("name", "where")) == [
        {"tid": 4001, "held": True, "name": "MainThread", "where": "held at /train.py:7 step"},
        {"tid": 0, "held": False, "name": "loader", "where": "in C, called at /train.py:9 load"}]
    assert paused == {**done, "address": "[::1]:3344", "token": "0a1b", "left_s": 119.5}
    assert messages["caught"][3] == {**done, "address": "127.0.0.1:3344", "token": "0a1b", "left_s": 30.0, "exception": "ValueError: boom",
                                     "thread": "MainThread", "traceback": "Traceback\nValueError: boom", "signals": "SIGSEGV",
                                     "left_alone": "", "limit_s": 300.0, "all_threads": True}
    assert len(messages) == 32
