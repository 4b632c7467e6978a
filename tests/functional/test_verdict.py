# SPDX-License-Identifier: Apache-2.0
"""probing PID verdict: what is said of real training jobs of which it is known what is the matter; and of those that are fine, nothing."""

import os
import signal

import pytest
from conftest import wait_until
from training_job import training_job  # noqa: F401

ACCUSING = ("warning", "bad")
STANDS = "SELECT tid, count(*) AS n, max(timestamp) - now() AS newest, gil FROM python.samples WHERE timestamp > now() - 20 GROUP BY tid, gil"


def judge(job):
    """{code: verdict}: the one of each."""
    document = job.probing(str(job.pid), "verdict", "--json").ok().json()
    assert document["schema_version"] == 1
    for one in document["verdicts"]:
        assert one["pid"] == job.pid and one["text"] and one["advice"]
        assert one["measured"] >= one["threshold"]
    return {one["code"]: one for one in document["verdicts"]}


def wait_for(job, code, timeout=150):
    """All verdicts of the moment in which that one was said."""
    said = []

    def told():
        said[:] = [judge(job)]
        return said[0] if code in said[0] else None
    try:
        return wait_until(told, timeout, f"{code} to be said", interval=1)
    except BaseException:
        print(f"instead of {code}: {said}; {job.probing(str(job.pid), 'query', STANDS).stdout}")
        raise


@pytest.mark.timeout(300)
def test_a_job_that_is_fine(training_job):  # noqa: F811
    """Nothing but how it gets on. A machine that is busy with other things makes it slower indeed: that may be said."""
    job = training_job("cnn")
    job.wait_steps(80)
    said = judge(job)
    assert {code for code, one in said.items() if one["level"] in ACCUSING} <= {"SLOW"}, said
    assert "MOVING" in said or "SLOW" in said
    if "MOVING" in said:
        evidence = said["MOVING"]["evidence"]
        truth = job.end()
        newest = [step["ended"] - step["began"] for step in truth.steps][-evidence["n"]:]
        assert 0.5 < evidence["rate"] * sum(newest) / len(newest) < 2  # not of the same steps


@pytest.mark.timeout(500)
@pytest.mark.parametrize("name,code", [("slow_loader", "INPUT-BOUND"), ("gc_bomb", "GC PAUSES"), ("gil_hog", "GIL CONTENTION"), ("leak", "MEMORY CREEP")])
def test_what_is_the_matter(training_job, name, code):  # noqa: F811
    # It has to grow for half a minute, which need not be one of work.
    job = training_job(name, *(["--wait", 0.03] if code == "MEMORY CREEP" else []))
    verdicts = wait_for(job, code)
    said = verdicts[code]
    assert said["level"] == "warning"
    if code == "GIL CONTENTION":
        assert said["evidence"]["holder"] == "hog"
    if code == "MEMORY CREEP":  # a tensor of 32 x 256 numbers is kept at each step, and what the allocator cannot use between them
        assert said["evidence"]["a_step"] > 0.8 * 32 / 1024, said
    if code == "GC PAUSES":
        assert "collect" in said["text"]
    if code == "INPUT-BOUND":
        if "worker" in said["evidence"]:  # the tables of loaders are there
            wait_until(lambda: judge(job)[code]["evidence"]["worker"] == 1, 60, "the slow worker to be named", interval=0.5)
        assert 0 < said["evidence"]["data_ms"] < said["evidence"]["step_ms"]
    wrong = {"INPUT-BOUND", "GC PAUSES", "GIL CONTENTION", "MEMORY CREEP", "NAN", "STUCK", "COMPUTE-BOUND"} - {code}
    assert not wrong & set(verdicts), verdicts


@pytest.mark.timeout(300)
def test_stuck_and_on_again(training_job):  # noqa: F811
    """Workers that stand still: the main thread waits for them, and goes on when they do."""
    job = training_job("slow_loader")
    job.wait_steps(30)
    with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as file:
        workers = [int(pid) for pid in file.read().split()]
    assert len(workers) == 2
    try:
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        said = wait_for(job, "STUCK")["STUCK"]
        assert said["level"] == "bad" and said["evidence"]["age"] >= 6
        assert "the main thread stands in" in said["text"] and ".py:" in said["text"]
        assert "of its DataLoader, from worker" in said["text"] and "is stopped" in said["text"], said["text"]
        assert said["screen"] == "threads"
        text = job.probing(str(job.pid), "verdict").ok().stdout
        assert text.startswith("STUCK") and "INPUT-BOUND" not in text
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "STUCK" not in judge(job), 60, "the job to go on", interval=0.5)


@pytest.mark.timeout(300)
def test_afterwards(training_job):  # noqa: F811
    """The same of what a job has left that was killed."""
    job = training_job("slow_loader")
    wait_for(job, "INPUT-BOUND")
    os.kill(job.pid, signal.SIGKILL)
    job.target.process.wait()
    assert "INPUT-BOUND" in judge(job)


def test_no_torch_no_steps(target, probing):
    """A program that does not train, and sleeps: that is what is said of it, and nothing is held against it."""
    program = target('import os, time\nos.write(int(os.environ["READY_FD"]), b"ready\\n")\nwhile True: time.sleep(0.01)\n')
    document = probing(str(program.pid), "verdict", "--json").ok().json()
    assert [(one["code"], one["level"]) for one in document["verdicts"]] == [("IDLE", "note")]
