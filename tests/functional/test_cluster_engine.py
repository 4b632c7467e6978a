# SPDX-License-Identifier: Apache-2.0
"""The ranks of a job read from a ClickHouse server, with rows as the relays of many hosts write them (tests/cluster/engine_ranks.py)."""

import json
import os
import re
import sys
import threading
import time

import pytest

from clickhouse import clickhouse_fixture, free_port  # noqa: F401 (a fixture)
from test_cluster_verdict import job  # noqa: F401 (a fixture)
from test_relay_to import relay  # noqa: F401 (a fixture)
from test_tui_tmux import screen  # noqa: F401 (a fixture)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
from engine_ranks import Job  # noqa: E402

__all__ = ["job", "relay", "screen"]

JOB = "llama-71c0"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "PROBING_CLICKHOUSE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def engine(probing, clickhouse):
    probing("cluster", "init", clickhouse.url()).ok()
    return clickhouse


class Writer:
    """Writes each second of a job, as its relays would."""

    def __init__(self, job):
        self.job, self.ends = job, threading.Event()
        self.thread = threading.Thread(target=job.run, args=(self.ends.is_set,))

    def __enter__(self):
        self.thread.start()
        return self.job

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def written(engine, n=1):
    return lambda: int(engine.ask("SELECT uniqExact(ts) FROM probing.ranks")[0][0]) >= n


def test_a_job_that_moves(probing, engine, wait_until):
    with Writer(Job(engine.ask, JOB, ranks=64)):
        wait_until(written(engine, 2), timeout=30)
        url = engine.url(job=JOB)
        rows = [json.loads(line) for line in probing("cluster", "ranks", url, "--format", "ndjson").ok().stdout.splitlines()]
        assert [row["rank"] for row in rows] == list(range(64))
        assert rows[9]["host"] == "gpu1" and rows[9]["pid"] == 1001 and rows[9]["state"] == "computes"
        assert {row["func"] for row in rows} <= {"attention", "backward"}
        # it is the newest: the way through the server takes less than 3 s
        nodes = probing("cluster", "nodes", url).ok().stdout
        assert "gpu7" in nodes and "clickhouse" in nodes and "ada" in nodes
        stacks = probing("cluster", "stacks", url).ok().stdout
        assert "64 of 64 ranks" in stacks and "step step.py:88" in stacks
        verdict = probing("cluster", "verdict", url).ok().stdout
        assert verdict.startswith("MOVING")
        jobs = probing("cluster", "nodes", engine.url()).ok().stdout
        assert JOB in jobs and "running" in jobs and " 64 " in jobs


def test_a_rank_that_hangs_and_a_silent_host(probing, engine, wait_until):
    written_job = Job(engine.ask, JOB, ranks=64)
    written_job.hang(17, time.time() - 20)
    with Writer(written_job):
        wait_until(written(engine, 3), timeout=30)

        def verdict():
            done = probing("cluster", "verdict", engine.url(job=JOB), timeout=60)
            assert done.status == 1
            assert done.stdout.startswith("HUNG RANK 17") and "fetch (loader.py:31)" in done.stdout
            return "counters of 64 of 64 ranks" in done.stdout  # they are written after the rest of a second

        wait_until(verdict, timeout=60)
        written_job.silent = {5}

        def names_it():
            return "gpu5 (no rows for" in probing("cluster", "ranks", engine.url(job=JOB)).stderr

        wait_until(names_it, timeout=40, interval=1)
        rows = probing("cluster", "ranks", engine.url(job=JOB), "-d", "0", "--format", "csv").ok().stdout.splitlines()
        assert sum("no news" in row for row in rows) == 8 and all("gpu5" in row for row in rows if "no news" in row)


def test_a_job_that_has_ended(probing, probing_top, engine):
    written_job = Job(engine.ask, JOB, ranks=16)
    ended = time.time() - 5 * 86400
    for second in range(20):
        written_job.second(ended - 20 + second)
    rows = probing("cluster", "ranks", engine.url(job=JOB)).ok().stdout
    assert rows.count("attention") + rows.count("backward") == 16
    assert "ended" in probing("cluster", "nodes", engine.url()).ok().stdout
    # the only job need not be named
    shown = probing_top(engine.url(), "--export", "txt", "--screen", "ranks", "--cols", "120").ok().stdout
    assert "16/16 ranks" in shown and "gpu1" in shown


@pytest.fixture
def past(engine):
    """A minute of a job, two days ago: from second 20 to 40 all ranks wait for rank 17. The time of its first second."""
    written_job, began = Job(engine.ask, JOB, ranks=64), float(int(time.time() - 47.5 * 3600))  # "1d23h behind" for half an hour
    for second in range(60):
        if second == 20:
            written_job.hang(17, began + 20)
        if second == 40:
            written_job.victim = written_job.hung_at = None
        written_job.second(began + second)
    return began


def at(engine, moment, job=JOB):
    return engine.url(job=job) + f"&at=@{moment}"


def test_a_moment_of_the_past(probing, engine, past):
    def verdict(second, *args):
        return probing("cluster", "verdict", at(engine, past + second), *args, timeout=60)

    assert verdict(15).ok().stdout.startswith("MOVING")
    hung = verdict(38, "--json")
    found = json.loads(hung.stdout)
    assert hung.status == 1 and found["verdicts"][0]["brief"] == "HUNG RANK 17"
    assert found["timestamp"] == past + 38
    # it is known since when, though nobody watched: they have stood there for 18 s
    assert 15 <= found["verdicts"][0]["since_s"] <= 21
    assert verdict(55).ok().stdout.startswith("MOVING")
    sql = "SELECT v.code, v.ranks, g.behind, r.host FROM cluster.verdicts v JOIN cluster.groups g ON g.pg = v.pg JOIN cluster.ranks r ON r.rank = v.ranks"
    assert probing("query", "-t", at(engine, past + 38), sql, "--json", timeout=60).ok().json()["rows"] == [
        {"code": "HUNG", "ranks": "17", "behind": "17", "host": "gpu2"}]
    # one answer, and no second one follows
    assert verdict(38, "--watch").stdout.count("HUNG RANK 17") == 1
    rows = probing("cluster", "ranks", at(engine, past + 38), "--format", "ndjson").ok().stdout.splitlines()
    states = [json.loads(row)["state"] for row in rows]
    assert len(states) == 64 and states.count("collective") == 63
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(past + 38))
    assert "all_reduce" in probing("cluster", "stacks", engine.url(job=JOB) + f"&at={clock}").ok().stdout
    nodes = probing("cluster", "nodes", at(engine, past + 38))
    assert "gpu7" in nodes.ok().stdout and time.strftime("the job at %d %b %H:%M:%S", time.localtime(past + 38)) in nodes.stderr
    # after its end it is shown at its end, before its begin there is nothing
    assert "no rows come any longer" in probing("cluster", "ranks", at(engine, past + 3600), "-d", "0").stderr
    before = probing("cluster", "ranks", at(engine, past - 7200))
    assert before.status == 3 and "no rows of ranks" in before.stderr and time.strftime("%H:%M:%S", time.localtime(past - 7200)) in before.stderr


@pytest.mark.parametrize("text", ["", "yesterday", "25:00", "2026-02-30T10:00", "@", "10", "-5m"])
def test_a_time_that_is_none(probing, text):
    done = probing("cluster", "ranks", f"clickhouse://127.0.0.1:9/probing?job=a&at={text}")
    assert done.status == 2 and f"'{text}' is not a time" in done.stderr


def test_the_past_is_exported(engine, past, probing_top):
    ago = f"{time.time() - past - 38:.0f}s"
    shown = probing_top(engine.url(job=JOB) + f"&at={ago}", "--export", "txt", "--screen", "ranks", "--cols", "120").ok().stdout
    assert "64/64 ranks" in shown and "all_reduce" in shown
    answer = probing_top(at(engine, past + 38), "--export", "json", "--screen", "ranks").ok().json()
    assert answer["timestamp"] == past + 38
    assert len(answer["ranks"]) == 64 and sum(row["state"] == "collective" for row in answer["ranks"]) == 63


def test_tables_of_the_past(probing, engine, past):
    def row(target, sql):
        [found] = probing("query", "-t", target, "--json", sql).ok().json()["rows"]
        return found

    sql = "SELECT count(*) AS n, min(step) AS first, max(step) AS last, count(DISTINCT rank) AS ranks FROM python.steps WHERE timestamp > now() - 5"
    # steps end up to 1 ms after a second
    assert row(at(engine, past + 15.5), sql) == {"n": 320, "first": 610, "last": 614, "ranks": 64}
    # without a moment now() is the end of a job that has ended
    assert row(engine.url(job=JOB), sql.replace("5", "30"))["last"] == 649
    assert row(at(engine, past + 3600), sql.replace("5", "30"))["last"] == 649
    joined = "SELECT count(*) AS n FROM python.steps s JOIN cluster.ranks r ON r.rank = s.rank AND s.step = r.step - 1"
    assert row(at(engine, past + 15.5), joined) == {"n": 64}


def test_steps_and_overview_are_exported(engine, past, probing_top):
    def shown(name):
        return probing_top(at(engine, past + 15), "--export", "txt", "--screen", name, "--cols", "120").ok().stdout

    steps = shown("steps")
    assert "rank 0: Steps" in steps and re.search(r"\b613\b", steps) and not re.search(r"\b61[4-9]\b", steps.split("rank 0:")[0].split("STEP")[1])
    overview = shown("overview")
    assert "64/64" in overview and "on 8 hosts" in overview and "now step 615" in overview


def test_the_past_on_the_screen(engine, past, screen, probing_top):
    def clock(second):
        return time.strftime("%H:%M:%S", time.localtime(past + second))

    s = screen(140, 30)
    s.shell(f"{probing_top.path} '{at(engine, past + 38)}'; echo status=$?")
    s.wait_for("HUNG RANK 17")
    s.wait_for("FROZEN")
    s.wait_for(f"{clock(38)}, 1d23h behind")
    s.wait_for("64/64 ranks")
    s.keys("Enter")
    s.wait_for("cannot be opened as it was")
    s.type(",")
    s.wait_for(f"{clock(37)}, 1d23h")
    s.type("..")
    s.wait_for(f"{clock(39)}, 1d23h")
    # the last second in which they waited, and the next one
    s.type(".")
    s.wait_gone("HUNG RANK 17")
    s.wait_for(f"{clock(40)}, 1d23h")
    s.type("O")
    s.wait_for("1 stack of 64 ranks")
    s.type(f":at @{past + 30}")
    s.keys("Enter")
    s.wait_for("all_reduce")
    # nothing there: what was shown stays
    s.type(f":at @{past - 7200}")
    s.keys("Enter")
    s.wait_for("no rows of ranks")
    s.wait_for("all_reduce")
    s.type(":at soon")
    s.keys("Enter")
    s.wait_for("'soon' is not a time")
    # its steps of that time, of the rank that is selected
    s.type(f":at @{past + 15}")
    s.keys("Enter")
    s.wait_for(f"{clock(15)}, 1d23h")
    s.wait_gone("being read")
    s.type("6")
    s.wait_for("rank 0: Steps")
    s.wait_for(" 613 ")
    assert "614" not in s.text()
    s.type("]")
    s.wait_for("rank 1: Steps")
    s.wait_for(" 613 ")
    s.type(",")
    s.wait_gone(" 613 ")
    s.wait_for(" 612 ")
    s.type("1")
    s.wait_for("64/64")
    s.wait_for("now step 614")
    s.type(".")
    s.wait_for("now step 615")
    s.type("S")
    s.type("SELECT rank, max(step) FROM python.steps WHERE timestamp > now() - 3 AND rank = 7")
    s.keys("F5")
    s.wait_for("1 row in")  # until then Escape is for the query
    s.wait_for(" 613")
    s.keys("Escape")
    s.wait_gone("Tab Complete")
    s.type("p")
    s.wait_for("[p Ranks]")
    s.type("Z")
    s.wait_gone("FROZEN")
    s.wait_for(time.strftime("ENDED %d %b %H:%M:%S", time.localtime(past + 59)))
    s.type("q")
    s.wait_for("status=0")


def test_a_job_is_chosen(engine, screen, probing_top):
    """Which of several is asked on a screen of its own; a job that comes meanwhile appears."""
    Job(engine.ask, "first-1", ranks=16).second(time.time() - 86400)
    Job(engine.ask, "second-2", ranks=8).second(time.time() - 2)
    s = screen(120, 30)
    s.shell(f"{probing_top.path} '{engine.url()}'; echo status=$?")
    s.wait_for("Which job of clickhouse://")
    s.wait_for("Jobs 2")
    assert re.search(r"second-2 .* 8 .*running", s.text()) and re.search(r"first-1 .* 16 .*ended", s.text())
    Job(engine.ask, "third-3", ranks=4).second(time.time() - 1)
    s.wait_for("third-3", timeout=60)
    s.type("\\first")
    s.keys("Enter")
    s.wait_gone("third-3")
    s.keys("Enter")
    s.wait_for("16/16 ranks")
    s.wait_for("ENDED")
    s.type("q")
    s.wait_for("status=0")
    engine.kill()
    s.shell(f"clear; {probing_top.path} '{engine.url()}'; echo status=$?")
    s.wait_for("status=3")


def test_a_job_that_hung_until_its_end(engine, screen, probing_top):
    """What was wrong at the end is on the screens, though nothing new comes."""
    written_job, began = Job(engine.ask, JOB, ranks=16), float(int(time.time() - 47.5 * 3600))
    for second in range(30):
        if second == 10:
            written_job.hang(5, began + 10)
        written_job.second(began + second)
    s = screen(140, 30)
    s.shell(f"{probing_top.path} '{engine.url(job=JOB)}'; echo status=$?")
    s.wait_for("ENDED")
    s.wait_for("HUNG RANK 5")
    s.type("1")
    s.wait_for("for rank 5")
    s.type("6")
    s.wait_for("rank 5: Steps")  # the worst is selected
    assert "s ago" not in s.text()
    s.type("2")
    s.wait_for("which needs --via ssh")
    s.type("q")
    s.wait_for("status=0")


@pytest.mark.parametrize("verb", ["ranks", "stacks", "verdict"])
def test_what_cannot_be_read(probing, engine, verb):
    assert "has no rows of a job" in probing("cluster", verb, engine.url()).stderr
    Job(engine.ask, "other-1").second(time.time())
    no_job = probing("cluster", verb, engine.url(job="x' OR 1 = 1 --"))
    assert no_job.status == 3 and "has no job 'x' OR 1 = 1 --'; there are: other-1" in no_job.stderr
    Job(engine.ask, "other-2").second(time.time())
    assert "name one by ?job=NAME" in probing("cluster", verb, engine.url()).stderr
    assert "cluster init" in probing("cluster", verb, engine.url(database="nothing", job="a")).stderr
    down = probing("cluster", verb, f"clickhouse://127.0.0.1:{free_port()}/probing?job=a")
    assert down.status == 3 and "no server answers at" in down.stderr
    wrong = probing("cluster", verb, engine.url(user="writer", job="other-1"))
    assert wrong.status == 3 and "PROBING_CLICKHOUSE_PASSWORD" in wrong.stderr
    assert "--hosts" in probing("cluster", "attach", engine.url(job="other-1")).stderr


def test_the_reader_of_a_server_may_only_read(probing, engine):
    Job(engine.ask, "other-1").second(time.time())
    assert "gpu1" in probing("cluster", "ranks", engine.url(user="reader", job="other-1")).ok().stdout


def test_rows_of_a_stranger(probing, engine):
    """Names that want to be something else, numbers that cannot be."""
    Job(engine.ask, JOB, ranks=2).second(time.time() - 1)
    engine.ask(f"INSERT INTO probing.ranks (day, job, rank, host, pid, created_us, row, ts, state, stack, wait_what, step, since) SELECT today(), '{JOB}', "
               "rank, host, -5, 1, 1, toFloat64(now()), '\\033[2J', 18446744073709551615, arrayStringConcat(arrayMap(i -> 'xxxxxxxxxx', range(10000))), -9223372036854775807, inf FROM "
               "(SELECT arrayJoin([-7, 2000000000, 1]) AS rank, concat('\\033]0;evil\\007', toString(rank), '\\n') AS host)")
    engine.ask(f"INSERT INTO probing.stacks (day, job, stack, func, file, line) SELECT today(), '{JOB}', 18446744073709551615, "
               "arrayMap(x -> '\\033[31mf', range(60000)), arrayMap(x -> '/a', range(60000)), arrayMap(x -> toInt32(-1), range(50000))")
    rows = probing("cluster", "ranks", engine.url(job=JOB), "-d", "0").ok().stdout
    assert "\033" not in rows and "gpu0" in rows
    assert "\033" not in probing("cluster", "stacks", engine.url(job=JOB)).ok().stdout
    assert "\033" not in probing("cluster", "nodes", engine.url(job=JOB)).ok().stdout


class Jumped(Job):
    """The clock of the second of its two hosts has jumped."""

    def second(self, ts, steps_each=10):
        jump = self.jump
        for self.silent, at in (((1,), ts), ((0,), ts + jump)) if jump else (((), ts),):
            super().second(at, steps_each)


@pytest.mark.parametrize("jump", [7200, -7200])
def test_clocks_that_jump(probing, engine, jump):
    """What a host says with a clock that is hours wrong is not taken for news of now, and nobody is accused because of that."""
    one, now = Jumped(engine.ask, JOB, ranks=16), time.time()
    one.jump = 0
    for second in range(6):
        one.second(now - 26 + second)
    one.jump = jump
    for second in range(6):
        one.second(now - 6 + second)
    with Writer(one):
        rows = probing("cluster", "ranks", engine.url(job=JOB), "--json").ok().json()["rows"]
        assert [row["rank"] for row in rows if row["state"] == "computes"] == list(range(8))
        assert [row["rank"] for row in rows if row["state"] == "no news"] == list(range(8, 16))
        verdict = probing("cluster", "verdict", engine.url(job=JOB), timeout=60).ok()
        assert verdict.stdout.startswith("MOVING") and "no news from gpu1" in verdict.stdout, verdict.stdout
        assert "running" in probing("cluster", "nodes", engine.url()).ok().stdout


def test_a_million_stacks(probing, engine):
    """Each rank has another one, and there are many more that nobody has any longer. Some thousands are read, the others are not known."""
    job_of_many, ranks = "many", 32768
    Job(engine.ask, job_of_many, ranks=ranks).second(time.time() - 1)
    engine.ask(f"INSERT INTO probing.stacks (day, job, stack, func, file, line) SELECT today(), '{job_of_many}', 1000 + number, [concat('f', toString(number)), "
               "'main'], ['/a.py', '/a.py'], [toInt32(modulo(number, 1000)), 1] FROM numbers(1000000)", timeout=120)
    engine.ask("INSERT INTO probing.ranks (day, job, rank, host, pid, created_us, row, ts, state, stack) SELECT today(), "
               f"'{job_of_many}', toInt32(number), concat('gpu', toString(intDiv(number, 8))), 1000, 1, 1000000 + number, toFloat64(now()), 'R', "
               f"1000 + number * 30 FROM numbers({ranks})", timeout=120)
    rows = [json.loads(line) for line in probing("cluster", "ranks", engine.url(job=job_of_many), "--format", "ndjson", timeout=120).ok().stdout.splitlines()]
    assert len(rows) == ranks and len({row["class_id"] for row in rows}) >= 4096
    assert all(row["func"] in (None, f"f{row['rank'] * 30}") for row in rows)
    stacks = probing("cluster", "stacks", engine.url(job=job_of_many), timeout=120).ok().stdout
    assert f"{ranks} of {ranks} ranks" in stacks and "main a.py:1" in stacks and len(stacks) < 1 << 20


SAME = ("rank", "host", "pid", "local_rank", "state", "waits_for", "class_id", "func", "file", "lineno", "agent")


def test_one_job_by_links_and_by_the_server(job, probing, engine, relay, wait_until):
    """The same ranks, stacks and verdict, whichever way they came."""
    one = job("stop")
    relay(engine.url(), one.target(), "--no-inject", "--job", "two-ways")
    url = engine.url(job="two-ways")
    wait_until(lambda: int(engine.ask("SELECT uniqExact(rank) FROM probing.ranks WHERE job = 'two-ways'")[0][0]) == 4, timeout=60)
    one.begin()

    def verdict(*target):
        done = probing("cluster", "verdict", *target, "--json", timeout=60)
        if done.status == 3 and target == (url,):  # the newest rows are older than 5 s: on a busy machine the relay is late
            assert "no process of these hosts is a rank" in done.stderr, done
            return None
        assert done.status in (0, 1), done
        return done.json()

    def hangs(*target):
        found = []

        def judged():
            found[:] = [verdict(*target)]
            return found[0] and found[0]["verdicts"][0]["code"] == "HUNG" and not found[0]["verdicts"][0]["by_stacks"]
        wait_until(judged, timeout=90, what=f"HUNG of {target}: {found}", interval=0.1)
        return found[0]

    by_links, by_server = hangs(one.target()), hangs(url)
    keys = ("code", "level", "brief", "cause", "ranks", "waiting", "pg", "op", "number", "func", "file", "lineno")
    assert [{k: v[k] for k in keys} for v in by_links["verdicts"]] == [{k: v[k] for k in keys} for v in by_server["verdicts"]]
    assert by_links["groups"] == by_server["groups"] and by_links["ranks"] == by_server["ranks"] and by_links["world"] == by_server["world"]

    def ranks(*command):
        lines = probing("cluster", *command, "--format", "ndjson").ok().stdout.splitlines()
        return [{k: json.loads(line).get(k) for k in SAME} for line in lines]

    assert ranks("query", one.target(), "SELECT * FROM cluster.ranks ORDER BY rank") == ranks("ranks", url)

    def stacks(target):
        lines = probing("cluster", "stacks", target, "--format", "ndjson").ok().stdout.splitlines()
        return [{k: v for k, v in json.loads(line).items() if k not in ("since_s", "timestamp")} for line in lines]

    assert stacks(one.target()) == stacks(url)


def test_tables_by_sql(probing, engine):
    Job(engine.ask, JOB, ranks=64).second(time.time() - 2)
    url = engine.url(job=JOB)

    def rows(sql, *options):
        return [json.loads(line) for line in probing("query", *options, "-t", url, "--format", "ndjson", sql).ok().stdout.splitlines()]

    [whole] = rows("SELECT count(*) AS n, avg(duration_ms) AS ms, min(rank) AS low, max(rank) AS high, count(DISTINCT host) AS hosts FROM python.steps")
    [[n, ms]] = engine.ask("SELECT count(), avg(duration_ms) FROM probing.python_steps FINAL")
    assert whole == {"n": int(n), "ms": pytest.approx(float(ms)), "low": 0, "high": 63, "hosts": 8}
    # rows that were written twice count once, and those of another job not at all
    engine.ask("INSERT INTO probing.python_steps SELECT * FROM probing.python_steps WHERE rank < 5")
    Job(engine.ask, "other", ranks=8).second(time.time() - 2)
    assert rows("SELECT count(*) AS n FROM python.steps") == [{"n": int(n)}]
    # what SQLite would have said without any condition that travels
    for condition in ("rank = 17", "rank IN (3, 5, 99)", "rank BETWEEN 60 AND 70", "timestamp > now() - 20.5", "step = 590", "host = 'gpu3'",
                      "rank = 17 AND timestamp <= now() - 10", "NOT rank > 2", "nonfinite IS NULL AND rank < 2"):
        [few] = rows(f"SELECT count(*) AS n, total(step) AS s FROM python.steps WHERE {condition}")
        [same] = rows(f"SELECT count(*) AS n, total(step) AS s FROM (SELECT *, timestamp + 0 AS t FROM python.steps) WHERE {condition.replace('timestamp', 't')}")
        assert few["n"] == pytest.approx(same["n"], abs=64 if "now()" in condition else 0) and few["n"] > 0, condition
    assert len(rows("SELECT * FROM python.steps LIMIT 7")) == 7
    both = rows("SELECT r.rank, s.step FROM cluster.ranks r JOIN python.steps s ON s.rank = r.rank AND s.step = r.step - 1 ORDER BY r.rank")
    assert [row["rank"] for row in both] == list(range(64))
    assert rows("SELECT rank, count() AS n FROM probing.python_steps FINAL WHERE job = '" + JOB + "' GROUP BY rank ORDER BY rank LIMIT 1", "--engine") == \
        [{"rank": 0, "n": "60"}]
    assert "readonly" in probing("query", "--engine", "-t", url, "DROP TABLE probing.python_steps").stderr
    assert "--engine is for a database" in probing("cluster", "query", "--engine", "SELECT 1").stderr
