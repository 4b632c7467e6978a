# SPDX-License-Identifier: Apache-2.0
"""torch.profiler on demand: begun and ended at steps of the job, on its own thread; what it costs is shown first, and nothing is left of it."""

import collections
import json
import os
import re
import signal
import stat
import subprocess

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client, rows
from conftest import wait_until
from test_modules_trace import ENV, PREPARE, make_trainer, trainer, wait_told  # noqa: F401
from training_job import training_job  # noqa: F401

MORE = """
import json, multiprocessing.util, os
import torch.optim.optimizer as optimizers
import torch.nn.modules.module as module_hooks
def left():
    "What there could be left of it."
    registries = [r for where in (optimizers, module_hooks) for n, r in vars(where).items() if n.startswith("_global_") and isinstance(r, dict)]
    return sum(len(r) for r in registries) + len(multiprocessing.util._afterfork_registry)

def evaluate_for_ever():
    with torch.no_grad():
        while not stop:
            model.first.linear(torch.ones(4, 8))

def begin_then_evaluate(steps_first):
    "Some steps, then none any more, on a thread; says when the steps are over."
    global thread, stop, stepped
    stop, stepped = False, threading.Event()
    def run():
        while not profiling() and not stop:
            steps(1)
        steps(steps_first)
        stepped.set()
        evaluate_for_ever()
    thread = threading.Thread(target=run)
    thread.start()

def profiling():
    "Is the hook in, and torch's profiler on, on this thread?"
    return torch.autograd._profiler_enabled()

def loop_then_say(path):
    "On the main thread: it trains until it is profiled, and then comes by no hook any more. For how long it was profiled still."
    while not profiling():
        steps(1)
    open(path, "w").close()
    began = time.monotonic()
    while profiling() and time.monotonic() - began < 100:
        pass
    return time.monotonic() - began

def say(writer, trains):
    "In a child."
    if trains:
        steps(1)
    said = [profiling()]
    with torch.profiler.profile() as own:
        torch.ones(2).sum()
    os.write(writer, json.dumps(said + [profiling(), len(own.events()) > 0, len(losses)]).encode())
    os.close(writer)

def fork_by(how, writer):
    if how == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=say, args=(writer, False))
        child.start()
        child.join()
        return child.exitcode
    pid = os.fork()
    if pid == 0:
        try:
            say(writer, True)
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]

def forks_in_window():
    "On the main thread: children of a job that is profiled, and then the rest of its steps."
    while not profiling():
        steps(1)
    said = []
    for how in ("multiprocessing", "fork"):
        reader, writer = os.pipe()
        said.append([fork_by(how, writer)])
        os.close(writer)
        with os.fdopen(reader) as answer:
            said[-1] += json.loads(answer.read() or "[]")
    before = len(losses)
    steps(40)
    return [said, before]
"""


def eject(client):
    """When it may: the profiler is ended first."""
    def ejected():
        try:
            client.call("eject")
        except AssertionError as refused:  # not at this moment
            print(refused)
            return False
        return True
    wait_until(ejected, timeout=60, what="the agent to leave", interval=0.1)


@pytest.fixture
def training(trainer):  # noqa: F811
    """A job that trains on a thread of its own, with an agent, and a client."""
    assert trainer.do(f"exec({MORE!r}, globals())") is None
    with Client(trainer.start()) as client:
        wait_told(client)
        yield trainer, client
        trainer.do("end()")


def lease(client):
    status = client.call("status")
    return next((one for one in rows(status["leases"], status["strings"], ("what", "note", "file")) if one["what"] == "profiler"), {"owners": 0, "armed": False, "note": "", "file": None})


def wait_over(client):
    wait_until(lambda: lease(client)["owners"] == 0 and not lease(client)["armed"], timeout=120, what="the profiler to be over", interval=0.05)
    return lease(client)


def profile(client, **params):
    """Arm it, and wait until it is over: the lease as it is then."""
    client.call("arm", dict(what="profiler", **params))
    return wait_over(client)


def rows_of(data_dir, j, n=1, kind="profiler"):
    def there():
        folders = ring_file.folders(data_dir, j.pid)
        found = [row for row in ring_file.read(folders[-1], "profiling_data") if row["kind"] == kind] if folders else []
        return found if len(found) >= n else None
    return wait_until(there, timeout=30, what="rows of the profiler", interval=0.1)


def sums_of(trace):
    """{name: [ms, calls]} of the operations in a trace."""
    sums = collections.defaultdict(lambda: [0.0, 0])
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
            sums[event["name"]][0] += event["dur"] / 1e3
            sums[event["name"]][1] += 1
    return dict(sums)


def test_a_trace_and_rows(training, data_dir):
    j, client = training
    before = j.do("left()")
    j.do("begin()")
    dry = profile(client, dry=True, steps=2)
    assert "2 steps: about" in dry["note"] and "the job will stop for" in dry["note"] and dry["file"] is None
    assert j.do("left()") == before
    done = profile(client, steps=2)
    assert done["note"].startswith("2 steps, ") and done["looks"] == 2
    assert j.do("left()") == before
    told = int(dry["note"].split("about ")[1].split()[0])
    counted = int(done["note"].split(", ")[1].split()[0])
    assert 0.5 < counted / told < 2, (dry, done)
    mode = os.stat(done["file"])
    assert stat.S_IMODE(mode.st_mode) == 0o600
    with open(done["file"], encoding="utf-8") as file:
        trace = json.load(file)
    assert not os.path.exists(done["file"] + ".d")
    sums = sums_of(trace)
    assert sums["Optimizer.step#SGD.step"][1] == 2 and sums["aten::addmm"][1] == 2 * 5
    found = rows_of(data_dir, j, 10)
    steps = sorted({row["step"] for row in found})
    assert len(steps) == 2 and steps[1] == steps[0] + 1
    added = collections.defaultdict(lambda: [0.0, 0])
    for row in found:
        assert row["calls"] >= 1 and row["tid"] in {event["tid"] for event in trace["traceEvents"] if event.get("cat") == "cpu_op"}
        added[row["operation_name"]][0] += row["duration_ms"]
        added[row["operation_name"]][1] += row["calls"]
    assert set(sums) <= set(added)
    for name, (ms, calls) in sums.items():
        assert added[name][1] == calls
        if name.startswith("Optimizer.step"):  # within the last of them it was ended
            continue
        assert abs(added[name][0] - ms) <= 0.002 * calls + 1e-6 * ms, name
    per_step = collections.Counter({step: sum(row["calls"] for row in found if row["step"] == step and row["operation_name"] == "aten::addmm") for step in steps})
    assert set(per_step.values()) == {5}


# What torch tells where there is a GPU: its events beside those of the processor, and the truth about them.
GPU = """
class Event:
    def __init__(self, name, begin, end, kind="kernel", device=0):
        self.all = name, int(begin), int(end - begin), kind, device
    name = lambda self: self.all[0]
    start_ns = lambda self: self.all[1]
    duration_ns = lambda self: self.all[2]
    activity_type = lambda self: self.all[3]
    device_index = lambda self: self.all[4]
    device_resource_id = lambda self: 7
    device_type = lambda self: "DeviceType.CUDA"

class Result:
    def __init__(self, result):
        self.result = result

    def save(self, path):
        self.result.save(path)

    def events(self):
        global truth
        events = list(self.result.events())
        ends = sorted(e.start_ns() + e.duration_ns() for e in events if e.name().startswith("Optimizer.step#"))
        (a, b), c = (events[0].start_ns(), ends[0]), ends[1]
        for begin, end in ((a, b), (b, c)):
            part = (end - begin) / 8
            events += [Event("gemm", begin + 2 * part, begin + 4 * part), Event("relu", begin + 3 * part, begin + 6 * part),
                       Event("step", begin, end, "gpu_user_annotation")]
        events += [Event("Memcpy", b - (b - a) / 8, b + (c - b) / 8, "gpu_memcpy"), Event("gemm", a, a + (b - a) / 2, device=1)]
        events.sort(key=lambda e: e.start_ns())
        truth = [["cuda:0", 0, a / 1e9, (b - a) * 5 / 8e6, 3], ["cuda:0", 1, b / 1e9, (c - b) * 5 / 8e6, 3],
                 ["cuda:1", 0, a / 1e9, (b - a) / 2e6, 1]]
        return events

whole = torch.autograd._disable_profiler
torch.autograd._disable_profiler = lambda: Result(whole())
"""


def test_time_on_a_gpu(training, data_dir):
    """What overlaps counts once, a range of the job not at all, and what crosses the end of a step for both."""
    j, client = training
    assert j.do(f"exec({GPU!r}, globals())") is None
    j.do("begin()")
    done = profile(client, steps=2)
    assert re.search(r"; the busiest GPU was at work for 6[23] % of the time$", done["note"]), done  # 62.5
    truth, found = j.do("truth"), rows_of(data_dir, j, 3, "gpu")
    first = min(row["step"] for row in found)
    of = {(row["operation_name"], row["step"] - first): row for row in found}
    assert len(found) == len(of) == len(truth)
    for name, step, begin, ms, kernels in truth:
        row = of[name, step]
        assert abs(row["timestamp"] - begin) < 1e-5 and abs(row["duration_ms"] - ms) < 0.001, (truth, found)
        assert row["calls"] == kernels and row["tid"] is None


@pytest.mark.long
def test_numbers_are_the_same(trainer, job, torch_fork):  # noqa: F811
    other = job(fork=torch_fork, env=ENV)
    assert other.do(f"exec({PREPARE!r}, globals())") is None
    other.do("steps(150)")
    j = trainer
    with Client(j.start()) as client:
        wait_told(client)
        client.call("arm", {"what": "profiler", "steps": 3})
        j.do("steps(150)")
        assert wait_over(client)["note"].startswith("3 steps, ")
    assert j.do("losses") == other.do("losses")
    assert j.do("parameters()") == other.do("parameters()")


@pytest.mark.long
def test_again_and_again(training):
    """Also on the main thread after another one, and the report is of the newest."""
    j, client = training
    before = j.do("left()")
    files = []
    for main in (False, True, False):
        if main:
            client.call("arm", {"what": "profiler", "steps": 1})
            j.do("steps(100)")
            done = wait_over(client)
        else:
            j.do("begin()")
            done = profile(client, steps=1)
            j.do("end()")
        assert done["note"].startswith("1 step, "), done
        files.append(done["file"])
        assert j.do("left()") == before and not j.do("profiling()")
    assert len(set(files)) == 3


@pytest.mark.parametrize("how", ["disarm", "gone", "eject"])
def test_ended_early(trainer, how):  # noqa: F811
    """While it runs: nothing of it is left, and no file."""
    j = trainer
    assert j.do(f"exec({MORE!r}, globals())") is None
    before = j.do("left()")
    endpoint = j.start()
    with Client(endpoint) as watcher:
        wait_told(watcher)
        j.do("begin()")
        client = Client(endpoint)
        client.call("arm", {"what": "profiler", "steps": 20})
        wait_until(lambda: lease(watcher)["armed"], timeout=60, what="it to begin", interval=0.01)
        if how == "disarm":
            client.call("disarm", {"what": "profiler"})
        elif how == "gone":
            client.close()
        else:
            eject(client)
        if how == "eject":
            wait_until(lambda: not j.agent_threads(), timeout=60, what="the agent's threads to end")
        else:
            assert not wait_over(watcher)["file"]
        if how == "disarm":
            client.close()
    wait_until(lambda: j.do("left()") == before, timeout=60, what="the hooks to be gone", interval=0.05)
    j.do("end()")


@pytest.mark.long
def test_steps_that_do_not_come(training):
    """A job that evaluates from some step on: it is ended at a call of a module, and says how many steps there were."""
    j, client = training
    before = j.do("left()")
    j.do("begin_then_evaluate(3)")
    client.call("arm", {"what": "profiler", "steps": 20})
    j.do("stepped.wait(100)")
    assert lease(client)["armed"]
    done = wait_over(client)  # after a minute, or sooner as there are too many operations
    steps = int(done["note"].split()[0])
    assert 1 <= steps < 20 and json.load(open(done["file"], encoding="utf-8"))["traceEvents"], done
    assert j.do("left()") == before


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["disarm", "eject"])
def test_no_hook_comes_by(trainer, how, tmp_path):  # noqa: F811
    """The main thread neither takes steps nor calls modules: it is ended between two of its instructions."""
    j = trainer
    assert j.do(f"exec({MORE!r}, globals())") is None
    before = j.do("left()")
    endpoint = j.start()
    with Client(endpoint) as client:
        j.do("steps(20)")
        wait_told(client)
        client.call("arm", {"what": "profiler", "steps": 20})
        j.tell(f"loop_then_say({str(tmp_path / 'profiled')!r})")
        wait_until((tmp_path / "profiled").exists, timeout=60, what="it to begin", interval=0.01)
        if how == "disarm":
            client.call("disarm", {"what": "profiler"})
            assert not wait_over(client)["file"]
        else:
            eject(client)
    assert json.loads(j.answers.readline()) < 90
    wait_until(lambda: j.do("left()") == before, timeout=60, what="the hooks to be gone", interval=0.05)


def test_forks_while_it_runs(trainer, data_dir):  # noqa: F811
    """A child has no profiler on, can have its own, and ends well; the job's report is of the job."""
    j = trainer
    assert j.do(f"exec({MORE!r}, globals())") is None
    before = j.do("left()")
    with Client(j.start()) as client:
        j.do("steps(20)")
        wait_told(client)
        client.call("arm", {"what": "profiler", "steps": 8})
        said, steps = j.do("forks_in_window()")
        assert [one[:4] for one in said] == [[0, False, False, True]] * 2, said
        assert said[1][4] == said[0][4] + 1 and steps == said[0][4]
        done = wait_over(client)
        assert done["note"].startswith("8 steps, "), done
        assert sums_of(json.load(open(done["file"], encoding="utf-8")))["Optimizer.step#SGD.step"][1] == 8
        assert not [name for name in os.listdir(os.path.dirname(done["file"])) if name.endswith(".d")]
    assert j.do("left()") == before


def test_two_optimizers_take_a_step(training_job):  # noqa: F811
    """Two steps of a generator and a discriminator are four of optimizers."""
    gan = training_job("gan", "--no-loader")
    gan.wait_steps(30)
    with Client(gan.status()["endpoint"]) as client:
        wait_told(client)
        done = profile(client, steps=2)
    assert done["note"].startswith("2 steps, ") and done["looks"] == 2, done
    assert sums_of(json.load(open(done["file"], encoding="utf-8")))["Optimizer.step#Adam.step"][1] == 4
    rows = wait_until(lambda: [row for row in gan.rows("profiling_data") if row["kind"] == "profiler"], timeout=30, what="rows", interval=0.1)
    steps = sorted({row["step"] for row in rows})
    assert len(steps) == 2 and steps[1] == steps[0] + 1, steps
    gan.end()


def refusal(client, **params):
    """Why it is refused, by the agent: before its hook is in."""
    return json.dumps(client.call_error("arm", dict(what="profiler", **params)))


@pytest.mark.long
def test_refusals(training):
    j, client = training
    before = j.do("left()")
    assert "up to 20 steps" in refusal(client, steps=21)
    j.do("begin()")
    for make, undo, why in (
            ("globals().update(p=torch.profiler.profile())", "torch.autograd.profiler.KinetoStepTracker._step_dict.clear()", "torch.profiler of its own"),
            ("os.environ.update(NSYS_PROFILING_SESSION_ID='1')", "os.environ.pop('NSYS_PROFILING_SESSION_ID')", "NSYS_PROFILING_SESSION_ID is set"),
            ("setattr(torch.autograd.profiler, '_is_profiler_enabled', True)", "setattr(torch.autograd.profiler, '_is_profiler_enabled', False)", "another profiler of torch"),
            ("threading.settrace_all_threads(lambda *a: None) if hasattr(threading, 'settrace_all_threads') else (end(), threading.settrace(lambda *a: None), begin())",
             "threading.settrace_all_threads(None) if hasattr(threading, 'settrace_all_threads') else (end(), threading.settrace(None), begin())", "being traced")):
        j.do(make)
        if why == "being traced":  # that is seen on the thread that would be profiled
            assert why in profile(client, steps=1)["note"]
        else:
            assert why in refusal(client, steps=1), why
            wait_over(client)
        j.do(undo)
        assert j.do("left()") == before
    assert profile(client, steps=1)["note"].startswith("1 step, ")
    client.call_error("arm", {"what": "trace", "dry": True})


def test_on_the_command_line(training, probing, tmp_path):
    j, client = training
    j.do("begin()")
    output = str(tmp_path / "trace.json")
    refused = probing(str(j.pid), "profile", "-o", output, timeout=90, stdin="")
    assert refused.status == 2 and "the job will stop for" in refused.stderr and "--yes" in refused.stderr and not os.path.exists(output)
    done = probing(str(j.pid), "profile", "--steps", "2", "--yes", "--json", "-o", output, timeout=120).ok()
    document = done.json()
    assert document["file"] == output and document["steps"] == 2 and not lease(client)["armed"]
    assert stat.S_IMODE(os.stat(output).st_mode) == 0o600 and not os.path.exists(lease(client)["file"])
    sums = sums_of(json.load(open(output, encoding="utf-8")))
    for row in document["operations"]:
        name, ended_within = row["operation"], row["operation"].startswith("Optimizer.step")
        assert ended_within or abs(sums[name][0] - row["total_ms"]) <= 0.001 * row["total_ms"] + 0.002 * row["calls"], row
        assert sums[name][1] == row["calls"]
    text = probing(str(j.pid), "profile", "--steps", "1", "--yes", timeout=120).ok().stdout
    assert text.startswith("1 step, ") and "OPERATION" in text
    for words, why in ((["--steps", "21"], "--steps"), (["-o", "-"], "-o trace.json"), (["-o", "/nowhere/x.json"], "/nowhere")):
        bad = probing(str(j.pid), "profile", "--yes", *words)
        assert bad.status in (1, 2) and why in bad.stderr and bad.stderr.count("\n") == 1, bad


def test_old_traces_are_removed(training, request):
    """The newest eight stay, of whatever process; what only looks like one of them is let alone."""
    j, client = training
    j.do("begin()")
    first = profile(client, steps=1)["file"]
    folder = os.path.dirname(first)
    now = int(first.rpartition("-")[2].partition(".")[0])
    older = [os.path.join(folder, f"profile-{pid}-{now - 1000 * pid}.json") for pid in range(1, 12)]
    others = [os.path.join(folder, name) for name in ("profile-1-x.json", "profile-1-5.json.d", "profile-1-5.txt", "profile--5.json", "profile-mine.json")]
    link = os.path.join(folder, "profile-1-7.json")
    for path in [*older, *others, link]:
        request.addfinalizer(lambda path=path: os.path.lexists(path) and os.unlink(path))
    for path in older + others:
        with open(path, "w", encoding="ascii") as file:
            file.write("{}")
    os.symlink(older[0], link)
    last = profile(client, steps=1)["file"]
    newer = [name for name in os.listdir(folder) if re.fullmatch(r"profile-[0-9]+-[0-9]+\.json", name)  # of other tests, perhaps
             and os.path.join(folder, name) not in (first, last, link, *older)]
    left = {path for path in [first, last, *older, *others] if os.path.exists(path)}
    assert len(newer) <= 6 and left == {first, last, *older[:6 - len(newer)], *others} and os.path.islink(link)


def test_the_command_is_killed(training, probing):
    j, client = training
    before = j.do("left()")
    j.do("begin()")
    with subprocess.Popen([probing.path, str(j.pid), "profile", "--steps", "20", "--yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        wait_until(lambda: lease(client)["armed"], timeout=60, what="it to begin", interval=0.01)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=30)
    wait_over(client)
    wait_until(lambda: j.do("left()") == before, timeout=60, what="the hooks to be gone", interval=0.05)
