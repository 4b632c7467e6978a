# SPDX-License-Identifier: Apache-2.0
"""What is asked of a job by HOST:PORT that /proc tells where the job is: memory, the process, its threads."""

import os

import pytest

JOB = """
import os, threading, time
held = bytearray(64 << 20)
threading.Thread(target=time.sleep, args=(1000,), name="sleeper", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.01)
"""


@pytest.fixture
def job(target, ptrace):
    return target(JOB)


@pytest.mark.parametrize("rate", [None, "0"], ids=["kept", "now"])
def test_memory(target, ptrace, probing, rate):
    """What the agent keeps; without that (it is switched off) what it says now."""
    job = target(JOB, env={"PROBING_SAMPLE_RATE": rate} if rate else None)
    address = probing(job.pid, "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]["address"]
    here, there = (probing("-t", t, "memory", "--json").ok().json()["targets"] for t in (str(job.pid), address))
    assert len(here) == len(there) == 1
    for row in here + there:
        assert row["pid"] == job.pid and 64 < row["rss_mb"] < 1024, row
    assert set(here[0]) == set(there[0])
    text = probing(address, "memory").ok()
    assert f"Process {job.pid} on" in text.stdout and "MiB" in text.stdout and text.stderr == ""


def test_the_process_and_its_threads(job, probing):
    address = probing(job.pid, "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]["address"]

    def query(who, text):
        return probing("-t", str(who), "query", text, "--format", "json").ok().json()["rows"]
    columns = "pid, cmd, threads, rss_mb, uptime_s"
    (here,), (there,) = (query(who, f"SELECT {columns} FROM system.process") for who in (job.pid, address))
    assert there["pid"] == here["pid"] == job.pid and there["cmd"] == here["cmd"] and os.path.basename(job.script) in there["cmd"]
    assert there["threads"] > 2 and abs(there["rss_mb"] - here["rss_mb"]) < 64 and abs(there["uptime_s"] - here["uptime_s"]) < 60
    (unknown,) = query(address, "SELECT ppid, fds FROM system.process")
    assert unknown == {"ppid": None, "fds": None}
    settings = [query(who, "SELECT key, value FROM probing.config") for who in (job.pid, address)]
    assert settings[0] == settings[1] and {"key": "probing.sample_rate", "value": "10"} in settings[0], settings
    tids = [{row["tid"] for row in query(who, "SELECT tid FROM system.threads")} for who in (job.pid, address)]
    assert len(tids[1]) >= 2 and tids[1] <= tids[0] and job.pid in tids[1]
    states = query(address, f"SELECT state FROM system.threads WHERE tid = {job.pid}")
    assert states[0]["state"] in ("S", "R", "D")
