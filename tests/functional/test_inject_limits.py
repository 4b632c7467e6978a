# SPDX-License-Identifier: Apache-2.0
"""The time limit over all: what stood in the way is named, and nothing is left behind."""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import wait_until
from inject_support import (SLEEP, agent, broken_agent, check_nothing_left, compile_agent, inject, job, snapshot,
                            tool)

__all__ = ["agent", "broken_agent", "compile_agent", "inject", "job", "tool"]  # fixtures

HOLD = """
#include <link.h>
#include <stdlib.h>
#include <unistd.h>
int hold_vfork(void);
/* Sleeps inside the loader as long as the file is there. */
static int wait_for_file(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)info, (void)size, (void)arg;
    while (access(getenv("HOLD_WHILE"), F_OK) == 0)
        usleep(5000);
    return 1;
}
void hold_phdr(void) { (void)dl_iterate_phdr(wait_for_file, 0); }
/* The parent of a vfork waits until the child has ended, and cannot be interrupted in that. */
int hold_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        (void)wait_for_file(0, 0, 0);
        _exit(0);
    }
    return child;
}
"""


@pytest.fixture
def held(job, tmp_path):
    """held(body): a job and the file whose removal ends what it begins."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    path = tmp_path / "held"

    def start(body):
        (tmp_path / "hold.c").write_text(HOLD)
        library = str(tmp_path / "hold.so")
        subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-D_GNU_SOURCE", "-o", library, tmp_path / "hold.c"],
                       check=True)
        path.write_text("")
        return job(body, library, env={"HOLD_WHILE": str(path)}), path
    yield start
    path.unlink(missing_ok=True)


def refused(result, *words):
    assert result.status == 3 and result.stderr.count("\n") == 1, result
    for word in words:
        assert word in result.stderr, result


def test_the_loader_is_busy(held, inject, agent):
    """Another thread of the job holds its lock: only our own thread waits, and goes when it gets it."""
    running, path = held("threading.Thread(target=ctypes.CDLL(sys.argv[2]).hold_phdr, daemon=True).start()" + SLEEP)
    running.goes_on()
    before = snapshot(running)
    refused(inject(running.pid, agent, 1000), "waiting for its dynamic loader", "was undone")
    running.goes_on()
    tids = before[2]
    assert running.masks(tids) == before[3]
    path.unlink()
    wait_until(lambda: set(running.target.tids()) <= set(tids), 20, "our thread to go")
    assert not running.memory_files()
    running.goes_on()
    inject(running.pid, agent).ok()
    running.goes_on()


def test_a_thread_that_cannot_be_interrupted(held, inject, agent):
    running, path = held("""
ready()
ctypes.CDLL(sys.argv[2]).hold_vfork()
""" + SLEEP.replace("ready()", ""))
    wait_until(lambda: running.target.state() == "D", 20, "the parent of a vfork")
    before = snapshot(running)
    refused(inject(running.pid, agent, 500), "no safe point", "its thread is in an uninterruptible wait (state D)")
    assert running.target.state() == "D"
    path.unlink()
    check_nothing_left(running, before)


@pytest.mark.timeout(240)
def test_a_job_that_hardly_gets_a_processor(job, inject, broken_agent):
    """It runs only when nobody else wants its processor, and somebody always does: for as long as it takes, a borrowed thread
    waits to be put back as it was, and where the time ends in the middle, what was made in it goes again."""
    running = job(SLEEP)
    inject(running.pid, broken_agent)
    before = snapshot(running)
    processor = {min(os.sched_getaffinity(0))}
    hog = subprocess.Popen([sys.executable, "-c", "while True: pass"],
                           preexec_fn=lambda: os.sched_setaffinity(0, processor))
    try:
        for tid in running.target.tids():
            os.sched_setaffinity(tid, processor)
            os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
        for timeout_ms in (250, 500, 1000, 2000, 4000, 8000):
            refused = inject(running.pid, broken_agent, timeout_ms)
            assert refused.status == 3 and refused.stderr.count("\n") == 1, refused
            assert "could not load the agent" in refused.stderr or "try again" in refused.stderr, refused
    finally:
        hog.kill()
        hog.wait()
    check_nothing_left(running, before)
    assert not running.memory_files()


def test_hardly_any_time(job, probing):
    """Whatever the time was too short for is named, and the job continues."""
    running = job(SLEEP)
    for _ in range(15):
        done = probing(str(running.pid), "inject", "--timeout", "0.01")
        if done.status == 0:
            assert probing(str(running.pid), "eject").status == 0
        else:
            assert done.status == 3 and f"process {running.pid}" in done.stderr and "try again" in done.stderr, done
        running.goes_on()
