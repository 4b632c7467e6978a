# SPDX-License-Identifier: Apache-2.0
"""The numbers of real training jobs are the same to the bit, undisturbed and with their modules traced for a while."""

import pytest
from conftest import wait_until
from training_job import training_job  # noqa: F401

JOBS = {"accumulation": [], "cnn": [], "gan": [], "lbfgs": []}  # others: test_training_values.py
LOOKS = 3
AFTER = 10  # steps after hooks are out


def lease(job):
    return next((lease for lease in job.status()["leases"] if lease["what"] == "trace"), None)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", list(JOBS))
def test_losses_are_the_same_while_modules_are_traced(training_job, probing, name):  # noqa: F811
    job = training_job(name, *JOBS[name], env={"PROBING_TRACE_RATE": "100"})
    probing(str(job.pid), "config", "torch_profiling=on").ok()
    wait_until(lambda: (lease(job) or {"looks": 0})["looks"] >= LOOKS, timeout=90, what="looks", interval=0.05)
    probing(str(job.pid), "config", "torch_profiling=off").ok()
    wait_until(lambda: lease(job) is None, timeout=60, what="hooks to be out", interval=0.05)
    longest = job.status()["gil"]["us_longest_hold"]
    job.wait_steps(AFTER)
    traced = job.end()
    alone = training_job(name, *JOBS[name], "--steps", str(len(traced.losses)), inject=False)
    wait_until(lambda: not alone.target.alive(), timeout=120, what="its end", interval=0.1)
    undisturbed = alone.end()
    assert len(traced.losses) > LOOKS + AFTER and traced.losses == undisturbed.losses
    assert longest <= 2000
