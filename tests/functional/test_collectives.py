# SPDX-License-Identifier: Apache-2.0
"""python.collectives: those of a real gloo job by torchrun, of which one rank enters two late: they are open in the others until then."""

import pytest

from conftest import attach_in_time
from skipping_job import skipping

__all__ = ["skipping"]  # a fixture

pytestmark = pytest.mark.timeout(240)


def test_open_and_done(skipping, probing, ptrace, wait_until):
    started = skipping(2, 1, late=True)
    started.running()
    job = f"job:{started.pid}"
    attach_in_time(probing, job)

    def query(text):
        return probing("-t", job, "query", "--json", text, timeout=60).ok().json()["rows"]

    wait_until(lambda: {row["rank"] for row in query("SELECT DISTINCT rank FROM python.collectives")} == {0, 1}, 60, "rows of both ranks")
    started.stop.touch()
    before = started.stuck()
    opened = "SELECT rank, seq, op, tid, timestamp, duration_ms, enqueue_ms, source, backend, p2p FROM python.collectives WHERE state = 'open' ORDER BY seq"
    first, second = rows = wait_until(lambda: (found := query(opened)) and len(found) > 1 and found, 60, "both open collectives")
    assert [row["rank"] for row in rows] == [0, 0] and second["seq"] == first["seq"] + 1
    for row in rows:
        assert (row["op"], row["backend"], row["source"]) == ("all_reduce", "gloo", "span") and not row["p2p"]
        assert row["duration_ms"] is None and row["enqueue_ms"] is None
    assert first["tid"] != second["tid"]  # gloo runs two at a time
    # a second later the others have not been reported again
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

    # whom rank 0 waited for, and for how long
    def waited():  # that rank tells of them a little later
        rows = query("SELECT src_rank, dst_rank, op, latency_ms FROM comm_metrics WHERE latency_ms > 1000")
        return rows if all(row["dst_rank"] is not None for row in rows) else None
    waits = wait_until(waited, 60, "whom it waited for")
    assert len(waits) == 2 and all((row["src_rank"], row["dst_rank"], row["op"]) == (0, 1, "all_reduce") for row in waits), waits
    for row, of in zip(sorted(waits, key=lambda row: row["latency_ms"]), sorted(done, key=lambda row: row["duration_ms"])):
        assert row["latency_ms"] <= of["duration_ms"] < 2 * row["latency_ms"]
    alone = probing("-t", f"{job}/0", "query", "--json", "SELECT src_rank, dst_rank, latency_ms FROM comm_metrics WHERE latency_ms > 1000", timeout=60)
    assert sorted(row["latency_ms"] for row in alone.ok().json()["rows"]) == sorted(row["duration_ms"] for row in done)
    assert all(row["src_rank"] == 0 and row["dst_rank"] is None for row in alone.json()["rows"])


@pytest.mark.long
def test_who_comes_last(skipping, probing, ptrace, wait_until):
    """A rank that works longer than the others is the last in most collectives of all ranks, and nobody waits for another one."""
    started = skipping(3, 0, late=True, slow=2)
    started.running()
    job = f"job:{started.pid}"
    attach_in_time(probing, job)
    few = "SELECT count(*) AS n FROM comm_metrics WHERE src_rank = dst_rank"

    def query(text):
        return probing("-t", job, "query", "--json", text, timeout=60).ok().json()["rows"]

    wait_until(lambda: query(few)[0]["n"] >= 60, 90, "collectives of all ranks", interval=0.5)
    [seed] = query("SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics")
    assert seed["avg(latency_ms)"] > 0
    pairs = {(row["src_rank"], row["dst_rank"]): row for row in query(
        "SELECT src_rank, dst_rank, count(*) AS n, avg(latency_ms) AS ms FROM comm_metrics WHERE dst_rank IS NOT NULL GROUP BY 1, 2")}
    total = sum(row["n"] for (source, _), row in pairs.items() if source == 0)
    assert pairs[0, 2]["n"] > 0.8 * total and pairs[1, 2]["n"] > 0.8 * total, pairs
    assert pairs[2, 2]["ms"] == 0 and pairs[0, 2]["ms"] > 15 and pairs[1, 2]["ms"] > 15, pairs

    table = probing("cluster", "comm", job, "--json", timeout=60).ok().json()
    assert [column["name"] for column in table["columns"]] == [
        "op", "pg", "ranks", "count", "open", "bytes", "mean_ms", "max_ms", "enqueue_ms", "wait_ms", "last"]
    [row] = table["rows"]
    assert row["op"] == "all_reduce" and row["ranks"] == 3 and row["count"] >= 180 and row["mean_ms"] > 0 and row["wait_ms"] > 15
    assert row["last"].startswith("2 (") and int(row["last"][3:].split()[0]) > 80
    text = probing("cluster", "comm", str(started.pid), timeout=60).ok().stdout
    assert "all_reduce" in text and "2 (" in text


def test_no_collectives(probing, target, ptrace):
    job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(3600)\n", env={
        "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "no-collectives"})
    done = probing("cluster", "comm", str(job.pid), "--json", timeout=60).ok()
    assert done.json()["rows"] == [] and "no collective of torch.distributed was seen" in done.stderr
