# SPDX-License-Identifier: Apache-2.0
"""Who was refused at the agent's TCP listener stands in probing.events: who, and why; not every time, however often they come."""

import os

import pytest

from agent_wire import Client
from tcp_client import STRANGER, TcpClient, TcpConnection, status_of

IS_ROOT = os.geteuid() == 0
JOB = "import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile True: time.sleep(0.01)\n"


class Door:
    def __init__(self, target, probing):
        self.job, self.probing = target(JOB), probing
        self.endpoint = probing(str(self.job.pid), "inject", "--json").ok().json()["endpoint"].removeprefix("unix:")
        self.tcp = probing(str(self.job.pid), "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]
        self.address = self.tcp["address"]

    def rows(self):
        text = "SELECT kind, client_uid, text FROM probing.events WHERE kind = 'refused' ORDER BY timestamp"
        return self.probing(str(self.job.pid), "query", text, "--format", "json").ok().json()["rows"]


@pytest.fixture
def door(target, probing, ptrace):
    """A factory: each with an agent of its own, whose first refusal has a row at once."""
    return lambda: Door(target, probing)


KINDS = [
    ("a wrong token", {"token": "0" * 48}, 401, "wrong token for this listener"),
    ("a web page", {"headers": ["Origin: http://evil.example"]}, 403, "a web page of another server"),
    ("a name", {"host": "evil.example:3344"}, 403, "the Host of a request"),
]


@pytest.mark.parametrize("request_, status, said", [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_turned_away(door, wait_until, request_, status, said):
    d = door()
    assert status_of(d.address, **request_) == status
    (row,) = wait_until(d.rows, 60, "the row")
    assert said in row["text"] and row["text"].startswith("127.0.0.1:"), row


@pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")
def test_another_user(door, wait_until):
    d = door()
    assert status_of(d.address, STRANGER) == 401
    (row,) = wait_until(d.rows, 60, "the row")
    assert row["client_uid"] == STRANGER and "a token is needed" in row["text"]


def test_looking_only(door, wait_until):
    d = door()
    with TcpClient(d.address, token=d.tcp["looking_token"]) as client:
        assert client.call_error("config", {"key": "probing.budget", "value": "1"})["code"] == 5
    (row,) = wait_until(d.rows, 60, "the row")
    assert row["client_uid"] == os.geteuid() and row["text"].startswith("'config': this client is read-only")


def test_too_many(door, wait_until):
    d = door()
    held = [TcpConnection(d.address) for _ in range(40)]
    row = wait_until(d.rows, 60, "the row")[0]  # the last of them may have come a second later
    assert "too many are connected" in row["text"]
    for connection in held:
        connection.close()


def test_a_flood_fills_nothing(door, wait_until):
    """Hundreds of refusals: a few rows, which count them; and the events of others are there still."""
    d = door()
    d.probing(str(d.job.pid), "eval", "6 * 7").ok()
    for _ in range(300):
        status_of(d.address, host="evil.example")
    with TcpClient(d.address, token=d.tcp["looking_token"]) as client:
        for _ in range(300):
            client.call_error("config", {"key": "probing.budget", "value": "1"})
    rows = wait_until(d.rows, 60, "a row")
    assert len(rows) <= 12, rows  # a second, two, four, ... between them
    with Client(d.endpoint) as client:
        assert client.call("threads")["threads"]
    everything = d.probing(str(d.job.pid), "query", "SELECT text FROM probing.events WHERE kind = 'eval'", "--format", "json").ok().json()["rows"]
    assert {"text": "6 * 7"} in everything
