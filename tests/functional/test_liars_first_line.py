# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand first lines to the pdb of `pause` and `catch`, and more of them in every Python: the token opens, and nothing else does."""

import json
import os
import subprocess

import pytest

from conftest import ROOT

PROGRAM = os.path.join(ROOT, "tests", "liars", "first_line.py")


def say(python, n):
    done = subprocess.run([python, PROGRAM, str(n)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["first_lines"] == n and told["opened"] > 0, told


@pytest.mark.timeout(120)
def test_a_hundred_thousand_first_lines(any_python):
    say(any_python, 100000)


def test_first_lines_in_every_version(each_python):
    say(each_python, 2000)
