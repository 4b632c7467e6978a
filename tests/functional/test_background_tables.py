# SPDX-License-Identifier: Apache-2.0
"""Tables that the agent always writes: what is in them, that they outlive the job, and that nothing of them is left where they should not be."""

import fcntl
import os
import shutil
import signal
import subprocess
import time

import pytest

import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client, rows
from conftest import wait_until

ALWAYS = {"PROBING_SAMPLE_RATE": "20", "PROBING_MAX_MEMORY": "2MB"}
KEPT = {"python.samples", "python.stacks", "python.frames", "python.memory", "python.gc", "system.process_history",
        "system.threads_history", "probing.status", "probing.facts", "python.steps", "profiling_data", "python.variables", "python.loaders", "memory_allocations", "python.waits",
        "python.torch_trace", "python.nonfinite", "python.collectives", "probing.events"}


def folder_of(data_dir, pid):
    found = ring_file.folders(data_dir, pid)
    return found[-1] if found else None


def begun(j, data_dir, table="python.samples", rows=20):
    """The job's folder, once a table has so many rows."""
    def look():
        folder = folder_of(data_dir, j.pid)
        there = folder and os.path.exists(os.path.join(folder, table + ".ring"))  # the folder is made before its files
        return folder if there and len(ring_file.read(folder, table)) >= rows else None
    return wait_until(look, timeout=60, what=f"{rows} rows of {table}", interval=0.1)


def written_since(folder, since, least):
    """Times of the samples in the tables since then, once there are so many."""
    found = [r["timestamp"] for r in ring_file.read(folder, "python.samples") if r["timestamp"] > since + 0.002]
    return found if len(found) >= least else None


def ended(target):
    """Kill it as the kernel would; when it is gone."""
    os.kill(target.pid, signal.SIGKILL)
    target.process.wait(30)


def test_what_is_written(job, data_dir):  # noqa: F811
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    j.do("spawn('waiter', wait_for_ever)")
    before = time.time()
    j.start()
    folder = begun(j, data_dir, rows=90)
    assert set(ring_file.read_all(folder)) == KEPT
    assert os.stat(folder).st_mode & 0o777 == 0o700
    begun(j, data_dir, "system.process_history", 3)
    stacks = ring_file.stacks(folder)
    samples = ring_file.read(folder, "python.samples")
    assert all(before - 1 < s["timestamp"] <= time.time() + 1 for s in samples)
    names = {t["tid"]: t["name"] for t in j.do("[{'tid': t.native_id, 'name': t.name} for t in threading.enumerate()]")}
    assert {s["tid"]: s["thread"] for s in samples} == names
    seen = {s["thread"]: set() for s in samples}
    for s in samples:
        seen[s["thread"]].add(stacks[s["stack_id"]])
    assert all("hot_loop" in stack for stack in seen["hot"]) and any("hot_inner" in stack for stack in seen["hot"])
    assert all("wait_for_ever" in stack for stack in seen["waiter"])
    assert any(s["on_cpu"] for s in samples if s["thread"] == "hot")
    assert not any(s["on_cpu"] for s in samples[-20:] if s["thread"] == "waiter")
    # Against /proc.
    process = ring_file.read(folder, "system.process_history")[-1]
    with open(f"/proc/{j.pid}/status", encoding="utf-8") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert abs(process["rss_bytes"] - int(status["VmRSS"].split()[0]) * 1024) < 16 << 20
    assert process["threads"] == int(status["Threads"])
    # counted more seldom where that takes long
    counted = [row["fds"] for row in ring_file.read(folder, "system.process_history") if row["fds"] is not None]
    assert counted[-1] == j.do("look()")["fds"] - 1  # the one that lists them
    memory = ring_file.read(folder, "python.memory")[-1]
    assert memory["rss_mb"] > 1 and memory["gpu_allocated_mb"] is None
    threads = [t for t in ring_file.read(folder, "system.threads_history") if t["timestamp"] == process["timestamp"]]
    assert {t["tid"]: t["name"] for t in threads} == names  # the agent's own are not the job's
    assert {t["name"]: t["state"] for t in threads}["waiter"] == "S"
    facts = {row["key"]: row["value"] for row in ring_file.read(folder, "probing.facts")}
    with open(f"/proc/{j.pid}/cmdline", encoding="utf-8") as f:
        assert facts["cmd"] == f.read().rstrip("\0").replace("\0", " ")
    assert facts["exe"] == os.readlink(f"/proc/{j.pid}/exe") and facts["agent"] and "torch" not in facts
    assert facts["python"].split(".")[:2] == [str(n) for n in j.do("list(sys.version_info[:2])")]
    assert abs(float(facts["started_at"]) - before) < 600
    own = ring_file.read(folder, "probing.status")[-1]
    assert own["rate_hz"] == 20 and own["samples"] > 0 and own["clients"] == 0


def test_no_secrets(job, data_dir):  # noqa: F811
    """Of the environment the tables tell what somebody has named, and nothing else."""
    j = job(env=dict(ALWAYS, PROBING_ENV_ALLOW="JOB_NAME,JOB_ABSENT,JOB_EMPTY", JOB_NAME="vision-7", JOB_EMPTY="", JOB_TOKEN="hunter2-secret"))
    j.start()
    folder = begun(j, data_dir, "system.process_history", 2)
    told = {row["key"]: row["value"] for row in ring_file.read(folder, "probing.facts") if row["key"].startswith("env.")}
    assert told == {"env.JOB_NAME": "vision-7", "env.JOB_EMPTY": ""}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        assert b"hunter2" not in data and b"JOB_TOKEN" not in data, name


def test_it_outlives_a_kill(job, data_dir):  # noqa: F811
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    j.start()
    folder = begun(j, data_dir, rows=60)
    begun(j, data_dir, "system.process_history", 2)
    killed_at = time.time()
    ended(j.target)
    tables = ring_file.read_all(folder)
    assert killed_at - 2.5 < tables["python.samples"][-1]["timestamp"] <= time.time()
    assert killed_at - 2.5 < tables["system.process_history"][-1]["timestamp"] <= time.time()
    stacks = ring_file.stacks(folder)
    assert all(s["stack_id"] in stacks for s in tables["python.samples"])


@pytest.mark.long
def test_eject_leaves_nothing(job, data_dir):  # noqa: F811
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    before = j.do("look()")
    with Client(j.start()) as client:
        folder = begun(j, data_dir)
        assert client.call("status")["always_hz"] == 20
        client.call("eject")
        wait_until(lambda: not os.path.exists(folder), 30, "the tables to go")
    wait_until(lambda: j.do("look()") == before, 30, "everything to be as it was")
    with open(f"/proc/{j.pid}/status", encoding="utf-8") as f:
        caught = int([line for line in f if line.startswith("SigCgt")][0].split()[1], 16)
    assert not caught >> (signal.SIGURG - 1) & 1
    # And once more.
    j.start()
    assert begun(j, data_dir) == folder


def test_a_child_writes_nothing_into_its_parents(job, data_dir):  # noqa: F811
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    j.start()
    folder = begun(j, data_dir)
    child = j.do("fork_child()")
    try:
        assert not any(data_dir in link or ".ring" in link for link in child["fds"])
        wait_until(lambda: folder_of(data_dir, child["pid"]), 30, "tables of the child's own agent")
        rows = len(ring_file.read(folder, "python.samples"))
        begun(j, data_dir, rows=rows + 30)
        main = {s["tid"] for s in ring_file.read(folder, "python.samples")}
        assert child["pid"] not in main
        # The parent's end is the end of its folder's lock, though the child lives.
        ended(j.target)
        subprocess.run(["flock", "--nonblock", "--shared", folder, "true"], check=True)
    finally:
        os.kill(child["pid"], signal.SIGKILL)


@pytest.mark.long
def test_dead_ones_are_removed_in_time(job, data_dir):  # noqa: F811
    j = job(env=ALWAYS)
    j.start()
    folder = begun(j, data_dir)
    ended(j.target)
    old = os.path.join(data_dir, "1-1")
    os.mkdir(old, 0o700)
    shutil.copy(os.path.join(folder, "python.gc.ring"), old)
    long_ago = time.time() - 8 * 86400
    for path in (os.path.join(old, "python.gc.ring"), old):
        os.utime(path, (long_ago, long_ago))
    again = job(env=ALWAYS)
    again.start()
    begun(again, data_dir)
    assert not os.path.exists(old) and os.path.exists(folder)
    # What is kept of the dead has an end.
    last = job(env=dict(ALWAYS, PROBING_RETENTION_DAYS="0"))
    last.start()
    begun(last, data_dir)
    assert not os.path.exists(folder) and os.path.exists(folder_of(data_dir, again.pid))


def test_nothing_is_kept_if_so_wished(job, data_dir):  # noqa: F811
    j = job(env={"PROBING_MAX_MEMORY": "0"})
    with Client(j.start()) as client:
        wait_until(lambda: client.call("status")["collect_note"], 30, "the agent to say so")
        status = client.call("status")
    assert "probing.max_memory" in status["collect_note"]
    assert not status["tables"].get("name") and status["always_hz"] == 0
    assert folder_of(data_dir, j.pid) is None


def test_tables_of_another_process_of_that_pid(job, probing, data_dir, ptrace):  # noqa: F811
    """Two processes of one pid, each in a container, may start in the same hundredth of a second and write to one folder."""
    def steps(pid):
        answer = probing("-t", str(pid), "query", "--no-inject", "--json", "SELECT count(*) AS n FROM python.samples")
        return answer.json()["rows"][0]["n"] if answer.status == 0 else answer.stderr

    def pretend(copy):
        """A folder that this process writes, newer than the job's."""
        shutil.copytree(folder, copy)
        for path in [copy, *(os.path.join(copy, name) for name in os.listdir(copy))]:
            os.utime(path, (time.time() + 3600, time.time() + 3600))
        fd = os.open(copy, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    j, bare = job(env=ALWAYS), job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    j.start()
    folder = begun(j, data_dir)
    with open(f"/proc/{bare.pid}/stat", encoding="ascii") as stat:
        start = stat.read().rpartition(")")[2].split()[19]
    locked = [pretend(folder + "-2"), pretend(os.path.join(data_dir, f"{bare.pid}-{start}"))]
    try:
        copied = len(ring_file.read(folder + "-2", "python.samples"))
        wait_until(lambda: steps(j.pid) > copied + 5, 60, "rows that the copy does not have")
        found = steps(bare.pid)
        assert found == 0 or "it needs an agent in the process" in found
    finally:
        for fd in locked:
            os.close(fd)


def test_a_folder_that_cannot_be_written_is_passed_over(job, tmp_path):  # noqa: F811
    """Somebody else's, or one that others may write to."""
    base = tmp_path / "shared"
    base.mkdir(mode=0o777)
    os.chmod(base, 0o777)
    j = job(env=dict(ALWAYS, PROBING_DATA_DIR=str(base)))
    with Client(j.start()) as client:
        wait_until(lambda: client.call("status")["data_dir"], 30, "a folder")
        status = client.call("status")
        assert "not a private folder of this user" in status["collect_note"]
        assert not status["data_dir"].startswith(str(base)) and os.path.isdir(status["data_dir"])
        client.call("eject")
        wait_until(lambda: not os.path.exists(status["data_dir"]), 30, "the tables to go")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
def test_a_small_shared_memory(job, data_dir, tmp_path):  # noqa: F811
    """A file system of 4 MB that is then filled: the tables take a quarter, and the job and they go on."""
    point = tmp_path / "small"
    point.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(point)], capture_output=True).returncode:
        pytest.skip("needs root: may not mount a file system")
    try:
        j = job(env=dict(ALWAYS, PROBING_DATA_DIR=str(point)))
        j.do("spawn('hot', hot_loop)")
        with Client(j.start()) as client:
            folder = begun(j, str(point))
            taken = sum(os.stat(os.path.join(folder, name)).st_size for name in os.listdir(folder))
            assert taken <= 2 << 20
            with open(point / "fill", "wb", buffering=0) as f, pytest.raises(OSError):
                while True:
                    f.write(b"x" * 65536)
            rows = ring_file.Ring(os.path.join(folder, "python.samples.ring")).rows[-1]["timestamp"]
            wait_until(lambda: ring_file.read(folder, "python.samples")[-1]["timestamp"] > rows + 1, 30, "new rows")
            assert not any(client.call("status")["tables"]["lost"])
            assert j.do("1 + 1") == 2
            client.call("eject")
            wait_until(lambda: not os.path.exists(folder), 30, "the tables to go")
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False)




def test_one_who_wants_no_signals_gets_none(job):  # noqa: F811
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        client.call("threads", {"mode": "gentle"})
        wait_until(lambda: client.call("status")["samples"] > 50, 60, "samples")
        status = client.call("status")
        assert status["signals_sent"] == 0 and status["sampling"] == "gentle"
        client.call("threads", {"mode": "exact"})
        wait_until(lambda: client.call("status")["sampling"] == "exact", 30, "exact samples")
    j = job(env=dict(ALWAYS, PROBING_GENTLE="on"))
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        client.call("threads", {"mode": "exact"})
        wait_until(lambda: client.call("status")["samples"] > 50, 60, "samples")
        assert client.call("status")["signals_sent"] == 0


def test_clients_and_tables_share_what_is_seen(job, data_dir):  # noqa: F811
    """A client's rate is the tables' too while it lasts; its batches are of its own rate from the first on."""
    j = job(env=ALWAYS)
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        folder = begun(j, data_dir)
        client.subscribe("samples", 200)
        first = client.notification("samples")
        assert first["period_us"] < 40000
        rows = len(ring_file.read(folder, "python.samples"))
        begun(j, data_dir, rows=rows + 400)
        client.call("unsubscribe", {"stream": "samples"})
    after = wait_until(lambda: [r for r in ring_file.read(folder, "probing.status") if r["rate_hz"] == 20][-1:], 30, "the rate to fall")
    assert after


@pytest.mark.long
def test_a_client_is_sent_all_that_was_seen_for_it(job, data_dir):  # noqa: F811
    """Also where the batch before its own had no samples, and its own ends only with its stream."""
    j = job(env=dict(ALWAYS, PROBING_SAMPLE_RATE="1"))
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        folder = begun(j, data_dir, rows=2)
        for _ in range(6):
            client.call("subscribe", {"stream": "samples", "rate_hz": 100.0, "batch_s": 10.0})
            since = time.time()
            written = wait_until(lambda: written_since(folder, since, 60), 60, "60 samples")
            client.call("unsubscribe", {"stream": "samples"})
            batches = [m[2] for m in client.notifications if m[:2] == [2, "samples"]]
            client.notifications.clear()
            sent = {round(s["timestamp"], 3) for b in batches for s in rows(b["samples"])}
            assert all(sent & {round(at + d, 3) for d in (-0.001, 0, 0.001)} for at in written), (sorted(sent), written)


def test_what_is_set_is_done_at_once(job, data_dir, probing):  # noqa: F811
    j = job(env=ALWAYS)
    j.start()
    folder = begun(j, data_dir)

    def config(*words, status=0):
        done = probing("-t", str(j.pid), "config", *words)
        assert done.status == status, done
        return done

    assert config("probing.sample_rate").stdout == "20\n"
    listed = {c["key"]: c for c in config("--json").json()["config"]}
    assert listed["probing.max_memory"] == dict(listed["probing.max_memory"], value="2M", default="32M", set=True)
    by_sql = probing("-t", str(j.pid), "query", "--json", "SELECT key, value, \"default\", help FROM probing.config").ok().json()["rows"]
    assert by_sql == [{name: c[name] for name in ("key", "value", "default", "help")} for c in listed.values()]
    assert config("sample_rate=50Hz").stdout == "50\n"
    wait_until(lambda: ring_file.read(folder, "probing.status")[-1]["rate_hz"] == 50, 30, "the new rate")
    assert config("probing.sample_rate=0").stdout == "0\n"
    wait_until(lambda: ring_file.read(folder, "probing.status")[-1]["rate_hz"] == 0, 30, "the end of looks")
    samples = len(ring_file.read(folder, "python.samples"))
    assert config("max_memory=0").stdout == "0B\n"
    wait_until(lambda: not os.path.exists(folder), 30, "the tables to go")
    assert config("max_memory=3MB").stdout == "3M\n"
    wait_until(lambda: folder_of(data_dir, j.pid) and samples, 30, "tables again")
    for words, said in (("max_memroy=1G", "did you mean probing.max_memory?"), ("budget=200%", "from 0.01 to 100"),
                        ("gentle=perhaps", "takes on or off"), ("data_dir=/tmp", "PROBING_DATA_DIR")):
        refused = config(words, status=2)
        assert said in refused.stderr and refused.stdout == "" and refused.stderr.count("\n") == 1


def test_a_torch_of_which_the_version_is_not_to_be_found(job):  # noqa: F811
    """Status says why there are no steps; and nothing about torch where there is none."""
    j = job(env=ALWAYS)
    with Client(j.start()) as client:
        wait_until(lambda: client.call("status")["tables"], timeout=60, what="the first look", interval=0.1)
        assert client.call("status")["steps_note"] is None
        assert j.do("sys.modules.update(torch=type(sys)('torch'))") is None
        def said():
            return client.call("status")["steps_note"]
        assert wait_until(said, timeout=60, what="why there are no steps", interval=0.1) == "torch is imported, but no file with its version was found"
