# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a training job saves, in profiling_data."""

import statistics

import pytest
from conftest import wait_until
from training_job import training_job  # noqa: F401

RATE = 50
SLACK = 12.0 / RATE  # s: on a busy machine a thread is seen at intervals that are much longer than the mean


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how, name", [("save", "torch.save"), ("dcp", "torch.distributed.checkpoint.save")])
def test_saves_are_spans(training_job, how, name):  # noqa: F811
    """Each save that is longer than a few samples, from when to when the job says, and nothing else."""
    job = training_job("checkpoints", "--how", how, "--width", 1200, "--every", 4, env={"PROBING_SAMPLE_RATE": str(RATE)})

    def saved():
        return [row for row in job.rows("profiling_data") if row["kind"] == "checkpoint"]
    wait_until(lambda: len(saved()) >= 5, timeout=120, what="five checkpoints", interval=0.2)
    rows = [row for row in saved() if row["duration_ms"] is not None]  # the first may have begun before
    truth = job.end()
    late = []
    for row in rows:
        assert row["operation_name"] == name and row["tid"] == job.pid
        near = min(truth.events, key=lambda event: abs(event["began"] - row["timestamp"]))
        assert abs(near["began"] - row["timestamp"]) < SLACK
        assert abs((near["ended"] - near["began"]) - row["duration_ms"] / 1e3) < SLACK
        late.append(abs(near["began"] - row["timestamp"]))
    assert statistics.median(late) < SLACK / 2
    first, last = rows[0]["timestamp"], rows[-1]["timestamp"]
    long_ones = [e for e in truth.events if e["ended"] - e["began"] > 2 * SLACK and first - SLACK < e["began"] < last + SLACK]
    assert len(long_ones) <= len(rows)
    assert all(b["step"] - a["step"] == 4 for a, b in zip(rows, rows[1:])) or len(long_ones) < len(rows)
