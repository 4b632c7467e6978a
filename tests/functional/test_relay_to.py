# SPDX-License-Identifier: Apache-2.0
"""`probing relay --to`: what the ranks of this host do in a real ClickHouse server. What is there equals the rings, whatever is killed;
what refuses or breaks on the way is said and survived. Names are never SQL."""

import glob
import http.server
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
import uuid

import pytest
import ring_file
from clickhouse import Answers, clickhouse_fixture, free_port  # noqa: F401 (a fixture)
from conftest import inject_in_time
from lying_agent import as_nobody
from training_job import JOBS, TrainingJob, Truth

pytestmark = pytest.mark.timeout(240)

IDLE = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "PROBING_CLICKHOUSE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def rank_env(**more):
    return dict({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
                 "TORCHELASTIC_RUN_ID": uuid.uuid4().hex}, **more)


def name_of(probing, pid):
    [row] = probing("cluster", "nodes", str(pid), "--json", timeout=60).ok().json()["rows"]
    return row["job"]


@pytest.fixture
def idle(target, probing, any_python):
    """A process that says it is a rank, and the name of its job."""
    def start(**env):
        run = target(IDLE, name="idle.py", env=rank_env(**env))
        return run, name_of(probing, run.pid)
    return start


@pytest.fixture
def trained(target, torch_python, tmp_path, data_dir, probing):
    """A rank that trains: its job has steps of some ms, as it logs itself, and its rings have room for more than a minute of them."""
    log = str(tmp_path / "trained.jsonl")
    run = target(os.path.join(JOBS, "phases.py"), "--quick", "--log", log, python=torch_python,
                 env=rank_env(OMP_NUM_THREADS="1", PROBING_MAX_MEMORY="64MB"), timeout=180)
    job = TrainingJob(run, log, data_dir, probing)
    job.name = name_of(probing, run.pid)
    return job


@pytest.fixture
def relay(probing, wait_until):
    """Starts relays; .state() is what they report of themselves."""
    started = []

    class Relay:
        running = started

        def __init__(self, url, *args, env=None, user=None):
            command = [probing.path, "relay", "--to", url, *map(str, args)]
            self.url, self.said = url, None
            self.process = subprocess.Popen(as_nobody(command) if user else command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})))
            started.append(self)

        def state(self):
            done = probing("relay", "--to", self.url, "--status")
            return done.json() if done.stdout else None

        def wait(self, predicate, what, timeout=60):
            def holds():
                assert self.process.poll() is None, self.process.stderr.read()
                state = self.state()
                return state and predicate(state) and state
            return wait_until(holds, timeout, what)

        def end(self, sign=signal.SIGTERM, timeout=30):
            if self.process.poll() is None:
                os.kill(self.process.pid, sign)
            if self.said is None:
                self.said = "".join(self.process.communicate(timeout=timeout))
            return self.process.returncode, self.said
    yield Relay
    for one in started:
        one.end(signal.SIGKILL)


def schema(probing, clickhouse):
    probing("cluster", "init", clickhouse.url()).ok()


def same(ring, row):
    """A value of a ring and what the server prints of it."""
    if ring is None:
        return row == "\\N"
    if isinstance(ring, float):
        return abs(ring - float(row)) <= 1e-9 * max(1.0, abs(ring))
    return str(ring) == row


def ring_of(job, table):
    return ring_file.Ring(os.path.join(ring_file.folders(job.data_dir, job.pid)[-1], table + ".ring"))


def kept(table, ring):
    """The rows of a ring that are written, with their numbers."""
    numbered = list(enumerate(ring.rows, ring.first))
    if table in ("python.memory", "system.process_history"):
        return [(n, row) for n, row in numbered if n % 5 == 0]
    if table == "python.collectives":
        return [(n, row) for n, row in numbered if n % 100 == 0 or row["duration_ms"] is None or row["duration_ms"] > 1]
    return numbered


def total(ring):
    return ring.first + len(ring.rows)


def compare(clickhouse, job, table, ring):
    """Are the rows of a ring those of the server, once each?"""
    names = list(ring.rows[0])
    there = clickhouse.ask(f"SELECT row, {', '.join(f'`{name}`' for name in names)} FROM probing.{table.replace('.', '_')} FINAL "
                           f"WHERE job = '{job.name}' AND pid = {job.pid} AND row >= {ring.first} ORDER BY row")
    expected = kept(table, ring)
    assert [int(row[0]) for row in there] == [n for n, _ in expected], (table, len(there), len(expected))
    for (_, values), row in zip(expected, there):
        assert all(same(values[name], value) for name, value in zip(names, row[1:])), (values, row)


def count(clickhouse, job, table="python_steps"):
    return clickhouse.number(f"SELECT count() FROM probing.{table} FINAL WHERE job = '{job.name}' AND pid = {job.pid}")


def test_what_is_written_equals_the_rings(probing, clickhouse, trained, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    one = relay(clickhouse.url(), trained.name, "--tables", "probing.facts,python.samples")
    wait_until(lambda: count(clickhouse, trained) > 50, 90, "steps in the server")
    live = wait_until(lambda: clickhouse.ask(f"SELECT host FROM probing.ranks WHERE job = '{trained.name}' AND agent = 1 AND step > 0 ORDER BY ts DESC LIMIT 1"),
                      60, "what is seen of it")
    assert live == [[socket.gethostname()]]
    stacks = clickhouse.ask(f"SELECT func, file, line FROM probing.stacks FINAL WHERE job = '{trained.name}'")
    assert any("phases.py" in file and "main" in func for func, file, _ in stacks), stacks
    known = {row[0] for row in clickhouse.ask(f"SELECT toString(stack) FROM probing.stacks WHERE job = '{trained.name}'")}
    used = clickhouse.ask(f"SELECT DISTINCT toString(stack) FROM probing.ranks WHERE job = '{trained.name}' AND stack IS NOT NULL AND "
                          "ts < (SELECT max(ts) - 3 FROM probing.ranks)")
    assert {row[0] for row in used} <= known

    def host():
        return clickhouse.ask(f"SELECT ranks, lost, written > 100, abs(clock_s) < 2 FROM probing.hosts WHERE job = '{trained.name}' "
                              "ORDER BY ts DESC LIMIT 1")[0]
    # every ten seconds; an old server passes such rows on after another one
    wait_until(lambda: host() == ["0", "0", "1", "1"], 60, "what the relay has written")
    # the last rows of a rank that is killed are in its file
    os.kill(trained.pid, signal.SIGKILL)
    one.wait(lambda state: state["ranks"] == 0, "the end of the rank")
    tables = {table: ring_of(trained, table) for table in ("python.steps", "python.memory", "system.process_history", "probing.facts", "python.samples")}
    wait_until(lambda: count(clickhouse, trained) == total(tables["python.steps"]), 30, "the last steps")
    for table, ring in tables.items():
        compare(clickhouse, trained, table, ring)
    status, said = one.end()
    assert status == 0 and "probing:" not in said, said
    assert probing("relay", "--to", clickhouse.url(), "--status").status == 1


def test_nothing_is_lost_or_double_whoever_is_killed(probing, clickhouse, trained, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) > 0, 90, "steps in the server")
    one = None
    for who in ("relay", "server", "relay and marks", "server"):
        before = count(clickhouse, trained)
        if who == "server":
            clickhouse.kill()
            trained.wait_steps(30)
            clickhouse.start()
        else:
            for other in relay.running:
                other.end(signal.SIGKILL)
            if "marks" in who:
                for path in glob.glob(os.path.join(os.environ["XDG_STATE_HOME"], "probing-top", "relay", "*.marks")):
                    os.unlink(path)
            trained.wait_steps(30)
            one = relay(clickhouse.url(), trained.name)
        wait_until(lambda: count(clickhouse, trained) > before + 20, 120, f"more steps after the {who} was killed")
    os.kill(trained.pid, signal.SIGKILL)
    one.wait(lambda state: state["ranks"] == 0 and state["lag_s"] == 0, "the end of the rank", 120)
    ring = ring_of(trained, "python.steps")
    wait_until(lambda: count(clickhouse, trained) == total(ring), 60, "the last steps")
    compare(clickhouse, trained, "python.steps", ring)
    assert clickhouse.number(f"SELECT max(lost) FROM probing.hosts WHERE job = '{trained.name}'") == 0


def children_of(pid):
    return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def test_a_rank_that_blocks_and_ends(probing, clickhouse, trained, relay, wait_until, ptrace):
    """What reads it hangs, so its rings are left alone as long as it lives; what it has done until its end is written after that."""
    schema(probing, clickhouse)
    one = relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) > 0, 90, "steps in the server")
    for child in children_of(one.process.pid):
        os.kill(child, signal.SIGSTOP)

    def is_blocked():
        return clickhouse.number(f"SELECT count() FROM probing.ranks WHERE job = '{trained.name}' AND note LIKE '%did not answer%'") > 0
    wait_until(is_blocked, 60, "a rank that is left alone")
    trained.wait_steps(30)
    os.kill(trained.pid, signal.SIGKILL)
    one.wait(lambda state: state["ranks"] == 0, "the end of the rank")
    ring = ring_of(trained, "python.steps")
    wait_until(lambda: count(clickhouse, trained) == total(ring), 30, "the last steps")
    compare(clickhouse, trained, "python.steps", ring)


def test_a_rank_that_ends_while_no_relay_runs(probing, clickhouse, trained, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    one = relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) > 0, 90, "steps in the server")
    one.end(signal.SIGKILL)
    wait_until(lambda: total(ring_of(trained, "python.steps")) > count(clickhouse, trained) + 20, 60, "steps that are not written")
    os.kill(trained.pid, signal.SIGKILL)
    trained.target.process.wait()
    ring = ring_of(trained, "python.steps")
    assert count(clickhouse, trained) < total(ring)
    relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) == total(ring), 60, "its last steps")
    compare(clickhouse, trained, "python.steps", ring)


def test_a_rank_that_ends_before_anything_is_written(probing, clickhouse, trained, relay, wait_until, ptrace):
    """The first relay has found it, and ends before the server has a row."""
    schema(probing, clickhouse)
    clickhouse.kill()
    one = relay(clickhouse.url(), trained.name)
    one.wait(lambda state: state["ranks"] == 1 and state["error"], "a relay without a server")
    folder = os.path.join(os.environ["XDG_STATE_HOME"], "probing-top", "relay")

    def is_noted():
        marks = [name for name in os.listdir(folder) if name.endswith(".marks")]
        return any(f"{trained.pid} " in open(os.path.join(folder, name), encoding="utf-8").read() for name in marks)
    one.wait(lambda _: is_noted(), "a rank that is noted", 90)
    wait_until(lambda: total(ring_of(trained, "python.steps")) > 20, 90, "steps")
    one.end(signal.SIGKILL)
    os.kill(trained.pid, signal.SIGKILL)
    trained.target.process.wait()
    ring = ring_of(trained, "python.steps")
    clickhouse.start()
    relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) == total(ring), 60, "its steps")
    compare(clickhouse, trained, "python.steps", ring)


@pytest.fixture
def reader(probing):
    """Starts a client that reads a job from a server, in place of the one before, which is killed if it still runs."""
    running = []

    def start(url):
        for one in running:
            one.kill()
            one.wait()
        running[:] = [subprocess.Popen([probing.path, "cluster", "verdict", url, "--watch"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)]
    yield start
    for one in running:
        one.kill()
        one.wait()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_whoever_is_killed_at_random(probing, clickhouse, trained, relay, reader, wait_until, ptrace):
    """For PROBING_ENGINE_SECONDS relay, server and a client that reads are killed at random (tests/soak/97-engine); what the server has in the end are
    the steps that the job has logged itself, each once."""
    seconds, seed = float(os.environ.get("PROBING_ENGINE_SECONDS", "60")), random.randrange(1 << 30)
    rng, kills = random.Random(seed), {"relay": 0, "server": 0, "client": 0}
    print("seed", seed)
    schema(probing, clickhouse)
    one = relay(clickhouse.url(), trained.name)
    wait_until(lambda: count(clickhouse, trained) > 0, 120, "steps in the server")
    url = clickhouse.url(job=trained.name)
    reader(url)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        wait_for(rng.uniform(0.2, 15))
        who = rng.choice(list(kills))
        kills[who] += 1
        if who == "server":
            clickhouse.kill()
            wait_for(rng.uniform(0, 8))
            clickhouse.start()
        elif who == "client":
            reader(url)
        else:
            one.end(signal.SIGKILL)
            wait_for(rng.uniform(0, 3))
            one = relay(clickhouse.url(), trained.name)
    os.kill(trained.pid, signal.SIGKILL)
    one.wait(lambda state: state["ranks"] == 0 and state["lag_s"] == 0, "the end of the rank", 180)
    ring = ring_of(trained, "python.steps")
    wait_until(lambda: count(clickhouse, trained) + one.state()["rows_lost"] == total(ring), 120, "the last steps")
    there = clickhouse.ask(f"SELECT row, step, ts, duration_ms FROM probing.python_steps FINAL WHERE job = '{trained.name}' AND pid = {trained.pid} ORDER BY row",
                           timeout=120)
    # where all were down for longer than the ring has room, there is a gap, of as many rows as were counted
    truth, run, missing = Truth(trained.log), [], 0
    for row, step, ts, ms in [*there, ["-1", "0", "0", "0"]]:
        if run and int(row) != run[-1][0] + 1:
            truth.match([values for _, values in run if values["duration_ms"] is not None])
            missing += max(0, int(row) - run[-1][0] - 1)
            run = []
        run.append((int(row), {"step": int(step), "timestamp": float(ts), "duration_ms": None if ms == "\\N" else float(ms)}))
    assert len({row[0] for row in there}) == len(there) and missing + int(there[0][0]) == one.state()["rows_lost"]
    with open(os.environ.get("PROBING_ENGINE_LOG", os.devnull), "a", encoding="utf-8") as log:
        log.write(f"{len(there)} steps in {seconds:g} s, each once, {missing} more were overwritten and counted; "
                  f"killed: " + ", ".join(f"{who} {n} times" for who, n in kills.items()) + "\n")


def wait_for(seconds):
    """A time that is part of what is tested."""
    threading.Event().wait(seconds)


def test_a_server_that_comes_later(probing, clickhouse, idle, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    run, name = idle()
    inject_in_time(probing, run.pid)
    clickhouse.kill()
    one = relay(clickhouse.url(), name)
    state = one.wait(lambda state: state["error"], "the error")
    assert not state["writing"] and "no server answers" in state["error"] and probing("relay", "--to", clickhouse.url(), "--status").status == 1
    clickhouse.start()
    one.wait(lambda state: state["writing"] and state["rows_written"] > 5, "rows", 90)
    assert clickhouse.number(f"SELECT count() FROM probing.system_process_history FINAL WHERE job = '{name}'") > 0
    status, said = one.end()
    assert status == 0 and "answers again" in said and said.count("no server answers") == 1, said


def test_who_is_refused_at_the_start(probing, clickhouse, relay, monkeypatch):
    def refused(url, *args, status=1):
        was, said = relay(url, *args).end(0)
        assert was == status and said.count("\n") == 1, (was, said)
        return said
    assert "probing cluster init" in refused(clickhouse.url())
    schema(probing, clickhouse)
    clickhouse.ask("CREATE DATABASE old")
    clickhouse.ask("CREATE TABLE old.schema_version (version UInt32, ts Float64, by String) ENGINE = ReplacingMergeTree() ORDER BY version")
    assert "has version 0 of the schema" in refused(clickhouse.url(database="old"))
    assert "the password is wrong" in refused(clickhouse.url("writer"), status=3)
    assert "does not let user 'reader' do that" in refused(clickhouse.url("reader"))
    for left in (2, 1, 0):  # a server that does not answer within 5 s, as where the machine stands still, is waited for
        try:
            assert "does not speak TLS" in refused(clickhouse.url().replace("clickhouse:", "clickhouses:"), status=3)
            break
        except subprocess.TimeoutExpired:
            assert left
            relay.running[-1].end(signal.SIGKILL)  # it would be the one that writes already
    assert "there is no table 'python.nonsense'" in refused(clickhouse.url(), "--tables", "python.nonsense", status=2)
    assert "not an address of loopback" in refused(clickhouse.url(), "--metrics", "0.0.0.0:9100", status=2)
    assert "the name of the job" in refused(clickhouse.url(), "--job", "a\nb", status=2)
    one = relay(clickhouse.url(), "--no-inject")  # all jobs of this machine, other tests' too
    one.wait(lambda state: state["writing"], "a relay")
    assert "another relay of this user already writes" in refused(clickhouse.url())
    monkeypatch.setenv("PROBING_CLICKHOUSE_PASSWORD", "its secret")
    two = relay(clickhouse.url("writer"), "--no-inject", env={"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"] + "2"})
    with open(f"/proc/{two.process.pid}/cmdline", "rb") as file:
        assert b"its secret" not in file.read()


def test_names_cannot_be_sql(probing, clickhouse, idle, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    hostile = "'; DROP TABLE probing.ranks; -- \\ \" `"
    run, name = idle()
    one = relay(clickhouse.url(), name, "--job", hostile, "--metrics", port := free_port())
    one.wait(lambda state: state["jobs"] == [hostile] and state["rows_written"] > 3, "rows")
    wait_until(lambda: clickhouse.ask("SELECT DISTINCT hex(job) FROM probing.ranks") == [[hostile.encode().hex().upper()]], 30, "the name in the server")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    label = hostile.replace("\\", "\\\\").replace('"', '\\"')
    assert f'probing_rank_alive{{job="{label}",rank="0"}} 1' in text.splitlines()
    assert "probing_relay_writing 1" in text.splitlines()
    assert max(text.count(f'",rank="{rank}"') for rank in range(2)) <= 12
    for line in text.splitlines():
        assert re.fullmatch(r"# TYPE probing_\w+ (gauge|counter)|probing_\w+(\{job=\".*\",rank=\"\d+\"\})? [-+.\de]+", line), line
    one.end(signal.SIGKILL)
    # another relay goes on under that name
    two = relay(clickhouse.url(), name, "--job", hostile)
    two.wait(lambda state: state["jobs"] == [hostile] and state["rows_lost"] == 0, "rows")


def test_jobs_of_others_are_left_alone(probing, clickhouse, idle, relay, wait_until, ptrace):
    if os.geteuid() != 0:
        pytest.skip("needs root: another user is wanted")
    schema(probing, clickhouse)
    run, _ = idle()
    env = {"XDG_STATE_HOME": f"/tmp/probing-state-{uuid.uuid4().hex}", "XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"}
    one = relay(clickhouse.url(), user="nobody", env=env)
    url, searched = clickhouse.url(), time.time()
    try:
        def writes():
            found = glob.glob(os.path.join(env["XDG_STATE_HOME"], "probing-top/relay/*.status"))
            assert one.process.poll() is None, one.process.stderr.read()
            return found and json.load(open(found[0], encoding="utf-8"))["at"] > searched
        wait_until(writes, 60, "the relay of another user")
        assert clickhouse.ask(f"SELECT count() FROM probing.ranks WHERE pid = {run.pid}") == [["0"]] and url
    finally:
        one.end()
        subprocess.run(["rm", "-rf", env["XDG_STATE_HOME"]], check=True)


ALONE = """
import mmap, os, sys
folder = os.path.join(sys.argv[1], "torch")
os.makedirs(os.path.join(folder, "lib"), exist_ok=True)
with open(os.path.join(folder, "version.py"), "w") as file:
    file.write("__version__ = '2.6.0'\\n")
with open(os.path.join(folder, "lib", "libtorch_cpu.so"), "w+b") as file:
    file.write(b"x" * 4096)
    file.flush()
    loaded = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
""" + IDLE


def test_jobs_without_a_launcher_are_written_on(probing, clickhouse, target, relay, tmp_path, ptrace):
    """That they are jobs is seen in their memory, for which the relay does not look every time."""
    schema(probing, clickhouse)
    first = target(ALONE, str(tmp_path / "first"), name="first.py")
    one = relay(clickhouse.url(), "--no-inject")
    state = one.wait(lambda state: any(job.startswith("first") for job in state["jobs"]), "the job")
    # two searches later
    state = one.wait(lambda later: later["at"] > state["at"] + 12, "the time")
    assert any(job.startswith("first") for job in state["jobs"]), state
    target(ALONE, str(tmp_path / "second"), name="second.py")
    one.wait(lambda state: any(job.startswith("second") for job in state["jobs"]), "the other job")
    os.kill(first.pid, signal.SIGKILL)
    one.wait(lambda state: not any(job.startswith("first") for job in state["jobs"]), "its end")


def test_one_name_is_for_one_job(probing, clickhouse, idle, relay):
    schema(probing, clickhouse)
    idle(), idle()
    one = relay(clickhouse.url(), "--job", "mine", "--no-inject")
    state = one.wait(lambda state: state["error"], "the error")
    assert re.search(r"--job names one job, and \d+ are here", state["error"]) and not state["writing"] and state["ranks"] == 0


def test_what_a_verdict_is_made_of(probing, clickhouse, idle, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    run, name = idle()
    one = relay(clickhouse.url(), name)
    one.wait(lambda state: state["rows_written"] > 3, "rows")
    os.kill(run.pid, signal.SIGSTOP)
    wait_until(lambda: clickhouse.ask(f"SELECT count() > 1 FROM probing.states WHERE job = '{name}' AND state = 'T'") == [["1"]], 60, "its state")
    row = clickhouse.ask(f"SELECT rank, pid, state FROM probing.states WHERE job = '{name}' AND state = 'T' LIMIT 1")
    assert row == [["0", str(run.pid), "T"]]
    os.kill(run.pid, signal.SIGCONT)


def test_a_rank_that_ends_is_in_a_verdict(probing, clickhouse, idle, relay, wait_until, ptrace):
    """Readings of it are written as long as the others stand still, after those that are left were listed, too."""
    schema(probing, clickhouse)
    both = {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": uuid.uuid4().hex}
    (run, _), (other, name) = idle(**both), idle(RANK="1", LOCAL_RANK="1", **both)
    one = relay(clickhouse.url(), name)
    one.wait(lambda state: state["ranks"] == 2, "both ranks")
    os.kill(run.pid, signal.SIGSTOP)
    wait_until(lambda: clickhouse.number(f"SELECT count() FROM probing.states WHERE job = '{name}' AND state = 'T'") > 1, 60, "its state")
    os.kill(other.pid, signal.SIGKILL)
    other.process.wait()
    one.wait(lambda state: state["ranks"] == 1, "a search after its end")
    last = clickhouse.ask(f"SELECT max(ts) FROM probing.states WHERE job = '{name}'")[0][0]
    wait_until(lambda: clickhouse.number(f"SELECT count() FROM probing.states WHERE job = '{name}' AND ts > {last} AND rank = 0") > 2, 60, "more readings")
    gone = clickhouse.number(f"SELECT count() FROM probing.states WHERE job = '{name}' AND ts > {last} AND rank = 1 AND pid = {other.pid} AND gone = 1")
    assert gone > 1
    os.kill(run.pid, signal.SIGCONT)


def test_an_old_rank_that_lives_on(probing, clickhouse, idle, relay, wait_until, ptrace):
    """Ranks that are started again are written, though one from before the restart does not end."""
    schema(probing, clickhouse)
    run = {"TORCHELASTIC_RUN_ID": uuid.uuid4().hex}
    old, name = idle(**run)
    one = relay(clickhouse.url(), name)
    one.wait(lambda state: state["ranks"] == 1 and state["rows_written"] > 0, "the old rank")
    new, again = idle(TORCHELASTIC_RESTART_COUNT="1", **run)
    assert again == name
    wait_until(lambda: clickhouse.number(f"SELECT count() FROM probing.ranks WHERE job = '{name}' AND pid = {new.pid}") > 0, 60, "the new rank")
    assert old.alive()


def test_overwritten_rows_are_counted(probing, clickhouse, target, relay, wait_until, ptrace):
    schema(probing, clickhouse)
    run = target(IDLE, name="idle.py", env=rank_env(PROBING_MAX_MEMORY="1MB", PROBING_SAMPLE_RATE="200"))
    name = name_of(probing, run.pid)
    one = relay(clickhouse.url(), name, "--tables", "python.samples")
    wait_until(lambda: clickhouse.ask(f"SELECT count() > 0 FROM probing.python_samples WHERE job = '{name}'") == [["1"]], 60, "samples")
    one.end(signal.SIGKILL)
    last = clickhouse.number(f"SELECT max(row) FROM probing.python_samples WHERE job = '{name}'")
    folder = ring_file.folders(os.environ["PROBING_DATA_DIR"], run.pid)[0]
    wait_until(lambda: ring_file.Ring(os.path.join(folder, "python.samples.ring")).first > last + 10, 150, "an overwritten ring")
    two = relay(clickhouse.url(), name, "--tables", "python.samples")
    lost = two.wait(lambda state: state["rows_lost"] > 0, "the lost rows")["rows_lost"]

    def told():
        [node] = probing("cluster", "query", clickhouse.url(job=name), "SELECT lost, note FROM cluster.nodes", "--json", timeout=60).ok().json()["rows"]
        return node if (node["lost"] or 0) >= lost else None
    node = wait_until(told, 60, "the lost rows as the host's")
    assert f"{node['lost']} rows of its ranks were lost" in node["note"], node


MANY = """
import os, threading, time
def rest():
    while True:
        time.sleep(0.01)
for _ in range(12):
    threading.Thread(target=rest, daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
rest()
"""


def test_a_ring_that_fills_is_read_sooner(probing, clickhouse, target, relay, wait_until, ptrace):
    """Its rows are overwritten within seven seconds: if it was read every ten a third would be lost."""
    schema(probing, clickhouse)
    run = target(MANY, name="many.py", env=rank_env(PROBING_MAX_MEMORY="2MB", PROBING_SAMPLE_RATE="250", PROBING_BUDGET="50"))
    name = name_of(probing, run.pid)
    one = relay(clickhouse.url(), name, "--tables", "python.samples")
    wait_until(lambda: clickhouse.ask(f"SELECT count() > 0 FROM probing.python_samples WHERE job = '{name}'") == [["1"]], 60, "samples")
    path = os.path.join(ring_file.folders(os.environ["PROBING_DATA_DIR"], run.pid)[0], "python.samples.ring")

    def is_overwritten_often():
        ring = ring_file.Ring(path)
        return ring.first > 4 * len(ring.rows)
    wait_until(is_overwritten_often, 150, "a ring that was overwritten four times")
    there, missing = map(int, clickhouse.ask("SELECT uniqExact(row), max(row) + 1 - min(row) - uniqExact(row) FROM probing.python_samples "
                                             f"WHERE job = '{name}'")[0])
    # none, unless the machine kept the relay or the server from it
    assert there > 1000 and missing < there / 10, (there, missing)


class Broken(Answers):
    """What answers like ClickHouse at first, and then in some way that it should not."""
    way, inserts, stop = "", 0, threading.Event()

    def do_GET(self):
        self.answer(b"18.16.1\n" if "version%28%29" in self.path else b"1\n")

    def do_POST(self):
        type(self).inserts += 1
        rest = int(self.headers.get("Content-Length", 0))
        self.rfile.read(rest)
        if self.inserts == 1:
            self.answer(b"")
        elif self.way == "slow":
            self.stop.wait(100)
        elif self.way == "half":
            self.answer(b"Code: 241, e.displayText() = DB::Exc\x1b[2J", 500, 1000)
        elif self.way == "flood":
            self.send_response(200)
            self.end_headers()
            try:
                while not self.stop.is_set():
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass


@pytest.mark.parametrize("way, line", [pytest.param("slow", "did not answer within", marks=pytest.mark.long), ("half", "in the middle of its answer"), ("flood", "what was not asked for")])
def test_a_broken_server(probing, idle, relay, way, line, ptrace):
    Broken.way, Broken.inserts, Broken.stop = way, 0, threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        run, name = idle()
        one = relay(f"clickhouse://127.0.0.1:{server.server_address[1]}/probing", name)
        state = one.wait(lambda state: state["error"], "the error")
        assert line in state["error"] and "\x1b" not in state["error"] and not state["writing"], state
        assert run.alive()
        began = time.monotonic()
        status, said = one.end(timeout=60)
        assert status == 0 and time.monotonic() - began < 25 and "\x1b" not in said
    finally:
        Broken.stop.set()
        server.shutdown()
