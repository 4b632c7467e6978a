# SPDX-License-Identifier: Apache-2.0
"""Jobs that fork, exec, end, or lose their interpreter while they are sampled; and jobs of very many threads."""

import os
import time

import pytest

from agent_job import job
from agent_wire import Client, threads_of
from hostile_support import run_job, wait_long, Watch
from test_pystack_builds import library_of

__all__ = ["job", "library_of"]


# --- the end of the process -------------------------------------------------------------------------------------

ENDS = {
    # In the middle of everything, with threads that run.
    "_exit": (7, "os._exit(7)"),
    # The interpreter is finalised under the sampler's eyes, daemon threads still running.
    "exit": (3, "sys.exit(3)"),
    "finalize": (0, "import atexit; atexit.register(lambda: [leaf() for _ in range(20000)])"),
    "signal": (-9, "os.kill(os.getpid(), 9)"),
    "exception": (1, "raise RuntimeError('at the end')"),
}


@pytest.mark.parametrize("how", sorted(ENDS))
@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.13"])
def test_a_job_that_ends_while_it_is_sampled(python_for, build_dir, minor, how):
    status, code = ENDS[how]
    for _ in range(2):
        run_job(python_for(minor), build_dir, r'''
def leaf(): pass
def work():
    while True:
        for i in range(1000): leaf()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
sampler = sample(3000.0)
until(lambda: sampler.ticks() > 30)
''' + code, status=status)


# Calls that reach into further chunks of the data stack and come back, native code without the GIL, threads that end, and
# native threads whose thread states are made for one call. The main thread does both of the first in turn.
STATES = r'''
import zlib
def leaf(): pass
def deep(n):
    a = b = c = d = e = f = n
    if n: deep(n - 1)
    leaf()
def chunks():
    while not stop.value:
        for n in (1, 50, 300): deep(n)
data = bytes(100000)
def native():
    while not stop.value: zlib.crc32(data)
def both():
    for n in (1, 50, 300): deep(n)
    for i in range(20): zlib.crc32(data)
    return sampler.ticks() > 500
def short():
    while not stop.value:
        thread = threading.Thread(target=deep, args=(30,), daemon=True)
        thread.start()
        thread.join()
back = ctypes.CFUNCTYPE(None)(lambda: deep(40))
running, ended = ctypes.c_int(), ctypes.c_int()
for target in (chunks, native, short):
    threading.Thread(target=target, daemon=True).start()
hostile.hostile_callers(2, back, ctypes.byref(running), ctypes.byref(ended))
sampler = sample(2000.0)
until(both)
ended.value = 1
until(lambda: running.value == 0)
'''


@pytest.mark.parametrize("end", ["stop.value = 1; tell(sampler)", "sys.exit(0)"], ids=["stopped", "finalised"])
def test_thread_states_that_come_and_go_while_they_are_sampled(each_python, build_dir, end):
    """A thread reads its own frames: none of those may be another's, or gone, and the interpreter ends while daemon threads run."""
    told = run_job(each_python, build_dir, STATES + end)
    assert (told is None) == (end == "sys.exit(0)")
    assert told is None or told["exact"] > 0


FORKS = r'''
def leaf(): pass
def work():
    while not stop.value:
        for i in range(1000): leaf()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
sampler = sample(2000.0)
ended = []
for number in range(40):
    pid = os.fork()
    if pid == 0:
        for i in range(20000): leaf()
        if number % 2:
            os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", "raise SystemExit(%d)" % number])
        os._exit(number)
    status = os.waitpid(pid, 0)[1]
    ended.append(status >> 8 if not status & 127 else -(status & 127))
stop.value = 1
for thread in threads: thread.join()
tell(sampler, ended=ended)
'''


def test_a_job_that_forks_while_it_is_sampled(any_python, build_dir):
    told = run_job(any_python, build_dir, FORKS)
    assert told["ended"] == list(range(40))
    assert told["samples"] > 0


# --- the end of the interpreter ---------------------------------------------------------------------------------

UNLOADED = r'''
import posix
def exists(path):
    try:
        posix.stat(path)
    except OSError:
        return False
    return True
def leaf():
    pass
def until_told():
    while not exists(posix.environ[b"FOLDER"] + b"/end." + posix.environ[b"ROUND"]):
        for i in range(1000):
            leaf()
if posix.environ[b"ROUND"] == b"0":
    posix.write(int(posix.environ[b"READY_FD"]), b"ready\n")
until_told()
'''


@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.13"])
def test_a_library_that_is_unloaded_while_it_is_sampled(ptrace, target, python_for, library_of, build_dir, probing, tmp_path,
                                                        minor):
    """Its memory is gone; a Python that is loaded later is found again."""
    library, prefix = library_of(python_for(minor))
    folder = tmp_path / "told"
    folder.mkdir()
    t = target(UNLOADED, python=os.path.join(build_dir, "tests", "tools", "embed_unload"), flags=[library, "2", str(folder)],
               env={"PYTHONHOME": prefix, "FOLDER": str(folder)})
    endpoint = probing(t.pid, "inject", "--json").ok().json()["endpoint"]
    with Client(endpoint, timeout=40) as client:
        watch = Watch(client)
        watch.until(lambda: any("leaf" in s["frames"] for s in watch.profile.samples), "samples of the first round")
        (folder / "end.0").touch()
        wait_long(lambda: (folder / "unloaded.0").exists() or (folder / "kept.0").exists(), what="Python to end")
        if (folder / "kept.0").exists():
            pytest.skip("needs unloading: something holds the library in memory")
        note = wait_long(lambda: client.call("status")["note"], what="the agent to notice")
        assert "Python" in note and not client.call("status")["discovery"]
        assert client.call("status")["read_errors"] > 0
        again = time.time()
        (folder / "go.0").touch()
        watch.until(lambda: any("leaf" in s["frames"] and s["timestamp"] > again for s in watch.profile.samples[-500:]),
                    "samples of the second round")
        wait_long(lambda: client.call("status")["note"] is None, what="all to be well")
        (folder / "end.1").touch()
        (folder / "go.1").touch()
    assert t.process.wait(30) == 5


# --- very many threads ------------------------------------------------------------------------------------------

def most_threads():
    with open("/proc/sys/kernel/threads-max", encoding="ascii") as limit:
        return int(limit.read())


def test_two_thousand_threads(job, build_dir):
    if most_threads() < 20000:
        pytest.skip("needs threads: this kernel allows few")
    j = job()
    j.do("threading.stack_size(256 * 1024)")
    assert j.do("[spawn('worker-%d' % i, wait_for_ever) for i in range(2000)] and threading.active_count()") == 2001
    j.do("spawn('hot', hot_loop)")
    with Client(j.start(), timeout=30) as client:
        def all_there():
            snapshot = client.call("threads")
            threads = {t["name"]: t for t in threads_of(snapshot)}
            return (snapshot, threads) if len(threads) > 2001 and threads.get("hot") else None
        snapshot, threads = wait_long(all_there, what="all threads by their names")
        assert not snapshot["incomplete"]
        for i in range(0, 2000, 97):
            frames = threads[f"worker-{i}"]["frames"]
            assert [f["func"].rpartition(".")[2] for f in frames][-1] == "_bootstrap" and len(frames) >= 4
        assert snapshot["process"]["agent_rss_bytes"] < 48 << 20
        watch = Watch(client)
        assert {s["frames"][-1].rpartition(".")[2] for s in watch.of("hot", 5)} == {"_bootstrap"}
        assert client.call("status")["samples"] >= 2000
    assert j.do("1 + 1") == 2


def test_more_threads_than_are_shown(job, build_dir):
    if most_threads() < 40000:
        pytest.skip("needs threads: this kernel allows few")
    j = job()
    library = os.path.join(build_dir, "tests", "targets", "hostile.so")
    made = j.do(f"ctypes.CDLL({library!r}).hostile_threads(16500)")
    if made != 0:
        pytest.skip("needs threads: 16,500 cannot be made here")
    j.do("spawn('hot', hot_loop)")
    with Client(j.start(), timeout=30) as client:
        snapshot = client.call("threads")
        assert snapshot["incomplete"]
        assert len(threads_of(snapshot)) <= 16384 and snapshot["process"]["n_threads"] > 16500
        assert snapshot["process"]["agent_rss_bytes"] < 48 << 20
        assert Watch(client).of("hot", 5)
    assert j.do("1 + 1") == 2
