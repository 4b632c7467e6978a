# SPDX-License-Identifier: Apache-2.0
"""Many threads that sleep: they are looked at now and then for several ticks together, and nothing is lost or made up by that."""

import os
import time
from collections import defaultdict

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client, Profile
from conftest import wait_until

WAITERS = 60
NAPPER = "lambda: [(time.sleep(0.3), [hot_inner() for _ in range(300)]) for _ in range(100000)]"


def works(sample):
    return sample["thread"] == "napper" and sample["on_cpu"] and "hot_inner" in sample["frames"]


def collect(client, ticks, enough=lambda samples: True):
    """Samples of at least so many ticks, and until enough(samples)."""
    profile = Profile()
    client.subscribe("samples", 100)
    while len({s["timestamp"] for s in profile.samples if s["thread"] == "waiter-0"}) < ticks or not enough(profile.samples):
        batch = client.notification("samples")
        profile.feed(batch)
        assert batch["dropped"] == 0
    return profile.samples


def test_many_idle_threads_have_a_sample_of_every_tick(job):  # noqa: F811
    j = job()
    for i in range(WAITERS):
        j.do(f"spawn('waiter-{i}', wait_for_ever)")
    j.do(f"spawn('napper', {NAPPER})")
    with Client(j.start(), timeout=60) as client:
        samples = collect(client, 150, lambda all_of_them: any(works(s) for s in all_of_them))
    times = defaultdict(list)
    for s in samples:
        times[s["thread"]].append(s["timestamp"])
    assert all(len(set(seen)) == len(seen) for seen in times.values())
    # Those that slept all the time were there at the same ticks, and nothing else is said of any of them.
    asleep = {s["thread"] for s in samples} - {s["thread"] for s in samples if s["on_cpu"] or s["torn"]}
    waiters = [f"waiter-{i}" for i in range(WAITERS) if f"waiter-{i}" in asleep]
    assert len(waiters) > WAITERS / 2
    first = max(min(times[name]) for name in waiters)
    last = min(max(times[name]) for name in waiters)
    same = {frozenset(t for t in times[name] if first <= t <= last) for name in waiters}
    assert len(same) == 1 and len(same.pop()) > 100
    assert all("wait_for_ever" in s["frames"] for s in samples if s["thread"] in waiters)
    # One that wakes up is seen to work.
    assert any(works(s) for s in samples)


def wakes(pid, thread="probing-smp"):
    """How often a thread of the agent has gone to sleep so far."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as status:
            fields = dict(line.split(":", 1) for line in status)
        if fields["Name"].strip() == thread:
            return int(fields["voluntary_ctxt_switches"])
    raise AssertionError(f"the agent has no {thread}")


def test_while_nobody_runs_ticks_are_slept_through(job):  # noqa: F811
    j = job()
    j.do("spawn('waiter', wait_for_ever)")
    with Client(j.start(), timeout=60) as client:
        client.call("subscribe", {"stream": "samples", "rate_hz": 100.0, "batch_s": 1.0, "budget_pct": 50.0})
        deadline, ratio, profile = time.monotonic() + 90, 1, Profile()
        while ratio > 0.6 and time.monotonic() < deadline:
            before, slept, seen = client.call("status")["samples"], wakes(j.pid), 0
            while seen < 300:  # of two threads
                batch = client.notification("samples")
                profile.feed(batch)
                seen = client.call("status")["samples"] - before
            ratio = (wakes(j.pid) - slept) / (seen / 2)
        assert ratio <= 0.6
        # It runs again, and is seen to.
        j.do("spawn('hot', hot_loop)")
        while not any(s["on_cpu"] and s["thread"] == "hot" for s in profile.samples[-200:]) and time.monotonic() < deadline + 60:
            profile.feed(client.notification("samples"))
    waiting = [s for s in profile.samples if s["thread"] == "waiter"]
    assert not any(s["torn"] or s["on_cpu"] for s in waiting)  # True or unknown would be more than was seen
    assert len({s["timestamp"] for s in waiting}) == len(waiting) and all("wait_for_ever" in s["frames"] for s in waiting)
    assert any(s["on_cpu"] and "hot_inner" in s["frames"] for s in profile.samples if s["thread"] == "hot")


@pytest.mark.long
def test_for_the_tables_alone_an_idle_job_is_read_once_a_second(job, data_dir):  # noqa: F811
    j = job(env={"PROBING_SAMPLE_RATE": "10", "PROBING_MAX_MEMORY": "2MB"})
    j.do("spawn('waiter', wait_for_ever)")
    j.start()

    def rows(thread):
        folders = ring_file.folders(data_dir, j.pid)
        return [row for row in ring_file.read(folders[-1], "python.samples") if row["thread"] == thread] if folders else []

    wait_until(lambda: len(rows("waiter")) > 10, timeout=20, what="samples", interval=0.1)
    # The sleep grows with the rest: after 10 s it is half a second. The server's thread is not needed for it, only for others who look at
    # all processes of the machine.
    deadline, rate, visits = time.monotonic() + 60, 10, 10
    while (rate > 3 or visits > 1) and time.monotonic() < deadline:
        slept, served, began = wakes(j.pid), wakes(j.pid, "probing-srv"), time.monotonic()
        before = len(rows("waiter"))
        time.sleep(3)
        rate = (wakes(j.pid) - slept) / (time.monotonic() - began)
        visits = wakes(j.pid, "probing-srv") - served
    assert rate <= 3 and visits <= 1
    # Each tick that was slept through has its samples all the same, and they are known.
    waiting = rows("waiter")[before:]
    assert len(waiting) >= 10
    assert not any(row["torn"] or row["on_cpu"] or row["on_cpu"] is None for row in waiting)
    # A thread that runs is seen at every tick again.
    j.do("spawn('hot', hot_loop)")
    wait_until(lambda: sum(bool(row["on_cpu"]) for row in rows("hot")) > 10, timeout=20, what="a busy thread", interval=0.1)
