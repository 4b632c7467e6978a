# SPDX-License-Identifier: Apache-2.0
"""Which rank makes the others wait, in real gloo jobs (tests/cluster/uneven.py) that sleep where others compute; tests/cluster/straggler.py counts
how often that is right."""

import os
import sys

import pytest

from conftest import ROOT, wait_until

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from ranks import FOLDER, Job  # noqa: E402

pytestmark = pytest.mark.timeout(300)

PATIENT_S = 150  # beside other tests


@pytest.fixture
def job(torch_python, torch_fork, tmp_path, data_dir, ptrace, probing):  # noqa: ARG001
    """Starts a job, with agents."""
    jobs = []

    def start(fault):
        jobs.append(Job(torch_python, tmp_path / f"job-{len(jobs)}", fault, 4, 3, torch_fork, script=os.path.join(FOLDER, "uneven.py")))
        jobs[-1].wait("ready")
        probing("cluster", "attach", jobs[-1].target(), timeout=60).ok()
        return jobs[-1]
    yield start
    for one in jobs:
        one.close()


def test_straggler(job, probing, probing_top):
    """Its backward pass alone takes 20 % longer: the steps of all ranks last as long as its own, and only its arrivals show it."""
    one = job("backward")
    one.begin()

    def named():
        done = probing("cluster", "verdict", one.target(), "--json", timeout=60)
        verdicts = [v for v in done.json()["verdicts"] if v["code"] == "STRAGGLER"]
        return (done.status, verdicts) if verdicts else None
    status, [v] = wait_until(named, PATIENT_S, "a verdict", interval=0.5)
    assert status == 0 and v["level"] == "warning" and v["ranks"] == "3" and v["waiting"] == "0-2", v
    assert v["brief"] == "STRAGGLER RANK 3" and v["cause"] in ("BACKWARD", "COMPUTE") and "rank 3 needs " in v["text"], v
    [e] = v["evidence"]
    assert e["rank"] == 3 and e["witness"] == "arrivals" and "later than the first, last in " in e["text"], e

    sql = ("SELECT rank, role, own_ms, lag_ms, last_pct, step_ms, (SELECT ranks FROM cluster.verdicts WHERE code = 'STRAGGLER') AS slow "
           "FROM cluster.ranks ORDER BY own_ms DESC")
    rows = probing("cluster", "query", one.target(), "--json", sql, timeout=60).ok().json()["rows"]
    assert [r["rank"] for r in rows][0] == 3 and {r["role"] for r in rows} == {0} and {r["slow"] for r in rows} == {"3"}, rows
    assert rows[0]["lag_ms"] > 4 > min(r["lag_ms"] for r in rows) and rows[0]["own_ms"] - rows[1]["own_ms"] > 3, rows
    assert rows[0]["last_pct"] > 60 > rows[1]["last_pct"], rows

    screen = probing_top("--export", "txt", "--screen", "ranks", f"job:{one.target()}", timeout=60).ok().stdout
    assert "STRAGGLER RANK 3" in screen or "rank 3 needs " in screen, screen
    assert " OWN " in screen and " LAG " in screen, screen
