# SPDX-License-Identifier: Apache-2.0
"""A rank of a gloo job with DistributedDataParallel, 20 to 50 ms a step, that can have one fault of those below.

    training.py FAULT RANK LOG        by torchrun, or with the variables that it sets

The ranks write what happens to LOG/rank-N.jsonl: {"event": "ready" | "fault" | "over", "at": seconds, "step": n}. The fault begins in rank
RANK when LOG/go is there, and those that can end do so when LOG/over is there. Then the job goes on, and may have it again once LOG/go has
another time of change. The job ends when LOG/end is there. Lines that are marked "# here: FAULT" are those that must be named.
"""

import ctypes
import gc
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

FAULT, BAD, LOG = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PACE_S = 0.01
libc = ctypes.PyDLL(None)  # which keeps the GIL


def tell(event, **facts):
    with open(os.path.join(LOG, f"rank-{RANK}.jsonl"), "a", encoding="ascii") as log:
        log.write(json.dumps(dict(facts, event=event, at=time.time())) + "\n")


def changed(name):
    try:
        return os.stat(os.path.join(LOG, name)).st_mtime_ns
    except OSError:
        return 0


def is_over():
    return changed("over") > changed("go")


# ---- faults of the data

class Feed(threading.Thread):
    """Makes batches, and stops doing so."""

    def __init__(self):
        super().__init__(daemon=True)
        self.batches, self.stalls = queue.Queue(4), False
        self.start()

    def run(self):
        while True:
            while self.stalls and not is_over():
                time.sleep(0.02)
            self.batches.put((torch.randn(16, 64), torch.randint(0, 10, (16,))))


def next_batch(feed):
    return feed.batches.get()  # here: loader_queue, backward


def stall_queue(feed):
    feed.stalls = True
    while not is_over():
        next_batch(feed)
    feed.stalls = False


def open_shard(name):
    with open(name, encoding="ascii") as shard:  # here: loader_fifo
        return shard.read()


def stall_fifo(_feed):
    name = os.path.join(LOG, f"shard-{time.time()}")
    os.mkfifo(name)

    def end():
        while not is_over():
            time.sleep(0.02)
        os.close(os.open(name, os.O_RDWR | os.O_NONBLOCK))  # wakes its reader up
    threading.Thread(target=end, daemon=True).start()
    open_shard(name)


# ---- faults of the process

def stop_here(_feed):
    os.kill(os.getpid(), signal.SIGSTOP)  # here: stop


def die_here(_feed):
    os.kill(os.getpid(), signal.SIGKILL)


def take_all_memory(_feed):
    """More than its control group may have: MEMORY_GROUP is its folder."""
    taken = []
    while True:
        taken.append(b"x" * (16 << 20))


# Ends when LOG/over is newer than LOG/go: no thread of the job can notice that while the GIL is kept.
WATCH_OVER = """
import os, sys, time
while not os.path.exists(sys.argv[2]) or os.stat(sys.argv[2]).st_mtime_ns <= os.stat(sys.argv[1]).st_mtime_ns:
    time.sleep(0.02)
"""


def hog_gil(_feed):
    over, ends = os.pipe()
    names = [os.path.join(LOG, name) for name in ("go", "over")]
    # without a rank: it is none
    env = {name: value for name, value in os.environ.items() if "RANK" not in name and "WORLD" not in name}
    with subprocess.Popen([sys.executable, "-S", "-c", WATCH_OVER, *names], env=env, stdout=ends):
        os.close(ends)
        while libc.read(over, ctypes.create_string_buffer(1), 1) < 0:  # here: gil
            pass
    os.close(over)


def hog_gil_short(_feed):
    libc.usleep(4_000_000)


class Node:
    def __init__(self, other):
        self.other, self.me = other, self


def collect_garbage(_feed):
    bomb = None
    for _ in range(300_000):
        bomb = Node(bomb)
    while not is_over():  # here: gc
        gc.collect()  # here: gc
    del bomb


# ---- what takes long, and is no fault

def save_checkpoint(_feed, seconds=30):
    """A slow disk: one rank writes, the others wait in the next collective."""
    name, until = os.path.join(LOG, f"checkpoint-{RANK}"), time.monotonic() + seconds
    with open(name, "wb") as file:
        while time.monotonic() < until and not is_over():  # here: checkpoint
            file.write(bytes(1 << 20))  # here: checkpoint
            file.flush()
            os.fsync(file.fileno())  # here: checkpoint
            time.sleep(0.005)  # here: checkpoint
            if file.tell() > 64 << 20:
                file.seek(0)


def save_checkpoint_short(feed):
    save_checkpoint(feed, 5)


def evaluate(_feed, seconds=float("inf")):
    inputs, until = torch.randn(64, 64), time.monotonic() + seconds
    while time.monotonic() < until and not is_over():  # here: evaluate
        with torch.no_grad():  # here: evaluate
            model.module(inputs)  # here: evaluate


def evaluate_short(feed):
    evaluate(feed, 4.5)


compiled = compile("""
def compile_frame(is_over):
    while not is_over():
        sum(range(2000))
""", "/opt/lib/torch/_dynamo/convert_frame.py", "exec")
names = {}
exec(compiled, names)


def compiles(_feed):
    names["compile_frame"](is_over)


def is_slow(_feed):
    time.sleep(0.5)


def ends(_feed):
    """Its last step is over. All others have something to do yet."""
    tell("end")
    os._exit(0)


# ---- faults of the collectives

def skip_collective(_feed):
    """It leaves the loop, and waits for the others elsewhere."""
    distributed.barrier(group=control)  # here: skip


def other_operation(_feed):
    distributed.all_gather([torch.zeros(1) for _ in range(WORLD)], torch.zeros(1))  # here: other_op


def other_size(_feed):
    """An empty batch: gloo does nothing then, and this rank goes on to the next."""


def other_order(_feed):
    distributed.all_reduce(torch.zeros(1), group=control)  # here: order
    distributed.all_reduce(torch.zeros(1), group=extra)


FAULTS = {  # and "end", "before_first"
    "none": None, "loader_queue": stall_queue, "backward": stall_queue, "loader_fifo": stall_fifo, "stop": stop_here, "kill": die_here, "memory": take_all_memory, "gil": hog_gil, "gc": collect_garbage,
    "checkpoint": save_checkpoint, "evaluate": evaluate, "compile": compiles, "slow": is_slow, "skip": skip_collective,
    "other_op": other_operation, "other_size": other_size, "order": other_order,
    "checkpoint_short": save_checkpoint_short, "gil_short": hog_gil_short, "evaluate_short": evaluate_short,
}


# ---- training

def rendezvous():
    if FAULT == "before_first" and RANK == BAD:
        name = os.path.join(LOG, "vocabulary")
        os.mkfifo(name)
        tell("fault", step=0)
        with open(name, encoding="ascii") as file:  # here: before_first
            file.read()
    distributed.init_process_group("gloo")
    return distributed.new_group(), distributed.new_group()


def restart():
    """A rank is gone: those that notice it meet again, as in an elastic job."""
    distributed.destroy_process_group()
    distributed.init_process_group("gloo", init_method=f"file://{LOG}/again", rank=RANK, world_size=WORLD)


def step(feed):
    inputs, classes = next_batch(feed)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), classes)
    loss.backward()
    optimizer.step()
    return loss.detach().reshape(1)


def has_fault(state):
    """Whether it begins in this step."""
    if FAULT == "slow":
        return changed("go") > 0
    if changed("go") <= state["go"]:
        return False
    state["go"] = changed("go")
    return True


def plant(feed, state, steps):
    if RANK == BAD and FAULTS.get(FAULT) and has_fault(state):
        tell("fault", step=steps)
        FAULTS[FAULT](feed)
        tell("over", step=steps)


def train(feed):
    state, steps = {"go": 0}, 0
    while True:
        if FAULT == "backward":
            plant(feed, state, steps)
        loss = step(feed)
        steps += 1
        if steps == 20:
            tell("ready")
        if FAULT != "backward":
            plant(feed, state, steps)
        if FAULT == "order":
            distributed.all_reduce(torch.zeros(1), group=extra)
            distributed.all_reduce(torch.zeros(1), group=control)
        empty = FAULT == "other_size" and RANK == BAD and state["go"] > 0
        distributed.all_reduce(loss[:0] if empty else loss)
        if empty:
            distributed.all_reduce(loss)  # here: other_size
        end = torch.tensor([float(changed("end") > 0), float(FAULT == "end" and changed("go") > 0)])
        distributed.all_reduce(end)
        if end[0]:
            return
        if end[1] and RANK != BAD:
            save_checkpoint(feed, 20)
        if end[1]:
            ends(feed)
        time.sleep(PACE_S)


if RANK == BAD and "MEMORY_GROUP" in os.environ:
    with open(os.path.join(os.environ["MEMORY_GROUP"], "cgroup.procs"), "w", encoding="ascii") as group:
        group.write(str(os.getpid()))
torch.set_num_threads(1)
torch.manual_seed(1)
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
control, extra = rendezvous()
model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)), torch.nn.Linear(64, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
try:
    train(Feed())
except RuntimeError as e:
    tell("broken", why=str(e)[:300])
    if FAULT not in ("kill", "memory"):
        raise
    restart()
tell("end")
