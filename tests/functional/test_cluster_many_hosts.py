# SPDX-License-Identifier: Apache-2.0
"""Jobs of more hosts than there are: the relay of each answers by a script (tests/cluster/fake_relay.py)."""

import json
import os
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAKE = os.path.join(ROOT, "tests", "cluster", "fake_relay.py")
HOSTS = 16


@pytest.fixture
def job_of(probing):
    """Runs a verb of `cluster` on a job that began `began_s` ago."""
    def run(verb, *options, began_s=100, script=()):
        via = " ".join([sys.executable, "-SE", FAKE, "{host}", f"--hosts {HOSTS} --begin {time.time() - began_s}", *script])
        return probing("cluster", verb, "job:", "--hosts", f"f[0-{HOSTS - 1}]", "--via", via, "--json", *options, timeout=60)
    return run


def test_ranks_of_all_hosts(job_of):
    found = json.loads(job_of("ranks").stdout)["rows"]
    assert [one["rank"] for one in found] == list(range(8 * HOSTS))
    assert all(one["host"] == f"f{one['rank'] // 8}" and one["state"] == "computes" and one["func"] == "forward" for one in found)


def test_the_rank_that_all_wait_for(job_of):
    """By counters of the group and by its stack, with its line."""
    done = job_of("verdict", script=["--hang 77@80"])
    worst = json.loads(done.stdout)["verdicts"][0]
    assert done.status == 1 and worst["code"] == "HUNG" and worst["ranks"] == "77" and not worst["by_stacks"], worst
    assert (worst["func"], worst["lineno"], worst["number"]) == ("fetch", 31, 81), worst


def test_hosts_that_fall_silent(job_of):
    """Their ranks have no news, they are named, and the others are shown."""
    done = job_of("ranks", script=["--silent f3@1,f9@1"])
    found = {one["rank"]: one for one in json.loads(done.stdout)["rows"]}
    assert all(found[rank]["state"] == "computes" for rank in found if rank // 8 not in (3, 9)) and len(found) >= 8 * (HOSTS - 2)
    assert all(found[rank]["state"] in ("no news", "missing") for rank in found if rank // 8 in (3, 9))
    assert "partial" in done.stderr and "f3" in done.stderr and "f9" in done.stderr and "f4" not in done.stderr
