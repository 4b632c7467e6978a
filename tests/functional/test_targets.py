# SPDX-License-Identifier: Apache-2.0
"""Several live jobs in one probing-top, and what it writes down of them."""

import os
import signal

import pytest

from test_tui_tmux import Screen

pytestmark = pytest.mark.timeout(400)

JOB = """
import os, time

def spin_NAME():
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        pass

os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    spin_NAME()
"""

# Each look of the collector at so many objects takes more than 50 ms on any machine; some hundred more where it is slow.
GC_JOB = """
import gc, os, time

keep = [[i] for i in range(800_000)]

def collect():
    gc.collect()

os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    collect()
    time.sleep(0.2)
"""


@pytest.fixture
def patient(tmux, tmp_path, wait_until):
    """Screens on a machine that does much else."""
    opened = []

    class PatientScreen(Screen):
        def wait_for(self, text, timeout=90):
            super().wait_for(text, timeout)

    def start(columns=150, rows=40):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        opened.append(PatientScreen(tmux, folder, columns, rows, wait_until))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_two_jobs(patient, target, probing_top, ptrace):
    """Both are in the tree of threads; each has its own stacks when it is shown; one dies, and the other goes on."""
    alpha = target(JOB.replace("NAME", "alpha"), name="alpha.py")
    beta = target(JOB.replace("NAME", "beta"), name="beta.py")
    s = patient()
    s.shell(f"{probing_top.path} --screen threads {alpha.pid} {beta.pid} {alpha.pid}; echo status=$?")
    s.wait_for(f"1/2  pid {alpha.pid}")
    s.wait_for("Stack of MainThread")
    s.wait_for("spin_alpha")
    s.wait_for("spin_beta")  # in the tree
    s.type("p")
    s.wait_for("Targets 2")
    s.keys("Down", "Enter")
    s.wait_for(f"2/2  pid {beta.pid}")
    s.type("1")
    s.wait_for("own time on the CPU")
    s.wait_for("spin_beta")
    assert "spin_alpha" not in s.text()
    s.type("2p")
    s.wait_for("Targets 2")
    os.kill(alpha.pid, signal.SIGKILL)
    s.wait_for("GONE")
    s.keys("Escape")
    s.wait_for("CONNECTED")
    s.wait_for("spin_beta")
    s.type("L")
    s.wait_for(f"{alpha.pid}: the target is gone")
    s.type("p")
    s.keys("Up", "Enter")
    s.wait_for("TARGET GONE")
    s.type("2")
    s.wait_for("spin_alpha")  # what it did last
    s.type("Q")
    s.wait_for("status=4")
    assert beta.alive()


def test_jobs_that_are_tagged(patient, target, probing_top, ptrace):
    """Enter in the choice of a process attaches to all that are tagged; one that is gone by then is left out."""
    jobs = [target(JOB.replace("NAME", name), name=f"{name}.py") for name in ("alpha", "beta", "gamma")]
    s = patient()
    s.shell(f"{probing_top.path} --screen threads -F '{'|'.join(str(job.pid) for job in jobs)}'; echo status=$?")
    s.wait_for("Python processes 3 of")
    s.keys("Home")
    s.type("   ")
    s.wait_for("3 tagged")
    os.kill(jobs[2].pid, signal.SIGKILL)
    s.keys("Enter")
    s.wait_for("CONNECTED")
    s.wait_for("/2  pid ")
    s.type("p")
    s.wait_for("Targets 2")
    s.type(" y")
    s.wait_for("1 tagged")
    s.keys("Down", "Enter")
    s.wait_for("2/2  pid ")
    s.type("Q")
    s.wait_for("status=0")
    assert jobs[0].alive() and jobs[1].alive()


def test_collections_are_logged(patient, target, probing_top, ptrace):
    job = target(GC_JOB, name="collects.py")
    s = patient()
    s.shell(f"{probing_top.path} --screen threads {job.pid}; echo status=$?")
    s.wait_for("Stack of MainThread")
    s.type("1")
    s.wait_for("garbage collection: about")
    s.wait_for("last long one")
    s.type("L")
    s.wait_for("connected to agent")
    s.wait_for(" ms in MainThread")
    s.type("q")
    s.wait_for("status=0")
