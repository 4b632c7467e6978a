# SPDX-License-Identifier: Apache-2.0
"""Every format that is made of samples, and SQL, say the same of one recording: which functions take how much of the time."""

import json

import pytest

from test_export_folded import parse_folded
from test_export_profiles import read_profile, space_evenly, spent_in, speedscope, trace
from test_export_svg import frames_of

FUNCTIONS = 24
WINDOW_S = 10

# A thread per function, in it for a share of its time that is its own; the rest in `rest`.
JOB = f"""
import os, threading, time

def rest(seconds):
    time.sleep(seconds)

def share(function, seconds):
    while True:
        function(seconds)
        rest(0.25 - seconds)

for i in range({FUNCTIONS}):
    exec(f"def f{{i}}(seconds):\\n    time.sleep(seconds)\\n")
    threading.Thread(target=share, args=(globals()[f"f{{i}}"], 0.01 * i), daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
x = 0
while True:
    x += 1
"""

BY_SQL = ("SELECT f.func AS func, count(*) AS n FROM python.samples s JOIN python.stacks k ON k.stack_id = s.stack_id "
          "JOIN python.frames f ON f.frame_id = k.frame_id WHERE s.torn = 0 GROUP BY 1")


@pytest.fixture
def recording(target, ptrace, probing, tmp_path, wait_until):
    job = target(JOB, name="agreement_job.py")
    probing(job.pid, "inject").ok()
    spans = "SELECT max(timestamp) - min(timestamp) AS s FROM python.samples"
    wait_until(lambda: (probing(job.pid, "query", spans, "--json").ok().json()["rows"][0]["s"] or 0) >= WINDOW_S, 80,
               "a window of samples", interval=0.5)
    path = tmp_path / "run.db"
    probing(job.pid, "record", "-o", path).ok()
    space_evenly(path)
    return path


def add_up(pairs):
    spent = {}
    for name, weight in pairs:
        spent[name] = spent.get(name, 0) + weight
    return {name: weight for name, weight in spent.items() if weight}


def function_of(frame):
    return frame.rpartition(" (")[0]


def folded(probing_top, path, out, unit="samples"):
    text = probing_top("--export", "folded", "--by-function", "--unit", unit, path).ok().stdout
    return add_up((function_of(frames[-1]), weight) for frames, weight in parse_folded(text))


def svg(probing_top, path, out, unit="samples"):
    text = probing_top("--export", "svg", "--by-function", "--unit", unit, path).ok().stdout
    return add_up((function_of(frame.name), frame.own) for frame in frames_of(text))


def document(probing_top, path, out):
    samples = json.loads(probing_top("--export", "json", "--duration", "1", path).ok().stdout)["samples"]
    return add_up((s["frames"][0]["func"], s["samples"]) for s in samples if s["frames"])


def pprof(probing_top, path, out, kind="samples"):
    return add_up((s["frames"][0][0], s[kind]) for s in read_profile(probing_top, path, out).samples if s["frames"])


def perfetto(probing_top, path, out):
    found = trace(probing_top, path, out)
    return add_up(pair for tid in found.threads for pair in found.self_ns(tid).items())


# Per format: how to get what each function takes as the innermost one, in samples or (the order of time has no others) in time.
READERS = {
    "json": [(document, "samples")],
    "folded": [(folded, "samples"), (lambda *a: folded(*a, unit="us"), "time")],
    "svg": [(svg, "samples"), (lambda *a: svg(*a, unit="us"), "time")],
    "pprof": [(pprof, "samples"), (lambda *a: pprof(*a, kind="wall"), "time")],
    "speedscope": [(lambda top, path, out: add_up(spent_in(speedscope(top, path)).items()), "time")],
    "perfetto": [(perfetto, "time")],
}


@pytest.mark.timeout(240)
def test_all_exports_agree(recording, probing, probing_top, tmp_path):
    refused = probing(recording, "flamegraph", "--format", "csv").stderr
    formats = refused.rpartition("give one of ")[2].split()[0].split("|")
    assert set(formats) == set(READERS), "a format has no reader here"

    rows = probing(recording, "query", BY_SQL, "--json").ok().json()["rows"]
    by_sql = {row["func"]: row["n"] for row in rows}
    assert json.loads(probing_top("--export", "json", "--sql", BY_SQL, recording).ok().stdout)["rows"] == rows
    top = sorted(by_sql, key=lambda name: (-by_sql[name], name))[:20]
    assert len(top) == 20 and by_sql[top[0]] >= WINDOW_S and "rest" in top
    total = sum(by_sql.values())
    for name in formats:
        for read, unit in READERS[name]:
            spent = read(probing_top, recording, tmp_path / f"out.{name}")
            assert set(spent) == set(by_sql), name
            if unit == "samples":
                assert {f: spent[f] for f in top} == {f: by_sql[f] for f in top}, name
                continue
            whole = sum(spent.values())
            for function in top:
                assert spent[function] / whole == pytest.approx(by_sql[function] / total, rel=1e-3), (name, function)
