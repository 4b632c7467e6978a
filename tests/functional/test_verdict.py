# SPDX-License-Identifier: Apache-2.0
"""probing PID verdict: what is said of real training jobs of which it is known what is the matter; and of those that are fine, nothing."""

import os
import re
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
@pytest.mark.parametrize("name,code", [("slow_loader", "INPUT-BOUND"), ("gc_bomb", "GC PAUSES"), ("gil_hog", "GIL CONTENTION"),
                                       pytest.param("leak", "MEMORY CREEP", marks=pytest.mark.long)])
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


@pytest.mark.long
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


SLEEPS = 'import os, time\nos.write(int(os.environ["READY_FD"]), b"ready\\n")\nwhile True: time.sleep(0.01)\n'
# What `--why` looks at in a job that sleeps: the verdict, from what on it is said, how it is known, and what of.
WHY = """\
HELD | 1 x | measured | time since the last step against what is usual, in a debugger
DEADLOCK | 80 % | measured | threads that wait for each other, if the training thread is off the CPU: its share of the last 4 s
IDLE | 90 % | inferred | no steps, and the training thread waits for requests, share of the last 5 s
IDLE | 80 % | inferred | a wait as servers have it: requests, a sleep, a child; share of the last 5 s
COMPILING | 50 % | sampled | torch's compiler, share of the last 5 s without a step
SAVING | 50 % | sampled | saving, share of the last 5 s without a step
LOADING | 50 % | sampled | loading, share of the last 5 s without a step
EVALUATING | 50 % | sampled | evaluation, share of the last 5 s without a step
BUSY | 1 x | sampled | time since the last step against what is usual, with a DataLoader worker at work
BUSY | 1 x | sampled | time since the last step against what is usual, in several places
STUCK | 1 x | sampled | time since the last step against what is usual, in one place
WAITS | 1 x | sampled | time since the last step against what is usual, waiting
SLOW | 1.5 x | measured | the newest tenth of the steps against those before (medians)
MOVING | any | measured | steps that end
STARTING | 50 % | sampled | imports, share of the last 5 s without a step
HUNG | 5.0 s | inferred | time in which no thread has run, waiting for a lock or a device
ENDED | yes | measured | a process that has ended, or a recording
NAN | yes | measured | search for the first value that is not finite: outputs and gradients
NAN | yes | measured | search for the first value that is not finite: backward hooks
NAN | 1 | measured | losses that are not finite, of the last 200 steps
NAN | 20 % | measured | gradients that are not finite, share of the steps that were read
INPUT-BOUND | 30 % | measured | waiting for a batch, share of a step
GC PAUSES | 5.0 % | measured | collecting garbage, share of a step
GC PAUSES | 7.0 % | measured | collecting garbage, share of the last 20 s (where steps do not know it)
GIL CONTENTION | 20 % | sampled | waiting for the GIL, share of the last 20 s
CHECKPOINT | 10 % | sampled | saving, share of the last minute
RECOMPILING | 10 % | sampled | torch's compiler after the first 10 s of steps, share of the last minute
LOGGING | 15 % | sampled | logging, share of the last 20 s
LOGGING | 20 % | sampled | writes that block, share of the last 20 s
OWN CODE | 25 % | sampled | one function outside loader, forward, backward and optimizer, share of the last 20 s
OVERSUBSCRIBED | 1.5 x | measured | threads that want to run against CPUs, last 15 s
OVERSUBSCRIBED | 30 % | measured | DataLoader workers against CPUs: waiting for a CPU or for their batches, share of the time
HOST BUSY | 30 % | measured | the training thread waits for a CPU that others have, share of the last 15 s
THROTTLED | 10 % | measured | kept from running by its control group, share of the last 20 s
STEAL | 20 % | measured | CPU time taken by the machine under this one
SWAPPING | 10 % | measured | waiting for memory, share of the last 20 s, with pages that come from a disk
PRESSURE | 20 % | measured | waiting for memory, share of the last 20 s, without such pages
DISK | 30 % | sampled | the training thread waits for a device, share of the last 20 s
COMPUTE-BOUND | 70 % | measured | forward, backward and optimizer, share of a step"""
REASON = r" \((other evidence is against it|not enough data yet|no data about it|no table \S+|only while steps end( and nothing is wrong)?)\)$"
WHY_ROW = re.compile(r"(?P<code>.{14})  (?P<result>said|fine|unknown|not asked) +(?P<found>\S.*?)  +(?P<from>\S.*?)  (?P<how>measured|sampled|inferred) +(?P<what>\S.*)")


def test_why(target, probing):
    """A table of everything that was looked at; the same in JSON."""
    program = target(SLEEPS)
    text = probing(str(program.pid), "verdict", "--why").ok().stdout
    assert text.startswith("IDLE            the main thread waits on purpose, asleep, in <module> (")
    table = text[text.index("\n\n") + 2:].splitlines()
    assert table[0].split("  ")[0] == "VERDICT" and table[0].endswith("WHAT WAS CHECKED")
    rows, code = [], ""
    for line in table[1:]:
        row = WHY_ROW.fullmatch(line)
        assert row, line
        code = row["code"].strip() or code
        rows.append(dict(row.groupdict(), code=code))
        assert (row["found"] == "-") == (row["result"] in ("unknown", "not asked")), line
    assert [row["code"] for row in rows if row["result"] == "said"] == ["IDLE"]
    assert {row["result"] for row in rows if row["code"] in ("GC PAUSES", "INPUT-BOUND")} <= {"not asked", "unknown", "fine"}
    said = [f"{row['code']} | {row['from']} | {row['how']} | {re.sub(REASON, '', row['what'])}" for row in rows if row["code"] != "MEMORY CREEP"]
    assert "\n".join(said) == WHY
    looked = probing(str(program.pid), "verdict", "--json").ok().json()["checks"]
    assert [one["code"] for one in looked if one["code"] != "MEMORY CREEP"] == [line.split(" | ")[0] for line in WHY.split("\n")]
    for one in looked:
        assert one["result"] in ("said", "fine", "unknown", "not asked") and one["sure"] in ("measured", "sampled", "inferred"), one
        assert (one["measured"] is None) == (one["result"] in ("unknown", "not asked")), one
        assert (one["reason"] is not None) or one["result"] in ("said", "fine"), one
