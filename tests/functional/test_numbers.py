# SPDX-License-Identifier: Apache-2.0
"""Numbers that are shown, held against what the kernel and the job itself say."""

import os
import time

from agent_job import job, snapshot_by_name
from agent_wire import Client

__all__ = ["job"]

BURSTS = """
def bursts():
    while True:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        time.sleep(0.08)
"""
LOOP = """
def here():
    time.sleep(0.15)
def there():
    time.sleep(0.15)
def loop():
    while True:
        here()
        there()
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_cpu_is_the_same_for_many_viewers(job):
    """A process that works a fifth of the time: neither who looked just before nor how often is looked makes it more or less."""
    j = job()
    endpoint = j.start()
    j.do(f"exec({BURSTS!r}, globals())")
    j.do("spawn('bursts', bursts)")
    told = []
    with Client(endpoint) as one, Client(endpoint) as two:
        one.call("threads")
        began, before = time.monotonic(), cpu_seconds(j.pid)
        while time.monotonic() < began + 4:
            for client in one, two:  # the second some milliseconds after the first
                snapshot = client.call("threads")
                if time.monotonic() > began + 1.5:
                    told.append(snapshot["process"]["cpu_pct"])
            time.sleep(0.23)
        true = 100 * (cpu_seconds(j.pid) - before) / (time.monotonic() - began)
    assert 5 < true < 60
    assert all(true / 2 < value < true * 2 for value in told), (true, told)


def test_a_stack_is_not_the_same_when_a_sample_saw_another(job):
    """A thread that is elsewhere for a moment, between any two snapshots of a viewer."""
    j = job()
    endpoint = j.start()
    j.do(f"exec({LOOP!r}, globals())")
    j.do("spawn('loops', loop)")
    j.do("spawn('stands', wait_for_ever)")
    with Client(endpoint) as client:
        client.call("config", {"key": "probing.sample_rate", "value": "100"})
        began = time.monotonic()
        stands = loops = 0
        while stands < 2e6:
            assert time.monotonic() < began + 60
            threads = snapshot_by_name(client)
            stands, loops = threads["stands"].get("same_us") or 0, threads["loops"].get("same_us") or 0
            time.sleep(0.1)
    assert 0 < loops < stands / 2
    assert stands < (time.monotonic() - began + 10) * 1e6


def test_a_recording_of_an_idle_job_says_that_nobody_holds_the_gil(target, probing, probing_top, ptrace, tmp_path):
    made = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile True: time.sleep(0.05)\n")
    path = tmp_path / "run.db"
    probing(made.pid, "record", "-o", path, "--duration", "3s").ok()
    told = probing_top("--export", "json", path).ok().json()
    assert told["gil_holder_tid"] in (0, made.pid)
