# SPDX-License-Identifier: Apache-2.0
"""Names of native code in files and recordings that were made to harm whoever looks at them: it costs names, nothing else."""

import http.server
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import wait_until

CLIENT_RSS = 256 << 20
NOBODY = 65534

JOB = r'''
import ctypes, os, sys, time
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
library = ctypes.CDLL(sys.argv[1])
if len(sys.argv) > 3:
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as any process of that user's
def rest(value):
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)
    return value
library[sys.argv[2]](CALLBACK(rest), 1)
'''
SOURCE = r'''
int job_call(int (*f)(int), int v) NAMED;
int job_call(int (*f)(int), int v) {
    int r = f(v);
    __asm__ volatile("" : "+r"(r));
    return r + 1;
}
'''


def substitution(n):
    """Number `n` of what a mangled name can refer back to (C++ ABI, 5.1.10)."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if n == 0:
        return "S_"
    text, n = "", n - 1
    while True:
        text, n = digits[n % 36] + text, n // 36
        if n == 0:
            return f"S{text}_"


def bomb(levels):
    """f<a, p<a, a>, p<p<a, a>, p<a, a>>, ...>: twice as long with each level, terabytes with forty."""
    name = f"_Z1fI1a1pI{substitution(1) * 2}E"
    for level in range(levels):
        name += f"{substitution(2)}I{substitution(3 + level) * 2}E"
    return name + "Evv"


BOMB = bomb(37)
assert 400 <= len(BOMB) <= 464


@pytest.fixture
def library(tmp_path):
    """library(symbol=None, *flags): a shared library whose only function calls back; its path."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")

    def make(symbol=None, *flags, source=SOURCE):
        code, path = tmp_path / "lib.c", tmp_path / "libjob.so"
        code.write_text(source.replace("NAMED", f'__asm__("{symbol}")' if symbol else ""))
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-g", *flags, "-o", path, code], check=True, timeout=60)
        return path
    return make


@pytest.fixture
def binutils():
    path = shutil.which("objcopy")
    if not path:
        pytest.skip("needs objcopy: not installed")
    return path


def start(target, path, symbol="job_call", *more):
    job = target(JOB, path, symbol, *more)
    wait_until(lambda: job.state() == "S", 20, "the job to sleep")
    return job


def measured(command, timeout, env=None):
    """(status, stdout, stderr, seconds, bytes it had at most) of a program."""
    began = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", env=dict(os.environ, **(env or {})))
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"{command} did not end within {timeout} s")
    return process.returncode, out, err, time.monotonic() - began


def run_small(program, *args, timeout=60, env=None):
    """Runs it where no process has room for more than the client may have; and what it printed."""
    limit = f"ulimit -d {(CLIENT_RSS + (64 << 20)) >> 10}; exec \"$@\""
    status, out, err, seconds = measured(["sh", "-c", limit, "sh", program.path, *args], timeout, env)
    assert status == 0, err
    return out, err, seconds


def named(done):
    """Has the library's function its name?"""
    return re.search(r"^    job_call [\[(]", done.stdout, re.M)


def outside(job, *more):
    return (job.pid, "backtrace", "--native", "--no-inject", "--block", *more)


# --- names ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [(), ("--no-inject", "--block")], ids=["agent", "outside"])
def test_a_symbol_that_stands_for_terabytes(probing, target, library, ptrace, options):
    job = start(target, library(BOMB), BOMB)
    out, err, _ = run_small(probing, job.pid, "backtrace", "--native", *options)
    assert BOMB in out and "rest (" in out and err == ""


def test_the_same_in_an_export(probing_top, target, library, ptrace):
    job = start(target, library(BOMB), BOMB)
    out, _, _ = run_small(probing_top, "--export", "folded", "--native", "--duration", "2", job.pid, timeout=90)
    assert BOMB in out


def test_the_same_in_a_recording(probing, probing_top, target, library, ptrace, tmp_path):
    job = start(target, library())
    path = tmp_path / "run.db"
    probing(job.pid, "inject").ok()
    wait_until(lambda: probing(job.pid, "query", "--json", "SELECT count(*) AS n FROM python.samples").ok().json()["rows"][0]["n"], 30, "samples")
    probing(job.pid, "record", "-o", path, "--json").ok()
    database = sqlite3.connect(path)
    # One for each frame: nothing that is known of one helps with the next.
    ids = [row[0] for row in database.execute("SELECT frame_id FROM python_frames")]
    for i, frame in enumerate(ids):
        database.execute("UPDATE python_frames SET func = ?, kind = 'native' WHERE frame_id = ?", (BOMB[:2] + f"{2 + i // 10}f{i % 10}" + BOMB[4:], frame))
    database.commit()
    database.close()
    out, _, seconds = run_small(probing, "-t", path, "query", "--json", "SELECT fold(stack_id) AS f FROM python.samples LIMIT 1")
    assert "_Z2f0" in out or re.search(r"_Z\d+f\d", out), out
    assert seconds < 30
    out, _, seconds = run_small(probing_top, "--export", "folded", "-o", "-", path)
    assert seconds < 30


# --- files ------------------------------------------------------------------------------------------------------

# Debug information over which any reader is slow: 24 million blocks in the function, each with a hundred attributes.
SLOW = r'''
__asm__(
    ".file 1 \"lib.c\"\n"
    ".section .debug_abbrev, \"\", %progbits\n"
    ".byte 1, 0x11, 1, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0\n"
    ".byte 2, 0x0b, 0\n .fill 100, 2, 0x193f\n .byte 0, 0\n"
    ".byte 0\n"
    ".section .debug_info, \"\", %progbits\n"
    ".long 2f - 1f\n 1: .short 4\n .long 0\n .byte 8\n"
    ".byte 1\n .long 0\n .quad job_call\n .quad 64\n"
    ".fill 24000000, 1, 2\n"
    ".byte 0\n 2:\n"
    ".section .debug_aranges, \"\", %progbits\n"
    ".long 4f - 3f\n 3: .short 2\n .long 0\n .byte 8, 0\n .long 0\n .quad job_call, 64, 0, 0\n 4:\n"
    ".text\n");
int job_call(int (*f)(int), int v);
int job_call(int (*f)(int), int v) {
    __asm__ volatile(".loc 1 3");
    int r = f(v);
    __asm__ volatile(".loc 1 4" : "+r"(r));
    return r + 1;
}
'''


@pytest.fixture
def slow_job(target, library, ptrace):
    path = library(None, "-g0", source=SLOW)
    return start(target, path, "job_call", *(["nobody"] if os.geteuid() == 0 else []))


def helper_of(process):
    """The process in which the files are read."""
    def look():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                    name, _, rest = stat.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "probing-symbols" and int(rest.split()[1]) == process.pid:
                return int(pid)
        return None
    return wait_until(look, 30, "a helper")


def is_confined(pid):
    return "Seccomp:\t2" in status_of(pid)


def is_at(pid, path):
    """Does it read the file? Only root may ask; for others it does when it has worked for long."""
    if os.geteuid() == 0:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return path in maps.read()
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return int(stat.read().rpartition(")")[2].split()[11]) > 1.5 * os.sysconf("SC_CLK_TCK")


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return status.read()


def is_gone(pid):
    try:
        return "State:\tZ" in status_of(pid)
    except OSError:
        return True


@pytest.fixture
def looking(probing, slow_job):
    """A client whose helper is busy with the slow file: (client, pid of the helper)."""
    process = subprocess.Popen([probing.path, *map(str, outside(slow_job))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=dict(os.environ, PROBING_SECRET="s3cret"))
    helper = helper_of(process)
    wait_until(lambda: is_confined(helper), 20, "the helper to be confined")
    wait_until(lambda: is_at(helper, slow_job.command[2]), 30, "the helper to have come to the file")
    yield process, helper
    process.kill()
    process.communicate()


def frames_are_there(out):
    assert "rest (" in out and "<module> (" in out


@pytest.mark.long
def test_a_file_that_takes_for_ever(probing, slow_job):
    done = probing(*outside(slow_job), timeout=80).ok()
    frames_are_there(done.stdout)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and re.fullmatch(r"probing: native names: the helper took too much time on /.*libjob\.so", lines[0]), done
    assert "PyEval_EvalCode" in done.stdout or "Py_BytesMain" in done.stdout, "names of the other files"
    assert not named(done)


def test_a_helper_is_confined(looking, slow_job):
    _, helper = looking
    status = status_of(helper)
    uid = NOBODY if os.geteuid() == 0 else os.getuid()
    assert re.search(rf"^Uid:\t{uid}\t{uid}\t{uid}\t{uid}$", status, re.M), status
    assert re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^CapPrm:\t0+$", status, re.M), status
    assert re.search(r"^NoNewPrivs:\t1$", status, re.M), status
    if os.geteuid() == 0:
        assert re.search(r"^Groups:\t *$", status, re.M), status
        links = {int(fd): os.readlink(f"/proc/{helper}/fd/{fd}") for fd in os.listdir(f"/proc/{helper}/fd")}
        assert {links.pop(fd) for fd in (0, 1, 2)} == {"/dev/null"}
        assert links.pop(3).startswith("socket:")
        assert all(link.endswith(".debug") for link in links.values()), links  # what it was given: of other files
        with open(f"/proc/{helper}/environ", encoding="utf-8") as environ:
            assert "PROBING_SECRET" not in environ.read()
        with open(f"/proc/{helper}/limits", encoding="utf-8") as limits:
            text = limits.read()
        assert re.search(r"^Max core file size +0 +0", text, re.M) and re.search(r"^Max file size +0 +0", text, re.M), text
        assert re.search(r"^Max data size +\d+ +\d+", text, re.M), text


def test_a_helper_that_crashes(looking):
    client, helper = looking
    os.kill(helper, signal.SIGSEGV)
    out, err = client.communicate(timeout=60)
    assert client.returncode == 0
    frames_are_there(out)
    assert "PyEval_EvalCode" in out or "Py_BytesMain" in out
    assert re.fullmatch(r"probing: native names: the helper ended \(signal 11\) on /.*libjob\.so\n", err), err


def test_a_helper_that_crashes_behind_a_screen(probing_top, slow_job):
    from test_tui_pty import Terminal
    screen = Terminal([probing_top.path, "--screen", "threads", "--no-inject", "--block", str(slow_job.pid)], rows=40, columns=160)
    try:
        screen.wait_for("Quit")
        screen.type(":threads\r")
        screen.wait_for("MainThread")
        screen.type("c")
        helper = helper_of(screen)
        wait_until(lambda: screen.read(0) and is_at(helper, slow_job.command[2]), 30, "the helper to have come to the file")
        os.kill(helper, signal.SIGSEGV)
        wait_until(lambda: screen.read(0) and is_gone(helper), 20, "the helper to be gone")
        screen.type(":log\r")
        screen.wait_for("native names: the helper ended (signal 11)", timeout=40)
        screen.type("q")
        assert os.WEXITSTATUS(screen.wait()) == 0
        screen.assert_restored()
    finally:
        screen.close()


def test_a_helper_that_stands_still(looking):
    """The target's user may signal it: it is given up."""
    client, helper = looking
    os.kill(helper, signal.SIGSTOP)
    out, err = client.communicate(timeout=80)
    assert client.returncode == 0 and "took too much time" in err
    frames_are_there(out)
    assert is_gone(helper)


def test_a_helper_ends_with_its_client(looking):
    client, helper = looking
    os.kill(client.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(helper), 60, "the helper to end")


def test_an_idle_helper_ends_with_its_client(probing_top, target, library, ptrace):
    job = start(target, library())
    client = subprocess.Popen([probing_top.path, "--export", "folded", "--native", "--duration", "60", str(job.pid)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        helper = helper_of(client)
    finally:
        client.kill()
        client.wait()
    wait_until(lambda: is_gone(helper), 20, "the helper to end")


def test_a_truncated_file(probing, target, library, ptrace, tmp_path):
    """Its loader has what it needs; who reads it now finds tables that end in nothing."""
    path = library()
    job = start(target, path)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)  # no pages of code: those lie before
    done = probing(*outside(job), timeout=80).ok()
    frames_are_there(done.stdout)
    assert "PyEval_EvalCode" in done.stdout or "Py_BytesMain" in done.stdout


def with_debug_link(path, objcopy):
    """Its debug information in a file of its own, which it refers to by name alone."""
    debug = path.with_name("libjob.debug")
    subprocess.run([objcopy, "--only-keep-debug", path, debug], check=True, timeout=60)
    subprocess.run([objcopy, "--strip-debug", f"--add-gnu-debuglink={debug}", path], check=True, timeout=60)
    return debug


def test_a_debug_link(probing, target, library, binutils, ptrace):
    path = library(None, "-Wl,--build-id=none")
    debug = with_debug_link(path, binutils)
    job = start(target, path)
    assert re.search(r"job_call \(.*lib\.c:\d+\)", probing(*outside(job)).ok().stdout)
    debug.parent.joinpath(".debug").mkdir()
    debug.rename(debug.parent / ".debug" / debug.name)
    assert re.search(r"job_call \(.*lib\.c:\d+\)", probing(*outside(job)).ok().stdout)


def test_a_debug_link_to_a_fifo(probing, target, library, binutils, ptrace):
    path = library(None, "-Wl,--build-id=none")
    debug = with_debug_link(path, binutils)
    debug.unlink()
    debug.parent.joinpath(".debug").mkdir()
    os.mkfifo(debug)
    os.mkfifo(debug.parent / ".debug" / debug.name)
    job = start(target, path)
    done = probing(*outside(job), timeout=25).ok()
    assert re.search(r"job_call \[libjob\.so\]", done.stdout) and done.stderr == "", done
    done = probing(job.pid, "backtrace", "--native", timeout=25).ok()
    assert named(done)


def test_a_file_that_its_user_cannot_read(probing, target, library, ptrace):
    """What root could read and the target not is not read for it."""
    if os.geteuid() != 0:
        pytest.skip("needs root: only root can read what a target cannot")
    path = library()
    job = start(target, path, "job_call", "nobody")
    assert named(probing(*outside(job)).ok())
    os.chmod(path, 0o600)
    assert not named(probing(*outside(job)).ok())


def test_no_server_is_asked(probing, target, library, binutils, ptrace):
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        path = library(None, "-Wl,--build-id")
        subprocess.run([binutils, "--strip-debug", path], check=True, timeout=60)
        job = start(target, path)
        env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}/", "DEBUGINFOD_CACHE_PATH": str(path.parent / "cache")}
        done = probing(*outside(job), timeout=60, env=env).ok()
        assert named(done) and asked == []
    finally:
        server.shutdown()
        server.server_close()
