# SPDX-License-Identifier: Apache-2.0
"""What goes wrong says so in one line, with the exit status that scripts rely on, and leaves the target alone."""

import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from conftest import ROOT, process_state, run_command, wait_until

SLEEPER = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.01)
"""
ATTACHING = ("inject", "backtrace", "status", "eject")


def refused(result, status, text):
    """It failed with this status, said exactly this on stderr and nothing on stdout."""
    assert result.stdout == "", result
    assert result.stderr == f"probing: {text}\n", result
    assert result.status == status, result


def one_line(result, status, *words):
    assert result.stdout == "", result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("probing: "), result
    for word in words:
        assert word in lines[0], result
    assert result.status == status, result
    return lines[0]


def untouched(job):
    assert job.alive()
    assert job.state() in ("R", "S")
    assert [n for n in job.thread_names().values() if n.startswith("probing")] == []


@pytest.fixture
def sleeper(target):
    return target(SLEEPER, name="sleeper.py")


# --- the command line -------------------------------------------------------------------------------------------

def test_usage(probing):
    nothing = probing()
    assert nothing.status == 2 and nothing.stdout == "" and nothing.stderr.startswith("examples:\n    probing list"), nothing
    refused(probing("bactrace", "1"), 2, "unknown verb 'bactrace': did you mean 'backtrace'?")
    refused(probing("1", "bactrace"), 2, "unknown verb 'bactrace': did you mean 'backtrace'?")
    refused(probing("help", "bactrace"), 2, "unknown verb 'bactrace': did you mean 'backtrace'?")
    assert probing("help").ok().stdout == probing("--help").ok().stdout
    assert probing("help", "pause").ok().stdout == probing("pause", "--help").ok().stdout
    refused(probing("clustre"), 2, "unknown verb 'clustre': did you mean 'cluster'?")
    refused(probing("cluster"), 2, "cluster needs a second word: 'probing help cluster' lists them")
    refused(probing("1", "cluster", "x"), 2, "unknown verb 'cluster x': 'probing help cluster' lists them")
    refused(probing("cluster", "noodes"), 2, "unknown verb 'cluster noodes': did you mean 'cluster nodes'?")
    refused(probing("help", "cluster", "x"), 2, "unknown verb 'cluster x': 'probing help cluster' lists them")
    refused(probing("cluster", "ranks", "1", "2"), 2, "cluster ranks takes no arguments (got '2')")
    refused(probing("-t", "1", "-t", "2", "cluster", "ranks"), 2, "two targets, 1 and 2: give one")
    refused(probing("--readonly", "cluster", "attach"), 2, "--readonly: cluster attach would run code in the job or change it")
    refused(probing("cluster", "nodes", "--format", "xml"), 2, "unknown format 'xml': give one of table, json, ndjson, csv")
    for verb in (["nodes"], ["ranks", "-d", "0"], ["comm"], ["stacks"], ["query", "SELECT 1"]):
        refused(probing("cluster", *verb, "--json", "--format", "csv"), 2, "--json and --format csv: give one")
    refused(probing(str(os.getpid()), "verdict", "--no-inject", "--wait", "3s"), 2,
            "--no-inject judges what is there now: leave out --wait")
    refused(probing("--hosts", "gpu7", str(os.getpid()), "dump"), 2,
            f"hosts are for a job, not for '{os.getpid()}': probing --hosts LIST job:NAME dump")
    refused(probing("--nonsense"), 2, "unknown option --nonsense: --help lists the options")
    refused(probing("1", "backtrace", "--jsn"), 2, "unknown option --jsn: did you mean --json?")
    refused(probing("backtrace"), 2,
            "backtrace needs a target: probing TARGET backtrace; 'probing list' shows the Python processes")
    refused(probing("", "status"), 2, "the target is empty: give a pid, a name of a process, or unix:PATH")
    refused(probing("unix:", "status"), 2, "'unix:' needs the path of a socket: unix:PATH")


def test_escapes_are_not_printed(probing):
    line = one_line(probing("1", "\x1b[31mred\nmore"), 2)
    assert "\x1b" not in line


def test_help_and_version(probing):
    version = open(os.path.join(ROOT, "VERSION"), encoding="ascii").read().strip()
    lines = probing("--version").ok().stdout.splitlines()
    assert lines[0] == f"probing {version}" and [line.split()[0] for line in lines[1:5]] == ["commit", "compiler", "C", "libraries"]
    text = probing("--help").ok().stdout
    for verb in ("list", "inject", "eject", "backtrace", "status"):
        assert f"\n  {verb} " in text
        assert f"probing {verb}: " in probing(verb, "--help").ok().stdout
    assert "tensorboard" not in text


# --- targets that cannot be -------------------------------------------------------------------------------------

@pytest.mark.parametrize("verb", ATTACHING)
def test_no_such_process(probing, verb):
    for target, what in (("99999999", "process 99999999"), ("99999999999999999999", "process 99999999999999999999"),
                         ("no-such-name", "Python process is named 'no-such-name'")):
        result = probing(target, verb)
        here = " in this container" if "container" in result.stderr else ""
        refused(result, 3, f"no {what}{here}: 'probing list' shows the Python processes")
    refused(probing("127.0.0.1:3344", verb), 3,
            "no agent answers at 127.0.0.1:3344: 'probing list' shows where those of this machine listen")


def test_thread_id(probing, target):
    job = target("import os, threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
                 "os.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(600)\n")
    tid = [t for t in job.tids() if t != job.pid][0]
    refused(probing(str(tid), "inject"), 3, f"{tid} is a thread of process {job.pid}: give that pid")


def test_not_python(probing, ptrace):
    other = subprocess.Popen(["sleep", "600"])
    try:
        wait_until(lambda: os.path.basename(os.readlink(f"/proc/{other.pid}/exe")) != "python3" and
                   process_state(other.pid) == "S", what="sleep to run")
        for verb in ("inject", "backtrace"):
            one_line(probing(str(other.pid), verb), 3, f"process {other.pid}", "Python")
        assert process_state(other.pid) == "S"
    finally:
        other.kill()
        other.wait()


def test_zombie(probing):
    child = subprocess.Popen(["true"])
    try:
        wait_until(lambda: process_state(child.pid) == "Z", what="the child's end")
        for verb in ("inject", "backtrace"):
            one_line(probing(str(child.pid), verb), 3, f"process {child.pid}", "zombie")
    finally:
        child.wait()


def test_stopped(probing, sleeper, ptrace):
    os.kill(sleeper.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: sleeper.state() == "T", what="the job to stop")
        one_line(probing(str(sleeper.pid), "inject"), 3, f"process {sleeper.pid} is stopped", f"kill -CONT {sleeper.pid}")
        assert sleeper.state() == "T"
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: sleeper.state() in ("R", "S"), what="the job to go on")
    untouched(sleeper)


def test_stopped_with_agent(probing, sleeper, ptrace):
    """The socket takes connections though nobody serves it: said within seconds, and why."""
    probing(str(sleeper.pid), "inject").ok()
    os.kill(sleeper.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: sleeper.state() == "T", what="the job to stop")
        one_line(probing(str(sleeper.pid), "status"), 3, f"process {sleeper.pid} is stopped", f"kill -CONT {sleeper.pid}")
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
    probing(str(sleeper.pid), "status").ok()


def test_traced(probing, sleeper, ptrace):
    libc = ctypes.CDLL(None, use_errno=True)
    seize, detach = 0x4206, 17
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(seize, sleeper.pid, None, None) != 0:
        pytest.skip(f"needs ptrace: {os.strerror(ctypes.get_errno())}")
    try:
        one_line(probing(str(sleeper.pid), "inject"), 3, f"process {sleeper.pid} is being traced by process {os.getpid()}")
    finally:
        libc.ptrace(0x4207, sleeper.pid, None, None)  # PTRACE_INTERRUPT: detaching wants it stopped
        os.waitpid(sleeper.pid, 0x40000000)
        assert libc.ptrace(detach, sleeper.pid, None, None) == 0
    wait_until(lambda: sleeper.state() in ("R", "S"), what="the job to go on")
    untouched(sleeper)


def test_not_ours(probing, sleeper):
    if os.geteuid() != 0:
        pytest.skip("needs root: to run as another user")
    nobody = 65534
    path = os.path.dirname(probing.path)
    while path != "/":
        if not os.stat(path).st_mode & 1:
            pytest.skip(f"needs openbuild: another user cannot enter {path}")
        path = os.path.dirname(path)
    for verb in ("inject", "backtrace"):
        done = subprocess.run([probing.path, str(sleeper.pid), verb], capture_output=True, text=True, user=nobody,
                              group=nobody, extra_groups=[], timeout=30)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == (f"probing: process {sleeper.pid} belongs to another user (uid 0): "
                               "run this as that user or root\n")
    untouched(sleeper)


# --- the agent's file -------------------------------------------------------------------------------------------

def test_agent_file_missing(probing, sleeper, tmp_path, ptrace):
    missing = str(tmp_path / "libprobing.so")
    refused(probing(str(sleeper.pid), "inject", env={"PROBING_AGENT": missing}), 3,
            f"the agent file {missing}, named by PROBING_AGENT, cannot be read: No such file or directory")
    alone = tmp_path / "probing"
    shutil.copy(probing.path, alone)
    result = run_command([alone, str(sleeper.pid), "inject"], env={"PROBING_AGENT": ""})
    if result.status != 0:  # an installed agent is found even so
        one_line(result, 3, "the agent file libprobing.so is missing", "PROBING_AGENT")
        untouched(sleeper)


def test_agent_file_of_another_version(probing, sleeper, build_dir, tmp_path, ptrace):
    version = open(os.path.join(ROOT, "VERSION"), "rb").read().strip()
    with open(os.path.join(build_dir, "libprobing.so"), "rb") as file:
        agent = file.read()
    other = tmp_path / "libprobing.so"
    assert version + b"\0" in agent
    other.write_bytes(agent.replace(version + b"\0", b"9" * len(version) + b"\0"))
    one_line(probing(str(sleeper.pid), "inject", env={"PROBING_AGENT": str(other)}), 3, "version", version.decode(),
             "9" * len(version))
    other.write_bytes(b"#!/bin/sh\n")
    one_line(probing(str(sleeper.pid), "inject", env={"PROBING_AGENT": str(other)}), 3, str(other))
    untouched(sleeper)


# --- targets that go away ---------------------------------------------------------------------------------------

def test_target_dies_while_attaching(probing, target, ptrace):
    """Killed at any moment of it: done, or one line that says it is gone."""
    rng = random.Random(1)
    for _ in range(12):
        job = target(SLEEPER, name="dying.py")
        killer = threading.Timer(rng.random() * 0.02, os.kill, (job.pid, signal.SIGKILL))
        killer.start()
        result = probing(str(job.pid), "inject")
        killer.join()
        if result.status != 0:
            one_line(result, result.status, str(job.pid))
            assert result.status in (3, 4), result


# --- sockets that are no agent ----------------------------------------------------------------------------------

@pytest.fixture
def server(tmp_path):
    """server(function): listens on a unix socket and calls function(connection) for each that comes."""
    sockets = []

    def start(serve, name="x.sock"):
        path = str(tmp_path / name)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(8)
        sockets.append(listener)

        def run():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                sockets.append(connection)
                try:
                    serve(connection)
                except OSError:
                    pass
        threading.Thread(target=run, daemon=True).start()
        return path

    yield start
    for each in sockets:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()


def websocket(connection):
    """Upgrades the connection as an agent does."""
    import base64
    import hashlib
    request = b""
    while b"\r\n\r\n" not in request:
        data = connection.recv(4096)
        if not data:
            raise OSError("hung up")
        request += data
    key = [line.split(b":", 1)[1].strip() for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       b"Sec-WebSocket-Protocol: probing.v1\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")


def test_garbage(probing, server):
    path = server(lambda c: c.sendall(b"\x00\xff what?\r\n\r\n" * 1000))
    one_line(probing(f"unix:{path}", "status"), 3, path, "does not")


def test_silence(probing, server):
    path = server(lambda c: None)
    started = time.monotonic()
    refused(probing(f"unix:{path}", "backtrace"), 3,
            f"{path} accepts connections but does not answer like an agent: it may be another program, or it hangs; try again, or give a pid")
    assert time.monotonic() - started < 10


def test_huge_length(probing, server):
    def serve(connection):
        websocket(connection)
        connection.sendall(b"\x82\x7f" + (100 << 20).to_bytes(8, "big") + b"x" * 200000)
    path = server(serve)
    refused(probing(f"unix:{path}", "status"), 3,
            f"{path} does not speak probing.v1 (it announced a message of more than 1048576 bytes): "
            "is it an agent of another version? Eject it and inject again")


def test_stale_socket(probing, tmp_path):
    path = str(tmp_path / "stale.sock")
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    for verb in ("status", "backtrace", "inject"):
        refused(probing(f"unix:{path}", verb), 3,
                f"nothing listens at {path}: the process that made it has ended or its agent was ejected; give a pid")
    missing = str(tmp_path / "missing.sock")
    one_line(probing(f"unix:{missing}", "status"), 3, missing)
    long = "/" + "x" * 150
    refused(probing(f"unix:{long}", "status"), 3, f"{long}: the path of a unix socket has at most 107 bytes")


def test_stale_socket_of_the_same_pid(probing, sleeper, ptrace):
    """A dead process had this pid and left its socket: no obstacle."""
    folder = f"/tmp/probing-{os.geteuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = f"{folder}/{sleeper.pid}.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    one_line(probing(str(sleeper.pid), "status"), 3, "has no agent")
    assert probing(str(sleeper.pid), "inject", "--json").ok().json()["already"] is False
    assert probing(f"unix:{path}", "status", "--json").ok().json()["target"]["pid"] == sleeper.pid
    probing(str(sleeper.pid), "eject").ok()
    assert not os.path.exists(path)
    untouched(sleeper)
