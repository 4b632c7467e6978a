# SPDX-License-Identifier: Apache-2.0
"""debugpy begun in a running job: a client attaches, is held at a breakpoint, reads locals, leaves; and nothing of it stays."""

import os
import signal
import socket
import subprocess

import pytest

from dap_client import DapClient
from left_behind import LEFT

pytestmark = pytest.mark.timeout(300)

JOB = r'''
import os, sys, threading, time

count = 0

def step(number):
    doubled = 2 * number
    return doubled  # held here

def other():
    while True:
        time.sleep(0.01)

def work():
    global count
    while True:
        step(count)
        count += 1
        time.sleep(0.002)

threading.Thread(target=other, name="other", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
work()
'''

WHOLE = r'''
[n for n in ("execfile", "runfile") if hasattr(__import__("builtins"), n)] + [t.name for t in __import__("threading").enumerate()
    if t.name not in ("MainThread", "other")] + [__import__("sys").breakpointhook] * (__import__("sys").breakpointhook is not __import__("sys").__breakpointhook__)
'''


@pytest.fixture
def debugpy_for():
    """The options that name a debugpy for this Python (tools/greenlets.sh); none where it has its own."""
    def find(python):
        minor = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True,
                               check=True).stdout.strip()
        if int(minor.split(".")[1]) < 8:
            pytest.skip("debugpy needs Python 3.8")
        folder = os.path.join(os.environ.get("PROBING_TEST_DEBUGPYS", "/nonexistent"), minor)
        if os.path.isdir(folder):
            return ["--path", folder]
        if subprocess.run([python, "-c", "import debugpy"], capture_output=True).returncode != 0:
            pytest.skip(f"needs debugpy for Python {minor}")
        return []
    return find


def begin(probing, job, options, **more):
    document = probing(str(job.pid), "debug", "--json", "--exposed", "--timeout", "90", *options, timeout=120, **more).ok().json()
    assert document["listening"] and document["host"] == "127.0.0.1" and not document["client_attached"]
    assert document["launch"]["connect"] == {"host": "127.0.0.1", "port": document["port"]}
    assert document["launch"]["request"] == "attach" and "pathMappings" not in document["launch"]
    return document["port"]


def value(probing, job, code):
    return eval(probing(str(job.pid), "execute", "-", stdin=code, timeout=60).ok().stdout)


def adapters(of):
    """Processes of debugpy's adapter that listen for this port's client."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if b"--for-server" in words and str(of).encode() in words and state != "Z":
            found.append(int(pid))
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def hold_and_leave(port, path, line, name):
    client = DapClient(port)
    client.attach({path: [line]})
    stopped = client.event("stopped")
    assert stopped["reason"] == "breakpoint"
    held = client.locals(stopped["threadId"])
    assert held[:2] == (name, line)
    client.ask("continue", threadId=stopped["threadId"])
    again = client.locals(client.event("stopped")["threadId"])
    client.ask("disconnect", terminateDebuggee=False)
    client.close()
    return held[2], again[2]


def line_of(path, text):
    with open(path, encoding="utf-8") as file:
        return [n for n, line in enumerate(file, 1) if text in line][0]


def counts_on(probing, job, wait_until):
    before = value(probing, job, "count")
    wait_until(lambda: value(probing, job, "count") > before + 3, 60, "the job to go on")


def test_attach_hold_read_leave(probing, target, each_python, debugpy_for, wait_until):
    options = debugpy_for(each_python)
    job = target(JOB, python=each_python)
    wanted = free_port()
    for port in (wanted, None):  # what is taken out can be put in again
        got = begin(probing, job, [*options, *([str(port)] if port else [])])
        assert port is None or got == port
        wait_until(lambda: value(probing, job, LEFT) == [], 60, "nothing to be traced while nobody is attached")
        for _ in range(2):  # and one client comes after another
            first, second = hold_and_leave(got, job.script, line_of(job.script, "# held here"), "step")
            assert int(first["doubled"]) == 2 * int(first["number"]) and int(second["number"]) == int(first["number"]) + 1
            wait_until(lambda: value(probing, job, LEFT) == [], 60, "nothing to be traced any more")
            counts_on(probing, job, wait_until)
        assert probing(str(job.pid), "debug", "--off").ok().stdout == "debugpy has ended\n"
        assert value(probing, job, LEFT) == [] and value(probing, job, WHOLE) == []
        assert probing(str(job.pid), "debug", "--off").ok().stdout == "debugpy does not listen\n"
        with pytest.raises(OSError):
            DapClient(got)
    counts_on(probing, job, wait_until)
    assert job.alive()


def test_ends_with_the_agent_and_with_the_job(probing, target, any_python, debugpy_for, wait_until):
    options = debugpy_for(any_python)
    job, port = target(JOB), free_port()
    begin(probing, job, [*options, str(port)])
    assert len(adapters(port)) == 1
    inherited = {os.readlink(f"/proc/{adapters(port)[0]}/fd/{n}") for n in os.listdir(f"/proc/{adapters(port)[0]}/fd")}
    assert not [f for f in inherited if "probing" in f], inherited
    assert begin_again(probing, job, options).startswith(f"probing: debugpy listens already, on 127.0.0.1:{port}")
    client = DapClient(port)
    client.attach({job.script: [line_of(job.script, "# held here")]})
    client.event("stopped")
    wait_until(lambda: probing(str(job.pid), "eject").status == 0, 60, "the agent to end")
    wait_until(lambda: not adapters(port), 60, "the adapter to end with the agent")
    client.close()
    counts_on(probing, job, wait_until)
    wait_until(lambda: value(probing, job, LEFT) == [], 60, "nothing to be traced any more")
    begin(probing, job, [*options, str(port)])
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: not adapters(port), 60, "the adapter to end with the job")


def begin_again(probing, job, options):
    done = probing(str(job.pid), "debug", "--exposed", *options, timeout=60)
    assert done.status == 1 and done.stderr.count("\n") == 1, done
    return done.stderr


def test_a_real_training_job(probing, training, torch_python, debugpy_for, wait_until):
    port = begin(probing, training, debugpy_for(torch_python))
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "examples", "train.py")
    line = line_of(path, "loss.backward()")
    client = DapClient(port)
    client.attach({path: [line]})
    stopped = client.event("stopped")
    assert "loss" in client.locals(stopped["threadId"])[2]
    client.ask("disconnect", terminateDebuggee=False)
    client.close()
    before = training.counter()
    wait_until(lambda: training.counter() > before + 5, 60, "it to train on")
    wait_until(lambda: value(probing, training, LEFT) == [], 60, "nothing to be traced any more")


def test_one_who_is_debugged_already_is_left_alone(probing, target, any_python, debugpy_for):
    job = target(JOB.replace("os.write(", "sys.settrace(lambda *a: None)\nthreading.settrace(lambda *a: None)\nos.write("))
    assert "the job has a trace function already" in begin_again(probing, job, debugpy_for(any_python))
    assert value(probing, job, "'debugpy' in __import__('sys').modules") is False


def test_what_cannot_be(probing, target, any_python, debugpy_for, tmp_path):
    job, options = target(JOB, env={"PYTHONNOUSERSITE": "1"}), debugpy_for(any_python)
    assert "--path takes the folder" in begin_again(probing, job, ["--path", str(tmp_path)])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "in use" in begin_again(probing, job, [*options, str(taken.getsockname()[1])])
    for bad, said in ((["0.0.0.0:0"], "--exposed"), (["nonsense"], "not an address"), (["127.0.0.1:99999"], "not an address"),
                      (["--off", "--status"], "cannot be combined"), (["--path", "/nonexistent/x"], "there is no folder")):
        done = probing(str(job.pid), "debug", *bad)
        assert done.status == 2 and said in done.stderr and done.stderr.count("\n") == 1, done
    done = probing("--readonly", str(job.pid), "debug")
    assert done.status == 2 and "readonly" in done.stderr
    probing(str(job.pid), "config", "probing.eval=off").ok()
    assert "probing.eval is off" in begin_again(probing, job, options)
    assert value_off(probing, job)
    probing(str(job.pid), "config", "probing.eval=on").ok()
    assert value(probing, job, LEFT) == []
    begin(probing, job, options)


def value_off(probing, job):
    return "probing.eval is off" in probing(str(job.pid), "debug", "--status").stderr


def test_a_gil_that_is_never_had(probing, target, build_dir, any_python, debugpy_for):
    from test_eval import HOG
    job = target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so"))
    done = probing(str(job.pid), "debug", "--timeout", "1", *debugpy_for(any_python), timeout=60)
    assert done.status == 1 and "nothing was run, and nothing will be" in done.stderr, done
