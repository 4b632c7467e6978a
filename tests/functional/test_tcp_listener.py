# SPDX-License-Identifier: Apache-2.0
"""The agent's TCP listener: who may enter, what they may do there, and that nobody else costs the job anything."""

import os
import re
import socket
import stat
import subprocess
import sys
import time

import pytest
from conftest import long_but

from agent_job import job
from agent_wire import BINARY, Client, Closed, rows, wait_closed
from tcp_client import STRANGER, TcpClient, TcpConnection, split, status_of

__all__ = ["job"]

LEVELS = ["WIRE_NOTHING", "WIRE_READ_ONLY", "WIRE_VALUES", "WIRE_CHANGES", "WIRE_OWNS"]
NOT_ALLOWED = 5
IS_ROOT = os.geteuid() == 0

# Params with which a method is asked; eject comes last, for it ends the agent.
PARAMS = {
    "hello": {"version": 2, "client": "test"},
    "subscribe": {"stream": "threads", "rate_hz": 1.0},
    "unsubscribe": {"stream": "threads"},
    "config": {"key": "probing.budget", "value": "1"},
    "pull": {"table": "python.samples", "making": 0, "first_seq": 0, "rows": 0, "heap_used": 0},
    "rows": {"table": "python.modules", "args": {}},
    "arm": {"what": "trace", "steps": 1, "compiled": False},
    "disarm": {"what": "trace", "steps": 0, "compiled": False},
    "eval": {"code": b"1 + 1", "name": "<test>"},
    "debug": {"action": 2},
    "pause": {"action": 2},
    "catch": {"action": 2},
    "listen": {"address": "nonsense"},  # so that it stays as it is: what is refused is not looked at
}


def methods(source_dir):
    """Every method with what it does to the job, from the one table."""
    with open(os.path.join(source_dir, "src", "wire", "wire.h"), encoding="utf-8") as file:
        table = re.search(r"#define WIRE_METHODS\(X\)(.*?)/\* Notifications", file.read(), re.S).group(1)
    found = re.findall(r'X\(WIRE_\w+,\s*"(\w+)",\s*(?:\\\s*)?(WIRE_\w+)', table)
    assert len(found) == table.count("X(") and len(found) >= 14
    return found


def listen(endpoint, **params):
    with Client(endpoint) as client:
        return client.call("listen", params)


def door_of(endpoint):
    with Client(endpoint) as client:
        status = client.call("status")
    return rows(status["doors"], status["strings"], ("address", "note"))


def assert_serves(endpoint):
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]


def anybodys_python():
    """A Python that another user may run, which may not come into every folder of ours."""
    for path in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([path, "-c", ""], user=STRANGER, group=STRANGER, extra_groups=[], cwd="/", check=False, capture_output=True).returncode == 0:
                return path
        except OSError:
            pass
    return pytest.skip("needs python: none that another user may run")


def visitors(door, looking):
    """Who comes: (name, the most they may do, a client or None)."""
    token, looker = door["token"], door["looking_token"]
    known = [("this user", "WIRE_READ_ONLY", {}), ("this user with the token to look", "WIRE_READ_ONLY", {"token": looker})]
    known += [("this user with the token", "WIRE_CHANGES", {"token": token})] if token else []
    strangers = [("another user", "WIRE_NOTHING", {}), ("with the token to look", "WIRE_READ_ONLY", {"token": looker}),
                 ("with a wrong token", "WIRE_NOTHING", {"token": "0" * len(looker)})]
    if token:
        strangers.append(("with the token", "WIRE_CHANGES", {"token": token}))
    pages = [("a web page", "WIRE_NOTHING", {"headers": ["Origin: http://evil.example"]}),
             ("a page without an origin", "WIRE_NOTHING", {"headers": ["Origin: null"]}),
             ("by a name", "WIRE_NOTHING", {"host": f"evil.example:{split(door['address'])[1]}"}),
             ("this user with a wrong token", "WIRE_NOTHING", {"token": "0" * len(looker)})]
    out = [(name, level, None, request) for name, level, request in known + pages]
    # Each a user of its own: one that has tried in vain waits.
    return out + [(name, level, STRANGER + i, request) for i, (name, level, request) in enumerate(strangers) if IS_ROOT]


@pytest.mark.parametrize("looking", [False, True])
@pytest.mark.parametrize("address", long_but(["127.0.0.1:0"], ["127.0.0.1:0", "[::1]:0"]))
def test_who_may_do_what(job, source_dir, address, looking):
    """Who, through which listener, which method: made from the table of methods, so that a new one is in it."""
    endpoint = job().start()
    door = listen(endpoint, address=address, looking=looking)
    assert bool(door["token"]) != looking and door["looking_token"]
    for name, most, uid, request in visitors(door, looking):
        if most == "WIRE_NOTHING":
            assert status_of(door["address"], uid, **request) in (401, 403), name
            continue
        for method, needs in methods(source_dir):
            if method == "eject" and LEVELS.index(most) >= LEVELS.index(needs):
                continue  # test_eject_closes_the_door
            with TcpClient(door["address"], uid, **request) as client:
                error, _ = client.answer(client.send(method, PARAMS.get(method, {})))
                refused = bool(error) and error["code"] == NOT_ALLOWED
                assert refused == (LEVELS.index(needs) > LEVELS.index(most)), (name, method, error)
    with Client(endpoint) as client:  # by the unix socket there is nothing that may not be
        for method, _ in methods(source_dir):
            if method != "eject":
                error, _ = client.answer(client.send(method, PARAMS.get(method, {})))
                assert not error or error["code"] != NOT_ALLOWED, method


def test_values_of_frames_are_no_looks(job):
    endpoint = job().start()
    door = listen(endpoint)
    with TcpClient(door["address"], token=door["looking_token"]) as client:
        assert client.call("threads")["threads"]
        assert client.call_error("threads", {"locals": True})["code"] == NOT_ALLOWED
        assert client.call_error("threads", {"locals": True, "repr": True})["code"] == NOT_ALLOWED
    with TcpClient(door["address"]) as client:  # who is this user, and has no token, neither
        assert client.call("threads")["threads"]
        assert client.call_error("threads", {"locals": True})["code"] == NOT_ALLOWED
    with TcpClient(door["address"], token=door["token"]) as client:
        assert client.call("threads", {"locals": True})["threads"]


def test_eval_that_is_off_stays_off(job):
    endpoint = job(env={"PROBING_EVAL": "off"}).start()
    door = listen(endpoint)
    with TcpClient(door["address"], token=door["token"]) as client:
        assert "probing.eval is off" in client.call_error("eval", {"code": b"1", "name": "x"})["message"]
        for key in ("probing.eval", "eval"):
            for value in ("on", "1", "YES", "true"):
                assert client.call_error("config", {"key": key, "value": value})["code"] == NOT_ALLOWED
        assert client.call("config", {"key": "probing.eval", "value": "off"}) == {}
        assert "probing.eval is off" in client.call_error("eval", {"code": b"1", "name": "x"})["message"]
    with Client(endpoint) as client:  # who is on the machine may
        assert client.call("config", {"key": "probing.eval", "value": "on"}) == {}
    with TcpClient(door["address"], token=door["token"]) as client:
        assert client.call("eval", {"code": b"1 + 1", "name": "x"})["result"] == b"2"
        assert client.call("config", {"key": "probing.eval", "value": "off"}) == {}  # it may be given up,
        assert client.call_error("config", {"key": "probing.eval", "value": "on"})["code"] == NOT_ALLOWED  # not taken back


def test_closed_unless_asked_for(job):
    endpoint = job().start()
    assert door_of(endpoint) == []
    assert not os.path.exists(endpoint.replace(".sock", ".door"))


def test_the_environment_opens_it(job):
    j = job(env={"PROBING_ADDR": "127.0.0.1:0"})
    endpoint = j.start()
    door, = door_of(endpoint)
    assert status_of(door["address"]) == 101
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = job(env={"PROBING_ADDR": f"127.0.0.1:{taken.getsockname()[1]}"}).start()  # the job and its agent live on
        door, = door_of(other)
        assert door["address"] is None and "cannot listen at" in door["note"]


def test_the_file_of_the_tokens(job):
    endpoint = job().start()
    first = listen(endpoint)
    info = os.stat(first["file"])
    assert stat.S_IMODE(info.st_mode) == 0o600 and info.st_uid == os.geteuid()
    with open(first["file"], encoding="ascii") as file:
        assert file.read().split("\n") == [first["address"], first["token"], first["looking_token"], ""]
    header = first["file"].replace(".door", ".curl")  # as curl -H @FILE takes it
    assert stat.S_IMODE(os.stat(header).st_mode) == 0o600
    with open(header, encoding="ascii") as file:
        assert file.read() == f"Authorization: Bearer {first['token']}\n"
    second = listen(endpoint, address=first["address"])  # the same port again: other tokens
    assert second["address"] == first["address"] and second["token"] != first["token"]
    assert status_of(second["address"], token=first["token"]) == 401
    assert listen(endpoint, address="off")["address"] == ""
    assert not os.path.exists(first["file"]) and not os.path.exists(header)
    with pytest.raises(ConnectionError):
        TcpConnection(first["address"])


def test_closing_puts_everybody_out(job):
    endpoint = job().start()
    door = listen(endpoint)
    client = TcpClient(door["address"])
    listen(endpoint, address="off")
    assert wait_closed(client.connection)
    assert_serves(endpoint)


def test_eject_closes_the_door(job, wait_until):
    j = job()
    before = j.do("look()")
    endpoint = j.start()
    door = listen(endpoint)
    with TcpClient(door["address"], token=door["token"]) as client:
        assert client.call("eject") == {}
        assert client.notification("bye")["reason"] == "ejected"
    wait_until(lambda: not os.path.exists(endpoint) and not os.path.exists(door["file"]), what="the files to go")
    wait_until(lambda: not j.agent_threads(), what="the threads to go")
    assert j.do("look()")["fds"] == before["fds"]
    with pytest.raises(ConnectionError):
        TcpConnection(door["address"])


def test_a_child_does_not_serve(job):
    """What is forked has no part in the listener: when its parent has closed it, nobody listens."""
    j = job()
    endpoint = j.start()
    door = listen(endpoint)
    child = j.do("fork_child()")
    assert child["start"][0] == 0 and child["start"][2] != endpoint
    assert door_of(child["start"][2]) == []
    assert os.path.exists(door["file"])
    listen(endpoint, address="off")
    with pytest.raises(ConnectionError):
        TcpConnection(door["address"])
    os.kill(child["pid"], 9)


@pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")
def test_a_real_process_of_another_user(job):
    """No trick with a socket: another process, of another user, with and without the token."""
    endpoint = job().start()
    door = listen(endpoint)
    script = ("import socket, sys\nhost, port = sys.argv[1].rsplit(':', 1)\ns = socket.create_connection((host, int(port)))\n"
              "s.sendall((f'GET / HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n' + sys.argv[2] + '\\r\\n').encode())\n"
              "print(s.recv(100).split()[1].decode())")
    tokens = {"": ["401"], f"Authorization: Bearer {door['token']}\r\n": ["200"], "Authorization: Bearer x\r\n": ["401", "429"]}
    for headers, wanted in tokens.items():
        done = subprocess.run([anybodys_python(), "-c", script, door["address"], headers], capture_output=True, text=True,
                              user=STRANGER, group=STRANGER, extra_groups=[], timeout=30, cwd="/", check=False)
        assert done.stdout.strip() in wanted, done


@pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")
def test_tries_in_vain_take_longer(job):
    endpoint = job().start()
    door = listen(endpoint)
    seen = [status_of(door["address"], STRANGER, token="wrong") for _ in range(20)]
    assert seen[0] == 401 and 429 in seen
    door_now, = door_of(endpoint)
    assert door_now["refused"] == 20 and "turned away at" in door_now["note"]
    assert status_of(door["address"]) == 101  # this user is another one
    for uid in (STRANGER, STRANGER + 1):  # nobody keeps out who has the token by trying in vain from where they come
        assert status_of(door["address"], uid, token=door["token"]) == 101


@pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")
def test_who_hangs_up_at_once_is_not_taken_for_root(job, tmp_path):
    """A connection whose socket was closed stands in /proc/net/tcp as root's; what was sent before must not be done."""
    from agent_wire import pack
    endpoint = job().start()
    door = listen(endpoint)
    mark = tmp_path / "mark"
    request = (f"GET / HTTP/1.1\r\nHost: {door['address']}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: probing.v1\r\n\r\n").encode()

    def frame(message):
        data = pack(message)
        return bytes([0x80 | BINARY, 0x80 | 126]) + len(data).to_bytes(2, "big") + bytes(4) + data
    code = f"open({str(mark)!r}, 'w').close()".encode()
    all_of_it = request + frame([0, 1, "hello", {"version": 2}]) + frame([0, 2, "eval", {"code": code, "name": "x"}])
    for _ in range(30):
        connection = TcpConnection(door["address"], uid=STRANGER)
        connection.send(all_of_it)
        connection.close()
    with Client(endpoint) as client:  # what came before this has been looked at, and the evaluator is free
        assert client.call("eval", {"code": b"1 + 1", "name": "x"})["result"] == b"2"
    door_now, = door_of(endpoint)
    assert door_now["entered"] == 0 and not mark.exists()


def test_bad_bytes(job):
    endpoint = job().start()
    door = listen(endpoint)
    for data in (b"\x00\xff" * 5000, b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 100000 + b"\r\n\r\n", b"\r\n" * 5000,
                 b"GET " + b"/" * 70000 + b" HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
                 b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\nTransfer-Encoding: chunked\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nUpgrade: websocket\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"):
        connection = TcpConnection(door["address"], timeout=20)
        try:
            connection.send(data)
        except (Closed, OSError):
            pass
        assert wait_closed(connection)
    with TcpClient(door["address"]) as client:
        client.connection.send_frame(BINARY, b"rubbish")
        with pytest.raises(Closed):
            client.message()
    assert_serves(endpoint)
    door_now, = door_of(endpoint)
    assert door_now["clients"] == 0


def test_who_sends_nothing_is_put_out(job):
    """Idle before the upgrade, dribbling headers, and a WebSocket that never says hello."""
    endpoint = job().start()
    door = listen(endpoint)
    idle, slow, mute = (TcpConnection(door["address"], timeout=30) for _ in range(3))
    assert mute.ask() == 101
    began = time.monotonic()
    with pytest.raises((Closed, OSError)):
        while time.monotonic() - began < 25:
            slow.send(b"G" if slow.buffer else b"GET / HTTP/1.1\r\nA: ")
            slow.buffer = b"begun"
            time.sleep(0.2)  # that is what is tested: a byte now and then
    assert time.monotonic() - began < 25
    assert wait_closed(idle) and wait_closed(mute)
    assert_serves(endpoint)


@pytest.mark.timeout(120)
def test_a_thousand_connections(job, wait_until):
    j = job()
    endpoint = j.start()
    door = listen(endpoint)
    stay = TcpClient(door["address"])
    sockets = []
    for _ in range(1000):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(split(door["address"]))
        sockets.append(s)
    assert_serves(endpoint)  # the unix socket has connections of its own
    door_now, = door_of(endpoint)
    assert door_now["waiting"] + door_now["clients"] <= 12
    assert stay.call("threads")["threads"]
    for s in sockets:
        s.close()
    wait_until(lambda: status_of(door["address"]) == 101, 60, "the door to be free again")
    stay.close()
    assert j.do("1") == 1


def test_asking_fast_is_slowed_not_refused(job):
    endpoint = job().start()
    door = listen(endpoint)
    with TcpClient(door["address"], timeout=60) as client:
        began = time.monotonic()
        for _ in range(1500):
            client.call("unsubscribe", {"stream": "threads"})
        assert time.monotonic() - began > 0.4  # 1000 at once, 500 a second
