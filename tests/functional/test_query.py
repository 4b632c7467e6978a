# SPDX-License-Identifier: Apache-2.0
"""`probing query`: what a live job says when it is asked in SQL, in every form, and what bad questions say."""

import csv
import io
import json
import os
import pty
import signal
import subprocess
import time

import pytest

JOB = r'''
import os, threading, time
def inner(event):
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    event.wait()
def outer(event): inner(event)
threading.Thread(target=outer, args=(threading.Event(),), name="waiter", daemon=True).start()
time.sleep(3600)
'''
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
EXPLODES = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) "
            "SELECT count(*) FROM n a, n b, n c WHERE a.i + b.i + c.i = 7")


@pytest.fixture
def job(target):
    return target(JOB, name="job.py")


@pytest.fixture
def ask(probing, job, ptrace):
    """Asks the job, without an agent in it unless it is wanted: these answers are the same either way."""
    def run(*args, **options):
        return probing(job.pid, "query", "--no-inject", *args, **options)
    return run


def refused(result, status, *words):
    assert result.status == status, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("probing: "), result
    for word in words:
        assert word in lines[0], result


# --- answers ----------------------------------------------------------------------------------------------------

def test_json_has_the_shape_that_scripts_rely_on(ask, job):
    answer = ask("--format", "json", "SELECT pid, thread, depth, func, lineno, locals IS NULL AS n FROM python.backtrace "
                 "WHERE thread = 'waiter' ORDER BY depth DESC").ok().json()
    assert list(answer) == ["schema_version", "columns", "rows", "truncated", "lost_chunks", "elapsed_ms"]
    assert answer["schema_version"] == 1 and answer["truncated"] is False and answer["elapsed_ms"] > 0
    assert [c["name"] for c in answer["columns"]] == ["pid", "thread", "depth", "func", "lineno", "n"]
    assert {c["name"]: c["type"] for c in answer["columns"]}["lineno"] == "integer"
    rows = answer["rows"]
    assert all(row["pid"] == job.pid and row["thread"] == "waiter" for row in rows)
    names = [row["func"] for row in rows]
    assert names.index("outer") == names.index("inner") - 1
    assert [row["lineno"] for row in rows if row["func"] == "outer"] == [6]
    assert [row["depth"] for row in rows] == list(range(len(rows) - 1, -1, -1))


def test_every_form_says_the_same(ask, job):
    text = "SELECT tid, name FROM python.threads ORDER BY name"
    answer = ask("--json", text).ok().json()["rows"]
    assert [row["name"] for row in answer] == ["MainThread", "waiter"]
    assert [json.loads(line) for line in ask("--format=ndjson", text).ok().stdout.splitlines()] == answer
    table = list(csv.DictReader(io.StringIO(ask("--format=csv", text).ok().stdout)))
    assert [{"tid": int(row["tid"]), "name": row["name"]} for row in table] == answer
    lines = ask(text).ok().stdout.splitlines()
    assert [line.split() for line in lines[2:4]] == [[str(row["tid"]), "|", row["name"]] for row in answer]
    assert lines[-1].startswith("(2 rows, ")


def test_variables_are_json_within_a_row(ask):
    answer = ask("--json", "SELECT func, json_extract(locals, '$.event.kind') AS kind FROM python.backtrace "
                 "WHERE func IN ('inner', 'outer')").ok().json()
    assert {row["func"]: row["kind"] for row in answer["rows"]} == {"inner": "argument", "outer": "argument"}


def test_the_kernel_says_what_ps_says(ask, job):
    row = ask("--json", "SELECT * FROM system.process").ok().json()["rows"][0]
    told = subprocess.run(["ps", "-ww", "-o", "ppid=,nlwp=,args=", "-p", str(job.pid)], capture_output=True, text=True, check=True)
    ppid, threads, args = told.stdout.strip().split(None, 2)
    assert (row["pid"], row["ppid"], row["threads"], row["cmd"]) == (job.pid, int(ppid), int(threads), args)
    assert row["fds"] == len(os.listdir(f"/proc/{job.pid}/fd"))
    with open(f"/proc/{job.pid}/statm", encoding="ascii") as statm:
        rss = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    assert abs(row["rss_mb"] - rss) < 8
    rows = ask("--json", "SELECT tid, native_name, state, wchan FROM system.threads").ok().json()["rows"]
    assert {row["tid"]: row["native_name"] for row in rows} == job.thread_names()


def test_statements_come_from_a_file_or_a_pipe(ask, tmp_path):
    script = tmp_path / "two.sql"
    script.write_text("-- a comment\nSELECT 1 AS a;\nCREATE TEMP TABLE t AS SELECT 2 AS b;\nSELECT b FROM t;\n")
    wanted = "a\n1\nb\n2\n"
    assert ask("--format", "csv", "-f", script).ok().stdout == wanted
    assert ask("--format", "csv", stdin=script.read_text()).ok().stdout == wanted
    assert ask("--format", "csv", "-f", "-", stdin=script.read_text()).ok().stdout == wanted


def test_a_statement_that_fails_takes_none_with_it_that_went_before(ask):
    done = ask("--format", "csv", "SELECT 1 AS a; SELECT 2 AS b; SELECT * FROM nowhere; SELECT 3 AS c")
    assert (done.status, done.stdout) == (1, "a\n1\nb\n2\n") and "nowhere" in done.stderr, done
    done = ask("--json", "SELECT 1 AS a; SELECT nothing")
    assert done.status != 0 and done.json()["rows"] == [{"a": 1}]


def test_an_agent_answers_too(probing, job, ptrace):
    answer = probing(job.pid, "query", "--json", "SELECT DISTINCT thread FROM python.backtrace ORDER BY 1").ok().json()
    assert [row["thread"] for row in answer["rows"]] == ["MainThread", "waiter"]
    assert probing(job.pid, "eject").ok()


def test_two_jobs_are_one_table(probing, target, job, ptrace):
    other = target(JOB, name="other.py")
    both = sorted([job.pid, other.pid])
    answer = probing("-t", job.pid, "-t", other.pid, "query", "--no-inject", "--json",
                     "SELECT pid, count(DISTINCT tid) AS n FROM python.backtrace GROUP BY pid ORDER BY pid").ok().json()
    assert [(row["pid"], row["n"]) for row in answer["rows"]] == [(pid, 2) for pid in both]
    joined = probing("-t", job.pid, "query", "-t", other.pid, "--no-inject", "--json",
                     "SELECT a.pid AS a, b.pid AS b FROM python.backtrace a JOIN python.backtrace b "
                     "ON a.func = b.func AND a.lineno = b.lineno WHERE a.func = 'inner' ORDER BY 1, 2").ok().json()
    assert [(row["a"], row["b"]) for row in joined["rows"]] == [(a, b) for a in both for b in both]


def test_limits_are_said(ask):
    text = "SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3"
    cut = ask("--json", "--limit", "2", text).ok()
    assert cut.json()["truncated"] is True and len(cut.json()["rows"]) == 2
    assert "more than 2 rows" in cut.stderr
    assert ", and more, " in ask("--limit", "2", text).ok().stdout
    for limit in ("3", "0"):
        assert ask("--json", "--limit", limit, text).ok().json()["truncated"] is False


# --- long answers -----------------------------------------------------------------------------------------------

ROWS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) "
        "SELECT i, i / 8.0 AS x, printf('%0200d', i) AS text, NULL AS none FROM n")


def heard(said):
    """What was said, but for the line that belongs to --no-inject."""
    return "".join(line for line in said.splitlines(True) if not line.startswith("probing: no history of"))


@pytest.fixture
def measured(probing, job, tmp_path, ptrace):
    """The answer, the exit status, what was said, and the most memory that the program has had, in KiB."""
    def run(*args):
        path = tmp_path / "answer"
        with open(path, "wb") as out:
            process = subprocess.Popen([probing.path, str(job.pid), "query", "--no-inject", *args],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
            said = process.stderr.read().decode()
            process.stderr.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return path.read_bytes(), process.returncode, heard(said), usage.ru_maxrss
    return run


def long_answer(form, n):
    if form == "csv":
        return "i,x,text,none\n" + "".join(f"{i},{i / 8},{i:0200d},\n" for i in range(1, n + 1))
    return "".join(f'{{"i":{i},"x":{i / 8},"text":"{i:0200d}","none":null}}\n' for i in range(1, n + 1))


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_memory_does_not_grow_with_the_rows(measured, form):
    most = {}
    for n in (1000, 200000):
        answer, status, said, most[n] = measured("--format", form, "--limit", "0", ROWS.format(n))
        assert (status, said) == (0, ""), said
        assert answer == long_answer(form, n).encode(), n
    assert most[200000] < most[1000] + 4096, most  # the answer takes 44 MB and more


def test_a_form_that_needs_the_whole_answer_keeps_it(measured):
    answer, status, said, most = measured("--format", "json", "--limit", "0", ROWS.format(20000))
    assert (status, said) == (0, "") and len(json.loads(answer)["rows"]) == 20000 and most > 4096


FAILS = ("SELECT i, CASE WHEN i = {} THEN json('{{') ELSE printf('%0200d', i) END AS text FROM ("
         + ROWS.format(10000) + ")")


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_an_error_after_some_rows_says_how_many_are_written(measured, form):
    answer, status, said, _ = measured("--format", form, "--limit", "0", FAILS.format(5000))
    assert status == 1, said
    lines = [line for line in answer.decode().splitlines() if line != "i,text"]
    assert len(lines) == 4999 and "4999".rjust(200, "0") in lines[-1], len(lines)
    assert said == "probing: malformed JSON; the 4999 rows before that were written\n"


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_short_answer_that_fails_is_not_begun(measured, form):
    answer, status, said, _ = measured("--format", form, "SELECT 7 AS a; " + FAILS.format(5))
    assert (answer.decode(), status) == ({"csv": "a\n7\n", "ndjson": '{"a":7}\n'}[form], 1)
    assert said == "probing: malformed JSON\n"


def test_a_reader_who_has_seen_enough_ends_it(job, probing, ptrace):
    process = start(probing, job.pid, "query", "--no-inject", "--format", "csv", "--limit", "0",
                    "--timeout", "0", ENDLESS.replace("count(*)", "i"))
    assert [process.stdout.readline() for _ in range(3)] == ["i\n", "1\n", "2\n"]
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert heard(process.stderr.read()) == ""
    process.stderr.close()


# --- bad questions ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, words", [
    ("SELECT x FROM python.backtrace", ["no such column: x", "(line 1, column 8)"]),
    ("-- 1,\n -- 2;\nSELEC 2", ["syntax error", "(line 3, column 1)"]),
    ("SELECT * FROM python.bactrace", ["no such table: python.bactrace"]),
    ("SELECT 'open", ["unrecognized token"]),
    ("SELECT interval '5 parsecs'", ["not an interval", "(line 1, column 8)"]),
    ("INSERT INTO python.samples VALUES (1)", ["only read"]),
    ("CREATE TABLE t(a)", ["CREATE", "only read"]),
    ("DROP TABLE python.samples", ["only read"]),
    ("ATTACH '/tmp/x.db' AS x", ["ATTACH is not allowed"]),
    ("PRAGMA journal_mode = delete", ["PRAGMA is not allowed"]),
    ("SELECT load_extension('/tmp/x.so')", ["load_extension"]),
    ("VACUUM INTO '/tmp/x.db'", ["not allowed"]),
])
def test_bad_statements_say_why(ask, text, words):
    refused(ask(text), 1, *words)


def test_the_place_is_shown_to_people(job, probing, ptrace):
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen:
        done = subprocess.run([probing.path, str(job.pid), "query", "--no-inject", "SELECT 1,\n  nonsense FROM python.threads"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower, timeout=30, check=False)
        os.close(follower)
        shown = b""
        while not shown.count(b"\n") >= 3:
            shown += screen.read(4096)
    lines = shown.decode().replace("\r", "").splitlines()
    assert done.returncode == 1
    assert lines[0] == "    nonsense FROM python.threads" and lines[1] == "    ^"
    assert lines[2] == "probing: no such column: nonsense (line 2, column 3)"


@pytest.mark.parametrize("text", [ENDLESS, EXPLODES])
def test_what_does_not_end_is_ended(ask, text):
    refused(ask("--timeout", "300ms", text), 1, "timed out after 0.3 s")


def test_what_could_not_be_told_is_said(ask):
    """Of each statement, of each of its tables, and once as long as it stays the same."""
    tensors, modules = (f"python.{name}: it needs an agent in the process, and there is none" for name in ("tensors", "modules"))
    done = ask("SELECT count(*) FROM python.tensors; SELECT count(*) FROM python.tensors; SELECT 1;"
               "SELECT (SELECT count(*) FROM python.tensors) + (SELECT count(*) FROM python.modules)").ok()
    said = [line for line in done.stderr.splitlines() if "needs an agent" in line]
    assert said == [f"probing: {tensors}", f"probing: {tensors}; {modules}"], done


def test_nothing_to_do_is_a_mistake(ask, probing, job, tmp_path):
    refused(ask(stdin=""), 2, "no SQL given")
    refused(ask("-- nothing"), 2, "no SQL given")
    refused(ask("-f", tmp_path / "absent.sql"), 1, "absent.sql cannot be read")
    refused(ask("-f", tmp_path / "absent.sql", "SELECT 1"), 2, "give one")
    refused(ask("--format", "jsn", "SELECT 1"), 2, "did you mean 'json'?")
    refused(ask("--format", "csv", "--json", "SELECT 1"), 2, "give one")
    refused(probing("-t", job.pid, "-t", "no-such-program", "query", "SELECT 1"), 3, "no-such-program")


def start(probing, *args):
    return subprocess.Popen([probing.path, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def test_interrupt_ends_the_query_and_the_program(probing, job, ptrace, wait_until):
    process = start(probing, job.pid, "query", "--no-inject", "--timeout", "0", ENDLESS)

    def busy():
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return int(fields[11]) > 30  # it uses the CPU: the query runs
    wait_until(busy, 60, "the query to run")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and (out, err) == ("", "")


def test_watch_asks_again_until_it_is_told_to_end(probing, job, ptrace):
    process = start(probing, job.pid, "query", "--no-inject", "--watch", "50ms", "--format", "ndjson",
                    "SELECT count(DISTINCT tid) AS n FROM python.backtrace")
    for _ in range(3):
        assert json.loads(process.stdout.readline()) == {"n": 2}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT


def test_watch_ends_with_its_target(probing, job, ptrace):
    process = start(probing, job.pid, "query", "--no-inject", "--watch", "50ms", "--format", "ndjson",
                    "SELECT state FROM system.process")
    assert "state" in json.loads(process.stdout.readline())
    job.end()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert f"process {job.pid} has ended" in err


def test_watch_ends_when_nobody_reads(probing, job, ptrace):
    process = start(probing, job.pid, "query", "--no-inject", "--watch", "50ms", "SELECT 1")
    process.stdout.readline()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() == 0
    process.stderr.close()
