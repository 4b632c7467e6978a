# SPDX-License-Identifier: Apache-2.0
"""python.steps and profiling_data: what torch tells of its operations, against what the job itself knows of them."""

import os
import signal
import subprocess

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import ROOT, inject_in_time, long_but, wait_until

ENV = {"PROBING_SAMPLE_RATE": "20", "PROBING_MAX_MEMORY": "4MB", "OMP_NUM_THREADS": "1"}
SLACK = 0.005  # s: two clocks are read one after the other

PREPARE = """
import ctypes, threading, time, torch
torch.set_num_threads(1)
parameter = torch.nn.Parameter(torch.ones(4))

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        time.sleep(2 * ctx.seconds)
        return grad * 2, None

class Items(torch.utils.data.Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 1000000
    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.zeros(4)

optimizer = torch.optim.SGD([parameter], lr=0.001)

# Time of the clock before and after each Optimizer.step.
def steps(n, seconds):
    times = []
    for i in range(n):
        optimizer.zero_grad()
        Slow.apply(parameter, seconds).sum().backward()
        before = time.time()
        optimizer.step()
        times.append((before, time.time()))
    return times

def batches(n, seconds, slow):
    fetches = []
    source = iter(torch.utils.data.DataLoader(Items(slow), batch_size=1))
    for i in range(n):
        before = time.time()
        next(source)
        fetches.append(time.time() - before)
        steps(1, seconds)
    return fetches

stop = False
def train_for_ever():
    while not stop:
        steps(1, 0.004)
def begin():
    global thread
    thread = threading.Thread(target=train_for_ever)
    thread.start()
def end():
    global stop
    stop = True
    thread.join()

has_callbacks = ctypes.CDLL(torch.__path__[0] + "/lib/libtorch_cpu.so")._ZN2at12hasCallbacksEv
has_callbacks.restype = ctypes.c_bool

def child_with_an_agent(n):
    # It takes n steps before it gets an agent of its own, and goes on.
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            steps(n, 0)
            os.write(writer, json.dumps([os.getpid(), start()]).encode() + bytes([10]))
            os.close(writer)
            train_for_ever()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return json.loads(answer.readline())

def child(n):
    pid = os.fork()
    if pid == 0:
        steps(n, 0)
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


@pytest.fixture
def torch_job(job, torch_fork):  # noqa: F811
    """A job with torch in it, which takes commands."""
    j = job(fork=torch_fork, env=ENV)
    answer = j.do(f"exec({PREPARE!r}, globals())")
    assert answer is None, answer
    return j


def table(data_dir, j, name):
    folders = ring_file.folders(data_dir, j.pid)
    return ring_file.read(folders[-1], name) if folders else []


def wait_told(client):
    """Until torch tells."""
    wait_until(lambda: client.call("status")["hooks"], timeout=60, what="torch to tell of its operations", interval=0.05)


def wait_steps(data_dir, j, n):
    wait_until(lambda: len(table(data_dir, j, "python.steps")) >= n, timeout=60, what=f"{n} steps", interval=0.1)
    return table(data_dir, j, "python.steps")


def test_steps_are_those_of_the_job(torch_job, data_dir):
    j = torch_job
    with Client(j.start()) as client:
        wait_told(client)
        times = j.do("steps(40, 0.002)")
        rows = wait_steps(data_dir, j, 40)  # the last one too, by itself
        assert [row["step"] for row in rows] == list(range(1, 41))
        for row, (before, after) in zip(rows, times):
            assert before - SLACK <= row["timestamp"] <= after + SLACK
            assert row["data_ms"] is None and row["comm_ms"] is None
        assert rows[0]["duration_ms"] is None
        longer = 0
        for row, (began, ended), (before, after) in zip(rows[1:], times, times[1:]):
            # from the end of the optimizer's step before, which lies between the job's own two times, to that of this one
            assert (before - ended) * 1e3 - 0.1 <= row["duration_ms"] <= (after - began) * 1e3 + 0.1
            longer += row["duration_ms"] > (after - ended + SLACK) * 1e3
            assert 0 < row["optimizer_ms"] < row["duration_ms"]
        assert longer <= 4, [row["duration_ms"] for row in rows]  # the CPU may be taken away between the end and the job's own time
        spans = table(data_dir, j, "profiling_data")
        assert len([s for s in spans if s["operation_name"] == "Optimizer.step#SGD.step" and s["kind"] == "optimizer"]) == 40
        assert len([s for s in spans if s["operation_name"] == "Optimizer.zero_grad#SGD.zero_grad"]) == 40
        status = wait_until(lambda: (lambda s: s["steps"] == 40 and s)(client.call("status")), timeout=60, what="status to know of them")
        assert status["spans"] >= 160 and status["spans_lost"] == 0


def test_time_for_batches(torch_job, data_dir):
    j = torch_job
    with Client(j.start()) as client:
        wait_told(client)
        fetches = j.do("batches(20, 0.001, 0.02)")
        rows = wait_steps(data_dir, j, 20)
        for row, seconds in list(zip(rows, fetches))[1:]:
            assert 20 <= row["data_ms"] <= (seconds + SLACK) * 1e3 and row["data_ms"] < row["duration_ms"]


def test_forward_and_backward(torch_job, data_dir):
    """Of steps that were looked into the parts are known, and are all there is."""
    j = torch_job
    with Client(j.start()) as client:
        wait_told(client)
        j.do("begin()")
        looked = wait_until(lambda: [r for r in table(data_dir, j, "python.steps") if r["backward_ms"] is not None][:3], timeout=90,
                            what="a step that was looked into", interval=0.3)
        j.do("end()")
        for row in looked:
            assert row["forward_ms"] >= 4 and row["backward_ms"] >= 8
            parts = sum(row[key] for key in ("forward_ms", "backward_ms", "optimizer_ms", "other_ms"))
            assert abs(parts - row["duration_ms"]) < 0.001
        rows = table(data_dir, j, "python.steps")
        assert all((r["forward_ms"] is None) == (r["backward_ms"] is None) == (r["other_ms"] is None) for r in rows)


def test_nothing_stays_armed(torch_job):
    j = torch_job
    assert j.do("has_callbacks()") is False
    with Client(j.start()) as client:
        wait_told(client)
        assert j.do("has_callbacks()") is True
        client.call("config", {"key": "probing.steps", "value": "off"})
        wait_until(lambda: not client.call("status")["hooks"], timeout=60, what="torch to be silent", interval=0.05)
        assert j.do("steps(3, 0)") and j.do("has_callbacks()") is False
        client.call("config", {"key": "probing.steps", "value": "on"})
        wait_told(client)
        assert j.do("steps(3, 0)") and j.do("has_callbacks()") is True
        j.do("begin()")  # so that it ends in the midst of it
        client.call("eject")
    wait_until(lambda: not j.agent_threads(), timeout=60, what="the agent to leave")
    j.do("end()")
    assert j.do("has_callbacks()") is False
    with Client(j.start()) as client:  # and a second time
        wait_told(client)
        assert len(j.do("steps(5, 0)")) == 5


def test_names_of_the_job_and_children(torch_job, data_dir):
    """record_function of the job's own, with any name; a child of a fork goes on like its parent."""
    j = torch_job
    with Client(j.start()) as client:
        wait_told(client)
        assert j.do("[torch.profiler.record_function(n).__enter__().__exit__(None, None, None) for n in ('mine', 'x' * 500, 'a\\x1b[2J\\n', '')]")
        names = wait_until(lambda: [s["operation_name"] for s in table(data_dir, j, "profiling_data") if s["kind"] == "user"], timeout=60,
                           what="the spans", interval=0.1)
        assert names == ["mine", "x" * 63, "a?[2J?", ""]
        assert j.do("child(3000)") == 7  # more than fit, and nobody takes them
        assert len(j.do("steps(5, 0)")) == 5
        wait_until(lambda: client.call("status")["steps"] >= 5, timeout=60, what="the parent's steps", interval=0.1)


def test_a_child_with_an_agent_of_its_own(torch_job, data_dir):
    """What its parent armed is silent in it until it has an agent too, whose steps are the child's alone."""
    j = torch_job
    with Client(j.start()) as client:
        wait_told(client)
        assert len(j.do("steps(5, 0)")) == 5
        pid, (result, error, endpoint) = j.do("child_with_an_agent(3000)")  # more than fit
        try:
            assert result == 0, error
            with Client(endpoint) as of_child:
                wait_told(of_child)
                status = wait_until(lambda: (lambda s: s["steps"] >= 20 and s)(of_child.call("status")), timeout=60, what="the child's steps", interval=0.1)
                assert status["spans_lost"] == 0 and status["spans"] < 3000
            rows = wait_until(lambda: ring_file.read(ring_file.folders(data_dir, pid)[-1], "python.steps"), timeout=60, what="the child's rows", interval=0.1)
            assert rows[0]["step"] == 1 and all(r["duration_ms"] >= 12 for r in rows[1:])
        finally:
            os.kill(pid, signal.SIGKILL)
        status = wait_until(lambda: (lambda s: s["steps"] == 5 and s)(client.call("status")), timeout=60, what="the parent's steps", interval=0.1)
        assert status["spans_lost"] == 0
        assert j.do("os.waitpid(-1, 0)[0]") == pid
        assert len(j.do("steps(5, 0)")) == 5
        wait_until(lambda: client.call("status")["steps"] == 10, timeout=60, what="the parent to go on", interval=0.1)


IMPORTS = """
import os, sys
os.write(1, b"begun\\n")
import torch
torch.set_num_threads(1)
torch.manual_seed(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    loss = model(torch.ones(4, 8)).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()
print([step() for i in range(20)], flush=True)
for line in sys.stdin:
    print([step() for i in range(20)], flush=True)
"""


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        return file.read()


class Imports:
    """A run of IMPORTS; what it prints, and how it ends."""

    def __init__(self, python, env=None):
        self.process = subprocess.Popen([python, "-c", IMPORTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, **(env or {})))
        self.pid = self.process.pid

    def wait_maps(self, name):
        wait_until(lambda: name in maps_of(self.pid), timeout=120, what=name, interval=0.001)

    def end(self):
        output = self.process.communicate("more\n" * 20, timeout=120)[0]
        return self.process.returncode, output


@pytest.fixture(scope="module")
def undisturbed(torch_python):
    """What it prints without us."""
    status, output = Imports(torch_python).end()
    assert status == 0
    return status, output


@pytest.mark.parametrize("moment", long_but(["/libtorch_python.so"], [None, "/libtorch_cpu.so", "/libtorch_python.so", "/_C.cpython"]))
def test_while_torch_is_being_imported(undisturbed, torch_python, ptrace, probing, moment):
    """An agent that comes before it, or when a library of torch's is mapped and not yet relocated, or not yet initialised: it waits until it is."""
    for _ in range(int(os.environ.get("PROBING_TEST_IMPORTS", "1"))):
        run = Imports(torch_python)
        try:
            assert run.process.stdout.readline() == "begun\n"
            if moment:
                run.wait_maps(moment)
            inject_in_time(probing, run.pid)
            wait_until(lambda run=run: probing(str(run.pid), "status", "--json").ok().json()["hooks"], timeout=60, what="torch to tell", interval=0.2)
            status, output = run.end()
        finally:
            run.process.kill()
        assert (status, "begun\n" + output) == undisturbed


@pytest.mark.parametrize("way", long_but(["2"], ["1", "2"]))
def test_started_before_torch_is(undisturbed, torch_python, build_dir, way):
    """PROBING=1 and 2: the agent is there before torch."""
    assert Imports(torch_python, {"PROBING": way, "LD_PRELOAD": f"{build_dir}/libprobing.so"}).end() == undisturbed


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_job_that_ends_meanwhile(torch_python, ptrace, probing, tmp_path):
    """Its end is its own: exit status, output and losses are those of a run without us."""
    runs = []
    for attached in (False, True):
        losses = tmp_path / f"losses_{attached}"
        command = [torch_python, f"{ROOT}/examples/train.py", "--steps", "30", "--workers", "0", "--losses", losses, "--print-every", "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            if attached:
                wait_until(lambda: losses.exists() and losses.stat().st_size, timeout=120, what="the first step")
                inject_in_time(probing, run.pid)
            output = run.communicate(timeout=300)[0]
        assert run.returncode == 0
        runs.append((losses.read_text(encoding="ascii"), output.splitlines()[-1]))
    assert runs[0] == runs[1] and runs[0][1] == "stopped after 30 steps"
