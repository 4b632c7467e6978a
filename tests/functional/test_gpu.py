# SPDX-License-Identifier: Apache-2.0
"""gpu_metrics and what is shown of it, in front of a driver's library that a script drives (tests/targets/fake_nvml.c)."""

import contextlib
import json
import os
import pwd
import re
import sqlite3
import statistics
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from test_sql_screen import PatientScreen

pytestmark = pytest.mark.timeout(300)

JOB = r'''
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\n")
time.sleep(3600)
'''
SEED = "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60;"


class Driver:
    """A folder for LD_LIBRARY_PATH, and the script of the library in it."""

    def __init__(self, tmp_path, build_dir):
        self.script = tmp_path / "nvml.txt"
        self.calls = tmp_path / "nvml.log"
        folder = tmp_path / "driver"
        folder.mkdir()
        (folder / "libnvidia-ml.so.1").symlink_to(os.path.join(os.path.abspath(build_dir), "tests", "targets", "fake_nvml.so"))
        self.env = {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(self.script)}
        self.write("")

    def write(self, text):
        new = self.script.with_suffix(".new")
        new.write_text(f"log {self.calls}\n{text}", encoding="utf-8")
        new.rename(self.script)


@pytest.fixture
def driver(tmp_path, build_dir):
    return Driver(tmp_path, build_dir)


def query(probing, driver, pid, sql, **options):
    done = probing(str(pid), "query", "--format", "json", sql, env=driver.env, timeout=60, **options).ok()
    return done.json()["rows"], done.stderr


def test_without_a_driver(target, probing, data_dir):  # noqa: ARG001
    """No rows, and one line with the reason."""
    job = target(JOB)
    done = probing(str(job.pid), "query", "--format", "json", SEED, env={"LD_LIBRARY_PATH": "/nonexistent"}).ok()
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a driver of NVIDIA")
    assert done.json()["rows"] == [{"avg(gpu_util)": None}]
    assert done.stderr == "probing: gpu_metrics: no NVIDIA driver: libnvidia-ml.so.1 is not installed; no AMD GPU\n"


def test_values(target, probing, driver, data_dir):  # noqa: ARG001
    """What the driver has is in the row; a list of processes was not asked for, nor anything else that blocks others."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": "1"})
    driver.write("devices 4\nutil 1 93\nused 1 61234\ntotal 1 81559\npower 1 652500\nlimit 1 700000\ntemperature 1 61\nclock 1 1755\n"
                 "reasons 1 0x24\necc 1 3\nname * NVIDIA H100\nxid 1 48\n")
    rows, said = query(probing, driver, job.pid, "SELECT * FROM gpu_metrics")
    assert said == ""
    [row] = rows
    assert row["pid"] == job.pid and row["timestamp"]
    assert {key: row[key] for key in list(row)[4:]} == {
        "device": 1, "uuid": "GPU-00000001-0000-0000-0000-000000000000", "name": "NVIDIA H100", "slice": None, "gpu_util": 93.0,
        "sm_active": None, "tensor_active": None, "dram_active": None, "mem_used_mb": 61234.0, "mem_total_mb": 81559.0, "power_w": 652.5, "power_limit_w": 700.0, "temperature_c": 61.0,
        "sm_clock_mhz": 1755.0, "throttle": "power,heat", "ecc": 3, "xid": 48, "state": "ok", "silent_s": None, "assumed": 0}
    called = {line.split()[1] for line in driver.calls.read_text(encoding="utf-8").splitlines()}
    assert "UtilizationRates" in called and "RunningProcesses" not in "".join(called)
    rows, _ = query(probing, driver, job.pid, SEED)
    assert rows == [{"avg(gpu_util)": 93.0}]


def test_several_ranks(target, probing, driver, data_dir):  # noqa: ARG001
    """Each rank has the device of its place, which is assumed."""
    jobs = [target(JOB, env={"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}) for rank in range(2)]
    driver.write("devices 2\nutil 0 10\nutil 1 90\n")
    done = probing("-t", str(jobs[0].pid), "-t", str(jobs[1].pid), "query", "--format", "json",
                   "SELECT DISTINCT rank, device, gpu_util, assumed FROM gpu_metrics ORDER BY rank", env=driver.env, timeout=60).ok()
    assert done.json()["rows"] == [{"rank": 0, "device": 0, "gpu_util": 10.0, "assumed": 1},
                                   {"rank": 1, "device": 1, "gpu_util": 90.0, "assumed": 1}]


def test_a_device_that_does_not_answer(target, probing, driver, data_dir):  # noqa: ARG001
    """It is given up after three seconds; the others have their values, and nothing is left behind."""
    job = target(JOB)
    driver.write("devices 3\nhang 1 UtilizationRates\nutil * 7\n")
    rows, _ = query(probing, driver, job.pid, "SELECT device, gpu_util, state, silent_s FROM gpu_metrics ORDER BY device")
    silent = [row for row in rows if row["device"] == 1]
    assert [(row["gpu_util"], row["state"]) for row in silent] == [(None, "no answer")] and 3 <= silent[0]["silent_s"] < 30
    assert {row["device"]: row["gpu_util"] for row in rows if row["device"] != 1} == {0: 7.0, 2: 7.0}
    driver.write("hang - Init\n")
    rows, said = query(probing, driver, job.pid, SEED)
    assert rows == [{"avg(gpu_util)": None}]
    assert re.fullmatch(r"probing: gpu_metrics: the nvidia driver has not answered for \d+ s; no AMD GPU\n", said), said
    pids = {int(line.split()[0]) for line in driver.calls.read_text(encoding="utf-8").splitlines()}
    assert pids and not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_the_screen(target, probing_top, ptrace, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Header, Overview and the screen, as values change; a device that stops to answer."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    driver.write("devices 4\nutil 0 91\nutil 1 33\nused * 1024\ntotal * 4096\n")
    env = " ".join(f"{key}={value}" for key, value in driver.env.items())
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"{env} XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {job.pid}; echo status=$?")
        s.wait_for("GPU 62% 2.00 GiB")
        s.wait_for("0 GPU")
        wait_until(lambda: re.search(r"GPU 0 +91 % .*1.00 GiB of 4.00 GiB, 70 W, 40 C", s.text()), 60, "the Overview")
        s.type("0")
        s.wait_for("[0 GPU]")
        wait_until(lambda: re.search(r"^ *1 +33 +1.00 GiB", s.text(), re.M), 60, "the second device")
        driver.write("devices 4\nutil 0 91\nutil 1 100\nused * 1024\ntotal * 4096\nhang 0 *\n")
        wait_until(lambda: re.search(r"^ *0 .*no answer for \d+ s", s.text(), re.M), 60, "the first device to be given up")
        wait_until(lambda: re.search(r"^ *1 +100 ", s.text(), re.M), 60, "the second device to continue")
        s.type("q")
    finally:
        s.close()
    assert job.alive()


def test_the_screen_without_a_device(target, probing_top, ptrace, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Nothing of it is shown, and the key says why."""
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a driver of NVIDIA")
    job = target(JOB)
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {job.pid}; echo status=$?")
        s.wait_for("[1 Overview]")
        s.wait_for("GIL held")
        assert "GPU" not in s.text()
        s.type("0")
        s.wait_for("no NVIDIA driver: libnvidia-ml.so.1 is not installed")
        s.type("q")
    finally:
        s.close()


def record(probing, driver, job, path, seconds="8s"):
    return probing(str(job.pid), "record", "--no-inject", "-o", str(path), "--duration", seconds, env=driver.env, timeout=60).ok()


def recorded(probing, path, sql):
    done = probing("-t", str(path), "query", "--format", "json", sql, timeout=60).ok()
    return done.json()["rows"]


def test_a_recording_has_the_past(target, probing, probing_top, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Each reading once, with what the driver had at that time; a device that stopped to answer is still that. Screens show it as they show a job."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    utils = [10 * i for i in range(11)] + [95]
    driver.write(f"devices 4\nutil 0 {' '.join(map(str, utils))}\nutil 1 33\nused * 1024\ntotal * 4096\nxid 0 48\nhang 1 UtilizationRates\n")
    path = tmp_path / "run.db"
    record(probing, driver, job, path)
    job.end()
    rows = recorded(probing, path, "SELECT * FROM gpu_metrics ORDER BY timestamp")
    ours = [row for row in rows if row["device"] == 0]
    assert {row["device"] for row in rows} == {0, 1} and len(ours) >= 4
    assert len({row["timestamp"] for row in ours}) == len(ours)
    seen = [row["gpu_util"] for row in ours]
    assert seen == sorted(seen) and len(set(seen)) >= 4 and set(seen) <= set(utils)
    assert [row["xid"] for row in ours if row["xid"]].count(48) >= 1
    silent = [row for row in rows if row["device"] == 1]
    assert {(row["state"], row["gpu_util"]) for row in silent} == {("no answer", None)}
    assert [row["silent_s"] for row in silent] == sorted(row["silent_s"] for row in silent) and silent[-1]["silent_s"] >= 3
    done = probing("-t", str(path), "query", "SELECT * FROM gpu_processes", timeout=60)
    assert done.status == 1 and "no such table: gpu_processes: it is made in a running job" in done.stderr
    assert "RunningProcesses" not in driver.calls.read_text(encoding="utf-8")
    said = probing("-t", str(path), "verdict", "--json", timeout=60).json()["verdicts"]
    texts = [one["text"] for one in said if one["code"] == "GPU ERROR"]
    assert texts and all("GPU 1 does not answer" in text for text in texts), said
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {path}; echo status=$?")
        s.wait_for("0 GPU")
        wait_until(lambda: re.search(rf"GPU 0 +{seen[-1]:.0f} % .*1.00 GiB of 4.00 GiB", s.text()), 60, "the Overview")
        wait_until(lambda: re.search(r"GPU \d+%", s.text()), 60, "the header")
        s.type("0")
        s.wait_for("[0 GPU]")
        wait_until(lambda: re.search(rf"^ *0 +{seen[-1]:.0f} +1.00 GiB", s.text(), re.M), 60, "the first device")
        wait_until(lambda: re.search(r"^ *1 .*no answer for \d+ s", s.text(), re.M), 60, "the second device")
        s.type("b")
        s.wait_for("a recording does not have who else had memory on its GPUs")
        s.type("q")
    finally:
        s.close()


def test_what_of_a_device_is_at_work(target, probing, probing_top, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Shares between two samples of a device, from the second on; unknown of slices, where GPM is missing, refused or lies. A sample that hangs is
    given up as any call is."""
    job = target(JOB)
    shares = [5.5 * i for i in range(16)]
    driver.write(f"devices 5\nutil 0 97\nsm 0 {' '.join(map(str, shares))}\ntensor 0 40.25\ndram 0 101\nutil 1 55\nmig 2 1\nsm 2 31\n"
                 "sm 3 1e300\ntensor 3 -7\ndram 3 nan\nsm 4 9\nhang 4 GpmSampleGet\n")
    path = tmp_path / "run.db"
    record(probing, driver, job, path)
    job.end()
    rows = recorded(probing, path, "SELECT * FROM gpu_metrics ORDER BY timestamp")
    names = ("sm_active", "tensor_active", "dram_active")
    of = {key: [tuple(row[name] for name in names) for row in rows if (row["device"], row["slice"]) == key] for key in
          ((0, None), (1, None), (2, 0), (3, None))}
    first, *others = of[0, None]
    known = [row for row in others if row[0] is not None]  # a child that takes over begins anew
    assert first == (None, None, None) and len(known) >= 2, rows
    assert [row[0] for row in known] == sorted(row[0] for row in known) and {row[0] for row in known} <= set(shares)
    assert {row[1:] for row in known} == {(40.25, 100.0)}
    assert all(of.values()) and {row for key in ((1, None), (2, 0), (3, None)) for row in of[key]} == {(None, None, None)}
    assert [row["state"] for row in rows if row["device"] == 4][-1] == "no answer"
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {path}; echo status=$?")
        s.wait_for("0 GPU")
        s.type("0")
        s.wait_for("[0 GPU]")
        wait_until(lambda: re.search(rf"^ *0 +97 +{known[-1][0]:.0f} ", s.text(), re.M), 60, "the first device")
        assert re.search(r"UTIL% +SM%", s.text()) and re.search(r"^ *1 +55 +\? ", s.text(), re.M), s.text()
        assert f"SMs {known[-1][0]:.0f} %, tensor cores 40 %, memory traffic 100 %" in s.text(), s.text()
        s.type("q")
    finally:
        s.close()


IS_HOST = os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC  # of the first namespace: the driver's pids are those of this machine
OUTSIDE = "probing: gpu_processes: in a container, processes outside of it may be missing\n"
PROCESSES = "SELECT device, process_pid, process_rank, command, user, mem_used_mb, mem_share, own FROM gpu_processes ORDER BY device, mem_used_mb DESC"


def test_who_has_memory(target, probing, driver, wait_until, data_dir):  # noqa: ARG001
    """Each process on the target's devices, by a list that nobody asks for but this query; the driver is left alone where it does not answer."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": "0,1", "RANK": "5", "WORLD_SIZE": "8"})
    driver.write(f"devices 3\nused * 3000\ntotal * 4000\nprocess 0 Compute {job.pid} 1000\nprocess 0 Graphics {job.pid} 900\n"
                 f"process 0 Compute {os.getpid()} 500\nprocess 1 Compute 4111222 -\nprocess 2 Compute {job.pid} 7\n")
    rows, said = query(probing, driver, job.pid, PROCESSES)
    assert said == (OUTSIDE if not IS_HOST else "")
    user = pwd.getpwuid(os.geteuid()).pw_name
    names = {pid: Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() for pid in (job.pid, os.getpid())}
    seen = [(r["device"], r["process_pid"], r["mem_used_mb"], r["mem_share"]) for r in rows]
    assert seen == [(0, job.pid, 1000.0, 25.0), (0, os.getpid(), 500.0, 12.5), (1, 4111222, None, None)]
    if IS_HOST:
        assert [(r["command"], r["process_rank"], r["own"]) for r in rows] == [(names[job.pid], 5, 1), (names[os.getpid()], None, 0), (None, None, 0)]
        assert [r["user"] for r in rows] == [user, user, None]
    else:  # these numbers may be those of processes of the host
        assert all(r["command"] is r["user"] is r["own"] is r["process_rank"] is None for r in rows)
    driver.calls.write_text("", encoding="utf-8")
    query(probing, driver, job.pid, SEED)
    assert "RunningProcesses" not in driver.calls.read_text(encoding="utf-8")
    driver.write("devices 3\nerror * ComputeRunningProcesses 3\n")
    rows, said = query(probing, driver, job.pid, PROCESSES)
    assert rows == [] and said.startswith("probing: gpu_processes: the NVIDIA driver does not list a GPU's processes (error 3)")
    driver.write("devices 3\nhang 1 ComputeRunningProcesses\n")
    rows, said = query(probing, driver, job.pid, PROCESSES)
    assert (rows, said) == ([], "probing: gpu_processes: the driver has not answered for 3 s\n")
    pids = {int(line.split()[0]) for line in driver.calls.read_text(encoding="utf-8").splitlines()}
    wait_until(lambda: pids and not any(os.path.exists(f"/proc/{pid}") for pid in pids), 60, "the processes that asked to end")


def test_who_has_memory_on_the_screen(target, probing_top, ptrace, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """A key asks for the list, another one again; nothing else does."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    script = f"devices 3\nused * 1500\ntotal * 4096\nprocess 0 Compute {job.pid} 1024\nprocess 1 Compute 4111222 256\n"
    driver.write(script)
    env = " ".join(f"{key}={value}" for key, value in driver.env.items())
    s = PatientScreen(tmux, tmp_path, 100, 30, wait_until)
    try:
        s.shell(f"{env} XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {job.pid}; echo status=$?")
        s.wait_for("GPU 0%")
        s.type("0")
        s.wait_for("[0 GPU]")
        wait_until(lambda: re.search(r"^ *0 +0 +1.46 GiB", s.text(), re.M), 60, "the devices")
        assert "RunningProcesses" not in driver.calls.read_text(encoding="utf-8")
        s.type("b")
        s.wait_for("2 processes have 1.25 GiB   in use now 2.93 GiB of 8.00 GiB")
        mine = rf"^ *{job.pid} +0 +- +1.00 GiB +25.0 " + (r"\S+ +\S+, the target" if IS_HOST else r"\? +\?")
        assert re.search(mine, s.text(), re.M) and re.search(r"^ *4111222 +1 +- +256 MiB +6.2 +\? +\?", s.text(), re.M), s.text()
        def asked():
            return driver.calls.read_text(encoding="utf-8").count(" ComputeRunningProcesses")
        assert asked() == 2  # the devices that the target uses, once
        driver.write(script.replace(" 256", " 512"))
        s.type("r")
        s.wait_for("2 processes have 1.50 GiB")
        assert asked() == 4
        s.type("b")
        s.wait_for("UTIL%")
        s.type("q")
    finally:
        s.close()


def test_a_recording_without_a_gpu(target, probing, probing_top, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """It has no rows, no verdict speaks of a GPU, and nothing of it is shown."""
    job = target(JOB, env={"CUDA_VISIBLE_DEVICES": ""})
    driver.write("devices 2\n")
    path = tmp_path / "run.db"
    record(probing, driver, job, path, "1s")
    job.end()
    assert recorded(probing, path, "SELECT count(*) AS n FROM gpu_metrics") == [{"n": 0}]
    assert "GPU" not in probing("-t", str(path), "verdict", timeout=60).stdout
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {path}; echo status=$?")
        s.wait_for("[1 Overview]")
        s.wait_for("last seen")
        assert "GPU" not in s.text()
        s.type("q")
    finally:
        s.close()


def test_a_recording_that_lies(target, probing, probing_top, driver, tmux, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Devices that no machine has, values out of all bounds, texts that are commands of a terminal: cut, unknown, and drawn as text."""
    job = target(JOB)
    driver.write("devices 1\n")
    path = tmp_path / "run.db"
    record(probing, driver, job, path, "3s")
    job.end()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(gpu_metrics)")]
        [first] = db.execute("SELECT * FROM gpu_metrics LIMIT 1").fetchall()
        for i in range(300):
            row = dict(zip(names, first), device=(i - 5) * 1000003 ** (i % 3), slice=-7, gpu_util=(-1e300, 1e300, "much")[i % 3], mem_used_mb=-1,
                       sm_active=(1e300, "most", -1e300)[i % 3], tensor_active=float("inf"), dram_active=b"\0",
                       mem_total_mb=(0, 1e308)[i % 2], power_w=float("inf"), temperature_c=b"\0\1", sm_clock_mhz=-1e18,
                       uuid="\33]0;owned\7" + "u" * 5000, name="\33[2J\33[31mevil" + "\u202e" * 50, throttle="heat\r\n" * 400,
                       state=("ok", "\33[5mlost", "lost")[i % 3], ecc=-1 << 62, xid=1 << 62, silent_s=1e300, assumed=77)
            db.execute(f"INSERT INTO gpu_metrics VALUES ({','.join('?' * len(names))})", [row[name] for name in names])
    assert recorded(probing, path, "SELECT count(*) AS n FROM gpu_metrics")[0]["n"] >= 301
    done = probing("-t", str(path), "verdict", timeout=60)
    assert done.status in (0, 1) and "\33" not in done.stdout + done.stderr
    s = PatientScreen(tmux, tmp_path, 140, 40, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} {path}; echo status=$?")
        s.wait_for("0 GPU")
        s.type("0")
        s.wait_for("[0 GPU]")
        s.wait_for("evil")
        assert "\33" not in s.text() and "1e+300" not in s.text()
        s.type("q")
        s.wait_for("status=0")
    finally:
        s.close()


# What torch has of CUDA, as far as it is asked: functions of C, of which Python has some that give the same.
TORCH = r'''
import os, sys, time, types
torch, c, cuda = [sys.modules.setdefault(name, types.ModuleType(name)) for name in ("torch", "torch._C", "torch.cuda")]
MB = 1048576
def stats(allocated, reserved, peak, inactive, retries):
    def pools(now, most=0):
        return {"all": {"current": now, "peak": most, "allocated": 5, "freed": 1}, "small_pool": {}, "large_pool": {}}
    return {"allocation": pools(7), "allocated_bytes": pools(allocated * MB, peak * MB), "reserved_bytes": pools(reserved * MB),
            "inactive_split_bytes": pools(inactive * MB), "num_alloc_retries": retries, "num_ooms": 0}
devices = {0: stats(1000, 1500, 1200, 300, 2), 1: {"allocation": None}, 2: [], 3: stats(10, 20, 30, 0, 0)}
c._cuda_memoryStats = devices.__getitem__
c._cuda_getDeviceCount = (15).bit_length  # 4
cuda._initialized = False
os.write(int(os.environ["READY_FD"]), b"ready\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
cuda._initialized = True
while True:
    time.sleep(0.1)
    if os.path.exists(sys.argv[2]):
        devices.pop(3, None)
'''


def test_the_allocator_of_torch(target, probing, ptrace, tmp_path, wait_until, data_dir):  # noqa: ARG001
    """Counters of each device that is used; CUDA is not started for them. Their sums are in python.memory meanwhile."""
    go, part = tmp_path / "go", tmp_path / "part"
    job = target(TORCH, go, part)
    probing(str(job.pid), "inject").ok()

    def asked(sql):
        done = probing(str(job.pid), "query", "--format", "json", sql, timeout=60).ok()
        return done.json()["rows"], done.stderr
    rows, said = asked("SELECT * FROM python.gpu_memory")
    assert rows == [] and said == "probing: python.gpu_memory: torch has not used CUDA yet\n"
    go.touch()
    rows = wait_until(lambda: asked("SELECT * FROM python.gpu_memory")[0], 60, "CUDA to be used")
    assert [list(row.values())[3:] for row in rows] == [[0, None, 1000.0, 1500.0, 1200.0, 300.0, 2, 0, 5], [3, None, 10.0, 20.0, 30.0, 0.0, 0, 0, 5]]
    [row] = wait_until(lambda: asked("SELECT gpu_allocated_mb, gpu_reserved_mb FROM python.memory WHERE gpu_allocated_mb > 0 LIMIT 1")[0],
                       60, "a row of python.memory")
    assert row == {"gpu_allocated_mb": 1010.0, "gpu_reserved_mb": 1520.0}
    part.touch()  # the sum of some devices is not that of all
    wait_until(lambda: "device 3: KeyError" in asked("SELECT * FROM python.gpu_memory")[1], 60, "one device to fail")
    [row] = asked("SELECT count(*) AS n FROM python.memory")[0]
    wait_until(lambda: asked("SELECT count(*) AS n FROM python.memory")[0][0]["n"] > row["n"] + 1, 60, "rows since then")
    assert asked("SELECT DISTINCT gpu_allocated_mb FROM python.memory WHERE gpu_allocated_mb IS NOT NULL")[0] == [{"gpu_allocated_mb": 1010.0}]
    assert job.alive()


def test_ranks(target, probing, driver, wait_until, data_dir):  # noqa: ARG001
    """cluster.ranks has the device of each rank; one that does not answer is unknown, and keeps nobody."""
    env = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": uuid.uuid4().hex}
    jobs = [target(JOB, name="ranked.py", env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(2)]
    driver.write("devices 2\nutil 0 10\nutil 1 90\nused 0 100\nused 1 2000\npower 0 70500\npower 1 300000\n")

    def asked():
        return probing("cluster", "query", str(jobs[0].pid), "--format", "json", "SELECT r.rank, gpu_util, gpu_mem_mb, power_w, device, gpus FROM cluster.ranks r JOIN cluster.nodes n ON n.host = r.host ORDER BY 1",
                       env=driver.env, timeout=60).ok().json()["rows"]
    wait_until(lambda: asked() == [{"rank": 0, "gpu_util": 10.0, "gpu_mem_mb": 100.0, "power_w": 70.5, "device": "0", "gpus": 2},
                                {"rank": 1, "gpu_util": 90.0, "gpu_mem_mb": 2000.0, "power_w": 300.0, "device": "1", "gpus": 2}],
               60, "the devices of both ranks")
    driver.write("hang - Init\n")
    assert [row["gpu_util"] for row in asked()] == [None, None]


# A training that calls what a driver waits in, as torch does for .item() and .cpu(): the lines are those that have to be named.
# It logs when each step ended, how long it took and how long it waited in either.
SYNC_JOB = r'''
import ctypes, os, sys, time, torch
cuda = ctypes.CDLL(sys.argv[1])
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
waits = [getattr(cuda, name) for name in sys.argv[3:5]]
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
def read_loss():
    waits[0](30)  # READ LOSS
def count_hits():
    waits[1](14)  # COUNT HITS
def compute():
    cuda.cuLaunchKernel(6)  # COMPUTE
first = True
last = time.time()
while True:
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    compute()
    began = time.time()
    read_loss()
    between = time.time()
    count_hits()
    ended = time.time()
    os.write(log, f"{ended} {ended - last} {between - began} {ended - between}\n".encode())
    last = ended
    if first:
        os.write(int(os.environ["READY_FD"]), b"ready\n")
        first = False
'''


def line_of(mark):
    return next(i for i, line in enumerate(SYNC_JOB.splitlines(), 1) if line.endswith(f"# {mark}"))


@pytest.fixture
def cuda(tmp_path, build_dir):
    folder = tmp_path / "cuda"
    folder.mkdir()
    library = folder / "libcuda.so.1"
    library.write_bytes((Path(build_dir) / "tests" / "targets" / "fake_cuda.so").read_bytes())
    return library


def verdicts_of(probing, driver, job, *options):
    return probing(str(job.pid), "verdict", "--json", *options, env=driver.env, timeout=120).json()


def waited(log, since):
    """Shares of the time that the job waited in read_loss and in count_hits since then, and the ms of a step, as it logged them."""
    steps = [tuple(map(float, line.split())) for line in Path(log).read_text().splitlines()]
    took, loss, hits = map(sum, zip(*(rest for ended, *rest in steps if ended >= since)))
    return 100 * loss / took, 100 * hits / took, 1e3 * took / sum(ended >= since for ended, *_ in steps)


@pytest.mark.long
def test_lines_that_wait_for_the_gpu(target, probing, ptrace, driver, cuda, torch_python, wait_until, tmp_path, data_dir):  # noqa: ARG001
    """Each with its share of a step, however the driver waits; the one that only launches is not named. What is named is where the time goes."""
    driver.write("devices 1\nutil 0 50\n")
    for how in ("spin", "sleep"):
        log = tmp_path / f"{how}.log"
        job = target(SYNC_JOB, cuda, log, "cuStreamSynchronize", "cuMemcpyDtoHAsync_v2", python=torch_python, name=f"sync_{how}.py",
                     env={"OMP_NUM_THREADS": "1", "FAKE_CUDA": how})
        probing(str(job.pid), "inject").ok()
        last, since = [], []

        def said():
            since.append(time.time())
            last.append({one["code"]: one["text"] for one in verdicts_of(probing, driver, job, "--wait", "10s")["verdicts"]})
            assert "LAUNCH-BOUND" not in last[-1], last
            return last[-1].get("SYNC")

        loss = rf"synchronize, called by read_loss (sync_{how}.py:{line_of('READ LOSS')})"
        hits = rf"a copy from the GPU, called by count_hits (sync_{how}.py:{line_of('COUNT HITS')})"

        def look():
            """By how many percent the share that is said is off, and the length of a step; whether the longer wait is named first."""
            text = wait_until(said, 90, f"SYNC, with a driver that waits by {how}")
            found = re.fullmatch(r"(\d+) % of the time the training waits for the GPU, ([\d.]+) ms of a step of ([\d.]+) ms, in (.*), and in (.*), "
                                 r"while GPU 0 is busy 50 % of the time", text)
            assert found, text
            *lines, true_ms = waited(log, since[-1])  # 30 and 14 ms of some 52, on a quiet machine
            assert set(found.group(4, 5)) == {loss, hits}, (text, lines)
            share, lost_ms, step_ms = map(float, found.group(1, 2, 3))
            assert abs(lost_ms / step_ms - share / 100) <= 0.02, (text, lines)
            return share - sum(lines), 100 * step_ms / true_ms - 100, found[4] == loss or lines[0] < lines[1] + 28

        looks = [look()]
        # ten samples a second for ten seconds, at most; on a busy machine there are fewer, and steps are not all as long
        if max(map(abs, looks[0][:2])) > 20 or not looks[0][2]:
            looks += [look() for _ in range(3)]
        share, length, first = map(statistics.mean, zip(*looks))
        assert abs(share) <= 20 and abs(length) <= 20 and first >= 0.75, (looks, last)
        job.end()


@pytest.mark.long
def test_launches_are_not_waits(target, probing, ptrace, driver, cuda, torch_python, data_dir):  # noqa: ARG001
    """A job whose driver waits for room in its queue, and one whose GPU is busy, are not accused of waiting for it."""
    driver.write("devices 1\nutil 0 70\n")
    job = target(SYNC_JOB, cuda, os.devnull, "cuLaunchKernel", "cuLaunchKernel", python=torch_python,
                 env={"OMP_NUM_THREADS": "1", "FAKE_CUDA": "spin"})
    probing(str(job.pid), "inject").ok()
    answer = verdicts_of(probing, driver, job, "--why", "--wait", "16s")
    assert "SYNC" not in {one["code"] for one in answer["verdicts"]}, answer
    looked = [check for check in answer["checks"] if check["code"] == "SYNC"]
    assert len(looked) == 2 and all(check["result"] == "fine" for check in looked), looked
    job.end()
    driver.write("devices 1\nutil 0 97\n")
    job = target(SYNC_JOB, cuda, os.devnull, "cuStreamSynchronize", "cuStreamSynchronize", python=torch_python,
                 env={"OMP_NUM_THREADS": "1", "FAKE_CUDA": "spin"})
    probing(str(job.pid), "inject").ok()
    answer = verdicts_of(probing, driver, job, "--why", "--wait", "12s")
    assert "SYNC" not in {one["code"] for one in answer["verdicts"]}, answer


# A training that torch says has memory of a GPU: what the driver says of it is the script's.
TRAINS = r'''
import os, sys, time, types, torch
MB = 1048576
def pools(now, most=0):
    return {"all": {"current": now, "peak": most or now, "allocated": 5, "freed": 1}}
def pretend():
    """After what torch imports where it has CUDA."""
    torch._C._cuda_memoryStats = {0: {"allocation": pools(7), "allocated_bytes": pools(60000 * MB, 61000 * MB), "reserved_bytes": pools(76000 * MB),
                                      "inactive_split_bytes": pools(15000 * MB), "num_alloc_retries": 3, "num_ooms": 0}}.__getitem__
    torch._C._cuda_getDeviceCount = (1).bit_length  # 1
    torch.cuda._initialized = True
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
def prepare(seconds):
    if sys.argv[1] == "spin":
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
    else:
        time.sleep(seconds)  # PREPARE
first = True
while True:
    loss = model(torch.ones(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    prepare(0.03)
    if first:
        pretend()
        os.write(int(os.environ["READY_FD"]), b"ready\n")
        first = False
'''
GPU_CODES = {"GPU IDLE", "LAUNCH-BOUND", "SYNC", "GPU MEMORY", "GPU THROTTLED", "GPU ERROR"}
DEVICE_STORIES = {
    "nothing": ("util 0 95\nreasons 0 0x4\npower 0 690000\n", {}),
    "memory": ("util 0 95\nused 0 78000\ntotal 0 80000\n",
               {"GPU MEMORY": r"GPU 0 is full \(76.2 GiB of 78.1 GiB\): torch had to give back memory 3 times; 14.6 GiB are pieces between others"}),
    "heat": ("util 0 95\nreasons 0 0x40\ntemperature 0 93\nclock 0 900\n",
             {"GPU THROTTLED": r"GPU 0 is slowed by heat or by its board 100 % of the time \(93 C, 900 MHz, last .* s\)"}),
    "xid": ("util 0 95\nxid 0 94\n", {"GPU ERROR": r"GPU 0 reported Xid 94 .* ago: a memory error that ended a process"}),
    "ecc": ("util 0 95\necc 0 7 7 7 7 7 7 7 7 7 9\n",
            {"GPU ERROR": r"GPU 0 had 2 memory errors that could not be corrected while it was watched \(9 since its driver was loaded\)"}),
    "lost": ("util 0 95\nerror 0 MemoryInfo* 15\n", {"GPU ERROR": r"GPU 0 \(Fake H100\) is gone for its driver: lost"}),
    "silent": ("util 0 95\nhang 0 UtilizationRates\n", {"GPU ERROR": r"GPU 0 does not answer, for .* s"}),
}


def verdicts_together(probing, drivers, job, seconds):
    """The verdicts on GPUs in front of each driver, read at one time: {name: {code: text}}."""
    running = {name: subprocess.Popen([probing.path, str(job.pid), "verdict", "--json", "--wait", seconds], stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, **driver.env)) for name, driver in drivers.items()}
    return {name: {one["code"]: one["text"] for one in json.loads(process.communicate(timeout=120)[0])["verdicts"] if one["code"] in GPU_CODES}
            for name, process in running.items()}


@pytest.mark.long
def test_what_devices_have(target, probing, ptrace, tmp_path, build_dir, torch_python, data_dir):  # noqa: ARG001
    """Full, hot, broken, lost, silent: each by its words, and nothing of a device that is only at its power limit."""
    job = target(TRAINS, "sleep", python=torch_python, env={"OMP_NUM_THREADS": "1"})
    probing(str(job.pid), "inject").ok()
    drivers = {}
    for name, (script, _) in DEVICE_STORIES.items():
        (tmp_path / name).mkdir()
        drivers[name] = Driver(tmp_path / name, build_dir)
        drivers[name].write(f"devices 1\n{script}")
    for name, said in verdicts_together(probing, drivers, job, "16s").items():
        expected = DEVICE_STORIES[name][1]
        assert set(said) == set(expected), (name, said)
        for code, text in expected.items():
            assert re.fullmatch(text, said[code]), (name, said)


@pytest.mark.long
@pytest.mark.parametrize("how", ["sleep", "spin"])
def test_a_device_that_waits(target, probing, ptrace, driver, torch_python, data_dir, how):  # noqa: ARG001
    """What the job does meanwhile: it sleeps, or cannot launch fast enough."""
    job = target(TRAINS, how, python=torch_python, name="waits.py", env={"OMP_NUM_THREADS": "1"})
    probing(str(job.pid), "inject").ok()
    driver.write("devices 1\nutil 0 20\n")
    said = verdicts_together(probing, {"it": driver}, job, "20s")["it"]
    if how == "sleep":
        line = next(i for i, text in enumerate(TRAINS.splitlines(), 1) if text.endswith("# PREPARE"))
        assert list(said) == ["GPU IDLE"] and re.match(r"GPU 0 is busy 20 % of the time \(last .* s\)", said["GPU IDLE"]), said
        assert re.search(rf"; the job is in prepare \(waits.py:{line}\) \d+ % of the time$", said["GPU IDLE"]), said
    else:
        # on a machine with other work its thread does not always run
        assert list(said) in (["LAUNCH-BOUND"], ["GPU IDLE"]) and "in prepare (waits.py:" in "".join(said.values()), said
