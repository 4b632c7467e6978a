# SPDX-License-Identifier: Apache-2.0
"""Jobs whose one thread waits in a call of a given kind, or runs, and checks itself; and an injector that is sent a signal at
a step of one's choice. For test_inject_kill.py."""

import json
import os
import signal
import struct
import subprocess

from conftest import wait_until
from inject_support import BUSY, COUNTER, VECTORS, Job

KINDS = ("poll", "clock_nanosleep", "futex", "epoll", "read", "nanosleep")

WAITING = """
native = ctypes.CDLL(sys.argv[2])
native.waiting_take(ctypes.byref(cell), int(sys.argv[4]))
ready()
native.waiting_run(ctypes.byref(cell), int(sys.argv[3]))
"""

SIGNAL = signal.SIGRTMIN + 3  # which those that wait in a call count
PAGE = os.sysconf("SC_PAGE_SIZE")


class Victim(Job):
    """A job, and what it was like before anything was done to it."""

    def __init__(self, target, path, kind):
        super().__init__(target, path)
        self.kind = kind
        wait_until(lambda: self.cell()[0] > 0, 30, f"the first step of {kind}")
        self.before = self.look()

    def look(self):
        tids = self.target.tids()
        return {"threads": tids, "descriptors": self.target.fds(), "code": self.code(), "masks": self.masks(tids)}

    def pages(self):
        """Everything that is mapped, in pages."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[0])

    def interrupted(self):
        with open(self.path, "rb") as file:
            return struct.unpack("QQQ", file.read(24))[2]

    def signals(self):
        """How many arrived whole, the sum of what they carried, how many did not."""
        with open(self.path, "rb") as file:
            return struct.unpack("QQQQQQ", file.read(48))[3:]

    def settle(self, what):
        """The job goes on, and everything is as it was before."""
        self.goes_on()
        wait_until(lambda: self.same() is None, 30, f"{self.kind}, {what}: as before, but {self.same()}")

    def same(self):
        """What is not as before, or None."""
        try:
            now = self.look()
        except (OSError, AttributeError):
            return "a thread that comes or goes"
        for key, value in self.before.items():
            if now[key] != value:
                return f"{key}: {value} became {now[key]}"
        return None


def start_victim(target, tmp_path, build_dir, vectors, kind, number=0):
    path = str(tmp_path / f"cell-{kind}-{number}")
    with open(path, "wb") as file:
        file.write(bytes(64))
    waiting = os.path.join(build_dir, "tests", "targets", "waiting.so")
    if kind in KINDS:
        job = target(COUNTER + WAITING, path, waiting, str(KINDS.index(kind)), str(int(SIGNAL)))
    elif kind == "registers":
        job = target(COUNTER + VECTORS, path, vectors)
    else:
        job = target(COUNTER + BUSY, path)
    return Victim(job, path, kind)


class Injection:
    """What became of an injection that was sent a signal: the steps it had begun by then, how it ended."""

    def __init__(self, done, when):
        self.status, self.stderr = done.returncode, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.signalled = bool(lines) and "signalled" in lines[0]
        self.result = lines[-1] if lines and not lines[-1].get("signalled") else None
        self.steps = [name for name, _ in lines[0]["steps"]] if lines else []
        if self.signalled and when == "before":
            self.steps.pop()  # it was not taken

    def may_leave_a_mapping(self):
        """From the entry of mmap, where it gets what it is to do, until the frames know its result: see docs/dev/design/inject.md."""
        first = self.steps.index("SETSIGMASK") if "SETSIGMASK" in self.steps else len(self.steps)
        return self.steps[first + 1:][:3] == ["SYSCALL", "GETREGSET", "SETREGSET"] and len(self.steps) - first <= 7

    def may_interrupt(self):
        """From a stop until the registers that call again are set."""
        last = max((i for i, name in enumerate(self.steps) if name == "INTERRUPT"), default=-1)
        return last >= 0 and "SETREGSET" not in self.steps[last:] and "SETSIGMASK" not in self.steps


class Stepper:
    """The injector, sent `signal` before, after or in the middle of its step `number`."""

    def __init__(self, build_dir):
        self.path = os.path.join(build_dir, "tests", "tools", "inject_step")

    def __call__(self, victim, agent, when="after", number=0, signal=0, timeout_ms=20000, to_job=0):
        command = [self.path, when, str(number), str(int(signal)), str(victim.pid), agent, str(timeout_ms)]
        env = dict(os.environ, STEP_TO_JOB=str(int(to_job)))
        for _ in range(20):
            done = Injection(subprocess.run(command, capture_output=True, text=True, timeout=120, env=env), when)
            if "try again" not in done.stderr:
                break  # else the machine was too busy for that step
        return done
