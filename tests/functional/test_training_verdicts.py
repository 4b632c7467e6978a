# SPDX-License-Identifier: Apache-2.0
"""What is said of real training jobs that are fine: nothing that is not so; and that their numbers are what they are without us."""

import statistics
import time

import pytest
from conftest import wait_until
from training_job import Truth, training_job  # noqa: F401

pytestmark = pytest.mark.alone  # what a job is slow from depends on what else runs

def verdicts(job):
    return job.probing(str(job.pid), "verdict", "--json", timeout=60).ok().json()["verdicts"]


@pytest.mark.timeout(300)
def test_a_loss_that_is_no_number(training_job):  # noqa: F811
    job = training_job("nan")

    def said():
        return [v for v in verdicts(job) if v["code"] == "NAN" and v["level"] in ("warning", "bad")]
    found = wait_until(said, 120, "the verdict NAN", interval=1)[0]
    assert "loss" in found["text"] and found["measured"] >= found["threshold"], found


# Three at a time, which takes no longer than one: (name, is it of several ranks).
FINE = [
    [("transformer", False), ("gan", False), ("accumulation", False)],
    [("amp", False), ("lbfgs", False), ("compiled", False)],
    [("checkpoints", False), ("loaders", False), ("ddp", True)],
]


def is_so(said, truth):
    """Does the job's own log say the same, at some time?"""
    evidence, took = said["evidence"], [step["ended"] - step["began"] for step in truth.steps]
    if said["code"] == "SLOW":
        old, new = evidence["before"], evidence["newest"]
        windows = [took[at:at + old + new] for at in range(len(took) - old - new + 1)]
        return any(statistics.median(w[old:]) > 1.4 * statistics.median(w[:old]) for w in windows)
    if said["code"] == "INPUT-BOUND":
        n, waited = evidence["n"], [step["data_s"] for step in truth.steps]
        return any(sum(waited[at:at + n]) > 0.9 * said["threshold"] * sum(took[at:at + n]) for at in range(len(took) - n + 1))
    return False


@pytest.mark.timeout(400)
@pytest.mark.parametrize("names", FINE, ids=lambda names: " ".join(name for name, _ in names))
def test_jobs_that_are_fine(training_job, names):  # noqa: F811
    """Nothing is said against them but what is so, while the machine has other things to do."""
    jobs = [training_job(name, ranks=ranks) for name, ranks in names]
    said = {job: [] for job in jobs}
    for job in jobs:
        job.wait_steps(60)
    until = time.monotonic() + 15
    while time.monotonic() < until or not all(said.values()):
        for job in jobs:
            said[job] += [v for v in verdicts(job) if v["level"] not in ("fine", "note")] or [None]
    for job in jobs:
        truth = job.end()
        for verdict in filter(None, said[job]):
            assert is_so(verdict, truth), verdict


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name, steps", [("cnn", 2500), ("gan", 600), ("lbfgs", 400), ("amp", 800), ("transformer", 150)])  # some seconds each
def test_losses_are_the_same_to_the_bit(training_job, name, steps):  # noqa: F811
    """Without us, and with an agent that came in the midst of it, watches values at each step and is asked for all that it can tell."""
    workers = ["--workers", "0"] if name == "transformer" else []
    runs = [training_job(name, "--steps", str(steps), *workers, inject=watched) for watched in (False, True)]
    runs[1].probing(str(runs[1].pid), "config", "probing.torch_profiling=on,exprs=loss,optimizer.param_groups[0]['lr']").ok()
    for table in ("python.modules", "python.tensors", "python.loader_workers", "python.steps", "python.loaders"):
        runs[1].probing(str(runs[1].pid), "query", f"SELECT count(*) FROM {table}", timeout=90)
    for run in runs:
        wait_until(lambda run=run: not run.target.alive(), 200, "the job's end", interval=0.2)
    undisturbed, watched = (Truth(run.log).losses for run in runs)
    assert len(undisturbed) == steps and undisturbed == watched
