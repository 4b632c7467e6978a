# SPDX-License-Identifier: Apache-2.0
"""Python 3.6 has no GIL before its first thread: its main thread is asked to make it, and nobody runs beside that thread."""

import os
import signal

import pytest

from conftest import wait_until

pytestmark = pytest.mark.timeout(240)

# Objects are made and freed all the time: who runs beside the main thread breaks it within a moment.
BUSY = """
import os
done = 0
def work():
    kept = {}
    for i in range(200):
        kept[str(i)] = [i] * 3
    return len(kept)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
try:
    while True:
        done += work() == 200
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

IN_C = """
import os, sys, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
while True:
    time.sleep(0.01)
"""


def late(job, probing):
    """Has nobody of ours had a GIL yet?"""
    done = probing(str(job.pid), "status", "--json", timeout=60).ok().json()
    return done["gil"]["holds"] == 0


@pytest.mark.parametrize("times", range(5))
def test_a_job_that_computes(target, probing, python_for, times):
    job = target(BUSY, python=python_for("3.6"))
    probing(str(job.pid), "inject", "--timeout", "60s", timeout=120).ok()
    before = 0
    for _ in range(10):
        now = int(probing(str(job.pid), "eval", "done", "--timeout", "60s", timeout=120).ok().stdout)
        assert now >= before and job.alive()
        before = now
    assert probing(str(job.pid), "backtrace", "--locals", "--repr", "--json", timeout=60).ok().json()["threads"]
    # The main thread is still the one that signals are for, and its work is right.
    wait_until(lambda: int(probing(str(job.pid), "eval", "done", "--timeout", "60s", timeout=120).ok().stdout) > before, 60, "it to go on")
    job.process.send_signal(signal.SIGINT)
    assert job.process.wait(60) == 0 and job.output() == "interrupted\n"


def test_looking_alone_makes_none(target, probing, python_for):
    job = target(BUSY, python=python_for("3.6"))
    probing(str(job.pid), "inject", "--timeout", "60s", timeout=120).ok()
    assert probing(str(job.pid), "backtrace", "--json", timeout=60).ok().json()["threads"]
    assert probing(str(job.pid), "query", "SELECT 1 AS one", "--json", timeout=60).ok().json()["rows"] == [{"one": 1}]
    assert late(job, probing)


def test_a_main_thread_in_c(target, probing, python_for, tmp_path):
    """It is not run beside; when it is back, it makes what it was asked for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    job = target(IN_C, pipe, python=python_for("3.6"))
    writer = os.open(pipe, os.O_WRONLY)
    done = probing(str(job.pid), "eval", "6*7", "--timeout", "2s", timeout=60)
    assert done.status == 1 and "Python 3.6 has none before its first thread" in done.stderr and "nothing was run, and nothing will be" in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout and late(job, probing)
    os.write(writer, b".")
    assert probing(str(job.pid), "eval", "6*7", "--timeout", "60s", timeout=120).ok().stdout == "42\n"
    os.close(writer)
    assert job.alive()
