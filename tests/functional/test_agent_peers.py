# SPDX-License-Identifier: Apache-2.0
"""Clients that behave badly, and the agent's life: ejected, started again, forked, ended with the job."""

import os
import socket
import subprocess
import sys
import time

import pytest

import agent_wire
from agent_job import job, snapshot_by_name
from agent_wire import BINARY, Client, Closed, Connection, Profile, wait_closed

__all__ = ["job"]


# --- bad peers --------------------------------------------------------------------------------------------------

def assert_serves(endpoint):
    with Client(endpoint) as client:
        assert "MainThread" in snapshot_by_name(client)


def test_garbage_closes_the_connection(job):
    endpoint = job().start()
    first = Connection(endpoint)
    first.send(b"\x00\xff" * 5000)
    assert wait_closed(first)
    for payload in (b"rubbish", b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 1000, agent_wire.pack({"a": 1})):
        client = Client(endpoint)
        client.connection.send_frame(BINARY, payload)
        with pytest.raises(Closed):
            client.message()
        client.close()
    text = Client(endpoint)
    text.connection.send_frame(1, b"hello")
    with pytest.raises(Closed):
        text.message()
    assert_serves(endpoint)


def test_lengths_that_lie(job):
    j = job()
    endpoint = j.start()
    before = rss_bytes(j.pid)
    client = Client(endpoint)
    client.connection.send_frame(BINARY, b"x" * 1000, length=100 << 20)
    try:
        for _ in range(100):
            client.connection.send(b"x" * 65536)
    except Closed:
        pass
    assert wait_closed(client.connection)
    pieces = Client(endpoint)  # as many small fragments
    try:
        for n in range(1000):
            pieces.connection.send_frame(0 if n else BINARY, b"x" * 4096, final=False)
    except Closed:
        pass
    assert wait_closed(pieces.connection)
    assert rss_bytes(j.pid) - before < 8 << 20
    assert_serves(endpoint)


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return [int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS")][0]


def test_other_protocols_are_refused(job):
    endpoint = job().start()
    for protocol in (None, "probing.v0", "listen"):
        connection = Connection(endpoint)
        try:
            assert " 101 " not in connection.handshake(protocol), protocol
        except Closed:
            pass
    plain = Connection(endpoint)
    plain.send(b"GET /secrets HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert wait_closed(plain)
    assert_serves(endpoint)


def test_silence_is_ended(job):
    endpoint = job().start()
    silent = Connection(endpoint)
    half = Connection(endpoint)
    half.send(b"GET / HTTP/1.1\r\nHost: loc")
    mute = Client(endpoint, hello=False)
    started = time.monotonic()
    assert wait_closed(mute.connection, 15) and wait_closed(silent, 15) and wait_closed(half, 15)
    assert time.monotonic() - started < 15
    with Client(endpoint) as patient:
        patient.connection.socket.settimeout(6.5)
        with pytest.raises(socket.timeout):
            patient.message()  # it may be silent as long as it likes
        patient.call("status")


def test_many_connections(job):
    j = job()
    endpoint = j.start()
    clients = []
    for _ in range(60):
        try:
            clients.append(Client(endpoint))
        except (Closed, AssertionError):
            pass
    assert 8 <= len(clients) <= 16
    assert clients[0].call("status")["clients"] == len(clients)
    for client in clients:
        client.close()
    deadline = time.monotonic() + 10
    while True:
        try:
            with Client(endpoint) as client:
                if client.call("status")["clients"] == 1:
                    break
        except (Closed, AssertionError):
            pass
        assert time.monotonic() < deadline
    assert j.do("look()")["threads"] == 4


@pytest.mark.long
def test_a_slow_reader_loses_and_is_told(job):
    j = job()
    j.do("spawn('deep', recurse, 150)")
    endpoint = j.start()
    with Client(endpoint) as slow, Client(endpoint) as quick:
        slow.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.subscribe("threads", 30)
        slow.subscribe("samples", 100)
        quick.subscribe("threads", 30)
        deadline = time.monotonic() + 75
        while quick.notification("threads")["seq"] < 170 or quick.call("status")["dropped"] == 0:
            assert time.monotonic() < deadline
        assert quick.call("status")["rss_bytes"] < 16 << 20
        profile, lost_snapshots, seq = Profile(), 0, 0
        deadline = time.monotonic() + 60
        while not lost_snapshots or not profile.dropped:
            _, method, params = slow.message()
            if method == "samples":
                profile.feed(params)  # it refers to nothing that was lost
                continue
            assert params["seq"] > seq
            seq, lost_snapshots = params["seq"], params["dropped"]
            assert time.monotonic() < deadline
        for _ in range(5):
            profile.feed(slow.notification("samples"))


def test_requests_without_reading_the_answers(job):
    endpoint = job().start()
    greedy = Client(endpoint)
    greedy.connection.socket.settimeout(20)
    with pytest.raises((Closed, socket.timeout)) as ended:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            greedy.send("threads")
    assert ended.type is Closed
    assert_serves(endpoint)


def test_a_stranger_is_turned_away(job):
    if os.geteuid() != 0:
        pytest.skip("needs root: to be another user")
    j = job()  # of a user of its own: others' folders must stay closed while this one is open
    j.do("(os.setgid(54322), os.setuid(54322), ctypes.CDLL(None).prctl(4, 1, 0, 0, 0))")
    endpoint = j.start()
    folder = os.path.dirname(endpoint)
    assert folder.endswith("-54322")
    script = ("import os, socket, sys\nos.setgid(54321); os.setuid(54321)\ns = socket.socket(socket.AF_UNIX)\n"
              "s.connect(sys.argv[1])\ns.settimeout(10)\n"
              "s.sendall(b'GET / HTTP/1.1\\r\\n')\nsys.stdout.write(repr(s.recv(10)))")
    try:
        os.chmod(folder, 0o755)
        os.chmod(endpoint, 0o666)
        done = subprocess.run([sys.executable, "-c", script, endpoint], capture_output=True, text=True, timeout=30)
    finally:
        os.chmod(folder, 0o700)
        os.chmod(endpoint, 0o600)
    assert done.stdout == "b''" or "BrokenPipe" in done.stderr or "ConnectionReset" in done.stderr, done
    assert_serves(endpoint)


# --- life -------------------------------------------------------------------------------------------------------

def test_eject_leaves_nothing(job, wait_until):
    j = job()
    j.do("spawn('hot', hot_loop)")
    before = j.do("look()")
    endpoint = j.start()
    folder = os.path.dirname(endpoint)
    assert j.do("look()")["fds"] == before["fds"]
    with Client(endpoint) as watcher, Client(endpoint) as other, Client(endpoint, hello=False), \
            Client(endpoint) as slow:
        watcher.subscribe("threads", 30)
        watcher.subscribe("samples", 1000)
        slow.subscribe("threads", 30)
        started = time.monotonic()
        assert other.call("eject") == {}
        assert other.notification("bye")["reason"] == "ejected"
        assert watcher.notification("bye")["reason"] == "ejected"
        assert wait_closed(other.connection) and wait_closed(watcher.connection)
        wait_until(lambda: not j.agent_threads(), what="the agent's threads to end")
        assert time.monotonic() - started < 3
    assert not os.path.exists(endpoint)
    after = j.do("look()")
    assert after == before
    assert not os.path.exists(folder) or stat_mode(folder) == 0o700
    with open(f"/proc/{j.pid}/maps", encoding="utf-8", errors="replace") as maps:
        assert "libprobing.so" in maps.read()  # parked


def stat_mode(path):
    return os.stat(path).st_mode & 0o7777


def test_started_again_while_clients_come_and_go(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    before = j.do("look()")
    for _ in range(15):
        endpoint = j.start()
        with Client(endpoint) as client:
            client.subscribe("threads", 30)
            client.subscribe("samples", 500)
            assert client.notification("threads")["seq"] == 1  # a run of its own
            client.notifications.clear()
            client.call("eject")  # the next start waits for the end
    assert j.do("start()")[0] == 0
    with Client(endpoint) as client:
        client.call("eject")
    deadline = time.monotonic() + 10
    while j.do("look()") != before:
        assert time.monotonic() < deadline
    assert j.target.alive()


def test_fork_gives_the_child_nothing(job):
    j = job()
    endpoint = j.start()
    with Client(endpoint) as client:
        client.subscribe("samples", 500)
        for _ in range(10):
            client.notification("samples")
            child = j.do("fork_child()")
            assert child["threads"] == 1
            assert not [fd for fd in child["fds"] if "socket" in fd or "eventfd" in fd or "urandom" in fd]
            result, error, own = child["start"]
            assert result == 0, error
            assert own != endpoint
            with Client(own) as other:
                assert other.hello["target"]["pid"] == child["pid"]
                assert "MainThread" in snapshot_by_name(other)
            os.kill(child["pid"], 9)
        assert client.call("status")["clients"] == 1
    assert_serves(endpoint)


def test_dies_with_the_job(job):
    j = job()
    with Client(j.start()) as client:
        client.subscribe("threads", 30)
        j.tell("sys.exit(0)")
        with pytest.raises(Closed):
            while True:
                client.message()
    assert j.target.process.wait(10) == 0
