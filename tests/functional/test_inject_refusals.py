# SPDX-License-Identifier: Apache-2.0
"""What the injector refuses: one line, the right status, the process untouched."""

import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import effective_capabilities, run_command, wait_until
from inject_support import (SLEEP, agent, check_nothing_left, compile_agent, inject, job, snapshot, tool)

CAP_SYS_ADMIN = 21

__all__ = ["agent", "compile_agent", "inject", "job", "tool"]  # fixtures


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


def test_a_job_that_is_killed_meanwhile(target, probing_top, ptrace, tmp_path):
    """At whatever point: a fault found in a process on its way out is not given as the reason, and nobody waits for it to go away."""
    seen = set()
    for i in range(40):
        running = target("import os, threading, time\n"
                         "[threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start() for _ in range(8)]\n"
                         "os.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile True: time.sleep(0.001)\n")
        looker = subprocess.Popen([probing_top.path, "--export", "folded", "--duration", "60", "-o", str(tmp_path / "out"), str(running.pid)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(i * 0.002)  # no event to wait for: each point of attaching is to be met by some
        running.process.kill()
        out, err = looker.communicate(timeout=60)
        assert out == "" and err.count("\n") == 1 and "ended" in err, (looker.returncode, err)
        assert "safe point" not in err and "nothing listens" not in err, err
        assert looker.returncode == 4 or "there is nothing to" in err, (looker.returncode, err)
        running.process.wait()
        seen.add(looker.returncode)
    assert 4 in seen


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


AT_THE_END_OF_ITS_STACK = """
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
static char *stack;
static void *wait_there(void *arg) {
    volatile char *used = alloca((char *)__builtin_frame_address(0) - stack - 1200);
    (void)arg;
    for (used[0] = 0;;)
        pause();
}
static void on_signal(int sig) { (void)sig; for (;;) pause(); }
int main(void) {
    pthread_t thread;
    pthread_attr_t attr;
    signal(SIGUSR1, on_signal);
    pthread_attr_init(&attr);
    stack = (char *)mmap(NULL, 2 * 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 65536;
    if (mprotect(stack, 65536, PROT_READ | PROT_WRITE) || pthread_attr_setstack(&attr, stack, 65536) || pthread_create(&thread, &attr, wait_there, NULL))
        return 1;
    return raise(SIGUSR1); /* where no thread is borrowed */
}
"""


def test_a_thread_at_the_end_of_its_stack(inject, agent, tmp_path, ptrace, begun):
    """Another one is looked for, for a while: it may be the thread that another injector has just created. Here there is none."""
    process = begun([compiled(tmp_path, "deep", AT_THE_END_OF_ITS_STACK, "-Wl,-z,now", "-pthread")])

    def thread():
        return next((tid for tid in os.listdir(f"/proc/{process.pid}/task") if tid != str(process.pid)), None)
    wait_until(lambda: thread() and calls(thread(), 34), 10, "the thread to pause")
    refusal(inject(process.pid, agent, 4000), 1, "has no room left on its stack")
    wait_until(lambda: calls(thread(), 34), 10, "the thread to pause again")
    assert process.poll() is None


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


@pytest.fixture
def begun():
    """begun(command, **options): a program, until the test has ended."""
    processes = []

    def start(command, **options):
        processes.append(subprocess.Popen(command, **options))
        return processes[-1]
    yield start
    for process in processes:
        process.kill()
        process.wait()


def compiled(folder, name, source, *flags):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")
    path = os.path.join(str(folder), name)
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(source)
    subprocess.run([compiler, "-O1", *flags, "-o", path, path + ".c"], check=True)
    return path


def calls(pid, number):
    """Is it asleep in that system call?"""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == str(number)


def test_a_32_bit_program(inject, agent, begun, tmp_path):
    """Two instructions: pause (29), again and again."""
    code = bytes([0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7])
    where = 0x8048000
    head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, where + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = struct.pack("<IIIIIIII", 1, 0, where, where, 84 + len(code), 84 + len(code), 5, 0x1000)
    program = tmp_path / "old"
    program.write_bytes(head + load + code)
    program.chmod(0o755)
    try:
        process = begun([str(program)])
    except OSError as error:
        pytest.skip(f"needs ia32: the kernel runs no 32-bit programs: {error}")
    wait_until(lambda: open(f"/proc/{process.pid}/comm", encoding="ascii").read() == "old\n", 10, "the program")
    refusal(inject(process.pid, agent), 3, "is a 32-bit program", "use one made for it")
    assert process.poll() is None


PAUSE = """
__attribute__((used)) void _start(void) {
    for (;;) {
        long rc;
        __asm__ volatile("syscall" : "=a"(rc) : "a"(34L) : "rcx", "r11", "memory");
    }
}
"""


def test_a_program_that_has_only_just_begun(inject, agent, begun, tmp_path):
    """Its loader is there, and has not come to the C library; here it never will."""
    flags = ["-nostdlib", "-fPIC", "-shared", "-Wl,-e,_start"]
    loader = compiled(tmp_path, "ld-linux-x86-64.so.2", PAUSE, *flags)
    program = compiled(tmp_path, "early", PAUSE, "-nostdlib", "-fPIE", "-pie", f"-Wl,--dynamic-linker={loader}")
    process = begun([program])
    wait_until(lambda: calls(process.pid, 34), 10, "the loader to pause")
    refusal(inject(process.pid, agent), 3, "is still starting", "try again")
    assert process.poll() is None


def test_a_program_that_is_not_dumpable(tool, agent, ptrace, begun):
    if os.geteuid() != 0:
        pytest.skip("needs root: to be another user")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = compiled(folder, "secret", """
#include <sys/prctl.h>
#include <unistd.h>
int main(void) { prctl(PR_SET_DUMPABLE, 0); for (;;) pause(); }
""")
        copy = shutil.copy(tool, folder)
        process = begun([program], **nobody)
        wait_until(lambda: calls(process.pid, 34), 10, "the program to pause")
        done = subprocess.run([copy, str(process.pid), agent], capture_output=True, text=True, **nobody)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    assert "is not dumpable, so only root may read it: run this " in done.stderr
    assert process.poll() is None


def test_under_a_debugger(job, probing, ptrace, begun):
    """gdb has stopped it: who that is is said, and it is read from outside."""
    if not shutil.which("gdb"):
        pytest.skip("needs gdb: not installed")
    running = job(SLEEP)
    gdb = begun(["gdb", "-nx", "-q", "-p", str(running.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
    wait_until(lambda: running.status(running.pid, "TracerPid") != "0" and running.target.state() == "t", 60, "gdb to attach")
    done = probing(str(running.pid), "inject")
    refusal(done, 3, f"is being traced by process {gdb.pid} (gdb)", "end that one first", "from outside")
    document = probing(str(running.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and "gdb" in document["target"]["mode_reason"]
    assert any(thread["frames"] for thread in document["threads"])
    gdb.stdin.close()
    gdb.wait()
    running.goes_on()


def test_strict_seccomp(job, probing, ptrace):
    """read, write and exit are all that it may call: it is read from outside, and goes on reading."""
    running = job("""
reader, writer = os.pipe()
ready()
assert ctypes.CDLL(None).prctl(22, 1, 0, 0, 0) == 0
os.read(reader, 1)
""")
    wait_until(lambda: running.status(running.pid, "Seccomp") == "1" and calls(running.pid, 0), 10, "the strict mode")
    refusal(probing(str(running.pid), "inject"), 3, "strict seccomp mode", "from outside")
    document = probing(str(running.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and "strict seccomp" in document["target"]["mode_reason"]
    assert any(thread["frames"] for thread in document["threads"])
    assert running.target.alive() and calls(running.pid, 0)


def test_from_a_sandbox_of_our_own(job, probing, ptrace):
    """A filter forbids ptrace to us: nothing is borrowed, and the job is read from outside, by the same program."""
    running = job(SLEEP, env={"PYTHON_DISABLE_REMOTE_DEBUG": "1"})
    shut_in = [sys.executable, "-c", without_ptrace(), probing.path, str(running.pid)]
    refusal(run_command([*shut_in, "inject"]), 3, "only to read it: a seccomp filter that this runs under may forbid it: ")
    document = run_command([*shut_in, "backtrace", "--json"]).ok().json()
    assert document["target"]["mode"] == "readonly" and "seccomp" in document["target"]["mode_reason"]
    assert any(frame["func"] == "<module>" for thread in document["threads"] for frame in thread["frames"])
    running.goes_on()


@pytest.mark.parametrize("content,words", [(None, ["cannot open"]), (b"", ["not the agent"]),
                                           (b"#!/bin/sh\n" * 100, ["not a 64-bit x86 shared library"]),
                                           (b"\x7fELF\x02\x01\x01" + bytes(200), ["not a 64-bit x86 shared library"])],
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


# --- moments that are not safe ----------------------------------------------------------------------------------------

HOLD = """
#include <signal.h>
#include <unistd.h>
void hold(int sig) { (void)sig; for (;;) pause(); }
#ifdef HOLD_IN_CONSTRUCTOR
__attribute__((constructor)) static void begin(void) { hold(0); }
#endif
"""


@pytest.fixture
def compile_hold(tmp_path):
    """A library in which a thread sleeps without end, under the name and in the way that is asked for."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs cc: no C compiler found")

    def build(name, *flags):
        (tmp_path / "hold.c").write_text(HOLD)
        subprocess.run([compiler, "-O1", "-g0", "-fPIC", "-shared", *flags, "-o", tmp_path / name, tmp_path / "hold.c"],
                       check=True)
        return str(tmp_path / name)
    return build


@pytest.mark.parametrize("name,flags,body,why", [
    ("libjemalloc.so.2", [], "ctypes.CDLL(sys.argv[2]).hold(0)", "inside the memory allocator"),
    ("slow.so", ["-DHOLD_IN_CONSTRUCTOR"], "ctypes.CDLL(sys.argv[2])", "inside the dynamic loader"),
    ("handler.so", [], """
import signal
libc = ctypes.CDLL(None)
libc.signal(int(signal.SIGUSR1), ctypes.cast(ctypes.CDLL(sys.argv[2]).hold, ctypes.c_void_p))
os.kill(os.getpid(), signal.SIGUSR1)
""", "in a signal handler"),
], ids=["allocator", "loader", "handler"])
def test_a_thread_that_must_not_be_borrowed(job, inject, agent, compile_hold, name, flags, body, why):
    """The only thread sleeps in a harmless call, but further out it is where it could hold a lock: named and left alone."""
    running = job("ready()\n" + body, compile_hold(name, *flags))

    def asleep_in_pause():
        with open(f"/proc/{running.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("34 ")
    wait_until(asleep_in_pause, 10, "the thread to sleep where it shall")
    before = snapshot(running)
    refusal(inject(running.pid, agent, 300), 3, "its thread is " + why, "no safe point")
    assert snapshot(running) == before
    wait_until(asleep_in_pause, 5, "the thread to sleep on")


def test_while_a_library_is_being_loaded(job, inject, agent):
    """What the loader says about itself (r_debug) is enough, wherever the threads are."""
    running = job("""
state = ctypes.c_int.from_address(ctypes.addressof(ctypes.c_int.in_dll(ctypes.CDLL(None), "_r_debug")) + 24)
assert state.value == 0
def follow():
    while True:
        state.value = os.path.exists(sys.argv[1] + ".loading")
        time.sleep(0.01)
state.value = 1
open(sys.argv[1] + ".loading", "w").close()
threading.Thread(target=follow, daemon=True).start()
""" + SLEEP)
    refusal(inject(running.pid, agent, 600), 3, "no safe point", "a library is being loaded")
    running.goes_on()
    os.unlink(running.path + ".loading")

    def injected():
        result = inject(running.pid, agent)
        return result.status == 0 or None
    wait_until(injected, 30, "the agent to be let in")
    running.goes_on()


def test_another_thread_is_borrowed_instead(job, inject, agent, compile_hold):
    running = job("""
threading.Thread(target=ctypes.CDLL(sys.argv[2]).hold, args=(0,), daemon=True).start()
""" + SLEEP, compile_hold("libjemalloc.so.2"))
    result = inject(running.pid, agent).ok().json()
    assert result["borrowed_tid"] == running.pid
    running.goes_on()


# --- where something else stands in the way ---------------------------------------------------------------------------

def test_from_an_inner_user_namespace(job, tool, agent):
    """Root of a container of its own, on a process outside of it."""
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "-U", "-r", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs userns: no user namespace can be made")
    running = job(SLEEP)
    done = subprocess.run([unshare, "-U", "-r", tool, str(running.pid), agent], capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    assert "is in another user namespace, and you are root only inside this one: run this as root on the host\n" in done.stderr, done
    running.goes_on()


@pytest.fixture
def nobody_may_run(probing):
    """The program where another user may run it, and a Python of theirs; or a skip."""
    if os.geteuid() != 0:
        pytest.skip("needs root: to be another user")
    for command in ([probing.path, "--version"], [SYSTEM_PYTHON, "-c", "pass"]):
        try:
            subprocess.run(command, check=True, capture_output=True, **NOBODY)
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"needs openbuild: another user may not run {command[0]}: {e}")
    return probing.path


SYSTEM_PYTHON = "/usr/bin/python3"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
WAIT = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)\n"


def started(begun, command):
    process = begun(command, stdout=subprocess.PIPE, text=True, **NOBODY)
    assert process.stdout.readline() == "ready\n"
    return process


def test_from_a_user_namespace_beside_it(nobody_may_run, begun):
    """As two containers of one user: neither may trace the other; outside of both, that user may."""
    alone = ["unshare", "-U", "-r"]
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, **NOBODY).returncode:
        pytest.skip("needs userns: no user namespace can be made")
    job = started(begun, [*alone, SYSTEM_PYTHON, "-c", WAIT])
    command = [nobody_may_run, str(job.pid), "backtrace"]
    done = subprocess.run(["unshare", "-U", *command], capture_output=True, text=True, **NOBODY)
    assert done.returncode == 3 and done.stderr == (
        f"probing: process {job.pid} is in another user namespace than this program: run this on the host, outside of both\n"), done
    outside = subprocess.run(command, capture_output=True, text=True, **NOBODY)
    assert outside.returncode == 0 and "MainThread" in outside.stdout, outside
    assert job.poll() is None


def without_capability(*command):
    """A command whose root may not trace others, as Docker's."""
    return ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", *map(str, command)]


# What marks the place that this program runs in, and the remedy that it names.
PLACES = {
    "kubernetes": ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "true", "run this in 'kubectl debug --profile=general'"),
    "podman": ({}, "mount -t tmpfs none /run && : > /run/.containerenv", "run this with 'podman exec --privileged'"),
    "apptainer": ({"APPTAINER_CONTAINER": "/x.sif"}, "true", "run this outside of the container"),
}


@pytest.mark.parametrize("place", sorted(PLACES))
def test_a_root_that_lacks_the_capability(nobody_may_run, begun, place):
    """The job is of another user: a root of a container is allowed no more than that user."""
    env, mark, remedy = PLACES[place]
    if not shutil.which("setpriv") or subprocess.run(without_capability("true"), capture_output=True).returncode:
        pytest.skip("needs setpriv: not installed, or not allowed")
    job = started(begun, [SYSTEM_PYTHON, "-c", WAIT])
    command = without_capability(nobody_may_run, job.pid, "inject")
    # in a chroot "/" may not be a mount, which unshare's own way of making mounts private does not survive
    own = ["unshare", "-m", "--propagation", "unchanged", "sh", "-c", f'mount --make-rprivate / 2>/dev/null; {mark} && exec "$@"', "sh"]
    done = run_command([*own, *command], env=env)
    if "mount" in done.stderr:
        pytest.skip(f"needs mounts: {done.stderr}")
    refusal(done, 3, f"belongs to another user (uid {NOBODY['user']}), and this root lacks the capability SYS_PTRACE: {remedy}")
    assert job.poll() is None


def test_a_thread_is_not_a_process(job, inject, agent):
    running = job("threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n" + SLEEP)
    tid = next(tid for tid in os.listdir(f"/proc/{running.pid}/task") if int(tid) != running.pid)
    refusal(inject(int(tid), agent), 3, f"{tid} is a thread of process {running.pid}: give that pid")
    running.goes_on()


def test_a_process_of_another_node(probing):
    """In a shell of a Slurm job, a pid or a name that is not here may be on another of its nodes."""
    for target in ("99999999", "no-such-script.py"):
        elsewhere = probing(target, "status", env={"SLURM_JOB_ID": "4711"})
        refusal(elsewhere, 3, "on this node: run this on a node of the job, 'srun --jobid=4711 --overlap --pty probing-top'")
        here = probing(target, "status", env={"SLURM_JOB_ID": "4711", "SLURMD_NODENAME": "n1", "SLURM_JOB_NUM_NODES": "1"})
        refusal(here, 3, ": 'probing list' shows the Python processes")


# Refuses one system call by an errno, to this process and what it starts (seccomp(2), BPF by hand).
FORBID = """
import errno, platform
def forbid(number, error, action=0x50000):
    libc = ctypes.CDLL(None, use_errno=True)
    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
    code = (Filter * 4)(Filter(0x20, 0, 0, 0), Filter(0x15, 0, 1, number), Filter(6, 0, 0, action | error),
                        Filter(6, 0, 0, 0x7fff0000))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
"""


def without_ptrace():
    """A program for Python that becomes another one, its arguments, which may not call ptrace."""
    return "import ctypes, os, sys\n" + FORBID + "forbid(101, 1)\nos.execv(sys.argv[1], sys.argv[1:])\n"


@pytest.mark.parametrize("number,words", [(319, ["cannot make a memory file", "Operation not permitted"]),
                                          (9, ["Operation not permitted"])], ids=["memfd_create", "mmap"])
def test_a_sandbox_that_forbids_what_it_takes(job, inject, agent, probing, number, words):
    running = job(FORBID + f"""
threading.Thread(target=time.sleep, args=(0.01,)).start()
forbid({number}, 1)
""" + SLEEP)
    running.goes_on()
    before = snapshot(running)
    refusal(inject(running.pid, agent), 3, *words)
    check_nothing_left(running, before)
    document = probing(str(running.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and words[-1] in document["target"]["mode_reason"]


def test_a_sandbox_that_kills(job, inject, agent, probing):
    """For making a memory file, of which the job itself makes none: that is seen before."""
    if not effective_capabilities() & (1 << CAP_SYS_ADMIN):
        pytest.skip("needs root: filters may be read by who has CAP_SYS_ADMIN")
    running = job(FORBID + """
threading.Thread(target=time.sleep, args=(0.01,)).start()
forbid(319, 0, 0x80000000)
""" + SLEEP)
    running.goes_on()
    before = snapshot(running)
    refusal(inject(running.pid, agent), 3, "under a seccomp filter that would kill it")
    check_nothing_left(running, before)
    document = probing(str(running.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and "would kill it" in document["target"]["mode_reason"]


@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.12", "3.13"])
def test_a_python_that_is_being_shut_down(target, probing, python_for, ptrace, minor):
    """Its interpreter is past its end, and hangs in what its objects do last."""
    job = target("""
import os, sys, time
class Last:
    def __del__(self, write=os.write, fd=int(os.environ["READY_FD"]), sleep=time.sleep):
        write(fd, b"ready\\n")
        while True:
            sleep(0.05)
sys.last = Last()
""", python=python_for(minor))
    done = probing(str(job.pid), "inject")
    assert done.status == 3 and done.stderr.count("\n") == 1
    assert "is ending: its Python is being shut down" in done.stderr
    seen = probing(str(job.pid), "backtrace", "--json")
    if seen.status == 0:
        assert seen.json()["target"]["mode"] == "readonly"
    else:  # so much is cleared by then that not even the version can be told
        assert seen.status == 3 and "is ending: its Python is being shut down" in seen.stderr
    assert job.alive()
