# SPDX-License-Identifier: Apache-2.0
"""The job's life with the agent in it: it forks, becomes another program, is stopped, crashes and ends as it would without."""

import contextlib
import os
import signal
import subprocess

import pytest

from conftest import inject_in_time, wait_until

FEW = ("3.9", "3.11", "3.12", "3.13")


@pytest.fixture(params=FEW)
def some_python(request, python_for):
    return python_for(request.param)


READY = """
import os, sys, threading, time
def ready():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
def go_on():
    "Until the test says so: it is attached then."
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.005)
def spin():
    while True:
        sum(range(1000))
"""


class Sampled:
    """A job whose every thread is sampled at the highest rate that the agent's budget allows, until it ends."""

    def __init__(self, job, go, sampler):
        self.job = job
        self.pid = job.pid
        self.go = go
        self.sampler = sampler

    def let_go(self):
        self.go.write_text("", encoding="ascii")

    def wait(self, timeout=60):
        """The job's exit status, and what it printed."""
        self.let_go()
        return self.job.process.wait(timeout), self.job.output()


def agent_threads(job):
    return [name for name in job.thread_names().values() if name.startswith("probing-")]


@pytest.fixture
def sampled(target, probing, probing_top, tmp_path, ptrace):
    """sampled(source): it calls ready(), then go_on(), which returns when the test calls let_go() or wait()."""
    with contextlib.ExitStack() as stack:
        def start(source, **options):
            go = tmp_path / f"go_{len(os.listdir(tmp_path))}"
            job = target(READY + source, env={"GO": str(go)}, **options)
            inject_in_time(probing, job.pid)
            sampler = stack.enter_context(subprocess.Popen(
                [probing_top.path, "--export", "folded", "--duration", "300s", "-o", str(tmp_path / "folded"), str(job.pid)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            stack.callback(sampler.kill)
            wait_until(lambda: probing(str(job.pid), "status", "--json").ok().json()["sampler"]["samples"], 30,
                       "the first samples")
            return Sampled(job, go, sampler)
        yield start


# --- children -----------------------------------------------------------------------------------------------------

def test_a_child_of_a_fork(sampled, probing, some_python):
    """It has nothing of the agent, works, and can have an agent of its own; the parent's goes on."""
    job = sampled("""
threading.Thread(target=spin, daemon=True).start()
ready()
go_on()
child = os.fork()
if child == 0:
    thread = threading.Thread(target=sum, args=(range(1000),))
    thread.start()
    thread.join()
    while not os.path.exists(os.environ["GO"] + ".end"):
        time.sleep(0.01)
    os._exit(7)
with open(os.environ["GO"] + ".child", "w") as file:
    file.write("%d\\n" % child)
sys.exit(os.waitpid(child, 0)[1] >> 8)
""", python=some_python)
    job.let_go()
    note = str(job.go) + ".child"
    wait_until(lambda: os.path.exists(note) and open(note, encoding="ascii").read().endswith("\n"), 30, "the fork")
    with open(note, encoding="ascii") as file:
        child = int(file.read())
    wait_until(lambda: len(os.listdir(f"/proc/{child}/task")) == 1, 30, "the child's own thread to end")
    assert not any("probing" in os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd"))
    inject_in_time(probing, child)
    assert probing(str(child), "backtrace", "--json").ok().json()["target"]["mode"] == "agent"
    assert probing(str(job.pid), "backtrace", "--json").ok().json()["target"]["mode"] == "agent"
    probing(str(child), "eject").ok()
    with open(str(job.go) + ".end", "w", encoding="ascii"):
        pass
    assert job.wait()[0] == 7


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(sampled, some_python, method):
    job = sampled(f"""
import multiprocessing
def square(x):
    return x * x
if __name__ == "__main__":
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    ready()
    go_on()
    for _ in range(3):
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            assert pool.map(square, range(200)) == [x * x for x in range(200)]
    print("all well")
""", python=some_python)
    assert job.wait(120) == (0, "all well\n")


def test_multiprocessing_with_an_agent_in_every_process(target, build_dir, some_python):
    job = target("""
import multiprocessing, os, time
def square(x):
    time.sleep(0.01)
    return x * x
if __name__ == "__main__":
    for _ in range(2):
        for method in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(square, range(40)) == [x * x for x in range(40)]
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    print("all well")
""", python=some_python, env={"LD_PRELOAD": os.path.join(build_dir, "libprobing.so"), "PROBING": "2"}, timeout=120)
    assert job.process.wait(60) == 0
    assert job.output() == "all well\n"


def test_workers_of_a_dataloader(sampled, torch_python):
    job = sampled("""
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.full((4,), float(i))
ready()
go_on()
loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
print([sum(float(batch.sum()) for batch in loader) for _ in range(2)])
""", python=torch_python, timeout=120)
    status, output = job.wait(120)
    assert status == 0 and output.endswith(f"{[4.0 * sum(range(64))] * 2}\n"), output  # torch may warn that numpy is not there


def test_programs_that_the_job_runs(sampled, some_python):
    """subprocess: with a plain fork, with a function called between fork and exec, through a shell, 60 in all."""
    job = sampled("""
import subprocess
threading.Thread(target=spin, daemon=True).start()
ready()
go_on()
for _ in range(20):
    assert subprocess.check_output(["echo", "one"]) == b"one\\n"
    assert subprocess.check_output(["echo", "two"], preexec_fn=os.getpid) == b"two\\n"
    assert os.system("exit 3") == 3 << 8
print("all well")
""", python=some_python)
    status, output = job.wait(120)
    assert status == 0 and output.endswith("all well\n")


# --- another program ----------------------------------------------------------------------------------------------

def test_the_job_becomes_another_program(sampled, probing, some_python, tmp_path):
    after = tmp_path / "after.py"
    after.write_text("import os, time\nprint('after', flush=True)\n"
                     "while not os.path.exists(os.environ['GO'] + '.end'):\n    time.sleep(0.01)\n", encoding="utf-8")
    job = sampled(f"""
threading.Thread(target=spin, daemon=True).start()
ready()
go_on()
os.execv(sys.executable, [sys.executable, {str(after)!r}])
""", python=some_python)
    job.let_go()
    wait_until(lambda: job.job.output() == "after\n", 30, "the other program")
    assert agent_threads(job.job) == [] and len(job.job.tids()) == 1
    inject_in_time(probing, job.pid)
    with open(str(job.go) + ".end", "w", encoding="ascii"):
        pass
    assert job.wait()[0] == 0


# --- the end ------------------------------------------------------------------------------------------------------

DAEMONS = """
import faulthandler, ctypes, signal, atexit
for _ in range(4):
    threading.Thread(target=spin, daemon=True).start()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
ready()
go_on()
"""


@pytest.mark.parametrize("end, expected, said", [
    ("os._exit(5)", 5, ""),
    ("sys.exit(3)", 3, ""),
    ("atexit.register(print, 'last words')", 0, "last words\n"),
    ("raise ValueError('on purpose')", 1, "ValueError: on purpose\n"),
    ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(1000)", -signal.SIGTERM, ""),
    ("os.kill(os.getpid(), signal.SIGINT); time.sleep(1000)", -signal.SIGINT, "KeyboardInterrupt\n"),
    ("ctypes.string_at(0)", -signal.SIGSEGV, ""),
    ("faulthandler.enable(); ctypes.string_at(0)", -signal.SIGSEGV, "Segmentation fault"),
    ("os.abort()", -signal.SIGABRT, ""),
], ids=["_exit", "exit", "atexit", "exception", "SIGTERM", "SIGINT", "crash", "faulthandler", "abort"])
def test_the_job_ends_as_without(sampled, some_python, end, expected, said):
    status, output = sampled(DAEMONS + end, python=some_python).wait()
    assert status == expected
    assert said in output
    if not said:
        assert output == ""


def test_a_crash_is_not_held_up(sampled, any_python):
    """The kernel ends all threads of a process that crashes; ours cannot delay that, nor a dump of its memory."""
    job = sampled("""
import ctypes, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
threading.Thread(target=spin, daemon=True).start()
def crash():
    ctypes.string_at(0)
ready()
go_on()
threading.Thread(target=crash).start()
time.sleep(1000)
""", python=any_python)
    assert job.wait(30) == (-signal.SIGSEGV, "")
    assert job.sampler.wait(30) == 4 # the client says that the target is gone


def test_finalisation_over_and_over(target, build_dir, some_python):
    """It ends while the agent has just begun, or is about to: 10 times, with daemon threads that want the GIL."""
    source = """
import os, sys, threading
def spin():
    while True:
        sum(range(100))
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
"""
    for _ in range(10):
        job = target(source, python=some_python, env={"LD_PRELOAD": os.path.join(build_dir, "libprobing.so")})
        assert job.process.wait(60) == 0
        assert job.output() == ""


# --- stopped ------------------------------------------------------------------------------------------------------

def test_stopped_and_continued(sampled, probing, some_python):
    job = sampled("""
threading.Thread(target=spin, daemon=True).start()
ready()
go_on()
print("ended well")
""", python=some_python)
    os.kill(job.pid, signal.SIGSTOP)
    wait_until(lambda: job.job.state() == "T", 10, "the stop")
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and "kill -CONT" in document["target"]["mode_reason"]
    assert document["threads"][0]["state"] == "T" and document["threads"][0]["frames"]
    assert job.job.state() == "T"
    os.kill(job.pid, signal.SIGCONT)
    wait_until(lambda: job.job.state() != "T", 10, "the job to go on")
    assert probing(str(job.pid), "backtrace", "--json").ok().json()["target"]["mode"] == "agent"
    before = probing(str(job.pid), "status", "--json").ok().json()["sampler"]["samples"]
    wait_until(lambda: probing(str(job.pid), "status", "--json").ok().json()["sampler"]["samples"] > before, 30,
               "sampling to go on")
    assert job.wait() == (0, "ended well\n")
