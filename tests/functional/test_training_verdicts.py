# SPDX-License-Identifier: Apache-2.0
"""What is said of real training jobs that are fine: nothing that is not so."""

import time

import pytest
from conftest import wait_until
from training_job import accusations, is_so, training_job  # noqa: F401


@pytest.mark.timeout(300)
def test_a_loss_that_is_no_number(training_job):  # noqa: F811
    job = training_job("nan")

    def said():
        return [v for v in accusations(job) if v["code"] == "NAN"]
    found = wait_until(said, 120, "the verdict NAN", interval=1)[0]
    assert "loss" in found["text"] and found["measured"] >= found["threshold"], found


LOOKED_AT_S = 4


@pytest.mark.long
@pytest.mark.timeout(400)
def test_jobs_that_are_fine(training_job):  # noqa: F811
    """Nothing is said against them but what is so, while the machine has other things to do. Each by itself: test_training_steps.py."""
    jobs = [training_job(name) for name in ("amp", "lbfgs", "accumulation")]  # at a time, which takes no longer than one
    said = {job: [] for job in jobs}
    for job in jobs:
        job.wait_steps(60)
    until = time.monotonic() + LOOKED_AT_S
    while time.monotonic() < until or not all(said.values()):
        for job in jobs:
            said[job] += accusations(job) or [None]
    for job in jobs:
        truth = job.end()
        for verdict in filter(None, said[job]):
            assert is_so(verdict, truth), verdict
