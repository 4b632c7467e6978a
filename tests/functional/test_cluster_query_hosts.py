# SPDX-License-Identifier: Apache-2.0
"""SQL over the ranks of a job on several hosts, which are namespaces here: scans, joins, statements that run on each host, hosts that
are silent, what is refused."""

import fcntl
import os
import shutil
import signal
import sqlite3
import time

import pytest

import test_cluster_hosts
from conftest import attach_in_time
from plain_sqlite import PlainSqlite, folder_of, statements
from test_cluster_hosts import Hosts, rows

pytestmark = test_cluster_hosts.pytestmark

TRAIN = """
import os, time, torch
from torch import distributed as dist
here = os.path.dirname(os.path.abspath(__file__))
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(10**9):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 16)).sum()
    loss.backward()
    if rank == 3:
        time.sleep(0.02)
    dist.all_reduce(model.weight.grad)
    optimizer.step()
    if i == 5:
        open(f"{here}/ready.{rank}", "w").close()
    time.sleep(0.05)
"""


@pytest.fixture
def training(tmp_path, build_dir, torch_python, wait_until, probing, ptrace):
    made = Hosts(2, tmp_path, build_dir, torch_python, wait_until, TRAIN, "127.0.0.1")
    made.at = ["--hosts", "n0,n1", "--via", made.via]
    try:
        attach_in_time(probing, *made.at)
        wait_until(lambda: sum(row["n"] > 20 for row in made.query("SELECT count(*) AS n FROM python.steps GROUP BY rank")) == 4, 60)
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def with_query(probing, monkeypatch):
    def query(self, sql, *words):
        return rows(probing("cluster", "query", *words, *([sql] if sql else []), *self.at, "--json", timeout=90))
    monkeypatch.setattr(Hosts, "query", query, raising=False)


def test_scans(training, probing):
    """Rows of all ranks with their host; conditions of all kinds; joins and aggregates are made here."""
    counts = training.query("SELECT rank, host, count(*) AS n, count(DISTINCT pid) AS pids FROM python.steps GROUP BY 1, 2 ORDER BY 1")
    assert [(r["rank"], r["host"], r["pids"]) for r in counts] == [(i, f"n{i // 2}", 1) for i in range(4)]
    assert all(r["n"] > 20 for r in counts)
    for where, ranks in (("rank = 2", [2]), ("rank IN (1, 2, 9)", [1, 2]), ("rank > 2", [3]), ("host = 'n1'", [2, 3]), ("rank < 0", [])):
        got = training.query(f"SELECT DISTINCT rank FROM python.steps WHERE {where} ORDER BY 1")
        assert [r["rank"] for r in got] == ranks, where
    got = training.query("SELECT rank, step FROM python.steps WHERE step = 3 ORDER BY rank")
    assert [(r["rank"], r["step"]) for r in got] == [(i, 3) for i in range(4)]
    got = training.query("SELECT min(timestamp) > now() - 5 AS late, count(*) > 4 AS some FROM python.steps WHERE timestamp > now() - 5")
    assert got == [{"late": 1, "some": 1}]
    assert len(training.query("SELECT rank FROM python.steps LIMIT 7")) == 7
    joined = training.query("SELECT a.rank AS a, b.rank AS b, count(*) AS n FROM python.steps a JOIN python.steps b ON a.step = b.step"
                            " WHERE a.rank = 0 AND b.rank = 3 AND a.step BETWEEN 2 AND 6")
    assert joined == [{"a": 0, "b": 3, "n": 5}]
    # numbers of stacks mean something within a process only
    got = training.query("SELECT s.rank, f.func, count(*) AS n FROM python.samples s JOIN python.stacks k ON k.stack_id = s.stack_id"
                         " JOIN python.frames f ON f.frame_id = k.frame_id WHERE s.rank IN (0, 3) GROUP BY 1, 2")
    assert {r["rank"] for r in got} == {0, 3}
    got = training.query("SELECT rank, func FROM python.backtrace WHERE thread = 'MainThread' AND func = '<module>' ORDER BY rank")
    assert [r["rank"] for r in got] == [0, 1, 2, 3]
    got = training.query("SELECT rank, state FROM cluster.ranks r WHERE EXISTS (SELECT 1 FROM python.steps s WHERE s.rank = r.rank) ORDER BY 1")
    assert [r["rank"] for r in got] == [0, 1, 2, 3]


def test_map(training):
    """A statement runs on each host, and another over its rows."""
    got = training.query(None, "--map", "SELECT host, rank, count(*) AS n, max(step) AS step FROM python.steps GROUP BY 1, 2")
    assert sorted((r["host"], r["rank"]) for r in got) == [(f"n{i // 2}", i) for i in range(4)]
    got = training.query(None, "--map", "SELECT rank, avg(duration_ms) AS ms, 'it''s \"' AS text, NULL AS empty FROM python.steps GROUP BY 1",
                         "--reduce", "SELECT count(*) AS n, min(ms) > 1 AS slow, max(text) AS text, max(empty) AS empty FROM mapped")
    assert got == [{"n": 4, "slow": 1, "text": "it's \"", "empty": None}]


def test_collectives(training, probing, wait_until):
    """Who comes last to the collectives of all hosts, by one clock."""
    def read():
        return [r for r in rows(probing("cluster", "comm", *training.at, "--json", timeout=90)) if r["op"] == "all_reduce" and r["count"] > 200]

    found = wait_until(read, 60)
    assert len(found) == 1 and found[0]["ranks"] == 4 and found[0]["last"].startswith("3 ("), found
    got = training.query("SELECT src_rank, dst_rank, avg(latency_ms) AS ms FROM comm_metrics WHERE src_rank <> dst_rank GROUP BY 1, 2")
    assert {(r["src_rank"], r["dst_rank"]) for r in got} >= {(0, 3), (1, 3), (2, 3)}, got


def test_ranks_as_targets(training, probing):
    """A part of the ranks, and statements of `query`."""
    at = [*training.at, "-t", "job:/1-2", "query", "--json"]
    sql = "SELECT rank, host, count(*) > 10 AS many FROM python.steps GROUP BY 1, 2 ORDER BY 1"
    assert rows(probing(*at, sql, timeout=90)) == [{"rank": 1, "host": "n0", "many": 1}, {"rank": 2, "host": "n1", "many": 1}]
    assert [r["rank"] for r in rows(probing(*at, "SELECT DISTINCT rank FROM python.backtrace ORDER BY 1", timeout=90))] == [1, 2]
    done = probing("cluster", "query", "job:/1-2", "--map", "SELECT 1", *training.at)
    assert done.status == 2 and "leave out '/RANKS'" in done.stderr


def test_silent_and_refused(training, probing, wait_until):
    """Hosts without an answer are named; what is wrong has one line; no relay stays."""
    at = ["--hosts", "n0,n2,n1", "--via", training.via, "--json"]
    done = probing("cluster", "query", "SELECT rank FROM python.steps GROUP BY 1 ORDER BY 1", *at, timeout=90)
    assert [r["rank"] for r in rows(done)] == [0, 1, 2, 3]
    assert "partial: no news from n2 (no relay: ssh: connect to host n2 port 22: Connection refused)" in done.stderr
    done = probing("cluster", "query", "--map", "SELECT rank FROM python.steps GROUP BY 1", *at, timeout=90)
    assert sorted(r["rank"] for r in rows(done)) == [0, 1, 2, 3] and "partial: no news from n2" in done.stderr

    def refused(text, *words, status=1):
        done = probing("cluster", "query", *words, *training.at)
        assert done.status == status and text in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1 and done.stdout == ""

    refused("no such column: absent", "SELECT absent FROM python.steps")
    refused(": no such column: absent", "--map", "SELECT absent FROM python.steps")
    refused(": ATTACH is not allowed", "--map", "ATTACH 'x' AS y", status=1)
    refused("need different names", "--map", "SELECT 1 AS a, 2 AS a")
    refused("for --reduce", "--map", "SELECT rank FROM cluster.ranks", status=2)
    refused("give both", "--reduce", "SELECT 1", status=2)
    refused("--map takes the statement", "--map", "SELECT 1", "SELECT 2", status=2)
    refused("WHERE id = ...", "SELECT * FROM python.tensor_statistics")
    done = probing("cluster", "query", "SELECT 1 FROM python.steps", "--hosts", "n2", "--via", training.via)
    assert done.status == 3 and "no host has ranks of the job: n2 (no relay" in done.stderr, done.stderr
    wait_until(lambda: not training.relays(), 5)


def test_recording(training, probing, tmp_path, wait_until):
    """All ranks in one file, with their hosts and clocks."""
    path = tmp_path / "job.db"
    done = probing("cluster", "record", *training.at, "-o", str(path), "--duration", "1s", timeout=90).ok()
    assert "wrote" in done.stdout
    with sqlite3.connect(path) as db:
        steps = db.execute("SELECT rank, host, count(*) FROM python_steps GROUP BY 1, 2 ORDER BY 1").fetchall()
        assert [(rank, host) for rank, host, _ in steps] == [(i, f"n{i // 2}") for i in range(4)]
        nodes = db.execute("SELECT host, ranks, abs(clock_offset_ms) < 1000, clock_error_ms > 0 FROM cluster_nodes ORDER BY 1").fetchall()
        assert nodes == [("n0", "0-1", 1, 1), ("n1", "2-3", 1, 1)]
        assert [row[0] for row in db.execute("SELECT rank FROM cluster_ranks ORDER BY 1")] == [0, 1, 2, 3]
    got = rows(probing("-t", str(path), "query", "SELECT rank, count(*) AS n FROM python.steps GROUP BY 1 ORDER BY 1", "--json"))
    assert [(r["rank"], r["n"]) for r in got] == [(rank, n) for rank, _, n in steps]
    got = rows(probing("-t", str(path), "query", "SELECT r.rank, n.host FROM cluster.ranks r JOIN cluster.nodes n ON n.host = r.host ORDER BY 1", "--json"))
    assert [(r["rank"], r["host"]) for r in got] == [(i, f"n{i // 2}") for i in range(4)]
    wait_until(lambda: not training.relays(), 5)

    # who came last, by the clocks of both hosts
    def arrivals():
        return rows(probing("-t", str(path), "query", "SELECT src_rank, dst_rank, count(*) AS n, round(avg(latency_ms), 1) AS ms FROM comm_metrics "
                            "WHERE dst_rank IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2", "--json"))
    first = arrivals()
    assert first and max(range(4), key=lambda rank: sum(r["n"] for r in first if r["dst_rank"] == rank)) == 3, first
    with sqlite3.connect(path) as db:
        db.execute("UPDATE python_collectives SET timestamp = timestamp + 3 WHERE host = 'n1'")
    assert arrivals() != first
    with sqlite3.connect(path) as db:
        db.execute("UPDATE cluster_nodes SET clock_offset_ms = 3000 WHERE host = 'n1'")
    assert arrivals() == first
    with sqlite3.connect(path) as db:
        db.execute("UPDATE cluster_nodes SET clock_offset_ms = NULL WHERE host = 'n1'")
    assert arrivals() == []


# ---- the same rows, in plain SQLite

def rank_pids(hosts):
    return [pid for process in hosts.processes for pid in hosts.ranks_of(process)]


def test_same_as_of_plain_sqlite(training, probing, wait_until, source_dir):
    """Statements that people type, and joins, give what plain SQLite gives over the same rows."""
    pids = rank_pids(training)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: all("T (stopped)" in open(f"/proc/{pid}/status").read() for pid in pids), 10)
        ranks = [(folder_of(pid), f"n{i // 2}", pid) for i, pid in enumerate(pids)]
        with PlainSqlite(ranks) as plain:
            # who came last is known only where all hosts have one clock
            asked = [s for s in statements(source_dir) if not any(table in s for table in ("python.backtrace", "comm_metrics"))]
            assert len(asked) == 27
            differ = plain.differ(asked, lambda text: rows(probing("cluster", "query", text, *training.at, "--no-inject", "--json", "--limit", "0", timeout=90)))
        assert not differ, differ
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    for statement in statements(source_dir):
        assert probing("cluster", "query", statement, *training.at, "--json", timeout=90).status == 0, statement


def test_tables_that_another_container_writes(training, wait_until):
    """A process with the same pid there may have started in the same hundredth of a second, and writes to a folder beside it. Here nobody
    sees who holds the lock of that folder."""
    folder = folder_of(rank_pids(training)[0])
    copy = f"{folder}-9"
    shutil.copytree(folder, copy)
    for path in [copy, *(os.path.join(copy, name) for name in os.listdir(copy))]:
        os.utime(path, (time.time() + 3600, time.time() + 3600))
    fd = os.open(copy, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        def steps():
            return training.query("SELECT max(step) AS last FROM python.steps WHERE rank = 0")[0]["last"]
        first = steps()
        wait_until(lambda: steps() > first + 5, 60, "steps that the copy does not have")
    finally:
        os.close(fd)
        shutil.rmtree(copy)
