# SPDX-License-Identifier: Apache-2.0
"""Jobs under a seccomp filter that refuses, or kills for, the call by which memory is read."""

import errno
import os

import pytest

from agent_job import job
from agent_wire import Client, threads_of
from conftest import effective_capabilities, wait_until
from hostile_support import wait_long, Watch

__all__ = ["job"]

PROCESS_VM_READV = 310  # x86-64
KILL = 0
CAP_SYS_ADMIN = 21


def refuse(build_dir, error, everywhere=False):
    """An expression that has the call fail with `error` in the thread that evaluates it."""
    library = os.path.join(build_dir, "tests", "targets", "hostile.so")
    return (f"ctypes.CDLL({library!r}).hostile_refuse(ctypes.c_long({PROCESS_VM_READV}), {error}, "
            f"ctypes.c_bool({everywhere}))")


def install(job, build_dir, error, everywhere=False):
    result = job.do(refuse(build_dir, error, everywhere))
    if result in (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EACCES):
        pytest.skip(f"needs seccomp: a filter cannot be installed here: {os.strerror(result)}")
    assert result == 0


def hot_thread(client):
    return {t["name"]: t for t in threads_of(client.call("threads"))}["hot"]


def read_as_gentle(client):
    status = client.call("status")
    return status if status["sampling"] == "gentle" else None


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_memory_is_read_through_proc_where_the_call_is_refused(job, build_dir, error):
    j = job()
    install(j, build_dir, error)
    j.do("spawn('hot', hot_loop)")
    j.do("spawn('idle', wait_for_ever)")
    with Client(j.start()) as client:
        threads = {t["name"]: t for t in threads_of(client.call("threads"))}
        assert threads["hot"]["frames"][-1]["func"].rpartition(".")[2] == "_bootstrap"
        assert "wait_for_ever" in [f["func"].rpartition(".")[2] for f in threads["idle"]["frames"]]
        samples = Watch(client).of("hot", 30)
        status = client.call("status")
        assert status["sampling"] == "gentle" and status["signals_sent"] == 0
        assert "process_vm_readv is refused" in status["note"] and "/proc/self/mem" in status["note"]
        assert {s["frames"][-1].rpartition(".")[2] for s in samples if not s["torn"]} <= {"_bootstrap"}
    # The descriptor that memory is read through is not the job's.
    assert not [link for link in j.target.fds().values() if link.endswith("/mem")]


def test_a_filter_that_comes_later_is_noticed(job, build_dir):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        watch = Watch(client)
        watch.of("hot", 20)
        assert client.call("status")["sampling"] == "exact"
        install(j, build_dir, errno.EPERM, everywhere=True)
        status = wait_long(lambda: read_as_gentle(client), what="the agent to notice")
        assert "process_vm_readv is refused" in status["note"]
        watch.of("hot", 40)
        assert hot_thread(client)["frames"]


def wait_for_both(client):
    wait_until(lambda: (status := client.call("status"))["signals_refused"] > 0 and status["exact"] > 0, 60,
               "the one to be refused and the other to copy itself")


@pytest.mark.parametrize("error", [errno.EPERM, KILL])
def test_a_thread_with_a_filter_of_its_own_is_not_asked(job, build_dir, error):
    """It is not even tried: this one would kill the job."""
    j = job()
    j.do(f"spawn('hot', lambda: ({refuse(build_dir, error)}, hot_loop()))")
    j.do("spawn('other', hot_loop)")
    with Client(j.start()) as client:
        watch = Watch(client)
        watch.of("hot", 30)
        watch.of("other", 30)
        assert client.call("status")["sampling"] == "exact"
        wait_for_both(client)
    assert j.target.alive()


def test_a_second_filter_is_seen_too(job, build_dir):
    """All threads have one filter, as in a container; one has another."""
    j = job()
    library = os.path.join(build_dir, "tests", "targets", "hostile.so")
    harmless = f"ctypes.CDLL({library!r}).hostile_refuse(ctypes.c_long(1023), {errno.ENOSYS}, ctypes.c_bool(False))"
    if j.do(harmless) != 0:
        pytest.skip("needs seccomp: a filter cannot be installed here")
    with open(f"/proc/{j.pid}/status", encoding="ascii", errors="replace") as status:
        if "Seccomp_filters:" not in status.read():
            pytest.skip("needs linux-5.9: the kernel does not count filters")
    j.do(f"spawn('hot', lambda: ({refuse(build_dir, KILL)}, hot_loop()))")
    j.do("spawn('other', hot_loop)")
    with Client(j.start()) as client:
        watch = Watch(client)
        watch.of("hot", 30)
        watch.of("other", 30)
        assert client.call("status")["sampling"] == "exact"
        wait_for_both(client)
    assert j.target.alive()


def test_injection_under_a_filter(ptrace, target, build_dir, probing):
    """The injector reads from outside; what it has loaded is under the job's filter."""
    t = target("import ctypes, os, time\n"
               f"rc = {refuse(build_dir, errno.EPERM)}\n"
               "def rest(): time.sleep(1000)\n"
               "os.write(int(os.environ['READY_FD']), b'%d\\n' % rc)\nrest()\n")
    if t.ready != "0":
        pytest.skip("needs seccomp: a filter cannot be installed here")
    probing(t.pid, "inject").ok()
    shown = probing(t.pid, "backtrace", "--json").ok().json()
    assert shown["target"]["mode"] == "agent"
    assert shown["threads"][0]["frames"][0]["func"] == "rest"
    probing(t.pid, "eject").ok()
    assert t.alive()


def test_injection_is_refused_where_a_filter_would_kill(ptrace, target, build_dir, probing):
    """The filter is read and run over what will be called; stacks are read from outside then."""
    if not effective_capabilities() & 1 << CAP_SYS_ADMIN:
        pytest.skip("needs cap-sys-admin: filters cannot be read without it")
    t = target("import ctypes, os, time\n"
               f"rc = {refuse(build_dir, errno.EPERM)} or {refuse(build_dir, KILL)}\n"
               "def rest(): time.sleep(1000)\n"
               "os.write(int(os.environ['READY_FD']), b'%d\\n' % rc)\nrest()\n")
    if t.ready != "0":
        pytest.skip("needs seccomp: a filter cannot be installed here")
    said = probing(t.pid, "inject")
    if said.status == 0:
        pytest.skip("needs seccomp-filters: this kernel does not show them")
    assert said.status == 3 and "seccomp filter" in said.stderr and len(said.stderr.splitlines()) == 1
    shown = probing(t.pid, "backtrace", "--json").ok().json()
    assert shown["target"]["mode"] == "readonly"
    assert shown["threads"][0]["frames"][0]["func"] == "rest"
    assert t.alive() and t.tids() == [t.pid]
