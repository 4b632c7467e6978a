# SPDX-License-Identifier: Apache-2.0
"""Some looks at targets and agents that lie (make soak ONLY=liars: thousands): nobody is harmed by looking."""

import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT

LIARS = os.path.join(ROOT, "tests", "liars")


def liars(build_dir, name, *args, timeout):
    """Lines that it prints; the test is skipped where it says that it cannot run."""
    done = subprocess.run([sys.executable, os.path.join(LIARS, name), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=timeout, env=dict(os.environ, PROBING_BUILD=build_dir))
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def rows(lines, key):
    return [row for row in (json.loads(line) for line in lines if line.startswith("{")) if key in row]


def test_the_box_sees_what_changes(build_dir):
    liars(build_dir, "box.py", timeout=60)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_hostile_targets(build_dir):
    found = rows(liars(build_dir, "run", "--build", build_dir, "--only", "targets", "--attaches", "4", timeout=280), "target")
    assert sum(row["attaches"] == 4 for row in found) >= 3


@pytest.mark.long
@pytest.mark.timeout(200)
def test_verbs_before_an_agent_that_lies(build_dir):
    found = rows(liars(build_dir, "run", "--build", build_dir, "--only", "verbs", "--verbs", "2", "--share", "0.25", timeout=180), "round")
    assert len(found) == 2 and all(row["lies"] > 50 for row in found)


@pytest.mark.long
@pytest.mark.timeout(200)
def test_sessions_before_an_agent_that_lies(build_dir):
    found = rows(liars(build_dir, "run", "--build", build_dir, "--only", "lies", "--lies", "3000", timeout=180), "session")
    assert sum(row["lies"] for row in found) >= 3000
