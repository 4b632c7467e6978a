# SPDX-License-Identifier: Apache-2.0
"""bench/sampler.py and handler.py for seconds: each part that is run gives figures, other samplers are started and read, tables are drawn from them."""

import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT, is_free_threaded, run_command

PROGRAM = os.path.join(ROOT, "bench", "sampler.py")
OTHER = """#!/bin/sh
# Takes the options of austin, and says what austin says at its end.
[ "$1" != --version ] || { echo "austin 99"; exit 0; }
[ "$3" = -x ] || exit 64
n=$(($4 * 20))
while [ $n -gt 0 ]; do sleep 0.05; n=$((n - 1)); done
printf 'Error rate : \\033[1m0/4000\\033[0m (0.00 %%)\\n' >&2
"""


def bench(*args, timeout=60):
    return run_command([sys.executable, PROGRAM, *args], timeout=timeout)


def has_resident_states(python):
    return subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], timeout=20).returncode == 0


@pytest.fixture
def measure(build_dir, any_python):
    def run(*args):
        return bench("--build", build_dir, "--python", any_python, "--seconds", "1", *args).json()
    return run


@pytest.fixture
def tables_of(tmp_path):
    def draw(document):
        path = tmp_path / "document.json"
        path.write_text(json.dumps(document))
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in bench("--table", str(path)).stdout.splitlines() if line]
    return draw


@pytest.mark.long
@pytest.mark.timeout(80)
def test_ours_and_another_sampler_on_one_job(measure, tables_of, tmp_path):
    for name, text in (("good", OTHER), ("bad", OTHER.replace("= -x", "= -y"))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    out = measure("--only", "peers", "--jobs", "python_10_s*", "--ways", "exact,austin good,austin bad", "--rounds", "1",
                  "--peer", f"austin good={tmp_path}/good", "--peer", f"austin bad={tmp_path}/bad")
    assert list(out["peers"]["jobs"]) == ["python_10_shallow"]
    assert out["peers"]["versions"]["austin good"] == out["peers"]["versions"]["austin bad"] == "austin 99"
    job = out["peers"]["jobs"]["python_10_shallow"]
    ours, other, ratio = job["exact"], job["austin good"], job["exact_of_austin good"]
    assert 0 < ours["cost_pct"] < 100 and 0 < ours["kept_hz"] < 150 and ours["exact"] > 0 and ours["handlers_pct"] > 0
    assert other["kept_hz"] == 100 and 0 <= other["own_pct"] <= other["cost_pct"]  # 4000 of ten threads in four seconds
    assert ratio["all"] == [ratio["median"]] and ratio["interval_95"] is None  # one round says nothing of its spread
    assert "austin bad" not in job and "gentle" not in job
    (head, _, row) = tables_of(out)
    assert head[0] == "job" and head[-2:] == ["ours of austin good", "at 250 Hz of austin good"] and len(row) == len(head)
    assert row[0] == "python, 10 threads, 9 idle with 3 frames" and float(row[1]) == round(ours["cost_pct"], 2)


@pytest.mark.long
@pytest.mark.timeout(80)
def test_wake_ups_of_agent_and_client(measure, tables_of):
    out = measure("--only", "wakeups")
    states = out["wakeups"]
    assert {"probing-smp"} <= set(states["nobody"]) <= {"probing-smp", "probing-srv", "probing-job"}  # the job's own threads sleep
    assert {"probing-smp", "probing-srv", "probing-top"} <= set(states["probing_top"])
    assert all(row["per_s"] > 0 and row["cpu_pct"] >= 0 for state in ("nobody", "probing_top") for row in states[state].values())
    verdict = next(row for row in out["verdicts"] if row["what"].startswith("idle job"))
    assert verdict["value"] == states["nobody_all"]["cpu_pct"] and verdict["verdict"] in ("kept", "missed")
    assert {row[0] for row in tables_of(out)[2:]} >= {"probing-smp", "probing-top"}


@pytest.mark.timeout(120)
def test_a_thread_copies_itself_with_one_call_of_the_kernel(each_python, build_dir):
    """From 3.11 on with none, with the GIL or without, if it is the one that has initialised Python."""
    command = [sys.executable, os.path.join(ROOT, "bench", "handler.py"), "--build", build_dir, "--python", each_python, "--times", "51"]
    directly = has_resident_states(each_python) and not is_free_threaded(each_python)
    for more in ([], ["--released"]):
        for cost in run_command(command + more, timeout=200).json().values():
            assert cost["frames"] >= 25 and cost["reads"] == (0 if directly else 1)
            assert cost["pieces"] <= 16  # frames that are near each other, wherever the version has them, are read as one
            assert cost["empty"] > 0 and cost["read"] > 0 and cost["range_bytes"] <= cost["bytes"] <= 40000


@pytest.mark.parametrize("args, message", [
    (["--only", "everything"], "no part is called everything"),
    (["--only", "peers", "--peer", "perf=/usr/bin/perf"], "--peer is NAME=PATH"),
])
def test_a_part_or_a_sampler_that_it_does_not_know(args, message):
    done = bench(*args)
    assert done.status == 1 and message in done.stderr
