# SPDX-License-Identifier: Apache-2.0
"""Jobs that do what a sampler must survive, sampled from within at a rate of their own choice, without the agent's budget."""

import json
import os
import time

from agent_wire import Profile
from conftest import ROOT, run_command

PRELUDE = r'''
import ctypes, json, os, sys, threading, time
sys.path.insert(0, os.environ["KNOWN"])
import sampling
hostile = ctypes.CDLL(os.environ["HOSTILE"])
hostile.hostile_edge.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
hostile.hostile_spin.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
hostile.hostile_refuse.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_bool]
counter, stop = ctypes.c_uint64(), ctypes.c_int()
def sample(hz=1000.0, mode="exact"):
    return sampling.Sampling(os.environ["LIBRARY"], hz, mode)
def tell(sampler, **more):
    print(json.dumps(dict(sampler.stop(), **more)), flush=True)
def until(condition, seconds=20.0):
    """Waits for what the sampler is to have done; whoever reads the counters sees whether it has."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
'''


def hostile_env(build_dir):
    return {"KNOWN": os.path.join(ROOT, "tests", "known"),
            "LIBRARY": os.path.join(build_dir, "tests", "known", "known.so"),
            "HOSTILE": os.path.join(build_dir, "tests", "targets", "hostile.so")}


def run_job(python, build_dir, source, *args, status=0, timeout=60):
    """Runs the job to its end, which must be its own, and returns the JSON of its last line, if any."""
    done = run_command([python, "-c", PRELUDE + source, *args], env=hostile_env(build_dir), timeout=timeout)
    assert done.status == status, done
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


def define_in(job, source):
    """Runs definitions in a job of agent_job.py, for the expressions it is asked to evaluate."""
    assert job.do(f"exec({source!r}, globals())") is None


class Watch:
    """Subscribes to samples, and collects them."""

    def __init__(self, client, rate_hz=100, mode="exact"):
        self.client = client
        self.profile = Profile()
        client.call("subscribe", {"stream": "samples", "rate_hz": float(rate_hz), "mode": mode})

    def until(self, condition, what, seconds=40):
        """Collects until condition() is true."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
            self.profile.feed(self.client.notification("samples"))

    def of(self, thread, count):
        """At least so many samples of the thread, all there are."""
        def found():
            return [s for s in self.profile.samples if s["thread"] == thread]
        self.until(lambda: len(found()) >= count, f"{count} samples of {thread}")
        return found()
