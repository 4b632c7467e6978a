# SPDX-License-Identifier: Apache-2.0
"""Statements over a ClickHouse server give what SQLite gives over the same rows."""

import os
import signal
import sqlite3

import pytest

import test_cluster_hosts
from clickhouse import clickhouse_fixture  # noqa: F401 (a fixture)
from plain_sqlite import key_of, statements
from test_cluster_query_hosts import rank_pids, rows, training, with_query  # noqa: F401 (fixtures)
from test_relay_to import name_of, own_state, relay  # noqa: F401 (fixtures)

__all__ = ["own_state", "relay", "training", "with_query"]

pytestmark = [test_cluster_hosts.pytestmark, pytest.mark.timeout(400)]


def value_of(kind, column, text, rank):
    """Of a cell of the server. Numbers of stacks mean something within a process only."""
    if text == "\\N":
        return None
    return kind(text) + (rank << 40) if column in ("stack_id", "parent_id", "frame_id") else kind(text)


def put_rows(engine, db, job):
    """Replace the rows of a recorded job by those that the server has. Which tables that were."""
    there = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    put = []
    for table, in engine.ask(f"SELECT name FROM system.tables WHERE database = 'probing' AND name IN ({', '.join(repr(name) for name in sorted(there))})"):
        types = dict(engine.ask(f"SELECT name, type FROM system.columns WHERE database = 'probing' AND table = '{table}'"))
        columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if name in types]
        if "rank" not in columns:
            continue
        names = ", ".join(f'"{name}"' for name in columns)
        found = engine.ask(f"SELECT {', '.join(f'`{name}`' for name in columns)} FROM probing.{table} FINAL WHERE job = '{job}'", timeout=60)
        typed = [float if "Float" in types[name] else int if "Int" in types[name] else str for name in columns]
        rank = columns.index("rank")
        db.execute(f"DELETE FROM {table}")
        db.executemany(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})",
                       [[value_of(kind, name, value, int(row[rank])) for kind, name, value in zip(typed, columns, row)] for row in found])
        if found:
            put.append(table)
    return put


def test_the_same_as_sqlite(training, clickhouse, probing, relay, wait_until, tmp_path, source_dir):  # noqa: F811
    pids = rank_pids(training)
    probing("cluster", "init", clickhouse.url()).ok()
    one = relay(clickhouse.url(), name_of(probing, pids[0]), "--job", "same", "--tables", "all", "--no-inject")

    def steps():
        return [int(n) for n, in clickhouse.ask("SELECT count() FROM probing.python_steps FINAL WHERE job = 'same' GROUP BY rank")]

    wait_until(lambda: len(steps()) == 4 and min(steps()) > 20, 120, "steps in the server")
    path = tmp_path / "job.db"
    probing("cluster", "record", *training.at, "-o", str(path), "--duration", "1s", timeout=90).ok()
    one.end()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        with sqlite3.connect(path) as db:
            put = put_rows(clickhouse, db, "same")
        assert {"python_steps", "python_samples", "python_stacks", "python_frames", "python_collectives", "python_memory", "probing_facts"} <= set(put), put
        now = repr(float(clickhouse.ask("SELECT max(ts) FROM probing.python_steps")[0][0]))
        # not of what is made when it is read
        asked = [s for s in statements(source_dir) if not any(table in s for table in ("python.backtrace", "gpu_metrics"))]
        assert len(asked) == 28
        differ, full = [], 0
        for statement in asked:
            text = statement.replace("now()", now)
            here = rows(probing("-t", str(path), "query", text, "--json", "--limit", "0", timeout=90))
            there = rows(probing("query", "-t", clickhouse.url(job="same"), text, "--json", "--limit", "0", timeout=90))
            full += bool(here)
            if key_of(here) != key_of(there):
                differ.append((statement, here[:3], there[:3]))
        assert not differ, differ
        assert full > 20
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
