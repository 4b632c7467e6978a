# SPDX-License-Identifier: Apache-2.0
"""The whole way, on a real PyTorch training: find, inject, look, leave; and the job continues as if nothing had been."""

import ast
import os
import signal
import subprocess

import pytest

from conftest import ROOT, process_state, wait_until

TRAIN = os.path.join(ROOT, "examples", "train.py")
OUR_THREADS = "probing"


# Expressions that have a code object of their own.
INNER_CODE = {ast.GeneratorExp: "<genexpr>", ast.Lambda: "<lambda>", ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>",
              ast.DictComp: "<dictcomp>"}


def function_lines(path):
    """{name: [(first line, last line)]} of the functions and methods of a source file, by qualified and by plain name
    (interpreters before 3.11 keep only that)."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines = {}

    def walk(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                name = prefix + child.name
                if isinstance(child, ast.FunctionDef):
                    for known_as in {name, child.name}:
                        lines.setdefault(known_as, []).append((child.lineno, child.end_lineno))
                    walk(child, name + ".<locals>.")
                else:
                    walk(child, name + ".")
            else:
                if type(child) in INNER_CODE:
                    for known_as in {prefix + INNER_CODE[type(child)], INNER_CODE[type(child)]}:
                        lines.setdefault(known_as, []).append((child.lineno, child.end_lineno))
                walk(child, prefix)
    walk(tree, "")
    return lines


def thread_named(document, name):
    found = [t for t in document["threads"] if t["name"] == name]
    assert len(found) == 1, f"{name} in {[t['name'] for t in document['threads']]}"
    return found[0]


def steps_rise(job, by=3):
    start = job.counter()
    wait_until(lambda: job.counter() >= start + by, 60, "the training's steps")


def our_threads(job):
    return [name for name in job.thread_names().values() if name.startswith(OUR_THREADS)]


def our_descriptors(job):
    return [link for link in job.fds().values() if "probing" in link]


def unix_sockets(pid):
    """Paths of the unix sockets that anybody listens at for this process."""
    with open("/proc/net/unix", encoding="utf-8") as table:
        return [line.split()[-1] for line in table if line.rstrip().endswith(f"/{pid}.sock")]


def assert_nothing_left(job):
    assert our_threads(job) == []
    assert our_descriptors(job) == []
    assert unix_sockets(job.pid) == []
    assert job.alive() and job.state() != "T"


def check_document(document, job, torch):
    """What every backtrace document must be, whatever the job does."""
    assert document["schema_version"] == 1
    target = document["target"]
    assert target["pid"] == job.pid
    assert target["mode"] == "agent"
    assert target["rank"] is None
    assert target["torch"] == torch
    tids = [t["tid"] for t in document["threads"]]
    assert tids[0] == job.pid and len(set(tids)) == len(tids)  # numbers begin again at some point, so they may fall
    assert set(tids) <= set(job.tids())
    held = [t["tid"] for t in document["threads"] if t["gil"] == "held"]
    assert len(held) <= 1
    for thread in document["threads"]:
        assert not (thread["native_name"] or "").startswith(OUR_THREADS)
        assert thread["state"] in ("R", "S", "D", "T")
        assert thread["on_cpu"] in (True, False)
        assert thread["gil"] in ("held", "waiting", "none", None)
        assert thread["cpu_pct"] >= 0
        assert [f["depth"] for f in thread["frames"]] == list(range(len(thread["frames"])))
        for frame in thread["frames"]:
            assert frame["kind"] == "python"


def check_main_thread(document):
    """MainThread is inside the training loop, on lines that belong to the functions shown."""
    main = thread_named(document, "MainThread")
    functions = [f["func"] for f in main["frames"]]
    assert functions[-1] == "<module>" and functions[-2] == "main"
    assert "train" in functions, functions
    known = function_lines(TRAIN)
    ours = [f for f in main["frames"] if f["file"] == TRAIN]
    assert len(ours) >= 3
    for frame in ours:
        if frame["func"] == "<module>":
            continue
        assert any(first <= frame["line"] <= last for first, last in known[frame["func"]]), frame
    for frame in main["frames"]:
        assert frame["file"] and frame["line"] > 0


@pytest.fixture
def torch_version(torch_python):
    return subprocess.run([torch_python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True,
                          check=True).stdout.strip()


@pytest.mark.timeout(240)
def test_export_json_once(training, probing_top, ptrace, torch_version):
    result = probing_top("--export", "json", "--once", str(training.pid)).ok()
    assert result.stderr == ""
    document = result.json()
    check_document(document, training, torch_version.split("+")[0])
    check_main_thread(document)
    assert document["target"]["python"].startswith("3.")
    # The DataLoader feeds each worker through a thread of this process.
    feeders = [t for t in document["threads"] if t["name"] == "QueueFeederThread"]
    assert len(feeders) == 2
    for feeder in feeders:
        assert any(f["func"].endswith("_feed") and f["file"].endswith("queues.py") for f in feeder["frames"])
    assert "gil_holder_tid" in document
    assert document["gil_holder_tid"] is None or document["gil_holder_tid"] in [0] + [t["tid"] for t in document["threads"]]
    assert thread_named(document, "MainThread")["cpu_pct"] > 0
    steps_rise(training)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_backtrace_many_times(training, probing, ptrace, torch_version):
    """One look can be lucky; every one of these must hold."""
    assert probing(str(training.pid), "inject", "--json").ok().json()["already"] is False
    seen = set()
    for _ in range(20):
        document = probing("-t", str(training.pid), "backtrace", "--json").ok().json()
        check_document(document, training, torch_version.split("+")[0])
        main = thread_named(document, "MainThread")
        if not main["torn"]:
            check_main_thread(document)
            seen.update(f["func"] for f in main["frames"])
    assert "train_step" in seen
    text = probing(str(training.pid), "backtrace").ok().stdout
    assert f"Process {training.pid}: " in text
    assert f"Thread MainThread ({training.pid})" in text
    assert f"    train ({TRAIN}:" in text
    steps_rise(training)


@pytest.mark.timeout(240)
def test_inject_status_eject(training, probing, ptrace):
    pid = str(training.pid)
    before = training.tids()
    refused = probing(pid, "status")
    assert refused.status == 3 and "no agent" in refused.stderr

    first = probing("-t", pid, "inject", "--json").ok().json()
    assert first["pid"] == training.pid
    assert first["already"] is False
    assert 0 < first["stopped_us"] <= first["total_us"]
    assert first["borrowed_tid"] in before
    assert first["moment"]
    assert first["endpoint"].endswith(f"/{pid}.sock")
    assert our_threads(training)
    second = probing("-t", pid, "inject", "--json").ok().json()
    assert second["already"] is True
    assert second["stopped_us"] == 0
    assert second["endpoint"] == first["endpoint"]

    status = probing(pid, "status", "--json").ok().json()
    assert status["agent_version"] == open(os.path.join(ROOT, "VERSION"), encoding="ascii").read().strip()
    assert status["uptime_s"] >= 0 and status["cpu_s"] >= 0
    assert status["rss_bytes"] is None or 0 < status["rss_bytes"] < 8 << 20
    assert status["clients"] == 1
    assert {"rate_hz", "samples", "torn", "dropped", "us_per_sample", "overhead_pct"} <= set(status["sampler"])
    # The client is answered first; tables and the hook of torch begin 0.15 s later.
    assert status["tables"] == [] or status["uptime_s"] >= 0.15
    assert status["hooks"] == [] or status["uptime_s"] >= 0.15
    assert status["leases"] == []
    assert "clients" in probing(pid, "status").ok().stdout

    listed = {p["pid"]: p for p in probing("list", "--json").ok().json()["processes"]}
    assert listed[training.pid]["agent"] is True
    assert listed[training.pid]["inspectable"] is True
    assert listed[training.pid]["torch"]
    steps_rise(training)

    assert probing(pid, "eject", "--json").ok().json()["ejected"] is True
    assert_nothing_left(training)
    assert probing(pid, "eject", "--json").ok().json()["ejected"] is False
    assert probing(pid, "eject").ok().stdout == f"process {pid}: no agent there\n"
    steps_rise(training)

    again = probing(pid, "inject", "--json").ok().json()
    assert again["already"] is False and again["reused"] is True
    check_main_thread(probing(pid, "backtrace", "--json").ok().json())
    assert probing(pid, "eject").ok().stdout == f"process {pid}: agent ejected\n"
    assert_nothing_left(training)
    steps_rise(training)


@pytest.mark.timeout(240)
def test_client_killed(training, probing, probing_top, ptrace, tmp_path):
    """SIGKILL in the middle of a stream: the job continues, the agent drops the client, and can still be ejected."""
    pid = str(training.pid)
    out = tmp_path / "stacks.folded"
    client = subprocess.Popen([probing_top.path, "--export", "folded", "--duration", "60", "-o", str(out), pid],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: probing(pid, "status", "--json").status == 0, 20, "the agent")
        wait_until(lambda: probing(pid, "status", "--json").ok().json()["sampler"]["samples"] > 20, 20, "samples")
    finally:
        client.send_signal(signal.SIGKILL)
        client.wait()
    assert not out.exists() and list(tmp_path.glob("stacks.folded*")) == []
    steps_rise(training)
    wait_until(lambda: probing(pid, "status", "--json").ok().json()["clients"] == 1, 20, "the dead client to be dropped")
    wait_until(lambda: probing(pid, "status", "--json").ok().json()["sampler"]["rate_hz"] == 0, 20, "sampling to end")
    assert process_state(training.pid) not in ("T", "t")
    probing(pid, "eject").ok()
    assert_nothing_left(training)
    steps_rise(training)


@pytest.mark.timeout(240)
def test_by_name(training, probing, ptrace):
    """The workers that the job forked carry its name; the job itself is meant."""
    names = [p for p in probing("list", "--json").ok().json()["processes"] if p["cmdline"].find("train.py") >= 0]
    mine = [p for p in names if p["pid"] == training.pid or p["ppid"] == training.pid]
    assert len(mine) == 3
    if len(mine) != len(names):
        pytest.skip("needs solitude: other train.py run on this machine")
    assert probing("train.py", "backtrace", "--json").ok().json()["target"]["pid"] == training.pid
