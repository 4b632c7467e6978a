# SPDX-License-Identifier: Apache-2.0
"""A process whose agent lies: a Python as others are, at work, behind whose socket tests/liars/agent.c answers.

usage: agent.py BUILD SEED COUNTER SLOW_PPM [PATH...]

Listens where the agent of this process would, prints "ready" and goes on until SIGTERM. COUNTER is a file of 8 bytes in which the lies
are counted, PATHs are what it names. In the folder where its profiles would lie are files of such names that are something else.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time

BUILD, SEED, COUNTER, SLOW = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
PATHS = sys.argv[5:]


def plant(folder):
    """What a client that takes a name for a file would fall over."""
    names = [f"{folder}/profile-{os.getpid()}-{ms}.json" for ms in range(1, 6)]
    for name, make in zip(names, (lambda p: os.symlink(PATHS[0], p) if PATHS else None, lambda p: os.mkfifo(p), lambda p: os.mkdir(p),
                                  lambda p: os.symlink("/dev/zero", p), lambda p: open(p, "w", encoding="utf-8").write("{}"))):
        if os.path.lexists(name):
            continue
        make(name)
    return names + [os.path.basename(name) for name in names]


def started():
    with open("/proc/self/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[19]


def work(depth):
    while depth == 0:
        sum(i * i for i in range(2000))
        time.sleep(0.01)
    work(depth - 1)


def main():
    folder = f"/tmp/probing-{os.getuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    tables = f"/dev/shm/probing-{os.getuid()}/{os.getpid()}-{started()}"
    os.makedirs(os.path.dirname(tables), mode=0o700, exist_ok=True)
    os.makedirs(tables, mode=0o700, exist_ok=True)
    paths = PATHS + plant(tables) + plant(os.path.dirname(tables)) + plant(folder)
    path = f"{folder}/{os.getpid()}.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(64)
    lib = ctypes.CDLL(os.path.join(BUILD, "tests", "liars", "agent.so"))
    rc = lib.liar_start(listener.fileno(), ctypes.c_uint64(SEED), ctypes.c_int64(os.getpid()), ctypes.c_int64(os.getuid()),
                        "\n".join(paths).encode(), SLOW, COUNTER.encode())
    if rc != 0:
        sys.exit("the agent did not begin")
    for _ in range(2):
        threading.Thread(target=work, args=(5,), daemon=True).start()
    print("ready", flush=True)
    signal.sigwait([signal.SIGTERM])
    os.unlink(path)
    os._exit(0)


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
main()
