# SPDX-License-Identifier: Apache-2.0
"""python.torch_trace: times of modules against what the job measures itself; what is armed is a lease, and leaves nothing behind."""

import json
import math
import statistics

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client, rows
from conftest import wait_until
from virtual_rows import made

ENV = {"PROBING_SAMPLE_RATE": "20", "PROBING_MAX_MEMORY": "4MB", "PROBING_TRACE_RATE": "50", "OMP_NUM_THREADS": "1"}

PREPARE = """
import ctypes, threading, time, torch
torch.set_num_threads(1)
torch.manual_seed(1)

class Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        time.sleep(2 * ctx.seconds)
        return grad, None

class Slow(torch.nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.linear = torch.nn.Linear(8, 8)
    def forward(self, x):
        return Wait.apply(self.linear(x), self.seconds)

class Hostile(torch.nn.Module):
    def __getattr__(self, name):
        if name.startswith("_") or name == "training":
            return super().__getattr__(name)
        raise RuntimeError("not for you: " + name)
    def __repr__(self):
        raise RuntimeError("no repr")
    def __len__(self):
        raise RuntimeError("no len")
    def __eq__(self, other):
        raise RuntimeError("no eq")
    __hash__ = torch.nn.Module.__hash__
    def forward(self, x):
        return {"x": x * 1.5}["x"]

class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError("as it does")

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Slow(0.004)
        self.second = Slow(0.008)
        self.twice = Slow(0.002)
        self.hostile = Hostile()
        self.raises = Raises()
        self.head = torch.nn.Linear(8, 1)
    def forward(self, x):
        x = self.twice(self.twice(self.hostile(self.second(self.first(x)))))
        try:
            self.raises(x)
        except ValueError:
            pass
        return self.head(x)

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []

def steps(n):
    for i in range(n):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())

stop = False
def train_for_ever():
    while not stop:
        steps(1)
def begin():
    global thread, stop
    stop = False
    thread = threading.Thread(target=train_for_ever)
    thread.start()
def end():
    global stop
    stop = True
    thread.join()

# What is in each of torch's registries of hooks.
def hooks():
    import torch.nn.modules.module as m, torch.optim.optimizer as o
    found = {n: len(v) for where in (m, o) for n, v in vars(where).items() if n.startswith("_global_") and "hook" in n and hasattr(v, "__len__")}
    for name, child in model.named_modules():
        for n, v in vars(child).items():
            if n.endswith("_hooks"):
                found["hooks"] = found.get("hooks", 0) + len(v)
    return sum(found.values())

def parameters():
    return [p.detach().sum().item().hex() for p in model.parameters()]
"""


@pytest.fixture
def make_trainer(job, torch_fork):  # noqa: F811
    """A factory of jobs that train a model whose modules take times that are known, or what `more` has made of it."""
    def make(more="", env=None):
        j = job(fork=torch_fork, env=dict(ENV, **(env or {})))
        answer = j.do(f"exec({PREPARE + more!r}, globals())")
        assert answer is None, answer
        return j
    return make


@pytest.fixture
def trainer(make_trainer):
    return make_trainer()


def rows_of(data_dir, j):
    folders = ring_file.folders(data_dir, j.pid)
    return ring_file.read(folders[-1], "python.torch_trace") if folders else []


def steps_of(data_dir, j):
    return ring_file.read(ring_file.folders(data_dir, j.pid)[-1], "python.steps")


def leases(client):
    status = client.call("status")
    return rows(status["leases"], status["strings"], ("what", "note"))


def wait_looks(client, n):
    """Until the lease has led to n looks; it."""
    return wait_until(lambda: next((lease for lease in leases(client) if lease["looks"] >= n), None), timeout=90, what=f"{n} looks", interval=0.05)


def wait_told(client):
    wait_until(lambda: client.call("status")["hooks"], timeout=60, what="torch to tell of its operations", interval=0.05)


def wait_no_hooks(j, what):
    wait_until(lambda: j.do("hooks()") == 0, timeout=60, what=what, interval=0.1)


def looks(client, data_dir, j, n):
    """Until n steps were looked into; their rows, by step."""
    def seen():
        by_step = {}
        for row in rows_of(data_dir, j):
            assert row["step"] is not None
            by_step.setdefault(row["step"], []).append(row)
        by_step.pop(max(by_step, default=None), None)  # of the last one not all may be there yet
        return by_step if len(by_step) >= n else None
    return wait_until(seen, timeout=90, what=f"{n} steps with modules", interval=0.3)


# What modules are known to take of each call, in ms, and how often a step calls them.
KNOWN = (("first", 4, 1), ("second", 8, 1), ("twice", 4, 2))


def over_known(by_step):
    """The least that each module was over what it is known to take, forward and backward: the machine may be busy, but not always."""
    least = {}
    for rows in by_step.values():
        of = {(r["module"], r["stage"]): r["duration_ms"] for r in rows}
        for module, ms, _ in KNOWN:
            for stage, known in (("forward", ms), ("backward", 2 * ms)):
                least[module, stage] = min(least.get((module, stage), math.inf), of[module, stage] / known)
    return least


def test_times_of_modules(trainer, data_dir):
    j = trainer
    with Client(j.start()) as client:
        wait_told(client)
        j.do("begin()")
        client.call("arm", {"what": "trace"})
        def near():
            found = looks(client, data_dir, j, 4)
            return found if all(ratio < 2 for ratio in over_known(found).values()) else None
        found = wait_until(near, timeout=60, what="times that are less than twice what is known", interval=0.3)
        client.call("disarm", {"what": "trace"})
        wait_no_hooks(j, "the hooks to be gone")
        j.do("end()")
    for rows in found.values():
        of = {(r["module"], r["stage"]): r for r in rows}
        step = of[None, "step"]
        assert step["operation_name"] == "step" and step["seq"] == 0
        assert of["", "forward"]["operation_name"] == "Model" and of["first.linear", "forward"]["operation_name"] == "Linear"
        for module, _, calls in KNOWN:
            forward, backward = of[module, "forward"], of[module, "backward"]
            assert forward["calls"] == backward["calls"] == calls, rows
            assert forward["activation_bytes"] == 4 * 8 * 4 * calls
        assert of["hostile", "forward"]["operation_name"] == "Hostile"
        assert of["raises", "forward"]["duration_ms"] is None and of["raises", "forward"]["calls"] == 0
        inner = sum(of[m, "forward"]["duration_ms"] for m in ("first", "second", "twice", "hostile", "head"))
        assert inner <= of["", "forward"]["duration_ms"] + 0.01 <= step["duration_ms"]
        assert 32 <= of["", "backward"]["duration_ms"] <= step["duration_ms"]
    assert all(ratio >= 1 for ratio in over_known(found).values())


def test_a_lease_ends_with_its_owner(trainer):
    """Disarmed, its time over, its steps done, its client gone, the agent gone: nothing is left in torch's registries."""
    j = trainer
    assert j.do("hooks()") == 0
    j.do("begin()")
    endpoint = j.start()
    with Client(endpoint) as watcher:
        wait_told(watcher)
        for ends in ("disarm", "limit_s", "steps", "gone"):
            client = Client(endpoint)
            params = {"what": "trace"}
            if ends == "limit_s":
                params["limit_s"] = 6
            if ends == "steps":
                params["steps"] = 2
            client.call("arm", params)
            wait_until(lambda: any(lease["looks"] > 0 for lease in leases(watcher)), timeout=60, what="a look", interval=0.05)
            if ends == "disarm":
                client.call("disarm", {"what": "trace"})
            if ends == "gone":
                client.close()
            wait_until(lambda: not leases(watcher), timeout=60, what=f"the lease to end by {ends}", interval=0.05)
            wait_no_hooks(j, f"the hooks to be gone by {ends}")
            if ends != "gone":
                client.close()
        watcher.call("arm", {"what": "trace"})
        wait_until(lambda: j.do("hooks()") > 0, timeout=60, what="hooks to be in", interval=0.01)
        watcher.call("eject")
    wait_until(lambda: not j.agent_threads(), timeout=60, what="the agent to leave")
    assert j.do("hooks()") == 0
    j.do("end()")


def test_numbers_are_the_same(trainer, job, torch_fork):  # noqa: F811
    other = job(fork=torch_fork, env=ENV)
    assert other.do(f"exec({PREPARE!r}, globals())") is None
    other.do("steps(60)")
    j = trainer
    with Client(j.start()) as client:
        wait_told(client)
        client.call("arm", {"what": "trace"})
        j.do("steps(60)")
        status = [lease for lease in leases(client) if lease["what"] == "trace"]
        assert status[0]["looks"] > 0
    assert j.do("losses") == other.do("losses")
    assert j.do("parameters()") == other.do("parameters()")


def test_bad_wishes(trainer):
    j = trainer
    with Client(j.start()) as client:
        for params, words in (({"what": "trce"}, "did you mean trace?"), ({}, "what"), ({"what": "trace", "limit_s": "x"}, "limit_s"),
                              ({"what": "trace", "limit_s": 1e9}, "86400"), ({"what": 3}, "what")):
            error = client.call_error("arm", params)
            assert words in json.dumps(error), (params, error)
        assert not leases(client)


def test_as_many_steps_as_were_asked_for(make_trainer, data_dir):
    """One step in twenty: steps that sleep for some 50 ms leave room for that. What it costs is known then, and no more than is let."""
    j = make_trainer(env={"PROBING_TRACE_RATE": "5"})
    with Client(j.start()) as client:
        wait_told(client)
        j.do("begin()")
        client.call("arm", {"what": "trace"})
        steps = sorted(looks(client, data_dir, j, 9))
        lease = leases(client)[0]
        j.do("end()")
    between = statistics.median(b - a for a, b in zip(steps, steps[1:]))
    assert 15 <= between <= 25 or lease["note"] is not None, (steps, lease)
    assert 0 < lease["cost_pct"] < 1.5, lease


def test_the_configuration_is_an_owner(make_trainer, probing):
    """On from the start, through every client's end; off and on again while it runs; watching values alone arms nothing."""
    j = make_trainer(env={"PROBING_TORCH_PROFILING": "on"})
    endpoint = j.start()
    j.do("begin()")
    with Client(endpoint) as client:
        lease = wait_looks(client, 1)
        assert lease["what"] == "trace" and lease["by_config"] and lease["owners"] == 0 and lease["left_s"] is None
        client.call("arm", {"what": "trace"})
        assert [(lease["owners"], lease["by_config"]) for lease in leases(client)] == [(1, True)]
    with Client(endpoint) as client:
        seen = wait_until(lambda: next((x for x in leases(client) if x["owners"] == 0), None), timeout=60, what="the client to be gone", interval=0.05)
        assert seen["by_config"]
        wait_looks(client, seen["looks"] + 1)
        for value in ("off", "on", "exprs=loss"):
            probing(str(j.pid), "config", f"torch_profiling={value}").ok()
            if value == "on":
                assert wait_looks(client, 1)["by_config"]
            else:
                wait_until(lambda: not leases(client), timeout=60, what="the lease to end", interval=0.05)
                wait_no_hooks(j, "the hooks to be gone")
        assert j.longest_hold_us(client) <= 2000
    said = probing(str(j.pid), "status", "--json").ok().json()
    assert said["leases"] == []
    probing(str(j.pid), "config", "torch_profiling=on").ok()
    with Client(endpoint) as client:
        wait_until(lambda: j.do("hooks()") > 0, timeout=60, what="hooks to be in", interval=0.01)
        client.call("eject")
    wait_until(lambda: not j.agent_threads(), timeout=60, what="the agent to leave")
    assert j.do("hooks()") == 0
    j.do("end()")


def test_modules_have_what_was_seen_last(trainer, data_dir):
    """python.modules has the times of each module's last traced step, as python.torch_trace has them; before, they are unknown."""
    j = trainer
    columns = ("forward_ms", "backward_ms", "calls", "activation_bytes", "traced_step")
    with Client(j.start()) as client:
        wait_told(client)
        assert all(row[c] is None for row in made(client, "python.modules")[0] for c in columns)
        j.do("begin()")
        client.call("arm", {"what": "trace", "steps": 3})
        wait_until(lambda: not leases(client), timeout=90, what="three looks", interval=0.05)
        j.do("end()")
        table = {row["path"]: row for row in made(client, "python.modules")[0]}
        last = table["model"]["traced_step"]
        wait_until(lambda: last in {row["step"] for row in rows_of(data_dir, j)}, timeout=60, what="its rows", interval=0.1)
        traced = {(row["module"], row["stage"], row["step"]): row for row in rows_of(data_dir, j)}
        assert len({step for _, _, step in traced}) == 3 and {row["traced_step"] for row in table.values()} == {last}
        for path, row in table.items():
            name = path.partition(".")[2]
            forward, backward = (traced.get((name, stage, row["traced_step"])) for stage in ("forward", "backward"))
            assert row["calls"] == forward["calls"] and row["activation_bytes"] == forward["activation_bytes"]
            assert row["forward_ms"] == forward["duration_ms"]
            assert row["backward_ms"] == (backward["duration_ms"] if backward else None)
        assert table["model.raises"]["forward_ms"] is None and table["model.raises"]["calls"] == 0
        assert table["model.twice"]["calls"] == 2 and table["model.first"]["backward_ms"] > 8
        assert j.longest_hold_us(client) <= 2000


# Gradients are only there for a moment; of each step: the norms of those that the optimizer had, by module.
GRADIENTS = """
norms = []
spoil = False
def steps(n):
    for i in range(n):
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        if spoil:
            model.head.weight.grad[0, 3] = float("inf")
        of = {name: [p.grad.double() for p in m.parameters()] for name, m in model.named_modules()}
        norms.append({name: sum(g[g.isfinite()].square().sum().item() for g in found) ** 0.5 for name, found in of.items() if found})
        optimizer.step()
        optimizer.zero_grad()
        if spoil:
            with torch.no_grad():
                model.head.weight.fill_(0.1)
        losses.append(loss.item().hex())
"""


def test_gradients_of_a_step_that_was_traced(make_trainer):
    """A job that gives its gradients up right after each step: python.modules has the norms of those of the last traced step, and what is not finite."""
    j = make_trainer(GRADIENTS)
    with Client(j.start()) as client:
        def trace():
            j.do("begin()")
            client.call("arm", {"what": "trace", "steps": 2})
            wait_until(lambda: not leases(client), timeout=90, what="two looks", interval=0.05)
            j.do("end()")
            return {row["path"].partition(".")[2]: row for row in made(client, "python.modules")[0]}
        wait_told(client)
        table, told = trace(), j.do("norms")
        step = min(told, key=lambda of: abs(of[""] - table[""]["grad_norm"]))
        assert set(step) == {"", "first", "first.linear", "second", "second.linear", "twice", "twice.linear", "head"}
        for path, row in table.items():
            assert row["grad_norm"] == (pytest.approx(step[path], rel=1e-9) if path in step else None) and row["nan"] is None, (path, row)
        j.do("globals().update(spoil=True, norms=[])")
        table, told = trace(), j.do("norms")
        assert {path: row["nan"] for path, row in table.items() if row["nan"]} == {"": "gradient below", "head": "gradient"}
        assert table[""]["grad_norm"] is None and table["head"]["grad_norm"] is None
        assert any(table["first"]["grad_norm"] == pytest.approx(of["first"], rel=1e-9) for of in told)


# What torch says of all gradients of a step, by the number of the step.
NORM_OF_ALL = """
clipped = []
kept = 1e9
lookup = torch.nn.EmbeddingBag(4, 1, sparse=True)
sparse = False
def steps(n):
    for i in range(n):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8) * (len(clipped) % 7 + 1)).square().mean()
        if sparse:
            loss = loss + lookup(torch.tensor([[0, 1]])).sum()
        loss.backward()
        clipped.append(torch.nn.utils.clip_grad_norm_(model.parameters(), kept).item())
        optimizer.step()
        losses.append(loss.item().hex())
"""


def test_norm_of_all_gradients_of_a_step_that_was_traced(make_trainer, data_dir):
    """python.steps has what clip_grad_norm_ returns, for steps that were traced and no others; after clipping what is left; nothing where a gradient is not read."""
    j = make_trainer(NORM_OF_ALL)
    with Client(j.start()) as client:
        def traced():
            """(norm in python.steps, what clip_grad_norm_ has returned) of each step of four looks and those between them."""
            since = len(j.do("clipped")) + 1  # one goes on
            client.call("arm", {"what": "trace", "steps": 4})
            wait_until(lambda: not leases(client), timeout=90, what="four looks", interval=0.05)
            until = len(j.do("clipped"))
            wait_until(lambda: steps_of(data_dir, j)[-1]["step"] >= until, timeout=60, what="the rows", interval=0.1)
            told = j.do("clipped")
            return [(row["grad_norm"], told[row["step"] - 1]) for row in steps_of(data_dir, j) if since < row["step"] <= until]
        wait_told(client)
        j.do("begin()")
        wait_until(lambda: len(j.do("clipped")) > 2, timeout=60, what="steps", interval=0.05)
        steps = traced()
        read = [pair for pair in steps if pair[0] is not None]
        assert len(read) == 4 and len(steps) > 4, steps
        assert all(norm == pytest.approx(told, rel=1e-5) for norm, told in read) and len({told for _, told in read}) > 1, read
        j.do("globals().update(kept=0.001)")
        read = [pair for pair in traced() if pair[0] is not None]
        assert len(read) == 4 and all(norm == pytest.approx(0.001, rel=1e-2) and told > 0.002 for norm, told in read), read
        j.do("optimizer.add_param_group({'params': list(lookup.parameters())}) or globals().update(sparse=True)")
        steps = traced()
        assert len(steps) > 4 and all(norm is None for norm, _ in steps), steps
        j.do("end()")
        assert {row["path"]: row["grad_norm"] for row in made(client, "python.modules")[0]}["model.head"] is not None


COMPILED = """
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)), backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""


def test_what_is_compiled_is_left_alone_unless_that_is_asked_for(make_trainer):
    j = make_trainer(COMPILED)
    with Client(j.start()) as client:
        wait_told(client)
        j.do("begin()")
        wait_until(lambda: j.do("len(losses)") > 3, timeout=120, what="it to be compiled")
        error = client.call_error("arm", {"what": "trace"})
        assert "torch.compile is used here" in json.dumps(error)
        assert j.do("hooks()") == 0
        assert [(lease["looks"], lease["owners"]) for lease in leases(client)] == [(0, 0)]
        assert "torch.compile" in leases(client)[0]["note"]
        client.call("arm", {"what": "trace", "compiled": True})
        wait_looks(client, 1)
        client.call("disarm", {"what": "trace"})
        wait_no_hooks(j, "the hooks to be gone")
        j.do("end()")


PROFILED = """
class Sized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name, width, gives in (("small", 384, 512), ("middle", 512, 1536), ("large", 1536, 2560)):
            self.add_module(name, torch.nn.Linear(width, gives))
    def forward(self, x):
        for name in ("small", "middle", "large"):
            with torch.profiler.record_function(name):
                x = getattr(self, name)(x)
        return x

model = Sized()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
events = []

def steps(n):
    for i in range(n):
        optimizer.zero_grad()
        loss = model(torch.ones(64, 384, requires_grad=True)).square().mean()
        loss.backward()
        optimizer.step()

def train_for_ever():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        while not stop:
            steps(1)
    start = profile.profiler.kineto_results.trace_start_ns() / 1e9
    names = ("small", "middle", "large", "aten::linear", "autograd::engine::evaluate_function: AddmmBackward0")
    for e in profile.events():
        if e.name in names:
            events.append((e.name.rpartition(" ")[2], start + e.time_range.start / 1e6, e.time_range.elapsed_us() / 1e3))
"""


def seen_by_profiler(events, begin, end):
    """{(module, stage): (ms at least, ms at most)} of what the profiler saw in that time.

    A forward lies between what it computes and the range around its call, in which our hooks' time is, too; the backward of each module is
    one range, from the last module on.
    """
    inside = sorted((at, name, ms) for name, at, ms in events if begin <= at < end)
    of = lambda *names: [ms for _, name, ms in inside if name in names]
    modules = ("small", "middle", "large")
    forward = {(name, "forward"): ms for name, ms in zip(modules, zip(of("aten::linear"), of(*modules)))}
    return {**forward, **{(name, "backward"): (ms, ms) for name, ms in zip(reversed(modules), of("AddmmBackward0"))}}


def test_times_are_those_of_the_profiler(make_trainer, data_dir):
    """Of the same steps: each module's time is what torch.profiler saw of it, and the modules are in the same order."""
    j = make_trainer(PROFILED)
    with Client(j.start()) as client:
        wait_told(client)
        j.do("begin()")
        client.call("arm", {"what": "trace"})
        found = looks(client, data_dir, j, 5)
        client.call("disarm", {"what": "trace"})
        wait_no_hooks(j, "the hooks to be gone")
        j.do("end()")
    events, least, most, orders = j.do("events"), {}, {}, []
    for rows in found.values():
        ours = {(r["module"], r["stage"]): r["duration_ms"] for r in rows}
        step = next(r for r in rows if r["stage"] == "step")
        theirs = seen_by_profiler(events, step["timestamp"], step["timestamp"] + step["duration_ms"] / 1e3)
        assert len(theirs) == 6, (step, theirs)
        for key, (low, high) in theirs.items():
            least.setdefault(key, []).append(ours[key] / low)
            most.setdefault(key, []).append(ours[key] / high)
        for stage in ("forward", "backward"):
            of = [key for key in theirs if key[1] == stage]
            orders.append(sorted(of, key=ours.get) == sorted(of, key=theirs.get))
    ratios = {key: (statistics.median(least[key]), statistics.median(most[key])) for key in least}
    assert all(low > 0.95 and high < (1.05 if stage == "forward" else 1.25) for (_, stage), (low, high) in ratios.items()), ratios
    assert all(low < 1.25 for (module, _), (low, _) in ratios.items() if module != "small"), ratios  # the call itself is short to that
    assert sum(orders) >= 0.8 * len(orders), ratios


MODES = """
import re
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(re.sub("0x[0-9a-f]+", "", str(func)))
        return func(*args, **(kwargs or {}))
class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))
def steps_in_modes(n):
    with Functions(), Dispatches():
        steps(n)
    return seen
"""


def test_modes_of_the_job_see_nothing(make_trainer, data_dir):
    """What the job has itself told of every function and operation of torch is the same with hooks that read outputs and their nodes."""
    runs = []
    for j, armed in ((make_trainer(MODES), True), (make_trainer(MODES), False)):
        if not armed:
            assert j.do("steps(3)") is None
            runs.append(j.do("steps_in_modes(4)"))
            continue
        with Client(j.start()) as client:
            wait_told(client)
            j.do("steps(3)")
            client.call("arm", {"what": "trace", "steps": 1})
            wait_until(lambda j=j: j.do("hooks()") == 3, timeout=60, what="hooks to be in", interval=0.05)
            runs.append(j.do("steps_in_modes(4)"))
            wait_until(lambda c=client: not leases(c), timeout=60, what="the lease to end", interval=0.05)
        rows_seen = wait_until(lambda j=j: rows_of(data_dir, j), timeout=60, what="rows of the step", interval=0.1)
        of = {(r["module"], r["stage"]): r for r in rows_seen}
        assert of["first", "forward"]["activation_bytes"] == 4 * 8 * 4 and of["first", "backward"]["duration_ms"] > 0
    assert len(runs[0]) > 100 and runs[0] == runs[1]
