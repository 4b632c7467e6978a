# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse server of a test's own: on a free port of loopback, with a folder of its own, ended afterwards.

    server = Server(tmp_path); server.start()      a real one (Debian's package clickhouse-server)
    server.ask("SELECT ...")                       rows of texts, by HTTP
    server.kill() / server.start()                 as kill -9, and again with the same data
    chdb_python()                                  a Python that has chdb, the newest dialect, or a skipped test
"""

import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

import pytest

from conftest import wait_until

# Users: one who may all, one with a password, one who may only read.
USERS = """<yandex><profiles><default/><readonly><readonly>1</readonly></readonly></profiles><users>
<default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default>
<writer><password>its secret</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></writer>
<reader><password></password><networks><ip>::/0</ip></networks><profile>readonly</profile><quota>default</quota></reader>
</users><quotas><default/></quotas></yandex>
"""
CONFIG = """<yandex><logger><level>warning</level><console>1</console></logger><http_port>{port}</http_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>{more}</yandex>
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program():
    found = shutil.which("clickhouse-server") or shutil.which("clickhouse-server", path="/usr/sbin:/usr/local/sbin")
    if not found:
        pytest.skip("needs clickhouse-server: the package of that name is not installed")
    return found


def chdb_python():
    """A Python that can import chdb: PROBING_TEST_CHDB, or this one."""
    for python in (os.environ.get("PROBING_TEST_CHDB"), sys.executable):
        if python and subprocess.run([python, "-c", "import chdb"], capture_output=True, timeout=60).returncode == 0:
            return python
    pytest.skip("needs chdb: no Python imports it (PROBING_TEST_CHDB names one that does)")


class Answers(http.server.BaseHTTPRequestHandler):
    """Of a server that is none, or stands before one."""

    def log_message(self, *args):
        pass

    def answer(self, text, status=200, length=None):
        """`length`: what is said of it, if that is a lie."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(text) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(text)
        except OSError:
            pass


class Server:
    def __init__(self, folder, more=""):
        self.program, self.folder, self.port, self.process = program(), folder, free_port(), None
        os.makedirs(folder, exist_ok=True)
        for name, text in (("config.xml", CONFIG.format(port=self.port, folder=escape(str(folder)), more=more)), ("users.xml", USERS)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    def url(self, user=None, database="probing", job=None):
        return f"clickhouse://{user + '@' if user else ''}127.0.0.1:{self.port}/{database}" + (f"?job={urllib.parse.quote(job)}" if job else "")

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([self.program, f"--config-file={self.folder}/config.xml"], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)
        wait_until(self.answers, timeout=60, what="the ClickHouse server to start")

    def answers(self):
        assert self.process.poll() is None, open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace").read()[-2000:]
        try:
            return self.ask("SELECT 1") == [["1"]]
        except OSError:
            return False

    def ask(self, sql, timeout=30):
        """The rows of a statement; urllib.error.HTTPError, whose text is in its `msg`, if it fails."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(urllib.request.Request(f"http://127.0.0.1:{self.port}/", data=sql.encode()), timeout=timeout) as answer:
                return [line.split("\t") for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            error.msg = error.read().decode(errors="replace")
            raise

    def number(self, sql):
        return int(self.ask(sql)[0][0])

    def kill(self, sign=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, sign)
        if self.process:
            self.process.wait(60)
        self.process = None


@pytest.fixture(name="clickhouse")
def clickhouse_fixture(tmp_path):
    server = Server(tmp_path / "clickhouse")
    server.start()
    yield server
    server.kill()
