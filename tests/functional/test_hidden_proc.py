# SPDX-License-Identifier: Apache-2.0
"""Where /proc hides processes, or is not there: ours goes on with what it has, and the rest is said in one line. What killed
jobs leave behind is taken away.

Every /proc is mounted in a mount namespace of its own. `run` holds the program's arguments after "--"."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from conftest import inject_in_time

NOBODY = 65534
SOMEBODY = 54322
JOB = """
import os, threading, time
threading.Thread(target=time.sleep, args=(3600,), name="sleeper", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    sum(range(1000))
"""


def mount_of(options):
    return "mount -t tmpfs none /proc" if options is None else f"mount -t proc -o {options} proc /proc"


def in_namespace(options, command):
    """The command in a mount namespace with another /proc; `options` None: with none."""
    return ["unshare", "-m", "sh", "-c", f'{mount_of(options)} && exec "$@"', "sh", *map(str, command)]


def as_nobody(command):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, command)]


@pytest.fixture(scope="module")
def namespaces():
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("needs namespaces: this is not root, or unshare or setpriv are not installed")
    for options in ("hidepid=2", None):
        if subprocess.run(in_namespace(options, ["true"]), capture_output=True).returncode:
            pytest.skip("needs namespaces: /proc may not be mounted in one")


@pytest.fixture
def nobodys_python():
    """A Python that another user may run too."""
    path = "/usr/bin/python3"
    if not os.path.exists(path) or subprocess.run(as_nobody([path, "-c", "import sys; sys.exit(sys.version_info < (3, 6))"]),
                                                  capture_output=True).returncode:
        pytest.skip("needs systempython: there is no python3 that nobody may run")
    return path


@pytest.fixture
def nobodys_programs(probing):
    """The programs where another user may run them, or a skip."""
    if subprocess.run(as_nobody([probing.path, "--version"]), capture_output=True).returncode:
        pytest.skip("needs namespaces: another user may not run what was built here")
    return probing.path


@pytest.fixture
def start(namespaces, tmp_path):
    """A job in a namespace of its own, as root or as nobody."""
    started = []

    def run(python, options, nobody=False):
        reader, writer = os.pipe()
        command = [python, "-c", JOB]
        process = subprocess.Popen(in_namespace(options, as_nobody(command) if nobody else command), pass_fds=(writer,),
                                   stdin=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ, READY_FD=str(writer)))
        started.append(process)
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert ready.readline() == "ready\n"
        return process.pid

    yield run
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()


def names(document):
    return sorted(t["name"] for t in document["threads"] if t["has_python"])


@pytest.mark.parametrize("options", ["hidepid=1", "hidepid=2", "hidepid=4", "subset=pid"])
def test_the_agent_goes_on_where_others_are_hidden(start, nobodys_python, probing, probing_top, ptrace, options):
    if subprocess.run(in_namespace(options, ["true"]), capture_output=True).returncode:
        pytest.skip(f"needs namespaces: this kernel knows no {options}")
    pid = start(nobodys_python, options, nobody=True)
    document = probing(str(pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "agent" and names(document) == ["MainThread", "sleeper"]
    assert all(t["frames"] for t in document["threads"] if t["has_python"])
    status = probing(str(pid), "status", "--json").ok().json()
    assert status["discovery"] and status["note"] is None
    document = probing_top("--export", "json", "--duration", "1", str(pid)).ok().json()
    assert {s["thread"] for s in document["samples"]} >= {"MainThread", "sleeper"}


def test_a_job_without_proc_is_read_from_outside(start, any_python, probing, ptrace):
    pid = start(any_python, None)
    document = probing(str(pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and names(document) == ["MainThread", "sleeper"]
    assert "has no /proc in its container" in document["target"]["mode_reason"]
    refused = probing(str(pid), "inject")
    assert refused.status == 3 and refused.stderr.count("\n") == 1 and "has no /proc" in refused.stderr


@pytest.mark.parametrize("options", ["hidepid=1", "hidepid=2"])
def test_who_cannot_see_others_is_told(namespaces, start, nobodys_python, nobodys_programs, options):
    pid = start(nobodys_python, "rw", nobody=True)
    roots = start(nobodys_python, "rw")

    def run(*arguments):
        return subprocess.run(in_namespace(options, as_nobody([nobodys_programs, *arguments])), capture_output=True, text=True)

    listed = run("list")
    assert listed.returncode == 0
    assert listed.stdout.splitlines()[-1] == \
        "(processes of other users are not visible: /proc is mounted with hidepid; root sees them)"
    document = json.loads(run("list", "--json").stdout)
    pids = {p["pid"] for p in document["processes"]}
    assert pid in pids and roots not in pids
    assert document["not_visible"].startswith("processes of other users are not visible")
    refused = run(str(roots), "backtrace")
    assert refused.returncode == 3 and refused.stderr.count("\n") == 1
    if options == "hidepid=2":
        assert refused.stderr == \
            f"probing: process {roots} is not visible: /proc is mounted with hidepid: run this as root or its user\n"


def test_all_is_visible_to_root(namespaces, start, any_python, probing):
    pid = start(any_python, "rw")
    result = subprocess.run(in_namespace("hidepid=2", [probing.path, "list", "--json"]), capture_output=True, text=True)
    document = json.loads(result.stdout)
    assert result.returncode == 0 and document["not_visible"] is None
    assert pid in {p["pid"] for p in document["processes"]}


def test_without_proc(namespaces, probing, target, any_python):
    pid = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(3600)\n").pid
    result = subprocess.run(in_namespace(None, [probing.path, "list"]), capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1].startswith("(no process is visible: /proc is not mounted here")
    result = subprocess.run(in_namespace(None, [probing.path, str(pid), "status"]), capture_output=True, text=True)
    assert result.returncode == 3 and "/proc is not mounted here" in result.stderr


def test_sockets_of_killed_jobs_are_taken_away(any_python, ptrace, target, probing):
    def attached():
        job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(3600)\n")
        return job, probing(str(job.pid), "inject", "--json").ok().json()["endpoint"].replace(f"/proc/{job.pid}/root", "")

    (killed, old), (young, new), (living, alive) = attached(), attached(), attached()
    for job in (killed, young):
        job.process.kill()
        job.process.wait()
    os.utime(old, (1, 1))
    os.utime(alive, (1, 1))
    os.utime(new, (2 ** 33, 2 ** 33))
    listed = {p["pid"]: p for p in probing("list", "--json").ok().json()["processes"]}
    assert killed.pid not in listed and listed[living.pid]["agent"] is True
    assert not os.path.exists(old) and os.path.exists(alive) and os.path.exists(new)
    os.unlink(new)


@pytest.mark.parametrize("taken", [["/tmp"], ["/tmp", "/dev/shm", "/var/tmp"]], ids=["one", "all that anybody may write to"])
def test_a_folder_of_that_name_that_is_somebody_elses(nobodys_python, probing, ptrace, taken):
    """Anybody may make /tmp/probing-UID: the agent listens elsewhere, and is found there."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a job of another user")
    somebody = 200000 + os.getpid()  # of whom nothing is left by other tests
    squats = [f"{place}/probing-{somebody}" for place in taken]
    own = pathlib.Path(f"/run/user/{somebody}")  # as a login makes it
    process = None
    made = []
    try:
        for squat in squats:
            os.mkdir(squat, 0o700)
            made.append(squat)
        for folder in [own.parent, own]:
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        os.chown(own, somebody, somebody)
        reader, writer = os.pipe()
        process = subprocess.Popen([nobodys_python, "-c", JOB], pass_fds=(writer,), user=somebody, group=somebody, extra_groups=[],
                                   stdin=subprocess.DEVNULL, env=dict(os.environ, READY_FD=str(writer)))
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert ready.readline() == "ready\n"
        socket = inject_in_time(probing, process.pid)["endpoint"]
        assert f"/probing-{somebody}/" in socket and not any(squat in socket for squat in squats), socket
        assert "MainThread" in names(probing(str(process.pid), "backtrace", "--json").ok().json())
        assert inject_in_time(probing, process.pid)["already"]
        rows = {row["pid"]: row for row in probing("list", "--json").ok().json()["processes"]}
        assert rows[process.pid]["agent"] is True
        probing(str(process.pid), "eject").ok()
        assert not any(os.listdir(squat) for squat in squats)
    finally:
        if process:
            process.kill()
            process.wait()
        for place in ["/dev/shm", "/tmp", own]:  # its tables
            shutil.rmtree(f"{place}/probing-{somebody}", ignore_errors=True)
        for folder in reversed(made):
            if os.path.isdir(folder):
                os.rmdir(folder)
