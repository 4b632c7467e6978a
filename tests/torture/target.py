# SPDX-License-Identifier: Apache-2.0
"""Targets to torture, and what is seen of them from outside: what they say in their page, and what procfs says about them."""

import collections
import ctypes
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAGIC = 0x6572757472747430
SLOTS = 40
SIGNALS = 65
QUIET = 2
START_SECONDS = 120
HANG_SECONDS = 90    # a thread that makes no progress for so long hangs
REST_SECONDS = 60
SINGLE_OUT_SECONDS = 0.3
ENOUGH_ROUNDS = 3
OUR_THREADS = "probing"
OUR_FILE = "/memfd:libprobing"
# Anonymous memory moves with the job's own allocator, and libc keeps stacks of ended threads for the next ones.
SLACK_MAPS = 24
STACKS_KB = 40 * 1024  # of address space: so much it keeps


class Slot(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 24), ("tid", ctypes.c_int64), ("progress", ctypes.c_uint64), ("bad", ctypes.c_uint64),
                ("parked", ctypes.c_uint64), ("why", ctypes.c_char * 96)]


class Page(ctypes.Structure):
    """page.h"""
    _fields_ = [("magic", ctypes.c_uint64), ("n_slots", ctypes.c_uint64), ("quiet", ctypes.c_uint64), ("only", ctypes.c_uint64),
                ("ask", ctypes.c_uint64), ("childless", ctypes.c_uint64), ("answered", ctypes.c_uint64), ("children", ctypes.c_uint64),
                ("births", ctypes.c_uint64), ("interrupted", ctypes.c_uint64), ("semaphore", ctypes.c_uint64),
                ("actions", ctypes.c_uint64 * 3 * SIGNALS), ("slots", Slot * SLOTS)]


class Harm(Exception):
    """Something happened to the target: a kind (died, hung, stopped, check, left, numbers) and what."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def wait_for(predicate, seconds, what, kind="hung"):
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise Harm(kind, f"waited {seconds} s in vain for {what}")
        time.sleep(0.002)


def read_proc(pid, name):
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()


Facts = collections.namedtuple("Facts", "fds tids masks process actions files anonymous_maps anonymous_kb rss_kb parked")


def read_maps(pid):
    """(files: sorted list of what is mapped where, number and KiB of anonymous maps, lines of parked code)"""
    files, parked, count, kb = [], [], 0, 0
    for line in read_proc(pid, "maps").splitlines():
        words = line.split(None, 5)
        path = words[5] if len(words) == 6 else ""
        low, high = (int(part, 16) for part in words[0].split("-"))
        if path.startswith(OUR_FILE):
            parked.append((words[1], high - low))
        elif path and path not in ("[heap]", "[stack]"):
            files.append(line)
        elif words[1].startswith("---"):
            continue  # what an allocator keeps room for
        else:
            count += 1
            kb += (high - low) // 1024
            if "x" in words[1]:
                files.append(line)  # code of nobody's
    return sorted(files), count, kb, sorted(parked)


def status_of(pid, tid):
    return dict(re.findall(r"^(\w+):\s*(.*)$", read_proc(pid, f"task/{tid}/status"), re.M))


class Process:
    """A running job, seen from outside."""

    def __init__(self, command, out, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, **(env or {})), start_new_session=True)
        self.pid = self.process.pid
        self.out = out

    def output(self):
        with open(self.out.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check_alive(self):
        status = self.process.poll()
        if status is not None:
            raise Harm("died", f"the target ended with {status}: {self.output()[-2000:]}")

    def tids(self):
        try:
            return sorted(int(tid) for tid in os.listdir(f"/proc/{self.pid}/task"))
        except FileNotFoundError:
            self.check_alive()
            raise

    def odd_threads(self):
        """Those that are stopped, and those that are ours."""
        ours, stopped = [], []
        for tid in self.tids():
            try:
                stat = read_proc(self.pid, f"task/{tid}/stat")
            except OSError:
                continue
            name = stat[stat.index("(") + 1:stat.rindex(")")]
            if stat[stat.rindex(")") + 2] in "tT":
                stopped.append(tid)
            if name.startswith(OUR_THREADS):
                ours.append(name)
        return stopped, ours

    def check_threads(self):
        """No thread stays stopped, and ours end: one that was seen so once is looked at again for a while."""
        stopped, ours = self.odd_threads()
        if stopped or ours:
            wait_for(lambda: not self.odd_threads()[0], 10, f"threads {stopped} to go on", "stopped")
            wait_for(lambda: not self.odd_threads()[1], 10, f"{ours} to end", "left")

    def facts(self, actions):
        fds = {}
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                fds[int(fd)] = os.readlink(f"/proc/{self.pid}/fd/{fd}")
            except OSError:
                continue
        masks, process = {}, {}
        for tid in self.tids():
            status = status_of(self.pid, tid)
            masks[tid] = status["SigBlk"]
            process = {key: status[key] for key in ("SigIgn", "SigCgt", "Seccomp", "NoNewPrivs")}
        files, count, kb, parked = read_maps(self.pid)
        rss = int(status_of(self.pid, self.pid)["VmRSS"].split()[0])
        return Facts(fds, sorted(masks), masks, process, actions, files, count, kb, rss, parked)

    def end(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def compare_facts(before, now, first, slack_kb):
    """What the agent has left: `before` is before the first injection, `first` after the first eject."""
    for field in ("fds", "tids", "masks", "process", "actions", "files"):
        old, new = getattr(before, field), getattr(now, field)
        if old != new:
            if isinstance(old, dict):
                old, new = sorted(old.items()), sorted(new.items())
            gone, come = [x for x in old if x not in new], [x for x in new if x not in old]
            raise Harm("left", f"{field} differ after eject: gone {gone[:8]}, new {come[:8]}")
    if first and now.parked != first.parked:
        raise Harm("left", f"the parked code is not what it was: {first.parked}, now {now.parked}")
    then = first or before
    if now.anonymous_maps > then.anonymous_maps + SLACK_MAPS:
        raise Harm("left", f"{now.anonymous_maps} anonymous maps, {then.anonymous_maps} after the first eject")
    if now.anonymous_kb > then.anonymous_kb + slack_kb + STACKS_KB or now.rss_kb > then.rss_kb + slack_kb:
        raise Harm("left", f"memory grows: {then.rss_kb} KiB resident of {then.anonymous_kb} after the first eject, now "
                           f"{now.rss_kb} of {now.anonymous_kb}")


class Hostile(Process):
    """tests/torture/program.py"""

    patience = 0.0  # seconds until what is left behind must be gone: nothing moves while it is looked at
    slack_kb = 24 * 1024

    def __init__(self, python, build, seed):
        self.folder = tempfile.mkdtemp(prefix="torture-")
        self.library = os.path.join(build, "tests", "torture", "torture.so")
        plugin = os.path.join(build, "tests", "torture", "plugin.so")
        self.python, self.seed = python, seed
        self.numbers = os.path.join(self.folder, "numbers")
        path = os.path.join(self.folder, "page")
        with open(path, "w+b") as file:
            file.truncate((ctypes.sizeof(Page) + 4095) // 4096 * 4096)
            self.memory = mmap.mmap(file.fileno(), 0)
        self.page = Page.from_buffer(self.memory)
        self.page.magic = MAGIC
        self.alive = {}  # slot: (progress, when it was seen to have risen)
        self.idle_until = 0.0
        super().__init__([python, os.path.join(HERE, "program.py"), self.library, plugin, path, self.numbers, str(seed),
                          self.folder], open(os.path.join(self.folder, "out"), "wb"))
        try:
            wait_for(self.is_ready, START_SECONDS, "the target to start")
        except Harm:
            self.end()
            raise

    def is_ready(self):
        self.check_alive()
        return "ready" in self.output() and all(slot.progress >= ENOUGH_ROUNDS for slot in self.slots())

    def slots(self):
        return self.page.slots[:min(self.page.n_slots, SLOTS)]

    def check(self):
        """Alive, no failed check, nobody hangs. Those that rest on request do not."""
        self.check_alive()
        now = time.monotonic()
        for i, slot in enumerate(self.slots()):
            if slot.bad:
                raise Harm("check", f"thread {slot.name.decode()} (tid {slot.tid}): {slot.why.decode()} ({slot.bad} times)")
            before = self.alive.get(i)
            if before is None or slot.progress != before[0] or slot.parked:
                self.alive[i] = (slot.progress, now)
            elif now - before[1] > HANG_SECONDS:
                raise Harm("hung", f"thread {slot.name.decode()} (tid {slot.tid}) made no round for {HANG_SECONDS} s")
        self.check_threads()

    def check_progress(self):
        """Every thread makes another round."""
        before = [slot.progress for slot in self.slots()]

        def moved():
            self.check_alive()
            return all(slot.progress > old for slot, old in zip(self.slots(), before))
        try:
            wait_for(moved, HANG_SECONDS, "a round")
        except Harm as harm:
            if harm.kind != "hung":
                raise
            stuck = [f"{slot.name.decode()} (tid {slot.tid})" for slot, old in zip(self.slots(), before)
                     if slot.progress <= old]
            raise Harm("hung", f"no further round of {', '.join(stuck)} within {HANG_SECONDS} s") from harm

    def rest(self):
        """Everybody at rest: nothing comes and goes meanwhile."""
        self.page.quiet = 1

        def still():
            self.check_alive()
            return all(slot.parked == QUIET for slot in self.slots())
        wait_for(still, REST_SECONDS, "all threads to rest")

    def go_on(self):
        self.page.quiet = 0

    def single_out(self, rng):
        """All but one rest, if they get to it in time. Are they?"""
        number = rng.randrange(1, len(self.slots()))
        self.page.only = number + 1
        deadline = time.monotonic() + SINGLE_OUT_SECONDS
        while not all(s.parked for i, s in enumerate(self.slots()) if i != number):
            if time.monotonic() > deadline:
                self.page.only = 0
                return False
            time.sleep(0.001)
        return True

    def let_all_go(self):
        self.page.only = 0

    def allow_children(self, allowed):
        """Without them more can be checked: see calls.c."""
        self.page.childless = not allowed

    def extra(self):
        """For the summary."""
        return {"interrupted_by_children": self.page.interrupted}

    def look(self):
        """Facts while everybody rests."""
        self.rest()
        self.page.ask += 1
        wait_for(lambda: self.page.answered == self.page.ask, REST_SECONDS, "the inspector")
        facts = self.facts([list(action) for action in self.page.actions])
        self.go_on()
        return facts

    def check_numbers(self):
        """The chain of numbers is that of an undisturbed run; how many lines were compared."""
        with open(self.numbers, encoding="ascii") as file:
            lines = [line for line in file if line.endswith("\n")]
        done = subprocess.run([self.python, os.path.join(HERE, "program.py"), self.library, "--reference", str(self.seed),
                               str(len(lines))], stdout=subprocess.PIPE, check=True, text=True)
        for n, (line, wanted) in enumerate(zip(lines, done.stdout.splitlines(keepends=True))):
            if line != wanted:
                raise Harm("numbers", f"line {n + 1} of {len(lines)} is {line.strip()}, undisturbed it is {wanted.strip()}")
        return len(lines)

    def end(self):
        super().end()
        if self.page.semaphore:
            ctypes.CDLL(None).semctl(int(self.page.semaphore) - 1, 0, 0)  # IPC_RMID
        self.out.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def describe_stuck(pid):
    """For a report: where each thread is."""
    lines = []
    for tid in sorted(os.listdir(f"/proc/{pid}/task"), key=int) if os.path.isdir(f"/proc/{pid}/task") else []:
        try:
            lines.append(f"{tid} {read_proc(pid, f'task/{tid}/comm').strip()}: {read_proc(pid, f'task/{tid}/stat').rsplit(')', 1)[1].split()[0]} "
                         f"{read_proc(pid, f'task/{tid}/syscall').strip()}")
        except OSError:
            continue
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit("used by run.py")
