# SPDX-License-Identifier: Apache-2.0
"""Exports held against what the authors of their formats have published: speedscope's JSON schema, Perfetto's and pprof's messages.

What is read that way is what our own readers say of the same file, so neither can be wrong alone.
"""

import copy
import json

import pytest

import published
from protobuf_reader import Profile, Trace
from test_export_profiles import space_evenly

# One thread computes, one sleeps, one collects garbage again and again.
JOB = """
import gc, os, threading, time

def spin():
    x = 0
    while True:
        x += 1

def doze():
    while True:
        time.sleep(0.05)

def collect():
    kept = [[] for _ in range(400000)]
    while kept:
        gc.collect()
        time.sleep(0.01)

threading.Thread(target=doze, name='quo"ted\\n<&>', daemon=True).start()
threading.Thread(target=collect, name="collecting", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
spin()
"""

FLAGS = {"speedscope": [[], ["--by-function"], ["--native"]], "perfetto": [[], ["--native"]], "pprof": [[], ["--by-function"], ["--native"]]}


@pytest.fixture(autouse=True)
def readers():
    """Before anything is begun: without them all is skipped."""
    published.packages()


@pytest.fixture
def job(target, ptrace):
    return target(JOB, name="published_job.py", env={"RANK": "3"})


@pytest.fixture
def recording(job, probing, tmp_path, wait_until):
    """Of the job, in which each thread was seen, and the one that collects garbage doing so."""
    path = tmp_path / "run.db"
    ask = ("SELECT min(n) AS n, count(*) AS threads, max(gc) AS gc FROM "
           "(SELECT count(*) AS n, max(gc) AS gc FROM python.samples WHERE torn = 0 GROUP BY tid)")

    def seen():
        path.unlink(missing_ok=True)
        probing(job.pid, "record", "-o", path, "--duration", "1s").ok()
        row = probing("-t", path, "query", "--json", ask).ok().json()["rows"][0]
        return (row["n"] or 0) >= 10 and row["threads"] == 3 and row["gc"] == 1
    wait_until(seen, 80, "samples of all threads in a recording")
    space_evenly(path)
    return path


def export(probing_top, kind, target, out, *args):
    done = probing_top("--export", kind, *args, "-o", out, target).ok()
    assert done.stdout == ""
    return out.read_bytes()


def exports(probing_top, kind, job, recording, out):
    """A file of each way to make one of the kind, of the recording and of the living job, with that job's flags."""
    for flags in FLAGS[kind]:
        if "--native" not in flags:  # they are not kept
            yield export(probing_top, kind, recording, out, *flags), flags
        yield export(probing_top, kind, job.pid, out, "--duration", "1", *flags), flags


def broken(document):
    """The document with a fault each, which the schema does not allow."""
    for key in ("$schema", "shared", "profiles"):
        without = copy.deepcopy(document)
        del without[key]
        yield without
    for key, value in (("unit", "fortnights"), ("type", "counted"), ("weights", ["1"]), ("samples", [["spin"]]), ("endValue", None)):
        changed = copy.deepcopy(document)
        changed["profiles"][0][key] = value
        yield changed
    nameless = copy.deepcopy(document)
    del nameless["shared"]["frames"][0]["name"]
    yield nameless


def test_speedscope_by_its_schema(job, recording, probing_top, tmp_path):
    validator = published.speedscope_validator()
    for data, flags in exports(probing_top, "speedscope", job, recording, tmp_path / "out.json"):
        document = json.loads(data)
        assert document["profiles"] and document["shared"]["frames"]
        errors = [f"{list(error.absolute_path)}: {error.message[:300]}" for error in validator.iter_errors(document)]
        assert not errors, (flags, errors[:5])
    assert validator.is_valid(document)
    for wrong in broken(document):
        assert not validator.is_valid(wrong)


def test_perfetto_by_its_messages(job, recording, probing_top, tmp_path):
    for data, flags in exports(probing_top, "perfetto", job, recording, tmp_path / "out.pftrace"):
        theirs, ours = published.Trace(data), Trace(data)
        assert theirs.n_events == ours.n_events == sum(2 * len(slices) for slices in theirs.tracks.values()) > 0
        assert theirs.tracks == ours.tracks
        assert theirs.threads == ours.threads and theirs.processes == ours.processes and theirs.clocks == ours.clocks
        assert {"MainThread", 'quo"ted <&>', "collecting"} >= set(theirs.threads.values())
        assert set(theirs.tracks) == set(theirs.threads) | {"GIL", "Garbage collection"}
        for track, used in theirs.used.items():
            assert used <= {{"GIL": "gil", "Garbage collection": "gc"}.get(track, "python")}, (flags, track)
        process, = (p.track_descriptor.process for p in theirs.message.packet if p.track_descriptor.HasField("process"))
        assert process.pid == job.pid and process.process_name == "rank 3" and "published_job.py" in process.cmdline[0]


def test_perfetto_has_tracks_of_the_gil_and_of_garbage(job, recording, probing_top, tmp_path):
    theirs = published.Trace(export(probing_top, "perfetto", recording, tmp_path / "out.pftrace"))
    collecting, = (f"{name} ({tid})" for tid, name in theirs.threads.items() if name == "collecting")
    assert set(theirs.threads.values()) == {"MainThread", 'quo"ted <&>', "collecting"}
    assert collecting in {name for *_, name in theirs.tracks["Garbage collection"]}
    assert f"MainThread ({job.pid})" in {name for *_, name in theirs.tracks["GIL"]}
    assert theirs.used["GIL"] == {"gil"} and theirs.used["Garbage collection"] == {"gc"} and theirs.used[job.pid] == {"python"}


def test_pprof_by_its_messages(job, recording, probing_top, tmp_path):
    for data, flags in exports(probing_top, "pprof", job, recording, tmp_path / "out.pb.gz"):
        theirs, ours = published.Profile(data), Profile(data)
        assert theirs.samples == ours.samples and theirs.samples, flags
        for what in ("types", "period_type", "period", "default", "time_nanos", "duration_nanos", "comments", "files"):
            assert getattr(theirs, what) == getattr(ours, what), (flags, what)
        assert {s["labels"]["rank"] for s in theirs.samples} == {3}


def test_what_is_not_described_is_refused(recording, probing_top, tmp_path):
    """The strict reader is one: a field that nobody has described, and a kind of event that has no name."""
    data = export(probing_top, "perfetto", recording, tmp_path / "out.pftrace")
    published.Trace(data)
    for packet, why in ((b"\xa2\xbb\x01\x01x", r"TracePacket has no fields \[2996\]"), (b"\x5a\x02\x48\x63", r"TrackEvent has no fields \[9\]")):
        with pytest.raises(AssertionError, match=why):
            published.parse("perfetto", "perfetto.protos.Trace", data + b"\x0a" + bytes([len(packet)]) + packet)
