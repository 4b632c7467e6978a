# SPDX-License-Identifier: Apache-2.0
"""Every verb has an example, in --help and in the manual page, and it does what it says when it is typed in a shell, on the training example."""

import os
import re
import shlex
import socket
import subprocess

import pytest

from conftest import ROOT, wait_until
from test_manual import page_text

EXAMPLE = os.path.join(ROOT, "examples", "train.py")
SCRIPT = "import os\nprint('script in', os.getpid())\n"
TRAIN = "import sys\nprint('trained', sys.argv[1:])\n"

# What shows that it did it, in what it prints; or the file that it writes. Of others that they end well and print something is enough.
SHOWS = {"list": "PID", "inject": "process PID", "listen": "token", "launch": "trained ['--epochs', '3']", "backtrace": "MainThread",
         "dump": '"schema_version"', "execute": "script in PID", "repl": "2\n", "query": "lineno", "memory": "MiB", "config": "20",
         "status": '"schema_version"', "tables": "lineno", "cluster attach": "already loaded", "cluster detach": "ejected"}
FILES = {"flamegraph": "flame.svg", "pprof": "profile.pb.gz", "record": "run.db", "profile": "trace.json", "report": "report.html"}


def verbs(path):
    listed = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\w+(?: \w+)?)  +", listed, re.M)


def example_of(path, verb):
    done = subprocess.run([path, *verb.split(), "--help"], capture_output=True, text=True, check=True)
    found = re.findall(r"^example: (.*)$", done.stdout, re.M)
    assert len(found) == 1, f"{verb} has no example: .example of its struct in src/cli/verb_{verb}.c"
    return found[0]


def test_each_has_one_that_is_of_it(build_dir, probing):
    """It names its verb, and the job that all are about; the manual page has it."""
    page = page_text(build_dir, "probing")
    names = verbs(probing.path)
    assert len(names) >= 20
    for verb in names:
        example = example_of(probing.path, verb)
        assert f" {verb}" in example and "probing" in shlex.split(example), example
        assert f"    {example}\n" in page, example


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module")
def job(torch_python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    output = folder / "job.txt"
    with open(output, "wb") as file:
        made = subprocess.Popen([torch_python, "-u", EXAMPLE, "--workers", "0"], stdout=file, stderr=file, cwd=folder,
                                env=dict(os.environ, OMP_NUM_THREADS="1", RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1"))
    wait_until(lambda: "loss" in output.read_text() or made.poll() is not None, 120, "its first steps", interval=0.1)
    assert made.poll() is None, output.read_text()
    yield made
    made.kill()
    made.wait()


@pytest.fixture
def shell(build_dir, torch_python, tmp_path):
    """A folder in which the examples are typed: with train.py, script.py, and a python that has torch."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(torch_python)} "$@"\n')
    (bin_folder / "python").chmod(0o755)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "train.py").write_text(TRAIN)
    path = os.pathsep.join([os.path.abspath(build_dir), str(bin_folder), os.environ["PATH"]])
    return lambda line: subprocess.run(["sh", "-c", line], cwd=tmp_path, env=dict(os.environ, PATH=path), stdin=subprocess.DEVNULL,
                                       capture_output=True, text=True, timeout=150, check=False)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_each_does_what_it_says(job, probing, shell, tmp_path, ptrace):
    for verb in verbs(probing.path):
        if verb not in ("list", "inject", "launch"):  # some are about an agent that is there, and eject is one of those before them
            probing(job.pid, "inject").ok()
        line = example_of(probing.path, verb)
        if verb == "relay":  # it runs until it is ended: test_relay_to.py
            continue
        done = shell(line.replace("4242", str(job.pid)).replace("3344", free_port()))
        said = done.stdout.replace(str(job.pid), "PID")
        assert done.returncode == 0 and (said or verb in FILES), (line, done)
        assert SHOWS.get(verb, "") in said, (line, done)
        if verb in FILES:
            assert (tmp_path / FILES[verb]).stat().st_size > 100, line
        if verb in ("pause", "catch"):
            probing(job.pid, verb, "--off").ok()
        assert job.poll() is None, line
