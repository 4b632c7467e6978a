# SPDX-License-Identifier: Apache-2.0
"""The first seconds on the training example, which nothing was prepared for: what probing-top says of its steps, modules, tensors, loss and
verdict, against what the job writes and what the same program holds when it looks at itself."""

import fcntl
import json
import os
import re
import subprocess
import threading
import time

import pytest
from conftest import ROOT, wait_until
from test_tui_tmux import Screen

ARGS = ["--print-every", "1"]
TOKENS = 32 * 64  # of a step
PIPE_BYTES = 4096
PATIENCE = 120

# The same program, with a print that looks: what there is where the job prints.
SAME = r"""
import gc, json, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.argv = sys.argv[1:]
import torch
import train

def storages(tensors):
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}

def look(text, **options):
    if not text.startswith("step      5 "):
        return
    objects = gc.get_objects()
    model = next(o for o in objects if type(o) is train.CharTransformer)
    optimizer = next(o for o in objects if type(o) is torch.optim.AdamW)
    loader = next(o for o in objects if type(o) is torch.utils.data.DataLoader and o.persistent_workers)
    ahead = storages(t for info in loader._iterator._task_info.values() for item in info[1:] for t in item)
    tensors = [o for o in objects if type(o) in (torch.Tensor, torch.nn.Parameter)] + [p.grad for p in model.parameters()]
    tensors += [t for state in optimizer.state.values() for t in state.values()]
    held = {at: size for at, size in storages(tensors).items() if at not in ahead}
    modules = [["model" + ("." + name if name else ""), type(m).__name__, sum(p.numel() for p in m.parameters())] for name, m in model.named_modules()]
    told = {"modules": modules, "bytes": sum(held.values()), "storages": len(held)}
    os.write(1, json.dumps(told).encode() + b"\n")
    os.kill(os.getpid(), 9)  # its loader's workers follow

train.print = look
train.main()
"""


class Example:
    """examples/train.py; what it prints is read by a thread, until it is told to stop: then the job soon waits within its print."""

    def __init__(self, python, losses):
        self.losses_file = losses
        self.process = subprocess.Popen([python, os.path.join(ROOT, "examples", "train.py"), *ARGS, "--losses", losses], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.pid = self.process.pid
        self.lines = []
        self.paused = threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            if self.paused.is_set():
                return

    def seconds(self):
        """{step: seconds it took}, by what it prints of its speed."""
        found = [re.match(r"step +(\d+)  loss .* tokens/s +(\d+)$", line) for line in list(self.lines)]
        return {int(m[1]): TOKENS / int(m[2]) for m in found if m}

    def losses(self):
        with open(self.losses_file, encoding="ascii") as file:
            return [float.fromhex(line) for line in file.read().split("\n")[:-1]]

    def waits(self):
        """In its print, for somebody who reads."""
        with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("1 0x1 ")

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def example(torch_python, tmp_path, ptrace):
    job = Example(torch_python, str(tmp_path / "losses"))
    yield job
    job.close()


def first_step(rows, losses):
    """Number in the job's own count of the step that the agent counts as 0: by the losses, which are exact to the bit."""
    known = [row for row in rows if row["loss"] is not None]
    shifts = {at + 1 - row["step"] for row in known[:1] for at, loss in enumerate(losses) if loss == row["loss"]}
    shifts = {n for n in shifts if all(losses[row["step"] + n - 1] == row["loss"] for row in known)}
    assert len(known) > 3 and len(shifts) == 1
    return shifts.pop()


def first_look(s, command, state, n_modules):
    """(step, its loss, seconds until all was shown), as the screens have it."""
    began = time.monotonic()
    s.shell(f"XDG_STATE_HOME={state} XDG_CONFIG_HOME={state} {command}")
    s.wait_for("CONNECTED", PATIENCE)
    s.type("1")
    wait_until(lambda: re.search(r"^ (MOVING|SLOW) +.*(steps/s|\d steps took)", s.text(), re.M), PATIENCE, "the verdict")
    s.type("8")
    s.wait_for(f"{n_modules} modules", PATIENCE)
    s.type("7")
    wait_until(lambda: re.search(r"^ *\d+ tensors +\S+ \S+ in \d+ storages", s.text(), re.M), PATIENCE, "the tensors")
    s.type("6")
    row = r"^ +(\d+) +\S+ m?s +[\d.]+x.(?: +\S+(?: m?s)?)+? +(\d+\.\d+)  +— "
    found = wait_until(lambda: re.search(row, s.text(), re.M), PATIENCE, "a step's loss")
    took = time.monotonic() - began  # 5 s are promised of a machine that has nothing else to do
    print(f"all was shown {took:.2f} s after the start of probing-top")
    return int(found[1]), float(found[2]), took


@pytest.mark.timeout(500)
def test_the_unprepared_example(example, torch_python, probing, probing_top, tmux, tmp_path, record_property):
    same = subprocess.Popen([torch_python, "-c", SAME, os.path.join(ROOT, "examples", "train.py"), *ARGS], stdout=subprocess.PIPE, text=True)
    truth = json.loads(same.communicate(timeout=PATIENCE)[0])
    wait_until(lambda: len(example.seconds()) >= 20, PATIENCE, "the example's steps")

    def ask(sql):
        return probing(str(example.pid), "query", "--format", "json", "--limit", "0", sql, timeout=PATIENCE).ok().json()["rows"]

    s = Screen(tmux, tmp_path, 160, 45, wait_until)
    try:
        step, loss, took = first_look(s, f"{probing_top.path} {example.pid}", tmp_path, len(truth["modules"]))
    finally:
        s.close()
    record_property("seconds_until_all_was_shown", round(took, 2))

    for _ in range(8):  # whatever the job is doing
        assert [[m["path"], m["class"], m["parameters"]] for m in ask("SELECT * FROM python.modules")] == truth["modules"]
    wait_until(lambda: len(ask("SELECT step FROM python.steps WHERE loss IS NOT NULL")) >= 60, PATIENCE, "60 steps with their losses")
    said = probing(str(example.pid), "verdict", "--json", timeout=PATIENCE).ok().json()["verdicts"]
    rows = ask("SELECT * FROM python.steps ORDER BY step")
    shift = first_step(rows, example.losses())

    assert loss == pytest.approx({row["step"]: row["loss"] for row in rows}[step], rel=1e-3)
    seconds = example.seconds()
    moving = next(v for v in said if v["code"] in ("MOVING", "SLOW"))
    assert {v["code"] for v in said if v["level"] in ("warning", "bad")} <= {"SLOW"}, said
    if moving["code"] == "MOVING":
        last, n = moving["evidence"]["step"] + shift, moving["evidence"]["n"]
        assert moving["evidence"]["rate"] == pytest.approx(n / sum(seconds[step] for step in range(last - n + 1, last + 1)), rel=0.02)
    else:  # then it is: on a machine that others use
        durations = [seconds[row["step"] + shift] for row in rows if row["duration_ms"] is not None]
        newest = len(durations) // 10
        assert sum(durations[-newest:]) / newest > 1.2 * sum(durations[:-newest]) / (len(durations) - newest)
    whole = [row for row in rows if row["duration_ms"] is not None]
    ours = sum(row["duration_ms"] for row in whole) / 1e3
    assert ours == pytest.approx(sum(seconds[row["step"] + shift] for row in whole), rel=0.02)

    example.paused.set()
    wait_until(example.waits, PATIENCE, "the job to wait where the other has looked", interval=0.2)
    def held():
        tensors = [t for t in ask("SELECT * FROM python.tensors") if "_task_info" not in t["name"]]
        return {t["storage_id"]: t["storage_bytes"] for t in tensors}
    def same_bytes():
        there = held()
        return [sum(there.values()), len(there)] == [truth["bytes"], truth["storages"]]
    try:
        wait_until(same_bytes, PATIENCE, "the tensors that the job holds", interval=0.2)
    except pytest.fail.Exception as failure:
        there = ask("SELECT * FROM python.tensors")
        pytest.fail(f"{failure.msg}: {truth['bytes']} bytes in {truth['storages']} storages, not {sum(held().values())} in {len(held())}: {there}")
    assert same_bytes()
