# SPDX-License-Identifier: Apache-2.0
"""Command lines that people who know this kind of tool type, as they type them, on the training example: each does what they expect."""

import os
import re
import shlex
import signal
import socket
import subprocess

import pytest

from conftest import ROOT, wait_until
from test_autostart import agent_file, environment

__all__ = ["agent_file", "environment"]  # fixtures

EXAMPLE = os.path.join(ROOT, "examples", "train.py")
SCRIPT = "import os\nprint('pid', os.getpid())\n"


def svg(done, folder):
    return any(name.endswith(".svg") and b"<svg" in (folder / name).read_bytes() for name in os.listdir(folder)) or "<svg" in done.stdout


def gzipped(done, folder):
    return done.stdout.startswith("\x1f\x8b")


def paused(done, folder):
    """And then, as with nc."""
    _, token, *_, host, port = done.stdout.splitlines()[-1].replace(";", " ").split()
    with socket.create_connection((host, int(port)), timeout=60) as s, s.makefile("rw") as file:
        file.write(f"{token}\nwhere\ncontinue\n")
        file.flush()
        said = file.read()
    return "threads are held" in done.stdout and " train (" in done.stdout + said.replace("train()", " train (") and "the pause is over: continue" in said


# The line, and what shows that it did what it is for.
LINES = [
    ("probing -t PID inject", lambda done, folder: "process PID" in done.stdout and "agent" in done.stdout),
    ("probing PID inject -P -c -b -a 127.0.0.1:0", lambda done, folder: "127.0.0.1:" in done.stdout and "100 samples a second" in done.stdout
     and "uncaught exception" in done.stdout),
    ("probing PID inject -c", lambda done, folder: "uncaught exception" in done.stdout),  # again, as it was
    ("probing PID catch --off", lambda done, folder: "no longer caught" in done.stdout),
    ("probing -t PID backtrace", lambda done, folder: " train (" in done.stdout and "MainThread" in done.stdout),
    ("probing PID dump", lambda done, folder: " train (" in done.stdout and "MainThread" in done.stdout),
    ('probing -t PID eval "import threading; print([t.name for t in threading.enumerate()])"', lambda done, folder: "'MainThread'" in done.stdout),
    ("probing PID execute script.py", lambda done, folder: done.stdout == "pid PID\n"),
    ('probing PID execute "import traceback;traceback.print_stack()"', lambda done, folder: 'File "' in done.stdout + done.stderr),
    # Of the main thread, which may be in `train` itself, or deep in torch.
    ('probing -t PID query "SELECT func, file, lineno FROM python.backtrace LIMIT 5"',
     lambda done, folder: re.search(r"\([345] rows", done.stdout) and re.search(r"\.py +\| +\d+\n", done.stdout)),
    ("probing -t PID memory", lambda done, folder: "MiB" in done.stdout),
    ("probing -t PID flamegraph", svg),
    ("probing PID pprof", gzipped),
    ("probing -t PID repl", lambda done, folder: done.stdout == "2\n"),
    ("probing -t PID config", lambda done, folder: "probing.sample_rate" in done.stdout),
    ("probing -t PID config probing.sample_rate=0.05", lambda done, folder: done.stdout == "0.05\n"),
    ("probing -t PID config probing.max_memory=1GB", lambda done, folder: done.stdout == "1G\n"),
    ("probing PID listen 127.0.0.1:0", lambda done, folder: "127.0.0.1:" in done.stdout and "token" in done.stdout),
    ("probing PID pause 127.0.0.1:0", paused),
    ("probing PID catch", lambda done, folder: "an uncaught exception on any thread will hold its thread" in done.stdout),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("seed")
    (made / "script.py").write_text(SCRIPT)
    return made


def start(torch_python, folder, name, script=EXAMPLE, **env):
    output = folder / f"{name}.txt"
    with open(output, "wb") as file:
        job = subprocess.Popen([torch_python, "-u", script, *(["--workers", "0"] if script == EXAMPLE else [])], stdout=file, stderr=file, cwd=folder,
                               env=dict(os.environ, OMP_NUM_THREADS="1", **env))
    wait_until(lambda: "loss" in output.read_text() or job.poll() is not None, 120, "its first steps", interval=0.1)
    assert job.poll() is None, output.read_text()
    return job


def end(job):
    job.send_signal(signal.SIGKILL)
    job.wait()


@pytest.fixture(scope="module")
def job(torch_python, folder):
    made = start(torch_python, folder, "job")
    yield made
    end(made)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("line, does", LINES, ids=[line for line, _ in LINES])
def test_line(job, probing, folder, ptrace, line, does):
    words = [word.replace("PID", str(job.pid)) for word in shlex.split(line)]
    work = folder / str(LINES.index((line, does)))
    work.mkdir()
    (work / "script.py").write_text(SCRIPT)
    done = subprocess.run([probing.path, *words[1:]], cwd=work, input="1 + 1\n", capture_output=True, encoding="latin-1", timeout=120, check=False)
    said = subprocess.CompletedProcess(done.args, done.returncode, done.stdout.replace(str(job.pid), "PID"), done.stderr)
    assert done.returncode == 0 and does(said, work), (said, os.listdir(work))
    assert job.poll() is None


# From the beginning: variables of the environment, and what shows that they were heard.
STARTS = [
    pytest.param({"PROBING": "1"}, "probing.sample_rate", None, id="PROBING"),
    pytest.param({"PROBING_TORCH_PROFILING": "on,exprs=loss@train_step"}, "probing.torch_profiling", "on,exprs=loss@train_step", id="TORCH_PROFILING"),
    pytest.param({"PROBING_RETENTION_DAYS": "7"}, "probing.retention_days", "7", id="RETENTION_DAYS", marks=pytest.mark.long),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("env, key, value", STARTS)
def test_start(torch_python, probing, build_dir, folder, env, key, value):
    """With the library preloaded, as LD_PRELOAD=libprobing.so python train.py."""
    job = start(torch_python, folder, f"{key}.{value}", LD_PRELOAD=os.path.join(build_dir, "libprobing.so"), **env)
    try:
        assert "preloaded" in probing(job.pid, "status").ok().stdout  # and not put in by asking
        if value:
            assert value in probing(job.pid, "config", key).ok().stdout
    finally:
        end(job)


# What examples/imagenet.py has: loss and acc1 of a function train.
IMAGENET = """
import sys, torch

def train(model, optimizer, images, target):
    output = model(images)
    loss = torch.nn.functional.cross_entropy(output, target)
    acc1 = (output.argmax(1) == target).float().mean() * 100
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, acc1

model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
while True:
    train(model, optimizer, torch.randn(16, 3, 8, 8), torch.randint(10, (16,)))
    step += 1
    if step == 5:
        print("loss is computed", flush=True)
"""


def rows(probing, job, text):
    """None of them while there is no such column yet: each watched expression has one of its own, made when it first had a value."""
    done = probing(job.pid, "query", text, "--format", "json")
    assert done.status == 0 or "no such column" in done.stderr or "no such table" in done.stderr, done
    return done.json()["rows"] if done.status == 0 else []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_environment_alone(torch_python, environment, probing, folder):
    """PROBING=1 before a command, nothing else: by what `make install` puts beside the Python's modules."""
    site = subprocess.run([torch_python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True, check=True)
    python = environment(torch_python, site.stdout.strip())
    script = folder / "imagenet.py"
    script.write_text(IMAGENET)
    job = start(python, folder, "sampled", PROBING="1", PROBING_SAMPLE_RATE="0.1", PROBING_RETENTION_DAYS="7")
    try:
        assert "preloaded" in probing(job.pid, "status").ok().stdout or "environment" in probing(job.pid, "status").ok().stdout
        assert probing(job.pid, "config", "probing.sample_rate").ok().stdout.startswith("0.1")
        assert probing(job.pid, "config", "probing.retention_days").ok().stdout.startswith("7")
    finally:
        end(job)
    job = start(python, folder, "imagenet", script=str(script), PROBING="1", PROBING_TORCH_PROFILING="on,exprs=loss@train,acc1@train")
    try:
        wait_until(lambda: rows(probing, job, "SELECT loss, acc1 FROM training_logs WHERE loss > 0 AND acc1 >= 0 LIMIT 1"), 120, "watched values")
        wait_until(lambda: rows(probing, job, "SELECT operation_name FROM python.torch_trace LIMIT 1"), 120, "modules that were timed")
    finally:
        end(job)
