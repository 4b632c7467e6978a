# SPDX-License-Identifier: Apache-2.0
"""What a job has started: listed below it, shown below its threads, read from outside, opened when asked for."""

import os
import signal

import pytest

from conftest import wait_until
from test_tui_tmux import screen

__all__ = ["screen"]  # a fixture

# A job with two forked workers, one started by a shell, and a program that is no Python.
FAMILY = """
import os, subprocess, sys, threading, time
def collate_in_worker():
    while True:
        time.sleep(0.01)
def serve_by_shell():
    while True:
        time.sleep(0.01)
if sys.argv[1:] == ["serve"]:
    os.write(int(os.environ["READY_FD"]), b"%d\\n" % os.getpid())
    serve_by_shell()
sleeper = subprocess.Popen(["sleep", "1000"])
forked = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        collate_in_worker()
    forked.append(pid)
reader, writer = os.pipe()
shell = subprocess.Popen(["sh", "-c", '"$0" "$1" serve; true', sys.executable, __file__],
                         env=dict(os.environ, READY_FD=str(writer)), pass_fds=(writer,))
served = int(os.read(reader, 100))
def main_of_the_job():
    os.write(int(os.environ["READY_FD"]), b"%d %d %d %d\\n" % (forked[0], forked[1], served, sleeper.pid))
    while True:
        time.sleep(0.01)
main_of_the_job()
"""


@pytest.fixture
def family(target):
    """The job, and the pids of what it has started: two workers, one by a shell, and no Python."""
    job = target(FAMILY, name="family.py")
    job.workers = list(map(int, job.ready.split()))[:2]
    job.served, job.sleeper = list(map(int, job.ready.split()))[2:]
    return job


def untouched(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return "libprobing" not in maps.read()


def test_the_tree(family, probing):
    rows = {row["pid"]: row for row in probing("list", "--json").ok().json()["processes"]}
    for child in [*family.workers, family.served]:
        assert rows[child]["parent_pid"] == family.pid
    assert rows[family.served]["ppid"] != family.pid  # there is a shell in between
    assert family.sleeper not in rows
    for locale, branches in (("C.UTF-8", "├└"), ("C", "|`")):
        lines = probing("list", "--tree", env={"LC_ALL": locale}).ok().stdout.splitlines()
        at = next(i for i, line in enumerate(lines) if line.split()[0] == str(family.pid))
        below = lines[at + 1:at + 4]
        assert sorted(int(line.split()[0]) for line in below) == sorted([*family.workers, family.served])
        marks = [branches[0], branches[0], branches[1]]
        assert all(mark in line for mark, line in zip(marks, below)), below
    # Without it, by pid. Below are lines about processes of others that could not be read just then.
    lines = probing("list").ok().stdout.partition("\n\n")[0].splitlines()[1:]
    pids = [int(line.split()[0]) for line in lines if not line.startswith("(")]
    assert pids == sorted(pids)


def test_children_below_their_parent(family, screen, probing, probing_top, ptrace):
    s = screen(columns=120, rows=40)
    s.shell(f"{probing_top.path} --screen threads {family.pid}; echo status=$?")
    s.wait_for("main_of_the_job")
    s.wait_for("collate_in_worker")
    s.wait_for("serve_by_shell")

    def line_of(pid):
        return next((line for line in s.text().splitlines() if line.split()[:1] == [str(pid)]), "")
    wait_until(lambda: all("_in_worker" in line_of(pid) for pid in family.workers), 20, "both workers")
    assert "serve_by_shell" in line_of(family.served) and not line_of(family.sleeper)
    assert all("─" in line_of(pid) for pid in [*family.workers, family.served])
    assert all(untouched(pid) for pid in [*family.workers, family.served])

    # Choose the first worker, go into it, and back.
    s.type(f"/{family.workers[0]}")
    s.keys("Enter")
    s.wait_for(f"process {family.workers[0]}: ")
    s.type("C")
    s.wait_for(f"pid {family.workers[0]}  ")
    s.wait_for("Stack of MainThread")
    s.wait_gone("main_of_the_job ")
    wait_until(lambda: not untouched(family.workers[0]), 20, "the agent in the first worker")
    assert untouched(family.workers[1])
    assert probing(str(family.workers[0]), "status", "--json").ok().json()["clients"] >= 1
    s.type("C")
    s.wait_for(f"pid {family.pid}  ")
    s.wait_for("main_of_the_job")
    s.wait_for("serve_by_shell")

    # One that ends goes.
    os.kill(family.served, signal.SIGKILL)
    s.wait_gone("serve_by_shell")
    assert "collate_in_worker" in s.text()
    s.keys("q")
    s.wait_for("status=0")


def test_children_of_a_job_that_is_read_from_outside(family, screen, probing_top):
    s = screen(columns=120, rows=40)
    s.shell(f"{probing_top.path} --screen threads --no-inject {family.pid}")
    s.wait_for("main_of_the_job")
    s.wait_for("serve_by_shell")
    s.type(f"/{family.served}")
    s.keys("Enter")
    s.type("C")
    s.wait_for(f"pid {family.served}  ")
    assert untouched(family.pid) and untouched(family.served)
    s.keys("q")


def test_the_picker_shows_the_tree(family, screen, probing_top):
    s = screen(columns=160, rows=50)
    s.shell(f"{probing_top.path} --screen threads")
    s.wait_for("Which Python process?")
    s.type("\\family.py")
    s.keys("Enter")
    wait_until(lambda: all(any(line.split()[:1] == [str(pid)] and "─" in line for line in s.text().splitlines())
                           for pid in [*family.workers, family.served]), 20, "the workers below the job")
    s.keys("q")


@pytest.mark.parametrize("workers", [2])
def test_workers_of_a_dataloader(target, screen, torch_python, probing_top, ptrace, workers):
    job = target(f"""
import os, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        time.sleep(0.05)
        return torch.zeros(4)
for i, batch in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers={workers})):
    if i == 0:
        os.write(int(os.environ["READY_FD"]), b"ready\\n")
""", python=torch_python, timeout=120)
    s = screen(columns=160, rows=50)
    s.shell(f"{probing_top.path} --screen threads {job.pid}")
    wait_until(lambda: sum("__getitem__" in line and "─" in line for line in s.text().splitlines()) == workers, 30,
               "the workers in their data set")
    s.keys("q")
