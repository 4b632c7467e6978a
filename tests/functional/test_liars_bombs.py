# SPDX-License-Identifier: Apache-2.0
"""Agents whose answers are short to send and long to show, or to keep: the client takes 256 MB at most, ends in time, and says in a line
what it does not take."""

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import fcntl
import pytest

from bombs import BOMBS, SAMPLES, STATUS, THREADS, bombing

MEMORY_MB = 256
LIMIT_S = 60  # of the slowest on a busy machine; none of them takes 10
SCREEN_S = 3

pytestmark = pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs systempython: a python3 that others may run")


class Run:
    """A client that was run: how it ended, what it took, what it said."""

    def __init__(self, command, folder):
        with open(os.path.join(folder, "out"), "wb") as out, open(os.path.join(folder, "err"), "w+b") as err:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder)
            until = time.monotonic() + LIMIT_S
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                if time.monotonic() > until:
                    process.kill()
                    ended = os.wait4(process.pid, 0)
                    break
                time.sleep(0.01)
            process.returncode = self.status = os.waitstatus_to_exitcode(ended[1])
            self.mb = ended[2].ru_maxrss // 1024
            err.seek(0)
            self.said = err.read().decode(errors="replace")
            self.words = " ".join(map(str, command[1:]))

    def judge(self):
        assert self.status in (0, 1), (self.words, self.status, self.said[:300])
        assert self.mb <= MEMORY_MB, (self.words, self.mb)
        assert self.status == 0 or len(self.said.splitlines()) == 1, (self.words, self.said[:600])


@pytest.fixture
def run(tmp_path):
    def run_one(*command):
        done = Run(command, tmp_path)
        done.judge()
        return done
    return run_one


@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(THREADS))
def test_threads(run, probing, probing_top, name):
    with bombing(f"threads-{name}") as job:
        for words in (["backtrace", "--locals", "--tasks"], ["backtrace", "--locals", "--tasks", "--json"], ["query", "SELECT * FROM python.backtrace"],
                      ["report", "--duration", "0.3", "-o", "report.html"], ["report", "--duration", "0.3", "--json"]):
            run(probing.path, job.pid, *words)
        for words in (["txt", "--once"], ["json", "--once", "-o", "-"], ["folded", "--once", "-o", "-"]):
            run(probing_top.path, "--export", *words, job.pid)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", STATUS)
def test_status(run, probing, name):
    with bombing(f"status-{name}") as job:
        for words in (["status"], ["status", "--json"], ["tables"]):
            done = run(probing.path, job.pid, *words)
            if words[0] == "status":
                assert done.status == 1 and f"'{name}' would take more than" in done.said


@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(run, probing, probing_top, tmp_path, name):
    with bombing(f"samples-{name}") as job:
        for form in ("html", "md"):
            run(probing.path, job.pid, "report", "--duration", "1", "--format", form, "-o", tmp_path / form)
        # Streams that do not end are over before anything is written.
        for form in ("folded", "svg", "json", "pprof", "speedscope", "perfetto") if name.endswith("-once") else ("json", "perfetto"):
            run(probing_top.path, "--export", form, "--duration", "1", "-o", tmp_path / form, job.pid)


@pytest.mark.timeout(120)
def test_rows_and_errors(run, probing):
    for name, commands in (("rows", (["query", "SELECT * FROM python.modules"], ["query", "--json", "SELECT * FROM python.tensors"])),
                           ("error", (["backtrace"], ["status"], ["tables"], ["query", "SELECT * FROM python.modules"], ["eval", "1"]))):
        with bombing(name) as job:
            for words in commands:
                run(probing.path, job.pid, *words)


def screens(command, keys):
    """A screen that is looked at for some seconds, and ended by SIGTERM: (exit status, MB, what it wrote)."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.execve(command[0], command, dict(os.environ, TERM="xterm-256color", LC_ALL="C.UTF-8"))
    began, keys, seen, asked = time.monotonic(), list(keys), 0, False
    while not (ended := os.wait4(pid, os.WNOHANG))[0]:
        now = time.monotonic()
        if keys and now - began > SCREEN_S * (1 - len(keys) / 10):
            os.write(fd, keys.pop(0))
        if now - began > SCREEN_S and not asked:
            os.kill(pid, signal.SIGTERM)
            asked = True
        if now - began > LIMIT_S:
            os.kill(pid, signal.SIGKILL)
        if select.select([fd], [], [], 0.02)[0]:
            try:
                seen += len(os.read(fd, 65536))
            except OSError:
                time.sleep(0.02)
    os.close(fd)
    return os.waitstatus_to_exitcode(ended[1]), ended[2].ru_maxrss // 1024, seen


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["threads-short-stack", "threads-names", "threads-note", "samples-stacks", "samples-of-threads",
                                  "samples-long-once"])
def test_screens(probing_top, name):
    assert name in BOMBS
    with bombing(name) as job:
        status, megabytes, seen = screens([probing_top.path, str(job.pid)], [b"1", b"2", b"3", b"4", b"5", b"3", b"i"])
        assert status in (0, 128 + signal.SIGTERM, -signal.SIGTERM, 1, 4), status
        assert megabytes <= MEMORY_MB, megabytes
        assert seen > 1000 or status == 1, (status, seen)  # drawn, or refused at once


@pytest.mark.timeout(60)
def test_the_list(run, probing):
    with bombing("threads-names") as one, bombing("error") as other:
        said = run(probing.path, "list", "--json")
        assert said.status == 0 and one.pid != other.pid
