# SPDX-License-Identifier: Apache-2.0
"""The agent inside a Python process: the process loads libprobing.so itself, so nothing here depends on injection.

The job does what it is told through a pipe, one line a command, and answers with a line of JSON.
"""

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

import pytest

import agent_wire
from agent_wire import BINARY, Client, Closed, Connection, Profile, threads_of, wait_closed

HELD, WAITING, NONE = 3, 2, 1

JOB = r'''
import ctypes, json, os, sys, threading, time, traceback

class Start(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("region", ctypes.c_uint64),
                ("region_size", ctypes.c_uint64), ("thread", ctypes.c_uint64), ("fd", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("error", ctypes.c_char * 256), ("endpoint", ctypes.c_char * 128)]

library = ctypes.CDLL(os.environ["AGENT"])
events = []

def start():
    args = Start(size=ctypes.sizeof(Start), abi_version=1, fd=-1)
    result = library.probing_start(ctypes.byref(args))
    return [result, args.error.decode(), args.endpoint.decode()]

def spawn(name, function, *args):
    ready = threading.Event()
    def run():
        ready.set()
        function(*args)
    threading.Thread(target=run, name=name, daemon=True).start()
    ready.wait()

def wait_for_ever():
    event = threading.Event()
    events.append(event)
    event.wait()

def recurse(n):
    if n == 0:
        wait_for_ever()
    recurse(n - 1)

def hot_inner():
    total = 0
    for i in range(2000):
        total += i * i
    return total

def hot_loop():
    while True:
        hot_inner()

def schläft_主():
    time.sleep(1000)

def keep_the_gil():
    ctypes.PyDLL(None).sleep(1000)

def at_rest():
    names = {t.ident: (t.name, t.native_id) for t in threading.enumerate()}
    stacks = {}
    for ident, frame in sys._current_frames().items():
        stack = []
        while frame:
            code = frame.f_code
            stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
            frame = frame.f_back
        stacks[names[ident][1]] = {"name": names[ident][0], "stack": stack}
    return stacks

def fork_child():
    """What a child of ours sees: the kinds of its descriptors, its threads, and an agent of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            links = []
            for fd in os.listdir("/proc/self/fd"):
                try:
                    links.append(os.readlink("/proc/self/fd/" + fd))
                except OSError:
                    pass
            seen = {"fds": links, "threads": len(os.listdir("/proc/self/task")), "start": start(), "pid": os.getpid()}
            os.write(writer, json.dumps(seen).encode() + b"\n")
            os.close(writer)
            time.sleep(100)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return json.loads(answer.readline())

def look():
    links = sorted(os.listdir("/proc/self/fd"))
    return {"fds": len(links), "threads": len(os.listdir("/proc/self/task")), "tids": os.listdir("/proc/self/task")}

sys.setrecursionlimit(5000)
commands = os.open(os.environ["COMMANDS"], os.O_RDWR)
answers = os.open(os.environ["ANSWERS"], os.O_RDWR)
os.write(int(os.environ["READY_FD"]), b"ready\n")
buffer = b""
while True:
    while b"\n" not in buffer:
        buffer += os.read(commands, 65536)
    line, buffer = buffer.split(b"\n", 1)
    try:
        answer = eval(line.decode())
    except Exception:
        answer = traceback.format_exc()
    os.write(answers, json.dumps(answer).encode() + b"\n")
'''


class Job:
    """The process and the pipes to it."""

    def __init__(self, target, commands, answers):
        self.target = target
        self.pid = target.pid
        self.commands = commands
        self.answers = os.fdopen(answers)

    def tell(self, command):
        os.write(self.commands, command.encode() + b"\n")

    def do(self, command):
        self.tell(command)
        return json.loads(self.answers.readline())

    def start(self):
        result, error, endpoint = self.do("start()")
        assert result == 0, error
        return endpoint

    def agent_threads(self):
        return {name: tid for tid, name in self.target.thread_names().items() if name.startswith("probing-")}


@pytest.fixture
def job(target, tmp_path, build_dir):
    """A factory of jobs: job(python=None)."""
    agent = os.path.join(build_dir, "libprobing.so")
    if not os.path.exists(agent):
        pytest.fail(f"{agent} is not built")
    opened = []

    def make(python=None):
        paths = [str(tmp_path / f"{name}_{len(opened)}") for name in ("commands", "answers")]
        for path in paths:
            os.mkfifo(path)
        fds = [os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in paths]
        env = {"AGENT": agent, "COMMANDS": paths[0], "ANSWERS": paths[1]}
        made = Job(target(JOB, env=env, name="job.py", python=python), *fds)
        opened.append(made)
        return made

    yield make
    for made in opened:
        os.close(made.commands)
        made.answers.close()


def snapshot_by_name(client):
    return {thread["name"]: thread for thread in threads_of(client.call("threads"))}


def cpu_seconds(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- what it says -----------------------------------------------------------------------------------------------

def test_hello_tells_the_facts(job):
    j = job()
    with Client(j.start()) as client:
        target = client.hello["target"]
    assert client.hello["version"] == 1
    assert client.hello["limits"]["max_message"] == 1 << 20
    assert target["pid"] == j.pid
    assert target["cmdline"].endswith("job.py")
    assert target["uid"] == os.geteuid()
    assert target["host"] == socket.gethostname()
    assert target["torch"] is None and target["rank"] is None
    assert abs(target["started_at"] - time.time()) < 120
    version = subprocess.run([target["exe"], "-c", "import platform; print(platform.python_version())"],
                             capture_output=True, text=True, check=True).stdout.strip()
    assert target["python"] == version


@pytest.mark.parametrize("minor", ["3.9", "3.10", "3.11", "3.12", "3.13"])
def test_stacks_are_what_the_job_itself_sees(job, python_for, minor):
    j = job(python_for(minor))
    for command in ("spawn('wait', wait_for_ever)", "spawn('schläft 主', schläft_主)", "spawn('deep', recurse, 900)"):
        j.do(command)
    with Client(j.start()) as client:
        told = j.do("at_rest()")
        # Until the next command the main thread waits in os.read: only its own innermost frames are others than it told.
        seen = {str(t["tid"]): t for t in threads_of(client.call("threads"))}
    assert set(told) == set(seen)
    for tid, thread in told.items():
        frames = [[f["func"], f["file"], f["line"]] for f in seen[tid]["frames"]]
        assert seen[tid]["name"] == thread["name"]
        assert not seen[tid]["torn"]
        if int(tid) == j.pid:
            assert frames[0][0] == "<module>" and seen[tid]["name"] == "MainThread"
            continue
        assert len(frames) == len(thread["stack"])
        for (func, file, line), (told_func, told_file, told_line) in zip(frames, thread["stack"]):
            assert (func.rpartition(".")[2], file, line) == (told_func.rpartition(".")[2], told_file, told_line)


def test_own_threads_are_left_out(job):
    j = job()
    with Client(j.start()) as client:
        snapshot = client.call("threads")
        own = set(j.agent_threads().values())
    assert len(own) == 2
    assert not own & {t["tid"] for t in threads_of(snapshot)}
    assert snapshot["process"]["n_threads"] == len(threads_of(snapshot)) + 2
    assert 0 < snapshot["process"]["agent_rss_bytes"] < 8 << 20


def test_gil_held_for_ever(job):
    j = job()
    endpoint = j.start()
    j.do("spawn('waits', hot_loop)")
    j.tell("spawn('keeper', keep_the_gil)")
    deadline = time.monotonic() + 20
    while True:
        started = time.monotonic()
        with Client(endpoint) as client:
            threads = snapshot_by_name(client)
            assert client.call("status")["clients"] == 1
        if "keeper" in threads and threads["keeper"]["gil"] == HELD and threads["waits"]["gil"] == WAITING:
            break
        assert time.monotonic() < deadline, threads
    assert time.monotonic() - started < 1
    assert threads["keeper"]["frames"][0]["func"] == "keep_the_gil"
    assert threads["waits"]["frames"][-1]["func"].endswith("_bootstrap")


# --- streams ----------------------------------------------------------------------------------------------------

def test_snapshots_come_at_the_rate(job):
    j = job()
    with Client(j.start()) as client:
        client.subscribe("threads", 20)
        times = [client.notification("threads")["timestamp"] for _ in range(20)]
        gaps = [b - a for a, b in zip(times, times[1:])]
        assert 0.04 < statistics.median(gaps) < 0.1
        assert client.call("unsubscribe", {"stream": "threads"}) == {}
        client.notifications.clear()
        client.connection.socket.settimeout(0.5)
        with pytest.raises(socket.timeout):
            client.message()


def test_sessions_share_snapshots(job):
    j = job()
    endpoint = j.start()
    clients = [Client(endpoint) for _ in range(4)]
    for client in clients:
        client.subscribe("threads", 10)
    seqs = [[client.notification("threads")["seq"] for _ in range(8)] for client in clients]
    for client in clients:
        client.close()
    distinct = {seq for seen in seqs for seq in seen}
    assert len(distinct) < 24  # 32 were received


def test_samples_show_where_the_time_goes(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    j.do("spawn('asleep', wait_for_ever)")
    profile = Profile()
    with Client(j.start()) as client:
        client.subscribe("samples", 200)
        while sum(s["thread"] == "hot" for s in profile.samples) < 150:
            batch = client.notification("samples")
            profile.feed(batch)
            assert batch["dropped"] == 0
            assert 1000 < batch["period_us"] < 1e6
        status = client.call("status")
    hot = [s for s in profile.samples if s["thread"] == "hot" and s["on_cpu"]]
    asleep = [s for s in profile.samples if s["thread"] == "asleep"]
    assert len(hot) > 10
    assert sum(s["frames"][0] in ("hot_inner", "hot_loop") for s in hot) > 0.9 * len(hot)
    assert sum("hot_loop" in s["frames"] for s in hot) > 0.9 * len(hot)
    assert all("wait_for_ever" in s["frames"] and not s["torn"] for s in asleep)
    assert not any(s["on_cpu"] for s in asleep[1:])
    assert status["rate_hz"] == 200
    assert status["samples"] >= len(profile.samples)
    assert status["us_per_sample"] > 0


def test_a_second_subscriber_gets_all_definitions(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    endpoint = j.start()
    with Client(endpoint) as first, Client(endpoint) as second:
        first.subscribe("samples", 100)
        one, two = Profile(), Profile()
        for _ in range(3):
            one.feed(first.notification("samples"))
        second.subscribe("samples", 50)
        for _ in range(3):
            two.feed(second.notification("samples"))  # it refers to nothing it was not told
        second.call("unsubscribe", {"stream": "samples"})
        second.notifications.clear()
        second.subscribe("samples", 50)
        again = Profile()
        again.feed(second.notification("samples"))
    assert two.samples and again.samples


def test_cost_stays_within_the_budget(job):
    j = job()
    for n in range(20):
        j.do(f"spawn('deep {n}', recurse, 100)")
    for n in range(3):
        j.do(f"spawn('hot {n}', hot_loop)")
    with Client(j.start()) as client:
        client.subscribe("samples", 1000)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            client.notification("samples")
        tid = j.agent_threads()["probing-smp"]
        before, since = cpu_seconds(j.pid, tid), time.monotonic()
        while time.monotonic() < since + 4:
            client.notification("samples")
        pct = 100 * (cpu_seconds(j.pid, tid) - before) / (time.monotonic() - since)
        status = client.call("status")
    assert status["budget_pct"] == 1
    assert status["stretched"] is True
    assert pct < 3  # the clock of /proc counts in hundredths of a second


def test_nobody_asks_nothing_happens(job):
    j = job()
    with Client(j.start()) as client:
        client.subscribe("samples", 100)
        client.notification("samples")
        tid = j.agent_threads()["probing-smp"]
    path = f"/proc/{j.pid}/task/{tid}/status"

    def switches():
        with open(path, encoding="utf-8", errors="replace") as status:
            return [line for line in status if line.startswith("voluntary_ctxt_switches")][0]

    deadline = time.monotonic() + 10
    while True:
        before = switches()
        time.sleep(1)
        if switches() == before:
            break
        assert time.monotonic() < deadline, "the sampler wakes up though nobody is there"


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
    assert j.do("look()")["threads"] == 3


def test_a_slow_reader_loses_and_is_told(job):
    j = job()
    j.do("spawn('deep', recurse, 150)")
    endpoint = j.start()
    with Client(endpoint) as slow, Client(endpoint) as quick:
        slow.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.subscribe("threads", 30)
        slow.subscribe("samples", 100)
        quick.subscribe("threads", 30)
        deadline = time.monotonic() + 60
        while quick.notification("threads")["seq"] < 170:
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
        for _ in range(1000000):
            greedy.send("threads")
    assert ended.type is Closed
    assert_serves(endpoint)


def test_a_stranger_is_turned_away(job):
    if os.geteuid() != 0:
        pytest.skip("needs root: to be another user")
    endpoint = job().start()
    folder = os.path.dirname(endpoint)
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
            client.send("eject")
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


def test_reading_while_threads_come_and_go(job):
    """Threads that live for a moment, at a high rate: nothing crashes, every message is whole."""
    j = job()
    j.do("spawn('breeder', exec, 'while True:\\n t = threading.Thread(target=hot_inner)\\n t.start()\\n t.join()', globals())")
    profile = Profile()
    with Client(j.start()) as client:
        client.subscribe("samples", 1000)
        client.subscribe("threads", 30)
        seen = threading.Event()
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            message = client.message()
            if message[:2] == [2, "samples"]:
                profile.feed(message[2])
                seen.set()
            elif message[:2] == [2, "threads"]:
                assert threads_of(message[2])
    assert seen.is_set() and j.target.alive()


def test_golden_bytes_are_what_they_say(source_dir):
    """The files that the C code must write, read by this other implementation."""
    folder = os.path.join(source_dir, "tests", "wire", "golden")
    messages = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            messages[name.partition(".")[0]] = agent_wire.unpack(file.read())
    assert messages["hello"] == [0, 1, "hello", {"version": 1, "client": "0.1.0"}]
    assert messages["subscribe"] == [0, 3, "subscribe", {"stream": "samples", "rate_hz": 100.0}]
    assert messages["error"] == [1, 5, {"code": 2, "message": "the first request must be hello"}, None]
    assert messages["target"][3]["target"]["rank"] is None
    main, autograd = threads_of(messages["threads_notify"][2])
    assert [f["func"] for f in main["frames"]] == ["Trainer.step", "<module>"]
    assert (main["gil"], main["state"], main["on_cpu"]) == (HELD, "R", 1)
    assert autograd["cpu_pct"] is None and autograd["on_cpu"] is None and autograd["name"] is None
    profile = Profile()
    profile.feed(messages["samples"][2])
    assert profile.samples[0]["frames"] == ["Trainer.step", "<module>"]
    assert messages["chunk"][2]["data"] == b"a short one"
    assert struct.pack(">B", len(messages)) == b"\x0d"
