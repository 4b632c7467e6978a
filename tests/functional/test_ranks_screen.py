# SPDX-License-Identifier: Apache-2.0
"""The screens Ranks and Stacks over plain processes that claim to be ranks: nothing is loaded before a rank is opened; one of them differs and is
found; ranks are opened, stepped through and lost."""

import os
import signal
import sys

import pytest

from conftest import ROOT

from test_cluster import claim
from test_tui_tmux import screen

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from ranks import Job  # noqa: E402

__all__ = ["claim", "screen"]

pytestmark = pytest.mark.timeout(300)

LATE_RANK = os.path.join(ROOT, "tests", "targets", "late_rank.py")
JOB = """
import os, queue, time

def fetch(batches):
    return batches.get()

def train():
    while True:
        time.sleep(0.05)

def main():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    if os.environ["RANK"] == "2":
        fetch(queue.Queue())
    train()

main()
"""


@pytest.fixture
def ranks(claim):
    return [claim(rank, 5, name="fleet.py", source=JOB, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="5") for rank in range(4)]


def has_agent(probing, job):
    return [row["agent"] for row in probing("cluster", "ranks", str(job.pid), "--json", timeout=60).ok().json()["rows"][:4]]


def test_ranks(ranks, screen, probing_top, probing, ptrace):
    s = screen(110, 30)
    s.shell(f"{probing_top.path} job:{ranks[0].pid}; echo status=$?")
    s.wait_for("4/5 ranks")
    s.wait_for("Queue.get < fleet.py:5")
    s.wait_for("- missing")  # rank 4
    s.keys("Enter")
    s.wait_for("rank 4 has no process")
    s.type("O")
    s.wait_for("> fetch fleet.py:5 > Queue.get")
    s.type("/fetch")
    s.keys("Enter", "Enter")
    s.wait_for("Ranks 1 of 5   FILTER rank:2")
    assert has_agent(probing, ranks[0]) == ["no"] * 4  # they were only read

    s.keys("Enter")
    s.wait_for(f"rank 2 of 5  pid {ranks[2].pid}")
    s.wait_for("Stack of MainThread")
    assert has_agent(probing, ranks[0]) == ["no", "no", "yes", "no"]
    s.type("]")
    s.wait_for(f"rank 3 of 5  pid {ranks[3].pid}")
    s.type("]")  # past rank 4, which has no process
    s.wait_for(f"rank 0 of 5  pid {ranks[0].pid}")

    s.type("pA")
    s.wait_for("Ranks 5 of 5")
    s.wait_for("0*")
    os.kill(ranks[3].pid, signal.SIGKILL)
    s.wait_for("3/5 ranks")
    os.kill(ranks[1].pid, signal.SIGSTOP)
    s.wait_for("T stopped")
    os.kill(ranks[1].pid, signal.SIGCONT)
    s.wait_gone("T stopped")
    s.type("q")
    s.wait_for("status=0")


def test_earlier_moments(ranks, screen, probing_top, wait_until):
    s = screen(110, 30)
    s.shell(f"{probing_top.path} job:{ranks[0].pid}; echo status=$?")
    s.wait_for("4/5 ranks")
    s.type(".")
    s.wait_for("this is now: , steps back")
    os.kill(ranks[3].pid, signal.SIGKILL)
    s.wait_for("3/5 ranks")
    s.type(",")
    s.wait_for("FROZEN  at ")
    wait_until(lambda: "4/5 ranks" in s.text() or s.type(","), 30, "the moment before it was lost")
    s.type(":at 1h")
    s.keys("Enter")
    s.wait_for("nothing is kept of that time")
    s.wait_for("4/5 ranks")
    s.keys("End")
    s.wait_gone("FROZEN")
    s.wait_for("3/5 ranks")
    s.type(":at 10:61")
    s.keys("Enter")
    s.wait_for("'10:61' is not a time")
    s.type("q")
    s.wait_for("status=0")


def test_offer(ranks, screen, probing_top, ptrace):
    """A process that is a rank offers its job: a key shows all of them."""
    s = screen(110, 30)
    s.shell(f"{probing_top.path} {ranks[1].pid}; echo status=$?")
    s.wait_for(f"rank 1 of 5  pid {ranks[1].pid}")
    s.type("p")
    s.wait_for("4/5 ranks")
    s.wait_for("1*")
    s.type("[")
    s.wait_for("0*")
    s.type("2")
    s.wait_for(f"rank 0 of 5  pid {ranks[0].pid}")
    s.type("q")
    s.wait_for("status=0")


def test_some(ranks, screen, probing_top, ptrace):
    """The target names a rank, which is opened, or some, which are shown."""
    s = screen(110, 30)
    s.shell(f"{probing_top.path} job:{ranks[0].pid}/2; echo status=$?")
    s.wait_for(f"rank 2 of 5  pid {ranks[2].pid}")
    s.type("q")
    s.wait_for("status=0")
    s.shell(f"clear; {probing_top.path} --screen stacks job:{ranks[0].pid}/1-2; echo status=$?")
    s.wait_for("Stacks   2 stacks of 4 ranks")
    s.wait_for("- (missing: ")  # rank 4
    s.type("p")
    s.wait_for("Ranks 2 of 5   FILTER rank:1-2")
    s.type("q")
    s.wait_for("status=0")
    s.shell(f"clear; {probing_top.path} --filter rank:2 job:{ranks[0].pid}; echo status=$?")
    s.wait_for("Ranks 1 of 5   FILTER rank:2")
    s.type("q")
    s.wait_for("status=0")


def test_exports(ranks, probing_top):
    """The screens as text and JSON, of a job and of a process that is a rank of it."""
    job = f"job:{ranks[0].pid}"
    text = probing_top(job, "--export", "txt", "--screen", "ranks", "--rows", "20", "--cols", "90", timeout=60).ok().stdout
    assert "4/5 ranks" in text and "Queue.get < fleet.py:5" in text and len(text.splitlines()) == 20
    assert all(len(line) <= 90 for line in text.splitlines())
    text = probing_top(job, "--filter", "rank:2", "--export", "txt", "--screen", "stacks", "--cols", "120", timeout=60).ok().stdout
    assert "fetch fleet.py:5 > Queue.get" in text and "train fleet.py:9" not in text
    refused = probing_top(job, "--filter", "rank:2", "--export", "json", "--screen", "stacks", timeout=60)
    assert refused.status == 2 and "--filter is not for the stacks as json" in refused.stderr
    refused = probing_top(f"{job}/1-2,4", "--export", "json", "--screen", "ranks", timeout=60)
    assert refused.status == 3 and "no process of this machine is rank 4" in refused.stderr
    answer = probing_top(f"{job}/1-2", "--export", "json", "--screen", "ranks", timeout=60).ok().json()
    assert answer["schema_version"] == 1 and answer["world"] == 5 and answer["judged"] is False and answer["verdicts"] == []
    assert {"lag_ms", "gpu_util_pct", "gpu_mem_bytes"} <= set(answer["ranks"][0])
    assert [(row["rank"], row["pid"], row["where"], row["agent"]) for row in answer["ranks"]] == [
        (1, ranks[1].pid, "train fleet.py:9", False), (2, ranks[2].pid, "Queue.get < fleet.py:5", False)]
    answer = probing_top(ranks[3].pid, "--export", "json", "--screen", "stacks", timeout=60).ok().json()
    assert [(row["n"], row["ranks"], row["majority"], row["state"]) for row in answer["stacks"]] == [
        (1, "2", False, None), (3, "0-1,3", True, None), (1, "4", False, "missing")]
    assert [frame["func"] for frame in answer["stacks"][1]["frames"]] == ["train", "main", "<module>"]
    refused = probing_top(job, "--export", "svg", "--screen", "ranks")
    assert refused.status == 2 and "--screen is for --export txt" in refused.stderr


@pytest.mark.parametrize("fault", ["loader_queue", "backward"])
def test_hung(fault, torch_python, torch_fork, tmp_path, screen, probing_top, ptrace):
    """A rank for which the others wait in a collective, or in a backward pass: it is named and marked, on its own screens, too, until it goes on."""
    job = Job(torch_python, tmp_path / "job", fault, ranks=4, bad=2, fork=torch_fork)
    try:
        job.wait("ready")
        s = screen(120, 30)
        s.shell(f"{probing_top.path} job:{job.target()}; echo status=$?")
        s.wait_for("4/4 ranks", 60)
        job.begin()
        s.wait_for("RANK 2: ", 90)
        s.wait_for("! waits", 60)
        s.wait_for("Queue.get < training.py:")
        s.keys("Home", "Enter")  # it is the first
        s.wait_for("rank 2 of 4", 60)
        s.wait_for(" RANK 2", 60)
        s.type("p")
        job.end_fault()
        s.wait_gone("RANK 2: ", 60)
        s.type("q")
        s.wait_for("status=0")
    finally:
        job.close()


def test_late_rank(claim, screen, probing_top, ptrace):
    """Ranks wait for one that has not been started yet: once it is there nobody says that it has no process."""
    def start(rank):
        return claim(rank, 4, source=LATE_RANK, LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="4")
    job = [start(rank) for rank in range(3)][0]
    s = screen(160, 30)
    s.shell(f"{probing_top.path} job:{job.pid}; echo status=$?")
    s.wait_for("3/4 ranks")
    s.wait_for("it has no process", 60)
    start(3)
    s.wait_for("4/4 ranks")
    s.wait_gone("it has no process", 30)
    s.type("q")
    s.wait_for("status=0")
