# SPDX-License-Identifier: Apache-2.0
"""The exports as other programs read them: folded lines, files that are whole or not there."""

import json
import os
import re
import signal
import stat
import subprocess

import pytest

from conftest import wait_until
from known_job import BEGINNING

LINE = re.compile(r"^(?P<stack>[^;]+(?:;[^;]+)*) (?P<weight>\d+)$")
FRAME = re.compile(r"^(?P<func>.+) \((?P<file>[^():]+)(?::(?P<line>\d+))?\)$")

# Two threads with known stacks: one computes in `spin` below `work`, one sleeps in `doze`.
JOB = BEGINNING + """
import sys
threading.Thread(target=doze, name="dozing; thread", daemon=True).start()
main = threading.get_ident()
def say():
    while sys._current_frames()[main].f_code.co_name != "spin":
        time.sleep(0.001)
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
threading.Thread(target=say, daemon=True).start()
work()
"""


def parse_folded(text):
    """[(frames, weight)], each line checked."""
    lines = text.splitlines()
    assert lines and text.endswith("\n")
    assert lines == sorted(lines, key=lambda line: line.rpartition(" ")[0].encode())
    parsed = []
    for line in lines:
        match = LINE.match(line)
        assert match, line
        parsed.append((match["stack"].split(";"), int(match["weight"])))
    assert len({tuple(frames) for frames, _ in parsed}) == len(parsed), "a stack has two lines"
    return parsed


@pytest.fixture
def job(target, ptrace):
    return target(JOB, name="folded_job.py")


def test_once(job, probing_top):
    folded = parse_folded(probing_top("--export", "folded", "--once", str(job.pid)).ok().stdout)
    stacks = [frames for frames, weight in folded if weight == 1]
    main = [frames for frames in stacks if "work (folded_job.py:10)" in frames]
    assert len(main) == 1
    assert main[0][:2] == ["<module> (folded_job.py:24)", "work (folded_job.py:10)"]
    assert re.fullmatch(r"spin \(folded_job\.py:[67]\)", main[0][2]), main[0]
    assert len(main[0]) == 3


def test_duration_and_flags(job, probing_top):
    result = probing_top("--export", "folded", "--duration", "1s", "--threads", "--process", "--by-function", str(job.pid)).ok()
    folded = parse_folded(result.stdout)
    for frames, weight in folded:
        assert frames[0] == f"process {job.pid}"
        assert re.fullmatch(r"thread .+ \(\d+\)", frames[1])
        assert weight > 0
        for frame in frames[2:]:
            assert FRAME.match(frame)["line"] is None
    main = [(frames, w) for frames, w in folded if frames[1] == f"thread MainThread ({job.pid})"]
    assert [frames[2:] for frames, _ in main] == [["<module> (folded_job.py)", "work (folded_job.py)", "spin (folded_job.py)"]]
    # 100 looks a second, spread at random and stretched on a busy machine: some, and not more than could be.
    assert 1 <= main[0][1] <= 300
    dozing = [frames for frames, _ in folded if frames[1].startswith("thread dozing: thread (")]
    assert dozing and all(frames[-1] == "doze (folded_job.py)" for frames in dozing)


def test_microseconds(job, probing_top, wait_until):
    def spent():
        text = probing_top("--export", "folded", "--duration", "1", "--unit", "us", str(job.pid)).ok().stdout
        main = sum(weight for frames, weight in parse_folded(text) if frames[1:2] == ["work (folded_job.py:10)"])
        assert 0 < main <= 1.5e6
        return main >= 0.5e6
    wait_until(spent, 90, "a second with most of its samples")  # a busy machine takes fewer


@pytest.mark.parametrize("how", [(), ("--no-inject",)], ids=["agent", "outside"])
def test_rate(job, probing, probing_top, wait_until, how):
    """Samples of a thread in two seconds. Their times are drawn at random: 20 a second are 40, give or take 7; a busy machine takes fewer."""
    def taken(*options):
        run = probing_top("--export", "folded", "--duration", "2s", *options, *how, str(job.pid)).ok()
        return sum(weight for frames, weight in parse_folded(run.stdout) if frames[-1].startswith("doze "))

    def about_40():
        n = taken("--rate", "20")
        assert n <= 80, n
        return n >= 24
    wait_until(about_40, 90, "20 samples a second")
    wait_until(lambda: taken("--rate", "400Hz", "--budget", "60") >= 400, 120, "more than the 100 a second that are taken by default")
    text = probing(job.pid, "flamegraph", "--format", "folded", "--duration", "1s", "--rate", "20", *how).ok().stdout
    assert 1 <= sum(weight for frames, weight in parse_folded(text) if frames[-1].startswith("doze ")) <= 50


def test_json_with_duration(job, probing_top):
    document = probing_top("--export", "json", "--duration", "1", str(job.pid)).ok().json()
    assert 0.9 <= document["sampling"]["duration_s"] <= 5
    assert document["sampling"]["samples"] == sum(s["samples"] for s in document["samples"])
    main = [s for s in document["samples"] if s["tid"] == job.pid]
    assert main and all(s["thread"] == "MainThread" for s in main)
    for entry in main:
        assert [f["func"] for f in entry["frames"]] == ["spin", "work", "<module>"]
        assert [f["depth"] for f in entry["frames"]] == [0, 1, 2]
        assert entry["frames"][0]["file"] == job.script
        assert entry["on_cpu_samples"] <= entry["samples"]
    once = probing_top("--export", "json", "--once", str(job.pid)).ok().json()
    assert "samples" not in once


def test_output_file(job, probing_top, tmp_path):
    out = tmp_path / "deep" / "out.json"
    refused = probing_top("--export", "json", "--once", "-o", str(out), str(job.pid))
    assert refused.status == 1 and refused.stdout == ""
    assert refused.stderr == f"probing-top: cannot write {out}: No such file or directory\n"

    out.parent.mkdir()
    done = probing_top("--export", "json", "--once", "-o", str(out), str(job.pid)).ok()
    assert done.stdout == "" and done.stderr.startswith("probing-top: wrote "), done
    assert json.loads(out.read_text(encoding="utf-8"))["schema_version"] == 1
    assert [p.name for p in out.parent.iterdir()] == ["out.json"]

    out.chmod(0o640)
    link = out.parent / "link.json"
    link.symlink_to(out)
    out.write_text("old", encoding="ascii")
    probing_top("--export", "json", "--once", "-o", str(link), str(job.pid)).ok()
    assert link.is_symlink() and json.loads(out.read_text(encoding="utf-8"))["schema_version"] == 1
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def test_output_is_untouched_on_failure(probing_top, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("precious", encoding="ascii")
    refused = probing_top("--export", "json", "--once", "-o", str(out), "99999999")
    assert refused.status == 3
    assert out.read_text(encoding="ascii") == "precious"


def test_full_device(job, probing):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs devfull: no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([probing.path, str(job.pid), "backtrace"], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr == "probing: cannot write standard output: No space left on device\n"


def test_reader_leaves_early(job, probing):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([probing.path, str(job.pid), "backtrace"], stdin=subprocess.DEVNULL, stdout=writer,
                              stderr=subprocess.PIPE, text=True, timeout=30)
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


def test_target_ends_meanwhile(job, probing, probing_top, tmp_path):
    out = tmp_path / "out.folded"
    client = subprocess.Popen([probing_top.path, "--export", "folded", "--duration", "60", "-o", str(out), str(job.pid)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: probing(str(job.pid), "status").status == 0, 20, "the agent")
        os.kill(job.pid, signal.SIGKILL)
        stdout, stderr = client.communicate(timeout=20)
    finally:
        client.kill()
        client.wait()
    assert client.returncode == 4
    assert stdout == ""
    assert stderr == f"probing-top: process {job.pid} has ended\n"
    assert not out.exists()
