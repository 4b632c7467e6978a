# SPDX-License-Identifier: Apache-2.0
"""The agent comes by itself: preloaded, by probing.pth and $PROBING, by `probing launch`; and does nothing where it is not wanted."""

import json
import os
import signal
import struct
import subprocess

import pytest

from conftest import ROOT, inject_in_time, run_command, wait_until
from test_tui_tmux import screen

__all__ = ["screen"]  # a fixture

# Says on its ready line what it sees of itself, then waits.
WAITS = """
import json, os, sys, time
def names():
    return sorted(open("/proc/self/task/%s/comm" % t).read().strip() for t in os.listdir("/proc/self/task"))
os.write(int(os.environ["READY_FD"]), json.dumps({
    "PROBING": os.environ.get("PROBING"), "LD_PRELOAD": os.environ.get("LD_PRELOAD"),
    "threads": len(os.listdir("/proc/self/task")),
    "modules": sorted(m for m in ("ctypes", "_probing_start") if m in sys.modules)}).encode() + b"\\n")
while True:
    time.sleep(0.05)
"""

# The same as a launcher: a Python that it starts, a child that it forks, and where these are.
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time\\nwhile True: time.sleep(0.05)"])
forked = os.fork()
if forked == 0:
    while True:
        time.sleep(0.05)
os.write(int(os.environ["READY_FD"]), b"%d %d\\n" % (child.pid, forked))
while True:
    time.sleep(0.05)
"""

FEW = ("3.6", "3.9", "3.11", "3.12", "3.13")


@pytest.fixture(params=FEW)
def some_python(request, python_for):
    return python_for(request.param)


@pytest.fixture(scope="session")
def agent_file(build_dir):
    path = os.path.join(build_dir, "libprobing.so")
    assert os.path.exists(path), f"{path} is not built"
    return path


@pytest.fixture
def environment(tmp_path, agent_file):
    """environment(python, *folders): a virtual environment that heeds $PROBING; it sees what is in `folders`, too."""
    def make(python, *folders):
        home = tmp_path / "environment"
        made = subprocess.run([python, "-m", "venv", "--without-pip", str(home)], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"needs venv: {made.stderr.strip() or made.stdout.strip()}")
        inside = str(home / "bin" / "python")
        if not os.path.exists(inside):  # a link to what is in another root
            pytest.skip(f"needs venv: one of {python} is of no use here")
        done = install(inside, agent_file)
        assert done.status == 0, done
        if folders:
            pth = subprocess.run([inside, "-c", "import _probing_start as p; print(p.__file__)"], capture_output=True,
                                 text=True, env=dict(os.environ, PROBING="0")).stdout.strip()
            with open(os.path.join(os.path.dirname(pth), "more.pth"), "w", encoding="utf-8") as file:
                file.write("\n".join(folders) + "\n")
        return inside
    return make


def install(python, agent_file, what="install"):
    return run_command([os.path.join(ROOT, "tools", "install_python.sh"), what, python, agent_file])


def thread_names(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as comm:
                names.append(comm.read().strip())
        except OSError:
            continue
    return names


def wait_for_agent(pid):
    wait_until(lambda: "probing-smp" in thread_names(pid), 30, f"the agent in process {pid}")


def has_agent_threads(pid):
    return any(name.startswith("probing-") for name in thread_names(pid))


def check_found(probing, pid, strategy):
    """It is listed as having an agent, and answers through it; nothing was injected, and the agent reports how it was loaded."""
    wait_for_agent(pid)
    rows = {row["pid"]: row for row in probing("list", "--json").ok().json()["processes"]}
    assert rows[pid]["agent"] is True
    document = probing(str(pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "agent"
    assert probing(str(pid), "status", "--json").ok().json()["strategy"] == strategy
    assert any(frame["func"] == "<module>" for thread in document["threads"] for frame in thread["frames"])
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        assert "memfd:libprobing" not in maps.read()


def check_opened(screen, probing_top, pid):
    """A person opens it by its pid, and sees where it trains, through the agent that is there."""
    s = screen(columns=120, rows=40)
    s.shell(f"{probing_top.path} --screen threads {pid}; echo status=$?")
    s.wait_for("CONNECTED", 60)
    s.wait_for("Stack of MainThread", 60)
    s.wait_for("train.py:", 60)
    s.keys("q")
    s.wait_for("status=0", 60)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        assert "memfd:libprobing" not in maps.read()


# --- preloaded ----------------------------------------------------------------------------------------------------

def test_preloaded(target, probing, agent_file, some_python):
    job = target(WAITS, python=some_python, env={"LD_PRELOAD": agent_file})
    check_found(probing, job.pid, "preloaded")
    assert "loaded by      preloaded\n" in probing(str(job.pid), "status").ok().stdout
    seen = json.loads(job.ready)
    assert seen["LD_PRELOAD"] == agent_file  # who preloads means the children, too


def test_preloaded_and_ejected_and_injected_again(target, probing, agent_file, ptrace):
    job = target(WAITS, env={"LD_PRELOAD": agent_file})
    wait_for_agent(job.pid)
    probing(str(job.pid), "eject").ok()
    wait_until(lambda: not has_agent_threads(job.pid), 10, "the agent's threads to be gone")
    result = inject_in_time(probing, job.pid)
    assert result["reused"] and not result["already"]
    assert probing(str(job.pid), "status", "--json").ok().json()["strategy"] == result["strategy"]
    assert "probing-smp" in thread_names(job.pid)


@pytest.mark.parametrize("wish, started", [("1", True), ("2", True), ("0", False), ("", False), ("job.py", True),
                                           ("other.py", False), ("regex:job[.]py$", True), ("regex:^job", False)])
def test_preloaded_with_a_wish(target, agent_file, wish, started):
    job = target(WAITS, name="job.py", env={"LD_PRELOAD": agent_file, "PROBING": wish})
    seen = json.loads(job.ready)
    if started:
        wait_for_agent(job.pid)
    else: # the thread that waits is made before the interpreter starts, or never
        assert seen["threads"] == 1 and not has_agent_threads(job.pid)
    kept = wish != "1"
    assert seen["PROBING"] == (wish if kept else None)
    assert seen["LD_PRELOAD"] == (agent_file if kept else None)


@pytest.mark.parametrize("wish", [None, "1", "2"])
def test_preloaded_into_what_is_no_python(agent_file, wish):
    env = {"LD_PRELOAD": agent_file}
    if wish:
        env["PROBING"] = wish
    done = run_command(["sh", "-c", "echo $LD_PRELOAD; cat /proc/self/status; exit 3"], env=env)
    assert done.status == 3 and done.stderr == ""
    assert done.stdout.startswith(agent_file + "\n") and "\nThreads:\t1\n" in done.stdout


def test_preloaded_training(target, probing, probing_top, screen, torch_python, agent_file):
    job = target(os.path.join(ROOT, "examples", "train.py"), python=torch_python, env={"LD_PRELOAD": agent_file},
                 ready=r"step +\d+ ", timeout=120.0)
    check_found(probing, job.pid, "preloaded")
    assert f" {job.pid} " in " " + probing("list").ok().stdout.replace("\n", " ")
    check_opened(screen, probing_top, job.pid)


# --- by probing.pth -----------------------------------------------------------------------------------------------

def test_probing_1_by_environment(target, probing, environment, some_python):
    python = environment(some_python)
    job = target(WAITS, python=python, env={"PROBING": "1"})
    check_found(probing, job.pid, "probing.pth")
    assert json.loads(job.ready)["PROBING"] is None


def test_no_wish_loads_nothing(target, environment, some_python):
    python = environment(some_python)
    env = {name: value for name, value in os.environ.items() if name != "PROBING"}
    code = "import sys; print([m for m in ('ctypes', '_probing_start') if m in sys.modules])"
    for wish in ({}, {"PROBING": ""}, {"PROBING": "0"}):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=dict(env, **wish))
        assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("wish, started", [("job.py", True), ("regex:job[.]py", True), ("other.py", False)])
def test_names_and_patterns_by_environment(target, environment, any_python, wish, started):
    job = target(WAITS, python=environment(any_python), name="job.py", env={"PROBING": wish})
    assert json.loads(job.ready)["PROBING"] == wish
    # The agent starts before the script does, if it does.
    assert ("probing-smp" in thread_names(job.pid)) == started


@pytest.mark.long
def test_training_by_environment(target, probing, probing_top, screen, environment, torch_python):
    where = subprocess.run([torch_python, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"],
                           capture_output=True, text=True, check=True).stdout.strip()
    job = target(os.path.join(ROOT, "examples", "train.py"), python=environment(torch_python, where),
                 env={"PROBING": "1"}, ready=r"step +\d+ ", timeout=120.0)
    check_found(probing, job.pid, "probing.pth")
    check_opened(screen, probing_top, job.pid)


@pytest.mark.parametrize("wish, agent, said", [
    ("1", "/nonexistent/libprobing.so", "/nonexistent/libprobing.so"),
    ("regex:(", None, "PROBING=regex:( is not a valid POSIX extended regular expression: correct it")])
def test_what_fails_is_one_line(environment, any_python, wish, agent, said):
    env = {"PROBING": wish}
    if agent:
        env["PROBING_AGENT"] = agent
    done = run_command([environment(any_python), "-c", "print('on')"], env=env)
    assert done.status == 0 and done.stdout == "on\n"
    assert done.stderr.startswith("probing: the agent was not started: ") and said in done.stderr
    assert done.stderr.count("\n") == 1


def test_installed_and_taken_out(environment, any_python, agent_file, tmp_path):
    python = environment(any_python)
    found = [os.path.join(folder, name) for folder, _, names in os.walk(tmp_path / "environment") for name in names
             if "probing" in name]
    assert sorted(os.path.basename(path) for path in found) == ["_probing_start.py", "probing.pth"]
    assert run_command([python, "-c", "print(1)"], env={"PROBING": "1"}).stdout == "1\n"
    assert install(python, agent_file, "uninstall").status == 0
    assert not any("probing" in name for _, _, names in os.walk(tmp_path / "environment") for name in names)
    assert install(python, "/nonexistent/libprobing.so").status == 1
    assert "which Python?" in install("", agent_file).stderr
    assert "/bin/cat does not report its site-packages" in install("/bin/cat", agent_file).stderr


# --- what is started by it ----------------------------------------------------------------------------------------

def test_children_of_1_have_none(target, agent_file, environment, any_python):
    for options in ({"python": environment(any_python), "env": {"PROBING": "1"}},
                    {"env": {"PROBING": "1", "LD_PRELOAD": agent_file}}):
        job = target(PARENT, **options)
        wait_for_agent(job.pid)
        for child in map(int, job.ready.split()):
            wait_until(lambda pid=child: thread_names(pid), 10, "the child")
            with open(f"/proc/{child}/environ", "rb") as environ:
                given = environ.read()
            # What a forked child was started with is its parent's; what one that was executed got is its own.
            if child == int(job.ready.split()[0]):
                wait_until(lambda pid=child: b"-c" in open(f"/proc/{pid}/cmdline", "rb").read(), 10, "its exec")
                with open(f"/proc/{child}/environ", "rb") as environ:
                    given = environ.read()
                assert b"PROBING=" not in given and agent_file.encode() not in given
            assert not has_agent_threads(child)


def test_children_of_2_have_one(target, probing, agent_file, environment, some_python):
    for options in ({"python": environment(some_python)}, {"python": some_python}):
        env = {"PROBING": "2"}
        if options["python"] == some_python:
            env["LD_PRELOAD"] = agent_file
        job = target(PARENT, env=env, **options)
        wait_for_agent(job.pid)
        own = "preloaded" if "LD_PRELOAD" in env else "probing.pth"
        for child, strategy in zip(map(int, job.ready.split()), (own, "forked from a process with an agent")):
            wait_for_agent(child)
            # An interpreter that is just being made cannot be read yet, and is looked at again a second later.
            read = wait_until(lambda pid=str(child): (r := probing(pid, "backtrace", "--json")).status == 0 and r.json(), 30, "a readable Python")
            assert read["target"]["mode"] == "agent"
            assert probing(str(child), "status", "--json").ok().json()["strategy"] == strategy
        job.end()


# --- probing launch -----------------------------------------------------------------------------------------------

def test_launch_is_the_command(probing):
    assert probing("launch", "sh", "-c", "exit 7").status == 7
    assert probing("launch", "sh", "-c", "kill -TERM $$").status == -signal.SIGTERM
    done = probing("launch", "-r", "sh", "-c", 'echo "$0 $*"', "-r", "--json", "-t", "5").ok()
    assert done.stdout == "-r --json -t 5\n" and done.stderr == ""
    plain = run_command(["grep", "^Sig[BIC]", "/proc/self/status"]).stdout
    assert probing("launch", "grep", "^Sig[BIC]", "/proc/self/status").stdout == plain  # nothing of ours is ignored or blocked


def test_launch_keeps_what_was_preloaded(probing, agent_file):
    done = probing("launch", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "libm.so.6"}).ok()
    assert done.stdout == f"{os.path.realpath(agent_file)}:libm.so.6\n"


@pytest.fixture
def launched(probing, tmp_path):
    """launched(*words): a command under `probing launch`; its process and its first line, as of READY_FD."""
    processes = []

    def start(*words, env=None):
        reader, writer = os.pipe()
        process = subprocess.Popen([probing.path, "launch", *words], pass_fds=(writer,), start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   env=dict(os.environ, READY_FD=str(writer), **(env or {})))
        processes.append(process)
        os.close(writer)
        with os.fdopen(reader) as answer:
            process.ready = answer.readline().strip()
        assert process.ready, "it ended before it was ready"
        return process

    yield start
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def written(tmp_path, source, name="job.py"):
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    return str(path)


def test_launch_a_python(launched, probing, some_python, tmp_path):
    process = launched(some_python, written(tmp_path, WAITS))
    check_found(probing, process.pid, "preloaded")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM


def test_launch_by_a_script_of_the_shell(launched, probing, any_python, tmp_path):
    """The shell passes it on to the Python that it starts."""
    script = written(tmp_path, f'#!/bin/sh\n"{any_python}" "$1"\n', "run.sh")
    os.chmod(script, 0o755)
    job = written(tmp_path, WAITS.replace('"threads"', '"pid": os.getpid(), "threads"'))
    process = launched(script, job)
    check_found(probing, json.loads(process.ready)["pid"], "preloaded")


@pytest.mark.parametrize("recursive", [False, True], ids=["alone", "recursive"])
def test_launch_of_a_launcher(launched, probing, any_python, tmp_path, recursive):
    """What torchrun does: a Python that starts Pythons."""
    process = launched(*(["-r"] if recursive else []), any_python, written(tmp_path, PARENT))
    wait_for_agent(process.pid)
    for child in map(int, process.ready.split()):
        if recursive:
            wait_for_agent(child)
        else:
            assert not has_agent_threads(child)


EARLY = """
import os
child = os.fork()
if child:
    os.write(int(os.environ["READY_FD"]), b"%d\\n" % child)
import time
while True:
    time.sleep(0.05)
"""


def test_a_fork_before_there_is_an_agent(launched, any_python):
    """The first thing that a program does, while the agent still waits for Python: the child gets one as well."""
    for _ in range(3):
        process = launched("-r", any_python, "-S", "-E", "-c", EARLY)
        wait_for_agent(int(process.ready))


def elf(path, bits=64, loader=None):
    """An executable as far as its headers go."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    text = (loader or "").encode() + b"\0"
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62 if bits == 64 else 3, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    program = struct.pack("<IIQQQQQQ", 3 if loader else 1, 4, 120, 0, 0, len(text), len(text), 1)
    with open(path, "wb") as file:
        file.write(head + program + text)
    os.chmod(path, 0o755)
    return str(path)


def test_launch_says_what_takes_no_agent(probing, tmp_path):
    for made, said in ((elf(tmp_path / "old", 32), "is a 32-bit program"),
                       (elf(tmp_path / "static"), "is statically linked and cannot load the agent"),
                       (elf(tmp_path / "musl", loader="/lib/ld-musl-x86_64.so.1"), "runs on musl libc")):
        done = probing("launch", made)
        assert done.status == 3 and done.stdout == "" and done.stderr.count("\n") == 1
        assert made in done.stderr and said in done.stderr
        script = written(tmp_path, f"#! {made} -x\n", "script")
        os.chmod(script, 0o755)
        assert said in probing("launch", script).stderr
    assert probing("launch", "no-such-program").status == 1
    assert probing("launch", "/no/such/program").status == 1
    assert probing("launch").status == 2
    done = probing("launch", "true", env={"PROBING_AGENT": "/nonexistent"})
    assert done.status == 3 and "/nonexistent" in done.stderr
