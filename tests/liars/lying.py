# SPDX-License-Identifier: Apache-2.0
"""What the hostile targets that lie by tests/targets/liar.c have in common: see there.

A target is `python3 tests/liars/target_NAME.py FOLDER`, of user 65534 (it becomes that user where it is root): it prints "ready" when it is,
and ends at SIGTERM. FOLDER/victims holds files that nobody may be made to open, change or remove: secret, fifo, device. What is not
there is made in FOLDER.
"""

import ctypes
import mmap
import os
import signal
import socket
import sys
import threading
import time

NOTHING, EXEC, EXIT, FORK, STOP = range(5)
EMPTY, FULL, SEALED, READ_ONLY = range(4)
NOBODY = 65534
FOLDER = sys.argv[1] if len(sys.argv) > 1 else "."
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME = "libprobing.so"  # of the agent's memory file
MFD_ALLOW_SEALING = 2


def become_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, which the change of user has taken away


def victim(name):
    return os.path.join(FOLDER, "victims", name)


def named(name):
    """A descriptor that needs no permission on the file."""
    return os.open(victim(name), os.O_PATH)


def a_socket():
    path = os.path.join(FOLDER, f"socket-{os.getpid()}")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    a_socket.kept = server
    return os.open(path, os.O_PATH)


def memory_file(name):
    return os.memfd_create(name, os.MFD_CLOEXEC | MFD_ALLOW_SEALING)


def unlinked():
    """A file of one's own that has no name any more, in memory where it can be."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else FOLDER
    path = os.path.join(folder, f"memfd:{NAME}-{os.getpid()}")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    return fd


def forged_library(name):
    """Mapped, executable, as the lowest of all: rubbish that goes by the name of a library."""
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(os.urandom(64 * 1024))
    with open(path, "rb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        at = libc.mmap(forged_library.at, 64 * 1024, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE | 0x10, file.fileno(), 0)
        if at != forged_library.at:
            sys.exit("needs an address: mmap refuses the lowest ones")
        forged_library.at += 64 * 1024


forged_library.at = 0x100000


def liar():
    build = os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build"))
    return ctypes.CDLL(os.path.join(build, "tests", "targets", "liar.so"))


def main_thread_waits():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    threading.Thread(target=end_at_sigterm, daemon=True).start()


def end_at_sigterm():
    signal.sigwait([signal.SIGTERM])
    os._exit(0)


def lie(answer=-1, number=-1, exchange=-1, kind=EMPTY, act=NOTHING, nth=0, program=None, args=(), by_leader=False):
    """Until SIGTERM. `by_leader`: it is the main thread that acts."""
    become_nobody()
    native = liar()
    native.liar_answer(answer, number, exchange, kind)
    if program:
        lie.kept = (ctypes.c_char_p * (len(args) + 1))(*map(os.fsencode, args), None)
        lie.program = os.fsencode(program)
        native.liar_act(act, nth, lie.program, lie.kept)
    else:
        native.liar_act(act, nth, None, None)
    main_thread_waits()
    threading.Thread(target=wait, daemon=True).start()
    error = native.liar_begin(0 if by_leader else 1)
    if error:
        sys.exit(f"needs seccomp: {os.strerror(error)}")
    print("ready", flush=True)
    native.liar_arm()
    if by_leader:
        native.liar_serve()
    wait()


def wait():
    while True:
        time.sleep(1000)


def begin_another(**lies):
    """Begins another program, at a call of its injector that differs from one process to the next. That one does not lie any more."""
    program = [sys.executable, "-c", "import signal; signal.pause()"]
    become_nobody()
    if not os.access(sys.executable, os.X_OK):
        program = ["/bin/sleep", "1000"]
    lie(act=EXEC, nth=int(os.environ.get("LIAR_NTH", os.getpid() % 7 + 1)), program=program[0], args=program, **lies)
