# SPDX-License-Identifier: Apache-2.0
"""Which rank makes the others wait, in real gloo jobs (tests/cluster/uneven.py) that sleep where others compute; tests/cluster/straggler.py counts
how often that is right."""

import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT, attach_in_time, wait_until
from test_tui_tmux import screen

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from ranks import FOLDER, Job, free_port  # noqa: E402

__all__ = ["screen"]

pytestmark = pytest.mark.timeout(300)

PATIENT_S = 150  # beside other tests
JUDGED = 100  # steps of uneven.py, with which a rank can be accused
UNEVEN = os.path.join(FOLDER, "uneven.py")
ENTER = """#!/bin/sh
host=$1; shift
case "$host $*" in "n1 "*--stdio) set -- "$@" --clock-ahead={ahead};; esac
PATH="{build}:$PATH" exec nsenter -t "$(cat {folder}/$host.pid)" -p -m -u -- "$@"
"""


@pytest.fixture
def job(torch_python, torch_fork, tmp_path, data_dir, ptrace, probing):  # noqa: ARG001
    """Starts a job, with agents."""
    jobs = []

    def start(fault):
        jobs.append(Job(torch_python, tmp_path / f"job-{len(jobs)}", fault, 4, 3, torch_fork, script=UNEVEN))
        jobs[-1].wait("ready")
        attach_in_time(probing, jobs[-1].target())
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
    assert v["brief"] == "STRAGGLER RANK 3" and v["cause"] in ("BACKWARD", "COMPUTE", "UNKNOWN") and "rank 3 needs " in v["text"], v
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


@pytest.mark.long
def test_loaded_again(job, screen, probing, probing_top):
    """Agents that are loaded again count steps from the beginning: the screen that watches the job shows those, not the last earlier ones."""
    one = job("healthy")
    s = screen(130, 30)
    s.shell(f"{probing_top.path} job:{one.target()}")

    def step():
        """Of rank 0; None unknown."""
        found = re.search(r"^ *0 +(\d+) +\d+", s.text(), re.M)
        return found and int(found[1])
    wait_until(lambda: (step() or 0) >= JUDGED, PATIENT_S, "steps")
    probing("cluster", "detach", one.target(), timeout=60).ok()
    attach_in_time(probing, one.target())
    before = step()
    wait_until(lambda: 0 < (step() or 0) < before, PATIENT_S, "a step after the agents were loaded again")
    s.type("q")


def has_namespaces():
    try:
        return subprocess.run(["unshare", "-pfu", "--mount-proc", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not has_namespaces(), reason="needs root and namespaces of processes")
@pytest.mark.parametrize("ahead", [3, -3])
def test_clocks(ahead, torch_python, tmp_path, data_dir, build_dir, probing, ptrace):  # noqa: ARG001
    """Two hosts, which are namespaces here; the clock of one is off by 3 s, as its relay reports. That is found, nobody is accused, and with it
    all ranks are compared."""
    enter = tmp_path / "enter"
    enter.write_text(ENTER.format(ahead=ahead, build=build_dir, folder=tmp_path))
    enter.chmod(0o755)
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="4", LOCAL_WORLD_SIZE="2", OMP_NUM_THREADS="1",
               GLOO_SOCKET_IFNAME="lo", TORCHELASTIC_RUN_ID=f"clocks{ahead}", PROBING_MAX_MEMORY="8MB")
    hosts = []
    try:
        for host in range(2):  # their processes have other numbers, because they have one folder for sockets
            ranks = "".join(f"RANK={2 * host + i} LOCAL_RANK={i} {torch_python} {UNEVEN} healthy 3 {tmp_path} & " for i in range(2))
            hosts.append(subprocess.Popen(["unshare", "-pfu", "--mount-proc", "--kill-child", "sh", "-c", f"hostname n{host}; {'true; /bin/true; ' * 8 * host}{ranks} wait"],
                                          env=dict(env, GROUP_RANK=str(host))))
            wait_until(lambda: os.path.exists(f"/proc/{hosts[-1].pid}/task/{hosts[-1].pid}/children") and children(hosts[-1].pid), 30, "a shell")
            (tmp_path / f"n{host}.pid").write_text(children(hosts[-1].pid)[0])
        wait_until(lambda: all((tmp_path / f"rank-{rank}.jsonl").exists() for rank in range(4)), PATIENT_S, "four ranks")
        for host in range(2):
            subprocess.run([str(enter), f"n{host}", probing.path, "cluster", "attach", "job:"], check=True, timeout=60, stdout=subprocess.DEVNULL)
        where = ("--hosts", "n0,n1", "--via", f"{enter} {{host}} {{relay}}", "--relay", "probing relay --stdio")
        sql = ("SELECT r.rank, r.step, r.own_ms, r.step_ms, r.last_pct, n.clock_offset_ms AS ahead, n.clock_error_ms AS error FROM cluster.ranks r "
               "JOIN cluster.nodes n ON n.host = r.host ORDER BY r.rank")

        def compared():
            rows = probing("cluster", "query", "--json", *where, sql, timeout=60).ok().json()["rows"]
            return rows if len(rows) == 4 and all(r["own_ms"] is not None and (r["step"] or 0) >= JUDGED for r in rows) else None
        rows = wait_until(compared, PATIENT_S, "ranks that are compared", interval=1)
        for r in rows:
            truth = ahead * 1e3 if r["rank"] >= 2 else 0
            assert abs(r["ahead"] - truth) <= r["error"] + 0.1, rows
            assert 100 < r["own_ms"] <= r["step_ms"] + 100, rows
        found = probing("cluster", "verdict", *where, "--json", timeout=60).json()["verdicts"]
        assert found[0]["code"] == "MOVING" and not [v for v in found if v["ranks"]], found
    finally:
        for host in hosts:
            host.kill()
            host.wait()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()
