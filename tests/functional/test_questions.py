# SPDX-License-Identifier: Apache-2.0
"""docs/questions.md: each command of it, on the job that it names, says what the page shows of it."""

import os
import re
import subprocess
import time

import pytest
from conftest import ROOT, inject_in_time, long_but
from test_faults import JOBS, fault  # noqa: F401

PAGE = os.path.join(ROOT, "docs", "questions.md")
PID = "4242"  # on the page
PATIENCE = 60
SECTION = re.compile(r"^## (?P<number>\d+)\. (?P<question>.+)$\n+(?P<where>(?:(?!```).+\n)+)\n*```\n\$ (?P<command>.+)\n(?P<output>[^`]*)```\n<!-- shows: (?P<shows>.+) -->$", re.M)


def questions():
    """[{number, question, where, job, command, output, shows}]"""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    found = [match.groupdict() for match in SECTION.finditer(text)]
    for one in found:
        one["job"] = re.search(r"\((?:\.\./)(examples/train|tests/faults/\w+)\.py\)", one["where"])[1]
    assert len(found) == len(re.findall(r"^## \d", text, re.M)), "a section that is not like the others"
    return found


QUESTIONS = questions()
# The jobs of the others are among those of test_faults.py.
QUICK = ["examples/train", "tests/faults/nan_loss", "tests/faults/hang_holder_named"]


def test_the_page():
    """Twenty or so, numbered; what is shown is what its own pattern says; and keys open the screens that stand beside them."""
    assert len(QUESTIONS) >= 20 and [int(one["number"]) for one in QUESTIONS] == list(range(1, len(QUESTIONS) + 1))
    for one in QUESTIONS:
        assert re.search(one["shows"], one["output"]), one["question"]
        assert one["question"].endswith("?") and len(one["output"].splitlines()) <= 16, one["question"]


def test_keys_open_their_screens(probing_top):
    listed = subprocess.run([probing_top.path, "--list-keys"], capture_output=True, text=True, check=True).stdout
    opens = {(name.lower(), key) for key, name in re.findall(r"^\w+ +(\S+) +(\w+) +the \w+ screen", listed, re.M)}
    named = [pair for one in QUESTIONS for pair in re.findall(r"([A-Z]\w+) \(`(\w)`\)", one["where"])]
    assert len(named) >= 15
    for name, key in named:
        assert (name.lower(), key) in opens, (name, key)


def one_of_training(name):
    with open(os.path.join(ROOT, name + ".py"), encoding="utf-8") as file:
        return "Loop(" in file.read()


@pytest.fixture
def run_job(fault, target, torch_python, torch_fork, probing, tmp_path, wait_until):  # noqa: F811
    def make(name):
        if name == "examples/train":
            out = target(os.path.join(ROOT, "examples", "train.py"), "--workers", "0", python=torch_python, fork=torch_fork,
                         env={"OMP_NUM_THREADS": "1", "PROBING_MAX_MEMORY": "16MB"}, ready=r"step +\d+ ", timeout=180)
            inject_in_time(probing, out.pid)
            return out
        said = JOBS[os.path.basename(name)]
        when = "before" if "before" in said["attach"] else "after"
        job = fault(os.path.basename(name), when)
        if when == "after":
            job.wait_fault()
        inject_in_time(probing, job.pid)
        if when == "before":
            if one_of_training(name):  # it is stuck only if it was seen to move
                wait_until(lambda: "MOVING" in probing(job.pid, "verdict").stdout, 60, "steps")
            with open(job.go, "w", encoding="ascii"):
                pass
            job.wait_fault()
        return job
    return make


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", long_but(QUICK, sorted({one["job"] for one in QUESTIONS})))
def test_answers(name, run_job, probing, tmp_path):
    """Of each job in turn: the command ends well, and its output shows what the page says, if not at once then soon."""
    job = run_job(name)
    path = os.path.dirname(probing.path) + ":" + os.environ["PATH"]
    for one in (one for one in QUESTIONS if one["job"] == name):
        command, until = one["command"].replace(PID, str(job.pid)), time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=dict(os.environ, PATH=path), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
            shown = done.stdout.replace(str(job.pid), PID)
            if (done.returncode == 0 and re.search(one["shows"], shown)) or time.monotonic() > until:
                break
            time.sleep(0.5)
        assert done.returncode == 0 and re.search(one["shows"], shown), f"{one['question']}\n{command}\n{shown}"
