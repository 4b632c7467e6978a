# SPDX-License-Identifier: Apache-2.0
"""Lines of text at the agent's TCP listener, as nc sends them."""

import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from agent_job import job
from agent_wire import Client
from http_client import connect, read_all
from tcp_client import STRANGER, split
from test_http import KEPT
from test_tcp_listener import IS_ROOT, LEVELS, listen, methods

__all__ = ["job"]

PROMPT = b"(probing) "


def commands(source_dir):
    """(name, method of the wire or None) of each row of the two tables."""
    with open(os.path.join(source_dir, "src", "agent", "server", "net_text.c"), encoding="utf-8") as file:
        table = file.read().split("text_commands[] = {", 1)[1].split("\n};", 1)[0]
    with open(os.path.join(source_dir, "src", "agent", "server", "http", "web_routes.c"), encoding="utf-8") as file:
        routes = file.read()
    asks = {(verb or "GET", path): method.lower() for verb, path, method in
            re.findall(r'\{(?:\.verb = WEB_(\w+),\s*)?\.path = "(.*?)",\s*\.asks = WIRE_(\w+)', routes)}
    out = []
    for name, verb, path in re.findall(r'\{"(\w+)", ".*?",\s*".*?",\s*(?:NULL|"(\w+)"),\s*(?:NULL|"(.*?)"),', table):
        out.append((name, asks[verb, path.removesuffix(".txt")] if verb else None))
    assert len(out) == table.count("{") >= 8
    return out


class Talk:
    def __init__(self, address, token=None, uid=None):
        self.sock = connect(address, uid)
        if token:
            assert self.say(f"token {token}") == ""

    def say(self, line):
        self.sock.sendall(line.encode() + b"\n")
        return self.read()

    def read(self):
        """Up to the prompt; or, when the connection ends, what there was."""
        data = b""
        while not data.endswith(PROMPT):
            try:
                piece = self.sock.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return data.decode() + "[closed]"
            data += piece
        return data[:-len(PROMPT)].decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def test_what_can_be_said(job, wait_until):
    j = job(env=KEPT)
    door = listen(j.start())
    j.do("spawn('deep', recurse, 5)")
    with Talk(door["address"]) as talk:
        assert "deep" in talk.say("threads") and "this client is read-only" in talk.say("py 1")  # that much without the token
        assert talk.say(f"token {door['looking_token']}") == "" and "this client is read-only" in talk.say("py 1")
        assert talk.say(f"token {door['token']}") == "" and talk.say("py 1") == "1\n"
        assert talk.say(f"token {door['looking_token']}") == "" and talk.say("py 2") == "2\n"
        assert "wrong token" in talk.say("token x")
    with Talk(door["address"], door["token"]) as talk:
        for name in ("help", "token", "threads", "bt", "py", "tables", "status", "quit"):
            assert f"\n{name} " in "\n" + talk.say("help")
        line, = [x for x in talk.say("threads").splitlines() if "deep" in x]
        tid = re.search(r"\((\d+)\)", line)[1]
        assert talk.say("bt").count("recurse (") == 6 and "MainThread" in talk.say("bt")
        one = talk.say(f"  bt   {tid}\r")
        assert one.count("recurse (") == 6 and "MainThread" not in one
        assert talk.say("py print('a'); 1 + 1") == "a\n2\n"
        assert talk.say("py mark = 'ü'") == "" and talk.say("py mark") == "'ü'\n"
        assert talk.say("py 1 / 0").endswith("ZeroDivisionError: division by zero\n")
        assert talk.say("py print('\\x1b[2J')") == "\ufffd[2J\n"
        wait_until(lambda: "python.samples" in talk.say("tables"), what="tables")
        assert str(j.pid) in talk.say("status")
        assert "whole number" in talk.say("bt x") and "no such thread" in talk.say("bt 4194304")
        assert "no such command" in talk.say("nonsense") and talk.say("") == ""
        assert "takes no arguments" in talk.say("threads now")
        talk.sock.sendall(b"py 1\npy 2\npy 3\nquit\npy 4\n")  # in their order, and nothing after the end
        assert read_all(talk.sock) == b"1\n" + PROMPT + b"2\n" + PROMPT + b"3\n" + PROMPT


@pytest.mark.parametrize("looking", [False, True])
def test_who_may_say_what(job, source_dir, looking):
    """Who, through which listener, which command: made from the tables of commands, routes and methods."""
    door = listen(job().start(), looking=looking)
    needs = dict(methods(source_dir))
    who = [("WIRE_READ_ONLY", None, None), ("WIRE_READ_ONLY", None, door["looking_token"]), ("WIRE_NOTHING", None, "0" * 48)]
    if not looking:
        who.append(("WIRE_CHANGES", None, door["token"]))
    if IS_ROOT:
        who += [("WIRE_NOTHING", STRANGER, None), ("WIRE_READ_ONLY", STRANGER + 1, door["looking_token"])]
        if not looking:
            who.append(("WIRE_CHANGES", STRANGER + 2, door["token"]))
    for most, uid, token in who:
        for name, method in commands(source_dir):
            if name in ("token", "quit"):
                continue
            with Talk(door["address"], uid=uid) as talk:
                said = talk.say(f"token {token}") if token else ""
                if most == "WIRE_NOTHING":
                    said = said or talk.say(name)
                    assert said.endswith("[closed]") and ("token" in said), (name, said)
                    continue
                assert said == ""
                said = talk.say(name + (" 1" if name == "py" else ""))
                allowed = not method or LEVELS.index(needs[method]) <= LEVELS.index(most)
                assert ("this client is read-only" in said) == (not allowed), (name, said)


def test_a_wrong_token_is_slowed(job):
    if not IS_ROOT:
        pytest.skip("needs root: to be another user")
    door = listen(job().start())
    seen = []
    for _ in range(20):
        with Talk(door["address"], uid=STRANGER) as talk:
            seen.append(talk.say("token wrong"))
    assert "wrong token" in seen[0] and any("wait" in s for s in seen) and all(s.endswith("[closed]") for s in seen)
    with Talk(door["address"]) as talk:
        assert talk.say("threads")


def test_eval_that_is_off(job):
    door = listen(job(env={"PROBING_EVAL": "off"}).start())
    with Talk(door["address"], door["token"]) as talk:
        assert "probing.eval is off" in talk.say("py 1") and talk.say("threads")


def test_code_ends_with_who_had_it_run(job, wait_until):
    j = job()
    door = listen(j.start())
    with Talk(door["address"], door["token"]) as talk:
        talk.sock.sendall(b"py begun = True; import time; exec('while True: time.sleep(0.01)')\n")
        wait_until(lambda: j.do("globals().get('begun', False)"), what="the code to run")
    with Talk(door["address"], door["token"]) as talk:
        wait_until(lambda: talk.say("py 2 + 2") == "4\n", 30, "the code to be ended")


@pytest.mark.long
def test_bytes_that_are_no_commands(job, wait_until):
    """Who has not said a command is closed at once, or when the time for it is over; nobody else notices."""
    endpoint = job().start()
    address = listen(endpoint)["address"]
    for data in (b"rubbish\n", b"\n", b"\x16\x03\x01\x02\x00\x01\n", b"\x00" * 100000, b"x" * 100000, b"EHLO a\r\npy 1\r\n", b"help", b"he"):
        with connect(address) as sock:
            try:
                sock.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            said = read_all(sock)
            assert said in (b"", b"there is no such command: help lists them\n"), data[:20]
    with Talk(address) as talk:  # a line that is too long, once in
        assert talk.say("help")
        try:
            talk.sock.sendall(b"py " + b"1" * 200000 + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert talk.read().endswith("[closed]")
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]


def pieces_of(data, at):
    """In pieces that end there, each sent when the one before was read."""
    ends = [*at, len(data)]
    return [data[begin:end] for begin, end in zip([0, *ends], ends) if begin < end]


def unread(sock):
    """Bytes that have been sent and that the other end, on this machine, has not read; it may be gone."""
    try:
        own, other = ("0100007F:%04X" % end[1] for end in (sock.getsockname(), sock.getpeername()))
    except OSError:
        return 0
    with open("/proc/net/tcp", encoding="ascii") as table:
        ends = {(line[1], line[2]): line[4].split(":") for line in (row.split() for row in table)}
    return int(ends.get((own, other), ["0"])[0], 16) + int(ends.get((other, own), ["0", "0"])[1], 16)


def said_in(address, pieces, wait_until):
    """What is answered to pieces, of which the agent has read each before the next is sent."""
    with connect(address, None) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            sock.sendall(piece)
            wait_until(lambda: unread(sock) == 0, 30, "the piece to be read")
        return read_all(sock)


@pytest.mark.parametrize("command", ["help", "token x", "threads", "bt", "py 6 * 7", "tables", "status", "quit"])
def test_in_pieces(job, wait_until, command):
    """However what is said comes, it is the same that is answered: also where it begins as a header or a method of HTTP does."""
    address = listen(job().start())["address"]
    data = command.encode() + (b"\n" if command in ("token x", "quit") else b"\nquit\n")  # nothing behind what ends the connection
    wait_until(lambda: b"python.samples" in said_in(address, [b"tables\nquit\n"], wait_until), what="tables")
    whole = said_in(address, [data], wait_until)
    assert whole or command == "quit"
    cuts = [[n] for n in range(1, len(command) + 2)] + [list(range(1, len(data)))]
    steady = command in ("help", "token x", "py 6 * 7", "quit")  # else it says what is so now
    for at in cuts:
        got = said_in(address, pieces_of(data, at), wait_until)
        assert got == whole if steady else got.count(PROMPT) == 1 and got.split()[0] == whole.split()[0], (at, got)


def test_pieces_that_are_no_command(job, wait_until):
    """The beginning of HTTP is waited for; what it turns out not to be is said to be none, with its beginning."""
    endpoint = job().start()
    address = listen(endpoint)["address"]
    none = b"there is no such command: help lists them\n"
    assert said_in(address, [b"he", b"x\n"], wait_until) == none and said_in(address, [b"G", b"E", b"x\n"], wait_until) == none
    assert said_in(address, [b"he", b"lp", b"\r\n", b"qu", b"it\r\n"], wait_until).count(PROMPT) == 1
    assert said_in(address, [b"GET / HT", b"TP/1.1\r\nHo", b"st: " + address.encode() + b"\r\n\r", b"\n"], wait_until).startswith(b"HTTP/1.1 200")
    assert said_in(address, [bytes([b]) for b in b"HEAD / HTTP/1.1\r\nHost: " + address.encode() + b"\r\n\r\n"], wait_until).startswith(b"HTTP/1.1 200")
    for begin in (b"host: x\r\n", b"te", b"t" * 1, b"accept: " + b"x" * 100):  # headers before any method: no HTTP, nor any command
        said = said_in(address, [begin, b"\r\npy mark = 1\r\nquit\r\n"], wait_until)
        assert said in (b"", none) or said.startswith(b"HTTP/1.1 4"), (begin, said)
    with Client(endpoint) as client:
        assert client.call("eval", {"code": b"'mark' in globals()", "name": "x"})["result"] == b"False"


@pytest.mark.parametrize("data", [b"\0", b"he\0lp\n", b"py 1\0 + 1\nquit\n", b"\0help\nquit\n", b"help\0\nquit\n", b"\r\r\r\n", b"\x7f\x80\xff\n"])
def test_nul_and_other_bytes(job, wait_until, data):
    """A NUL ends no line before its end: what is behind it is not forgotten."""
    endpoint = job().start()
    said = said_in(listen(endpoint)["address"], [data], wait_until)
    assert PROMPT not in said and (b"NUL" in said or b"no such command" in said or said == b""), said
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]


def test_a_megabyte_without_a_newline(job):
    """Once in, and before: it is not kept, and nobody else waits for it."""
    j = job()
    endpoint = j.start()
    address = listen(endpoint)["address"]
    for begin in (b"", b"threads\n", b"he"):
        with connect(address, None) as sock:
            sock.sendall(begin)
            try:
                for _ in range(16):
                    sock.sendall(b"lp " * 21846)
            except (BrokenPipeError, ConnectionResetError):
                pass
            read_all(sock)
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]


def test_at_the_unix_socket(job):
    endpoint = job().start()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30)
        sock.connect(endpoint)
        sock.sendall(b"threads\nquit\n")
        assert b"MainThread" in read_all(sock)


def test_nc(job):
    """The line of docs/remote.md."""
    program = shutil.which("nc") or shutil.which("ncat")
    if not program:
        pytest.skip("needs nc")
    door = listen(job().start())
    host, port = split(door["address"])
    with subprocess.Popen([program, host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as nc:
        nc.stdin.write(f"threads\ntoken {door['token']}\npy 6 * 7\nquit\n".encode())
        nc.stdin.flush()
        said = b""
        while not said.endswith(b"42\n" + PROMPT):
            piece = os.read(nc.stdout.fileno(), 65536)
            assert piece, said
            said += piece
        assert b"MainThread" in said
        nc.send_signal(signal.SIGTERM)


def test_who_has_said_all(job):
    """echo threads | nc -N: what is asked is answered when nothing more will come, also what takes a while, and the connection ends then."""
    door = listen(job().start())
    address, token = door["address"], f"token {door['token']}\n".encode()
    for said, wanted in ((b"threads\n", b"MainThread"), (token + b"threads\npy __import__('time').sleep(0.3); 6 * 7\ntables\n", b"python.samples"), (b"", b"")):
        with connect(address, None) as sock:
            sock.sendall(said)
            sock.shutdown(socket.SHUT_WR)
            answer = read_all(sock)
            assert wanted in answer, (said, answer)
            assert b"sleep" not in said or b"42\n" in answer
