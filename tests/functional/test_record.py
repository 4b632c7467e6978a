# SPDX-License-Identifier: Apache-2.0
"""Recordings: a job's tables in an SQLite file, which answers as the job did, to us and to SQLite itself."""

import csv
import io
import json
import linecache
import os
import re
import signal
import sqlite3
import subprocess

import pytest

JOB = """
import os, threading, time
def inner(event):
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    event.wait()
def outer(event): inner(event)
threading.Thread(target=outer, args=(threading.Event(),), name="waiter", daemon=True).start()
time.sleep(3600)
"""
# Of those that the SQL screen ships: the ones that use none of our functions.
SHIPPED = [
    "SELECT thread, tid, depth, func, file, lineno FROM python.backtrace ORDER BY tid, depth",
    "SELECT name, native_name, tid, state, on_cpu, gil, func, file, lineno FROM python.threads ORDER BY tid",
    "SELECT native_name, tid, state, wchan FROM system.threads ORDER BY tid",
]


def is_at_rest(probing, pid):
    """Is each of the job's threads at the call in which it stays? From then on all looks see the same."""
    rows = probing(pid, "query", "--no-inject", "--json", "SELECT thread, file, lineno FROM python.backtrace WHERE depth = 0").ok().json()["rows"]
    calls = {row["thread"]: linecache.getline(row["file"], row["lineno"]) for row in rows}
    return "time.sleep(" in calls.get("MainThread", "") and ".acquire(" in calls.get("waiter", "")


@pytest.fixture
def job(target, ptrace, probing, wait_until):
    made = target(JOB, name="job.py")
    wait_until(lambda: is_at_rest(probing, made.pid), 60, "the job's threads to have come to rest")
    return made


@pytest.fixture
def recording(probing, job, tmp_path):
    path = tmp_path / "run.db"
    told = probing(job.pid, "record", "--no-inject", "-o", path, "--json").ok().json()
    assert told["file"] == str(path) and told["rows"] > 0
    return path


def in_sqlite(path, text):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return database.execute(re.sub(r"\b(python|system|probing)\.", r"\1_", text)).fetchall()
    finally:
        database.close()


def asked(probing, target, text, *options):
    rows = probing("-t", target, "query", *options, "--json", text).ok().json()["rows"]
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("text", SHIPPED)
def test_it_answers_as_the_job_did(probing, job, recording, text):
    told = asked(probing, recording, text)
    assert told and told == in_sqlite(recording, text)
    job.end()
    assert asked(probing, recording, text) == told


def test_it_knows_what_it_is(probing, job, recording):
    functions = [row[0] for row in asked(probing, recording, "SELECT func FROM python.backtrace WHERE thread = 'waiter' ORDER BY depth")]
    assert functions.index("inner") + 1 == functions.index("outer")
    assert asked(probing, recording, "SELECT DISTINCT pid FROM python.backtrace") == [(job.pid,)]
    facts = dict(in_sqlite(recording, "SELECT key, value FROM probing_recording"))
    assert facts["schema_version"] == 1 and facts["began_at"] <= facts["ended_at"]
    assert in_sqlite(recording, "SELECT count(*) FROM memory_usage") == [(0,)]
    names = {table["name"] for table in probing("-t", recording, "tables", "--json").ok().json()["tables"]}
    assert names - {"training_logs", "comm_metrics"} == {row[0] for row in in_sqlite(recording, "SELECT name FROM probing_tables")}  # these are made of others


def test_two_jobs_in_one(probing, job, target, tmp_path):
    other = target(JOB, name="other.py")
    path = tmp_path / "both.db"
    assert probing("-t", job.pid, "-t", other.pid, "record", "--no-inject", "-o", path).ok()
    text = "SELECT pid, count(DISTINCT tid) FROM python.backtrace GROUP BY pid ORDER BY pid"
    assert asked(probing, path, text) == [(pid, 2) for pid in sorted([job.pid, other.pid])]
    assert asked(probing, path, text) == in_sqlite(path, text)


def test_interrupt_ends_it_in_order(probing, job, tmp_path, wait_until):
    path = tmp_path / "run.db"
    process = subprocess.Popen([probing.path, str(job.pid), "record", "--no-inject", "-o", str(path), "--duration", "1h"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Its handler is there when the recording is.
    wait_until(lambda: path.exists() and path.stat().st_size > 8192, 60, "the recording")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == -signal.SIGINT:
        pytest.fail(f"the signal ended it: {out!r} {err!r}")
    assert process.returncode == 0 and "opens it" in out
    assert in_sqlite(path, "SELECT count(*) FROM probing_recording WHERE key = 'ended_at'") == [(1,)]


@pytest.mark.parametrize("as_json", [False, True])
def test_the_end_of_the_job_ends_it(probing, job, tmp_path, wait_until, as_json):
    path = tmp_path / "run.db"
    process = subprocess.Popen([probing.path, str(job.pid), "record", "--no-inject", "-o", str(path), "--duration", "1h", *(["--json"] if as_json else [])],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: path.exists() and path.stat().st_size > 8192, 60, "the recording")
    job.process.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["ended"] is True if as_json else "to the end of the job" in out
    assert in_sqlite(path, "SELECT count(*) FROM probing_recording WHERE key = 'ended_at'") == [(1,)]


def test_one_that_was_cut_opens_and_says_so(probing, recording):
    # Rows of some time: what tables there are is then told in its first part.
    database, size = sqlite3.connect(recording), os.path.getsize(recording)
    while os.path.getsize(recording) < 6 * size:
        database.execute("INSERT INTO python_threads SELECT * FROM python_threads")
        database.commit()
    database.close()
    size = os.path.getsize(recording)
    os.truncate(recording, size * 3 // 4)
    done = probing("-t", recording, "query", "--format", "csv", "SELECT 1 AS a")
    assert done.status == 0 and done.stdout == "a\n1\n" and "damaged or was cut" in done.stderr, done
    os.truncate(recording, size // 20)
    done = probing("-t", recording, "query", "SELECT 1 AS a")
    assert done.status == 1 and done.stdout == "" and f"{recording}: it is damaged or was cut: its list of tables cannot be read" in done.stderr, done


def test_exports(probing_top, job, recording, tmp_path):
    exported = tmp_path / "export.db"
    assert probing_top("--no-inject", "--export", "sqlite", "-o", exported, job.pid).ok()
    assert in_sqlite(exported, SHIPPED[0]) == in_sqlite(recording, SHIPPED[0])
    done = probing_top("--export", "csv", "--sql", SHIPPED[0], recording).ok()
    assert [row["func"] for row in csv.DictReader(io.StringIO(done.stdout))] == [row[3] for row in in_sqlite(recording, SHIPPED[0])]
    document = probing_top("--export", "json", "--sql", "SELECT 1 AS a", recording).ok().json()
    assert document["rows"] == [{"a": 1}] and document["truncated"] is False
    assert probing_top("--export", "ndjson", "--sql", "SELECT 1 AS a", recording).ok().stdout == '{"a":1}\n'


def test_mistakes(probing, probing_top, job, recording, tmp_path):
    def refused(result, status, what):
        assert result.status == status and what in result.stderr and result.stderr.count("\n") == 1, result
    refused(probing(job.pid, "record", "--no-inject"), 2, "-o run.db")
    refused(probing(job.pid, "record", "--no-inject", "-o", recording), 1, "already exists")
    refused(probing(job.pid, "record", "--no-inject", "-o", tmp_path / "absent" / "run.db"), 1, "cannot write")
    refused(probing("-t", recording, "eject"), 4, "has ended")
    refused(probing("-t", recording, "backtrace", "--block"), 2, "--block")
    refused(probing_top("--export", "csv", recording), 2, "needs --sql")
    refused(probing_top("--export", "folded", "--sql", "SELECT 1", recording), 2, "--sql is for")
    refused(probing_top("--sql", "SELECT 1", recording), 2, "--sql is for --export")
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)
    refused(probing("-t", broken, "query", "SELECT 1"), 1, "broken.db")
    (tmp_path / "empty").mkdir()
    refused(probing("-t", tmp_path / "empty", "query", "SELECT 1"), 3, "no tables")
