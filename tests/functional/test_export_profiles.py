# SPDX-License-Identifier: Apache-2.0
"""Exports for other programs' viewers, read back by readers that know the published formats and nothing of ours."""

import os
import pty
import shutil
import subprocess

import pytest

from protobuf_reader import Profile

# Stacks that are all known: `spin` computes below `work`, `doze` sleeps below `rest`; names that would break a careless writer.
JOB = """
import os, threading, time

def spin():
    x = 0
    while True:
        x += 1

def work():
    spin()

def doze():
    while True:
        time.sleep(0.05)

def rest():
    doze()

scope = {"rest": rest}
hostile = 'a"b\\\\n</script>\\u202e\\U0001F600' + 10000 * "n"
exec(compile("def shout():\\n    rest()\\n", 'no "such"\\n\\tfile<>', "exec"), scope)
shout = scope["shout"]
shout.__code__ = shout.__code__.replace(co_name=hostile, **({"co_qualname": hostile} if hasattr(shout.__code__, "co_qualname") else {}))
threading.Thread(target=rest, name="resting", daemon=True).start()
threading.Thread(target=shout, name='quo"ted\\n<&>', daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
work()
"""


@pytest.fixture
def job(target, ptrace):
    return target(JOB, name="profiles_job.py", env={"RANK": "3"})


@pytest.fixture
def recording(job, probing, tmp_path, wait_until):
    """Of the job, in which each of its threads was seen often."""
    path = tmp_path / "run.db"

    def seen():
        probing(str(job.pid), "record", "-o", str(path), "--duration", "1s").ok()
        rows = probing("-t", str(path), "query", "--json", "SELECT min(n) AS n FROM (SELECT count(*) AS n FROM python.samples WHERE torn = 0 GROUP BY tid)")
        return (rows.ok().json()["rows"][0]["n"] or 0) >= 10
    wait_until(seen, 60, "samples of all threads in a recording")
    return path


def name_of(frame):
    return frame[0]


def is_legal(names):
    """Root first: is it one of the job's stacks, or a part of one that begins or ends?"""
    if "spin" in names or "work" in names:
        return names in (["<module>", "work", "spin"], ["<module>", "work"])
    return names[:3] == ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"] or names[:3] == ["_bootstrap", "_bootstrap_inner", "run"]


def folded_us(probing_top, path):
    """Time of each function as the innermost one, after the folded export."""
    spent = {}
    text = probing_top("--export", "folded", "--by-function", "--unit", "us", str(path)).ok().stdout
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        leaf = stack.rpartition(";")[2].rpartition(" (")[0]
        spent[leaf] = spent.get(leaf, 0) + int(weight)
    return spent


def read_profile(probing_top, path, out, *args):
    done = probing_top("--export", "pprof", *args, "-o", str(out), str(path)).ok()
    assert done.stdout == ""
    return Profile(out.read_bytes())


def check_main(profile, pid):
    main = [s for s in profile.samples if s["labels"]["tid"] == pid]
    assert main
    for sample in main:
        names = [name_of(frame) for frame in reversed(sample["frames"])]
        assert is_legal(names), names
        assert sample["labels"]["thread"] == "MainThread" and sample["labels"]["rank"] == 3
        assert 0 < sample["samples"] and 0 < sample["wall"]
        assert sample["cpu"] <= sample["wall"] and sample["gil"] <= sample["wall"]
        assert (sample["gil"] > 0) == (sample["labels"].get("gil") == "held")
    return main


def test_pprof_of_a_live_job(job, probing_top, tmp_path, wait_until):
    def seen():
        profile = read_profile(probing_top, job.pid, tmp_path / "job.pb.gz", "--duration", "1")
        main = check_main(profile, job.pid)
        return profile if len({s["labels"]["tid"] for s in profile.samples}) == 3 and sum(s["cpu"] for s in main) else None
    profile = wait_until(seen, 90, "all three threads, one of them on the CPU")
    assert profile.types == [("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds"), ("gil", "nanoseconds")]
    assert profile.period_type == ("wall", "nanoseconds") and profile.period > 0 and profile.default == "wall"
    assert profile.time_nanos > 1.7e18 and 0.9e9 <= profile.duration_nanos <= 20e9
    assert os.path.basename(profile.files[0]).startswith("python")
    dozing = [s for s in profile.samples if "doze" in map(name_of, s["frames"])]
    assert {s["labels"]["thread"] for s in dozing} == {"resting", 'quo"ted <&>'}
    for sample in dozing:
        assert is_legal([name_of(frame) for frame in reversed(sample["frames"])])
        assert ("doze", job.script) in [frame[:2] for frame in sample["frames"]]
    hostile, = {f for s in dozing for f in s["frames"] if f[0].startswith('a"b')}
    assert "\n" not in hostile[0] and "\u202e" not in hostile[0] and "\U0001F600" in hostile[0]
    assert hostile[1] == 'no "such"  file<>' and hostile[2] in (1, 2)


def test_pprof_of_a_recording(recording, probing_top, tmp_path):
    profile = read_profile(probing_top, recording, tmp_path / "run.pb.gz", "--by-function")
    assert not any(line for s in profile.samples for _, _, line in s["frames"])
    spent = {}
    for sample in profile.samples:
        leaf = name_of(sample["frames"][0])
        spent[leaf] = spent.get(leaf, 0) + sample["wall"]
    folded = folded_us(probing_top, recording)
    assert len(folded) == len(spent) and "spin" in spent
    for name in ("spin", "doze"):
        if name in folded:
            assert abs(spent[name] / 1e3 - folded[name]) <= 1, name


def test_pprof_itself_reads_it(recording, probing_top, tmp_path):
    go = shutil.which("go")
    if not go:
        pytest.skip("needs go: not installed")
    out = tmp_path / "run.pb.gz"
    probing_top("--export", "pprof", "-o", str(out), str(recording)).ok()
    done = subprocess.run([go, "tool", "pprof", "-top", "-sample_index=wall", str(out)], capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stderr
    assert "spin" in done.stdout


def test_refusals(probing_top):
    once = probing_top("--export", "pprof", "--once", "1")
    assert once.status == 2 and once.stdout == ""
    assert once.stderr == "probing-top: --once is not for pprof: one look has no length; give a --duration\n"
    unit = probing_top("--export", "pprof", "--unit", "us", "1")
    assert unit.status == 2 and unit.stderr.startswith("probing-top: --unit is for --export ") and unit.stderr.endswith(", not for pprof\n")


def test_binary_is_not_for_terminals(probing_top):
    parent, child = pty.openpty()
    try:
        done = subprocess.run([probing_top.path, "--export", "pprof", "1"], stdin=subprocess.DEVNULL, stdout=child, stderr=subprocess.PIPE,
                              text=True, timeout=30)
    finally:
        os.close(child)
        os.close(parent)
    assert done.returncode == 2
    assert done.stderr == "probing-top: pprof is binary and not for a terminal: give -o FILE, or a pipe\n"
