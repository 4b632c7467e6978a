# SPDX-License-Identifier: Apache-2.0
"""Clients of a listener that are not who they seem: web pages at pdb, root of another container, strangers that fill every place."""

import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import tempfile

import pytest

from agent_job import job as agent
from agent_wire import Client
from http_client import ask, connect, read_all
from tcp_client import STRANGER, TcpClient, TcpConnection, split, status_of
from test_catch import JOB as CATCH_JOB
from test_catch import arm, caught, in_thread
from test_debug import debugpy_for
from test_pause import JOB, OURS, STATUS, Talker, goes_on, is_paused, pause
from test_tcp_listener import IS_ROOT, listen
from test_hidden_proc import nobodys_python

__all__ = ["agent", "debugpy_for", "nobodys_python"]

pytestmark = pytest.mark.timeout(300)
as_root = pytest.mark.skipif(not IS_ROOT, reason="needs root: to be another user")


# --- pdb -----------------------------------------------------------------------------------------------------------

def canary(path):
    return f"open({str(path)!r}, 'w').close()\n"


def not_the_token(token, code):
    """The first bytes of a client that does not have the token; each goes on with code, should anything be run."""
    post = (f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(code)}\r\n\r\n{code}").encode()
    code = code.encode()
    return {
        "a page's POST": post, "a GET": b"GET /" + token.encode() + b" HTTP/1.1\r\n\r\n" + code, "the code alone": code, "an empty line": b"\n" + code,
        "a method": b"DELETE\n" + code, "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + code, "TLS": bytes.fromhex("16030100c8010000c40303") + code,
        "NUL": b"\0\n" + code, "a wrong token": b"0" * 48 + b"\n" + code, "half of it": token[:24].encode() + b"\n" + code,
        "too much": token.encode() + b"0\n" + code, "a header": b"Authorization: Bearer " + token.encode() + b"\n" + code,
        "it and more": token.encode() + b" HTTP/1.1\n" + code, "it behind a line": code + token.encode() + b"\n" + code,
        "a long line": b"0" * 100000 + b"\n" + code, "commands": b"continue\nquit\nc\n",
    }


def say(address, data, uid=None):
    with connect(address, uid) as sock:
        try:
            sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_all(sock)


def nothing_is_run(document, path, job):
    for name, data in not_the_token(document["token"], canary(path)).items():
        said = say(document["address"], data)
        assert said in (b"", b"token: ", b"token: that is not the token, which is the first line here\n"), (name, said)
        assert not path.exists() and job.alive(), name


def test_pdb_of_a_pause_begins_with_the_token(probing, target, any_python, tmp_path, wait_until):
    job = target(JOB)
    document = pause(probing, job)
    nothing_is_run(document, tmp_path / "canary", job)
    assert is_paused(probing, job)
    talker = Talker(document["address"])  # all in one piece, as it comes when it is pasted
    talker.socket.sendall(f"  {document['token']} \r\np 6 * 7\n".encode())
    assert "is held" in talker.prompt() and talker.prompt() == "42\n"
    talker.leave("continue")
    goes_on(probing, job, wait_until)
    assert job.output() == ""


def test_pdb_of_a_caught_exception_begins_with_the_token(probing, target, any_python, tmp_path, wait_until):
    job = target(CATCH_JOB)
    arm(probing, job)
    in_thread(probing, job)
    document = caught(probing, job, wait_until)
    nothing_is_run(document, tmp_path / "canary", job)
    talker = Talker(document["address"], document["token"])
    assert "it is threadthread in doomed" in talker.prompt()
    talker.leave("continue")


def test_each_pause_has_a_token_of_its_own_and_nobody_else_is_told(probing, target, any_python, wait_until):
    job = target(JOB)
    first = pause(probing, job)
    Talker(first["address"], first["token"]).leave("continue")
    goes_on(probing, job, wait_until)
    second = pause(probing, job)
    assert first["token"] != second["token"]
    assert b"(Pdb)" not in say(second["address"], first["token"].encode() + b"\n")
    told = probing(str(job.pid), "query", "SELECT * FROM probing.events", "--json").ok().stdout + probing(str(job.pid), "status", "--json").ok().stdout
    told += probing("list", "--json").ok().stdout
    assert first["token"] not in told and second["token"] not in told
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                assert second["token"].encode() not in file.read()
        except OSError:
            pass
    Talker(second["address"], second["token"]).leave("continue")


@as_root
def test_strangers_take_no_place_at_pdb(probing, target, any_python, wait_until):
    """More than there are places for, renewed as they are put out: the job's user comes in at once."""
    job = target(JOB)
    document = pause(probing, job)
    held = [connect(document["address"], STRANGER) for _ in range(12)]
    for sock in held[:8]:
        assert sock.recv(100) == b"token: "
    assert read_all(held[-1]) in (b"too many have come at once\n", b"too many tries: wait\n")
    talker = Talker(document["address"], document["token"])
    assert "is held" in talker.prompt()
    talker.leave("continue")
    for sock in held:
        sock.close()
    goes_on(probing, job, wait_until)


# --- the TCP door --------------------------------------------------------------------------------------------------

@as_root
def test_strangers_take_no_place_at_the_door(agent):
    """They never say anything; the job's user looks, and who has the token does more, meanwhile."""
    door = listen(agent().start())
    held = [TcpConnection(door["address"], uid=STRANGER + i % 3) for i in range(20)]
    for _ in range(3):
        assert status_of(door["address"]) == 101
        assert ask(door["address"], "/status").status == 200
        assert ask(door["address"], "/eval", "POST", token=door["token"], headers=["Content-Type: text/x-python"], body=b"6 * 7").json()["result"] == "42"
    for connection in held:
        connection.close()


# Says what each door answers: status of HTTP requests, and lines of text.
VISIT = r"""
import json, os, socket, sys, time
address, paths = sys.argv[1], json.loads(sys.argv[2])

def say(data):
    # Who comes so often that there is no time left to too many connections at a time is told to come again, and does; so does who came when it
    # could not be known.
    for _ in range(200):
        said = once(data)
        if "too many connections at a time" not in said and not said.startswith("HTTP/1.1 503 "):
            return said
        time.sleep(0.1)

def once(data):
    host, port = address.rsplit(":", 1)
    s = socket.create_connection((host, int(port)), timeout=60)
    s.sendall(data)
    said = b""
    while True:
        try:
            piece = s.recv(65536)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return said.decode("latin-1")
        said += piece

answers = {}
for name, (request, body) in paths.items():
    more = "Content-Type: text/x-python\r\nContent-Length: %d\r\n" % len(body) if body else ""
    answers[name] = int(say((request + " HTTP/1.1\r\nHost: " + address + "\r\n" + more + "\r\n" + body).encode()).split()[1])
answers["text"] = say(b"threads\nquit\n")
answers["py"] = say(b"py 6 * 7\nquit\n")
print(json.dumps([os.geteuid(), answers]))
"""
PATHS = {"eval": ["POST /eval", "6 * 7"], "set": ["PUT /config", "probing.budget=1"], "flame": ["GET /flamegraph?seconds=0.1", ""], "look": ["GET /backtrace", ""],
         "status": ["GET /status", ""], "table": ["GET /tables/probing.events", ""], "page": ["GET /", ""]}


def visit(address, before, python, **more):
    done = subprocess.run([*before, python, "-c", VISIT, address, json.dumps(PATHS)], capture_output=True, text=True, timeout=120, check=False, cwd="/", **more)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def looks(answers):
    assert answers.pop("eval") == 403 and answers.pop("set") == 403
    assert "this client is read-only" in answers.pop("py") and "MainThread" in answers.pop("text")
    assert set(answers.values()) == {200}, answers


def nothing(answers):
    for name in ("text", "py"):
        assert answers.pop(name).startswith(("a token is needed", "too many attempts")), answers
    assert set(answers.values()) <= {401, 429}, answers


@as_root
@pytest.mark.parametrize("options", [["--pid", "--mount", "--fork", "--mount-proc"], ["--pid", "--fork"], ["--mount"], ["--user", "--map-root-user"]],
                         ids=lambda options: " ".join(options))
def test_root_of_another_container(agent, nobodys_python, options):
    """The same number of a user, and the same network; but not the job's namespaces, nor any right: nothing, not even a look."""
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, *options, "true"], capture_output=True).returncode:
        pytest.skip(f"needs namespaces: unshare {' '.join(options)} is not allowed")
    j = agent()
    door = listen(j.start())
    less = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs"] if "--user" not in options else []
    uid, answers = visit(door["address"], [unshare, *options, *less], nobodys_python)
    assert uid == 0
    nothing(answers)
    uid, answers = visit(door["address"], [], nobodys_python)  # who is beside the job looks
    assert uid == 0
    looks(answers)
    assert ask(door["address"], "/status", token=door["token"]).status == 200  # whatever the others have tried


JOB_OF_ANOTHER = r"""
import os, threading
os.write(int(os.environ["READY_FD"]), b"ready\n")
threading.Event().wait()
"""


@pytest.fixture
def job_of_another(nobodys_python, ptrace):
    reader, writer = os.pipe()
    process = subprocess.Popen([nobodys_python, "-c", JOB_OF_ANOTHER], pass_fds=(writer,), user=STRANGER, group=STRANGER, extra_groups=[], cwd="/",
                               stdin=subprocess.DEVNULL, env=dict(os.environ, READY_FD=str(writer)))
    os.close(writer)
    with os.fdopen(reader) as ready:
        assert ready.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    shutil.rmtree(f"/tmp/probing-{STRANGER}", ignore_errors=True)
    shutil.rmtree(f"/dev/shm/probing-{STRANGER}", ignore_errors=True)


@as_root
def test_a_job_of_another_user(job_of_another, probing, nobodys_python):
    """Its user looks without a token; root, whom it cannot see, has the tools say it, which find it by themselves."""
    door = probing(str(job_of_another.pid), "listen", "127.0.0.1:0", "--json", timeout=60).ok().json()["tcp"]
    address = door["address"]
    uid, answers = visit(address, [], nobodys_python, user=STRANGER, group=STRANGER, extra_groups=[])
    assert uid == STRANGER
    looks(answers)
    nothing(visit(address, [], nobodys_python)[1])
    nothing(visit(address, [], nobodys_python, user=STRANGER + 1, group=STRANGER + 1, extra_groups=[])[1])
    assert probing("-t", address, "eval", "6 * 7", timeout=60).ok().stdout == "42\n"
    assert "MainThread" in probing(address, "backtrace", timeout=60).ok().stdout
    header = door["file"].replace(".door", ".curl")
    info = os.stat(header)
    assert stat.S_IMODE(info.st_mode) == 0o600 and info.st_uid == STRANGER
    if shutil.which("curl"):
        done = subprocess.run(["curl", "-sS", "-H", f"@{header}", "-H", "Content-Type: text/x-python", "--data-binary", "6 * 7", f"http://{address}/eval"],
                              capture_output=True, timeout=60, check=True)
        assert json.loads(done.stdout)["result"] == "42"
    probing(str(job_of_another.pid), "eject", timeout=60).ok()
    assert not os.path.exists(header)


def test_the_tools_find_the_token_by_themselves(agent, probing):
    """Of this user's own job, and none is in what anybody sees of a process."""
    endpoint = agent().start()
    door = listen(endpoint)
    assert probing("-t", door["address"], "eval", "6 * 7", timeout=60).ok().stdout == "42\n"
    os.unlink(door["file"])  # without it the tools may look, as everybody of this user
    done = probing("-t", door["address"], "eval", "6 * 7", timeout=60)
    assert done.status == 1 and "this client is read-only" in done.stderr
    assert "MainThread" in probing(door["address"], "backtrace", timeout=60).ok().stdout
    done = probing("-t", door["address"], "--token", "0" * 32, "backtrace", timeout=60)
    assert done.status == 3 and "wrong token" in done.stderr


def test_no_number_of_clients_makes_a_look_into_more(agent):
    """By WebSocket, which asks for other methods than HTTP has."""
    door = listen(agent().start())
    with TcpClient(door["address"]) as client:
        for method, params in (("eval", {"code": b"1", "name": "x"}), ("config", {"key": "probing.budget", "value": "1"}), ("eject", {}),
                               ("threads", {"locals": True}), ("rows", {"table": "python.modules", "args": {}}), ("listen", {"address": "127.0.0.1:0"})):
            assert client.call_error(method, params)["code"] == 5, method
        assert client.call("threads")["threads"]


@pytest.mark.parametrize("upgrade", ["nonsense", "TLS/1.0", "x" * 100, "websocket2", "h2c"])
@pytest.mark.parametrize("keep", ["", "Connection: keep-alive, Upgrade\r\n"])
def test_an_upgrade_that_nobody_knows(agent, upgrade, keep):
    """It is refused and the connection closed, whatever else stands behind it (CVE-2025-11677)."""
    endpoint = agent().start()
    door = listen(endpoint)
    for _ in range(3):
        request = f"GET / HTTP/1.1\r\nHost: {door['address']}\r\nUpgrade: {upgrade}\r\n{keep}\r\n".encode()
        said = say(door["address"], request + b"GET /backtrace HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert said.count(b"HTTP/1.") <= 1 and b"MainThread" not in said and not said.startswith(b"HTTP/1.1 101"), said
    host, port = split(door["address"])
    with socket.create_connection((host, port), timeout=30) as sock:  # and in two pieces
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {door['address']}\r\nUpg".encode())
        sock.sendall(f"rade: {upgrade}\r\n{keep}\r\n".encode())
        assert b"101" not in read_all(sock)[:20]
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]


# --- debugpy -------------------------------------------------------------------------------------------------------

@as_root
def test_debug_of_a_job_of_roots_is_asked_about(probing, target, any_python, debugpy_for):
    job = target(JOB)
    done = probing(str(job.pid), "debug", timeout=60)
    assert done.status == 1 and done.stderr.count("\n") == 1, done
    assert "every user of the machine could connect" in done.stderr and "as root" in done.stderr and "--exposed" in done.stderr
    text = probing(str(job.pid), "debug", "--exposed", "--timeout", "90", *debugpy_for(any_python), timeout=120).ok().stdout
    assert "every user of the job's machine can connect without a password and run code as root" in text
    probing(str(job.pid), "debug", "--off", timeout=60).ok()


@pytest.fixture
def folder_for_all():
    """One that every user may enter: pytest's own are nobody else's."""
    with tempfile.TemporaryDirectory(prefix="probing-test-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def test_debug_beside_other_users_is_asked_about(job_of_another, probing, folder_for_all):
    """What the job sees in /proc decides; a folder stands for it here."""
    proc, pid = folder_for_all / "proc", str(job_of_another.pid)
    for number, uid in ((1, 0), (2, 100), (3, STRANGER), (4, 65534)):
        (proc / str(number)).mkdir(parents=True)
        os.chown(proc / str(number), uid, uid)
    (proc / "self" / "ns").mkdir(parents=True)
    (proc / "self" / "mountinfo").write_text(f"22 1 0:21 / {proc} rw - proc proc rw\n")
    where = proc / "self" / "ns" / "pid"
    where.symlink_to("pid:[4026531836]")

    endpoint = probing(pid, "inject", "--json", timeout=60).ok().json()["endpoint"].removeprefix("unix:")

    def crowd():
        with Client(endpoint) as client:
            client.call("debug", {"action": STATUS})
            code = OURS.format("debug_crowd") + f"ours['debug_crowd']({str(proc)!r})"
            return client.call("eval", {"code": code.encode(), "name": "<test>"})["result"]
    assert crowd() is None
    (proc / "5").mkdir()
    os.chown(proc / "5", 1234, 1234)
    assert b"user 1234 has processes" in crowd()
    (proc / "5").rmdir()
    (proc / "self" / "mountinfo").write_text(f"22 1 0:21 / {proc} rw - proc proc rw,hidepid=invisible\n")
    assert b"is hidden from it" in crowd()
    where.unlink()
    where.symlink_to("pid:[4026532000]")
    assert b"in a container" in crowd()
    where.unlink()
    assert b"cannot be seen" in crowd()
    probing(pid, "eject", timeout=60).ok()
