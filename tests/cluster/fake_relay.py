#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The relay of a host of a job that does not exist: what it answers follows a script, the same for all hosts of the job, so that 64 of them
are a job of 512 ranks without any. For --via:

    probing-top job: --hosts 'f[0-63]' --via 'python3 -SE tests/cluster/fake_relay.py {host} --begin EPOCH --hang 137@30'

Host fN has the ranks N * RANKS and on. Each rank ends a step a second and is in one of a few stacks.
"""

import argparse
import hashlib
import os
import re
import select
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "functional"))
from agent_wire import Unpacker, pack  # noqa: E402

SCRIPT = "/job/train.py"
OUTER = [("main", SCRIPT, 84), ("<module>", SCRIPT, 90)]
COLLECTIVE = [("all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 2834), ("step", SCRIPT, 71), *OUTER]
LOADER = [("get", "/usr/lib/python3.11/queue.py", 171), ("fetch", SCRIPT, 31), ("step", SCRIPT, 62), *OUTER]
COMPUTES = [[("forward", SCRIPT, line), ("step", SCRIPT, 66), *OUTER] for line in (12, 15, 18)]
MEMBERS = ("name", "ranks", "missing", "elsewhere", "world", "restarts", "found_by", "user", "found")


def stack_id(frames):
    """Any number will do, if the same stack has the same one on all hosts."""
    return struct.unpack(">q", hashlib.sha256(repr(frames).encode()).digest()[:8])[0]


STACKS = {stack_id(frames): frames for frames in (COLLECTIVE, LOADER, *COMPUTES)}


class Relay:
    def __init__(self, args):
        self.args = args
        self.number = int(re.sub(r"\D", "", args.host) or 0)
        first = self.number * args.ranks
        self.ranks = range(first, first + args.ranks)
        self.world = args.hosts * args.ranks
        self.hung, self.hung_at = (float(one) for one in args.hang.split("@")) if args.hang else (-1, float("inf"))
        self.round, self.told, self.waiting, self.statement = 0, -1, None, ""

    def now(self):
        return time.time() - self.args.begin

    def hangs(self):
        return self.now() >= self.hung_at

    def step(self):
        return int(min(self.now(), self.hung_at))

    def frames(self, rank):
        if self.hangs():
            return LOADER if rank == self.hung else COLLECTIVE
        second = int(self.now())
        # some ranks of a hundred are in another stack than most
        turn = int.from_bytes(hashlib.sha256(f"{rank}/{second}".encode()).digest()[:2], "big") % 100
        return COMPUTES[turn % 3] if turn < self.args.churn else COMPUTES[0]

    # ---- answers

    def job(self, _):
        others = [one for one in ((0, self.ranks[0]), (self.ranks[-1] + 1, self.world)) if one[0] < one[1]]
        return MEMBERS, [("train.py-fa4e", f"{self.ranks[0]}-{self.ranks[-1]}", None, ",".join(f"{a}-{b - 1}" for a, b in others) or None,
                          self.world, 0, "torchrun", "user", 1)]

    def rows_of_ranks(self):
        columns = ("found", "round", "taken_at", "rank", "local_rank", "pid", "state", "cpu_pct", "thread_cpu_pct", "rss_bytes", "gc",
                   "wait_what", "stack", "since", "agent", "step", "step_at", "step_ms", "data_ms", "gc_ms", "comm_ms", "cost_pct")
        rows, now, step = [], time.time(), self.step()
        for rank in self.ranks:
            frames, waits = self.frames(rank), self.hangs()
            rows.append((1, self.round, now, rank, rank - self.ranks[0], 10000 + rank, "S" if waits else "R", 0.0 if waits else 99.0,
                         0.0 if waits else 99.0, 2 << 30, 0, f"all_reduce of torch.distributed, group of {self.world}"
                         if waits and rank != self.hung else None, stack_id(frames),
                         self.args.begin + (self.hung_at if waits else int(self.now())), 1, step, self.args.begin + step, 1000.0, 20.0, 0.0,
                         100.0, 0.2))
        return columns, rows

    def stacks(self, args):
        rows = []
        for text in args.get("ids", "").split(","):
            number, = struct.unpack(">q", struct.pack(">Q", int(text or "0", 16)))
            rows += [(number, *frame) for frame in STACKS.get(number, ())]
        return ("stack", "func", "file", "line"), rows

    def times(self, _):
        """The steps that have ended since the last time, 20 of them at first."""
        last = self.step()
        first = max(self.told + 1, last - 20, 0)
        self.told = last
        rows = [(rank, 10000 + rank, step, None, step, self.args.begin + step, 1000.0, 20.0, 400.0, 500.0, 60.0, 0.0, 20.0)
                for step in range(first, last) for rank in self.ranks]
        return ("rank", "pid", "seq", "op", "step", "at", "ms", "data_ms", "forward_ms", "backward_ms", "optimizer_ms", "gc_ms",
                "other_ms"), rows

    def states(self, _):
        columns = ("rank", "pid", "uptime_s", "age_s", "gone", "state", "traced", "still_s", "cpu_ns", "thread_ns", "bytes", "wchan",
                   "has_stack", "stack", "leaf_func", "leaf_file", "leaf_line", "own_func", "own_file", "own_line", "at_func", "at_file",
                   "at_line", "collective", "gc", "has_gil", "needs_gil", "blocked", "answer", "asked_age_s")
        rows, still = [], max(0.0, self.now() - self.hung_at)
        for rank in self.ranks:
            frames = self.frames(rank)
            own = next(one for one in frames if one[1] == SCRIPT)
            cpu = int(1e9 * min(self.now(), self.hung_at))
            rows.append((rank, 10000 + rank, 3600.0, 0.0, 0, "S" if self.hangs() else "R", 0, still, cpu, cpu, 0,
                         "futex_wait_queue" if self.hangs() else None, 1, stack_id(frames), *frames[0], *own, *own,
                         "all_reduce" if frames is COLLECTIVE else None, 0, 0, 0, 0, 3, 0.0))
        return columns, rows

    def groups(self, _):
        rows, step = [], self.step()
        for rank in self.ranks:
            behind = rank == self.hung and self.hangs()
            rows.append((rank, "0", "default_pg", "gloo", f"0-{self.world - 1}", self.world, rank, step if behind else step + 1, step, 0,
                         "all_reduce", "float32", 4 << 20, None if behind or not self.hangs() else self.now() - self.hung_at))
        return ("rank", "pg", "desc", "backend", "ranks", "size", "my_rank", "enqueued", "completed", "p2p", "op", "dtype", "bytes",
                "since_s"), rows

    def attach(self, _):
        return ("rank", "pid", "failed", "agent"), [(rank, 10000 + rank, 0, "already there") for rank in self.ranks]

    def clock(self, _):
        return ("at",), [(time.time(),)]

    # ---- tables: ten steps of each rank, and what a liar makes of them

    def tables(self, _):
        many = 10**7 if self.args.lie == "many" else 10 * len(self.ranks)
        return ("rows", "oldest", "newest"), [(many, time.time() - 10, time.time())]

    def sql(self, number, text):
        columns = ["rank", "pid", *re.findall(r', "(\w+)"', text.split(" FROM ")[0])]
        values = {"timestamp": lambda step: time.time() - 10 + step, "step": lambda step: step, "duration_ms": lambda step: 1000.0 + step}
        lie, more = self.args.lie, False
        rows = [[rank, 10000 + rank, *(values.get(name, lambda step: None)(step) for name in columns[2:])] for step in range(10) for rank in self.ranks]
        if lie == "endless":
            rows, more = rows * 250, True
        elif lie == "foreign":
            rows += [[(row[0] + 8) % self.world, *row[1:]] for row in rows]
        elif lie == "heavy":
            rows, more = [[row[0], row[1], *["x" * 1000] * (len(row) - 2)] for row in rows * 4], True
        elif lie == "columns":
            columns, rows = [*columns, "more"], [[*row, 1] for row in rows]
        elif lie == "kinds":
            rows = [[row[0], "pid", *("\x1b[2Jx" if type(one) is int else 7 for one in row[2:])] for row in rows]
        elif lie == "garbage":
            os.write(1, struct.pack(">I", 4) + b"\xc1\xc1\xc1\xc1")
            return
        elif lie == "half":
            self.args.half = 1
        elif lie == "refuse":
            self.send(number, {"code": 3, "message": "the query timed out after 48 s"}, None)
            return
        self.send(number, None, {"columns": columns, "rows": rows, "more": more, "note": "\x1b[31mred" if lie == "kinds" else ""})

    # ---- the pipe

    def send(self, number, error, result):
        message = pack([1, number, error, result])
        message = struct.pack(">I", len(message)) + message
        if self.args.half and self.now() >= self.args.half:
            os.write(1, message[:len(message) // 2])
            self.args.half, self.args.silent = 0, self.args.half
        else:
            os.write(1, message)

    def send_rows(self, number, columns, rows):
        self.send(number, None, {"columns": columns, "rows": rows, "more": False, "note": ""})

    def on_message(self, message):
        number, method, params = message[1:4]
        if self.args.silent and self.now() >= self.args.silent:
            return
        if self.args.lie == "deaf" and method != "hello":
            return
        if method == "hello":
            target = {"pid": os.getpid(), "uid": os.getuid(), "host": self.args.host, "mode": 1, "agent_version": "0.1.0",
                      "python_untested": False}
            self.send(number, None, {"version": 2, "limits": {"max_message": 1 << 20, "max_snapshot_hz": 30.0, "max_sample_hz": 1000.0},
                                     "target": target})
        elif params["table"] == "ranks":
            self.waiting = (number, params["args"].get("after", 0))
        elif params["table"] in ("sql", "next"):
            self.statement = params.get("text") or self.statement
            self.sql(number, self.statement)
        elif params["table"] in ("job", "stacks", "times", "states", "groups", "clock", "attach", "tables"):
            self.send_rows(number, *getattr(self, params["table"])(params["args"]))
        else:
            self.send(number, {"code": 5, "message": "a relay has no such table"}, None)

    def run(self):
        time.sleep(self.args.late)
        os.write(1, b"probing.v1 relay\n")
        data, due = b"", 0.0
        while True:
            if self.waiting and (self.round > self.waiting[1] or time.time() >= due):
                if self.round <= self.waiting[1]:
                    self.round, due = self.round + 1, float(int(time.time()) + 1)
                number, self.waiting = self.waiting[0], None
                self.send_rows(number, *self.rows_of_ranks())
            left = max(0.0, due - time.time()) if self.waiting else None
            if not select.select([0], [], [], left)[0]:
                continue
            part = os.read(0, 1 << 16)
            if not part:
                return
            data += part
            while len(data) >= 4 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
                size, = struct.unpack(">I", data[:4])
                self.on_message(Unpacker(data[4:4 + size]).value())
                data = data[4 + size:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("host")
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=8, help="of a host")
    parser.add_argument("--begin", type=float, required=True, help="when the job began, seconds since the epoch")
    parser.add_argument("--hang", help="RANK@SECONDS: that rank stays in its loader from then on, and all others wait for it")
    parser.add_argument("--silent", help="HOST@SECONDS[,HOST@SECONDS]: no answer from then on")
    parser.add_argument("--mute", default="", help="HOST[,HOST]: it hangs from the beginning, before it says that it is a relay")
    parser.add_argument("--half", help="the same, after half of an answer")
    parser.add_argument("--churn", type=int, default=1, help="percent of the ranks that are in another stack than most")
    parser.add_argument("--lie", help="about its tables: many, endless, heavy, foreign, columns, kinds, garbage, half, refuse; deaf: it greets alone; HOST:LIE[,HOST:LIE]")
    parser.add_argument("--late", help="HOST@SECONDS[,HOST@SECONDS]: so long until it greets")
    args = parser.parse_args()
    while args.host in args.mute.split(","):
        if not os.read(0, 1 << 16):
            return
    args.lie = dict(one.split(":") for one in (args.lie or "").split(",") if one).get(args.host)
    for name in ("silent", "half", "late"):
        given = dict(one.split("@") for one in (getattr(args, name) or "").split(",") if one)
        setattr(args, name, float(given.get(args.host, 0)))
    Relay(args).run()


if __name__ == "__main__":
    main()
