# SPDX-License-Identifier: Apache-2.0
"""An exception that nobody in the job catches: told, kept for a while with pdb over it, and let go."""

import socket

import pytest

from test_pause import MORE, Talker, value

pytestmark = pytest.mark.timeout(240)

JOB = r'''
import os, sys, threading, time

box, said = [], []

def fail(what):
    cause = what * 2
    raise ValueError("it is " + cause)

def run():
    fail("thread")

if len(sys.argv) > 1:
    sys.excepthook = lambda *what: said.append(what[0].__name__) or print("own hook", flush=True)
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    if box:
        box.pop()()
    time.sleep(0.002)
'''

# What was there before is there again.
HOOKS = "import sys, threading\n[sys.excepthook is sys.__excepthook__, getattr(threading, 'excepthook', 1) is getattr(threading, '__excepthook__', getattr(threading, 'excepthook', 1))]"


def arm(probing, job, *options):
    assert probing(str(job.pid), "catch", "--json", "--timeout", "60", *options, timeout=90).ok().json() == {
        "schema_version": 1, "armed": True, "caught": False, "signals": "SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT",
        "left_alone": ""}


def caught(probing, job, wait_until):
    def look():
        done = probing(str(job.pid), "catch", "--status", "--json", timeout=60).ok().json()
        return done if done["caught"] else None
    return wait_until(look, 60, "the exception to be told")


def is_caught(probing, job):
    return probing(str(job.pid), "catch", "--status", "--json", timeout=60).ok().json()["caught"]


def on_main(probing, job, what):
    value(probing, job, f"box.append({what})\n1")


def in_thread(probing, job):
    """On one of its own, which the main thread starts."""
    on_main(probing, job, "lambda: threading.Thread(target=run, name='doomed').start()")


@pytest.mark.parametrize("minor", ["3.6", "3.8", "3.11", "3.13"])
def test_main_thread(probing, target, python_for, wait_until, minor):
    job = target(JOB, python=python_for(minor))
    arm(probing, job)
    on_main(probing, job, "lambda: fail('main')")
    document = caught(probing, job, wait_until)
    assert document["thread"] == "MainThread" and document["exception"] == "ValueError: it is mainmain"
    assert document["traceback"] == job.output() and document["traceback"].count("Traceback") == 1
    text = probing(str(job.pid), "catch", "--status").ok().stdout
    assert "ValueError: it is mainmain" in text and f"\nnc {document['address'].replace(':', ' ')}\n{document['token']}\n" in text
    talker = Talker(document["address"], document["token"])
    assert "ValueError: it is mainmain in MainThread" in talker.prompt()
    assert "fail()" in talker.ask("where") and talker.ask("p cause").strip() == "'mainmain'"
    assert "<module>()" in talker.ask("up") + talker.ask("up") and "but not step" in talker.ask("next")
    threads = talker.ask("threads")
    assert "MainThread" in threads and "has raised at" in threads and "fail" in threads and job.alive()
    query = ("query", "SELECT text FROM probing.events WHERE kind = 'uncaught exception'", "--json")

    def row():
        rows = probing(str(job.pid), *query, timeout=60).ok().json()["rows"]
        return rows and rows[0]["text"]
    event = wait_until(row, 60, "the row of the table")
    assert document["address"] in event and event.endswith("ValueError: it is mainmain\n")
    assert "the job continues: continue" in talker.leave("continue")
    wait_until(lambda: not job.alive(), 60, "it to end as it would have")
    assert job.process.wait(30) == 1 and job.output() == document["traceback"]


@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.13"])
def test_another_thread(probing, target, python_for, wait_until, minor):
    """The job goes on meanwhile, and catches again."""
    job = target(JOB, python=python_for(minor))
    assert value(probing, job, HOOKS) == [True, True]
    arm(probing, job, "127.0.0.1:0")
    for way in ("quit", "leave", "limit"):
        if way == "limit":
            assert probing(str(job.pid), "catch", "--off").ok().stdout == "exceptions are no longer caught\n"
            assert value(probing, job, HOOKS) == [True, True]
            arm(probing, job, "--limit", "2s")
        in_thread(probing, job)
        document = caught(probing, job, wait_until)
        assert document["thread"] == "doomed" and document["traceback"].count("Traceback") == 1
        if way != "limit":
            talker = Talker(document["address"], document["token"])
            talker.prompt()
            assert talker.ask("p what").strip() == "'thread'"
            talker.leave("quit") if way == "quit" else talker.socket.close()
        wait_until(lambda: not is_caught(probing, job), 60, "the thread to go on")
    again = probing(str(job.pid), "catch")
    assert again.status == 1 and again.stderr == "probing: exceptions are caught already: catch --off ends that\n"
    probing(str(job.pid), "catch", "--off").ok()
    assert value(probing, job, HOOKS) == [True, True] and value(probing, job, MORE) == []
    assert job.output().count("Traceback") == 3 and job.alive()


def test_off_and_eject_let_go(probing, target, any_python, wait_until):
    job = target(JOB)
    for way in ("catch", "eject"):
        arm(probing, job)
        in_thread(probing, job)
        document = caught(probing, job, wait_until)
        talker = Talker(document["address"], document["token"])
        talker.prompt()
        probing(str(job.pid), *((way, "--off") if way == "catch" else (way,)), timeout=60).ok()
        assert "ended from outside" in talker.end()
    assert value(probing, job, HOOKS) == [True, True]
    wait_until(lambda: value(probing, job, MORE) == [], 60, "its thread to end")


def test_the_training_example_ends_when_it_is_let_go(probing, training, wait_until):
    """With its loader's workers, which an exception that is kept keeps, too."""
    pid = str(training.pid)
    probing(pid, "catch").ok()
    probing(pid, "eval", "loss_of = None").ok()
    wait_until(lambda: "is held until continue" in probing(pid, "catch", "--status").ok().stdout, 60, "the exception")
    probing(pid, "catch", "--off").ok()
    wait_until(lambda: not training.alive(), 60, "its end")
    assert training.process.returncode == 1 and "TypeError: 'NoneType' object is not callable" in training.output()


def test_hooks_of_the_job_are_called_and_kept(probing, target, any_python, wait_until):
    job = target(JOB, "own")
    arm(probing, job)
    # Somebody puts one in front of ours: that stays, and ours does nothing any more.
    value(probing, job, "import sys\nours = sys.excepthook\nsys.excepthook = lambda *what: ours(*what)\n1")
    probing(str(job.pid), "catch", "--off").ok()
    assert value(probing, job, "sys.excepthook is not ours and sys.excepthook.__name__") == "<lambda>"
    arm(probing, job)
    on_main(probing, job, "lambda: fail('main')")
    document = caught(probing, job, wait_until)
    assert job.output() == "own hook\n" and value(probing, job, "said") == ["ValueError"]
    Talker(document["address"], document["token"]).leave("continue")
    wait_until(lambda: not job.alive(), 60, "it to end")
    assert job.output() == "own hook\n"


def test_what_is_not_kept(probing, target, any_python, wait_until):
    """A child that was forked, and what is meant to end the job."""
    job = target(JOB)
    arm(probing, job)
    on_main(probing, job, "lambda: os.fork() or fail('child')")
    wait_until(lambda: "childchild" in job.output(), 60, "the child to raise")
    wait_until(lambda: value(probing, job, "os.waitpid(-1, os.WNOHANG)[0] > 0"), 60, "the child to end")
    assert not is_caught(probing, job) and job.alive()
    # It may end before the answer is out.
    probing(str(job.pid), "execute", "-", stdin="box.append(lambda: sys.exit(7))\n1", timeout=60)
    wait_until(lambda: not job.alive(), 60, "it to end")
    assert job.process.wait(30) == 7


def test_no_descriptor_is_left(probing, target, any_python, wait_until):
    """pdb can listen nowhere: the job ends as it would have, and nothing of ours stands in what it says."""
    job = target(JOB)
    arm(probing, job)
    # it may have ended before the answer to this is read
    probing(str(job.pid), "execute", "-", stdin="box.append(lambda: (__import__('resource').setrlimit(7, (3, 3)), fail('main')))\n1", timeout=60)
    wait_until(lambda: not job.alive(), 60, "it to end")
    assert job.process.wait(30) == 1 and job.output().count("Traceback") == 1 and job.output().endswith("ValueError: it is mainmain\n"), job.output()


def test_bad_input(probing, target, any_python):
    job = target(JOB)
    for bad, said in ((["nonsense"], "nonsense"), (["--off", "--status"], "cannot be combined"), (["--status", "1"], "cannot be combined")):
        done = probing(str(job.pid), "catch", *bad)
        assert done.status == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = probing(str(job.pid), "catch", f"127.0.0.1:{taken.getsockname()[1]}")
        assert done.status == 1 and "in use" in done.stderr and done.stderr.count("\n") == 1, done
    assert not is_caught(probing, job) and value(probing, job, HOOKS) == [True, True]
