# SPDX-License-Identifier: Apache-2.0
"""The injector on real processes, with a tiny agent of the tests' own: the job goes on, nothing is left, refusals."""

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from conftest import run_command, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Counts its steps in a file of 8 bytes, mapped, so that the last step is there even while the GIL is held for ever.
COUNTER = """
import ctypes, mmap, os, struct, sys, threading, time
_file = open(sys.argv[1], "r+b")
_page = mmap.mmap(_file.fileno(), 64)
class Cell(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_uint64), ("bad", ctypes.c_uint64)]
cell = Cell.from_buffer(_page)
def ready():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
"""


class Job:
    """A target with a shared cell: steps it has done and things that went wrong in it."""

    def __init__(self, target, path):
        self.target = target
        self.pid = target.pid
        self.path = path

    def cell(self):
        with open(self.path, "rb") as file:
            return struct.unpack("QQ", file.read(16))

    def goes_on(self):
        """Steps rise and nothing of it is stopped."""
        before = self.cell()[0]
        wait_until(lambda: self.cell()[0] > before, 10, "the job's next step")
        wait_until(lambda: not any(state in "tT" for state in self.states().values()), 5, "no thread to be stopped")
        assert self.cell()[1] == 0, f"{self.cell()[1]} things went wrong in the job"

    def status(self, tid, key):
        with open(f"/proc/{self.pid}/task/{tid}/status", encoding="utf-8", errors="replace") as file:
            return re.search(rf"^{key}:\s*(\S+)", file.read(), re.M).group(1)

    def states(self):
        found = {}
        for tid in self.target.tids():
            try:
                found[tid] = self.status(tid, "State")
            except (OSError, AttributeError):
                continue
        return found

    def masks(self, tids):
        return {tid: self.status(tid, "SigBlk") for tid in tids}

    def maps(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()

    def code(self):
        """Executable mappings, without addresses' growth: where code is."""
        return sorted(line.split()[0] for line in self.maps() if line.split()[1][2] == "x")

    def memory_files(self):
        return [link for link in self.target.fds().values() if "libprobing" in link]


@pytest.fixture(scope="session")
def compile_agent(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    folder = tmp_path_factory.mktemp("agents")
    with open(os.path.join(ROOT, "VERSION"), encoding="ascii") as file:
        version = file.read().strip()

    def build(name, *flags, version=version):
        out = str(folder / f"{name}.so")
        subprocess.run([compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-D_GNU_SOURCE",
                        f"-I{ROOT}/src", f'-DAGENT_TEST_VERSION="{version}"', "-pthread", *flags, "-o", out,
                        os.path.join(HERE, "inject_agent", "agent.c")], check=True)
        return out
    return build


@pytest.fixture(scope="session")
def agent(compile_agent):
    return compile_agent("good")


@pytest.fixture(scope="session")
def broken_agent(compile_agent):
    """Passes every check from outside, but cannot be loaded."""
    return compile_agent("broken", "-DAGENT_TEST_UNDEFINED", "-Wl,-z,now")


@pytest.fixture(scope="session")
def vectors(build_dir):
    path = os.path.join(build_dir, "tests", "targets", "inject_vectors.so")
    assert os.path.exists(path), f"{path} is not built"
    return path


@pytest.fixture(scope="session")
def tool(build_dir):
    path = os.path.join(build_dir, "tests", "tools", "inject_once")
    assert os.path.exists(path), f"{path} is not built"
    return path


@pytest.fixture
def inject(tool, ptrace):
    """Injects and returns the result; the target may be on a busy machine, so it gets more time than a user's."""
    def run(pid, agent_path, timeout_ms=8000):
        return run_command([tool, pid, agent_path, timeout_ms])
    return run


@pytest.fixture
def job(target, tmp_path):
    def start(body, *args, **options):
        path = str(tmp_path / "cell")
        with open(path, "wb") as file:
            file.write(bytes(64))
        return Job(target(COUNTER + body, path, *args, **options), path)
    return start


def endpoint_of(result):
    assert os.path.exists(result["endpoint"]), result
    return result["endpoint"]


# --- the job goes on --------------------------------------------------------------------------------------------

SLEEP = """
ready()
while True:
    time.sleep(0.02)
    cell.steps += 1
"""

LOCK = """
lock = threading.Lock()
lock.acquire()
def count():
    while True:
        time.sleep(0.02)
        cell.steps += 1
threading.Thread(target=count, daemon=True).start()
ready()
lock.acquire()
"""

SELECT = """
import select
ready()
while True:
    select.select([], [], [], 0.02)
    cell.steps += 1
"""

EPOLL = """
import select
poll = select.epoll()
ready()
while True:
    poll.poll(0.02)
    cell.steps += 1
"""

BUSY = """
ready()
while True:
    cell.steps += 1
    if sum(i * i for i in range(200)) != 2646700:
        cell.bad += 1
"""

MANY = """
def work(n):
    while True:
        time.sleep(0.005 + n * 0.0005)
        bytearray(n * 5000)
        cell.steps += 1
for n in range(60):
    threading.Thread(target=work, args=(n,), daemon=True).start()
ready()
while True:
    time.sleep(1)
"""

DEEP = """
def down(n):
    if n:
        return down(n - 1)
    ready()
    while True:
        time.sleep(0.02)
        cell.steps += 1
sys.setrecursionlimit(5000)
down(900)
"""


@pytest.mark.parametrize("body", [SLEEP, LOCK, SELECT, EPOLL, BUSY, MANY, DEEP],
                         ids=["sleep", "lock", "select", "epoll", "busy", "60-threads", "deep"])
def test_the_job_goes_on(job, inject, agent, body):
    running = job(body)
    tids = running.target.tids()
    masks, code = running.masks(tids), running.code()
    first = inject(running.pid, agent).ok().json()
    assert not first["already"] and not first["reused"]
    assert first["borrowed_tid"] in tids and first["moment"]
    endpoint_of(first)
    running.goes_on()
    assert running.masks(tids) == masks
    # The agent's own code is new; the pages of ours and the memory file are gone.
    wait_until(lambda: not running.memory_files(), 5, "the memory file to be closed")
    ours = [line.split()[0] for line in running.maps() if "memfd:libprobing" in line and line.split()[1][2] == "x"]
    assert len(ours) == 1
    wait_until(lambda: running.code() == sorted(code + ours), 5, "our code page to be unmapped")
    second = inject(running.pid, agent).ok().json()
    assert second["already"] and second["stopped_us"] == 0 and second["endpoint"] == first["endpoint"]


def test_every_python(job, inject, agent, each_python):
    running = job(SLEEP, python=each_python)
    assert not inject(running.pid, agent).ok().json()["already"]
    running.goes_on()


def test_training_with_torch(training, inject, agent):
    before = training.counter()
    result = inject(training.pid, agent).ok().json()
    assert not result["already"]
    wait_until(lambda: training.counter() > before + 1, 60, "the training's next steps")
    assert training.state() in "RSD"


VECTORS = """
native = ctypes.PyDLL(sys.argv[2])
ready()
native.vectors_run(ctypes.byref(cell))
"""


def test_gil_held_for_ever(job, inject, agent, vectors):
    """One thread, which holds the GIL in C and never makes a system call."""
    running = job(VECTORS, vectors)
    running.goes_on()
    result = inject(running.pid, agent).ok().json()
    assert result["moment"].startswith("running")
    running.goes_on()


def test_vector_registers_survive(job, inject, broken_agent, vectors):
    """The only thread there is to borrow computes in vector registers; 25 injections change none of them."""
    running = job(VECTORS, vectors)
    running.goes_on()
    for _ in range(25):
        assert "could not load the agent" in inject(running.pid, broken_agent).stderr
    running.goes_on()


@pytest.mark.parametrize("call", ["epoll", "nanosleep", "recv", "sigtimedwait", "semtimedop"])
def test_calls_see_no_eintr(job, inject, broken_agent, vectors, call):
    """The only thread sits in a call that the kernel ends with EINTR after a stop."""
    running = job("""
native = ctypes.CDLL(sys.argv[2])
function = getattr(native, "eintr_" + sys.argv[3])
ready()
while True:
    cell.bad += function()
    cell.steps += 1
""", vectors, call)
    running.goes_on()
    for _ in range(10):
        assert inject(running.pid, broken_agent).status == 3
    running.goes_on()


def test_two_hundred_times(job, inject, broken_agent):
    """Nothing adds up: threads, descriptors, executable pages and mappings are as after the first time."""
    running = job(MANY.replace("range(60)", "range(12)"))
    inject(running.pid, broken_agent)
    code, fds, tids = running.code(), running.target.fds(), running.target.tids()
    mappings = len(running.maps())
    deadline = time.monotonic() + 20
    times = 0
    while times < 200 and time.monotonic() < deadline:
        assert "could not load the agent" in inject(running.pid, broken_agent).stderr
        times += 1
    assert times >= 20
    running.goes_on()
    wait_until(lambda: running.target.tids() == tids, 5, "our threads to be gone")
    assert running.code() == code
    assert running.target.fds() == fds
    assert len(running.maps()) <= mappings + 8  # arenas of the job's own allocator come and go


# --- nothing is left when it fails --------------------------------------------------------------------------------

def check_nothing_left(running, before):
    code, fds, tids, masks = before
    wait_until(lambda: running.target.tids() == tids, 10, "our threads to be gone")
    wait_until(lambda: running.code() == code, 10, "our pages to be gone")
    assert running.target.fds() == fds
    assert running.masks(tids) == masks
    running.goes_on()


def snapshot(running):
    tids = running.target.tids()
    return running.code(), running.target.fds(), tids, running.masks(tids)


def test_an_agent_that_does_not_load(job, inject, broken_agent):
    running = job(SLEEP)
    before = snapshot(running)
    result = inject(running.pid, broken_agent)
    assert result.status == 3 and "a_function_that_does_not_exist" in result.stderr
    assert result.stderr.count("\n") == 1
    check_nothing_left(running, before)


def test_an_agent_that_refuses(job, inject, compile_agent):
    running = job(SLEEP)
    tids, fds = running.target.tids(), running.target.fds()
    result = inject(running.pid, compile_agent("refuses", "-DAGENT_TEST_FAILS"))
    assert result.status == 3 and "the test says no" in result.stderr
    wait_until(lambda: running.target.tids() == tids, 10, "our threads to be gone")
    assert running.target.fds() == fds
    running.goes_on()


def test_no_memory_for_a_thread(job, inject, agent):
    """RLIMIT_AS leaves no room: the system call on the borrowed thread or pthread_create fails, the job notices nothing."""
    running = job("""
import resource
ready()
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 1024, used + 400 * 1024))
cell.steps = 1
while True:
    time.sleep(0.02)
    cell.steps += 1
""")
    wait_until(lambda: running.cell()[0] > 0, 5, "the limit")
    before = snapshot(running)
    result = inject(running.pid, agent)
    assert result.status == 3 and str(running.pid) in result.stderr
    check_nothing_left(running, before)


@pytest.mark.parametrize("kind", ["threads", "registers"])
def test_the_injector_is_killed_at_any_moment(job, tool, inject, broken_agent, agent, vectors, kind):
    """SIGKILL, 120 times: the borrowed thread puts itself back, with all its registers and its mask."""
    running = job(VECTORS, vectors) if kind == "registers" else job(MANY.replace("range(60)", "range(6)"))
    running.goes_on()
    tids = running.target.tids()
    masks = running.masks(tids)
    whole = time.monotonic()
    inject(running.pid, broken_agent)
    whole = time.monotonic() - whole
    rng = random.Random(7)
    for _ in range(120):
        process = subprocess.Popen([tool, str(running.pid), broken_agent], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        until = time.monotonic() + rng.uniform(0, whole)
        while time.monotonic() < until:
            pass
        process.kill()
        process.wait()
    running.goes_on()
    wait_until(lambda: running.target.tids() == tids, 20, "the threads of killed injections to give up")
    assert running.masks(tids) == masks
    wait_until(lambda: not running.memory_files(), 5, "their memory files to be closed")
    inject(running.pid, agent).ok()
    running.goes_on()


def test_interrupted_by_the_user(job, tool, broken_agent, ptrace):
    """^C, SIGTERM and SIGHUP are answered when the job is as before."""
    running = job(MANY.replace("range(60)", "range(6)"))
    before = None
    rng = random.Random(11)
    for turn in range(60):
        process = subprocess.Popen([tool, str(running.pid), broken_agent], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + rng.uniform(0, 0.01)
        while time.monotonic() < until:
            pass
        process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[turn % 3])
        process.wait(10)
        now = snapshot(running)
        before = before or now
    check_nothing_left(running, before)


def test_two_at_the_same_time_load_one(job, tool, agent, ptrace):
    running = job(SLEEP)
    processes = [subprocess.Popen([tool, str(running.pid), agent, "8000"], stdout=subprocess.PIPE, text=True)
                 for _ in range(4)]
    answers = [json.loads(process.communicate(timeout=30)[0]) for process in processes]
    assert sorted(answer["already"] for answer in answers) == [False, True, True, True]
    assert len([line for line in running.maps() if "memfd:libprobing" in line and line.split()[1][2] == "x"]) == 1
    running.goes_on()


# --- an agent that is there already ---------------------------------------------------------------------------------

def park(result):
    """The test agent closes its socket and ends its thread; its code stays."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(result["endpoint"])
        sock.send(b"p")
        sock.recv(1)
    wait_until(lambda: not os.path.exists(result["endpoint"]), 5, "the agent to park")


def test_a_parked_agent_is_used_again(job, inject, agent):
    running = job(SLEEP)
    tids = running.target.tids()
    first = inject(running.pid, agent).ok().json()
    code = None
    for _ in range(3):
        park(first)
        wait_until(lambda: running.target.tids() == tids, 5, "the agent's thread to end")
        again = inject(running.pid, agent).ok().json()
        assert again["reused"] and not again["already"]
        wait_until(lambda: not [line for line in running.maps() if line.split()[1] == "r-xp" and len(line.split()) == 5],
                   5, "our pages to be gone")
        code = code or running.code()
        assert running.code() == code
    running.goes_on()


def test_a_parked_agent_of_another_version(job, inject, agent, compile_agent, tmp_path):
    """What is mapped decides: a library of our name with another version is named and left alone."""
    folder = tmp_path / "other"
    folder.mkdir()
    shutil.copy(compile_agent("other", version="0.0.7"), folder / "libprobing.so")
    running = job("""
ctypes.CDLL(sys.argv[2])
""" + SLEEP, str(folder / "libprobing.so"))
    before = snapshot(running)
    result = inject(running.pid, agent)
    assert result.status == 3 and "0.0.7" in result.stderr and "restart" in result.stderr
    check_nothing_left(running, before)


# --- refusals ---------------------------------------------------------------------------------------------------------

def refusal(result, status, *words):
    assert result.status == status, result
    assert result.stderr.count("\n") == 1 and not result.stdout, result
    for word in words:
        assert word in result.stderr, result


def test_no_such_process(inject, agent):
    process = subprocess.Popen(["true"])
    process.wait()
    refusal(inject(process.pid, agent), 3, "no process", str(process.pid))


def test_a_zombie(inject, agent):
    process = subprocess.Popen(["true"])
    try:
        wait_until(lambda: open(f"/proc/{process.pid}/stat").read().split()[2] == "Z", 5, "the zombie")
        refusal(inject(process.pid, agent), 3, "zombie")
    finally:
        process.wait()


def test_a_stopped_job(job, inject, agent):
    running = job(SLEEP)
    os.kill(running.pid, signal.SIGSTOP)
    wait_until(lambda: running.target.state() == "T", 5, "the job to stop")
    refusal(inject(running.pid, agent), 3, "stopped", "kill -CONT")
    assert running.target.state() == "T"
    os.kill(running.pid, signal.SIGCONT)
    running.goes_on()


def test_a_traced_job(job, inject, agent, tmp_path):
    running = job(SLEEP)
    tracer = subprocess.Popen(["python3", "-c", """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
assert libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0
print("tracing", flush=True)
sys.stdin.read()
""", str(running.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert tracer.stdout.readline() == "tracing\n"
        refusal(inject(running.pid, agent, 500), 3, "traced", str(tracer.pid))
    finally:
        tracer.communicate()
    running.goes_on()


def test_of_another_user(job, tool, agent, ptrace, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: another user's process")
    nobody = 65534
    copy = shutil.copy(tool, "/tmp/")
    try:
        os.chmod(copy, 0o755)
        running = job(SLEEP)
        done = subprocess.run([copy, str(running.pid), agent], capture_output=True, text=True, user=nobody,
                              group=nobody, extra_groups=[])
        assert done.returncode == 3 and "another user" in done.stderr and done.stderr.count("\n") == 1, done
        running.goes_on()
    finally:
        os.unlink(copy)


def test_not_a_library_program(inject, agent, tmp_path):
    """A program without the C library, and the kernel's own threads."""
    kernel = [pid for pid in os.listdir("/proc") if pid.isdigit() and not os.path.exists(f"/proc/{pid}/exe")
              and is_kernel_thread(pid)]
    if not kernel:
        pytest.skip("needs kthreads: none is visible in this pid namespace")
    refusal(inject(int(kernel[0]), agent), 3, "kernel")


def is_kernel_thread(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[6]) & 0x200000 != 0
    except OSError:
        return False


def test_a_static_program(inject, agent, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    if subprocess.run([compiler, "-static", "-o", program, source], capture_output=True).returncode != 0:
        pytest.skip("needs static-libc: no static C library")
    process = subprocess.Popen([program])
    try:
        wait_until(lambda: open(f"/proc/{process.pid}/comm").read() == "static\n", 5, "the program to run")
        refusal(inject(process.pid, agent), 3, "statically linked")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("content,words", [(None, ["cannot open"]), (b"", ["not the agent"]),
                                           (b"#!/bin/sh\n" * 100, ["no 64-bit x86 shared library"]),
                                           (b"\x7fELF\x02\x01\x01" + bytes(200), ["no 64-bit x86 shared library"])],
                         ids=["missing", "empty", "script", "broken"])
def test_a_file_that_is_no_agent(job, inject, tmp_path, content, words):
    running = job(SLEEP)
    path = tmp_path / "agent.so"
    if content is not None:
        path.write_bytes(content)
    refusal(inject(running.pid, str(path)), 1, str(path), *words)
    running.goes_on()


def test_an_agent_without_entry_or_of_another_version(job, inject, compile_agent):
    running = job(SLEEP)
    before = snapshot(running)
    refusal(inject(running.pid, compile_agent("noentry", "-DAGENT_TEST_NO_ENTRY")), 1, "probing_start")
    refusal(inject(running.pid, compile_agent("old", version="9.9.9")), 1, "9.9.9")
    check_nothing_left(running, before)


def test_a_prompt_is_borrowed_only_as_the_last_choice(job, inject, agent):
    """One thread, asleep in read(2) inside fgets: it holds the stream's lock, and will for ever."""
    running = job("""
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
reader, writer = os.pipe()
stream = libc.fdopen(reader, b"r")
buffer = ctypes.create_string_buffer(16)
ready()
libc.fgets(buffer, 16, ctypes.c_void_p(stream))
""")

    def asleep_in_read():
        with open(f"/proc/{running.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("0 ")
    wait_until(asleep_in_read, 5, "the job to read")
    result = inject(running.pid, agent).ok().json()
    assert result["moment"] == "asleep in read, holding a stream's lock"
