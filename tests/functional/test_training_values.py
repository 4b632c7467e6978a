# SPDX-License-Identifier: Apache-2.0
"""Loss, learning rate, collections of garbage and watched values of real training jobs, against what the jobs write of themselves; and
that none of it changes what they compute."""

import statistics
import struct

import pytest
from agent_job import job  # noqa: F401
from conftest import inject_in_time, wait_until
from training_job import agree, armed, took_ms, training_job  # noqa: F401

STEPS = 40


def exact(text):
    return float.fromhex(text)


def rows_of(job, steps=STEPS, name="python.steps"):
    wait_until(lambda: len(job.rows(name)) >= steps or not job.target.alive(), timeout=150, what=f"{steps} rows of {name}", interval=0.2)
    return job.rows(name)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_looks_keep_to_their_share_of_the_time(training_job, probing):  # noqa: F811
    """A job of short steps: some are left out, which is said; those that are not are right; none is while values are watched, or when it may take all."""
    job = training_job("amp", env={"PROBING_LOOK_SHARE": "0.07"})
    pid, first = str(job.pid), armed(job)
    def told(more=0):
        rows_of(job, len(job.rows("python.steps")) + more)
        return [row for row in job.rows("python.steps") if row["step"] >= first]
    def every_one_is_known():
        rows = told(STEPS)[-STEPS:]
        return all(row["loss"] is not None and row["lr"] is not None for row in rows)
    wait_until(lambda: any(row["loss"] is None for row in told()[:-1]), timeout=120, what="steps that are left out", interval=0.2)
    wait_until(lambda: "probing.look_share" in (probing(pid, "status", "--json").ok().json()["hooks_note"] or ""), 60, "that it is said", interval=0.2)
    probing(pid, "config", "probing.torch_profiling=exprs=number").ok()
    wait_until(every_one_is_known, timeout=120, what="losses of every step beside what is watched", interval=0.2)
    probing(pid, "config", "probing.torch_profiling=off").ok()
    wait_until(lambda: any(row["loss"] is None for row in told(STEPS)[-STEPS:-1]), timeout=120, what="steps that are left out again", interval=0.2)
    probing(pid, "config", "probing.look_share=100").ok()
    wait_until(every_one_is_known, timeout=120, what="losses of every step", interval=0.2)
    rows = told()
    truth = job.end()
    seen = [(row, step) for row, step in truth.match(rows) if row["loss"] is not None]
    assert len(seen) >= STEPS
    for row, step in seen:
        assert row["loss"] == exact(step["loss"]) and row["lr"] == step["lr"], (row, step)


@pytest.mark.timeout(300)
def test_a_nan_is_told_as_what_it_is(training_job):  # noqa: F811
    job = training_job("nan", "--at", "20", "--again", "30")
    armed(job)
    def seen():
        return {row["nonfinite"] for row in job.rows("python.steps")} >= {"loss", "none"}
    wait_until(seen, timeout=120, what="losses that are NaN, and others", interval=0.2)
    rows = [row for row in job.rows("python.steps") if row["nonfinite"] is not None]
    losses = [exact(loss) for loss in job.end().losses]
    assert any(loss != loss for loss in losses)
    for row in rows:
        assert row["loss"] is None if row["nonfinite"] == "loss" else row["nonfinite"] == "none" and row["loss"] in losses


@pytest.mark.timeout(300)
def test_collections_have_their_time_and_step(training_job):  # noqa: F811
    job = training_job("gc_bomb")
    wait_until(lambda: len([row for row in job.rows("python.gc") if row["step"]]) >= 40, timeout=120, what="collections that are told", interval=0.2)
    wait_until(lambda: len([row for row in job.rows("python.steps") if row["gc_ms"]]) >= 5, timeout=120, what="steps with them", interval=0.2)
    job.wait_steps(2)
    steps, collections = job.rows("python.steps"), job.rows("python.gc")
    truth = job.end()
    agree([(row["duration_ms"], took_ms(step)) for row, step in truth.match(steps)[1:]])
    told = [row for row in collections if row["step"]]
    assert all(row["collections"] == 1 and row["duration_ms"] > 0 for row in told)
    for step in steps:  # those of a step are what it says
        if step["gc_ms"] is not None:
            of_it = [row["duration_ms"] for row in told if row["step"] == step["step"]]
            assert step["gc_ms"] == pytest.approx(sum(of_it), abs=1e-6)
    events = [event for event in truth.events if event["event"] == "gc" and told[0]["timestamp"] < event["began"] - 0.1]
    events = [event for event in events if event["ended"] < told[-1]["timestamp"]]
    assert len(events) > 10
    more = []
    for event in events:  # each, as the job has measured it itself, once
        near = min(told, key=lambda row: abs(row["timestamp"] - event["began"]))
        assert abs(near["timestamp"] - event["began"]) < 0.005
        assert (near["generation"], near["collected"]) == (event["generation"], event["collected"]), (event, near)
        more.append(near["duration_ms"] - (event["ended"] - event["began"]) * 1e3)  # what the job itself does at the end of each
    assert min(more) > -0.5 and statistics.median(more) < 2
    counted = [row for row in collections if not row["step"] and row["timestamp"] > told[0]["timestamp"] + 3]
    assert not counted, counted  # none was told twice


def values(job, name):
    return [row for row in job.rows("python.variables") if row["name"] == name]


@pytest.mark.timeout(300)
def test_values_are_watched_from_the_start_and_live(training_job, probing):  # noqa: F811
    job = training_job("amp", env={"PROBING_TORCH_PROFILING": "on,exprs=loss@main,skipped@main"})
    wait_until(lambda: len(values(job, "loss")) >= STEPS and values(job, "skipped"), timeout=120, what="values", interval=0.2)
    said = probing(str(job.pid), "config", "--json").ok().json()
    assert "on,exprs=loss@main,skipped@main" in str(said), said
    loss, skipped = values(job, "loss"), values(job, "skipped")
    probing(str(job.pid), "config", "probing.torch_profiling=on,exprs=number,job.args.seed@main,scaler._growth_interval,"
            "optimizer.param_groups[0]['betas'][1],model.last.bias,nothing.at.all").ok()
    wait_until(lambda: len(values(job, "number")) >= 5, timeout=60, what="other values", interval=0.2)
    probing(str(job.pid), "config", "probing.torch_profiling=off").ok()
    wait_until(lambda: probing(str(job.pid), "config", "--json").ok() and not values_grow(job), timeout=60, what="no values", interval=0.2)
    later = job.rows("python.variables")
    truth = job.end()
    by_time = {}
    for row in loss:
        by_time[row["timestamp"]] = row
        assert row["func"] == "main" and row["value"] == float(row["text"])
    steps = {struct.pack("d", exact(step["loss"])) for step in truth.steps}
    assert all(struct.pack("d", row["value"]) in steps for row in loss)
    assert {row["text"] for row in skipped} <= {"0", "1"} and all(row["value"] == float(row["text"]) for row in skipped)
    def texts(name):
        return {row["text"] for row in later if row["name"] == name}
    assert texts("job.args.seed") == {"1"} and texts("scaler._growth_interval") == {"5"}
    assert texts("optimizer.param_groups[0]['betas'][1]") == {"0.999"}
    assert texts("model.last.bias") == {None}  # ten numbers are no number
    assert texts("nothing.at.all") == set()
    numbers = [row["value"] for row in later if row["name"] == "number"]
    assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)


def values_grow(job):
    before = len(job.rows("python.variables"))
    job.wait_steps(20)
    return len(job.rows("python.variables")) > before


HOOKS = """
import gc, sys, torch, torch.optim.optimizer as optimizer, torch.nn.modules.module as module
def hooks():
    found = [repr(c) for c in gc.callbacks if "probing" in repr(c)]
    for registry in [d for m in (optimizer, module) for n, d in vars(m).items() if n.startswith("_global") and hasattr(d, "values")]:
        found += [repr(h) for h in registry.values()]
    monitoring = getattr(sys, "monitoring", None)
    return found + [monitoring.get_tool(i) for i in range(6) if monitoring and monitoring.get_tool(i)]
def leave():
    gc.callbacks.append(list(gc.callbacks)[-1])
"""


def names_of(probing, pid):
    return [hook["name"] for hook in probing(pid, "status", "--json").ok().json()["hooks"]]


@pytest.mark.timeout(300)
def test_nothing_is_left_and_nothing_comes_twice(job, torch_python, probing):  # noqa: F811
    """What hooks there are in the job, counted by itself by walking what holds them."""
    j = job(python=torch_python)
    pid = str(j.pid)
    assert j.do(f"exec({HOOKS!r}, globals())") is None and j.do("hooks()") == []
    for _ in range(2):
        inject_in_time(probing, pid)
        wait_until(lambda: j.do("hooks()"), timeout=60, what="hooks", interval=0.1)
        assert j.do("hooks()") == ["<built-in function probing_gc>"]  # and none in torch's registries
        wait_until(lambda: names_of(probing, pid)[1:] == ["variables at Optimizer.step", "gc.callbacks"], timeout=60, what="status to say so", interval=0.1)
        probing(pid, "config", "steps=off").ok()
        wait_until(lambda: j.do("hooks()") == [], timeout=60, what="no hooks", interval=0.1)
        probing(pid, "config", "steps=on").ok()
        wait_until(lambda: j.do("hooks()"), timeout=60, what="hooks again", interval=0.1)
        probing(pid, "eject").ok()
        assert j.do("hooks()") == []
    # One that is left by an agent that could not take it out does nothing, and goes when there is an agent again.
    inject_in_time(probing, pid)
    wait_until(lambda: j.do("hooks()"), timeout=60, what="hooks", interval=0.1)
    j.do("leave()")
    probing(pid, "config", "steps=off").ok()
    wait_until(lambda: j.do("hooks()") == [], timeout=60, what="no hooks", interval=0.1)
    assert j.do("gc.collect() >= 0")


@pytest.mark.timeout(300)
def test_torch_is_noticed_soon_after_its_import(job, torch_python, probing):  # noqa: F811
    j = job(python=torch_python)
    j.start()
    wait_until(lambda: probing(str(j.pid), "query", "SELECT count(*) AS n FROM probing.status", "--json").ok().json()["rows"][0]["n"] >= 8,
               60, "some seconds without it", interval=0.3)
    assert probing(str(j.pid), "status", "--json").ok().json()["hooks"] == []
    took = j.do("(lambda t: (__import__('torch'), t() - t())[1])(__import__('time').time)")
    assert took <= 0
    wait_until(lambda: len(probing(str(j.pid), "status", "--json").ok().json()["hooks"]) >= 3, 15, "hooks", interval=0.1)


def query(probing, pid, text):
    return probing(str(pid), "query", text, "--json", "--limit", "0").ok().json()["rows"]


@pytest.mark.timeout(300)
def test_training_logs_agree_with_the_log(training_job, probing):  # noqa: F811
    """What people type over it, on a job that knows no epoch; its columns are what is watched."""
    job = training_job("amp", env={"PROBING_TORCH_PROFILING": "on,exprs=loss@main,skipped@main"})
    first = armed(job)
    rows_of(job, first + STEPS)
    asked = query(probing, job.pid, "SELECT epoch, avg(loss), min(loss), count(*) as steps FROM training_logs GROUP BY epoch ORDER BY epoch;")
    logs = query(probing, job.pid, f"SELECT timestamp, step, epoch, loss, skipped FROM training_logs WHERE step >= {first} ORDER BY step")
    truth = job.end()
    assert len(asked) == 1 and asked[0]["epoch"] is None and asked[0]["steps"] >= STEPS
    losses = {exact(loss) for loss in truth.losses}
    assert min(losses) <= asked[0]["min(loss)"] <= asked[0]["avg(loss)"] <= max(losses)
    assert len(logs) >= STEPS and [row["step"] for row in logs] == list(range(logs[0]["step"], logs[0]["step"] + len(logs)))
    assert all(row["loss"] in losses and row["epoch"] is None for row in logs)
    assert {row["skipped"] for row in logs[1:]} <= {0, 1, None} and any(row["skipped"] == 1 for row in logs)


RETURNS = """
class Meter:
    def __init__(self):
        self.best = 0
    def add(self, i):
        accuracy = i * 0.5
        self.best = accuracy
        return accuracy
    @property
    def trap(self):
        raise SystemExit("a property of the job was run")
    def __getattr__(self, name):
        raise SystemExit("__getattr__ of the job was run")
meter = Meter()
def evaluate(i):
    text = "x" * i
    return meter.add(i)
def tools():
    return [i for i in range(6) if sys.monitoring.get_tool(i)] if hasattr(sys, "monitoring") else None
"""


@pytest.mark.timeout(120)
def test_values_at_returns_of_functions(job, each_python, probing):  # noqa: F811
    """From 3.12 on at each return, without any torch; before that it is said that they are not. No code of the job's is run."""
    j = job(python=each_python)
    pid = str(j.pid)
    assert j.do(f"exec({RETURNS!r}, globals())") is None
    j.start()
    exprs = "text@evaluate,accuracy@Meter.add,self.best@add,self.trap@add,self.absent@add"
    probing(pid, "config", f"probing.torch_profiling=on,exprs={exprs}").ok()
    if not j.do("hasattr(sys, 'monitoring')"):
        wait_until(lambda: "sys.monitoring" in (probing(pid, "status", "--json").ok().json()["hooks_note"] or ""), 60, "that it is said", interval=0.2)
        return
    wait_until(lambda: j.do("tools()"), 60, "a tool of sys.monitoring", interval=0.1)
    wait_until(lambda: "sys.monitoring" in names_of(probing, pid), 60, "status to say so", interval=0.1)
    for i in (3, 300, 7):
        assert j.do(f"evaluate({i})") == i * 0.5
    def told():
        return query(probing, pid, "SELECT step, func, name, value, text FROM python.variables ORDER BY timestamp")
    wait_until(lambda: len(told()) >= 9, 60, "values", interval=0.2)
    rows = told()
    assert {(row["func"], row["name"]) for row in rows} == {("evaluate", "text"), ("add", "accuracy"), ("add", "self.best")}
    assert all(row["step"] is None for row in rows)
    assert [row["value"] for row in rows if row["name"] == "accuracy"] == [1.5, 150.0, 3.5]
    assert [row["value"] for row in rows if row["name"] == "self.best"] == [1.5, 150.0, 3.5]
    texts = [row["text"] for row in rows if row["name"] == "text"]
    assert texts[0] == "xxx" and texts[2] == "x" * 7 and texts[1].startswith("x" * 150) and texts[1].endswith("...") and len(texts[1]) < 200
    probing(pid, "config", "probing.torch_profiling=off").ok()
    wait_until(lambda: j.do("tools()") == [], 60, "the tool to be given back", interval=0.1)


OBSERVED = """
import sys, threading
class Own:
    "What the job has itself told: by a trace function, a profile function and a tool of sys.monitoring, some of whose events it has disabled."
    TOOL = 1
    def __init__(self):
        self.seen = []
        self.monitoring = getattr(sys, "monitoring", None)
        if self.monitoring:
            events = self.monitoring.events
            self.monitoring.use_tool_id(self.TOOL, "own")
            self.monitoring.register_callback(self.TOOL, events.PY_RETURN, self.returned)
            self.monitoring.register_callback(self.TOOL, events.LINE, self.once)
            self.monitoring.set_events(self.TOOL, events.PY_RETURN)
            self.monitoring.set_local_events(self.TOOL, Meter.add.__code__, events.LINE)
    def returned(self, code, offset, value):
        if code.co_name in ("evaluate", "add"):
            self.seen.append(("returned", code.co_name, offset, value))
    def once(self, code, line):
        self.seen.append(("line", code.co_name, line))
        return self.monitoring.DISABLE
    def trace(self, frame, event, arg):
        self.seen.append((event, frame.f_code.co_name, frame.f_lineno))
        return self.trace
    def profile(self, frame, event, arg):
        if frame.f_code.co_name in ("evaluate", "add"):
            self.seen.append(("profile " + event, frame.f_code.co_name))
    def observe(self, i):
        "Everything that is told of one call, and that what tells it is still there."
        del self.seen[:]
        sys.settrace(self.trace)
        sys.setprofile(self.profile)
        try:
            evaluate(i)
            kept = sys.gettrace() == self.trace and sys.getprofile() == self.profile
        finally:
            sys.setprofile(None)
            sys.settrace(None)
        events = self.monitoring and [self.monitoring.get_tool(self.TOOL), self.monitoring.get_events(self.TOOL),
                                      self.monitoring.get_local_events(self.TOOL, Meter.add.__code__)]
        return [[str(one) for one in self.seen if one[1] in ("evaluate", "add")], kept, events]
own = Own()
def take_over():
    "A program that uses every tool there is, also ours."
    for i in (3, 4):
        sys.monitoring.free_tool_id(i)
        sys.monitoring.use_tool_id(i, "own too")
        sys.monitoring.set_local_events(i, evaluate.__code__, sys.monitoring.events.PY_START)
def taken():
    return [[sys.monitoring.get_tool(i), sys.monitoring.get_local_events(i, evaluate.__code__)] for i in (3, 4)]
"""


@pytest.mark.timeout(120)
def test_what_the_job_has_itself_told_is_the_same(job, each_python, probing):  # noqa: F811
    """Values at returns beside a tracer, a profiler and tools of the job's own: each sees what it would without us, and stays what it is."""
    j = job(python=each_python)
    pid = str(j.pid)
    assert j.do(f"exec({RETURNS + OBSERVED!r}, globals())") is None
    j.do("own.observe(1)")  # lines that are disabled come once
    alone = j.do("own.observe(2)")
    assert alone[1] is True and len(alone[0]) >= 8
    j.start()
    probing(pid, "config", "probing.torch_profiling=on,exprs=text@evaluate,accuracy@add").ok()
    if not j.do("hasattr(sys, 'monitoring')"):
        wait_until(lambda: "sys.monitoring" in (probing(pid, "status", "--json").ok().json()["hooks_note"] or ""), 60, "that it is said", interval=0.2)
        assert j.do("own.observe(2)") == alone
        return
    wait_until(lambda: j.do("tools()") == [1, 3], 60, "a tool of sys.monitoring", interval=0.1)
    wait_until(lambda: "sys.monitoring" in names_of(probing, pid), 60, "status to say so", interval=0.1)
    assert j.do("own.observe(2)") == alone
    wait_until(lambda: len(query(probing, pid, "SELECT name FROM python.variables")) >= 2, 60, "values", interval=0.2)
    j.do("take_over()")
    taken = j.do("taken()")
    probing(pid, "config", "probing.torch_profiling=off").ok()
    wait_until(lambda: "sys.monitoring" not in names_of(probing, pid), 60, "nothing to be watched", interval=0.1)
    assert j.do("own.observe(2)") == alone and j.do("taken()") == taken
    probing(pid, "eject").ok()
    assert j.do("own.observe(2)") == alone and j.do("taken()") == taken
