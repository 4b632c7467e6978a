# SPDX-License-Identifier: Apache-2.0
"""The NaN of tests/targets/training/nan.py, whose module is known, is found by one key within two steps."""

import pytest

from conftest import wait_until as wait
from test_tui_tmux import Screen
from training_job import training_job  # noqa: F401

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def nan_job(training_job):  # noqa: F811
    """In turn a step with good weights, and one with a NaN in a weight of hidden.1."""
    job = training_job("nan", "--at", "20", "--again", "2")
    job.wait_steps(30)
    wait(lambda: len(job.rows("python.steps")) >= 3, 60, "steps that the agent has seen")  # the one before what is found is looked at, too
    return job


def found(job):
    return wait(lambda: job.rows("python.nonfinite"), 60, "what was found", interval=0.1)[-1]


def check(job, row):
    """That module, in a step whose loss was no number while that of the one before was."""
    assert (row["module"], row["class"], row["stage"], row["what"], row["parameter"]) == ("hidden.1", "Linear", "forward", "output 0", "weight"), row
    assert row["nan"] == 16 and row["elements"] == 16 * 256 and row["input_nonfinite"] == 0
    assert row["input_min"] == 0 < row["input_max"]  # of ReLU
    assert "training.py:" in row["stack"] and "nan.py:" in row["stack"]
    losses = wait(lambda: (lambda l: l if row["step"] in l else None)({r["step"]: r["nonfinite"] for r in job.rows("python.steps")}), 60, "that step")
    assert losses[row["step"]] == "loss" and losses[row["step"] - 1] == "none"


def test_by_one_key(nan_job, tmux, tmp_path, wait_until, probing_top, probing, ptrace):
    screen = Screen(tmux, tmp_path, 160, 45, wait_until)
    try:
        screen.shell(f"{probing_top.path} --screen threads {nan_job.pid}")
        screen.wait_for("CONNECTED", 90)
        screen.keys("8")
        screen.wait_for("parameters", 90)
        screen.keys("V")
        screen.wait_for("Search the next steps for NaN?")
        screen.keys("y")
        row = found(nan_job)
        check(nan_job, row)
        screen.wait_for("hidden.1", 60)  # said where it was asked for
        screen.keys("q")
    finally:
        screen.close()
    lease = [one for one in nan_job.status()["leases"] if one["what"] == "nan"][0]
    assert lease["looks"] <= 2 and f"step {row['step']}: output 0 of hidden.1 (Linear): 16 NaN of 4096" in lease["note"], lease

    def said():
        return [v for v in probing(str(nan_job.pid), "verdict", "--json").ok().json()["verdicts"] if v["code"] == "NAN"]
    verdict = wait(said, 60, "the verdict")[0]
    assert verdict["level"] == "bad" and f"step {row['step']}: " in verdict["text"] and "output 0 of hidden.1 (Linear)" in verdict["text"], verdict
