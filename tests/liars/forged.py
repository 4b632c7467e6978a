# SPDX-License-Identifier: Apache-2.0
"""Interpreters that lie about themselves: what the targets target_forged_*.py have in common.

Structures that CPython has never made are written into this process and hung into what it has made, at places where it does not come by
itself: at the end of its lists, and before the frames of threads that never come back from a call. So Python works on as before, while
whoever follows the links from outside comes into what was made up. Where everything lies is read from src/pystack/offsets_table.c, the
row of the Python that this is.

A target has several forms; it goes from one to the next, or has the one that LIAR_FORM names. Pages that never answer there are where
userfaultfd is allowed: as root, before it becomes another user.
"""

import ctypes
import fcntl
import itertools
import os
import re
import struct
import sys
import threading
import time

from lying import NOBODY, ROOT, main_thread_waits

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE = 4096
FORM_S = 0.15
ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[31m\x9b5n\r\nforged\u202egnp\u2066\x00\x08"
HUGE = (1 << 30, (1 << 30) + 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def row():
    """Offsets of this Python, by their names in struct pystack_offsets."""
    with open(os.path.join(ROOT, "src", "pystack", "offsets_table.c"), encoding="ascii") as file:
        for item in re.findall(r"\{/\* CPython .*?\}", file.read(), re.S):
            found = {name: int(value) for name, value in re.findall(r"\.(\w+) = (-?\d+)", item)}
            if (found["major"], found["minor"]) == sys.version_info[:2] and not found.get("free_threaded"):
                return found
    sys.exit("needs a Python whose offsets are known")


O = row()
if O["minor"] < 11:
    sys.exit("needs Python 3.11 or later")
RUNTIME = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))


def word(addr):
    return ctypes.c_uint64.from_address(addr)


def put(addr, name, value, kind=ctypes.c_uint64):
    kind.from_address(addr + O[name]).value = value % (1 << 8 * ctypes.sizeof(kind))


def get(addr, name):
    return word(addr + O[name]).value


# ---- memory ----

def mapped(size, protection=3, flags=0x4022, fd=-1):
    """Memory of our own that is there only where it is touched. Never given back."""
    at = LIBC.mmap(None, size, protection, flags, fd, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        sys.exit("needs memory")
    return at


class Room:
    at, end = 0, 0


def take(size):
    """Zeroed bytes in a row; never given back."""
    size = (size + 15) & ~15
    if Room.end - Room.at < size:
        Room.at = mapped(max(size, 1 << 20))
        Room.end = Room.at + max(size, 1 << 20)
    Room.at += size
    return Room.at - size


def unmapped():
    at = mapped(16 * PAGE)
    LIBC.munmap(at, 16 * PAGE)
    return at + 8 * PAGE


def beyond_end():
    """A page of a file behind its end: whoever touches it gets SIGBUS."""
    fd = os.memfd_create("forged")
    os.ftruncate(fd, 1)
    return mapped(4 * PAGE, 3, 1, fd) + 2 * PAGE


def device():
    """Memory that is a device's for the kernel: the clocks that it shares with every process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if line.rstrip().endswith("[vvar]"):
                return int(line.split("-")[0], 16)
    return unmapped()


def edge():
    """The last word before memory that is not there."""
    at = mapped(2 * PAGE)
    LIBC.munmap(at + PAGE, PAGE)
    return at + PAGE - 8


def silent():
    """A page that nobody answers for: whoever reads it waits without end. None where the kernel does not let us."""
    fd = LIBC.syscall(323, os.O_CLOEXEC)  # userfaultfd
    if fd < 0:
        return None
    at = mapped(16 * PAGE)
    try:
        fcntl.ioctl(fd, 0xC018AA3F, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))  # UFFDIO_API
        fcntl.ioctl(fd, 0xC020AA00, bytearray(struct.pack("QQQQ", at, 16 * PAGE, 1, 0)))  # UFFDIO_REGISTER, those that are missing
    except OSError:
        return None
    return at + 4 * PAGE


def places():
    """Addresses that lead nowhere."""
    return [unmapped(), mapped(PAGE, 0), beyond_end(), device(), edge(), 8, 1 << 47, (1 << 64) - 4096, RUNTIME + 1, mapped(1 << 20)]


# ---- objects ----

def made(kind, size):
    """The beginning of an object that lives."""
    at = take(size + 64)
    word(at).value = 1 << 20
    word(at + O["object_type"]).value = id(kind)
    return at


def text(what, length=None, kind=1, compact=True, ascii_only=True, extra=0):
    """A str of these bytes; what it says of itself may be something else."""
    data = what.encode("utf-8", "surrogatepass") if isinstance(what, str) else what
    if isinstance(what, str) and not what.isascii():
        kind, ascii_only, data = 4, False, what.encode("utf-32-le", "surrogatepass")
    at = made(str, O["str_legacy_data"] + len(data) + 64)
    mask = O["str_kind_mask"]
    state = (kind * (mask & -mask)) & mask | (O["str_compact_mask"] if compact else 0) | (O["str_ascii_mask"] if ascii_only else 0)
    put(at, "str_state", state, ctypes.c_uint32)
    put(at, "str_length", len(data) // max(kind, 1) if length is None else length)
    where = at + O["str_ascii_data" if ascii_only else "str_compact_data"]
    ctypes.memmove(where, data, len(data))
    if extra:
        put(at, "str_legacy_data", extra)
    return at


def table(data=b"\x00" * 16, length=None):
    at = made(bytes, O["bytes_data"] + len(data))
    put(at, "var_size", len(data) if length is None else length)
    ctypes.memmove(at + O["bytes_data"], data, len(data))
    return at


def plain():
    return 1


def code(**fields):
    """A code object as that of a small function, but for these fields."""
    size = O["code_bytes"] + len(plain.__code__.co_code) + 64
    at = take(size)
    ctypes.memmove(at, id(plain.__code__), size - 64)
    word(at).value = 1 << 20
    for name, value in fields.items():
        put(at, name, value, ctypes.c_uint32 if name in ("code_firstlineno", "code_nlocalsplus", "code_firsttraceable", "code_flags") else ctypes.c_uint64)
    return at


def frame(of=None, previous=0, owner=0, instr=None, at=None):
    """A frame in the last instruction of a code object."""
    at = at or take(O["frame_size"] + 64 * 8)
    of = id(plain.__code__) if of is None else of
    last = len(plain.__code__.co_code) - 2
    put(at, "frame_code", of)
    put(at, "frame_previous", previous)
    put(at, "frame_instr", of + O["code_bytes"] + last if instr is None else instr)
    put(at, "frame_owner", owner, ctypes.c_uint8)
    return at


def begun_never(previous=0):
    """A frame that stands for no function: it says nothing, and the walk goes on."""
    if O["owner_shim"] != 255:
        return frame(previous=previous, owner=O["owner_shim"])
    of = code(code_firsttraceable=2)
    return frame(of, previous, instr=of + O["code_bytes"] - 2)


def chain(n, last=0, make=frame):
    """`n` frames in a row; the first and the last of them."""
    first = end = make(previous=last)
    for _ in range(n - 1):
        first = make(previous=first)
    return first, end


def quick_chain(n):
    """The same, of very many, by copying."""
    size = (O["frame_size"] + 15) & ~15
    at = take(size * n)
    one = frame()
    pattern = ctypes.string_at(one, O["frame_size"]).ljust(size, b"\0")
    head, tail = pattern[:O["frame_previous"]], pattern[O["frame_previous"] + 8:]
    block = 4096
    for begin in range(0, n, block):
        some = min(block, n - begin)
        ctypes.memmove(at + begin * size, b"".join(head + struct.pack("Q", at + (begin + i + 1) * size) + tail for i in range(some)), some * size)
    put(at + (n - 1) * size, "frame_previous", 0)
    return at


def keys(n, entry=None, log2=None, said=None, general=True):
    """Keys of a dict with `n` times the same entry; `said`: how many it says."""
    index = 3
    width = 24 if general else 16
    at = take(O["keys_indices"] + (1 << index) + width * n)
    for name, value in (("keys_log2_size", 3), ("keys_log2_index_bytes", index if log2 is None else log2), ("keys_kind", 0 if general else 1)):
        ctypes.c_uint8.from_address(at + O.get(name, 8)).value = value
    put(at, "keys_nentries", n if said is None else said)
    if entry:
        key, value = entry
        one = struct.pack("QQQ", 0, key, value) if general else struct.pack("QQ", key, value)
        ctypes.memmove(at + O["keys_indices"] + (1 << index), one * n, width * n)
    return at


def dictionary(of, values=0):
    at = made(dict, O["dict_keys"] + 64)
    put(at, "dict_used", 1 << 30)
    put(at, "dict_keys", of)
    put(at, "dict_values", values)
    return at


# ---- what is there ----

def interpreter():
    """The main one: the last of the list."""
    at = get(RUNTIME, "runtime_interpreters_head")
    while get(at, "interp_next"):
        at = get(at, "interp_next")
    return at


INTERPRETER = interpreter()


def thread_states():
    found = [get(INTERPRETER, "interp_threads_head")]
    while get(found[-1], "tstate_next"):
        found.append(get(found[-1], "tstate_next"))
    return found


OLDEST = thread_states()[-1]


def thread_state(interp=None, previous=0, following=0, ident=0, tid=0, first=0, serial=1 << 40):
    """One that no thread has."""
    at = take(O["tstate_size"] + 2 * PAGE)
    for name, value in (("tstate_interp", INTERPRETER if interp is None else interp), ("tstate_prev", previous), ("tstate_next", following),
                        ("tstate_thread_id", ident), ("tstate_native_thread_id", tid), ("tstate_id", serial)):
        put(at, name, value)
    set_first(at, first)
    return at


def set_first(state, first):
    """The innermost frame of a thread state."""
    if O["frame_style"] == 2:
        put(state, "tstate_frame", first)
        return
    entry = take(64)
    put(entry, "cframe_current_frame", first)
    word(entry + O["cframe_current_frame"] + 8).value = 0
    put(state, "tstate_frame", entry)


def in_a_row(n, make, back=None):
    """`n` thread states that lead from one to the next; the first and the last."""
    states = [make(i) for i in range(n)]
    for before, after in zip(states, states[1:]):
        put(before, "tstate_next", after)
        put(after, "tstate_prev", before)
    if back is not None:
        put(states[-1], "tstate_next", back)
    return states[0], states[-1]


def sleeper():
    """The state of a new thread that stays in C. No signal brings it back."""
    mutex = ctypes.create_string_buffer(64)
    sleeper.kept.append(mutex)
    LIBC.pthread_mutex_lock(mutex)
    known = set(thread_states())
    threading.Thread(target=LIBC.pthread_mutex_lock, args=(mutex,), daemon=True).start()
    while True:
        new = [state for state in thread_states() if state not in known and get(state, "tstate_native_thread_id")]
        if new and in_c(get(new[0], "tstate_native_thread_id")):
            return new[0]
        time.sleep(0.002)


sleeper.kept = []


def in_c(tid):
    """Does it wait for one of those locks?"""
    with open(f"/proc/self/task/{tid}/syscall", encoding="ascii", errors="replace") as file:
        words = file.read().split()
    return words[:1] == ["202"] and any(0 <= int(words[1], 16) - ctypes.addressof(mutex) < 64 for mutex in sleeper.kept)


# ---- the targets ----

def become_nobody():
    """After everything was imported, that lies where they may not read."""
    if os.geteuid() == 0 and not os.environ.get("LIAR_IS_ROOT"):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        LIBC.prctl(4, 1, 0, 0, 0)


def lie(forms):
    """{name: what makes it so, and gives back what takes it back}: one after the other until SIGTERM, or the one of LIAR_FORM. A form that
    is None is not available here."""
    forms = {name: form for name, form in forms.items() if form}
    wanted = os.environ.get("LIAR_FORM")
    if wanted and wanted not in forms:
        sys.exit(f"needs {wanted}: the kernel does not let us, or this Python has none")
    become_nobody()
    main_thread_waits()
    if wanted:
        forms[wanted]()
    else:
        threading.Thread(target=change, args=(forms,), daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(1000)


def change(forms):
    for form in itertools.cycle(forms.values()):
        back = form()
        time.sleep(FORM_S)
        back()


def linking(addr, value):
    """A form: a word, while it lasts, is another."""
    def form():
        kept = word(addr).value
        word(addr).value = value

        def back():
            word(addr).value = kept
        return back
    return form
