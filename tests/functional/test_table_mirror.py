# SPDX-License-Identifier: Apache-2.0
"""Tables whose files cannot be opened from here: copied over the connection, with the same rows, and at no risk to the job."""

import json
import os
import signal
import subprocess

import pytest

from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until
from relay import Relay
from test_background_tables import begun

ALWAYS = {"PROBING_SAMPLE_RATE": "50", "PROBING_MAX_MEMORY": "8MB"}
QUERIES = [
    "SELECT pid, rank, timestamp, tid, thread, stack_id, on_cpu, gil, gc FROM python.samples WHERE timestamp < {end} "
    "ORDER BY timestamp, tid",
    "SELECT fold(stack_id) AS stack, count(*) AS n FROM python.samples WHERE timestamp < {end} GROUP BY stack_id "
    "ORDER BY stack, n",
    "SELECT s.thread, f.func, f.file, count(*) AS n FROM python.samples s JOIN python.stacks k ON k.stack_id = s.stack_id "
    "JOIN python.frames f ON f.frame_id = k.frame_id WHERE s.timestamp < {end} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT * FROM system.process_history WHERE timestamp < {end} ORDER BY timestamp",
    "SELECT * FROM system.threads_history WHERE timestamp < {end} ORDER BY timestamp, tid",
]


@pytest.fixture
def sampled(job, data_dir):  # noqa: F811
    """A job that has been looked at for a while, and the socket of its agent."""
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    j.do("spawn('waiter', wait_for_ever)")
    j.endpoint = j.start()
    begun(j, data_dir, rows=100)
    return j


def rows_of(probing, target, text, **options):
    return probing(target, "query", "--json", text, **options).ok().json()["rows"]


def closed_window(probing, j):
    """A time before which no row will come any more."""
    return rows_of(probing, j.pid, "SELECT max(timestamp) - 0.3 AS t FROM python.samples")[0]["t"]


def test_the_same_rows_as_from_the_files(sampled, probing, data_dir, tmp_path):
    begun(sampled, data_dir, "system.process_history", 3)
    end = closed_window(probing, sampled)
    with Relay(sampled.endpoint, tmp_path / "door") as door:
        for query in QUERIES:
            text = query.format(end=repr(end))
            files = rows_of(probing, sampled.pid, text)
            assert files, text
            assert rows_of(probing, door.target, text) == files
        # What /proc says of the door is not of the job: such tables say what the agent tells, and nothing that it does not.
        process, = rows_of(probing, door.target, "SELECT * FROM system.process")
        assert (process["pid"], process["ppid"]) == (sampled.pid, None)
        # What the agent is asked for is.
        threads = rows_of(probing, door.target, "SELECT pid, name FROM python.threads ORDER BY name")
        assert [t["name"] for t in threads] == ["MainThread", "hot", "waiter"]
        assert {t["pid"] for t in threads} == {sampled.pid}
        names = {t["name"]: t["rows"] for t in probing(door.target, "tables", "--json").ok().json()["tables"]}
        assert names["python.samples"] >= 100


def test_without_tables_it_is_said_why(job, probing, tmp_path):  # noqa: F811
    j = job(env={"PROBING_MAX_MEMORY": "0"})
    endpoint = j.start()
    with Client(endpoint) as client:
        wait_until(lambda: client.call("status")["collect_note"], timeout=30, what="the agent to say so")
    with Relay(endpoint, tmp_path / "door") as door:
        result = probing(door.target, "query", "--json", "SELECT count(*) AS n FROM python.samples").ok()
        assert result.json()["rows"] == [{"n": 0}]
        assert f"no history of process {j.pid}" in result.stderr and "probing.max_memory is 0" in result.stderr


def test_clients_that_are_killed_while_they_copy(sampled, probing, tmp_path):
    end = closed_window(probing, sampled)
    text = QUERIES[0].format(end=repr(end))
    expected = rows_of(probing, sampled.pid, text)
    with Relay(sampled.endpoint, tmp_path / "door", most=4096) as door:
        for kill_at in (1, 5_000, 20_000, 40_000, 60_000):
            before = door.carried
            door.gate.clear()
            client = subprocess.Popen([probing.path, door.target, "query", text], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                door.gate.set()
                wait_until(lambda: door.carried - before >= kill_at or client.poll() is not None, timeout=30)
            finally:
                client.send_signal(signal.SIGKILL)
                client.wait(30)
        assert rows_of(probing, door.target, text) == expected
    with Client(sampled.endpoint) as client:
        wait_until(lambda: client.call("status")["clients"] == 1, timeout=30, what="the agent to forget them")
        status = client.call("status")
        assert status["samples"] > 0 and os.path.exists(status["data_dir"])
    assert sampled.do("1 + 1") == 2


def test_two_clients_at_once(sampled, probing, tmp_path):
    end = closed_window(probing, sampled)
    text = QUERIES[0].format(end=repr(end))
    expected = rows_of(probing, sampled.pid, text)
    with Relay(sampled.endpoint, tmp_path / "one", most=8192) as one, Relay(sampled.endpoint, tmp_path / "two") as two:
        started = [subprocess.Popen([probing.path, door.target, "query", "--json", text], stdout=subprocess.PIPE, text=True)
                   for door in (one, two)]
        answers = [client.communicate(timeout=60)[0] for client in started]
    assert [json.loads(answer)["rows"] for answer in answers] == [expected, expected]


def test_what_is_asked_badly_is_refused(sampled):
    mark = {"first_seq": 0, "rows": 0, "heap_used": 0}
    with Client(sampled.endpoint) as client:
        tables = {t["name"]: t["head"] for t in client.call("tables")["tables"]}
        assert tables["python.samples"].startswith(b"PRBRING\n")
        for params in ({}, {"table": "python.samples"}, {"table": 7, "making": 1, **mark},
                       {"table": "x" * 64, "making": 1, **mark}, {"table": "python.samples", "making": -1, **mark}):
            assert client.call_error("pull", params)["code"] == 2
        assert client.call_error("pull", {"table": "python.nothing", "making": 1, **mark})["code"] == 3
        making = int.from_bytes(tables["python.samples"][20:24], "little")
        of = {"table": "python.samples", "making": making}
        assert client.call("pull", {**of, "making": making ^ 1, **mark}) == {"more": False, "anew": True, "pieces": b""}
        assert len(client.call("pull", {**of, **mark})["pieces"]) > 48
        for lie in ({"first_seq": 2**63 - 1}, {"rows": 2**32 - 1}, {"rows": 1, "heap_used": 2**32 - 1},
                    {"rows": 2**32 - 1, "heap_used": 2**32 - 1, "first_seq": 2**62}):
            assert len(client.call("pull", {**of, **mark, **lie})["pieces"]) < 1 << 20
        assert client.call("status")["clients"] == 1


def test_a_client_that_does_not_read(sampled):
    mark = {"first_seq": 0, "rows": 0, "heap_used": 0}
    with Client(sampled.endpoint) as slow, Client(sampled.endpoint) as other:
        heads = {t["name"]: t["head"] for t in slow.call("tables")["tables"]}
        making = int.from_bytes(heads["python.samples"][20:24], "little")
        asked = [slow.send("pull", {"table": "python.samples", "making": making, **mark}) for _ in range(30)]
        before = other.call("status")["samples"]
        wait_until(lambda: other.call("status")["samples"] > before + 10, timeout=30, what="samples go on")
        answers = [slow.message() for _ in asked]
        assert all(a[0] == 1 for a in answers)
        assert sorted(a[1] for a in answers) == asked
        assert any(a[2] is None and a[3]["pieces"] for a in answers)
        assert all("not read yet" in a[2]["message"] for a in answers if a[2] is not None)
        assert slow.call("status")["clients"] == 2
