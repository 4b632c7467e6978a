# SPDX-License-Identifier: Apache-2.0
"""Answers of an agent that are short to send and long to show or to keep, and the process that gives them.

    with bombing(name) as job: a process (job.pid) whose agent answers as BOMBS[name] says.
    python3 bombs.py NAME: that process, until its standard input ends."""

import contextlib
import os
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    sys.path.insert(0, HERE)

from agent_wire import pack  # noqa: E402
from lying_agent import LyingAgent, NOBODY, PYTHON, as_nobody  # noqa: E402
from unix_server import served_as_agent  # noqa: E402

MESSAGE, CHUNK, ASSEMBLED = 1 << 20, (1 << 20) - 256, 16 << 20
ROWS = 1 << 16  # that a column of a few bytes may stand for
NIL, EMPTY = b"\xc0", b"\x90"

# --- MessagePack, written short ---------------------------------------------------------------------------------


def number(n):
    return bytes([n]) if n < 128 else struct.pack(">BI", 0xCE, n) if n < 1 << 32 else struct.pack(">BQ", 0xCF, n)


def array(n, *values):
    """`values` again and again, until there are n."""
    return struct.pack(">BI", 0xDD, n) + (b"".join(values) * (n // len(values) + 1))[:n * len(values[0])] if n else EMPTY


def numbers(values):
    values = list(values)
    return struct.pack(">BI", 0xDD, len(values)) + b"".join(map(number, values))


def many(n, value=NIL):
    """A column of n rows that say the same, in a few bytes."""
    return mapped(lag=number(1), runs=numbers([1, n - 1]), values=array(1, value))


def mapped(**members):
    return struct.pack(">BI", 0xDF, len(members)) + b"".join(pack(k) + v for k, v in members.items())


def strings(*texts):
    return struct.pack(">BI", 0xDD, len(texts)) + b"".join(pack(t) for t in texts)


LONG, WORSE = "n" * MESSAGE, "\x01" * MESSAGE  # six bytes each in JSON

# --- threads ----------------------------------------------------------------------------------------------------


def snapshot(threads=1, stack=None, frames=0, text=LONG, tid=b"\x01", **parts):
    columns = {"tid": many(threads, tid) if threads <= ROWS else array(threads, tid), **parts.pop("columns", {})}
    return mapped(timestamp=pack(1.0), strings=strings(text, "x"), frames=mapped(func=many(max(frames, 1), b"\x00")),
                  threads=mapped(stack=stack or array(threads, EMPTY), **columns), **parts)


def one_stack(depth, value=b"\x00"):
    return array(1, array(depth, value))


def tasks(n, name=b"\x00", awaiters=0, tid=b"\x01"):
    first = array(awaiters, b"\x01")
    return mapped(id=many(n, b"\x01"), tid=many(n, tid), name=many(n, name), coro=many(n, name), stack=array(n, EMPTY),
                  awaited_by=array(1, first) if n == 1 else array(n, EMPTY))


def local_variables(n):
    return mapped(frames=mapped(thread=array(1, b"\x00"), depth=array(1, b"\x00"), count=array(1, number(n)), truncated=array(1, b"\xc2")),
                  values=mapped(name=many(n, b"\x00"), type=many(n, b"\x00"), text=many(n, b"\x00")))


def with_every_name():
    return {key: many(ROWS, b"\x00") for key in ("name", "native_name")}


# --- status -----------------------------------------------------------------------------------------------------


def status(n=6000, size=400000):
    rows = {"tables": ["name"], "settings": ["key", "value", "unit", "otherwise", "help"], "leases": ["what", "note", "file"],
            "doors": ["address", "note"], "holds": ["what", "state", "address", "text"]}
    first = {"tables": "rows", "settings": "given", "leases": "what", "doors": "address", "holds": "what"}
    of = {"tables": b"\x01", "settings": b"\xc3"}

    def table(name, texts, count):
        return mapped(**{first[name]: many(count, of.get(name, b"\x00")), **{t: many(count, b"\x00") for t in texts}})

    return [mapped(strings=strings("n" * size), **{name: table(name, texts, n if name == chosen else 1) for name, texts in rows.items()})
            for chosen in rows]


# --- samples ----------------------------------------------------------------------------------------------------


def batch(epoch, n_samples, frames=None, stacks=None, threads=None, stack=b"\x01", tid=None, text=LONG, at=1.7e9):
    samples = mapped(timestamp=many(n_samples, pack(at)), tid=tid or many(n_samples, b"\x01"), stack=stack if len(stack) > 5 else many(n_samples, stack))
    return mapped(epoch=number(epoch), period_us=pack(10000.0), strings=strings(text, "o" * len(text)), frames=frames or mapped(id=EMPTY),
                  stacks=stacks or mapped(id=EMPTY), threads=threads or mapped(tid=EMPTY), samples=samples)


def frame_defs(first, n, func=b"\x00", names=("func", "file")):
    return mapped(id=numbers(range(1, n + 1)), line=numbers(range(first, first + n)), **{name: many(n, func) for name in names})


def stack_defs(n, deep):
    return mapped(id=numbers(range(1, n + 1)), parent=numbers(range(n)) if deep else many(n, b"\x00"), frame=numbers(range(1, n + 1)))


def long_frames(turn):
    n = 4096
    return batch(turn, n, frame_defs(turn * n, n), stack_defs(n, False), stack=numbers(range(1, n + 1)))


def new_stacks(turn, deep=False, n=ROWS, threads=False, text="f"):
    """As many stacks as fit, others each time; `deep`: each within the one before."""
    tid = numbers(range(turn * n, turn * n + n)) if threads else None
    at = 1.7e9 + turn / 100
    return batch(turn, n, frame_defs(turn * n + 1, n), stack_defs(n, deep), stack=numbers(range(1, n + 1)), tid=tid, text=text, at=at)


def renamed(_turn):
    """One thread that has another name of 1 MB a thousand times."""
    n = 1000
    return batch(1, 1, mapped(id=b"\x91\x01", func=b"\x91\x00"), stack_defs(1, False), mapped(tid=many(n, b"\x01"), name=array(n, b"\x00", b"\x01")))


# --- what is answered -------------------------------------------------------------------------------------------


def rows(n, size):
    """Rows of a table that Python makes: all of one long text."""
    row = b"\x91" + pack("n" * size)
    return mapped(columns=array(1, pack("name")), rows=array(n, row), more=b"\xc2", note=pack(""))


THREADS = {
    "names": lambda: snapshot(ROWS, columns=with_every_name()),
    "names-escaped": lambda: snapshot(ROWS, columns=with_every_name(), text=WORSE),
    "rows": lambda: snapshot(400000, text="x"),
    "stack": lambda: snapshot(1, one_stack(1 << 20)),
    "short-stack": lambda: snapshot(1, one_stack(1 << 20), text="x"),
    "deep-stack-escaped": lambda: snapshot(1, one_stack(1 << 20), text=WORSE),
    "name-of-a-stack": lambda: snapshot(1, one_stack(200000, b"\x00"), columns={"name": array(1, b"\x00"), "has_python": array(1, b"\xc3")}, text="x" * 4000),
    "locals": lambda: snapshot(1, one_stack(1), locals=local_variables(ROWS)),
    "locals-escaped": lambda: snapshot(1, one_stack(1), locals=local_variables(ROWS), text=WORSE),
    "tasks": lambda: snapshot(1, tasks=tasks(ROWS)),
    "tasks-of-many": lambda: snapshot(8000, tasks=tasks(8000, b"\x01"), text="x"),
    "awaiters": lambda: snapshot(1, tasks=tasks(1, awaiters=10 << 20)),
    "note": lambda: snapshot(1, note=pack("n" * (14 << 20))),
}
SAMPLES = {
    "frames": long_frames,
    "stacks": new_stacks,
    "deep-stacks": lambda turn: new_stacks(turn, True),
    "deep-long-stacks": lambda turn: new_stacks(turn, True, n=8192, text="n" * 4000),
    "of-threads": lambda turn: new_stacks(turn, threads=True),
    "renamed": renamed,
    "deep-once": lambda turn: new_stacks(turn, True, n=30000) if turn == 1 else None,
    "long-once": lambda turn: new_stacks(turn, True, n=5000, text="n" * 4000) if turn == 1 else None,
    "threads-once": lambda turn: new_stacks(turn, n=60000, threads=True) if turn <= 3 else None,
}
STATUS = ("tables", "settings", "leases", "doors", "holds")
BOMBS = sorted([f"threads-{name}" for name in THREADS] + [f"samples-{name}" for name in SAMPLES] + [f"status-{name}" for name in STATUS] +
               ["rows", "error"])


class BombAgent(LyingAgent):
    """Every other request gets a short answer, as from an agent."""

    def __init__(self, path, name):
        super().__init__(path, {})
        self.name, self.turn = name, 0
        kind, _, which = name.partition("-")
        target = {"pid": os.getpid(), "uid": os.getuid(), "started_at": 1.0, "host": "h", "cmdline": "job", "python": "3.11.7", "rank": None, "mode": 0,
                  "agent_version": "0"}
        self.results = {"hello": pack({"version": 2, "target": target}), "threads": snapshot(1, text="x"),
                        "status": mapped(strings=strings("x"), tables=mapped(rows=EMPTY)), "tables": pack({"tables": []}), "rows": rows(1, 1)}
        if kind == "threads":
            self.results["threads"] = THREADS[which]()
        if kind == "status":
            self.results["status"] = status()[STATUS.index(which)]
        if kind == "rows":
            self.results["rows"] = rows(250, 60000)
        self.batches = SAMPLES[which] if kind == "samples" else None
        self.long_error = pack({"code": 3, "message": "n" * (15 << 20)}) if name == "error" else None

    def message(self, client, lock, data):
        if len(data) <= MESSAGE:
            self.send(client, lock, data)
            return
        assert len(data) <= ASSEMBLED, len(data)
        for i in range(0, len(data), CHUNK):
            part = {"message": 1, "total": len(data), "index": i // CHUNK, "data": data[i:i + CHUNK]}
            self.send(client, lock, pack([2, "chunk", part]))

    def answer(self, client, lock, number_, method, asked):  # pylint: disable=arguments-renamed
        head = b"\x94\x01" + number(number_)
        if self.long_error and method != "hello":
            self.message(client, lock, head + self.long_error + NIL)
            return
        self.message(client, lock, head + NIL + self.results.get(method, mapped()))
        if method == "subscribe":
            self.turn = 0
            threading.Thread(target=self.flood, args=(client, lock, asked["stream"]), daemon=True).start()

    def flood(self, client, lock, stream):  # pylint: disable=arguments-renamed
        try:
            while True:
                if stream == "samples" and self.batches:
                    self.turn += 1
                    data = self.batches(self.turn)
                    if data is None:
                        return
                    self.message(client, lock, b"\x93\x02" + pack("samples") + data)
                elif stream == "threads":
                    self.message(client, lock, b"\x93\x02" + pack("threads") + self.results["threads"])
                    time.sleep(0.2)
                else:
                    return
        except OSError:
            pass


class BombProcess:
    def __init__(self, process, uid):
        self.process, self.pid, self.uid = process, process.pid, uid


@contextlib.contextmanager
def bombing(name):
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with subprocess.Popen(as_nobody([PYTHON, __file__, name]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield BombProcess(process, uid)
        finally:
            process.stdin.close()  # its end is the sign to leave
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def main():
    with served_as_agent(BombAgent, sys.argv[1]):
        print("ready", flush=True)
        sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
