# SPDX-License-Identifier: Apache-2.0
"""Agents, targets and other users that lie about files and texts: nothing that they name is opened, changed or obeyed, and what we write is
ours alone."""

import contextlib
import os
import pty
import pwd
import re
import select
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from agent_wire import Client
from conftest import inject_in_time
from lying_agent import NOBODY, lying_process
from test_hidden_proc import nobodys_programs  # noqa: F401  pylint: disable=unused-import

STEPS = 3
try:
    WHOSE = "tables of user " + pwd.getpwuid(NOBODY).pw_name
except KeyError:
    WHOSE = f"tables of user {NOBODY}"
JOB = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
token = "a value that is nobody's business"
while True:
    time.sleep(0.01)
"""
# What a terminal obeys, or shows in another order than it came: each is put into every text of an agent.
LIES = ("\x1b]52;c;RE9PUg==\x07", "\x1b]0;title\x07\x1b[2J\x1b[31m", "\u009b31m\u009d0;x\u009c", "\r\x08\x08\x7f\x0b\x0c", "\u202edoor\u2066\u061c\u200f",
        "\x1bP1$q\x1b\\", "\x01\x0e")


@pytest.fixture(scope="module")
def observed(any_python, probing, tmp_path_factory):
    """(hello, status) of a real agent."""
    folder = tmp_path_factory.mktemp("observed")
    reader, writer = os.pipe()
    with subprocess.Popen([any_python, "-c", JOB], pass_fds=(writer,), env=dict(os.environ, READY_FD=str(writer)), cwd=folder) as job:
        try:
            os.close(writer)
            assert os.read(reader, 16)
            with Client(inject_in_time(probing, job.pid)["endpoint"]) as client:
                yield client.hello, client.call("status")
        finally:
            os.close(reader)
            job.kill()


@pytest.fixture
def scratch():
    """A folder below /tmp that all may pass through."""
    path = tempfile.mkdtemp(prefix="probing-liars-", dir="/tmp")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def with_rows(status, **tables):
    """The status with these rows in place of its own: columns by name, of which texts are numbers of strings."""
    strings, out = list(status["strings"]), dict(status)

    def number(value):
        if not isinstance(value, str):
            return value
        strings.append(value)
        return len(strings) - 1
    for name, row in tables.items():
        assert set(row) <= set(status[name]), (name, set(row) - set(status[name]))
        out[name] = {column: [number(row.get(column))] for column in status[name]}
    return dict(out, strings=strings)


def with_lease(status, file):
    return with_rows(status, leases={"what": "profiler", "owners": 0, "by_config": False, "held_s": 0.0, "left_s": None, "looks": STEPS, "cost_pct": None,
                                     "armed": False, "note": "3 steps, 0.1 s", "file": file})


def one_line(done, status=1):
    assert done.status == status and done.stderr.count("\n") >= 1, done
    assert done.stderr.splitlines()[-1].startswith("probing: "), done
    return done.stderr


def owned(path, uid=NOBODY):
    if os.geteuid() == 0:
        os.chown(path, uid, uid, follow_symlinks=False)
    return path


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


# --- the trace of `profile -o` --------------------------------------------------------------------------------------

@pytest.fixture
def tables(scratch):
    """Where the lying job says that its tables lie: a folder of its user's alone."""
    path = os.path.join(scratch, "tables")
    os.mkdir(path, 0o700)
    return owned(path)


@contextlib.contextmanager
def profiled(observed, tables, told):
    """A process whose agent says that it has written the file `told`."""
    hello, status = observed
    with lying_process({"hello": hello, "status": with_lease(status, file=told)}, {"PROBING_DATA_DIR": tables}) as job:
        yield job


def test_a_trace_is_moved(observed, probing, scratch, tables):
    """The control: what an honest agent would say."""
    output = os.path.join(scratch, "out.json")
    with profiled(observed, tables, f"{tables}/profile-@PID@-1700000000000.json") as job:
        trace = owned(write(f"{tables}/profile-{job.pid}-1700000000000.json", '{"traceEvents": []}'))
        probing(str(job.pid), "profile", "--yes", "-o", output, timeout=60)
        assert not os.path.exists(trace)
    assert open(output, encoding="utf-8").read() == '{"traceEvents": []}' and stat.S_IMODE(os.stat(output).st_mode) == 0o600
    assert os.stat(output).st_uid == os.geteuid()


@pytest.mark.parametrize("told", ["{victim}", "/{scratch}/tables/../victim/profile-@PID@-1.json", "{scratch}/victim/profile-@PID@-1.json",
                                  "/proc/1/root{victim}", "/dev/zero", "profile-@PID@-1.json/../../victim/precious", "{scratch}/tables/profile-1-1.json",
                                  "{scratch}/tables/profile-@PID@-1.json\n", "{scratch}/tables/precious"])
def test_a_trace_that_is_none(observed, probing, scratch, tables, told):
    """A name that no agent makes, or a file that lies elsewhere: not read, not removed, and nothing is written."""
    folder, output = os.path.join(scratch, "victim"), os.path.join(scratch, "out.json")
    os.mkdir(folder, 0o700)
    victim = write(os.path.join(folder, "precious"), "precious")
    owned(write(os.path.join(tables, "precious"), "precious"))
    owned(write(os.path.join(tables, "profile-1-1.json"), "precious"))
    with profiled(observed, tables, told.format(victim=victim, scratch=scratch)) as job:
        named = write(f"{folder}/profile-{job.pid}-1.json", "precious")
        said = one_line(probing(str(job.pid), "profile", "--yes", "-o", output, timeout=60))
    assert "not" in said and not os.path.exists(output)
    for path in (victim, named, os.path.join(tables, "precious"), os.path.join(tables, "profile-1-1.json")):
        assert open(path, encoding="utf-8").read() == "precious", path


def make_link(path, victim):
    os.symlink(victim, path)


def make_hard_link(path, victim):
    os.link(victim, path)


def make_fifo(path, victim):
    os.mkfifo(path, 0o600)
    owned(path)


def make_folder(path, victim):
    os.mkdir(path)
    owned(path)


def make_foreign(path, victim):
    if os.geteuid() != 0:
        pytest.skip("needs root: a file of another user is to be made")
    write(path, "precious")


def make_shared(path, victim):
    owned(write(path, "precious"))
    os.chmod(os.path.dirname(path), 0o777)


@pytest.mark.parametrize("make", [make_link, make_hard_link, make_fifo, make_folder, make_foreign, make_shared])
def test_a_trace_of_the_right_name(observed, probing, scratch, tables, make):
    """What stands where a trace would, and is none: a link, a second name of another file, a FIFO, a folder, another user's file, or one in a
    folder that all may write to."""
    output, victim = os.path.join(scratch, "out.json"), owned(write(os.path.join(scratch, "precious"), "precious"))
    with profiled(observed, tables, f"{tables}/profile-@PID@-1.json") as job:
        path = f"{tables}/profile-{job.pid}-1.json"
        make(path, victim)
        before = os.lstat(path)
        said = one_line(probing(str(job.pid), "profile", "--yes", "-o", output, timeout=60))
        after = os.lstat(path)
    assert "not touched" in said and not os.path.exists(output)
    assert (before.st_ino, before.st_mtime_ns, before.st_nlink) == (after.st_ino, after.st_mtime_ns, after.st_nlink)
    assert open(victim, encoding="utf-8").read() == "precious"


# --- terminals ------------------------------------------------------------------------------------------------------

def on_terminal(command, timeout=60, stderr_too=True):
    """(status, what came to the terminal) of a program whose standard output and error are one."""
    master, slave = pty.openpty()
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave if stderr_too else None,
                          env=dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm", NO_COLOR="1")) as process:
        os.close(slave)
        seen, deadline = b"", time.monotonic() + timeout
        try:
            while True:
                assert time.monotonic() < deadline, seen
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            pass
        finally:
            os.close(master)
            process.kill()
        return process.wait(), seen


# What a verb writes and removes again while it works.
PROGRESS = rb"(?:\r[a-z ]+: \d+ s)+\r +\r"


def obeyed(seen):
    """What of it a terminal would obey, or show out of its order."""
    text = re.sub(PROGRESS, b"", seen).replace(b"\r\n", b"\n").decode("utf-8")  # which it must be
    return re.findall("[^\\n\\t\\x20-\\x7e\\u00a0-\\U0010ffff]|[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]", text)


def with_lies(value, lie):
    """The lie in each text, at its beginning, in it and at its end."""
    if isinstance(value, str):
        return value if value == "profiler" else lie + value[:1] + lie + value[1:] + lie
    if isinstance(value, list):
        return [with_lies(one, lie) for one in value]
    if isinstance(value, dict):
        return {key: with_lies(one, lie) for key, one in value.items()}
    return value


def rich(status):
    """A status that has all that a status may have."""
    texts = {key: "a note" for key in ("note", "steps_note", "hooks_note", "collect_note", "hooks", "data_dir", "sampling")}
    assert set(texts) <= set(status)
    return dict(with_rows(with_lease(status, "/x/profile-1-1.json"),
                          tables={"rows": 1, "bytes": 1, "lost": 1, "oldest": 1.0, "newest": 2.0, "name": "python.samples"},
                          doors={"address": "127.0.0.1:1", "looking": True, "clients": 1, "waiting": 0, "entered": 1, "refused": 1, "note": "a note"},
                          holds={"what": "pause", "state": "held", "address": "127.0.0.1:2", "text": "why", "uid": 0, "pid": 1, "held_s": 1.0, "left_s": 2.0,
                                 "used": True}), **texts)


@pytest.mark.long
@pytest.mark.parametrize("lie", ["".join(LIES), "".join(reversed(LIES))], ids=["first", "last"])  # where a text is cut
def test_what_an_agent_says_is_not_obeyed(observed, probing, probing_top, lie):
    hello, status = observed
    answers = {"hello": with_lies(hello, lie), "status": with_lies(rich(status), lie), "error": {"code": 3, "message": f"no{lie}no"}}
    with lying_process(answers) as job:
        shown = {}
        for words in (["status"], ["status", "--json"], ["profile", "--yes"], ["backtrace"], ["tables"], ["query", "SELECT 1"], ["eval", "1"], ["pause"], ["debug"],
                      ["trace", "--for", "1s"], ["memory"], ["verdict"]):
            shown[" ".join(words)] = status_, seen = on_terminal([probing.path, str(job.pid), *words])
            assert obeyed(seen) == [], (words, status_, seen)
        exported = on_terminal([probing_top.path, "--export", "json", "--once", str(job.pid)])
        assert obeyed(exported[1]) == [], exported
    for word in (b"entered 1", b", 2 s left", b" 1 row,", b"reported by"):
        assert shown["status"][0] == 0 and word in shown["status"][1], shown["status"]
    assert b"chrome://tracing" in shown["profile --yes"][1] or shown["profile --yes"][0] == 1, shown["profile --yes"]


# --- what we write --------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def job(any_python, probing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    reader, writer = os.pipe()
    with subprocess.Popen([any_python, "-c", JOB], pass_fds=(writer,), env=dict(os.environ, READY_FD=str(writer)), cwd=folder) as process:
        try:
            os.close(writer)
            assert os.read(reader, 16)
            inject_in_time(probing, process.pid)
            yield process
        finally:
            os.close(reader)
            process.kill()


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_what_is_written_is_ours_alone(job, probing, probing_top, tmp_path):
    """Whatever the umask lets others do."""
    before = os.umask(0)
    try:
        probing("-t", str(job.pid), "record", "-o", str(tmp_path / "run.db"), timeout=60).ok()
        for format_ in ("json", "sqlite", "txt", "folded"):
            words = ["--duration", "300ms"] if format_ == "folded" else [] if format_ == "sqlite" else ["--once"]
            probing_top("--export", format_, *words, "-o", str(tmp_path / format_), str(job.pid), timeout=60).ok()
        probing_top("--export", "csv", "--sql", "SELECT 1", "-o", str(tmp_path / "csv"), str(job.pid), timeout=60).ok()
    finally:
        os.umask(before)
    assert {name: mode(tmp_path / name) for name in os.listdir(tmp_path)} == dict.fromkeys(("run.db", "json", "sqlite", "txt", "folded", "csv"), 0o600)


def test_a_recording_takes_nothing_that_is_there(job, probing, tmp_path):
    """Not by a link that leads nowhere yet, either, which somebody may have put there."""
    victim, link = tmp_path / "victim", tmp_path / "run.db"
    link.symlink_to(victim)
    said = one_line(probing("-t", str(job.pid), "record", "-o", str(link), timeout=60))
    assert "already exists" in said and not victim.exists() and link.is_symlink()
    # Its folder may be named by one.
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    probing("-t", str(job.pid), "record", "-o", str(tmp_path / "folder" / "x.db"), timeout=60).ok()
    assert mode(tmp_path / "real" / "x.db") == 0o600


def test_an_export_is_not_led_astray(job, probing_top, scratch):
    """A link or FIFO of another user, where we are to write: neither followed nor written to."""
    if os.geteuid() != 0:
        pytest.skip("needs root: files of another user are to be made")
    victim, link, fifo = (os.path.join(scratch, name) for name in ("victim", "link", "fifo"))
    write(victim, "precious")
    os.symlink(victim, link)
    os.mkfifo(fifo, 0o666)
    for path, what in ((link, "link"), (fifo, "FIFO")):
        owned(path)
        done = probing_top("--export", "json", "--once", "-o", path, str(job.pid), timeout=60)
        assert done.status == 1 and f"{path} is a {what} of user {NOBODY}" in done.stderr, done
    assert open(victim, encoding="utf-8").read() == "precious"


# --- tables of others, and tokens -----------------------------------------------------------------------------------

def test_whose_tables_they_are(any_python, probing, scratch):
    """Tables that another user presents of a pid that is nobody's: root sees whose word they are; where two users do, none is taken."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it alone sees tables of others")
    source = os.path.join(scratch, "source")
    os.mkdir(source, 0o700)
    reader, writer = os.pipe()
    with subprocess.Popen([any_python, "-c", JOB], pass_fds=(writer,), env=dict(os.environ, READY_FD=str(writer), PROBING_DATA_DIR=source), cwd="/") as job_:
        os.close(writer)
        assert os.read(reader, 16)
        os.close(reader)
        inject_in_time(probing, job_.pid)
        probing(str(job_.pid), "query", "SELECT count(*) FROM python.samples", timeout=60).ok()
        job_.kill()
    tables, = os.listdir(source)
    made, pid = [], 4194304 + 17  # beyond any pid
    try:
        for uid in (NOBODY, NOBODY - 1):
            base = f"/dev/shm/probing-{uid}"
            if not os.path.isdir(base):
                os.mkdir(base, 0o700)
                made.append(owned(base, uid))
            copy = os.path.join(base, f"{pid}-1")
            shutil.copytree(os.path.join(source, tables), copy)
            made.append(copy)
            for root, _, names in os.walk(copy):
                for path in (root, *(os.path.join(root, name) for name in names)):
                    owned(path, uid)
            done = probing(str(pid), "query", "SELECT 1", timeout=60)
            if uid == NOBODY:
                assert done.status == 0 and WHOSE in done.stderr, done
                assert WHOSE in probing(str(pid), "backtrace", timeout=60).ok().stdout
            else:
                assert done.status == 3 and "several users" in done.stderr and done.stderr.count("\n") == 1, done
        named = probing("-t", os.path.join(f"/dev/shm/probing-{NOBODY}", f"{pid}-1"), "query", "SELECT 1", timeout=60)
        assert named.status == 0 and WHOSE in named.stderr, named
    finally:
        for path in reversed(made):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def listening(uid):
    """A port of that user's, and what comes there first."""
    heard, before = [], os.geteuid()
    if uid != before:
        os.seteuid(uid)
    try:
        server = socket.create_server(("127.0.0.1", 0))
    finally:
        if uid != before:
            os.seteuid(before)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    client.settimeout(10)
                    heard.append(client.recv(65536))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1], heard
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)


def test_a_token_is_shown_to_its_user_alone(probing, nobodys_programs):  # noqa: F811
    """The port of an agent that has gone may be another user's by now."""
    if os.geteuid() != 0:
        pytest.skip("needs root: ports of two users are to be made")
    user, token = 54329, "a" * 48
    folder = f"/tmp/probing-{user}"
    os.mkdir(folder, 0o700)
    owned(folder, user)
    try:
        for who, shown in ((user, True), (0, False), (NOBODY, False)):
            with listening(who) as (port, heard):
                owned(write(f"{folder}/77.door", f"127.0.0.1:{port}\n{token}\n"), user)
                for asks in (user, 0):
                    del heard[:]
                    done = subprocess.run(["setpriv", f"--reuid={asks}", f"--regid={asks}", "--clear-groups", nobodys_programs, f"127.0.0.1:{port}", "status"],
                                          capture_output=True, timeout=60, check=False)
                    assert done.returncode != 0 and heard, done
                    assert (token.encode() in b"".join(heard)) == shown, (who, asks, heard)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
