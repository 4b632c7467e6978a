# SPDX-License-Identifier: Apache-2.0
"""python.steps of real training jobs of every kind, injected in the midst of a step, against what the jobs write of themselves."""

import os
import subprocess

import pytest
from conftest import long_but, wait_until
from training_job import CLOCKS, accusations, agree, armed, is_so, took_ms, training_job  # noqa: F401

STEPS = 60


def wait_rows(job, steps):
    wait_until(lambda: len(job.rows("python.steps")) >= steps or not job.target.alive(), timeout=150, what=f"{steps} steps", interval=0.2)


def watch(job, steps=STEPS):
    """Rows of at least so many steps, and the job's truth."""
    wait_rows(job, steps)
    rows = job.rows("python.steps")
    assert all(hook["lost"] == 0 for hook in job.status()["hooks"])
    return rows, job.end()


def check(rows, truth):
    """Each step once, and as long as it was."""
    pairs = truth.match(rows)
    assert rows[0]["duration_ms"] is None  # it had begun before
    return pairs[1:]


def check_times(rows, truth):
    """And as the job has measured it, which it does right after each."""
    pairs = check(rows, truth)
    agree([(row["duration_ms"], took_ms(step)) for row, step in pairs])
    return pairs


ORDINARY = [
    ("transformer",), ("transformer", "--workers", "0"), ("cnn",), ("gan",), ("accumulation",), ("amp",), ("compiled",), ("leak",), ("nan",),
    ("slow_loader",), ("loaders",), ("checkpoints",), ("lbfgs",),
]
QUICK = [("transformer",), ("cnn",), ("amp",), ("loaders",), ("nan",), ("slow_loader",)]


AILING = ("leak", "nan", "slow_loader")  # test_verdict.py


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", long_but(QUICK, ORDINARY), ids=" ".join)
def test_steps(training_job, name):  # noqa: F811
    """Each step, where its time went, its loss and its learning rate; and nothing is said against it but what is so."""
    job = training_job(*name)
    first = armed(job)
    wait_rows(job, first + STEPS)
    said = [] if name[0] in AILING else accusations(job)
    rows, truth = watch(job)
    pairs = check_times(rows, truth)
    assert all(row["comm_ms"] is None for row in rows)
    if name == ("lbfgs",):  # its passes are within the optimizer's step
        agree([(row["optimizer_ms"], step["optimizer_s"] * 1e3) for row, step in pairs])
        assert all(row["forward_ms"] is None for row in rows)
    else:
        agree([(row["data_ms"], step["data_s"] * 1e3) for row, step in pairs], percent=5)
    told = [pair for pair in pairs if pair[0]["step"] >= first]
    assert len(told) >= STEPS - 1
    if name == ("gan",):
        check_two_optimizers([row for row, _ in told])
    else:
        check_values(told, name)
    assert all(is_so(verdict, truth) for verdict in said), said


def check_values(pairs, name):
    for row, step in pairs:
        loss = float.fromhex(step["loss"])
        assert row["lr"] == step["lr"] and row["grad_norm"] is None, (row, step)
        if name == ("accumulation",):  # its variable `loss` is a batch's share, its log has the sum
            assert row["loss"] is not None and row["nonfinite"] == "none", (row, step)
        elif loss == loss:
            assert row["loss"] == loss and row["nonfinite"] == "none", (row, step)
        else:
            assert row["loss"] is None and row["nonfinite"] == "loss", (row, step)


def check_two_optimizers(rows):
    """A generator and a discriminator have a loss each: none is the loss. The learning rate is that of the first."""
    assert all(row["loss"] is None and row["nonfinite"] is None for row in rows)
    assert {row["lr"] for row in rows[1:]} == {1e-4}  # of the first of all only the second was seen


@pytest.mark.timeout(300)
def test_several_optimizers_without_a_loader(training_job):  # noqa: F811
    """What tells one Adam from the other is which object it is. Which of the two a step ends with is not known."""
    rows, truth = watch(training_job("gan", "--no-loader"))
    whole = rows[2:]
    first, last = whole[0]["timestamp"], whole[-1]["timestamp"]
    done = [step for step in truth.steps if first < step["ended"] <= last]
    assert abs(len(done) - (len(whole) - 1)) <= 1
    mean = sum(row["duration_ms"] for row in whole[1:]) / (len(whole) - 1)
    agree([(mean, (last - first) / len(done) * 1e3)], percent=10)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_compiler_of_torch(training_job, torch_python, tmp_path):  # noqa: F811
    """torch.compile with the compiler that is torch's own choice."""
    works = "import torch; f = torch.compile(lambda x: torch.relu(x) + 1); print(f(torch.ones(4)).sum().item())"
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    done = subprocess.run([torch_python, "-c", works], capture_output=True, text=True, timeout=200, env=dict(os.environ, **env), check=False)
    if done.returncode:
        pytest.skip(f"needs inductor: {done.stderr.strip().splitlines()[-1]}")
    rows, truth = watch(training_job("compiled", "--backend", "inductor", env=env))
    check_times(rows, truth)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_rank_that_waits_for_another(training_job):  # noqa: F811
    """Rank 0 waits in its collective for as long as rank 1 is late."""
    late = 0.03
    job = training_job("ddp", "--late", late, ranks=True)
    wait_rows(job, STEPS)
    said = accusations(job)
    rows, truth = watch(job)
    assert all(is_so(verdict, truth) for verdict in said), said
    pairs = check_times(rows, truth)
    agree([(row["data_ms"], step["data_s"] * 1e3) for row, step in pairs], percent=5)
    waited = [row["comm_ms"] for row, _ in pairs]
    assert all(0 < row["comm_ms"] <= row["duration_ms"] for row, _ in pairs)
    assert sorted(waited)[len(waited) // 10] >= late * 1e3 * 0.8


@pytest.mark.timeout(300)
def test_a_thread_that_wants_the_gil(training_job):  # noqa: F811
    """The job waits for the GIL before it writes down when a step ended: how long the step took in its log is not how long it took."""
    rows, truth = watch(training_job("gil_hog"), 20)
    pairs = check(rows, truth)
    late = [step["ended"] - row["timestamp"] for row, step in truth.match(rows)]
    told = pairs[-1][1]["ended"] - pairs[0][1]["began"]
    assert abs(sum(row["duration_ms"] for row, _ in pairs) / 1e3 - (told + late[0] - late[-1])) <= CLOCKS
