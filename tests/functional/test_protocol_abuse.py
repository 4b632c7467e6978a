# SPDX-License-Identifier: Apache-2.0
"""What means harm at the agent's listeners: nobody gets in, the job continues, others are served meanwhile, and nothing of it stays."""

import os
import resource
import select
import socket
import struct

import pytest

from agent_job import job
from agent_wire import BINARY, PROTOCOL, Client, Closed
from conftest import wait_until
from hostile_support import define_in
from http_client import ask, connect, parse, read_all, request
from tcp_client import TcpClient, owner, split, status_of
from test_tcp_listener import door_of, listen

__all__ = ["job"]

pytestmark = pytest.mark.timeout(180)

MIB = 1 << 20
PYTHON = "Content-Type: text/x-python"
HARM = b"harm = 1"
EVAL = request("HOST", "/eval", "POST", headers=[PYTHON], body=HARM)  # hidden behind or within others
SIZE = str(len(EVAL))

# Head of a POST to /eval, and what is sent behind it. None of it says how long its body is in one way that all read alike.
SMUGGLED = {
    "two lengths": (["Content-Length: 1", f"Content-Length: {SIZE}"], b"1" + EVAL),
    "two lengths, the long one first": ([f"Content-Length: {SIZE}", "Content-Length: 1"], b"1" + EVAL),
    "a list of lengths": (["Content-Length: 1, 8"], b"1" + EVAL),
    "a length and chunks": (["Content-Length: 4", "Transfer-Encoding: chunked"], b"0\r\n\r\n" + EVAL),
    "chunks and a length": (["Transfer-Encoding: chunked", f"Content-Length: {SIZE}"], b"8\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "chunks": (["Transfer-Encoding: chunked"], b"8\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "chunks, in other letters": (["tRANSFER-eNCODING:\tCHUNKED"], b"8\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "something else and chunks": (["Transfer-Encoding: identity, chunked"], b"8\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "a chunk of a size that is none": (["Transfer-Encoding: chunked"], b"fffffffffffffffff\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "a chunk of less than nothing": (["Transfer-Encoding: chunked"], b"-1\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "chunks in a folded line": (["X: y", " Transfer-Encoding: chunked"], b"8\r\n" + HARM + b"\r\n0\r\n\r\n"),
    "a folded length": (["Content-Length:", f" {SIZE}"], EVAL),
    "a length with a sign": (["Content-Length: +8"], HARM),
    "a length in another base": (["Content-Length: 0x8"], HARM),
    "a length that overflows": (["Content-Length: 18446744073709551624"], HARM),
    "no length": ([], HARM),
    "no body, and another request": (["Content-Length: 0"], EVAL),
}


def rss(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The job before; and that it is the same afterwards."""

    def __init__(self, j, endpoint):
        self.job, self.endpoint = j, endpoint
        self.fds, self.rss = j.do("look()")["fds"], rss(j.pid)

    def serves(self):
        with Client(self.endpoint, timeout=60) as client:
            assert client.call("threads")["threads"]

    def same(self):
        self.serves()
        assert self.job.do("'harm' in globals()") is False
        assert self.job.do("look()")["fds"] == self.fds
        assert rss(self.job.pid) - self.rss < 64 * MIB


@pytest.fixture
def watched(job):
    j = job()
    endpoint = j.start()
    address = owner(listen(endpoint))  # the owner's own bytes, too, do no harm
    assert ask(address, "/status").status == 200  # whatever is allocated once is there
    return Watch(j, endpoint), address


@pytest.mark.parametrize("name", SMUGGLED)
def test_smuggled(watched, name):
    """No code is run of what is hidden behind or within a request that can be read in two ways; at most one answer comes."""
    watch, address = watched
    headers, behind = SMUGGLED[name]
    data = request(address, "/eval", "POST", headers=[PYTHON, *headers]) + behind.replace(b"HOST", address.encode())
    with connect(address) as sock:
        try:
            sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        said = read_all(sock)
    assert said.count(b"HTTP/1.") <= 1
    answer = parse(said)
    assert answer is None or answer.status in (400, 411, 413), (name, said)
    watch.same()


@pytest.mark.parametrize("slow", ["headers", "body"])
def test_slow_senders(watched, slow):
    """As many as the listener takes, who never come to an end: others are served by the unix socket, and all are put out."""
    watch, address = watched
    whole = request(address, "/status") if slow == "headers" else request(
        address, "/eval", "POST", headers=[PYTHON, "Content-Length: 1000000"]) + b"#" * 1000
    begun = 20 if slow == "headers" else len(whole) - 1000
    socks = [connect(address) for _ in range(12)]
    for sock in socks:
        sock.sendall(whole[:begun])
    left, at = set(socks), begun

    def all_are_out():
        nonlocal at
        for sock in list(left):
            try:
                sock.sendall(whole[at:at + 1])
                sock.setblocking(False)
                data = sock.recv(4096)
                left.discard(sock) if not data else None
            except BlockingIOError:
                pass
            except OSError:
                left.discard(sock)
            finally:
                sock.setblocking(True)
        at = min(at + 1, len(whole) - 2)
        watch.serves()
        return not left
    wait_until(all_are_out, 60, "them to be put out")
    for sock in socks:
        sock.close()
    wait_until(lambda: ask(address, "/status").status == 200, 60, "room")
    watch.same()


MANY = 10000
ROOM = 12      # connections that the door takes at a time
DESCRIPTORS = 200  # that this process needs for itself

# Asked for by the job's own user, who is let in without a token; who never says hello is put out again.
UPGRADE = ("GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + PROTOCOL + "\r\n\r\n")

TICKS = """
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.001)
spawn("tick", tick)
"""


@pytest.fixture
def many():
    """How many descriptors there may be at a time, MANY at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(MANY, hard - DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Connections that all want in: who is connected asks for a WebSocket, and what becomes of each is counted."""

    def __init__(self, address, n):
        self.request = (UPGRADE % address).encode()
        self.entered = self.turned_away = 0
        self.poll, self.open = select.epoll(), {}
        for _ in range(n):
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leaves no port behind
            sock.connect_ex(split(address))
            self.open[sock.fileno()] = sock
            self.poll.register(sock.fileno(), select.EPOLLOUT)

    def drop(self, fd):
        self.poll.unregister(fd)
        self.open.pop(fd).close()

    def step(self):
        for fd, events in self.poll.poll(0.1):
            try:
                if events & select.EPOLLOUT:
                    self.open[fd].send(self.request)
                    self.poll.modify(fd, select.EPOLLIN)
                elif said := self.open[fd].recv(4096):
                    self.entered += said.startswith(b"HTTP/1.1 101")
                else:
                    raise ConnectionResetError
            except OSError:
                self.turned_away += 1
                self.drop(fd)

    def go(self):
        for fd in list(self.open):
            self.drop(fd)
        self.poll.close()


class Flood:
    """What holds at any moment of it."""

    def __init__(self, watch, address):
        self.watch, self.address = watch, address
        define_in(watch.job, TICKS)
        self.fds = len(os.listdir(f"/proc/{watch.job.pid}/fd"))
        self.rss = rss(watch.job.pid)

    def look(self):
        """Nobody more than there is room for; some descriptors and little memory; the job continues, and the other listener serves."""
        door, = door_of(self.watch.endpoint)
        assert door["waiting"] + door["clients"] <= ROOM
        assert len(os.listdir(f"/proc/{self.watch.job.pid}/fd")) - self.fds <= ROOM + 8
        assert rss(self.watch.job.pid) - self.rss < 16 * MIB
        before = self.watch.job.do("ticks")
        wait_until(lambda: self.watch.job.do("ticks") > before, 30, "the job to go on")
        return door

    def over(self):
        wait_until(lambda: status_of(self.address) == 101, 60, "the door to serve again")
        wait_until(lambda: self.look()["waiting"] == 0, 60, "those to be put out who said nothing")
        self.watch.same()


def test_ten_thousand_at_once(watched, many):
    watch, address = watched
    flood = Flood(watch, address)
    crowd = Crowd(address, many)
    try:
        def enough():
            crowd.step()
            flood.look()
            return crowd.entered >= 2 * ROOM and crowd.turned_away >= 200
        wait_until(enough, 60, "many to be turned away, and some to be let in when others are put out", 0)
    finally:
        crowd.go()
    flood.over()


def test_ten_thousand_in_waves(watched, many):
    """Who is let in, or waits to be, breaks off: nothing of them stays."""
    watch, address = watched
    flood = Flood(watch, address)
    waves = 10
    for _ in range(waves):
        crowd = Crowd(address, min(MANY // waves, many))
        try:
            def seen():
                crowd.step()
                return crowd.entered + crowd.turned_away >= 1
            wait_until(seen, 60, "the door to come to one of them", 0)
        finally:
            crowd.go()
        flood.look()
    flood.over()


BOMBS = {
    "arrays in arrays": b"\x91" * 60000,
    "maps in maps": b"\x81\xa1a" * 20000,
    "an array of all": b"\xdd\xff\xff\xff\xff",
    "a map of all": b"\xdf\xff\xff\xff\xff",
    "a text of all": b"\xdb\xff\xff\xff\xff",
    "bytes of all": b"\xc6\xff\xff\xff\xff",
    "an extension of all": b"\xc9\xff\xff\xff\xff\x01",
    "params of many": b"\x94\x00\x01\xa7threads\xdf\x00\x0f\xff\xff" + b"\xa1a\xc0" * 20000,
    "params in params": b"\x94\x00\x01\xa7threads" + b"\x81\xa1a" * 15000 + b"\xc0",
    "code in arrays": b"\x94\x00\x01\xa4eval\x81\xa4code" + b"\x91" * 50000 + b"\xc0",
}


@pytest.mark.parametrize("name", BOMBS)
def test_messages_that_say_they_are_huge(watched, name):
    """Depth and lengths are not believed: an error or the end of the connection, and no memory."""
    watch, address = watched
    for _ in range(3):
        with TcpClient(address) as client:
            try:
                client.connection.send_frame(BINARY, BOMBS[name])
                client.connection.receive_frame()
            except (Closed, OSError, AssertionError):
                pass
    watch.same()


CODE = {
    "BaseException": ("class Last(BaseException): pass\nraise Last('x')", "Last"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "SystemExit": ("raise SystemExit(3)", "SystemExit"),
    "GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "recursion": ("f = lambda: f()\nf()", "RecursionError"),
    "memory": ("bytearray(1 << 60)", "MemoryError"),
    "no code": ("def (", "SyntaxError"),
    "deep code": ("(" * 5000, None),
}


@pytest.mark.parametrize("name", CODE)
def test_code_that_raises(watched, name):
    watch, address = watched
    code, kind = CODE[name]
    answer = ask(address, "/eval", "POST", headers=[PYTHON], body=code.encode())
    assert answer.status == 200 and answer.json()["error"], answer.text()
    assert kind in (None, answer.json()["error"]["type"])
    assert ask(address, "/eval", "POST", headers=[PYTHON], body=b"6 * 7").json()["result"] == "42"
    watch.same()
