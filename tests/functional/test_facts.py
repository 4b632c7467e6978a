# SPDX-License-Identifier: Apache-2.0
"""Facts about threads that are more than their stacks: how long one has waited for the GIL, who collects garbage, and what
looking at them may cost."""

import json
import os
import re
import struct

import pytest

from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import program_runner

# How many collections have begun is told in shared memory by the collector's own callback.
GARBAGE = """
import gc, mmap, os, struct, sys, threading, time
gc.disable()
file = open(sys.argv[1], "r+b")
page = mmap.mmap(file.fileno(), 8)
begun = 0

def on_collection(phase, info):
    global begun
    begun += phase == "start"
    struct.pack_into("Q", page, 0, begun)

gc.callbacks.append(on_collection)
threading.Thread(target=time.sleep, args=(3600,), name="sleeper", daemon=True).start()

def collect():
    while True:
        gc.collect()

def allocate():
    while True:
        [[] for _ in range(1000)]

if sys.argv[2] == "collect":
    kept = []
    for _ in range(200000):
        a, b = [], []
        a.append(b)
        b.append(a)
        kept.append(a)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
globals()[sys.argv[2]]()
"""

# A thread waits for a GIL that the main thread holds for `seconds` at a time, in C.
HOLDS = """
import ctypes, os, sys, threading, time
begun = threading.Event()
hold = ctypes.PyDLL(None).usleep

def wait():
    begun.set()
    while True:
        sum(range(100))

threading.Thread(target=wait, name="waiter", daemon=True).start()
begun.wait()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    hold(int(float(sys.argv[1]) * 1000000))
"""


@pytest.fixture(scope="session")
def dump(build_dir):
    run = program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))
    return lambda pid, *options: [json.loads(line) for line in run(str(pid), *map(str, options)).ok().stdout.splitlines()]


def by_name(snapshot):
    return {t["name"]: t for t in snapshot["threads"]}


class Garbage:
    """The job, and how many collections it has begun."""

    def __init__(self, target, path, python, what):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(8))
        self.pid = target(GARBAGE, path, what, python=python).pid

    def begun(self):
        with open(self.path, "rb") as file:
            return struct.unpack("Q", file.read(8))[0]


@pytest.fixture
def garbage(target, tmp_path):
    return lambda python, what: Garbage(target, str(tmp_path / "begun"), python, what)


def stripped(snapshot):
    """Without symbols it is not known where an old Python says that it collects."""
    return snapshot["discovery"] == "static-scan"


def test_garbage_is_being_collected(each_python, ptrace, garbage, dump, probing_top, wait_until):
    running = garbage(each_python, "collect")
    first = dump(running.pid)[0]
    if stripped(first):
        assert first["gc_running"] == -1
        return

    def seen():
        return next((s for s in dump(running.pid, 20, 10) if s["gc_running"] == 1 and by_name(s)["MainThread"]["gc"] == 1), None)

    snapshot = wait_until(seen, 30, "a look during a collection")
    main, sleeper = by_name(snapshot)["MainThread"], by_name(snapshot)["sleeper"]
    assert main["gil"] == "held" and main["frames"][0]["func"] in ("collect", "on_collection")
    assert sleeper["gc"] == 0 and sleeper["gil"] == "none"
    before = running.begun()
    document = probing_top("--export", "json", "--duration", "1", str(running.pid)).ok().json()
    assert running.begun() > before > 0
    assert document["gc_running"] in (True, False) and {t["name"]: t["gc"] for t in document["threads"]}["sleeper"] is False
    counts = {}
    for stack in document["samples"]:
        all_, collecting = counts.get(stack["thread"], (0, 0))
        counts[stack["thread"]] = (all_ + stack["samples"], collecting + stack["gc_samples"])
    assert counts["MainThread"][0] > 0 and counts["MainThread"][1] > counts["MainThread"][0] / 2
    assert counts["sleeper"][1] == 0


def test_no_garbage_is_collected(each_python, ptrace, garbage, dump, probing_top):
    running = garbage(each_python, "allocate")
    for snapshot in dump(running.pid, 20, 10):
        assert snapshot["gc_running"] == (-1 if stripped(snapshot) else 0)
        assert by_name(snapshot)["sleeper"]["gc"] == 0
        assert by_name(snapshot)["MainThread"]["gc"] in ((-1, 0) if stripped(snapshot) else (0,))
    document = probing_top("--export", "json", "--duration", "0.5", str(running.pid)).ok().json()
    assert sum(s["samples"] for s in document["samples"]) > 0 == sum(s["gc_samples"] for s in document["samples"])
    assert running.begun() == 0


def test_how_long_a_thread_has_waited(each_python, ptrace, target, dump, wait_until):
    pid = target(HOLDS, 3600, python=each_python).pid

    def looks():
        """A row of looks that begins when one waits and the other holds."""
        rows = dump(pid, 20, 20)
        first = by_name(rows[0])
        return rows if first["waiter"]["gil"] == "waiting" and first["MainThread"]["gil"] == "held" else None

    rows = wait_until(looks, 30, "the main thread to hold the GIL")
    if stripped(rows[0]):
        assert all(by_name(s)["waiter"]["gil_for_us"] is None for s in rows)
        return
    # It is awake for a moment every few milliseconds, to ask for the GIL, and waits all the same.
    assert {by_name(s)["waiter"]["gil"] for s in rows} == {"waiting"}
    assert {by_name(s)["MainThread"]["gil"] for s in rows} == {"held"}
    for name in ("waiter", "MainThread"):
        times = [by_name(s)[name]["gil_for_us"] for s in rows]
        assert times[0] == 0 and times == sorted(times) and times[-1] > 0
        # Never more than is known: since the first look.
        span_us = (rows[-1]["timestamp"] - rows[0]["timestamp"]) * 1e6
        assert span_us / 4 < times[-1] <= span_us + 1000


def test_a_wait_that_ended_is_not_counted_on(any_python, ptrace, target, dump):
    """The waiter gets the GIL every tenth of a second, and looks waiting whenever one looks."""
    pid = target(HOLDS, 0.1, python=any_python).pid
    rows = dump(pid, 120, 25)
    waits = [by_name(s)["waiter"] for s in rows]
    assert sum(t["gil"] == "waiting" for t in waits) > len(waits) / 2
    assert max(t["gil_for_us"] or 0 for t in waits) < 2e6


def test_backtrace_tells_who_waits_for_whom(any_python, ptrace, target, probing, wait_until):
    pid = target(HOLDS, 3600, python=any_python).pid

    def text():
        shown = probing(str(pid), "backtrace").ok().stdout
        return shown if re.search(r"Thread waiter \(\d+\) S, waiting for the GIL for at least \d+\.\d s, held by MainThread "
                                  rf"\({pid}\), CPU", shown) else None

    wait_until(text, 20, "the waiter to be waiting in both looks")

    def document():
        told = probing(str(pid), "backtrace", "--json").ok().json()
        assert told["gil_enabled"] is True and told["gc_running"] is False
        threads = {t["name"]: t for t in told["threads"]}
        assert threads["MainThread"]["gil_held_us"] > 0 and threads["MainThread"]["gil_wait_us"] is None
        assert threads["waiter"]["gil_held_us"] is None
        return (threads["waiter"]["gil_wait_us"] or 0) > 0

    wait_until(document, 20, "the same")


def budget_of(client):
    return client.call("status")["budget_pct"]


def test_the_smallest_wish_for_a_budget_counts(job, wait_until):  # noqa: F811
    endpoint = job().start()
    with Client(endpoint) as one:
        assert budget_of(one) == 1
        one.call("subscribe", {"stream": "threads", "rate_hz": 1.0, "budget_pct": 5.0})
        wait_until(lambda: budget_of(one) == 5, 10, "the wish to be granted")
        with Client(endpoint) as two:
            two.call("subscribe", {"stream": "samples", "rate_hz": 10.0, "budget_pct": 0.25})
            wait_until(lambda: budget_of(one) == 0.25, 10, "the smaller wish to count")
            batch = two.notification("samples")
            assert batch["budget_pct"] == 0.25
            two.call("unsubscribe", {"stream": "samples"})
            wait_until(lambda: budget_of(one) == 5, 10, "the wish to end with its stream")
    with Client(endpoint) as three:
        wait_until(lambda: budget_of(three) == 1, 10, "the wish to end with its client")
        assert "budget_pct" in three.call_error("subscribe", {"stream": "samples", "rate_hz": 1.0, "budget_pct": -1.0})["message"]


def test_the_environment_of_the_job_bounds_the_budget(job, wait_until):  # noqa: F811
    endpoint = job(env={"PROBING_BUDGET": "0.5"}).start()
    with Client(endpoint) as client:
        assert budget_of(client) == 0.5
        client.call("subscribe", {"stream": "threads", "rate_hz": 1.0, "budget_pct": 5.0})
        client.notification("threads")
        assert budget_of(client) == 0.5
        client.call("subscribe", {"stream": "threads", "rate_hz": 1.0, "budget_pct": 0.125})
        wait_until(lambda: budget_of(client) == 0.125, 10, "less than allowed")


def test_an_environment_that_makes_no_sense(job):  # noqa: F811
    with Client(job(env={"PROBING_BUDGET": "a lot"}).start()) as client:
        status = client.call("status")
    assert status["budget_pct"] == 1
    assert status["note"].startswith("PROBING_BUDGET takes a number from 0.01 to 100")


def test_a_budget_on_the_command_line(any_python, ptrace, target, probing, probing_top):
    pid = target(HOLDS, 0.01, python=any_python).pid
    refused = probing_top("--budget", "200", "--export", "json", "--once", str(pid))
    assert refused.status == 2 and refused.stderr.startswith("probing-top: --budget takes a number from 0.01 to 100")
    for how in ((), ("--no-inject",)):
        document = probing_top("--budget", "0.75", "--export", "json", "--duration", "1", *how, str(pid)).ok().json()
        assert document["sampling"]["budget_pct"] == 0.75
        assert document["sampling"]["kept_hz"] > 0 and document["sampling"]["cost_pct"] >= 0
        assert document["sampling"]["mode"] == document["stacks_of_running_threads"] == ("gentle" if how else "exact")
    assert re.search(r"^budget +1 % of a core$", probing(str(pid), "status").ok().stdout, re.M)
