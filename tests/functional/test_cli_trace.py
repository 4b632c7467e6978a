# SPDX-License-Identifier: Apache-2.0
"""probing PID trace: times of modules on the command line; what it arms is gone when it is, however it ends."""

import json
import signal
import subprocess

import pytest
from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until
from test_modules_trace import leases, make_trainer, trainer, wait_no_hooks, wait_told  # noqa: F401


@pytest.fixture
def training(trainer):  # noqa: F811
    """A job that trains, with an agent, and a client that looks on."""
    with Client(trainer.start()) as watcher:
        wait_told(watcher)
        trainer.do("begin()")
        yield trainer, watcher
        trainer.do("end()")


def test_times_of_modules(training, probing):
    j, watcher = training
    document = probing(str(j.pid), "trace", "--steps", "3", "--json", timeout=90).ok().json()
    wait_until(lambda: not leases(watcher), timeout=60, what="the lease to end", interval=0.05)
    wait_no_hooks(j, "the hooks to be gone")
    assert document["schema_version"] == 1 and document["steps"] == 3 and document["last_step"] >= document["first_step"] + 2
    modules = {module["module"]: module for module in document["modules"]}
    assert {"", "first", "first.linear", "second", "twice", "hostile", "raises", "head"} <= set(modules)
    for module, ms, calls in (("first", 4, 1), ("second", 8, 1), ("twice", 4, 2)):
        row = modules[module]
        assert row["steps"] == 3 and row["type"] == "Slow" and row["calls"] == calls
        assert ms <= row["forward_ms"] <= document["step_ms"] and 2 * ms <= row["backward_ms"] <= document["step_ms"]
        assert row["activation_bytes"] == 4 * 8 * 4 * calls
    assert modules["raises"]["forward_ms"] is None and modules["raises"]["calls"] == 0
    assert modules[""]["forward_ms"] >= modules["second"]["forward_ms"]


def test_for_people(training, probing):
    j, _ = training
    lines = probing(str(j.pid), "trace", "--for", "5s", timeout=90).ok().stdout.splitlines()
    steps = int(lines[0].split()[0])
    assert steps >= 1 and lines[0].split()[1:3] == ["step" if steps == 1 else "steps", "of"], lines[0]
    assert lines[2].split()[:2] == ["MODULE", "TYPE"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:]}
    assert rows["(model)"][0] == "Model" and rows["second"][0] == "Slow" and float(rows["second"][1]) >= 8
    assert rows["raises"][1:4] == ["?", "?", "?"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_early(training, probing, number):
    """^C tells what was seen until then; who is killed leaves nothing behind either."""
    j, watcher = training
    command = [probing.path, str(j.pid), "trace", "--steps", "1000", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            wait_until(lambda: any(lease["looks"] >= 2 for lease in leases(watcher)), timeout=60, what="looks", interval=0.05)
            run.send_signal(number)
            out, _ = run.communicate(timeout=60)
        finally:
            run.kill()
        if number == signal.SIGINT:
            assert run.returncode == 0 and json.loads(out)["steps"] >= 2
        else:
            assert run.returncode == -number and out == ""
    wait_until(lambda: not leases(watcher), timeout=60, what="the lease to end", interval=0.05)
    wait_no_hooks(j, "the hooks to be gone")


def test_nothing_to_trace(job, probing):  # noqa: F811
    """A job without torch; a verb that is given nonsense; no process of that number."""
    j = job()
    j.start()
    done = probing(str(j.pid), "trace", "--for", "3s", timeout=60)
    assert done.status == 1 and done.stdout == "" and "no training step was traced: " in done.stderr, done
    assert done.stderr.count("\n") == 1
    for words, why in ((["--steps", "0"], "--steps"), (["--for", "soon"], "--for"), (["fast"], "takes no arguments")):
        done = probing(str(j.pid), "trace", *words)
        assert done.status == 2 and why in done.stderr and done.stderr.count("\n") == 1, done


@pytest.mark.long
def test_as_many_as_were_asked_for(training, probing):
    """Another client's lease, that ends sooner and has a step begun already; and fewer than were asked for, with the reason."""
    j, watcher = training
    watcher.call("arm", {"what": "trace", "steps": 2})
    wait_until(lambda: leases(watcher)[0]["looks"] >= 1, timeout=60, what="a look", interval=0.01)
    document = probing(str(j.pid), "trace", "--steps", "3", "--json", timeout=120).ok().json()
    assert document["steps"] >= 3 and document["last_step"] >= document["first_step"] + 2
    wait_until(lambda: not leases(watcher), timeout=60, what="the lease to end", interval=0.05)
    lines = probing(str(j.pid), "trace", "--steps", "90000", "--for", "6s", timeout=90).ok().stdout.splitlines()
    assert 1 <= int(lines[0].split()[0]) < 90000
    assert lines[1].startswith("90000 were asked for: timed out (increase the time with --for)"), lines[:3]
    wait_until(lambda: not leases(watcher), timeout=60, what="the lease to end", interval=0.05)
    wait_no_hooks(j, "the hooks to be gone")
