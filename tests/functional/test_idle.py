# SPDX-License-Identifier: Apache-2.0
"""Many threads that sleep: they are looked at now and then for several ticks at once, and nothing is lost or made up by that."""

from collections import defaultdict

from agent_job import job  # noqa: F401
from agent_wire import Client, Profile

WAITERS = 60
NAPPER = "lambda: [(time.sleep(0.3), [hot_inner() for _ in range(300)]) for _ in range(100000)]"


def collect(client, ticks):
    profile = Profile()
    client.subscribe("samples", 100)
    while len({s["timestamp"] for s in profile.samples if s["thread"] == "waiter-0"}) < ticks:
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
        samples = collect(client, 150)
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
    assert any(s["on_cpu"] and "hot_inner" in s["frames"] for s in samples if s["thread"] == "napper")
