# SPDX-License-Identifier: Apache-2.0
"""python.collectives: those of a real gloo job by torchrun, of which one rank enters two late: they are open in the others until then."""

import pytest

from skipping_job import skipping

__all__ = ["skipping"]  # a fixture

pytestmark = pytest.mark.timeout(240)


def test_open_and_done(skipping, probing, ptrace, wait_until):
    started = skipping(2, 1, late=True)
    started.running()
    job = f"job:{started.pid}"
    probing("cluster", "attach", job, timeout=60).ok()

    def query(text):
        return probing("-t", job, "query", "--json", text, timeout=60).ok().json()["rows"]

    wait_until(lambda: {row["rank"] for row in query("SELECT DISTINCT rank FROM python.collectives")} == {0, 1}, 60, "rows of both ranks")
    started.stop.touch()
    before = started.stuck()
    opened = "SELECT rank, seq, op, tid, timestamp, duration_ms, enqueue_ms, source, backend, p2p FROM python.collectives WHERE state = 'open' ORDER BY seq"
    first, second = rows = wait_until(lambda: query(opened), 60, "open collectives")
    assert [row["rank"] for row in rows] == [0, 0] and second["seq"] == first["seq"] + 1
    for row in rows:
        assert (row["op"], row["backend"], row["source"]) == ("all_reduce", "gloo", "span") and not row["p2p"]
        assert row["duration_ms"] is None and row["enqueue_ms"] is None
    assert first["tid"] != second["tid"]  # gloo runs two at a time
    # a second later there are no more of them
    wait_until(lambda: query("SELECT max(timestamp) > " + repr(first["timestamp"]) + " + 3 AS later FROM python.memory")[0]["later"], 60, "later rows")
    assert query(opened) == rows
    assert started.written() == before

    started.stop.unlink()
    ended = f"SELECT rank, seq, timestamp, duration_ms FROM python.collectives WHERE state = 'done' AND rank = 0 AND seq IN ({first['seq']}, {second['seq']}) ORDER BY seq"
    done = wait_until(lambda: len(query(ended)) == 2 and query(ended), 60, "their ends")
    for was, row in zip(rows, done):
        assert row["timestamp"] == pytest.approx(was["timestamp"], abs=1e-6) and row["duration_ms"] > 1000
    # each that has ended is there once, and the late rank did not wait
    twice = "SELECT pid, seq FROM python.collectives WHERE state = 'done' GROUP BY pid, seq HAVING count(*) > 1"
    assert query(twice) == []
    assert query("SELECT max(duration_ms) < 1000 AS short FROM python.collectives WHERE rank = 1")[0]["short"] == 1
