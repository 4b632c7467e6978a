# SPDX-License-Identifier: Apache-2.0
"""A job whose main thread never releases the GIL in a C call is shown like any other, and promptly."""

import os

import pytest

HOG = """
import ctypes, os, sys, threading, time
hog = ctypes.PyDLL(sys.argv[1])
counter, stop = ctypes.c_uint64(0), ctypes.c_int(0)

def wait_for_gil():
    while True:
        time.sleep(0.001)

def hold_gil():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    hog.gilhog_spin(ctypes.byref(counter), ctypes.byref(stop))

threading.Thread(target=wait_for_gil, name="starving", daemon=True).start()
hold_gil()
"""

# A person counts to one; a test machine that runs other things as well may take some of them.
PROMPT_SECONDS = 3.0


@pytest.fixture
def gilhog(target, build_dir):
    library = os.path.join(build_dir, "tests", "targets", "gilhog.so")
    if not os.path.exists(library):
        pytest.fail(f"{library} is not built")
    return target(HOG, library, name="hog.py")


def test_everything_answers(gilhog, probing, probing_top, ptrace, wait_until):
    pid = str(gilhog.pid)
    inject = probing(pid, "inject", "--json").ok()
    assert inject.json()["already"] is False
    listed = probing("list", "--json").ok()
    assert {p["pid"]: p for p in listed.json()["processes"]}[gilhog.pid]["agent"] is True

    def starves():
        """It wakes every few milliseconds to ask for the GIL, and may be seen while it does."""
        done = probing(pid, "backtrace", "--json").ok()
        return done if next(t for t in done.json()["threads"] if t["name"] == "starving")["gil"] == "waiting" else None
    backtrace = wait_until(starves, 30, "a thread that waits for the GIL")
    status = probing(pid, "status", "--json").ok()
    assert status.json()["agent_version"]
    once = probing_top("--export", "json", "--once", pid).ok()
    for result in (inject, listed, backtrace, status, once):
        assert result.seconds < PROMPT_SECONDS, result

    document = backtrace.json()
    threads = {t["name"]: t for t in document["threads"]}
    main, starving = threads["MainThread"], threads["starving"]
    assert document["gil_holder_tid"] == gilhog.pid
    assert main["gil"] == "held" and main["state"] == "R"
    assert [f["func"] for f in main["frames"]] == ["hold_gil", "<module>"]
    assert main["frames"][0]["line"] == 12 and main["frames"][0]["file"] == gilhog.script
    assert starving["cpu_pct"] < 20  # to ask takes next to no time
    assert starving["frames"][0]["func"] == "wait_for_gil" and starving["frames"][0]["line"] == 8

    def on_cpu():  # where there are more busy threads than CPUs, it may not have had one between two looks
        threads = probing(pid, "backtrace", "--json").ok().json()["threads"]
        return next(t for t in threads if t["name"] == "MainThread")["on_cpu"]

    wait_until(on_cpu, 30, "the holder to be on a CPU")

    assert probing(pid, "eject").ok().seconds < 2 * PROMPT_SECONDS
    assert [n for n in gilhog.thread_names().values() if n.startswith("probing")] == []
    assert gilhog.state() == "R"
