# SPDX-License-Identifier: Apache-2.0
"""Numbers that are shown, held against what the kernel and the job itself say."""

import concurrent.futures
import csv
import functools
import itertools
import json
import os
import re
import time

import pytest

from agent_job import job, snapshot_by_name
from agent_wire import Client
from conftest import has_torch, long_but, running_targets
from number_jobs import JOBS, STANDING, settle, start_number_job
from test_export_folded import parse_folded
from test_export_profiles import read_profile, trace
from test_export_svg import frames_of

__all__ = ["job"]

MIB = 1 << 20
EPOCH = 0.25  # seconds that the clocks of the kernel's start times and of the day may be apart

BURSTS = """
def bursts():
    while True:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        time.sleep(0.08)
"""
LOOP = """
def here():
    time.sleep(0.15)
def there():
    time.sleep(0.15)
def loop():
    while True:
        here()
        there()
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_cpu_is_the_same_for_many_viewers(job):
    """A process that works a fifth of the time: neither who looked just before nor how often is looked makes it more or less."""
    j = job()
    endpoint = j.start()
    j.do(f"exec({BURSTS!r}, globals())")
    j.do("spawn('bursts', bursts)")
    told = []
    with Client(endpoint) as one, Client(endpoint) as two, Client(endpoint) as seldom:
        one.call("threads")
        began, before = time.monotonic(), cpu_seconds(j.pid)
        for turn in itertools.count():
            if time.monotonic() > began + 4:
                break
            for client in (one, two) if turn % 4 else (one, two, seldom):  # the others some milliseconds after the first
                snapshot = client.call("threads")
                if time.monotonic() > began + 1.5:
                    told.append(snapshot["process"]["cpu_pct"])
            time.sleep(0.23)
        true = 100 * (cpu_seconds(j.pid) - before) / (time.monotonic() - began)
    assert 5 < true < 60
    assert all(true / 2 < value < true * 2 for value in told), (true, told)


def test_a_stack_is_not_the_same_when_a_sample_saw_another(job):
    """A thread that is elsewhere for a moment, between any two snapshots of a viewer."""
    j = job()
    endpoint = j.start()
    j.do(f"exec({LOOP!r}, globals())")
    j.do("spawn('loops', loop)")
    j.do("spawn('stands', wait_for_ever)")
    with Client(endpoint) as client:
        client.call("config", {"key": "probing.sample_rate", "value": "100"})
        began = time.monotonic()
        stands = loops = 0
        while stands < 2e6:
            assert time.monotonic() < began + 60
            threads = snapshot_by_name(client)
            stands, loops = threads["stands"].get("same_us") or 0, threads["loops"].get("same_us") or 0
            time.sleep(0.1)
    assert 0 < loops < stands / 2
    assert stands < (time.monotonic() - began + 10) * 1e6


def test_a_recording_of_an_idle_job_says_that_nobody_holds_the_gil(target, probing, probing_top, ptrace, tmp_path):
    made = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\nwhile True: time.sleep(0.05)\n")
    path = tmp_path / "run.db"
    probing(made.pid, "record", "-o", path, "--duration", "3s").ok()
    told = probing_top("--export", "json", path).ok().json()
    assert told["gil_holder_tid"] in (0, made.pid)


# --- four jobs, each number against another source ------------------------------------------------------------------

@pytest.fixture(scope="module")
def jobs(request, data_dir, probing, probing_top, any_python, tmp_path_factory):
    """The four jobs, started side by side; jobs(name) has what was seen of that one."""
    torch = next(filter(has_torch, filter(None, (os.environ.get("PROBING_TEST_TORCH_PYTHON"), "python3"))), None)
    folders = {name: tmp_path_factory.mktemp(name) for name in JOBS}
    targets = {name: running_targets(any_python, folders[name], request) for name in JOBS}
    with concurrent.futures.ThreadPoolExecutor(len(JOBS)) as pool:
        begun = {name: pool.submit(start_number_job, name, next(targets[name]), torch, probing, probing_top, folders[name])
                 for name in JOBS if torch or name != "training"}
    looked = {}

    def seen(name):
        if name not in begun:
            pytest.skip("needs torch: no Python with torch found")
        if name not in looked:
            looked[name] = settle(begun[name].result()).look()
        return looked[name]
    yield seen
    for one in targets.values():
        for _ in one:
            pass


def recent(value):
    """Memory of a job that trains goes up and down by so much between two looks, more than both of the kernel show."""
    return max(2 * MIB, value / 20)


def half_a_minute_old(value):
    return max(4 * MIB, value / 3)


def newest(rows):
    return rows[-1]


def lifetime_pct(k):
    return 100 * k["cpu_s"] / k["uptime"]


# What is shown, how to have it, what it has to be by the kernel (or the job's log) before and after, how exactly.
BY_THE_KERNEL = [
    ("list: rss", lambda s: s.list["rss_bytes"], lambda k: k["rss"], recent),
    ("screens: rss", lambda s: s.shot["process"]["rss_bytes"], lambda k: k["rss"], recent),
    ("system.process: rss", lambda s: s.process["rss_mb"] * MIB, lambda k: k["rss"], recent),
    ("system.process_history: rss", lambda s: newest(s.history)["rss_bytes"], lambda k: k["rss"], recent),
    ("python.memory: rss", lambda s: newest(s.history_memory)["rss_mb"] * MIB, lambda k: k["rss"], recent),
    ("memory: in RAM", lambda s: s.memory["rss_mb"] * MIB, lambda k: k["rss"], recent),
    ("memory: all", lambda s: s.memory["memory_mb"] * MIB, lambda k: k["rss"] + k["swap"], recent),
    ("memory: its share", lambda s: s.memory["pss_bytes"], lambda k: k["pss"], half_a_minute_old),
    ("list: threads", lambda s: s.list["threads"], lambda k: k["threads"], 0),
    ("screens: threads of the process", lambda s: s.shot["process"]["threads"], lambda k: k["threads"], 0),
    ("system.process: threads", lambda s: s.process["threads"], lambda k: k["threads"], 0),
    ("system.process_history: threads", lambda s: newest(s.history)["threads"], lambda k: k["threads"], 0),
    ("screens: threads", lambda s: len(s.shot["threads"]), lambda k: k["own_threads"], 0),
    ("list: uptime", lambda s: s.list["uptime_s"], lambda k: k["uptime"], EPOCH),
    ("screens: uptime", lambda s: s.shot["process"]["uptime_s"], lambda k: k["uptime"], EPOCH),
    ("system.process: uptime", lambda s: s.process["uptime_s"], lambda k: k["uptime"], EPOCH),
    ("screens: start", lambda s: s.shot["target"]["started_at"], lambda k: k["time"] - k["uptime"], EPOCH),
    ("list: CPU%", lambda s: s.list["cpu_pct"], lifetime_pct, 1),
    ("system.process: parent", lambda s: s.process["ppid"], lambda k: k["ppid"], 0),
    ("status: CPU of the agent", lambda s: s.status["cpu_s"], lambda k: k["agent_s"], 0.06),
    ("probing.status: CPU of the agent", lambda s: newest(s.own)["cpu_s"], lambda k: k["agent_s"], 0.06),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", JOBS)
def test_numbers_are_those_of_the_kernel(jobs, name):
    seen, wrong = jobs(name), []
    for number, shown, true, resolution in BY_THE_KERNEL:
        value, bounds = shown(seen), sorted((true(seen.before), true(seen.after)))
        resolution = resolution(bounds[1]) if callable(resolution) else resolution
        if value is None or not bounds[0] - resolution <= value <= bounds[1] + resolution:
            wrong.append((number, value, bounds))
    assert not wrong


# The same number by two ways of the product: how, how, how exactly.
BY_ANOTHER_WAY = [
    ("agent's memory", lambda s: s.status["rss_bytes"], lambda s: newest(s.own)["rss_bytes"], MIB),
    ("samples", lambda s: s.status["sampler"]["samples"] + s.status["sampler"]["torn"],
     lambda s: next(t["rows"] for t in s.status["tables"] if t["name"] == "python.samples"), 30 * (STANDING + 1)),
    ("most memory", lambda s: s.memory["max_memory_mb"], lambda s: max(r["memory_mb"] for r in s.history_memory), 2),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", JOBS)
def test_numbers_agree_with_themselves(jobs, name):
    seen, wrong = jobs(name), []
    for number, one, other, resolution in BY_ANOTHER_WAY:
        if not abs(one(seen) - other(seen)) <= resolution:
            wrong.append((number, one(seen), other(seen)))
    for table in seen.status["tables"]:
        shown, low, high = seen.tables[table["name"]], seen.rows_before[table["name"]], seen.rows_after[table["name"]]
        if not (low <= table["rows"] <= high and low <= shown["rows"] <= high):
            wrong.append((table["name"], low, table["rows"], shown["rows"], high))
        if shown["bytes"] != table["bytes"] or table["bytes"] != os.path.getsize(
                os.path.join(seen.status["collection"]["data_dir"], table["name"] + ".ring")):
            wrong.append((table["name"], "bytes", table["bytes"], shown["bytes"]))
    steps = seen.status.get("steps", {}).get("seen", 0) or 0
    if not seen.rows_before.get("python.steps", 0) <= steps <= seen.rows_after.get("python.steps", 0) + 1:  # its row comes when it has ended
        wrong.append(("steps", steps, seen.rows_before, seen.rows_after))
    assert not wrong


def number(pattern, text):
    found = re.search(pattern, text, re.M)
    assert found, f"no {pattern!r} in {text}"
    return float(found.group(1))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", JOBS)
def test_texts_of_the_first_seconds(jobs, name):
    """Plurals, and what cannot be: a number that is none, or less than nothing."""
    for text in jobs(name).young:
        found = re.search(r"(?<![\d.])1 (rows|times|steps|samples|threads|processes)\b| -?(nan|inf)\b| -\d", text)
        assert not found, (found, text)


@functools.lru_cache(maxsize=None)
def exported(probing_top, fmt, path, *args):
    return probing_top("--export", fmt, *args, path, timeout=60).ok().stdout


# Of a recording, the same number by each format: how, what of the samples it has to be.
IN_A_RECORDING = [
    ("folded", lambda top, path, out: sum(n for _, n in parse_folded(exported(top, "folded", path))), "whole"),
    ("svg", lambda top, path, out: frames_of(exported(top, "svg", path, "--unit", "samples"))[0].weight, "whole"),
    ("pprof", lambda top, path, out: sum(s["samples"] for s in read_profile(top, path, out).samples), "whole"),
    ("json", lambda top, path, out: json.loads(exported(top, "json", path, "--duration", "1"))["sampling"]["samples"], "whole"),
    ("json, torn", lambda top, path, out: json.loads(exported(top, "json", path, "--duration", "1"))["sampling"]["torn"], "torn"),
    ("json, stacks", lambda top, path, out: sum(
        s["samples"] for s in json.loads(exported(top, "json", path, "--duration", "1"))["samples"]), "whole"),
    ("json, on the CPU", lambda top, path, out: sum(
        s["on_cpu_samples"] for s in json.loads(exported(top, "json", path, "--duration", "1"))["samples"]), "on_cpu"),
    ("Top", lambda top, path, out: number(r" samples (\d+)", exported(top, "txt", path, "--screen", "top")), "on_cpu"),
    ("Flame", lambda top, path, out: number(r" samples (\d+)", exported(top, "txt", path, "--screen", "flame")), "on_cpu"),
    ("Timeline", lambda top, path, out: number(r" samples (\d+)", exported(top, "txt", path, "--screen", "timeline")), "whole"),
    ("csv", lambda top, path, out: sum(
        int(n) for _, n in list(csv.reader(exported(top, "csv", path, "--sql", BY_THREAD).splitlines()))[1:]), "all"),
    ("ndjson", lambda top, path, out: sum(json.loads(line)["n"] for line in exported(top, "ndjson", path, "--sql", BY_THREAD).splitlines()), "all"),
    ("threads of speedscope", lambda top, path, out: len(json.loads(exported(top, "speedscope", path))["profiles"]), "tids"),
    ("threads of perfetto", lambda top, path, out: len(trace(top, path, out).threads), "tids"),
    ("threads of Top", lambda top, path, out: number(r"threads all \((\d+)\)", exported(top, "txt", path, "--screen", "top")), "tids"),
]
OF_SAMPLES = ("SELECT sum(torn = 0) AS whole, sum(torn = 1) AS torn, sum(on_cpu = 1 AND torn = 0) AS on_cpu, "
              "count(DISTINCT tid) AS tids, count(*) AS \"all\" FROM python.samples")
BY_THREAD = "SELECT tid, count(*) AS n FROM python.samples GROUP BY tid"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", long_but(["idle", "busy", "training"], JOBS))
def test_numbers_of_a_recording(jobs, name, probing, probing_top, tmp_path):
    seen, wrong = jobs(name), []
    path, said, database = seen.record()
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '*_*'")]
    counts = {table: database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables}
    by_sql = probing(path, "query", OF_SAMPLES, "--json").ok().json()["rows"][0]
    assert counts["python_samples"] == by_sql["whole"] + by_sql["torn"] >= seen.rows_after["python.samples"]
    assert said["rows"] == sum(n for table, n in counts.items() if table.replace("_", ".", 1) in seen.tables or table in seen.tables)
    for what, read, true in IN_A_RECORDING:
        value = read(probing_top, path, tmp_path / "out")
        if value != by_sql[true]:
            wrong.append((what, value, by_sql[true]))
    assert not wrong
    assert "LIVE" not in exported(probing_top, "txt", path, "--screen", "timeline")


HEAD = r"^ *([\d.]+) +([\d.]+) +([\d.]+)s +([\d.]+)s +\S"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["idle", "busy", "many"])
def test_numbers_of_top(jobs, name):
    """Shares are of the whole, times are within the time that the screen says it is of, and the list is as long as it says."""
    seen = jobs(name)
    text = seen.screen("top", duration="2s")
    rows = [[float(x) for x in row] for row in re.findall(HEAD, text, re.M)]
    over = number(r"  over ([\d.]+)s", text)
    assert number(r"^ Functions (\d+)", text) == len(rows), text
    assert all(own <= total <= 100 for own, total, _, _ in rows), text
    assert not rows or abs(sum(row[0] for row in rows) - 100) < 0.06 * len(rows), text
    if name != "many":  # one thread
        assert all(total_s <= over + 0.06 for _, _, _, total_s in rows), text


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", JOBS)
def test_numbers_of_the_overview(jobs, name):
    seen = jobs(name)
    text = seen.screen("overview")
    assert "reading ..." not in text and "cgroup ?" not in text  # also of no limit it is known what the group takes
    assert number(r"^ threads +(\d+)", text) == number(r" threads (\d+)", text) == seen.before["own_threads"]
    assert number(r"^ snapshots +(\S+) 0 dropped", text) == 1
    cpu = number(r"^ CPU +([\d.]+) %", text)
    parts = [number(rf"^  {label} +([\d.]+) %", text) for label in ("main thread", "Python threads", "native threads")]
    assert sum(parts) <= cpu + 3 and cpu <= 100 * (os.cpu_count() + 1)


# --- the training job -------------------------------------------------------------------------------------------------

@pytest.fixture
def trained(jobs):
    return jobs("training")


def known(rows, column):
    return [row[column] for row in rows if row[column] is not None]


def steps_before_the_first(rows, losses):
    """How many steps the job had made before the first row: by the losses, which are the same to the bit."""
    shifts = [k for k in range(len(losses) - len(rows) + 1)
              if all(row["loss"] is None or row["loss"] == losses[k + i] for i, row in enumerate(rows))]
    assert len(known(rows, "loss")) >= 3 and len(shifts) == 1
    return shifts[0]


@pytest.mark.timeout(180)
def test_steps_are_those_of_the_log(trained):
    """Their number, their losses to the bit, their learning rate, and their time."""
    rows, losses = trained.steps, trained.losses()
    numbers = [row["step"] for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + len(rows)))
    first = steps_before_the_first(rows, losses)
    assert trained.steps_before - first - 2 <= len(rows) <= trained.steps_after - first + 1
    printed = [float(lr) for lr in re.findall(r"^step .* lr (\S+)", trained.job.output(), re.M)]
    for i, row in enumerate(rows):  # the rate that is printed after a step is that of the next
        at = first + i - 1
        assert row["lr"] is None or at < 0 or row["lr"] == pytest.approx(printed[at], rel=6e-3)
    for before, row in zip(rows, rows[1:]):  # nobody knows when the first began
        assert row["duration_ms"] / 1e3 == pytest.approx(row["timestamp"] - before["timestamp"], abs=1e-3)
    for row in rows[1:]:
        parts = [row[part] for part in ("data_ms", "forward_ms", "backward_ms", "optimizer_ms", "other_ms")]
        assert sum(part or 0 for part in parts) <= row["duration_ms"] + 0.1, row
        assert None in parts or sum(parts) == pytest.approx(row["duration_ms"], abs=0.1), row


@pytest.mark.timeout(180)
def test_rates_are_those_of_the_steps(trained):
    began = trained.sql("SELECT max(step) AS step FROM python.steps")[0]["step"]
    verdict = next(v for v in trained.said("verdict")["verdicts"] if v["code"] in ("MOVING", "SLOW"))
    text = trained.screen("steps", duration=None)
    rows = trained.sql("SELECT step, duration_ms, loss FROM python.steps ORDER BY step DESC")

    def rate(newest_step):
        ms = [row["duration_ms"] for row in rows if row["step"] <= newest_step and row["duration_ms"] is not None][:100]
        return 1e3 * len(ms) / sum(ms)
    if verdict["code"] == "MOVING":
        assert verdict["evidence"]["rate"] == pytest.approx(rate(verdict["evidence"]["step"]), rel=1e-4)
        assert verdict["evidence"]["step"] >= began
    top = re.search(r"^ +(\d+) +[\d.]+ m?s .*$", text, re.M)
    step, words = int(top.group(1)), top.group(0).split()
    assert number(r"^ ([\d.]+) steps/s", text) == pytest.approx(rate(step), rel=6e-3)
    assert number(r"^ Steps (\d+)", text) == min(256, len([row for row in rows if row["step"] <= step]))
    loss = next(row["loss"] for row in rows if row["step"] == step)
    assert loss is None or f"{loss:.4g}" in words, (loss, words)
    assert f"{step}^" in text, "the axis has the whole number"


@pytest.mark.timeout(180)
def test_modules_tensors_and_loaders_are_those_of_the_job(trained):
    parameters = int(re.search(r"training (\d+) parameters", trained.job.output()).group(1))
    modules = trained.sql("SELECT path, parent, parameters, own_parameters, bytes FROM python.modules")
    root, = [m for m in modules if m["parent"] is None]
    assert root["parameters"] == parameters == sum(m["own_parameters"] for m in modules)
    assert all(m["bytes"] == 4 * m["parameters"] for m in modules)
    for m in modules:
        below = [child["parameters"] for child in modules if child["parent"] == m["path"]]
        assert m["parameters"] == m["own_parameters"] + sum(below), m
    text = trained.screen("modules", duration=None)
    assert number(r"^ (\d+) modules", text) == number(r"^ Modules (\d+)", text) == len(modules)
    for tensor in trained.sql("SELECT shape, dtype, bytes, storage_bytes FROM python.tensors"):
        size = {"int64": 8, "float32": 4, "uint8": 1, "bool": 1, "float64": 8, "int32": 4}[tensor["dtype"].removeprefix("torch.")]
        for n in json.loads(tensor["shape"]):
            size *= n
        assert tensor["bytes"] == size <= tensor["storage_bytes"], tensor
    text = trained.screen("tensors", duration=None)
    groups = [int(n) for n in re.findall(r"^[▸▾>v].*? \((\d+)\) ", text, re.M)]
    assert number(r"^ (\d+) tensors", text) == number(r"^ Tensors (\d+)", text) == sum(groups)

    loaders = trained.sql("SELECT timestamp, sent, received, outstanding, ready, workers, prefetch, batches FROM python.loaders "
                          "ORDER BY timestamp")
    for row in loaders:
        # A batch that came before its turn is no longer outstanding, and not received.
        asked = row["sent"] - row["received"]
        assert 0 <= row["outstanding"] <= asked <= row["workers"] * row["prefetch"] and 0 <= row["ready"] <= asked, row
    counted = 0
    for row in loaders[1:]:
        assert row["batches"] is not None, row
        counted += row["batches"]
        # counted when it was handed out, a moment after it was received: never more than one behind, or ahead
        assert abs(counted - (row["received"] - loaders[0]["received"])) <= 1, (counted, loaders[0], row)
    # The newest is a second old, or more where the machine has other things to do: what the job had done by then.
    rows, at = trained.sql("SELECT step, timestamp FROM python.steps ORDER BY step"), loaders[-1]["timestamp"]
    shift = steps_before_the_first(trained.steps, trained.losses()) - trained.steps[0]["step"]
    done = max(row["step"] + shift + 1 for row in rows if row["timestamp"] <= at)
    assert done - 1 <= loaders[-1]["received"] <= done + 2, (loaders[-1], done)
