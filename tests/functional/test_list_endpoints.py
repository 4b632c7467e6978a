# SPDX-License-Identifier: Apache-2.0
"""`probing list` shows where one comes into each job that has an agent, and who may: without asking the job, which may hang."""

import os
import re
import signal
import stat

import pytest

from test_catch import JOB as CATCH_JOB, arm, caught, in_thread
from test_debug import debugpy_for
from test_eval import HOG
from test_pause import JOB, Talker, pause

__all__ = ["debugpy_for"]

pytestmark = pytest.mark.timeout(240)


def row_of(probing, pid, **more):
    done = probing("list", "--json", timeout=60, **more).ok()
    return next(row for row in done.json()["processes"] if row["pid"] == pid)


def doors(probing, job, **more):
    row = row_of(probing, job.pid, **more)
    assert row["agent"] == bool(row["doors"])
    return {door.pop("kind"): door for door in row["doors"]}


def lines(probing, job):
    """The lines of this job in the table of listeners of the text."""
    _, _, below = probing("list", timeout=60).ok().stdout.partition("\n\n")
    assert not below or re.match(r" +PID  LISTENER +ADDRESS +ACCESS\n", below), below
    return [re.split(r"  +", line.strip())[1:] for line in below.splitlines() if line.split()[0] == str(job.pid)]


def socket_of(probing, job):
    return probing(str(job.pid), "status", "--json").ok().json()["endpoint"]


def opened(endpoint):
    return endpoint.replace(".sock", ".open")


def test_each_door(probing, target, any_python):
    job = target(JOB)
    row = row_of(probing, job.pid)
    assert row["doors"] == [] and row["eval"] is None and row["tcp"] is None and lines(probing, job) == []
    probing(str(job.pid), "inject").ok()
    endpoint = socket_of(probing, job)
    unix = {"address": endpoint, "token": False, "looking": False}
    assert doors(probing, job) == {"unix": unix} and row_of(probing, job.pid)["eval"] is True
    assert lines(probing, job) == [["unix", endpoint, "the job's user and root"]]
    assert stat.S_IMODE(os.stat(opened(endpoint)).st_mode) == 0o600

    address = probing(str(job.pid), "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]["address"]
    assert doors(probing, job) == {"unix": unix, "tcp": {"address": address, "token": True, "looking": False}}
    assert row_of(probing, job.pid)["tcp"] == address
    address = probing(str(job.pid), "listen", "[::1]:0", "--looking", "--json").ok().json()["tcp"]["address"]
    assert doors(probing, job)["tcp"] == {"address": address, "token": True, "looking": True}
    assert ["TCP", address, "read-only: the job's user, others with the token"] in lines(probing, job)

    probing(str(job.pid), "config", "probing.eval=off").ok()
    assert row_of(probing, job.pid)["eval"] is False
    assert lines(probing, job)[0] == ["unix", endpoint, "the job's user and root; probing.eval is off"]
    probing(str(job.pid), "listen", "off").ok()
    probing(str(job.pid), "config", "probing.eval=on").ok()
    assert doors(probing, job) == {"unix": unix} and row_of(probing, job.pid)["eval"] is True

    probing(str(job.pid), "eject").ok()
    assert doors(probing, job) == {} and lines(probing, job) == []
    folder = os.path.dirname(endpoint)
    assert not os.path.isdir(folder) or not [name for name in os.listdir(folder) if name.startswith(f"{job.pid}.")]


def test_paused(probing, target, any_python, wait_until):
    job = target(JOB)
    held = pause(probing, job)
    assert doors(probing, job)["pause"] == {"address": held["address"], "token": True, "looking": False}
    assert ["paused", held["address"], "pdb; anyone with its token"] in lines(probing, job)
    talker = Talker(held["address"], held["token"])
    talker.prompt()
    assert "pause" in doors(probing, job)
    talker.leave("continue")
    wait_until(lambda: "pause" not in doors(probing, job), 60, "the pause to be over")
    held = pause(probing, job, "--limit", "1s")
    wait_until(lambda: "pause" not in doors(probing, job), 60, "its time to be over")


def test_caught(probing, target, any_python, wait_until):
    """Nobody has asked for it just now: the job itself has come there."""
    job = target(CATCH_JOB)
    arm(probing, job)
    assert set(doors(probing, job)) == {"unix"}
    in_thread(probing, job)
    address = wait_until(lambda: doors(probing, job).get("catch"), 60, "the exception")["address"]
    assert address == caught(probing, job, wait_until)["address"]
    assert ["caught", address, "pdb; anyone with its token"] in lines(probing, job)
    probing(str(job.pid), "catch", "--off").ok()
    assert set(doors(probing, job)) == {"unix"}


def test_debugpy(probing, target, any_python, debugpy_for):
    job = target(JOB)
    began = probing(str(job.pid), "debug", "--json", "--exposed", "--timeout", "90", *debugpy_for(any_python), timeout=120).ok().json()
    address = f"127.0.0.1:{began['port']}"
    assert doors(probing, job)["debugpy"] == {"address": address, "token": False, "looking": False}
    assert ["debugpy", address, "anyone who can reach the address, without a token"] in lines(probing, job)
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
    assert set(doors(probing, job)) == {"unix"}


def test_a_job_that_hangs_is_listed_as_well(probing, target, build_dir, any_python):
    """One that is stopped, agent and all, and one whose GIL is never free."""
    job = target(JOB)
    address = pause(probing, job)["address"]
    os.kill(job.pid, signal.SIGSTOP)
    try:
        assert doors(probing, job)["pause"]["address"] == address and lines(probing, job)[1][:2] == ["paused", address]
    finally:
        os.kill(job.pid, signal.SIGCONT)
    hog = target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so"))
    probing(str(hog.pid), "listen", "127.0.0.1:0").ok()
    assert set(doors(probing, hog)) == {"unix", "tcp"} and row_of(probing, hog.pid)["eval"] is True


def test_eval_that_is_off_from_the_start(probing, target, any_python):
    job = target(JOB, env={"PROBING_EVAL": "off"})
    probing(str(job.pid), "inject").ok()
    assert row_of(probing, job.pid)["eval"] is False


def test_a_file_that_others_may_read_or_is_none_is_not_believed(probing, target, any_python):
    """Then it is not known what is open, and that is said."""
    job = target(JOB)
    pause(probing, job)
    file = opened(socket_of(probing, job))
    unknown = "the job's user and root; other listeners are unknown"
    os.chmod(file, 0o644)
    assert set(doors(probing, job)) == {"unix"} and row_of(probing, job.pid)["eval"] is None
    assert [line[2] for line in lines(probing, job)] == [unknown]
    os.chmod(file, 0o600)
    assert "pause" in doors(probing, job)
    with open(file, "wb") as out:
        out.write(b"eval maybe\n\npause\nnonsense 1.2.3.4:5\n pause 1.2.3.4:5\ndebugpy \x1b[31mred\n" + b"catch " + b"x" * 900)
    assert doors(probing, job)["debugpy"]["address"] == "\x1b[31mred" and len(doors(probing, job)) == 2
    assert row_of(probing, job.pid)["eval"] is None and "\x1b" not in probing("list").ok().stdout
    os.unlink(file)
    os.symlink("/dev/zero", file)
    assert set(doors(probing, job)) == {"unix"}
    os.unlink(file)
    os.mkfifo(file)
    assert set(doors(probing, job)) == {"unix"}
    os.unlink(file)


def test_a_child_has_none_of_them(probing, target, any_python, wait_until):
    """Forked while its parent is held, it takes nothing away from it, and is listed without."""
    job = target("""
import os, threading, time
def fork():
    if os.fork() == 0:
        time.sleep(600)
box = []
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    if box:
        box.pop()()
    time.sleep(0.002)
""")
    probing(str(job.pid), "listen", "127.0.0.1:0").ok()
    probing(str(job.pid), "eval", "box.append(fork)").ok()

    def child():
        return [row for row in probing("list", "--json").ok().json()["processes"] if row["ppid"] == job.pid]
    row, = wait_until(child, 60, "the child")
    assert row["doors"] == [] and row["agent"] is False
    os.kill(row["pid"], signal.SIGKILL)
    assert set(doors(probing, job)) == {"unix", "tcp"}
