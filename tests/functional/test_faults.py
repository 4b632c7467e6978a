# SPDX-License-Identifier: Apache-2.0
"""The jobs of tests/faults: each has one fault, or none, and says at its top what must be said of it.

    verdict: STUCK              the code
    words: train \\({here}\\)     a pattern in its text; {file} is the job's file, {here} also the line that is marked "# here"
    within: 10                  seconds, since the job's own log says that the fault is there, or since the agent came, if that was later
    attach: before after        the fault
    quick: yes                  a part of `make test` (or long: marked so); the others are of `make soak ONLY=faults`
    pending: why                not built yet
    needs: compiler             see NEEDS
    traced: yes                 its allocations are, by its environment
    fine: MOVING SLOW           instead of a verdict: only these codes, and notes
"""

import json
import os
import re
import time

import pytest
from conftest import ROOT, inject_in_time, wait_until
from test_tui_tmux import Screen

FOLDER = os.path.join(ROOT, "tests", "faults")
ALL = os.environ.get("PROBING_FAULTS") == "all"
SLOWER = 1 if ALL else 3  # tests beside this one take the machine
WATCHED_S = float(os.environ.get("PROBING_FAULTS_SECONDS", "8"))  # each of the fine jobs
LOG = os.environ.get("PROBING_FAULTS_LOG")  # of accusations of these
LOOK_S = 3 if WATCHED_S > 60 else 0.5  # between two looks at them
ACCUSING = (r"\b(SLOW|STUCK|HUNG|DEADLOCK|NAN|INPUT-BOUND|GC PAUSES|GIL CONTENTION|CHECKPOINT|RECOMPILING|LOGGING|OWN CODE|OVERSUBSCRIBED|"
            r"THROTTLED|STEAL|SWAPPING|DISK|MEMORY CREEP)\b")  # on a screen
AFTER_S = 2  # that a fault is there before the agent comes
GROUPS = "/sys/fs/cgroup/cpu"


def cpu_group(name):
    """A control group of its own, with files for the job; or None."""
    for folder, file, limit in ((GROUPS, "cpu.cfs_quota_us", "20000"), ("/sys/fs/cgroup", "cpu.max", "20000 100000")):
        path = os.path.join(folder, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, file)):
            return path, os.path.join(path, file), limit
        os.rmdir(path)
    return None


NEEDS = {
    "few-cpus": lambda: len(os.sched_getaffinity(0)) <= 8,
    "two-cpus": lambda: len(os.sched_getaffinity(0)) <= 2,
    "compiler": lambda: True,
    "disk": lambda: os.access("/var/tmp", os.W_OK),
    "cpu-cgroup": lambda: os.geteuid() == 0,
}


def described(name):
    """{"verdict": ...}: what the job says at its top."""
    path = os.path.join(FOLDER, name)
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    said = dict(re.findall(r"^([a-z]+): (.+)$", "\n".join(lines).split('"""')[1], re.M))
    here = next((str(n + 1) for n, line in enumerate(lines) if line.endswith("# here")), "?")
    said["words"] = said.get("words", ".").replace("{here}", re.escape(f"{name}:{here}")).replace("{file}", re.escape(name))
    said["torch"] = "Loop" in "\n".join(lines) or "import torch" in "\n".join(lines)
    said["trains"] = "Loop(" in "\n".join(lines)
    return said


JOBS = {name[:-3]: described(name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".py") and name != "fault_job.py"}


def cases(fine):
    for name, said in JOBS.items():
        if ("fine" in said) != fine or not (ALL or fine or "quick" in said):
            continue
        for when in said["attach"].split() if not fine else [""]:
            marks = [pytest.mark.xfail(reason=said["pending"], strict=True)] if "pending" in said else []
            marks += [pytest.mark.long] if fine or when == "before" or said.get("quick") == "long" else []
            yield pytest.param(name, *([when] if when else []), id=f"{name}-{when}" if when else name, marks=marks)


class Fault:
    """A running job of these."""

    def __init__(self, run, log, go):
        self.run, self.pid, self.log, self.go = run, run.pid, log, go

    def events(self):
        try:
            with open(self.log, encoding="ascii") as file:
                return {line["event"]: line["at"] for line in map(json.loads, file.read().split("\n")[:-1])}
        except FileNotFoundError:
            return {}

    def wait_fault(self):
        wait_until(lambda: "fault" in self.events() or not self.run.alive(), 120, "the fault", interval=0.05)
        assert self.run.alive(), self.run.output()
        return self.events()["fault"]


@pytest.fixture
def fault(target, torch_python, torch_fork, tmp_path, data_dir):  # noqa: ARG001
    groups = []

    def make(name, when):
        said = JOBS[name]
        if not NEEDS.get(said.get("needs"), lambda: True)():
            pytest.skip(f"needs {said['needs']}: not here")
        log, go = str(tmp_path / "log.jsonl"), str(tmp_path / "go")
        env = {"FAULT_LOG": log, "OMP_NUM_THREADS": "1", "PROBING_MAX_MEMORY": "16MB", "PYTHONPATH": FOLDER}
        if when == "before":
            env["FAULT_GO"] = go
        if "traced" in said:
            env["PROBING_MEMORY_TRACE"] = "on"
        if said.get("needs") == "cpu-cgroup":
            group = cpu_group(f"probing-fault-{os.getpid()}")
            if not group:
                pytest.skip("needs cpu-cgroup: none can be made")
            groups.append(group[0])
            env.update(FAULT_QUOTA_FILE=group[1], FAULT_QUOTA=group[2])
        run = target(os.path.join(FOLDER, f"{name}.py"), python=torch_python, fork=torch_fork if said["torch"] else None, env=env, timeout=180)
        for path in groups:
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(run.pid))
        return Fault(run, log, go)
    yield make
    for path in groups:
        with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
            for pid in file.read().split():
                os.kill(int(pid), 9)
        wait_until(lambda: not open(os.path.join(path, "cgroup.procs"), encoding="ascii").read(), 30, "the group to be empty")
        os.rmdir(path)


def judge(probing, job):
    return probing(str(job.pid), "verdict", "--json", timeout=60).ok().json()["verdicts"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name,when", cases(fine=False))
def test_fault(name, when, fault, probing):
    """The verdict with its line comes in time, and no other accusation beside it that the job does not deserve."""
    said, job = JOBS[name], fault(name, when)
    if when == "before":
        inject_in_time(probing, job.pid)
        if said["trains"]:
            wait_until(lambda: probing(str(job.pid), "status", "--json").ok().json()["hooks"], 60, "torch to report steps", interval=0.1)
        with open(job.go, "w", encoding="ascii"):
            pass
        since = job.wait_fault()
    else:
        time.sleep(max(0, job.wait_fault() + AFTER_S - time.time()))
        since = time.time()
        inject_in_time(probing, job.pid)
    limit = float(said["within"]) * SLOWER
    while True:
        verdicts = judge(probing, job)
        now = time.time()
        found = [v for v in verdicts if v["code"] == said["verdict"] and re.search(said["words"], v["text"])]
        if found or now - since > limit:
            break
        time.sleep(0.3)
    print(f"{name} {when}: after {now - since:.1f} s: {[(v['code'], v['text']) for v in verdicts]}")
    assert found, f"not {said['verdict']} with {said['words']!r} in {limit:g} s, but {[(v['code'], v['text']) for v in verdicts]}"
    assert found[0]["advice"] and found[0]["measured"] >= found[0]["threshold"]


TOO_EARLY = r"^MOVING .* last [12] steps?\); too early to say what steps wait for: ask again in \d+ s$"


@pytest.mark.timeout(300)
def test_the_first_answer(fault, probing):
    """Asked at once, of a job with long steps: one that knows one or two says that this is too early, and when to ask. Left the time, it waits for
    a third, and names the loader's line."""
    job = fault("slow_images", "after")
    job.wait_fault()
    inject_in_time(probing, job.pid)

    def moves():
        said = probing(str(job.pid), "verdict", "--wait", "0").ok().stdout
        assert "INPUT-BOUND" not in said or not re.search(TOO_EARLY, said, re.M), said
        return said if "MOVING" in said else None
    first = wait_until(moves, 60, "a step to be seen", interval=0.2)
    assert re.search(TOO_EARLY, first, re.M), first
    said = probing(str(job.pid), "verdict").ok().stdout
    assert re.search(JOBS["slow_images"]["words"].replace(r"last \d+", "last [3-9]"), " ".join(said.split())), said
    assert "too early" not in said, said


@pytest.fixture
def viewer(tmux, tmp_path, wait_until, probing_top):
    """The Overview of somebody who looks all the while, at whose top the verdicts are."""
    opened = []

    def start(pid):
        opened.append(Screen(tmux, tmp_path, 200, 50, wait_until))
        opened[0].shell(f"{probing_top.path} {pid}")
        opened[0].wait_for("CONNECTED", 60)
        opened[0].keys("1")
        return opened[0]
    yield start
    for screen in opened:
        screen.close()


def note(name, by, wrong):
    """Each accusation, in the file that a long run keeps of them."""
    print(name, by, wrong)
    if LOG:
        with open(LOG, "a", encoding="ascii") as log:
            log.write(json.dumps({"job": name, "at": round(time.time(), 1), "by": by, "wrong": wrong}) + "\n")


@pytest.mark.timeout(900 + int(WATCHED_S))
@pytest.mark.parametrize("name", cases(fine=True))
def test_fine(name, fault, probing, viewer):
    """Nothing is said against it, however long one looks: to one who looks all the while, and to others who ask for the first time."""
    said, job = JOBS[name], fault(name, "after")
    allowed = set(said["fine"].split())
    inject_in_time(probing, job.pid)
    screen = viewer(job.pid)
    until, codes, wrong = time.time() + WATCHED_S, set(), []
    while time.time() < until or not codes:
        verdicts = judge(probing, job)
        accused = [(v["code"], v["text"]) for v in verdicts if v["level"] in ("warning", "bad") and v["code"] not in allowed]
        text = screen.text()
        seen = sorted(set(re.findall(ACCUSING, text)) - allowed)
        if accused:
            wrong.append(accused)
            note(name, "verdict", accused)
        if seen:
            wrong.append(seen)
            note(name, "viewer", [line.strip() for line in text.split("\n") if re.search(ACCUSING, line)])
        codes |= {v["code"] for v in verdicts}
        assert job.run.alive(), job.run.output()
        time.sleep(LOOK_S)
    print(f"{name}: {codes}")
    assert not wrong, wrong
    assert codes & allowed, codes


def test_jobs_say_what_they_are():
    """At least thirty with a fault and ten without, and what they say can be read."""
    faults = [said for said in JOBS.values() if "fine" not in said]
    assert len(faults) >= 30 and len(JOBS) - len(faults) >= 10
    for name, said in JOBS.items():
        if "fine" in said:
            continue
        assert {"verdict", "words", "within", "attach"} <= set(said), name
        assert set(said["attach"].split()) <= {"before", "after"} and float(said["within"]) <= 20, name
        assert "?" not in re.findall(r":(.)", said["words"]), name
        assert said.get("needs") in (None, *NEEDS), name
