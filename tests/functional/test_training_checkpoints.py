# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that a training job saves, in profiling_data."""

import bisect

import pytest
from conftest import wait_until
from training_job import training_job  # noqa: F401

RATE = 50
# s: a save begins half an interval before its first sample, and where a drain finds a thread off the CPU, it counts as having been since its last
# copy, though a busy machine may have let it run for a moment since.
MARGIN = 0.25 + 1.0 / RATE
LONG = 0.5  # s: a save that is seen on any machine that runs


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how, name", [("save", "torch.save"), ("dcp", "torch.distributed.checkpoint.save")])
def test_saves_are_spans(training_job, how, name):  # noqa: F811
    """Each save that is longer than a few samples, and nothing else; it began and ended when the job says, between the two samples that tell, however
    far apart these are on a busy machine."""
    job = training_job("checkpoints", "--how", how, "--width", 1200, "--every", 4, env={"PROBING_SAMPLE_RATE": str(RATE)})

    def saved():
        return [row for row in job.rows("profiling_data") if row["kind"] == "checkpoint"]
    wait_until(lambda: len(saved()) >= 5, timeout=120, what="five checkpoints", interval=0.2)
    rows = [row for row in saved() if row["duration_ms"] is not None]  # the first may have begun before
    looks = sorted(row["timestamp"] for row in job.rows("python.samples") if row["tid"] == job.pid and not row["torn"])
    rows = [row for row in rows if row["timestamp"] > looks[0]]  # the table of samples, which are many more, may go back less far
    assert rows
    truth = job.end()

    def is_between_looks(happened, said):
        after = bisect.bisect(looks, said)
        assert 0 < after < len(looks)
        return looks[after - 1] - MARGIN < happened < looks[after] + MARGIN
    spans = {}  # a save that is found off the CPU where it was not yet is two rows
    for row in rows:
        assert row["operation_name"] == name and row["tid"] == job.pid
        near = min(truth.events, key=lambda event: abs(event["began"] - row["timestamp"]))
        spans.setdefault(near["began"], (near, []))[1].append(row)
    for event, parts in spans.values():
        assert is_between_looks(event["began"], min(row["timestamp"] for row in parts)), (event, parts)
        assert is_between_looks(event["ended"], max(row["timestamp"] + row["duration_ms"] / 1e3 for row in parts)), (event, parts)
    first, last = rows[0]["timestamp"], rows[-1]["timestamp"]
    long_ones = [e for e in truth.events if e["ended"] - e["began"] > LONG and first - MARGIN < e["began"] < last + MARGIN]
    assert len(long_ones) <= len(spans)
    assert {b["step"] - a["step"] for a, b in zip(rows, rows[1:])} <= {0, 4} or len(long_ones) < len(spans)
