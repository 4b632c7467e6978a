# SPDX-License-Identifier: Apache-2.0
"""In and out of a hostile target and of the training example, some dozens of times (make torture and make soak: thousands)."""

import os
import subprocess
import sys
import json

import pytest

from conftest import ROOT

RUN = os.path.join(ROOT, "tests", "torture", "run.py")


def torture(build_dir, python, cycles, *more, timeout):
    """The last line of what it says."""
    done = subprocess.run([sys.executable, RUN, "--build", build_dir, "--python", python, "--cycles", str(cycles), *more],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["harmed"] == 0, done.stdout + done.stderr
    # A refusal is no harm, but who is always refused has proved nothing.
    assert report["cycles"] == cycles and report["injected"] >= cycles // 2, done.stdout
    assert report["numbers_compared"] > 0
    return report


@pytest.mark.timeout(400)
@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.13"])
def test_a_hostile_target_is_not_harmed(build_dir, python_for, ptrace, minor):
    report = torture(build_dir, python_for(minor), 20, timeout=380)
    assert len(report["moments"]) >= 2 and len(report["deeds"]) >= 3


@pytest.mark.timeout(500)
def test_losses_are_those_of_an_undisturbed_run(build_dir, torch_python, ptrace):
    torture(build_dir, torch_python, 15, "--training", timeout=480)
