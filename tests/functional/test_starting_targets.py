# SPDX-License-Identifier: Apache-2.0
"""`python train.py & probing $!`: a process that began in this very moment is waited for until it is a Python."""

import os
import shlex
import shutil
import signal
import subprocess

import pytest

from conftest import run_command, wait_until

pytestmark = pytest.mark.timeout(240)

JOB = "import time\nwhile True: time.sleep(0.05)\n"
CLOCK_NANOSLEEP = 230

# Before any code of Python's runs: what is preloaded is begun by the loader.
PRELOADED = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
    char byte;
    int fd = open(getenv("HOLD"), O_RDONLY);
    if (read(fd, &byte, 1) == 1)
        close(fd);
}
"""

# Imported by an interpreter that has threads and modules, and does not say yet that it is initialised.
ENCODINGS = """
import posix, sys
fd = posix.open(%r, posix.O_RDONLY)
posix.read(fd, 1)
posix.close(fd)
__path__.insert(0, %r)
fd = posix.open(__path__[0] + "/__init__.py", posix.O_RDONLY)
text = posix.read(fd, 1 << 20)
posix.close(fd)
exec(compile(text, "encodings", "exec"))
"""


@pytest.fixture
def in_the_moment(any_python, tmp_path):
    """in_the_moment(shell, program, "eval 1+1"): what that said of a job that the shell had started just before."""
    begun = []

    def run(shell, program, words, python=any_python):
        (tmp_path / "job.py").write_text(JOB)
        script = f'"$PYTHON" "$JOB" >/dev/null 2>&1 & echo $! >"$PID"; exec {shlex.quote(program)} $! {words}'
        done = run_command([shell, "-c", script], 120, env={
            "PYTHON": python, "JOB": str(tmp_path / "job.py"), "PID": str(tmp_path / "pid")})
        begun.append(int((tmp_path / "pid").read_text()))
        return done
    yield run
    for pid in begun:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("words, answer", [
    ("inject --timeout 60s", "agent injected"), ("eval 6*7", "42\n"), ("backtrace", "Thread "), ("catch", "an uncaught exception"), ("listen", "127.0.0.1:"),
    ("query 'SELECT 6*7 AS n'", "42"), ("backtrace --no-inject", "Thread "),
])
def test_verbs(in_the_moment, probing, ptrace, shell, words, answer):
    assert answer in in_the_moment(shell, probing.path, words).ok().stdout


def test_probing_top(in_the_moment, probing_top, ptrace):
    assert in_the_moment("sh", probing_top.path, "--export json --once").ok().json()["target"]["mode"] == "agent"


def test_each_python(in_the_moment, probing, ptrace, each_python):
    for _ in range(3):
        assert in_the_moment("sh", probing.path, "eval 6*7", each_python).ok().stdout == "42\n"


def test_no_python(probing, ptrace):
    """It is not waited for until the end of the time."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        done = probing(process.pid, "inject", "--timeout", "600s", timeout=60)
        assert done.status == 3 and done.stderr == f"probing: process {process.pid} is not a Python process: no CPython interpreter was found in it\n"
    finally:
        process.kill()
        process.wait()


class Held:
    """A job that a pipe holds before it has started."""

    def __init__(self, python, tmp_path, env):
        (tmp_path / "job.py").write_text(JOB)
        self.pipe = str(tmp_path / "hold")
        os.mkfifo(self.pipe)
        self.errors = tmp_path / "errors"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen([python, str(tmp_path / "job.py")], stderr=errors, env=dict(os.environ, HOLD=self.pipe, **env))
        self.pid = self.process.pid
        self.writer = os.open(self.pipe, os.O_WRONLY)  # it has come to where it reads

    def go(self):
        os.write(self.writer, b".")

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)


@pytest.fixture
def held(any_python, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    (tmp_path / "hold.c").write_text(PRELOADED)
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", tmp_path / "hold.so", tmp_path / "hold.c"], check=True)
    job = Held(any_python, tmp_path, {"LD_PRELOAD": str(tmp_path / "hold.so")})
    yield job
    job.end()


def asleep(process):
    """Its child, which attaches, waits, and has looked before."""
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/syscall", encoding="ascii") as file:
                if file.read().split()[0] == str(CLOCK_NANOSLEEP):
                    return True
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended meanwhile
    return False


def begin(probing, *words):
    return subprocess.Popen([probing.path, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_until_it_has_started(held, probing, ptrace):
    waiting = begin(probing, held.pid, "inject", "--timeout", "200s")
    try:
        wait_until(lambda: asleep(waiting), 60, "it to wait")
        assert waiting.poll() is None
        held.go()
        out, err = waiting.communicate(timeout=120)
        assert waiting.returncode == 0 and "agent injected" in out and not err, (out, err)
    finally:
        waiting.kill()
        waiting.wait()


def test_no_longer_than_the_time_given(held, probing, ptrace):
    done = probing(held.pid, "inject", "--timeout", "300ms", timeout=60)
    assert done.status == 3 and "has not started yet" in done.stderr and "try again" in done.stderr and done.stderr.count("\n") == 1, done
    assert held.process.poll() is None
    held.go()
    probing(held.pid, "inject", "--timeout", "60s", timeout=120).ok()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_until_somebody_asks_it_to_end(held, probing, ptrace, number):
    waiting = begin(probing, held.pid, "inject", "--timeout", "200s")
    wait_until(lambda: asleep(waiting), 60, "it to wait")
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 1 and err == f"probing: interrupted; process {held.pid} is as it was\n" and not out
    held.go()
    probing(held.pid, "inject", "--timeout", "60s", timeout=120).ok()


def test_an_interpreter_that_is_not_initialised_yet(each_python, probing, ptrace, tmp_path):
    """The agent is loaded, and asks nothing of it that it cannot do yet; when it can, it is asked."""
    ask = "import encodings; print(encodings.__path__[0])"
    real = subprocess.run([each_python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path / "first" / "encodings"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(ENCODINGS % (str(tmp_path / "hold"), real))
    job = Held(each_python, tmp_path, {"PYTHONPATH": str(tmp_path / "first")})
    try:
        probing(job.pid, "inject", "--timeout", "60s", timeout=120).ok()
        early = probing(job.pid, "eval", "6*7", "--timeout", "300ms", timeout=60)
        assert early.status == 1 and early.stderr.count("\n") == 1 and "is ending" not in early.stderr, early
        assert "has not started yet" in early.stderr or "could not acquire the GIL" in early.stderr, early
        job.go()
        done = probing(job.pid, "eval", "6*7", "--timeout", "60s", timeout=120)
        assert done.stdout == "42\n" and job.process.poll() is None, (done, job.process.poll(), job.errors.read_text())
    finally:
        job.end()
