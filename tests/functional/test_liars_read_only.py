# SPDX-License-Identifier: Apache-2.0
"""Who may only look: sees what docs/access.md says, at every listener, and no secret in any byte that is sent to it; and cannot take the job's
memory, however much it asks for without reading the answers."""

import json
import os
import re
import socket
import struct

import pytest

from agent_job import job
from agent_wire import Client, Closed
from conftest import wait_until
from http_client import parse, read_all, request
from tcp_client import STRANGER, TcpClient, TcpConnection, as_user, split
from test_tcp_listener import IS_ROOT, PARAMS, listen

__all__ = ["job"]

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")]

MIB = 1 << 20
NOT_ALLOWED = 5
CHECKSUM_AT = 20
ROUTE_BODIES = {"PUT /config": b"probing.budget=1", "POST /eval": b"1 + 1"}

# What the job and who uses it would rather not show; each stands where its name says.
SECRETS = {"argv": "--api-key=SECRET_ARGV_123", "code": "SECRET_CODE_456", "value": "SECRET_VALUE_789", "environment": "SECRET_ENVIRONMENT_012",
           "local": "SECRET_LOCAL_345"}
HOLDER = f"""
import threading
def holds_a_secret():
    local = {SECRETS["local"]!r}
    wait_for_ever()
spawn("holder", holds_a_secret)
def evaluate():
    api_key = {SECRETS["value"]!r}
    return len(api_key)
"""


# --- the matrix ---------------------------------------------------------------------------------------------------

def matrix(source_dir):
    """{section: {row: {visitor: what they get}}} of the committed page."""
    out, section, head = {}, "", []
    with open(os.path.join(source_dir, "docs", "access.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = line[3:].strip()
            elif line.startswith("|") and not line.startswith("|---"):
                cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
                if cells[2:3] == ["owner"]:
                    head = cells
                elif section and head:
                    out.setdefault(section, {})[cells[0]] = dict(zip(head[2:], cells[2:]))
    assert {"Methods", "Routes of HTTP", "Commands of text", "Tables", "Columns", "Fields of answers and notifications"} <= set(out)
    return out


class Heard:
    """All bytes that came to a visitor, through whatever listener."""

    def __init__(self):
        self.bytes = []

    def __call__(self, data):
        self.bytes.append(data)
        return data

    def secrets(self):
        whole = b"".join(self.bytes)
        return {name for name, text in SECRETS.items() if text.encode() in whole or text[2:].encode() in whole}


class Ear:
    """A socket that notes what it is sent."""

    def __init__(self, sock, heard):
        self.sock, self.heard = sock, heard

    def __getattr__(self, name):
        return getattr(self.sock, name)

    def recv(self, *args):
        return self.heard(self.sock.recv(*args))


class Visitor:
    """One who comes by the unix socket, or by TCP as some user with some token."""

    def __init__(self, endpoint, door, name):
        uid, token = {"owner": (None, None), "token": (STRANGER, door["token"]), "reader": (STRANGER + 1, door["looking_token"]),
                      "local": (None, None), "stranger": (STRANGER + 2, None)}[name]
        self.endpoint, self.address = endpoint, None if name == "owner" else door["address"]
        self.name, self.uid, self.token, self.heard = name, uid, token, Heard()

    def client(self):
        made = Client.__new__(Client)
        if self.address:
            made.connection = TcpConnection(self.address, 60, self.uid)
            made.connection.socket = Ear(made.connection.socket, self.heard)
            status = made.connection.ask(token=self.token)
            assert status == 101, status
        else:
            made = Client(self.endpoint, timeout=60, hello=False)
            made.connection.socket = Ear(made.connection.socket, self.heard)
        made.last_id, made.notifications, made.chunks = 0, [], {}
        made.hello = made.call("hello", {"version": 2, "client": "test"})
        return made

    def connect(self):
        if not self.address:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.endpoint)
        else:
            with as_user(self.uid):
                sock = socket.socket()
                sock.connect(split(self.address))
        sock.settimeout(60)
        return sock

    def ask(self, path, verb="GET", body=None):
        headers = ["Content-Type: text/x-python"] if body else []
        with self.connect() as sock:
            sock.sendall(request(self.address or "localhost", path, verb, token=self.token, headers=headers, body=body))
            return parse(self.heard(read_all(sock)))

    def text(self, lines):
        with self.connect() as sock:
            first = f"token {self.token}\n" if self.token else ""
            sock.sendall((first + "".join(line + "\n" for line in lines) + "quit\n").encode())
            return self.heard(read_all(sock)).decode()


@pytest.fixture
def planted(job, probing, python_for):
    """A job that holds all of SECRETS, each where something of ours would show it; its agent's socket and its TCP listener."""
    j = job(python=python_for("3.12"), args=[SECRETS["argv"]],
            env={"PROBING_ENV_ALLOW": "HF_TOKEN", "HF_TOKEN": SECRETS["environment"], "PROBING_SAMPLE_RATE": "50"})
    assert j.do(f"exec({HOLDER!r}, globals())") is None
    endpoint = j.start()
    door = listen(endpoint)
    with Client(endpoint) as client:
        client.call("config", {"key": "probing.torch_profiling", "value": "on,exprs=api_key@evaluate"})
        client.call("eval", {"code": f"{SECRETS['code']} = 1".encode(), "name": "<test>"})
    owner = Visitor(endpoint, door, "owner")
    def kept(table):
        j.do("evaluate()")  # once it is watched it has rows
        answer = owner.ask(f"/tables/{table}")
        return answer.status == 200 and answer.json()["rows"]
    for table in ("probing.events", "python.variables", "probing.facts", "python.samples"):
        wait_until(lambda: kept(table), 60, f"rows of {table}", 0.2)
    return endpoint, door


def methods_as_said(visitor, rows):
    for method, gets in rows.items():
        wanted, extra = gets[visitor.name], {}
        if method == "eject" and wanted == "yes":
            continue  # it would be the end: test_tcp_listener.py
        if "`" in method or " with " in method or " that " in method:
            extra = {"locals": {"locals": True}, "repr": {"locals": True, "repr": True}}.get(method.split()[-1])
            if extra is None:
                continue  # probing.eval: test_tcp_listener.py
            method = "threads"
        with visitor.client() as client:
            error, _ = client.answer(client.send(method, extra or PARAMS.get(method, {})))
            assert bool(error and error["code"] == NOT_ALLOWED) == (wanted == "refused"), (visitor.name, method, extra, error)


def making_of(head):
    """Of struct ring_file_head: its checksum."""
    return struct.unpack_from("<I", head, CHECKSUM_AT)[0]


def tables_as_said(visitor, rows):
    """What is pulled: all tables that are offered, all rows; those that are withheld are named, and cannot be asked for."""
    with visitor.client() as client:
        answer = client.call("tables")
        offered = {table["name"] for table in answer["tables"]}
        assert offered == {name for name, gets in rows.items() if gets[visitor.name] == "yes"}
        assert set(answer.get("withheld", [])) == {name for name, gets in rows.items() if gets[visitor.name] == "withheld"}
        for name in rows:
            making = {table["name"]: making_of(table["head"]) for table in answer["tables"]}.get(name, 0)
            ask = {"table": name, "making": making, "first_seq": 0, "rows": 0, "heap_used": 0}
            error, result = client.answer(client.send("pull", ask))
            assert bool(error) == (rows[name][visitor.name] == "withheld"), (name, error)
            assert not error or error["code"] == NOT_ALLOWED
            assert error or not result["anew"], name


def columns_as_said(visitor, rows):
    by_table = {}
    for column, gets in rows.items():
        table, _, name = column.rpartition(".")
        by_table.setdefault(table, {})[name] = gets[visitor.name]
    known = {}
    for table, columns in by_table.items():
        answer = visitor.ask(f"/tables/{table}?limit=5000")
        if answer.status == 404:
            assert "made by the client" in answer.text()
            continue
        if "refused" in columns.values():
            assert answer.status == 403 and set(columns.values()) == {"refused"}, (table, answer.text())
            continue
        assert answer.status in (200, 503), answer.text()
        if answer.status == 503:
            continue  # made by Python, which has no torch
        got = answer.json()
        assert {column["name"] for column in got["columns"]} == set(columns)
        hidden = {name for name, gets in columns.items() if gets == "NULL"}
        for row in got["rows"]:
            assert all(row[name] is None for name in hidden), (table, row)
        assert ("read-only clients" in (got["note"] or "")) == bool(hidden) and all(name in got["note"] for name in hidden), got["note"]
        known[table] = {name for name in columns if any(row[name] is not None for row in got["rows"])}
        for form in ("csv", "ndjson"):
            assert visitor.ask(f"/tables/{table}?limit=5000&format={form}").status == 200
    return known


def routes_as_said(visitor, rows):
    for route, gets in rows.items():
        verb, path = re.match(r"`?(\w+) (\S+?)`?(?::|$| of)", route).groups()
        if "made in the job" in route:
            path = "/tables/python.modules"
        if "{name}" in path:
            continue  # columns_as_said
        body = ROUTE_BODIES.get(f"{verb} {path}")
        for form in ("", ".json", ".txt", ".folded"):
            answer = visitor.ask(path + form + ("?seconds=0.3" if "flame" in path else ""), verb, body)
            if form and answer.status in (404, 405):
                continue
            assert (answer.status == 403) == (gets[visitor.name] == "refused"), (visitor.name, route, answer.status, answer.text()[:200])


def text_as_said(visitor, rows):
    said = visitor.text(["help"])
    listed = re.findall(r"^(?:\(probing\) )*(\w+) +", said, re.M)
    assert set(rows) <= set(listed) and visitor.text(["status"])
    for command, gets in rows.items():
        if command not in ("help", "token", "quit"):
            said = visitor.text([command + (" 6 * 7" if command == "py" else "")])
            assert ("this client is read-only" in said) == (gets[visitor.name] == "refused"), (visitor.name, command, said)


@pytest.mark.parametrize("name", ["owner", "token", "reader", "local"])
def test_the_matrix(planted, source_dir, name):
    """Every method, table, column, route and command is really asked for; what comes is what the page says, and of the secrets just
    what may be seen: all, or none."""
    endpoint, door = planted
    said = matrix(source_dir)
    visitor = Visitor(endpoint, door, name)
    methods_as_said(visitor, said["Methods"])
    tables_as_said(visitor, said["Tables"])
    known = columns_as_said(visitor, said["Columns"])
    routes_as_said(visitor, said["Routes of HTTP"])
    text_as_said(visitor, said["Commands of text"])
    with visitor.client() as client:
        cmdline = client.hello["target"]["cmdline"]
        client.subscribe("threads", 10)
        client.subscribe("samples", 50)
        client.notification("threads")
        client.notification("samples")
    looks = said["Fields of answers and notifications"]["hello, target: `cmdline"][name] == "unknown"
    assert (cmdline is None) == looks
    assert ("text" in known["probing.events"]) == ("value" in known["probing.facts"]) == ("text" in known["python.variables"]) == (not looks)
    assert {"kind", "client_uid", "timestamp"} <= known["probing.events"] and "key" in known["probing.facts"]
    assert visitor.heard.secrets() == (set() if looks else set(SECRETS)), visitor.heard.secrets()


def test_a_stranger_gets_nothing(planted, source_dir):
    endpoint, door = planted
    stranger = Visitor(endpoint, door, "stranger")
    said = matrix(source_dir)
    assert all(gets["stranger"] == "-" for section in said.values() for gets in section.values())
    for path in ("/", "/status", "/backtrace", "/tables/probing.facts"):
        assert stranger.ask(path).status in (401, 429)
    assert "(probing)" not in stranger.text(["threads"])
    with pytest.raises(AssertionError):
        stranger.client()
    assert not stranger.heard.secrets()


def test_what_the_client_shows(planted, probing):
    """Tables that are withheld are empty, and a line says why; a query of others says nothing."""
    _, door = planted
    afar = {"PROBING_TOKEN": door["looking_token"]}
    said = probing(door["address"], "query", "SELECT text FROM probing.events", "--format", "json", env=afar).ok()
    assert said.json()["rows"] == [] and "probing.events: not for read-only clients" in said.stdout + said.stderr
    said = probing(door["address"], "query", "SELECT count(*) AS n FROM python.samples", "--format", "json", env=afar).ok()
    assert said.json()["rows"][0]["n"] > 0 and "read-only clients" not in said.stdout + said.stderr
    for verb in ("status", "backtrace"):
        said = probing(door["address"], verb, env=afar).ok()
        assert SECRETS["argv"] not in said.stdout + said.stderr


# --- memory -------------------------------------------------------------------------------------------------------

# 60 threads, each in 700 functions, each with a name of its own within its thread.
DEEP = """
def make(n):
    levels = {n: lambda levels: wait_for_ever()}
    for i in range(n):
        scope = {}
        exec(compile(f"def level_number_{i}_of_a_long_name(levels):\\n    return levels[{i + 1}](levels)\\n", f"/some/folder/file_{i}.py", "exec"), scope)
        levels[i] = scope[f"level_number_{i}_of_a_long_name"]
    return levels
levels = make(700)
for t in range(60):
    spawn(f"deep {t}", levels[0], levels)
"""

ASKED = {
    "threads": ("threads", {}),
    "threads with tasks": ("threads", {"tasks": True}),
    "status": ("status", {}),
    "tables": ("tables", {}),
    "pulls": ("pull", {"table": "system.threads_history", "making": 0, "first_seq": 0, "rows": 0, "heap_used": 0}),
    "hello": ("hello", {"version": 2, "client": "x" * 8000}),
    "streams of threads": ("subscribe", {"stream": "threads", "rate_hz": 30.0}),
    "streams of samples": ("subscribe", {"stream": "samples", "rate_hz": 1000.0}),
}


def memory(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        return [int(line.split()[1]) * 1024 for line in status if line.startswith(key)][0]


def forget_peak(pid):
    """VmHWM starts again."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


@pytest.fixture
def deep(job):
    """A job whose every look is long; it has been looked at, so what the agent keeps is there."""
    j = job()
    assert j.do(f"exec({DEEP!r}, globals())") is None
    endpoint = j.start()
    door = listen(endpoint)
    with Client(endpoint, timeout=60) as client:
        client.call("threads")
    with TcpClient(door["address"], STRANGER, token=door["looking_token"], timeout=60) as client:
        client.call("threads")
        client.subscribe("samples", 100)
        client.notification("samples")
    return j, endpoint, door


class Flood:
    """Clients that ask and do not read."""

    def __init__(self, make, n):
        self.clients = []
        for _ in range(n):
            client = make()
            client.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connection.socket.setblocking(False)
            self.clients.append(client)

    def say(self, method, params):
        for client in self.clients:
            for _ in range(34):
                try:
                    client.send(method, params)
                except (OSError, Closed):  # it has been put out already
                    break

    def close(self):
        for client in self.clients:
            client.close()


def settled(endpoint, pid):
    """Until the job's peak stays where it is while three others are answered. That peak."""
    peak, same = 0, 0
    with Client(endpoint, timeout=120) as client:
        while same < 3:
            client.call("threads")
            now = memory(pid, "VmHWM")
            same, peak = (same + 1 if now - peak < MIB // 2 else 0), now
    return peak


@pytest.mark.parametrize("asked", ASKED)
def test_a_reader_does_not_move_the_jobs_memory(deep, asked):
    """As many as the listener takes, each asks 34 times and reads nothing: 8 MB at most, which are given back; others are served meanwhile."""
    j, endpoint, door = deep
    forget_peak(j.pid)
    before = memory(j.pid, "VmRSS")
    flood = Flood(lambda: TcpClient(door["address"], STRANGER, token=door["looking_token"], timeout=60), 10)
    flood.say(*ASKED[asked])
    peak = settled(endpoint, j.pid)
    assert peak - before < 8 * MIB, f"{(peak - before) / MIB:.1f} MiB"
    flood.close()
    wait_until(lambda: memory(j.pid, "VmRSS") - before < 4 * MIB, 30, "memory to be given back")


def test_the_jobs_own_user_is_bounded_too(deep):
    j, endpoint, _ = deep
    forget_peak(j.pid)
    before = memory(j.pid, "VmRSS")
    flood = Flood(lambda: Client(endpoint, timeout=60), 14)
    flood.say("threads", {})
    peak = settled(endpoint, j.pid)
    assert peak - before < 40 * MIB, f"{(peak - before) / MIB:.1f} MiB"
    flood.close()
    wait_until(lambda: memory(j.pid, "VmRSS") - before < 4 * MIB, 30, "memory to be given back")


def test_answers_of_http_and_text_that_nobody_reads(deep):
    j, endpoint, door = deep
    forget_peak(j.pid)
    before = memory(j.pid, "VmRSS")
    socks = []
    for i in range(12):
        with as_user(STRANGER):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(split(door["address"]))
        if i % 2:
            sock.sendall(request(door["address"], "/backtrace.json", token=door["looking_token"]))
        else:
            sock.sendall(f"token {door['looking_token']}\nbt\nbt\nbt\nbt\n".encode())
        socks.append(sock)
    peak = settled(endpoint, j.pid)
    assert peak - before < 8 * MIB, f"{(peak - before) / MIB:.1f} MiB"
    for sock in socks:
        sock.close()
    wait_until(lambda: memory(j.pid, "VmRSS") - before < 4 * MIB, 30, "memory to be given back")


def test_requests_that_never_end(deep):
    """Long messages and bodies of somebody whose requests are short, in pieces: none is kept."""
    j, endpoint, door = deep
    forget_peak(j.pid)
    before = memory(j.pid, "VmRSS")
    clients = [TcpClient(door["address"], STRANGER, token=door["looking_token"], timeout=60) for _ in range(6)]
    for client in clients:
        try:
            for n in range(200):
                client.connection.send_frame(0 if n else 2, b"x" * 5000, final=False)
        except (Closed, OSError):
            pass
    socks = []
    for _ in range(5):
        with as_user(STRANGER):
            sock = socket.socket()
            sock.connect(split(door["address"]))
        head = request(door["address"], "/eval", "POST", token=door["looking_token"], headers=["Content-Type: text/x-python", "Content-Length: 1000000"])
        try:
            sock.sendall(head + b"#" * 900000)
        except OSError:
            pass
        socks.append(sock)
    peak = settled(endpoint, j.pid)
    assert peak - before < 8 * MIB, f"{(peak - before) / MIB:.1f} MiB"
    for one in [*clients, *socks]:
        one.close()


def test_who_does_not_read_is_put_out_and_it_is_said(deep):
    j, endpoint, door = deep
    flood = Flood(lambda: TcpClient(door["address"], STRANGER, token=door["looking_token"], timeout=60), 10)
    for _ in range(4):
        flood.say("status", {})
    def said():
        with Client(endpoint, timeout=60) as client:
            client.call("status")
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(endpoint)
        with sock:
            sock.sendall(request("localhost", "/tables/probing.events"))
            rows = json.loads(parse(read_all(sock)).body)["rows"]
        return [row for row in rows if row["kind"] == "refused" and "it does not read" in row["text"] and row["client_uid"] == STRANGER]
    wait_until(said, 60, "the row")
    flood.close()
    assert j.do("1 + 1") == 2


def test_long_answers_still_come_whole(deep):
    """The job's user has every frame of every thread, in pieces of a message; a read-only client has the innermost, and sees that."""
    j, endpoint, door = deep
    with Client(endpoint, timeout=60) as client:
        first, second = client.send("threads"), client.send("threads")  # one at a time, both are answered
        for wanted in (first, second):
            error, snapshot = client.answer(wanted)
            assert error is None and not snapshot["incomplete"]
            assert sum(len(stack) >= 700 for stack in snapshot["threads"]["stack"]) == 60
    with TcpClient(door["address"], STRANGER, token=door["looking_token"], timeout=60) as client:
        snapshot = client.call("threads")
        assert len(snapshot["threads"]["stack"]) >= 60 and snapshot["incomplete"]
