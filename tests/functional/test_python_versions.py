# SPDX-License-Identifier: Apache-2.0
"""Every command on a job of every Python: found, attached to, shown, sampled by its own running threads, left alone."""

import re

from conftest import is_free_threaded
from known_job import BEGINNING

JOB = BEGINNING + """
threading.Thread(target=doze, name="dozing", daemon=True).start()
threading.Thread(target=work, name="working", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
work()
"""

ROOTS = {"MainThread": ["<module>", "work", "spin"], "working": ["_bootstrap", "_bootstrap_inner", "run", "work", "spin"],
         "dozing": ["_bootstrap", "_bootstrap_inner", "run", "doze"]}


def plain(func):
    """Without its class: that is part of the name from 3.11 on."""
    return func.rpartition(".")[2]


def test_every_command(each_python, target, probing, probing_top, ptrace, wait_until):
    job = target(JOB, python=each_python, name="whole_way.py")
    pid, free = str(job.pid), is_free_threaded(each_python)
    listed = {p["pid"]: p for p in probing("list", "--json").ok().json()["processes"]}
    assert listed[job.pid]["agent"] is False and "whole_way.py" in listed[job.pid]["cmdline"]
    wait_until(lambda: probing(pid, "inject").status == 0, 40, "the agent")  # a busy machine may need more than one try

    def whole():
        """A look at which every running thread got a CPU in time to answer."""
        document = probing(pid, "backtrace", "--json").ok().json()
        return None if any(t["torn"] for t in document["threads"]) else document

    document = wait_until(whole, 40, "a whole look")
    assert re.match(r"3\.\d+\.\d+", document["target"]["python"])
    assert document["target"]["python"].endswith("t") is free
    threads = {t["name"]: t for t in document["threads"]}
    assert set(threads) == set(ROOTS)
    for name, expected in ROOTS.items():
        frames = threads[name]["frames"]
        assert [plain(f["func"]) for f in frames][::-1] == expected, threads[name]
        assert frames[0]["file"] == (job.script if name != "dozing" else frames[0]["file"])
    assert threads["MainThread"]["frames"][0]["line"] in (5, 6, 7)
    assert [f["line"] for f in threads["MainThread"]["frames"][1:]] == [10, 19]
    if free:
        assert document["gil_holder_tid"] == 0 and {t["gil"] for t in threads.values()} == {"none"}
    assert document["gil_enabled"] is not free
    text = probing(pid, "backtrace").ok().stdout
    assert (", no GIL" in text) is free and "    work (" in text
    assert "self: Thread = <threading.Thread object" in probing(pid, "backtrace", "--locals").ok().stdout

    folded = probing_top("--export", "folded", "--duration", "1s", "--threads", pid).ok().stdout
    stacks = {}
    for line in folded.splitlines():
        thread, *frames = line.rpartition(" ")[0].split(";")
        name = re.fullmatch(r"(?:thread )?(.+) \(\d+\)", thread).group(1)
        stacks.setdefault(name, set()).add(tuple(plain(f.rpartition(" (")[0]) for f in frames))
    assert {name: sorted(found) for name, found in stacks.items()} == {name: [tuple(f)] for name, f in ROOTS.items()}

    status = probing(pid, "status", "--json").ok().json()
    assert status["note"] is None and status["python_untested"] is False
    # torn: on a busy machine what a thread did between two looks in the first moments, before it has its timer
    assert status["sampler"]["exact"] > 0 and status["sampler"]["torn"] <= status["sampler"]["samples"] / 5
    probing(pid, "eject").ok()
    assert job.alive()
