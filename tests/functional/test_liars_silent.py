# SPDX-License-Identifier: Apache-2.0
"""A job whose /tmp is a file system that stops answering (FUSE, a network mount that died): who looks at it gives up in its time, says what did
not answer, and sees all others."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT, inject_in_time, processes_about
from test_sql_screen import PatientScreen

JOB = """
import os, time
def in_a_silent_place():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    while True:
        time.sleep(0.01)
in_a_silent_place()
"""
SAID = "its file system or its memory does not answer"
LIMIT_S = 20  # of two seconds, on a machine that does much else
pytestmark = pytest.mark.timeout(240)


class SilentJob:
    def __init__(self, python):
        reader, writer = os.pipe()
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", python, "-c", JOB], cwd="/", pass_fds=(writer,),
                                        env=dict(os.environ, READY_FD=str(writer)))
        os.close(writer)
        told = os.read(reader, 16)
        os.close(reader)
        self.pid, self.server = self.process.pid, None
        if not told:
            self.process.wait()
            pytest.skip("needs mount namespaces: unshare cannot make one here")

    def mount(self):
        """From now on its /tmp is that file system."""
        self.server = subprocess.Popen(["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", sys.executable,
                                        os.path.join(ROOT, "tests", "functional", "answering_files.py"), "/tmp"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        line = self.server.stdout.readline().strip()
        if line != "ready":
            self.end()
            pytest.skip(line or "needs FUSE")
        return self

    def tell(self, line):
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline() == "so\n"

    def end(self):
        if self.server:
            self.server.stdin.close()  # all that wait get an error
            self.server.wait(timeout=60)
            self.server.stdout.close()
        self.process.kill()
        self.process.wait(timeout=60)


@pytest.fixture
def silent(any_python, ptrace):
    if os.geteuid() != 0:
        pytest.skip("needs root: a file system is mounted")
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("needs unshare and nsenter: not installed")
    job = SilentJob(any_python)
    try:
        yield job
    finally:
        job.end()


def timed(probing, *words):
    began = time.monotonic()
    done = probing(*words, timeout=60)
    return done, time.monotonic() - began


def test_the_list_goes_on_behind_it(silent, target, probing, wait_until):
    """The others are there with all that is known of them, it itself with what the kernel knows; and the next list does the same."""
    before = target(JOB)
    silent.mount().tell("hang 0")
    behind = target(JOB)
    for _ in range(2):
        done, seconds = timed(probing, "list", "--json")
        assert seconds < LIMIT_S, seconds
        found = {one["pid"]: one for one in done.ok().json()["processes"]}
        for job in (before, behind):
            assert found[job.pid]["python"] and found[job.pid]["why_not"] is None and found[job.pid]["inspectable"], found[job.pid]
        held = found[silent.pid]
        assert f"process {silent.pid}: {SAID} (2 s)" == held["why_not"] and not held["inspectable"] and held["uptime_s"] >= 0, held
    text = probing("list", timeout=60).ok().stdout
    # Who serves the file system sees the same one.
    assert [line.split()[0] for line in text.splitlines() if "no answer" in line] == sorted([str(silent.pid), str(silent.server.pid)], key=int), text
    assert f"(process {silent.pid}: {SAID} (2 s))" in text, text
    silent.tell("go")
    wait_until(lambda: not processes_about("list"), 30, "those who were held up to be gone")


def test_a_name_is_found_behind_it(silent, target, probing):
    silent.mount().tell("hang 0")
    job = target(JOB, name="behind_the_silent_one.py")
    done, seconds = timed(probing, "behind_the_silent_one.py", "backtrace")
    assert seconds < LIMIT_S and "in_a_silent_place" in done.ok().stdout and job.alive()


@pytest.mark.parametrize("words", [("status",), ("eject",), ("listen", "--off"), ("pause", "--status"), ("backtrace",), ("inject",)], ids=" ".join)
def test_a_verb_ends(silent, probing, wait_until, words):
    """One line, and nobody is left when it answers again."""
    silent.mount().tell("hang 0")
    done, seconds = timed(probing, str(silent.pid), *words)
    assert done.status == 3 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert f"process {silent.pid}" in done.stderr and "does not answer" in done.stderr, done
    assert seconds < 30, seconds
    silent.tell("go")
    wait_until(lambda: not processes_about(str(silent.pid)), 30, "those who were held up to be gone")


def test_an_agent_on_such_a_file_system(silent, probing):
    """While it answers all is as elsewhere; it may stop at every single request of a verb, and none of them is waited for longer."""
    silent.mount()
    inject_in_time(probing, silent.pid)
    assert "in_a_silent_place" in probing(str(silent.pid), "backtrace", timeout=60).ok().stdout
    assert probing(str(silent.pid), "status", "--json", timeout=60).ok().json()["clients"] == 1
    held = 0
    for n in range(0, 200, 2):
        silent.tell(f"hang {n}")
        done, seconds = timed(probing, str(silent.pid), "status")
        silent.tell("go")
        assert seconds < LIMIT_S, (n, seconds)
        if done.status == 0:
            break
        assert done.status == 3 and done.stderr == f"probing: process {silent.pid}: {SAID} (2 s)\n", (n, done)
        held += 1
    assert done.status == 0 and held > 2, (held, done)
    assert "agent ejected" in probing(str(silent.pid), "eject", timeout=60).ok().stdout


def test_the_screen_lives_on(silent, probing, probing_top, tmux, tmp_path, wait_until):
    """It falls silent while it is watched, and its connection breaks: the screen says so, obeys, and comes back when it answers."""
    silent.mount()
    inject_in_time(probing, silent.pid)
    s = PatientScreen(tmux, tmp_path, 120, 24, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads {silent.pid}; echo status=$?")
        s.wait_for("Stack of MainThread")
        silent.tell("hang 0")
        os.kill(silent.pid, signal.SIGSTOP)  # an agent that does not answer is given up
        s.wait_for("RECONNECTING")
        os.kill(silent.pid, signal.SIGCONT)
        s.type("L")
        s.wait_for(f"{silent.pid}: its file system or its")
        silent.tell("go")
        s.wait_gone("RECONNECTING")
        silent.tell("hang 0")
        os.kill(silent.pid, signal.SIGSTOP)
        s.type("1")
        s.wait_for("RECONNECTING")
        os.kill(silent.pid, signal.SIGCONT)
        s.type("q")
        s.wait_for("status=0")
    finally:
        os.kill(silent.pid, signal.SIGCONT)
        s.close()


def test_the_picker_lives_on(silent, target, probing_top, tmux, tmp_path, wait_until):
    job = target(JOB)
    silent.mount().tell("hang 0")
    s = PatientScreen(tmux, tmp_path, 140, 100, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads; echo status=$?")
        s.wait_for(f" {job.pid} ")
        s.wait_for(f" {silent.pid} ")
        s.type("q")
        s.wait_for("status=0")
        assert job.alive()
    finally:
        s.close()
