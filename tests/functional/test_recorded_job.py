# SPDX-License-Identifier: Apache-2.0
"""A training job that is killed: what its tables say afterwards, up to its last second; and what they say while it lives."""

import contextlib
import os
import re
import signal
import sqlite3
import time

import pytest

from conftest import has_torch, inject_in_time, read_counter, wait_until
from test_sql_screen import PatientScreen, type_query

pytestmark = pytest.mark.timeout(300)

NEAR_S = 1.5  # between the last sample and the end; ticks are a tenth of a second apart, what was seen is made visible within another
TRIES = 4  # an agent that gets no CPU cannot look


@pytest.fixture
def training(target, source_dir, any_python, tmp_path, probing, ptrace, request):
    """Starts the example that uses torch, where there is one, with an agent in it; .counter is its heartbeat."""
    number = []

    def start():
        torch = os.environ.get("PROBING_TEST_TORCH_PYTHON")
        script, python = ("train.py", torch) if torch and has_torch(torch) else ("train_plain.py", any_python)
        counter = tmp_path / f"steps{len(number)}"
        number.append(counter)
        job = target(os.path.join(source_dir, "examples", script), "--counter", counter, python=python, ready=r"step +\d+ ", timeout=180)
        job.counter, job.name = counter, script
        inject_in_time(probing, job.pid)
        return job
    return start


@pytest.fixture
def ask(probing):
    def run(job, text):
        return probing("-t", job.pid, "query", "--limit", "0", "--json", text, timeout=120).ok().json()["rows"]
    return run


def look_back(ask, job, seconds):
    """Waits until the tables reach back so far, and the job's own functions are in them."""
    def reached():
        rows = ask(job, "SELECT max(timestamp) - min(timestamp) AS span FROM python.samples")
        kept = ask(job, "SELECT count(*) AS n FROM system.process_history WHERE cpu_pct > 1")[0]["n"]
        steps = ask(job, "SELECT count(*) AS n FROM python.samples WHERE thread = 'MainThread' AND fold(stack_id) LIKE '%;train_step (%'")[0]["n"]
        return rows[0]["span"] is not None and rows[0]["span"] >= seconds and kept >= 1 and steps >= 3
    wait_until(reached, 120, f"{seconds} s of samples", interval=0.3)


def kill(job):
    """SIGKILL to all of it. When it was seen to move last: its heartbeat is the time of its last step."""
    os.killpg(job.pid, signal.SIGKILL)
    job.process.wait(60)
    assert read_counter(job.counter) > 0
    return os.stat(job.counter).st_mtime


def killed_while_seen(probing, ask, training):
    """A job that was killed, whose last second is in its tables."""
    told = []
    for _ in range(TRIES):
        job = training()
        look_back(ask, job, 4)
        job.alive_as = probing(job.pid, "backtrace", "--json").ok().json()["target"]
        beat = kill(job)
        newest = ask(job, "SELECT max(timestamp) AS t FROM python.samples")[0]["t"]
        assert newest < time.time()
        if beat - newest < NEAR_S:
            job.beat = beat
            return job
        told.append(beat - newest)
    return pytest.fail(f"seconds from the last sample to the last step of {TRIES} jobs: {told}")


@pytest.mark.long
def test_after_a_kill(training, ask, probing, probing_top, tmux, tmp_path):
    job = killed_while_seen(probing, ask, training)

    # Where it was.
    answer = probing(job.pid, "backtrace", "--json").ok().json()
    assert answer["target"]["pid"] == job.pid and answer["target"]["mode"] == "recorded"
    # What it was, it is still known to have been.
    for key in ("cmdline", "exe", "python", "torch", "agent_version", "host", "rank"):
        assert answer["target"][key] == job.alive_as[key], key
    assert abs(answer["target"]["started_at"] - job.alive_as["started_at"]) < 0.1
    main = answer["threads"][0]
    assert main["tid"] == job.pid and main["name"] == "MainThread"
    frames = [(frame["func"], os.path.basename(frame["file"])) for frame in main["frames"]]
    assert frames[-1] == ("<module>", job.name) and ("train", job.name) in frames
    with open(main["frames"][-1]["file"], encoding="utf-8") as script:
        lines = script.read().splitlines()
    assert lines[main["frames"][-1]["line"] - 1].strip() == "sys.exit(main())"

    # And the time before: a look at a thread each tenth of a second, a row for each second.
    rows = ask(job, "SELECT timestamp, thread, fold(stack_id) AS stack FROM python.samples WHERE timestamp > now() - 60 ORDER BY timestamp")
    of_main = [row for row in rows if row["thread"] == "MainThread"]
    assert rows[-1]["timestamp"] - rows[0]["timestamp"] >= 4 and len(of_main) >= 3
    assert sum(";train (" in row["stack"] for row in of_main) > len(of_main) * 0.9, of_main
    assert any("train_step" in row["stack"] for row in of_main)
    seconds = ask(job, "SELECT timestamp, cpu_pct, rss_bytes FROM system.process_history ORDER BY timestamp")
    assert abs(seconds[-1]["timestamp"] - job.beat) < 60 and seconds[-1]["rss_bytes"] > 1 << 20
    assert any(row["cpu_pct"] and row["cpu_pct"] > 1 for row in seconds)
    # Time stands still at its end, whenever it is asked.
    assert ask(job, "SELECT now() AS t") == ask(job, "SELECT now() AS t") and abs(ask(job, "SELECT now() AS t")[0]["t"] - job.beat) < 60
    # Whom it is too late to ask.
    refused = probing(job.pid, "eject")
    assert refused.status == 4 and "has ended" in refused.stderr

    # On the screen.
    screen = PatientScreen(tmux, tmp_path, 120, 40, wait_until)
    try:
        screen.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads {job.pid}; echo status=$?")
        screen.wait_for("Stack of MainThread")
        screen.wait_for(f"{job.name}:")
        screen.wait_for("last seen")
        # The last minute, moment by moment, and back to the end.
        screen.type(",")
        screen.wait_for("s behind")
        screen.type("4")
        screen.wait_for(" until ")
        screen.keys("End")
        screen.wait_gone("s behind")
        screen.wait_for("train_step")
        screen.type("S")
        screen.wait_for("SELECT ... ; and Enter runs it")
        type_query(screen, "SELECT count(*) || ' looks' AS n FROM python.samples;")
        screen.keys("Enter")
        screen.wait_for(f"{len(rows)} looks")
        screen.keys("F10")
        screen.wait_for("status=0")
    finally:
        screen.close()


def make_long(path, seconds):
    """Of a recording: all but its last two seconds were so much earlier."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        (newest,) = db.execute("SELECT max(timestamp) FROM python_samples").fetchone()
        for table in ("python_samples", "system_threads_history", "system_process_history"):
            db.execute(f"UPDATE {table} SET timestamp = timestamp - ? WHERE timestamp < ?", (seconds, newest - 2))


@pytest.mark.long
def test_a_long_recording(training, ask, probing, probing_top, tmux, tmp_path):
    """What was ten minutes before its end is there as the end is."""
    job = training()
    look_back(ask, job, 4)
    path = str(tmp_path / "long.db")
    probing("-t", job.pid, "record", "-o", path).ok()
    make_long(path, 600)

    # All of it is in an export.
    (count,) = probing("-t", path, "query", "--json", "SELECT count(*) AS n, max(timestamp) - min(timestamp) AS s FROM python.samples WHERE torn = 0").ok().json()["rows"]
    folded = probing_top("--export", "folded", path).ok().stdout
    assert count["s"] > 600 and sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == count["n"]

    # And on the screen.
    screen = PatientScreen(tmux, tmp_path, 120, 40, wait_until)

    def is_then():
        return re.search(r" 10m0\ds behind ", screen.text())

    try:
        screen.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads {path}; echo status=$?")
        screen.wait_for("Stack of MainThread")
        screen.type(":window 11m-9m")
        screen.keys("Enter")
        screen.wait_for("the window is")
        screen.type("3")
        screen.wait_until(is_then, 60, "what was then")
        screen.wait_for("train_step")
        screen.type("2")
        screen.wait_for("Stack of MainThread")
        screen.wait_for(f"{job.name}:")
        screen.type(".")
        screen.wait_until(lambda: not is_then(), 60, "the end")
        screen.type(",")
        screen.wait_until(is_then, 60, "what was then, again")
        screen.keys("End")
        screen.wait_gone("s behind")
        screen.keys("F10")
        screen.wait_for("status=0")
    finally:
        screen.close()


def test_asked_as_soon_as_it_is_there(target, probing, ptrace):
    """The tables of an agent that was put in only now are waited for, not said to be out of reach."""
    for _ in range(TRIES):
        job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(3600)\n")
        inject_in_time(probing, job.pid)
        done = probing(job.pid, "query", "--json", "SELECT count(*) AS n FROM python.samples").ok()
        if done.stderr == "":
            return
    pytest.fail(f"after an injection: {done}")


def statements(source_dir):
    with open(os.path.join(source_dir, "tests", "unit", "seed_queries.sql"), encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("--"))
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def table_of(statement):
    words = statement.split()
    return words[[word.upper() for word in words].index("FROM") + 1]


def test_what_people_type(training, ask, probing, source_dir):
    """Each statement whose table there is gives true rows."""
    job = training()
    look_back(ask, job, 2)
    there = set()
    for table in probing("-t", job.pid, "tables", "--json").ok().json()["tables"]:
        there.update(name for name in (table["name"], table.get("alias")) if name)
    asked = [statement for statement in statements(source_dir) if table_of(statement) in there]
    assert {table_of(statement) for statement in asked} == {"python.backtrace", "memory_usage", "memory_allocations", "profiling_data",
                                                               "python.torch_trace", "training_logs", "comm_metrics", "gpu_metrics"}
    with open(f"/proc/{job.pid}/statm", encoding="ascii") as statm:
        rss_mb = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    for statement in asked:
        before = time.gmtime(time.time() - 60).tm_hour
        rows = ask(job, statement)
        if table_of(statement) == "comm_metrics":  # an aggregate of no collectives: test_collectives.py
            assert [list(row.values()) for row in rows] == [[None, None, None]]
            continue
        if table_of(statement) == "gpu_metrics":  # an aggregate of no devices, or of those of this machine: test_gpu.py
            assert len(rows) == 1
            continue
        if table_of(statement) in ("python.torch_trace", "memory_allocations"):
            assert rows == []  # only while it is armed: test_modules_trace.py, test_memory_trace.py
            continue
        assert rows, statement
        if table_of(statement) == "python.backtrace":
            assert all(row["func"] and row["file"] and row["lineno"] > 0 for row in rows if row.get("kind", "python") == "python"), rows
            if "LIMIT" not in statement:
                main = [row for row in rows if row["tid"] == job.pid]
                assert [row["depth"] for row in main] == list(range(len(main)))
                assert "train" in [row["func"] for row in main] and main[-1]["file"] == job.script
        elif table_of(statement) == "profiling_data":
            counts = {row["operation_name"]: row["count(*)"] for row in rows}
            assert counts["Optimizer.step#AdamW.step"] > 0 and all(row["avg(duration_ms)"] > 0 for row in rows)
        elif table_of(statement) == "training_logs":  # the loss that is found by itself
            assert any(isinstance(value, float) and 0 < value < 100 for row in rows for value in row.values()), rows
        elif "hour(" in statement:
            values = [list(row.values()) for row in rows]
            assert {value[0] for value in values} <= {before, time.gmtime().tm_hour}
            assert all(rss_mb / 2 < value[1] < rss_mb * 2 for value in values)
        else:
            assert all(time.time() - 300 < row["timestamp"] <= time.time() for row in rows)
            assert all(rss_mb / 2 < row["rss_mb"] < rss_mb * 2 and row["memory_mb"] >= row["rss_mb"] for row in rows)
