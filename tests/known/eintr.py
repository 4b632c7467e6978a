# SPDX-License-Identifier: Apache-2.0
"""Blocking calls under a sampler: eintr.py KNOWN_LIBRARY EINTR_LIBRARY HZ SECONDS MODE prints what was interrupted, as JSON."""

import ctypes
import json
import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sampling  # noqa: E402


class Count(ctypes.Structure):
    _fields_ = [("calls", ctypes.c_long), ("interrupted", ctypes.c_long)]


def main():
    known, library, hz, seconds, mode = sys.argv[1:]
    calls = ctypes.CDLL(library)
    calls.eintr_name.restype = ctypes.c_char_p
    calls.eintr_run.argtypes = [ctypes.c_int, ctypes.c_double, ctypes.c_void_p]
    counts, threads = {}, []
    which = 0
    while calls.eintr_name(which):
        count = counts[calls.eintr_name(which).decode()] = Count()
        threads.append(threading.Thread(target=calls.eintr_run, args=(which, float(seconds), ctypes.byref(count))))
        which += 1
    sampler = sampling.Sampling(known, float(hz), mode) if mode != "none" else None
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {name: {"calls": c.calls, "interrupted": c.interrupted} for name, c in counts.items()}
    print(json.dumps({"calls": told, "sampler": sampler.stop() if sampler else None}))


main()
