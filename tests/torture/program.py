# SPDX-License-Identifier: Apache-2.0
"""A hostile target: threads, native (torture.c) and in Python, that do what an injector may stumble over, and check themselves.

usage: program.py LIBRARY PLUGIN PAGE NUMBERS SEED FOLDER    run, until it is told to stop in the page
       program.py LIBRARY --reference SEED LINES             the lines that go into NUMBERS, computed undisturbed, on stdout

PAGE is the shared file of page.h. Every line in NUMBERS is a state of a chain of computations that depends on SEED alone.
"""

import ctypes
import importlib
import math
import os
import queue
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
import zlib

ROUNDS_PER_LINE = 8
MODULES = 4


def load(path):
    lib = ctypes.CDLL(path)
    lib.torture_slot_new.argtypes = [ctypes.c_char_p]
    lib.torture_round.argtypes = [ctypes.c_int]
    lib.torture_fail.argtypes = [ctypes.c_int, ctypes.c_char_p]
    lib.torture_numbers.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    lib.torture_numbers.restype = ctypes.c_uint64
    lib.torture_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    lib.torture_begin_child.restype = ctypes.c_bool
    lib.torture_is_alone.argtypes = [ctypes.c_int]
    lib.torture_is_alone.restype = ctypes.c_bool
    return lib


# --- numbers ----------------------------------------------------------------------------------------------------

def lines_of_numbers(lib, seed):
    """Never ends. What is computed in C and in Python goes into the next round of both."""
    state, x = seed, 0.4
    while True:
        for _ in range(ROUNDS_PER_LINE):
            native = lib.torture_numbers(state, 1)
            rng = random.Random(native)
            for _ in range(150):
                x = 3.8 * x * (1.0 - x)
                x = abs(math.sin(x * rng.random())) * 0.9 + 0.05
            state = (native ^ zlib.crc32(struct.pack("<d", x)) * 0x9E3779B97F4A7C15) & (1 << 64) - 1
        yield f"{state:016x} {x.hex()}\n"


# --- threads ----------------------------------------------------------------------------------------------------

class Worker:
    """A thread with a slot; work() does one round and returns the seconds to rest after it."""

    def __init__(self, lib, name):
        self.lib = lib
        self.slot = lib.torture_slot_new(name.encode())
        self.rng = random.Random(self.slot)

    def start(self):
        threading.Thread(target=self.run, name=type(self).__name__.lower(), daemon=True).start()

    def check(self, ok, why):
        if not ok:
            self.lib.torture_fail(self.slot, why.encode())

    def run(self):
        while True:
            self.lib.torture_round(self.slot)
            try:
                pause = self.work()
            except Exception as error:  # whatever it is, it would not have come undisturbed
                self.check(False, f"{type(error).__name__}: {error}"[:90])
                pause = 0.01
            if pause and not self.lib.torture_is_alone(self.slot):
                time.sleep(pause)

    def work(self):
        raise NotImplementedError


class Numbers(Worker):
    """Writes the chain of numbers, line by line."""

    def __init__(self, lib, path, seed):
        super().__init__(lib, "numbers")
        self.lines = lines_of_numbers(lib, seed)
        self.file = open(path, "w", encoding="ascii", buffering=1)

    def work(self):
        self.file.write(next(self.lines))
        return 0.03


class Imports(Worker):
    """Imports modules of its own, again and again, and some of the library's."""

    def __init__(self, lib, folder):
        super().__init__(lib, "imports")
        sys.path.insert(0, folder)
        for k in range(MODULES):
            with open(os.path.join(folder, f"torture_module_{k}.py"), "w", encoding="ascii") as file:
                file.write(f"import json\nclass Thing:\n    value = {k}\ndef answer():\n    return json.loads('{k}') * 3\n")

    def work(self):
        k = self.rng.randrange(MODULES)
        name = f"torture_module_{k}"
        module = importlib.import_module(name)
        self.check(module.answer() == 3 * k and module.Thing.value == k, "an imported module has other values")
        del sys.modules[name]
        importlib.invalidate_caches()
        return 0.01


class Memory(Worker):
    """malloc and free through ctypes."""

    def __init__(self, lib):
        super().__init__(lib, "ctypes")
        self.libc = ctypes.CDLL(None)
        self.libc.malloc.restype = ctypes.c_void_p
        self.libc.malloc.argtypes = [ctypes.c_size_t]
        self.libc.free.argtypes = [ctypes.c_void_p]

    def work(self):
        pieces = []
        for _ in range(20):
            size = self.rng.choice((10, 100, 1000, 20000, 200000))
            at = self.libc.malloc(size)
            ctypes.memset(at, size & 255, size)
            pieces.append((at, size))
        for at, size in pieces:
            self.check(ctypes.string_at(at + size - 1, 1)[0] == size & 255, "memory has other bytes in it")
            self.libc.free(at)
        return 0.004


class Forks(Worker):
    """os.fork; the child looks at itself."""

    def __init__(self, lib):
        super().__init__(lib, "python-fork")

    def work(self):
        if not self.lib.torture_begin_child():
            return 0.04
        child = os.fork()
        if child == 0:
            code = self.lib.torture_check_child()
            os._exit(code or (0 if threading.active_count() == 1 else 21))
        _, status = os.waitpid(child, 0)
        self.lib.torture_end_child()
        self.check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, f"a child ended with status {status:#x}")
        return 0.04


class Spawns(Worker):
    """Other programs."""

    def __init__(self, lib):
        super().__init__(lib, "spawn")

    def work(self):
        if not self.lib.torture_begin_child():
            return 0.08
        done = subprocess.run(["/bin/echo", "well"], stdout=subprocess.PIPE, check=False)
        self.lib.torture_end_child()
        self.check(done.returncode == 0 and done.stdout == b"well\n", f"a program ended with {done.returncode}")
        return 0.08


class Echo(Worker):
    """Gives back what it is given, and one."""

    def __init__(self, lib):
        super().__init__(lib, "echo")
        self.to, self.back = queue.Queue(), queue.Queue()

    def work(self):
        try:
            self.back.put(self.to.get(timeout=0.01) + 1)
        except queue.Empty:
            pass
        return 0


class Queues(Worker):
    """Locks, conditions and queues, with a partner, who may be at rest."""

    def __init__(self, lib, partner):
        super().__init__(lib, "queues")
        self.partner = partner
        self.sent = self.got = 0

    def work(self):
        while self.sent < self.got + 5:
            self.sent += 1
            self.partner.to.put(self.sent)
        try:
            while self.got < self.sent:
                self.check(self.partner.back.get(timeout=0.01) == self.got + 2, "a queue gave something else")
                self.got += 1
        except queue.Empty:
            pass
        condition = threading.Condition()
        with condition:
            self.check(not condition.wait(0.002), "a condition was told by nobody")
        return 0.005


class Waits(Worker):
    """epoll, poll and select of Python, with and without something to read."""

    def __init__(self, lib):
        super().__init__(lib, "waits")
        self.near, self.far = socket.socketpair()
        self.epoll = select.epoll()
        self.epoll.register(self.near.fileno(), select.EPOLLIN)

    def work(self):
        self.check(self.epoll.poll(0.002) == [], "an epoll of Python ended early")
        self.far.send(b"x")
        self.check(self.epoll.poll(30) == [(self.near.fileno(), select.EPOLLIN)], "an epoll of Python saw nothing")
        self.check(self.near.recv(10) == b"x", "a socket gave something else")
        self.check(select.select([self.near], [], [], 0.002) == ([], [], []), "a select of Python ended early")
        return 0.001


class Births(Worker):
    """Python threads that come and go."""

    def __init__(self, lib):
        super().__init__(lib, "python-births")

    def work(self):
        results = []
        threads = [threading.Thread(target=lambda n=n: results.append(sum(range(n)))) for n in (10, 100, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.check(sorted(results) == [45, 4950, 499500], "threads gave other results")
        return 0.02


class Kicker(Worker):
    """Signals for the main thread, which has a handler in Python."""

    def __init__(self, lib, main):
        super().__init__(lib, "kicker")
        self.main = main

    def work(self):
        if self.main.seen == self.main.sent:
            self.main.sent += 1
            signal.pthread_kill(self.main.ident, signal.SIGUSR1)
        return 0.007


class Main(Worker):
    """The main thread: sleeps, and takes the signals. Too many rounds without the one that was sent: it was lost."""

    def __init__(self, lib):
        super().__init__(lib, "main")
        self.ident = threading.get_ident()
        self.sent = self.seen = self.rounds = 0
        signal.signal(signal.SIGUSR1, self.on_signal)

    def on_signal(self, signum, frame):
        self.seen += 1

    def work(self):
        self.rounds = self.rounds + 1 if self.sent != self.seen else 0
        self.check(self.rounds < 2000, "a signal for the main thread was lost")
        self.check(self.seen <= self.sent, "a signal for the main thread came twice")
        return 0.002


def run(library, plugin, page, numbers, seed, folder):
    warnings.simplefilter("ignore")
    lib = load(library)
    failed = lib.torture_start(page.encode(), plugin.encode())
    if failed:
        sys.exit(f"the native threads did not start: {os.strerror(failed)}")
    main, echo = Main(lib), Echo(lib)
    for worker in (Numbers(lib, numbers, int(seed)), Imports(lib, folder), Memory(lib), Forks(lib), Spawns(lib), echo,
                   Queues(lib, echo), Waits(lib), Births(lib), Kicker(lib, main)):
        worker.start()
    print("ready", flush=True)
    main.run()


def reference(library, seed, lines):
    chain = lines_of_numbers(load(library), int(seed))
    for _ in range(int(lines)):
        sys.stdout.write(next(chain))


if __name__ == "__main__":
    if sys.argv[2] == "--reference":
        reference(sys.argv[1], *sys.argv[3:])
    else:
        run(*sys.argv[1:])
