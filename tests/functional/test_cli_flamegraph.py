# SPDX-License-Identifier: Apache-2.0
"""`probing flamegraph`: in both orders, to a file or standard output, in every format of samples, of what has ended too."""

import os
import signal

import pytest

from conftest import wait_until
from protobuf_reader import Profile
from test_export_folded import parse_folded
from test_export_svg import JOB, frames_of


@pytest.fixture
def job(target, ptrace):
    return target(JOB, name="svg_job.py")


def test_both_orders(job, probing, tmp_path):
    out = tmp_path / "flame.svg"
    done = probing("-t", job.pid, "flamegraph", "--duration", "0.5", "-o", out).ok()
    assert done.stdout == "" and done.stderr.startswith("probing: wrote "), done
    assert frames_of(out.read_text(encoding="utf-8"))[0].weight > 0
    frames = frames_of(probing(job.pid, "flamegraph", "--duration", "0.5", "--by-function", "--unit", "samples").ok().stdout)
    assert "spin (svg_job.py)" in {frame.name for frame in frames}


def test_other_formats(job, probing):
    folded = parse_folded(probing(job.pid, "flamegraph", "--format", "folded", "--threads", "--duration", "0.5").ok().stdout)
    assert all(frames[0].startswith("thread ") for frames, _ in folded)
    document = probing(job.pid, "flamegraph", "--json", "--duration", "0.5").ok().json()
    assert document["sampling"]["samples"] == sum(s["samples"] for s in document["samples"]) > 0


def test_pprof(job, probing, tmp_path):
    out = tmp_path / "job.pb.gz"
    for order in ((job.pid, "pprof"), ("-t", job.pid, "pprof")):
        done = probing(*order, "--duration", "0.5", "--by-function", "-o", out).ok()
        assert done.stdout == "" and done.stderr.startswith("probing: wrote "), done
        profile = Profile(out.read_bytes())
        assert "spin" in {frame[0] for sample in profile.samples for frame in sample["frames"]}
    refused = probing(job.pid, "pprof", "--json")
    assert refused.status == 2 and refused.stderr == "probing: --json and the format pprof exclude each other\n"


def test_refusals(job, probing, tmp_path):
    pid = str(job.pid)
    for args, text in (
        (["--format", "csv"], "csv is not a profile format: give one of json|folded|svg|pprof|speedscope|perfetto"),
        (["--format", "fodled"], "unknown export format 'fodled': did you mean 'folded'?"),
        (["--json", "--format", "svg"], "--json and the format svg exclude each other"),
        (["--json", "--threads"], "--threads is for --export folded"),
        (["--unit", "ms"], "unknown unit 'ms'"),
        (["--rate", "2kHz"], "--rate takes a number from 0.1 to 1000 (Hz), not '2kHz'"),
        (["--rate", ""], "--rate takes a number from 0.1 to 1000 (Hz), not ''"),
    ):
        done = probing(pid, "flamegraph", *args)
        assert done.status == 2 and done.stdout == "" and done.stderr.startswith("probing: " + text), done
        assert done.stderr.count("\n") == 1
    done = probing(pid, "flamegraph", "-o", tmp_path / "no" / "such.svg")
    assert done.status == 1 and "cannot write" in done.stderr
    assert probing("flamegraph").status == 2
    done = probing(pid, "pprof", "--rate", "0.05")
    assert done.status == 2 and done.stderr == "probing: --rate takes a number from 0.1 to 1000 (Hz), not '0.05'\n"


def test_of_the_past(job, probing, tmp_path):
    """Of a recording, and of a process that was killed: the same stacks, at their time."""
    probing(job.pid, "inject").ok()
    recording = tmp_path / "run.db"
    count = "SELECT count(*) AS n FROM python.samples WHERE stack_id > 0"
    wait_until(lambda: probing(job.pid, "query", count, "--json").ok().json()["rows"][0]["n"] >= 20, 60, "samples in the tables")
    probing(job.pid, "record", "-o", recording).ok()
    kept = probing(recording, "flamegraph", "--by-function").ok().stdout
    assert "spin (svg_job.py)" in {frame.name for frame in frames_of(kept)}
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: not job.alive(), 20, "the job to end")
    dead = probing(job.pid, "flamegraph", "--by-function").ok().stdout
    assert "spin (svg_job.py)" in {frame.name for frame in frames_of(dead)}
