# SPDX-License-Identifier: Apache-2.0
"""The sampler of known.so, for jobs that are sampled from within: start(library, hz, mode), stop() -> counters."""

import ctypes

FIELDS = ("samples", "exact", "torn", "retried", "unknown_frames", "read_errors", "ticks", "sent", "late", "refused",
          "restarted", "eintr", "handled", "handler_ns", "cpu_ns", "cut")


class Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in FIELDS]


class Sampling:
    def __init__(self, library, hz, mode):
        self.library = ctypes.CDLL(library)
        self.library.known_profile_ticks.restype = self.library.known_profile_refused.restype = ctypes.c_uint64
        self.library.known_profile_start.argtypes = [ctypes.c_double, ctypes.c_char_p]
        if self.library.known_profile_start(hz, mode.encode()) != 0:
            raise RuntimeError("the sampler did not start")

    def ticks(self):
        return self.library.known_profile_ticks()

    def refused(self):
        return self.library.known_profile_refused()

    def stop(self):
        result = Result()
        self.library.known_profile_stop(ctypes.byref(result))
        return {name: getattr(result, name) for name in FIELDS}
