# SPDX-License-Identifier: Apache-2.0
"""The statements that people type, as they are written, against a live training job: their rows are what the job has written of itself."""

import bisect
import math
import os
import signal
import time

import pytest
from conftest import wait_until
from test_recorded_job import statements, table_of
from training_job import CLOCKS, read_log, took_ms, Truth, training_job  # noqa: F401

STEPS = 1500  # some seconds; all of their rows are kept
BY_EPOCH, ROWS = "GROUP BY epoch", "SELECT *"


def exact(step):
    return float.fromhex(step["loss"])


def check_logs(rows, steps):
    """Of each epoch the mean and the least loss, and how many steps."""
    of = {}
    for step in steps:
        of.setdefault(step["epoch"], []).append(exact(step))
    assert [row["epoch"] for row in rows] == sorted(of) and len(of) > 3
    for row in rows:
        losses = of[row["epoch"]]
        assert row["steps"] == len(losses) and row["min(loss)"] == min(losses)
        assert row["avg(loss)"] == pytest.approx(sum(losses) / len(losses), rel=1e-12)


def check_operations(rows, job, steps):
    """Those that torch names, and the job's own: each began and ended when the job says."""
    told = job.rows("profiling_data")
    said = {row["operation_name"]: row for row in rows}
    assert [row["avg(duration_ms)"] for row in rows] == sorted((row["avg(duration_ms)"] for row in rows), reverse=True)
    for name, row in said.items():
        of_it = [r["duration_ms"] for r in told if r["operation_name"] == name]
        assert row["count(*)"] == len(of_it) and row["avg(duration_ms)"] == pytest.approx(math.fsum(of_it) / len(of_it), rel=1e-9)
    optimized = [name for name in said if name.startswith("Optimizer.step#")]
    assert optimized == ["Optimizer.step#AdamW.step"] and said[optimized[0]]["count(*)"] == len(steps)
    augmented = [row for row in told if row["operation_name"] == "augment"]
    before = [step["augment"][0] for step in steps]
    assert abs(len(augmented) - len(steps)) <= 1
    for row in augmented:
        at = bisect.bisect_right(before, row["timestamp"] + CLOCKS) - 1
        if at < 0:  # of a step that had begun before
            continue
        outside, began, ended, left = steps[at]["augment"]
        assert outside - CLOCKS <= row["timestamp"] <= began + CLOCKS
        assert ended - CLOCKS <= row["timestamp"] + row["duration_ms"] / 1e3 <= left + CLOCKS


def check_memory(rows, steps):
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times) and len(rows) > 2
    seen = 0
    for before, row in zip(rows, rows[1:]):
        within = [step["rss_mb"] for step in steps if before["timestamp"] <= step["ended"] <= row["timestamp"]]
        if within:
            seen += 1
            assert min(within + [before["rss_mb"]]) - 2 <= row["rss_mb"] <= max(within + [before["rss_mb"]]) + 2
    assert seen


def check_trace(rows, by_step, classes):
    """Each of the model's modules forward and backward in a step that was looked into, which was as long as the job says."""
    steps = [row for row in rows if row["stage"] == "step"]
    assert steps
    within = []  # of those whose step the job has in its log: is it as long?
    for row in steps:
        of_it = [r for r in rows if r["timestamp"] == row["timestamp"] and r is not row]
        assert sorted(r["operation_name"] for r in of_it if r["stage"] == "forward") == sorted(classes)
        assert all(r["duration_ms"] is None or 0 <= r["duration_ms"] <= row["duration_ms"] for r in of_it)
        step = by_step.get(row["step"])
        if step:
            within.append(row["duration_ms"] == pytest.approx(took_ms(step), rel=0.5, abs=10))
            assert within[-1] or row["duration_ms"] < took_ms(step)
    # it begins and ends a little before the job writes down when; on a busy machine one of them may be without a processor then
    assert sum(within) > len(within) / 2 or not within, [(row["duration_ms"], by_step.get(row["step"])) for row in steps]
    return len(steps)


def check_trace_sums(rows, told):
    of = {}
    for row in told:
        of.setdefault(row["operation_name"], []).append(row["duration_ms"])
    assert {row["operation_name"]: row["call_count"] for row in rows} == {name: len(of_it) for name, of_it in of.items()}
    for row in rows:
        known = [ms for ms in of[row["operation_name"]] if ms is not None]
        assert row["avg_duration"] == (pytest.approx(sum(known) / len(known), rel=1e-9) if known else None)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_statements_against_the_jobs_log(training_job, source_dir):  # noqa: F811
    job = training_job("epochs", "--steps", STEPS)
    job.probing(str(job.pid), "config", "probing.trace_rate=20").ok()
    traced = job.probing(str(job.pid), "trace", "--steps", "3", "--json", timeout=120).ok().json()
    assert traced["steps"] >= 1
    wait_until(lambda: any(line["is"] == "end" for line in read_log(job.log)), 200, "the end of its steps", interval=0.1)
    truth = Truth(job.log)
    classes = [name for name in truth.totals["classes"] if name != "ModuleList"]  # which is not called
    wait_until(lambda: job.rows("python.steps")[-1]["timestamp"] >= truth.steps[-1]["within"] - CLOCKS, 60, "the last step", interval=0.2)
    pairs = truth.match(job.rows("python.steps"))
    steps, by_step = [step for _, step in pairs], {row["step"]: step for row, step in pairs}
    known = [step for row, step in pairs if row["loss"] is not None]
    asked = set()
    for statement in statements(source_dir):
        table = table_of(statement)
        if table not in ("memory_usage", "profiling_data", "python.torch_trace", "training_logs"):
            continue
        asked.add(table)
        rows = job.probing(str(job.pid), "query", "--format", "json", "--limit", "0", statement, timeout=60).ok().json()["rows"]
        if table == "training_logs":
            check_logs(rows, known)
        elif table == "profiling_data":
            check_operations(rows, job, steps)
        elif table == "python.torch_trace" and statement.startswith(ROWS):
            assert check_trace(rows, by_step, classes) >= traced["steps"]
        elif table == "python.torch_trace":
            check_trace_sums(rows, job.rows("python.torch_trace"))
        elif statement.startswith(ROWS):
            check_memory(rows, steps)
        else:
            assert {row["hour(timestamp)"] for row in rows} <= {time.gmtime(time.time() - s).tm_hour for s in (0, 400)}
            mean = sum(row["memory_mb"] for row in job.rows("python.memory")) / len(job.rows("python.memory"))
            assert all(row["avg(memory_mb)"] == pytest.approx(mean, rel=0.25) for row in rows)
    assert asked == {"memory_usage", "profiling_data", "python.torch_trace", "training_logs"}
    os.kill(job.pid, signal.SIGTERM)
