# SPDX-License-Identifier: Apache-2.0
"""In and out of a hostile target and of the training example, a dozen times (make torture and make soak: thousands)."""

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


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("minor, cycles", [("3.9", 8), ("3.11", 12), ("3.13", 8)])
def test_a_hostile_target_is_not_harmed(build_dir, python_for, ptrace, minor, cycles):
    report = torture(build_dir, python_for(minor), cycles, timeout=380)
    assert report["moments"] and len(report["deeds"]) >= 4


@pytest.mark.timeout(500)
def test_losses_are_those_of_an_undisturbed_run(build_dir, torch_python, ptrace):
    torture(build_dir, torch_python, 6, "--training", timeout=480)
