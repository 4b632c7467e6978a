# SPDX-License-Identifier: Apache-2.0
"""Targets that are read from outside, because the user wants it so or because nothing may be put in: what is shown is what the
target itself says, and the target is as it was."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import ROOT, process_state, wait_until
from outside_support import calls, inside, truth_of  # noqa: F401 (a fixture)
from test_end_to_end_gil import HOG
from test_end_to_end_stacks import PLACES

SLEEPER = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.01)
"""
OPTIONS = ("--no-inject", "--block")
NOBODY = 65534


@pytest.fixture
def sleeper(target):
    return target(SLEEPER, name="sleeper.py")


def one_line(result, status, *words):
    assert result.status == status and result.stdout == "", result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and re.match(r"probing(-top)?: ", lines[0]), result
    for word in words:
        assert word in lines[0], result


# --- what is shown ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("option", OPTIONS)
def test_every_thread(each_python, target, probing, ptrace, tmp_path, option):
    truth_file = tmp_path / "truth.json"
    job = target(PLACES, truth_file, python=each_python, name="plätze.py")
    truth, before = truth_of(truth_file), inside(job)
    document = probing(str(job.pid), "backtrace", option, "--json").ok().json()
    about = document["target"]
    assert (about["mode"], about["mode_reason"], about["agent_version"]) == ("readonly", option, None)
    assert about["blocking"] is (option == "--block")
    assert about["pid"] == job.pid and about["python"].startswith("3.") and "plätze.py" in about["cmdline"]
    assert document["process"]["agent_cpu_pct"] is None and document["process"]["agent_rss_bytes"] is None
    threads = {str(t["tid"]): t for t in document["threads"]}
    assert set(threads) == {str(tid) for tid in job.tids()}
    for tid, expected in truth.items():
        seen = threads[tid]
        assert seen["name"] == expected["name"]
        assert [[f["func"], f["file"], f["line"]] for f in seen["frames"]] == expected["frames"], expected["name"]
        assert (seen["torn"], seen["truncated"]) == (False, False)
        assert (seen["state"], seen["gil"], seen["on_cpu"]) == ("S", "none", False)
        assert seen["stopped_us"] == 0  # it slept: there was nothing to stop
    assert document["gil_holder_tid"] == 0
    assert inside(job) == before and process_state(job.pid) == "S"


@pytest.mark.parametrize("option", OPTIONS)
def test_gil_held_for_ever(target, probing, probing_top, build_dir, ptrace, option):
    job = target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so"), name="hog.py")
    before = inside(job)

    def look():
        """It wakes every few milliseconds to ask for the GIL: a look may find it awake."""
        seen = probing_top("--export", "json", "--once", option, str(job.pid)).ok().json()
        return seen if {t["name"]: t["gil"] for t in seen["threads"]}["starving"] == "waiting" else None
    document = wait_until(look, 20, "a look at the thread while it waits for the GIL")
    threads = {t["name"]: t for t in document["threads"]}
    main, starving = threads["MainThread"], threads["starving"]
    assert document["gil_holder_tid"] == job.pid
    assert (main["gil"], main["on_cpu"]) == ("held", True)
    assert [f["func"] for f in main["frames"]] == ["hold_gil", "<module>"] and main["frames"][0]["line"] == 12
    assert starving["frames"][0]["func"] == "wait_for_gil"
    assert (main["stopped_us"] > 0) is (option == "--block")
    assert "hold_gil (" in probing(str(job.pid), "backtrace", option).ok().stdout
    assert inside(job) == before and job.state() == "R"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("option", OPTIONS)
def test_torch_training(training, probing, probing_top, ptrace, option):
    before = inside(training)
    document = probing(str(training.pid), "backtrace", option, "--json").ok().json()
    assert document["target"]["torch"]
    main = [t for t in document["threads"] if t["name"] == "MainThread"][0]
    assert [f["func"] for f in main["frames"]][-2:] == ["main", "<module>"]
    assert len([t for t in document["threads"] if t["name"] == "QueueFeederThread"]) == 2
    steps = training.counter()
    folded = probing_top("--export", "folded", "--threads", "--duration", "2", option, str(training.pid)).ok().stdout
    assert re.search(r"^thread MainThread \(\d+\);<module> \(train\.py:\d+\);main \(train\.py:\d+\);.*train_step", folded, re.M)
    weights = [int(line.rsplit(" ", 1)[1]) for line in folded.splitlines() if "MainThread" in line]
    assert 1 <= sum(weights) <= 300
    wait_until(lambda: training.counter() >= steps + 3, 60, "the training's steps")
    after = inside(training)
    assert after[0] == before[0] and after[3] == before[3]
    assert not [link for link in after[1].values() if "probing" in link]
    assert not [name for name in training.thread_names().values() if name.startswith("probing")]


def test_status_and_list(sleeper, probing, ptrace):
    probing(str(sleeper.pid), "backtrace", "--no-inject").ok()
    one_line(probing(str(sleeper.pid), "status"), 3, "has no agent", f"probing {sleeper.pid} inject")
    listed = {p["pid"]: p for p in probing("list", "--json").ok().json()["processes"]}
    assert listed[sleeper.pid]["agent"] is False


def test_an_agent_is_not_used(sleeper, probing, ptrace):
    """With --no-inject not even one that is there: it may be what is broken."""
    probing(str(sleeper.pid), "inject").ok()
    assert probing(str(sleeper.pid), "backtrace", "--json").ok().json()["target"]["mode"] == "agent"
    document = probing(str(sleeper.pid), "backtrace", "--no-inject", "--json").ok().json()
    assert document["target"]["mode"] == "readonly"
    assert any((t["native_name"] or "").startswith("probing") for t in document["threads"])
    probing(str(sleeper.pid), "eject").ok()


def test_the_screen_says_so(sleeper, probing_top, ptrace):
    text = probing_top("--export", "txt", "--once", "--no-inject", str(sleeper.pid)).ok().stdout
    assert "READ-ONLY" in text and "read from outside" in text and "sleeper.py" in text
    text = probing_top("--export", "txt", "--once", "--block", str(sleeper.pid)).ok().stdout
    assert "READ-ONLY" in text and "running threads are stopped" in text


# --- refused injections -----------------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@pytest.fixture
def traced(sleeper, ptrace):
    """The job while somebody else traces it: this process."""
    if LIBC.ptrace(0x4206, sleeper.pid, None, None) != 0:  # PTRACE_SEIZE
        pytest.skip(f"needs ptrace: {os.strerror(ctypes.get_errno())}")
    yield sleeper
    LIBC.ptrace(0x4207, sleeper.pid, None, None)  # PTRACE_INTERRUPT: detaching wants it stopped
    os.waitpid(sleeper.pid, 0x40000000)
    assert LIBC.ptrace(17, sleeper.pid, None, None) == 0


def test_traced_by_somebody(traced, probing, probing_top):
    document = probing(str(traced.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly"
    assert f"is being traced by process {os.getpid()}" in document["target"]["mode_reason"]
    assert [f["line"] for f in document["threads"][0]["frames"]] in ([3], [4], [5])
    text = probing_top("--export", "txt", "--once", str(traced.pid)).ok().stdout
    assert f"READ-ONLY: process {traced.pid} is being traced by process" in text
    assert "Read from outside: process" in probing(str(traced.pid), "backtrace").ok().stdout
    one_line(probing(str(traced.pid), "inject"), 3, "is being traced")
    listed = {p["pid"]: p for p in probing("list", "--json").ok().json()["processes"]}[traced.pid]
    assert (listed["inspectable"], listed["readable"]) == (False, True) and "is being traced" in listed["why_not"]
    one_line(probing(str(traced.pid), "backtrace", "--block"), 3, "is being traced", "end that one first")
    assert probing_top("--export", "folded", "--duration", "300ms", str(traced.pid)).ok().stdout


@pytest.mark.parametrize("with_agent", (False, True), ids=("alone", "agent"))
def test_stopped(sleeper, probing, ptrace, with_agent):
    if with_agent:
        probing(str(sleeper.pid), "inject").ok()
    os.kill(sleeper.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: sleeper.state() == "T", what="the job to stop")
        document = probing(str(sleeper.pid), "backtrace", "--json").ok().json()
        assert document["target"]["mode"] == "readonly"
        assert f"kill -CONT {sleeper.pid}" in document["target"]["mode_reason"]
        assert document["threads"][0]["state"] == "T" and document["threads"][0]["frames"][0]["line"] in (3, 4, 5)
        blocking = probing(str(sleeper.pid), "backtrace", "--block", "--json").ok().json()
        assert blocking["threads"][0]["stopped_us"] == 0
        assert sleeper.state() == "T"
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
    wait_until(lambda: sleeper.state() in ("R", "S"), what="the job to go on")


def test_no_safe_moment(target, probing, ptrace, tmp_path):
    """The only thread is inside an allocator without end: nothing is injected, everything is shown."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    source, library = tmp_path / "hold.c", tmp_path / "libjemalloc.so.2"
    source.write_text("#include <unistd.h>\nvoid hold(void) { for (;;) pause(); }\n")
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", library, source], check=True)
    job = target("import ctypes, os, sys\nhold = ctypes.CDLL(sys.argv[1]).hold\n"
                 "os.write(int(os.environ['READY_FD']), b'ready\\n')\nhold()\n", library)
    wait_until(lambda: open(f"/proc/{job.pid}/syscall", encoding="ascii").read().startswith("34 "), what="pause")
    before = inside(job)

    def refused():
        document = probing(str(job.pid), "backtrace", "--json").ok().json()
        assert document["target"]["mode"] == "readonly"
        return None if "the machine is too busy; try again" in document["target"]["mode_reason"] else document
    document = wait_until(refused, 60, "a machine that is not too busy")
    assert "no safe point" in document["target"]["mode_reason"]
    assert document["threads"][0]["frames"][0]["line"] == 4
    assert inside(job) == before


def as_nobody(command):
    return subprocess.run(command, capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], timeout=60)


@pytest.fixture
def open_build(probing):
    if os.geteuid() != 0:
        pytest.skip("needs root: to run as another user")
    path = os.path.dirname(probing.path)
    while path != "/":
        if not os.stat(path).st_mode & 1:
            pytest.skip(f"needs openbuild: another user cannot enter {path}")
        path = os.path.dirname(path)


def test_neither_is_possible(sleeper, probing, probing_top, open_build):
    for program, rest in ((probing.path, ["backtrace"]), (probing_top.path, ["--export", "json"])):
        for option in OPTIONS:
            done = as_nobody([program, str(sleeper.pid), *rest, option])
            assert (done.returncode, done.stdout) == (3, "")
            assert done.stderr == (f"{os.path.basename(program)}: process {sleeper.pid} belongs to another user (uid 0): "
                                   "run this as that user or root\n")


def test_own_process_without_root(probing, open_build):
    """Who may not do much may read what is theirs."""
    python = shutil.which("python3", path="/usr/bin:/bin")
    if not python:
        pytest.skip("needs systempython: no python3 in /usr/bin")
    job = subprocess.Popen([python, "-c", "import time\nprint('ready', flush=True)\ntime.sleep(600)"], stdout=subprocess.PIPE,
                           user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        assert job.stdout.readline() == b"ready\n"
        for option in OPTIONS:
            done = as_nobody([probing.path, str(job.pid), "backtrace", option])
            if "ptrace_scope" in done.stderr:
                pytest.skip("needs ptrace: restricted by Yama")
            assert done.returncode == 0 and "    <module> (<string>:3)\n" in done.stdout, done
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


# --- bad input --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("option", OPTIONS)
def test_targets_that_cannot_be(probing, probing_top, sleeper, tmp_path, option):
    one_line(probing("99999999", "backtrace", option), 3, "no process 99999999")
    other = subprocess.Popen(["sleep", "600"])
    try:
        wait_until(lambda: process_state(other.pid) == "S", what="sleep to run")
        one_line(probing(str(other.pid), "backtrace", option), 3, f"process {other.pid}", "Python")
        one_line(probing_top("--export", "json", option, str(other.pid)), 3, f"process {other.pid}", "Python")
    finally:
        other.kill()
        wait_until(lambda: process_state(other.pid) == "Z", what="sleep's end")
        one_line(probing(str(other.pid), "backtrace", option), 3, f"process {other.pid}", "zombie")
        other.wait()
    one_line(probing(f"unix:{tmp_path}/none.sock", "backtrace", option), 3, "nothing listens")
    one_line(probing("list", option), 2, "unknown option")
    one_line(probing(str(sleeper.pid), "status", option), 2, "unknown option")


def test_a_socket_is_not_read_from_outside(sleeper, probing, ptrace):
    endpoint = probing(str(sleeper.pid), "inject", "--json").ok().json()["endpoint"]
    one_line(probing(f"unix:{endpoint}", "backtrace", "--no-inject"), 2, "--no-inject", "give its pid")
    probing(str(sleeper.pid), "eject").ok()


@pytest.mark.parametrize("option", OPTIONS)
def test_the_target_ends(calls, probing_top, ptrace, option):  # noqa: F811
    running = calls()
    export = subprocess.Popen([probing_top.path, "--export", "folded", "--duration", "60", option, str(running.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(os.listdir(f"/proc/{export.pid}/task")) > 1, what="the reader to run")
    running.job.process.kill()
    out, err = export.communicate(timeout=30)
    assert (export.returncode, out) == (4, "") and err == f"probing-top: process {running.pid} has ended\n"


EXECS = """
import os, signal, sys, time
def first_life():
    signal.sigwait([signal.SIGUSR1])
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
def second_life():
    while True:
        time.sleep(0.001)
if len(sys.argv) > 1:
    second_life()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.write(int(os.environ["READY_FD"]), b"ready\\n")
first_life()
"""


def exported_over_exec(target, probing_top, out):
    """Status of an export of a job that execs meanwhile."""
    job = target(EXECS, name="execs.py")
    export = subprocess.Popen([probing_top.path, "--export", "json", "--no-inject", "--duration", "4", "-o", out,
                               str(job.pid)])
    wait_until(lambda: len(os.listdir(f"/proc/{export.pid}/task")) > 1, what="the reader to run")
    wait_until(lambda: open(f"/proc/{job.pid}/stat", encoding="ascii").read().split()[2] == "S", what="the job to wait")
    os.kill(job.pid, signal.SIGUSR1)
    return export.wait(timeout=60)


def test_the_target_becomes_another(target, probing_top, tmp_path):
    """A process that execs is found again; nothing of the one before is taken for its own."""
    out = tmp_path / "out.json"
    # A reader that comes too late sees the process while it is none of Python's, and refuses it: then once more.
    wait_until(lambda: {0: True, 3: False}[exported_over_exec(target, probing_top, out)], 120, "a reader in time")
    document = truth_of(out)
    last = [f["func"] for f in document["threads"][0]["frames"]]
    assert last == ["second_life", "<module>"], last
    for stack in document["samples"]:
        names = {f["func"] for f in stack["frames"]}
        assert not {"first_life", "second_life"} <= names, names


def test_help_names_the_options(probing, probing_top):
    for text in (probing("backtrace", "--help").ok().stdout, probing_top("--help").ok().stdout):
        assert re.search(r"^ +--no-inject ", text, re.M) and re.search(r"^ +--block ", text, re.M)


def test_python_of_the_tests_is_read_too(probing, ptrace):
    """This very process: many libraries, many frames."""
    document = probing(str(os.getpid()), "backtrace", "--no-inject", "--json").ok().json()
    main = [t for t in document["threads"] if t["tid"] == os.getpid()][0]
    if document["target"]["python"] != sys.version.split()[0]:
        pytest.skip(f"needs python: {sys.version.split()[0]} is not supported")
    assert "test_python_of_the_tests_is_read_too" in [f["func"].split(".")[-1] for f in main["frames"]]
    assert any(f["file"] == os.path.join(ROOT, "tests", "functional", "test_outside_read.py") for f in main["frames"])


def test_on_a_terminal(probing_top, plain_training, ptrace):
    """The screens over a reader outside: they move, say what they are, and end with the target."""
    from test_tui_pty import Terminal
    for option in OPTIONS:
        before = inside(plain_training)
        screen = Terminal([probing_top.path, "--screen", "threads", option, str(plain_training.pid)], rows=40, columns=140)
        try:
            screen.wait_for("READ-ONLY")
            screen.wait_for("Quit")
            screen.type("+")
            screen.type("q")
            assert os.WEXITSTATUS(screen.wait()) == 0
            screen.assert_restored()
        finally:
            screen.close()
        assert inside(plain_training)[0] == before[0] and plain_training.state() in ("R", "S")
    screen = Terminal([probing_top.path, "--screen", "threads", "--no-inject", str(plain_training.pid)], rows=40, columns=140)
    try:
        screen.wait_for("Quit")
        plain_training.process.kill()
        screen.wait_for("TARGET GONE")
        screen.type("q")
        assert os.WEXITSTATUS(screen.wait()) == 4
    finally:
        screen.close()


def test_picked_on_a_terminal(traced, probing_top):
    """One that can only be read is in the list of processes like any other."""
    from test_tui_pty import Terminal
    screen = Terminal([probing_top.path, "--screen", "threads"], rows=40, columns=140)
    try:
        screen.wait_for("Python processes")
        screen.type("\\" + os.path.dirname(traced.script) + "\r")
        screen.wait_for("only from outside")
        screen.type("\r")
        screen.wait_for(f"READ-ONLY: process {traced.pid} is being traced by process")
        screen.type("q")
        assert os.WEXITSTATUS(screen.wait()) == 0
    finally:
        screen.close()


def test_refused_on_a_terminal(traced, probing_top):
    from test_tui_pty import Terminal
    screen = Terminal([probing_top.path, "--screen", "threads", str(traced.pid)], rows=40, columns=140)
    try:
        screen.wait_for(f"READ-ONLY: process {traced.pid} is being traced by process")
        screen.type("q")
        assert os.WEXITSTATUS(screen.wait()) == 0
    finally:
        screen.close()


NAMESPACED = """
import os, sys, threading, time
def work():
    while True:
        sum(range(1000))
def wait():
    time.sleep(3600)
threading.Thread(target=work, name="worker", daemon=True).start()
threading.Thread(target=wait, name="waiter", daemon=True).start()
print(os.getpid(), [t.native_id for t in threading.enumerate()], flush=True)
wait()
"""


@pytest.mark.parametrize("option", OPTIONS)
def test_another_pid_namespace(any_python, probing, probing_top, ptrace, tmp_path, option):
    """A container's process: threads go by the numbers it knows them by, and those that run are found (and stopped) all the same."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rpf", "true"], capture_output=True).returncode:
        pytest.skip("needs namespaces: unshare may not make one")
    script = tmp_path / "namespaced.py"
    script.write_text(NAMESPACED)
    outer = subprocess.Popen(["unshare", "-rpf", any_python, str(script)], stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    try:
        inner_pid, tids = outer.stdout.readline().split(" ", 1)
        with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii") as children:
            pid = children.read().split()[0]
        document = probing(pid, "backtrace", "--json", option).ok().json()
        assert document["target"]["pid"] == int(inner_pid) != int(pid)
        assert sorted(t["tid"] for t in document["threads"]) == sorted(map(int, tids.strip("[] \n").split(",")))
        assert [t["name"] for t in document["threads"]][0] == "MainThread"
        worker = [t for t in document["threads"] if t["name"] == "worker"][0]
        assert (worker["state"], worker["on_cpu"]) == ("R", True) and (worker["stopped_us"] > 0) is (option == "--block")
        folded = probing_top("--export", "folded", "--threads", "--duration", "1", option, pid).ok().stdout
        assert re.search(r"^thread worker \(\d+\);.*;work \(namespaced\.py:[45]\) \d+$", folded, re.M), folded
        assert re.search(r"^thread waiter \(\d+\);.*;wait \(namespaced\.py:7\) \d+$", folded, re.M), folded
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        outer.wait()
        outer.stdout.close()
