# SPDX-License-Identifier: Apache-2.0
"""The example jobs that everything else is tried on: they learn, they move, they end when told to."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import wait_until

EXAMPLES = ["train.py", "train_plain.py"]


def losses(text):
    return [float(value) for value in re.findall(r"^step +\d+  loss ([0-9.]+)", text, re.M)]


@pytest.fixture(params=EXAMPLES)
def example(request, source_dir, any_python):
    python = request.getfixturevalue("torch_python") if request.param == "train.py" else any_python
    return os.path.join(source_dir, "examples", request.param), python


def test_loss_falls(example, target, wait_until):
    script, python = example
    job = target(script, "--steps", 60, "--print-every", 10, python=python, ready=r"step +\d+ ")
    wait_until(lambda: not job.alive(), 60, "the job's own end")
    seen = losses(job.output())
    assert job.process.returncode == 0
    assert len(seen) == 7
    assert seen[-1] < 0.8 * seen[0]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_ends_cleanly_when_told_to(example, target, wait_until, tmp_path, signum):
    script, python = example
    counter = tmp_path / "counter"
    job = target(script, "--counter", counter, python=python, ready=r"step +\d+ ")
    wait_until(lambda: int(counter.read_text()) > 2, 30, "the counter to rise")
    os.kill(job.pid, signum)
    wait_until(lambda: not job.alive(), 30, "the job's end")
    assert job.process.returncode == 0
    assert f"stopped after {int(counter.read_text())} steps" in job.output()
    with pytest.raises(ProcessLookupError):
        os.killpg(job.pid, 0)


@pytest.mark.long
def test_the_fault_of_the_slow_job_is_named(source_dir, probing, target, torch_python, ptrace, wait_until):
    """The job that the README's moving picture shows: what is wrong with it, and in which function of it."""
    job = target(os.path.join(source_dir, "examples", "slow_train.py"), python=torch_python, ready=r"step +\d+ ")
    verdict = re.compile(r"INPUT-BOUND .* of a step waits for the loader .*num_workers is 0.* in parse_sample \(slow_train\.py:\d+\)")
    wait_until(lambda: verdict.search(probing(str(job.pid), "verdict").stdout), 60, "the verdict")


def test_a_client_of_ones_own(source_dir, probing, target, any_python, ptrace):
    """The agent's messages by packages that others have written."""
    client = os.path.join(source_dir, "examples", "client.py")
    if subprocess.run([sys.executable, "-c", "import websockets, msgpack"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the Python packages websockets and msgpack")
    job = target(os.path.join(source_dir, "examples", "train_plain.py"), python=any_python, ready=r"step +\d+ ")
    address = probing(str(job.pid), "listen", "--json").ok().json()["tcp"]["address"]

    def rows():
        done = subprocess.run([sys.executable, client, address], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found = [line.split() for line in done.stdout.splitlines()]
        assert found[0][:2] == [str(job.pid), "MainThread"] and len(found[0]) > 2, done.stdout
        return found[0][2] != "no"
    wait_until(rows, 60, "a look that the main thread had a processor for")
    with open(client, encoding="utf-8") as file:
        assert sum(bool(line.strip()) for line in file) <= 18
