# SPDX-License-Identifier: Apache-2.0
"""Who reads a job from a ClickHouse server that is slow, fails in the middle of an answer, is none, or is newer: one line says so, nothing
half is shown, and what can be read again is."""

import contextlib
import http.server
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from clickhouse import Answers, clickhouse_fixture  # noqa: F401 (a fixture)
from test_cluster_engine import Writer, engine, no_proxies, written  # noqa: F401 (fixtures)
from test_tui_tmux import screen  # noqa: F401 (a fixture)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
from engine_ranks import Job  # noqa: E402

__all__ = ["engine", "no_proxies", "screen"]

JOB = "llama-71c0"
pytestmark = pytest.mark.timeout(300)
FAULT = b"Code: 241, e.displayText() = DB::Exception: Memory limit (for query) exceeded\x1b[2J, e.what() = DB::Exception\n"


class Between(Answers):
    """Hands requests on to the server, and the answers to those that read a table back in some other way."""
    server_port, way, stop = 0, "", threading.Event()
    steps = []  # (from, to) of each question for steps

    def do_GET(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server_port}{self.path}", headers={k: v for k, v in self.headers.items() if k.startswith("X-")})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        part = re.search(r"`python_steps`.*ts > ([0-9.]+) AND ts <= ([0-9.]+)", urllib.parse.unquote_plus(self.path), re.S)
        if part:
            self.steps.append(tuple(map(float, part.groups())))
            if self.way == "steps" or (self.way == "second" and len(self.steps) == 2):
                return self.answer(FAULT, 500)
        if not any(f"%60{table}%60" in self.path for table in ("ranks", "python_steps", "states")):
            self.answer(body, status)
        elif self.way == "cut":
            self.answer(body[:len(body) // 2 + 1], status, len(body))
        elif self.way == "half":
            self.answer(body[:len(body) // 2 + 1] + FAULT, status)
        elif self.way == "fault":
            self.answer(FAULT, 500)
        elif self.way == "page":
            self.answer(b"<html><body>Sign in\x1b[2J to the network</body></html>")
        elif self.way == "flood":
            self.send_response(200)
            self.end_headers()
            try:
                while not self.stop.is_set():
                    self.wfile.write(b"\x00" * 65536)
            except OSError:
                pass
        elif self.way == "slow":
            self.stop.wait(250)
        else:
            self.answer(body, status)


@contextlib.contextmanager
def on_the_way(engine, tls=None):  # noqa: F811
    """The port of what is on the way to the server."""
    Between.server_port, Between.way, Between.stop, Between.steps = engine.port, "", threading.Event(), []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    Between.stop.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def between(engine):  # noqa: F811
    with on_the_way(engine) as port:
        yield f"clickhouse://127.0.0.1:{port}/probing?job={JOB}"


def one_line(done):
    """Nothing on stdout, and a line that a terminal may show."""
    assert done.stdout == "" and "\x1b" not in done.stderr, done
    lines = [line for line in done.stderr.splitlines() if line.startswith("probing")]
    assert len(lines) == 1, done.stderr
    return lines[0]


READERS = [("cluster", "ranks"), ("query", "-t")]


@pytest.mark.parametrize("way, why", [("cut", "in the middle of its answer"), ("half", "not enough memory"), ("fault", "not enough memory"), ("page", "not valid"),
                                      ("flood", "too many|more rows")])
def test_answers_that_are_not_whole(probing, between, engine, way, why):  # noqa: F811
    Job(engine.ask, JOB, ranks=64).second(time.time() - 2)
    for words in READERS:
        statement = ["SELECT count(*) FROM python.steps"] if words[0] == "query" else []
        assert probing(*words, between, *statement).ok()
        Between.way = way
        done = probing(*words, between, *statement, timeout=100)
        assert done.status == 1, done
        line = one_line(done)
        assert any(one in line for one in why.split("|")), line
        Between.way = ""


def test_a_server_that_does_not_answer(probing, between, engine):  # noqa: F811
    """It is waited for no longer than was said, and the verdict is not made of nothing."""
    Job(engine.ask, JOB, ranks=64).second(time.time() - 2)
    Between.way = "slow"
    began = time.monotonic()
    done = probing("query", "-t", between, "--timeout", "2", "SELECT count(*) FROM python.steps", timeout=100)
    assert done.status == 1 and "timed out after 2 s" in one_line(done)
    done = probing("cluster", "verdict", between, timeout=100)
    assert done.status == 3 and done.stdout == "", done
    assert "did not answer" in done.stderr or "no answer" in done.stderr or "no rows" in done.stderr, done.stderr
    assert time.monotonic() - began < 90


def test_what_is_shown_stays_until_it_can_be_read_again(between, engine, screen, probing_top):  # noqa: F811
    with Writer(Job(engine.ask, JOB, ranks=64)):
        s = screen(140, 30)
        s.shell(f"{probing_top.path} '{between}'; echo status=$?")
        s.wait_for("64/64 ranks", timeout=30)
        Between.way = "fault"
        s.wait_for("this is old: the server at", timeout=30)
        s.wait_for("not enough memory")
        s.wait_for("64/64 ranks")
        s.type("6")
        s.wait_for("ask for less time", timeout=30)
        Between.way = ""
        s.wait_for("rank 0: Steps", timeout=60)
        s.type("p")
        s.wait_gone("this is old: ", timeout=30)
        s.type("q")
        s.wait_for("status=0")


def test_steps_that_could_not_be_read_are_read_again(between, engine, probing, wait_until):  # noqa: F811
    """And in between the ranks are."""
    with Writer(Job(engine.ask, JOB, ranks=64)):
        wait_until(written(engine, 2), timeout=30)
        Between.way = "second"
        reader = subprocess.Popen([probing.path, "cluster", "stacks", between, "--duration", "120s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len(Between.steps) >= 3, timeout=100)
        finally:
            reader.kill()
            reader.wait()
    first, failed, again = Between.steps[:3]
    assert failed[0] == first[1] and again[0] == failed[0] and again[1] >= failed[1] + 4, Between.steps


def shown_ranks(probing, target):
    done = probing("cluster", "ranks", target, "--format", "ndjson", timeout=60).ok()
    return [json.loads(line)["rank"] for line in done.stdout.splitlines()]


def test_ranks_without_their_steps(probing, between, engine):  # noqa: F811
    """Steps that cannot be read keep nobody from the ranks."""
    Job(engine.ask, JOB, ranks=64).second(time.time() - 2)
    Between.way = "steps"
    assert shown_ranks(probing, between) == list(range(64)) and Between.steps


def test_many_fast_steps(probing, between, engine):  # noqa: F811
    """More steps in a minute than are read together: less time is, now and at a moment that is past."""
    job, ts = Job(engine.ask, JOB, ranks=64), time.time()
    job.second(ts - 17)
    job.second(ts)
    each = 6500  # of a rank, in 80 s
    job.put("python_steps", 64 * each, f"{ts - 80} + intDiv(number, 64) * {80 / each}", "modulo(number, 64)", "intDiv(modulo(number, 64), 8)", "1000 + intDiv(number, 64)",
            step="1000 + intDiv(number, 64)", duration_ms="14")
    for target in between, f"{between}&at=@{int(ts) - 15}":
        Between.steps.clear()
        assert shown_ranks(probing, target) == list(range(64))
        (first, last), (again, until) = Between.steps[:2]
        assert 59 < last - first < 61 and 29 < until - again < 31, Between.steps


def test_a_newer_schema(probing, engine):  # noqa: F811
    """A later version adds tables and columns: what is known here is read, and nobody makes it older."""
    job = Job(engine.ask, JOB, ranks=16)
    job.second(time.time() - 2)
    [[version]] = engine.ask("SELECT max(version) FROM probing.schema_version")
    for table in "ranks", "hosts", "python_steps", "states":
        engine.ask(f"ALTER TABLE probing.{table} ADD COLUMN later Nullable(String) AFTER rank")
    engine.ask(f"INSERT INTO probing.schema_version (version) VALUES ({int(version) + 1})")
    rows = [json.loads(line) for line in probing("cluster", "ranks", engine.url(job=JOB), "--format", "ndjson").ok().stdout.splitlines()]
    assert [row["rank"] for row in rows] == list(range(16))
    assert probing("query", "-t", engine.url(job=JOB), "--json", "SELECT count(*) AS n FROM python.steps").ok().json()["rows"] == [{"n": 16 * 60}]
    job.second(time.time() - 1)  # on a busy machine the rows above may be too old by now to be judged
    assert probing("cluster", "verdict", engine.url(job=JOB), timeout=60).stdout.startswith("MOVING")
    done = probing("cluster", "init", engine.url())
    assert done.status == 1 and "use the newer" in one_line(done)


@pytest.fixture
def certified(engine, tmp_path):  # noqa: F811
    """The same server behind TLS, with a certificate that nobody has signed. Its address and its certificate."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=db.example", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with on_the_way(engine, context) as port:
        yield f"clickhouses://127.0.0.1:{port}/probing?job={JOB}", cert


def test_tls_is_verified(probing, engine, certified, monkeypatch, tmp_path):  # noqa: F811
    url, cert = certified
    Job(engine.ask, JOB, ranks=16).second(time.time() - 2)
    for words in READERS:
        statement = ["SELECT count(*) AS n FROM python.steps"] if words[0] == "query" else []
        done = probing(*words, url, *statement, timeout=60)
        assert done.status == 3 and "certificate" in one_line(done), done
    monkeypatch.setenv("PROBING_CLICKHOUSE_CA", str(cert))
    rows = [json.loads(line) for line in probing("cluster", "ranks", url, "--format", "ndjson").ok().stdout.splitlines()]
    assert [row["rank"] for row in rows] == list(range(16))
    # a certificate of another name
    assert "certificate" in one_line(probing("cluster", "ranks", url.replace("127.0.0.1", "localhost"), timeout=60))
    monkeypatch.setenv("PROBING_CLICKHOUSE_CA", str(tmp_path / "nowhere.pem"))
    assert "nowhere.pem" in one_line(probing("cluster", "ranks", url, timeout=60))
