# SPDX-License-Identifier: Apache-2.0
"""`probing cluster init`: the schema on a real ClickHouse server, made, upgraded, refused; by the newest dialect in chdb; what a server
that is not there, or is not one, leads to."""

import http.server
import os
import stat
import subprocess
import threading
import time

import pytest

from clickhouse import chdb_python, clickhouse_fixture, free_port  # noqa: F401 (a fixture)

CHDB = """
import sys, tempfile
from chdb import session
s = session.Session(tempfile.mkdtemp())
for sql in sys.stdin.read().split(";\\n"):
    if sql.strip():
        s.query(sql)
print(s.query("SELECT count() FROM system.tables WHERE database = 'a`b'"))
for again in range(2):
    s.query("INSERT INTO `a``b`.python_steps (day, job, rank, host, pid, created_us, row, ts, step) VALUES (today(), 'j', 0, 'h', 1, 1, 1, 86401, 5)")
print(s.query("SELECT count(), any(timestamp), any(step) FROM `a``b`.python_steps FINAL"))
"""


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY", "PROBING_CLICKHOUSE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_a_schema_is_made_and_made_again(probing, clickhouse):
    done = probing("cluster", "init", clickhouse.url()).ok()
    assert "database probing created" in done.stdout and "table python_steps created" in done.stdout
    tables = {name for name, in clickhouse.ask("SHOW TABLES FROM probing")}
    assert {"ranks", "states", "groups", "hosts", "stacks", "python_steps", "python_collectives", "gpu_metrics", "schema_version"} <= tables
    assert "ranks_buffer" in tables and "stacks_buffer" not in tables
    assert clickhouse.ask("SELECT version FROM probing.schema_version FINAL") == [["1"]]
    before = clickhouse.ask("SELECT * FROM system.columns WHERE database = 'probing'")
    assert "has version 1" in probing("cluster", "init", clickhouse.url()).ok().stdout
    assert clickhouse.ask("SELECT * FROM system.columns WHERE database = 'probing'") == before


def test_a_schema_is_upgraded(probing, clickhouse):
    probing("cluster", "init", clickhouse.url()).ok()
    for table in "ranks", "python_steps":
        clickhouse.ask(f"ALTER TABLE probing.{table} DROP COLUMN step")
    clickhouse.ask("DROP TABLE probing.groups")
    done = probing("cluster", "init", clickhouse.url()).ok()
    assert done.stdout.splitlines() == ["column step added to python_steps", "column step added to ranks", "table groups created"]
    # what gathers the rows of ranks has the column, too
    assert clickhouse.number("SELECT count() FROM system.columns WHERE database = 'probing' AND name = 'step' AND table LIKE 'ranks%'") == 2


def test_a_newer_schema_and_a_foreign_table_are_refused(probing, clickhouse):
    probing("cluster", "init", clickhouse.url()).ok()
    clickhouse.ask("INSERT INTO probing.schema_version (version, ts, by) VALUES (2, 0, 'later')")
    done = probing("cluster", "init", clickhouse.url())
    assert done.status == 1 and done.stdout == "" and "version 2 of the schema, and this probing knows version 1" in done.stderr
    clickhouse.ask("CREATE DATABASE other")
    clickhouse.ask("CREATE TABLE other.ranks (day Date, job UInt8) ENGINE = MergeTree(day, job, 8192)")
    done = probing("cluster", "init", clickhouse.url(database="other"))
    assert done.status == 1 and "column job of table other.ranks is not of type String" in done.stderr


def test_old_days_are_dropped_when_that_is_asked_for(probing, clickhouse):
    probing("cluster", "init", clickhouse.url()).ok()
    today = int(time.time()) // 86400
    for day in today, today - 1, today - 40:
        clickhouse.ask(f"INSERT INTO probing.ranks (day, job, rank, host, pid, created_us, row, ts) VALUES ({day}, 'j', 0, 'h', 1, 1, 1, {day * 86400})")
    done = probing("cluster", "init", clickhouse.url(), "--retention-days", "30").ok()
    assert done.stdout.splitlines() == [f"rows of {time.strftime('%Y-%m-%d', time.gmtime((today - 40) * 86400))} dropped from ranks"]
    assert clickhouse.number("SELECT count() FROM probing.ranks") == 2


def test_names_cannot_be_sql(probing, clickhouse):
    name = "x` (a Int8) ENGINE=Memory; DROP DATABASE probing; --"
    from urllib.parse import quote
    probing("cluster", "init", f"clickhouse://127.0.0.1:{clickhouse.port}/{quote(name, safe='')}").ok()
    assert name in [row[0] for row in clickhouse.ask("SELECT name FROM system.databases")]


def test_users_and_passwords(probing, clickhouse, tmp_path, monkeypatch):
    done = probing("cluster", "init", clickhouse.url("writer"))
    assert done.status == 3 and "the password is wrong" in done.stderr and done.stderr.count("\n") == 1
    done = probing("cluster", "init", clickhouse.url("nobody"))
    assert done.status == 3 and "there is no such user" in done.stderr
    done = probing("cluster", "init", clickhouse.url("reader"))
    assert done.status == 1 and "does not let user 'reader' do that" in done.stderr
    done = probing("cluster", "init", clickhouse.url().replace("://", "://writer:its-secret@"))
    assert done.status == 2 and "PROBING_CLICKHOUSE_PASSWORD" in done.stderr and "its-secret" not in done.stderr
    file = tmp_path / "config" / "probing-top" / "clickhouse-password"
    file.parent.mkdir(parents=True)
    file.write_text("its secret\n")
    file.chmod(0o644)
    done = probing("cluster", "init", clickhouse.url("writer"))
    assert done.status == 1 and "can be read by others" in done.stderr and "its secret" not in done.stderr
    file.chmod(stat.S_IRUSR)
    probing("cluster", "init", clickhouse.url("writer")).ok()
    monkeypatch.setenv("PROBING_CLICKHOUSE_PASSWORD", "another")
    done = probing("cluster", "init", clickhouse.url("writer"))
    assert done.status == 3 and "the password is wrong" in done.stderr and "another" not in done.stderr


def test_what_is_not_a_server(probing):
    done = probing("cluster", "init", f"clickhouse://127.0.0.1:{free_port()}/p")
    assert done.status == 3 and "no server answers at 127.0.0.1" in done.stderr

    class Handler(http.server.BaseHTTPRequestHandler):
        text, status = b"", 200

        def do_GET(self):
            self.send_response(self.status)
            self.send_header("Content-Length", str(len(self.text) + (1000 if self.text == b"half" else 0)))
            self.end_headers()
            self.wfile.write(self.text)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"clickhouse://127.0.0.1:{server.server_address[1]}/p"
    try:
        for Handler.status, Handler.text, line in (
                (200, b"<html>\x1b[2Jhello", "is not ClickHouse"), (502, b"\x1b[31mbad\ngateway", "HTTP status 502"), (200, b"half", "in the middle of its answer"),
                (200, b"x" * 100000, "longer than"), (301, b"", "HTTP status 301")):
            done = probing("cluster", "init", url)
            not_reached = "not ClickHouse" in line or "502" in line  # that is a proxy's
            assert done.status == (3 if not_reached else 1) and line in done.stderr and "\x1b" not in done.stderr and done.stderr.count("\n") == 1
        done = probing("cluster", "init", url.replace("clickhouse:", "clickhouses:"))
        assert done.status == 3 and "does not speak TLS" in done.stderr
    finally:
        server.shutdown()


def test_without_libcurl_it_says_so(probing, tmp_path):
    # A library of that name that is none of it: loading it fails, as where there is none.
    for name in "libcurl.so.4", "libcurl-gnutls.so.4":
        (tmp_path / name).write_bytes(b"none")
    done = probing("cluster", "init", "clickhouse://127.0.0.1/p", env=dict(os.environ, LD_LIBRARY_PATH=str(tmp_path)))
    if "libcurl" not in done.stderr:
        pytest.skip("needs a loader that heeds LD_LIBRARY_PATH: it passed over a file that is no library")
    assert done.status == 1 and done.stderr == "probing: clickhouse:// needs libcurl, which is not installed here. Try: apt-get install libcurl4\n"


def test_the_newest_dialect_takes_the_statements(probing):
    python = chdb_python()
    done = probing("cluster", "init", "clickhouse://h/a%60b", "--print", "--retention-days", "9").ok()
    ran = subprocess.run([python, "-c", CHDB], input=done.stdout, capture_output=True, text=True, timeout=80)
    assert ran.returncode == 0, ran.stderr[-2000:]
    tables = done.stdout.count("CREATE TABLE")
    assert ran.stdout.split() == [str(tables), "1,86401,5"]
