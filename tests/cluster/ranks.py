# SPDX-License-Identifier: Apache-2.0
"""A job of tests/cluster/training.py with one fault, and its own log as truth.

    job = Job(python, folder, "stop", ranks=8, bad=3)            by torchrun
    job = Job(..., fork=TorchFork(python))                        each rank forked by a process that has imported torch: at once
    job.wait("ready"); job.begin(); ...; job.end_fault(); job.close()
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
import uuid

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
SCRIPT = os.path.join(FOLDER, "training.py")

# What must be found: codes that are right, and codes that it may have; `ends`: the fault can be taken back, and the job goes on.
FAULTS = {
    "loader_queue": {"codes": ["HUNG"], "cause": ["WAIT", "LOADER"], "ends": True},
    "backward": {"codes": ["HUNG"], "cause": ["WAIT", "LOADER"], "ends": True},
    "loader_fifo": {"codes": ["HUNG"], "cause": ["WAIT", "LOADER"], "ends": True},
    "skip": {"codes": ["DEADLOCK", "HUNG"], "cause": ["ORDER"]},
    "other_op": {"codes": ["MISMATCH", "DEADLOCK"], "cause": ["OPERATION"]},
    "other_size": {"codes": ["MISMATCH"], "cause": ["OPERATION"]},
    "order": {"codes": ["DEADLOCK"], "cause": ["ORDER"]},
    "stop": {"codes": ["HUNG"], "cause": ["STOPPED"], "ends": True},
    "kill": {"codes": ["HUNG", "WAITS FOR"], "cause": ["DEAD"], "line": False},
    "memory": {"codes": ["HUNG", "WAITS FOR"], "cause": ["DEAD"], "line": False, "words": "memory ran out|1 process of its control group for lack of memory"},
    "gil": {"codes": ["HUNG"], "cause": ["GIL"], "ends": True},
    "gc": {"codes": ["WAITS FOR"], "cause": ["GC", "CPU"], "ends": True},
    "checkpoint": {"codes": ["WAITS FOR"], "cause": ["CHECKPOINT"], "ends": True},
    "evaluate": {"codes": ["WAITS FOR"], "cause": ["EVALUATION"], "ends": True},
    "before_first": {"codes": ["WAITS FOR", "HUNG"], "cause": ["WAIT", "LOADER"]},
}


def lines_of(fault):
    """Lines of the job that are right for it."""
    with open(SCRIPT, encoding="ascii") as file:
        return [n for n, line in enumerate(file, 1) if re.search(rf"# here: (.*, )?{fault}(,|$)", line)]


MEMORY_GROUP_BYTES = 768 << 20


def make_memory_group():
    """A control group (version 1 or 2) with a limit: its folder; None: this process may make none."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        own = dict(line.split(":", 2)[1:] for line in file.read().splitlines())
    root, limit = ("memory", "memory.limit_in_bytes") if "memory" in own else ("", "memory.max")
    folder = os.path.join("/sys/fs/cgroup", root, own.get(root, "").strip("/"), f"ranks-{uuid.uuid4().hex}")
    try:
        os.mkdir(folder)
        with open(os.path.join(folder, limit), "w", encoding="ascii") as file:
            file.write(str(MEMORY_GROUP_BYTES))
        return folder
    except OSError:
        if os.path.isdir(folder):
            os.rmdir(folder)
        return None


def planted(watched):
    """The faults that can be planted here. Why memory was short is known to who watched the rank before alone."""
    group = make_memory_group() if watched else None
    if group:
        os.rmdir(group)
    return [fault for fault in FAULTS if fault != "memory" or group]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Job:
    def __init__(self, python, folder, fault, ranks=8, bad=3, fork=None, without=(), script=SCRIPT):
        self.folder, self.fault, self.ranks, self.bad = str(folder), fault, ranks, bad
        os.makedirs(self.folder, exist_ok=True)
        self.output = open(os.path.join(self.folder, "output.txt"), "wb")
        env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", PYTHONUNBUFFERED="1", PROBING_MAX_MEMORY="8MB")
        argv = [script, fault, str(bad), self.folder]
        self.launcher, self.forked = None, []
        self.group = make_memory_group() if fault == "memory" else None
        if self.group:
            env["MEMORY_GROUP"] = self.group
        if not fork:
            self.launcher = subprocess.Popen([python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *argv],
                                             env=env, stdout=self.output, stderr=self.output, start_new_session=True)
            return
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                   TORCHELASTIC_RUN_ID=uuid.uuid4().hex, GROUP_RANK="0")
        null = os.open(os.devnull, os.O_WRONLY)
        for rank in range(ranks):
            if rank not in without:
                self.forked.append(fork.start(argv, dict(env, RANK=str(rank), LOCAL_RANK=str(rank)), self.output.fileno(), null))
        os.close(null)

    def events(self, rank):
        try:
            with open(os.path.join(self.folder, f"rank-{rank}.jsonl"), encoding="ascii") as file:
                return [json.loads(line) for line in file.read().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def last(self, rank, event):
        """When it was the last time; 0 never."""
        return max([0] + [e["at"] for e in self.events(rank) if e["event"] == event])

    def wait(self, event, ranks=None, after=0, limit=180):
        until = time.monotonic() + limit
        for rank in range(self.ranks) if ranks is None else ranks:
            while self.last(rank, event) <= after:
                if time.monotonic() > until:
                    raise TimeoutError(f"rank {rank}: no {event!r} in {limit} s; {self.tail()}")
                time.sleep(0.02)

    def begin(self):
        """The fault; when it began."""
        before = self.last(self.bad, "fault")
        self.touch("go")
        self.wait("fault", [self.bad], before, 30)
        return self.last(self.bad, "fault")

    def end_fault(self):
        before = self.last(self.bad, "over")
        self.touch("over")
        if self.fault == "stop":
            os.kill(self.pid(self.bad), signal.SIGCONT)
        self.wait("over", [self.bad], before, 60)

    def touch(self, name):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="ascii"):
            pass
        os.rename(path + ".new", path)

    def pid(self, rank):
        return self.forked[rank].pid if self.forked else self.pids()[rank]

    def pids(self):
        """By rank; with a launcher those of its children that have a rank."""
        if self.forked:
            return dict(enumerate(p.pid for p in self.forked))
        found = {}
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/stat", "rb") as stat, open(f"/proc/{number}/environ", "rb") as environ:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
                    env = environ.read().split(b"\0")
            except OSError:
                continue
            rank = [v[5:] for v in env if v.startswith(b"RANK=")]
            if parent == self.launcher.pid and rank:
                found[int(rank[0])] = int(number)
        return found

    def target(self):
        return str(self.launcher.pid if self.launcher else next((p.pid for p in self.forked if p.poll() is None), self.forked[0].pid))

    def tail(self):
        with open(self.output.name, encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def close(self):
        pids = list(self.pids().values())
        if self.launcher:
            pids.append(self.launcher.pid)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.launcher:
            self.launcher.wait()
        for p in self.forked:
            p.wait(10)
        if self.group:
            os.rmdir(self.group)
        self.output.close()


def put_figures(figures, path):
    """On the standard output, and into the file, if one is named."""
    text = json.dumps(figures, indent=2)
    print(text)
    if path:
        with open(path, "w", encoding="ascii") as file:
            file.write(text + "\n")


def judge(probing, target, *options, limit=60):
    """What `probing cluster verdict` says of the job: its document, exit status and seconds."""
    began = time.monotonic()
    done = subprocess.run([probing, "cluster", "verdict", target, "--json", *options], capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"cluster verdict: {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.returncode, time.monotonic() - began


def is_right(fault, bad, document):
    """None if a verdict names the rank and its line, and none names another rank; or what is wrong."""
    want, verdicts = FAULTS[fault], document["verdicts"]
    named = [v for v in verdicts if v["code"] in want["codes"] and v["ranks"] == str(bad)]
    if not named:
        return f"not {want['codes']} of rank {bad}: {[(v['code'], v['ranks'], v['cause'], v['text']) for v in verdicts]}"
    others = [v["text"] for v in verdicts if v["level"] in ("warning", "bad") and v["ranks"] not in (None, str(bad))]
    if others:
        return f"others are accused: {others}"
    v = named[0]
    if v["cause"] not in want["cause"] or not re.search(want.get("words", ""), v["text"]):
        return f"cause {v['cause']}: {v['text']}"
    if want.get("line", True) and not (os.path.basename(v["file"] or "") == "training.py" and v["lineno"] in lines_of(fault)):
        return f"line {v['file']}:{v['lineno']}, not {lines_of(fault)}: {v['text']}"
    return None
