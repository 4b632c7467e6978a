# SPDX-License-Identifier: Apache-2.0
"""Attaching as root to processes of another user that lie about what they are, or hold up whoever looks (tests/liars/target_*.py): what they
name is neither opened nor changed, it ends in its time with one line, and what is left of it is nothing."""

import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import ROOT, processes_about, run_command, wait_until

LIARS = os.path.join(ROOT, "tests", "liars")
SECRET = "TOP-SECRET\n"
LIMIT_S = 90  # a look at hostile memory has bounds of seconds, and a report takes several

# Lies about the memory file, and what is said of them.
ANSWERS = {
    "answered_file": "a file on a file system", "answered_fifo": "a FIFO", "answered_device": "a device", "answered_socket": "a socket",
    "answered_full": "not empty", "answered_other": "another memory file", "answered_sealed": "Operation not permitted",
    "answered_readonly": "not open for writing", "answered_unlinked": "a file on a file system", "answered_number": "cannot be opened",
    "exchanged": "",
}


@pytest.fixture
def scratch():
    """A folder of everybody's, with victims of root's in it; afterwards they have to be as they were."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it looks at processes of another user")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="probing-liars-"))  # pytest's own is closed to others
    os.chmod(folder, 0o777)
    victims = folder / "victims"
    victims.mkdir(mode=0o755)
    (victims / "secret").write_text(SECRET)
    os.chmod(victims / "secret", 0o600)
    os.mkfifo(victims / "fifo", 0o600)
    try:
        os.mknod(victims / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"needs a device node: {error}")
    before = look(victims)
    yield folder
    after, text = look(victims), (victims / "secret").read_text()
    shutil.rmtree(folder)
    assert (after, text) == (before, SECRET)


def look(victims):
    return {name: (s.st_mode, s.st_uid, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_nlink)
            for name, s in ((name, os.lstat(victims / name)) for name in sorted(os.listdir(victims)))}


@pytest.fixture
def liar(scratch, build_dir, ptrace):
    """Starts one of tests/liars, ready; it is ended after the test."""
    started = []

    def start(name, python=sys.executable, **env):
        path = os.path.join(LIARS, f"target_{name}.py")
        process = subprocess.Popen([python, path, str(scratch)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True, env=dict(os.environ, PROBING_BUILD=build_dir, **env))
        started.append(process)
        line = process.stdout.readline()
        if line.startswith("needs "):
            pytest.skip(line.strip())
        assert line == "ready\n", line + process.stdout.read()
        return process
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def attach(build_dir, pid, *verb, sent=None, after_s=1.0, limit_s=LIMIT_S):
    """Status, output, seconds; `sent`: a signal it gets after a while."""
    program = "probing-top" if verb[0] == "--export" else "probing"
    began = time.monotonic()
    command = [os.path.join(build_dir, program), *verb, str(pid)] if program == "probing-top" else [os.path.join(build_dir, program), str(pid), *verb]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        if sent:
            time.sleep(after_s)  # nothing tells when it is held; a signal at another moment has to end it as well
            process.send_signal(sent)
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"{command} did not end within {limit_s} s")
    return process.returncode, out, err, time.monotonic() - began


def threads(pid):
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as comm:
                names.append(comm.read().strip())
        except OSError:
            continue
    return names


@pytest.mark.parametrize("name", ANSWERS)
def test_a_memory_file_that_is_none(liar, build_dir, name):
    """One line that says what it is instead; looked at it is all the same, from outside; nothing of ours stays in it."""
    process = liar(name)
    status, out, err, seconds = attach(build_dir, process.pid, "inject", "--timeout", "4s")
    assert seconds < 15
    if name == "exchanged" and status == 0:
        return  # it was the agent's own file each time that it was looked at; the victims are as they were
    assert (status, out) == (3, ""), (status, out, err)
    assert err.startswith("probing: process ") and err.count("\n") == 1 and ANSWERS[name] in err, err
    status, out, err, _ = attach(build_dir, process.pid, "--export", "txt", "--once")
    if name == "exchanged" and status == 0 and "CONNECTED" in out:
        return
    assert status == 0 and "READ-ONLY" in out, (status, out, err)
    wait_until(lambda: not [name for name in threads(process.pid) if name.startswith("probing")], 10, "no thread of ours")
    assert process.poll() is None


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("name", ["execs", "execs_leader"])
def test_another_program_begins(liar, build_dir, name, nth):
    """At each call: the one that has begun runs on as if nobody had been there."""
    process = liar(name, LIAR_NTH=str(nth))
    status, out, err, seconds = attach(build_dir, process.pid, "inject", "--timeout", "4s")
    assert (status, out) == (4, ""), (status, out, err)
    assert err == f"probing: process {process.pid} started another program (exec) while it was being attached to: the new program was not touched\n"
    assert seconds < 15 and process.poll() is None
    assert not [name for name in threads(process.pid) if name.startswith("probing")]
    with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as text:
        status = dict(line.split(":\t", 1) for line in text.read().splitlines() if ":\t" in line)
    assert status["TracerPid"] == "0" and status["State"][0] in "RSD"


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("name, ends", [("exits", (4,)), ("stops", (0, 1, 3)), ("forks", (0, 3))])
def test_at_every_call(liar, build_dir, name, ends, nth):
    process = liar(name, LIAR_NTH=str(nth))
    status, _, err, seconds = attach(build_dir, process.pid, "inject", "--timeout", "3s")
    assert status in ends and err.count("\n") == (status != 0), (status, err)
    assert seconds < 20


def test_forged_libraries(liar, build_dir):
    process = liar("forged_libraries")
    status, _, err, _ = attach(build_dir, process.pid, "inject")
    assert status == 3 and err.count("\n") == 1, err
    status, out, err, _ = attach(build_dir, process.pid, "--export", "txt", "--once")
    assert status == 0 and "READ-ONLY" in out, err


# ---- interpreters that lie about themselves ----

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MEMORY_KB = 256 * 1024
LOOKS = (("backtrace", "--no-inject", "--locals", "--tasks"), ("backtrace", "--locals", "--tasks"),
         ("flamegraph", "--duration", "300ms", "--format", "folded"), ("flamegraph", "--duration", "300ms", "--format", "folded", "--no-inject"),
         ("report", "--duration", "300ms", "--format", "md"), ("--export", "txt", "--once"))
FORGED = [("frames", "all"), ("codes", "all"), ("values", "all"),
          *(("threads", form) for form in ("itself", "circle", "empty", "deep", "idents", "stranger", "flipping", "place-1")),
          *(("interpreters", form) for form in ("itself", "circle", "thousands", "modules", "names", "threads", "said-0", "log-41", "key-2"))]


def busy_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def look_at(build_dir, process, what, allowed):
    """One that ends in time, takes little, says one line when it cannot, writes nothing that a terminal obeys, and harms nobody."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    status, out, err, _ = attach(build_dir, process.pid, *what)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # the most that any of ours has ever taken
    assert status in allowed and err.count("\n") <= 1, (what, status, err)
    assert after == before or after < MEMORY_KB, (what, after)
    assert not OBEYED.search(err) and not OBEYED.search(out), (what, err, OBEYED.findall(out)[:5])
    assert process.poll() is None, what
    return out


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("minor", ["3.11", "3.13"])
@pytest.mark.parametrize("name, form", FORGED)
def test_forged_memory(liar, build_dir, python_for, minor, name, form):
    """Its own lists, frames, functions and values lie: what can be seen is shown, by the agent in it and from outside, and it goes on."""
    process = liar(f"forged_{name}", python_for(minor), LIAR_FORM=form)
    for what in LOOKS:
        look_at(build_dir, process, what, (0,))
    before, began = busy_s(process.pid), time.monotonic()
    look_at(build_dir, process, ("backtrace",), (0,))
    assert busy_s(process.pid) - before < 5 + (time.monotonic() - began if form == "flipping" else 0)
    look_at(build_dir, process, ("eject",), (0,))


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", ["frame", "letters", "thread", "interpreter"])
def test_forged_memory_that_never_answers(liar, build_dir, form):
    process = liar("forged_silent", LIAR_FORM=form)
    for what in (("backtrace", "--no-inject"), ("backtrace",), ("status",)):
        look_at(build_dir, process, what, (0, 1, 3))
    assert attach(build_dir, process.pid, "backtrace", "--no-inject", sent=signal.SIGINT)[3] < 10


# ---- a page that does not come ----

MAPS_SLOW = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = libc.mmap(0x100000, 65536, 5, 0x12, os.open(sys.argv[1], os.O_RDONLY), 0)
assert at == 0x100000
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.1)
"""


@pytest.fixture
def slow(tmp_path):
    """A folder in which every file can be mapped and none be read; and what lets go of whoever waits."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a file system is mounted")
    folder = tmp_path / "slow"
    folder.mkdir()
    server = subprocess.Popen([sys.executable, os.path.join(ROOT, "tests", "functional", "slow_files.py"), str(folder)], stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline().strip()
    if line != "ready":
        server.wait()
        pytest.skip(line)

    def end():
        server.terminate()
        server.wait()
    yield folder, end
    end()
    server.stdout.close()


@pytest.mark.timeout(120)
def test_a_page_that_does_not_come(slow, target, build_dir, ptrace):
    """Neither the time limit nor ^C waits for it, and whoever looked is gone when it comes."""
    folder, end = slow
    job = target(MAPS_SLOW, folder / "libc.so.6")
    status, out, err, seconds = attach(build_dir, job.pid, "inject", "--timeout", "2s")
    assert status == 3 and "blocks its reader" in err and err.count("\n") == 1, (status, out, err)
    assert seconds < 15
    for sent in (signal.SIGINT, signal.SIGTERM):
        status, out, err, seconds = attach(build_dir, job.pid, "inject", "--timeout", "60s", sent=sent)
        assert seconds < 12 and "interrupted" in err, (status, out, err, seconds)
    assert attach(build_dir, job.pid, "--export", "txt", "--once", sent=signal.SIGINT)[3] < 12
    end()
    wait_until(lambda: not processes_about(job.pid), 20, "those who were held to be gone")
    assert job.alive()


def test_it_runs_another_program_from_now_on(target, probing, tmp_path):
    """Watched from outside: what runs then is not shown as if it was the job."""
    source = "import os, sys, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.01)\n" \
             "os.execv('/bin/sleep', ['/bin/sleep', '1000'])\n"
    job = target(source, tmp_path / "go")
    watch = subprocess.Popen([os.path.join(os.path.dirname(probing.path), "probing-top"), "--no-inject", "--export", "json", "--duration", "30s", str(job.pid)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: processes_about(job.pid), 10, "it to be looked at")
    (tmp_path / "go").touch()
    out, err = watch.communicate(timeout=60)
    assert "sleep" not in out
    assert watch.returncode in (0, 3, 4), (watch.returncode, err)
    done = run_command([probing.path, str(job.pid), "backtrace", "--no-inject"])
    assert done.status == 3 and "not a Python process" in done.stderr, done


# ---- who listens ----

LISTENS = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
os.makedirs(os.path.dirname(sys.argv[1]), 0o700, exist_ok=True)
server.bind(sys.argv[1])
server.listen()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    peer, _ = server.accept()
    data = peer.recv(4096)
    if data:
        with open(sys.argv[2], "ab") as out:
            out.write(data)
    peer.close()
"""


def test_somebody_else_listens_at_its_socket(target, probing, probing_top, tmp_path):
    """A process of the same user at the path of the job's agent: it is sent nothing, and the line says who it is."""
    job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile True:\n    time.sleep(0.1)\n")
    path = f"/tmp/probing-{os.getuid()}/{job.pid}.sock"
    other = target(LISTENS, path, tmp_path / "received")
    try:
        for done in (probing(str(job.pid), "status"), probing(str(job.pid), "backtrace"), probing(str(job.pid), "query", "SELECT * FROM python.backtrace"),
                     probing_top("--export", "txt", "--once", str(job.pid))):
            assert done.status == 3, done
            assert f"process {other.pid} (user {os.getuid()})" in done.stderr and done.stderr.count("\n") == 1, done
            assert done.seconds < 20
        assert not (tmp_path / "received").exists(), (tmp_path / "received").read_bytes()
    finally:
        os.unlink(path)
