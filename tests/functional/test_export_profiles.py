# SPDX-License-Identifier: Apache-2.0
"""Exports for other programs' viewers, read back by readers that know the published formats and nothing of ours."""

import json
import math
import os
import pty
import shutil
import sqlite3
import subprocess

import pytest

from known_job import BEGINNING
from protobuf_reader import Profile, Trace

# Stacks that are all known: `spin` computes below `work`, `doze` sleeps below `rest`; names that would break a careless writer.
JOB = BEGINNING + """
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
        path.unlink(missing_ok=True)
        probing(str(job.pid), "record", "-o", str(path), "--duration", "1s").ok()
        rows = probing("-t", str(path), "query", "--json", "SELECT min(n) AS n FROM (SELECT count(*) AS n FROM python.samples WHERE torn = 0 GROUP BY tid)")
        return (rows.ok().json()["rows"][0]["n"] or 0) >= 10
    wait_until(seen, 60, "samples of all threads in a recording")
    space_evenly(path)
    return path


def space_evenly(path):
    """Looks of a busy machine come when they can; a sample weighs the mean between two. Here all are as far apart as that."""
    database = sqlite3.connect(path)
    times = [row[0] for row in database.execute("SELECT DISTINCT timestamp FROM python_samples ORDER BY timestamp")]
    apart = (times[-1] - times[0]) / (len(times) - 1)
    database.executemany("UPDATE python_samples SET timestamp = ? WHERE timestamp = ?",
                         [(-times[0] - i * apart, at) for i, at in enumerate(times)])
    database.execute("UPDATE python_samples SET timestamp = -timestamp")
    database.commit()
    database.close()


def name_of(frame):
    return frame[0]


def short(name):
    """Of a name that is too long for one of the exports."""
    return name[:100]


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
        leaf = short(leaf)
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


# What https://www.speedscope.app/file-format-schema.json asks of a file, where it is of sampled profiles.
UNITS = ("bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds")


def check_schema(document):
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert isinstance(document["name"], str) and isinstance(document["exporter"], str)
    for frame in document["shared"]["frames"]:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str) and isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 0), int)
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled" and profile["unit"] in UNITS and isinstance(profile["name"], str)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(isinstance(w, (int, float)) and w > 0 for w in profile["weights"])
        assert all(0 <= n < len(document["shared"]["frames"]) for stack in profile["samples"] for n in stack)
        assert math.isclose(profile["startValue"] + sum(profile["weights"]), profile["endValue"], abs_tol=1)


def speedscope(probing_top, target, *args):
    document = probing_top("--export", "speedscope", *args, str(target)).ok().json()
    check_schema(document)
    return document


def spent_in(document):
    """Time of each function as the innermost one, of all threads."""
    spent = {}
    for profile in document["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if stack:
                name = short(document["shared"]["frames"][stack[-1]]["name"])
                spent[name] = spent.get(name, 0) + weight
    return spent


def assert_same_times(spent, folded):
    """To the microsecond that folded rounds each stack to."""
    assert set(spent) == set(folded)
    for name, us in folded.items():
        assert abs(spent[name] - us) <= 20, name


def test_speedscope_of_a_live_job(job, probing_top, wait_until):
    def seen():
        document = speedscope(probing_top, job.pid, "--duration", "1")
        return document if len(document["profiles"]) == 3 else None
    document = wait_until(seen, 90, "all three threads")
    assert {p["name"].rpartition(" (")[0] for p in document["profiles"]} == {"MainThread", "resting", 'quo"ted <&>'}
    main = document["profiles"][document["activeProfileIndex"]]
    assert main["name"] == f"MainThread ({job.pid})"
    for profile in document["profiles"]:
        for stack in profile["samples"]:
            names = [document["shared"]["frames"][n]["name"] for n in stack]
            assert not names or is_legal(names), names
    assert any(f["name"] == "spin" and f["file"] == job.script and f["line"] in (6, 7) for f in document["shared"]["frames"])
    hostile = [f for f in document["shared"]["frames"] if f["name"].startswith('a"b')]
    assert hostile and all(f["file"] == 'no "such"  file<>' and "\u202e" not in f["name"] for f in hostile)


def trace(probing_top, target, out, *args):
    done = probing_top("--export", "perfetto", *args, "-o", str(out), str(target)).ok()
    assert done.stdout == ""
    return Trace(out.read_bytes())


def holders(slices):
    """Names of those who have a track one after the other."""
    slices = sorted(slices)
    assert all(a[1] <= b[0] and a[2] == b[2] == 0 for a, b in zip(slices, slices[1:]))
    return {name for _, _, _, name in slices}


def test_perfetto_of_a_live_job(job, probing_top, tmp_path, wait_until):
    def seen():
        found = trace(probing_top, job.pid, tmp_path / "job.perfetto", "--duration", "1")
        return found if len(found.threads) == 3 and found.tracks["GIL"] else None
    found = wait_until(seen, 90, "all three threads, and one that held the GIL")
    assert found.threads[job.pid] == "MainThread" and set(found.threads.values()) == {"MainThread", "resting", 'quo"ted <&>'}
    assert list(found.processes) == [job.pid] and len(found.clocks) == 2
    for tid in found.threads:
        by_depth = sorted(found.tracks[tid], key=lambda s: (s[0], s[2]))
        roots = {name for _, _, depth, name in by_depth if depth == 0}
        assert roots <= {"<module>", "Thread._bootstrap", "_bootstrap"}, roots
    assert {(depth, name) for _, _, depth, name in found.tracks[job.pid]} <= {(0, "<module>"), (1, "work"), (2, "spin")}
    assert f"MainThread ({job.pid})" in holders(found.tracks["GIL"])
    holders(found.tracks["Garbage collection"])
    begin = min(s[0] for s in found.tracks[job.pid])
    assert 0 <= found.clocks[1] - begin < 60e9  # of the same clock as the snapshot


def check_profile_times(profile, folded):
    assert not any(line for s in profile.samples for _, _, line in s["frames"])
    spent = {}
    for sample in profile.samples:
        leaf = short(name_of(sample["frames"][0]))
        spent[leaf] = spent.get(leaf, 0) + sample["wall"] / 1e3
    assert_same_times(spent, folded)


def check_trace_times(found, folded):
    spent = {}
    for tid in found.threads:
        for name, ns in found.self_ns(tid).items():
            spent[short(name)] = spent.get(short(name), 0) + ns / 1e3
    assert list(found.clocks) == [1]  # of the time since its machine has started nothing is known
    assert_same_times({name: us for name, us in spent.items() if us}, folded)


def test_a_recording(recording, probing_top, tmp_path):
    """What each of them says of one recording: every function the time that folded says."""
    folded = folded_us(probing_top, recording)
    assert "spin" in folded
    check_profile_times(read_profile(probing_top, recording, tmp_path / "run.pb.gz", "--by-function"), folded)
    document = speedscope(probing_top, recording, "--by-function")
    assert not any("line" in f for f in document["shared"]["frames"])
    assert "rank 3" in document["name"]
    assert_same_times(spent_in(document), folded)
    check_trace_times(trace(probing_top, recording, tmp_path / "run.perfetto"), folded)


@pytest.fixture
def go():
    return shutil.which("go") or pytest.skip("needs go: not installed")


def test_pprof_itself_reads_it(go, recording, probing_top, tmp_path):
    out = tmp_path / "run.pb.gz"
    probing_top("--export", "pprof", "-o", str(out), str(recording)).ok()
    done = subprocess.run([go, "tool", "pprof", "-top", "-sample_index=wall", str(out)], capture_output=True, text=True, timeout=80)
    assert done.returncode == 0, done.stderr
    assert "spin" in done.stdout


def test_refusals(probing_top):
    once = probing_top("--export", "pprof", "--once", "1")
    assert once.status == 2 and once.stdout == ""
    assert once.stderr == "probing-top: --once is not for pprof: one snapshot has no duration; give a --duration\n"
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
