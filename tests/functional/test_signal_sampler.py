# SPDX-License-Identifier: Apache-2.0
"""Exact samples: what is shown has been, and the job does not notice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from agent_job import job
from agent_wire import Client, Profile, threads_of
from conftest import ROOT, run_command, wait_until

__all__ = ["job"]

URG = 1 << (signal.SIGURG - 1)


def mask_of(pid, field, tid=None):
    with open(f"/proc/{pid}/task/{tid or pid}/status", encoding="utf-8") as status:
        return int(next(line.split()[1] for line in status if line.startswith(field + ":")), 16)


def catches(pid):
    return bool(mask_of(pid, "SigCgt") & URG)


def sample(client, rate_hz, count, mode="exact", thread="hot"):
    """At least `count` samples of one thread."""
    client.call("subscribe", {"stream": "samples", "rate_hz": float(rate_hz), "mode": mode})
    profile = Profile()
    deadline = time.monotonic() + 40
    while sum(s["thread"] == thread for s in profile.samples) < count and time.monotonic() < deadline:
        profile.feed(client.notification("samples"))
    samples = [s for s in profile.samples if s["thread"] == thread]
    assert len(samples) >= count
    return samples


def stop(client):
    client.call("unsubscribe", {"stream": "samples"})
    client.notifications.clear()  # the answer comes behind the last samples


# --- the program whose stacks are known -------------------------------------------------------------------------

@pytest.mark.timeout(120)
@pytest.mark.parametrize("mode, samples", [("exact", "20000"), pytest.param("timed", "1000", marks=pytest.mark.long)])
def test_no_stack_is_impossible(each_python, build_dir, mode, samples):
    done = run_command([sys.executable, os.path.join(ROOT, "bench", "known_answer.py"), "--build", build_dir, "--samples",
                        os.environ.get("PROBING_KNOWN_SAMPLES", samples), "--mode", mode, "--seconds", "30",
                        "--python", each_python], timeout=100)
    result = done.json()
    assert result["samples"] >= 100  # of those that were wanted; a machine that does other things too takes fewer
    assert result["impossible"] == 0 and result["wrong_lines"] == 0, result["examples"]
    assert result["torn"] == 0
    assert result["with_unknown"] <= result["samples"] / 50


def test_the_classifier_sees_what_is_wrong():
    sys.path.insert(0, os.path.join(ROOT, "tests", "known"))
    import classify
    known = classify.Classifier()
    lines = {}
    for number, names in known.program.marks.items():
        for name in names:
            lines.setdefault(name, number)
    path = classify.PROGRAM
    def stack(*names):
        return [(name, path, lines[names[i + 1]] if i + 1 < len(names) else min(known.program.lines[name] or [1]))
                for i, name in enumerate(names)]
    good = stack("<module>", "loop", "do_chains", "a1", "a2", "a3", "a4")
    assert known.verdict(good) == ""
    assert known.verdict(good[1:]).startswith("impossible")
    assert known.verdict(good[:4] + good[5:]).startswith("impossible")
    assert known.verdict(good[:-1] + stack("b4")).startswith("impossible")
    assert known.verdict([(f, p, line + 1 if f == "a2" else line) for f, p, line in good]).startswith("line")
    assert known.verdict(good[:-1] + [("a4", path, 9999)]).startswith("line")
    assert known.verdict([]).startswith("impossible")


# --- blocking calls ---------------------------------------------------------------------------------------------

@pytest.mark.timeout(150)
@pytest.mark.parametrize("hz, mode", [("1000", "exact"), ("250", "timed")])
def test_no_call_is_interrupted(any_python, build_dir, hz, mode):
    seconds = os.environ.get("PROBING_EINTR_SECONDS", "4")
    done = run_command([any_python, os.path.join(ROOT, "tests", "known", "eintr.py"),
                        os.path.join(build_dir, "tests", "known", "known.so"),
                        os.path.join(build_dir, "tests", "targets", "eintr.so"), hz, seconds, mode], timeout=140)
    result = done.ok().json()
    assert all(count["calls"] > 100 for count in result["calls"].values())
    assert {name for name, count in result["calls"].items() if count["interrupted"]} == set(), result
    assert result["sampler"]["sent"] > (500 if mode == "exact" else 20)  # most of these threads hardly use a CPU
    assert result["sampler"]["eintr"] == 0
    # threads that run for a moment now and then: a look seldom finds them running, to give them their timer
    assert result["sampler"]["torn"] <= result["sampler"]["samples"] / (500 if mode == "exact" else 10)


# --- the signal -------------------------------------------------------------------------------------------------

def test_running_threads_are_asked(job, each_python):
    j = job(each_python)
    j.do("spawn('hot', hot_loop)")
    assert not catches(j.pid)
    with Client(j.start()) as client:
        samples = sample(client, 300, 150)
        status = client.call("status")
        assert catches(j.pid)
        stop(client)
        wait_until(lambda: not catches(j.pid), what="the handler to go")
        after = client.call("status")
    assert status["sampling"] == "exact" and after["sampling"] is None
    assert status["exact"] > 0 and status["signals_sent"] >= status["exact"]
    assert status["us_per_signal"] > 0 and status["note"] is None
    assert not any(s["torn"] for s in samples)
    assert {s["frames"][-1].rpartition(".")[2] for s in samples} == {"_bootstrap"}
    assert {s["frames"][0].rpartition(".")[2] for s in samples} <= {"hot_loop", "hot_inner"}


def test_snapshots_of_running_threads_are_whole(job, each_python):
    j = job(each_python)
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        once = {t["name"]: t for t in threads_of(client.call("threads"))}["hot"]
        assert not once["torn"] and once["frames"]
        wait_until(lambda: not catches(j.pid), what="the handler to go after one look")
        client.subscribe("threads", 30)
        looks = [{t["name"]: t for t in threads_of(client.notification("threads"))}["hot"] for _ in range(40)]
        status = client.call("status")
        client.call("unsubscribe", {"stream": "threads"})
        wait_until(lambda: not catches(j.pid), what="the handler to go")
    assert status["signals_sent"] > 10
    assert sum(look["torn"] for look in looks) <= 1  # it may wait for a CPU for longer than we wait for it
    for look in looks:
        assert look["frames"][0]["func"].rpartition(".")[2] in ("hot_loop", "hot_inner")
        assert look["frames"][-1]["func"].rpartition(".")[2] == "_bootstrap"


def test_one_gentle_look(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        client.call("threads", {"mode": "gentle"})
        assert client.call("status")["signals_sent"] == 0


def test_gentle_sends_nothing(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        sample(client, 200, 60, mode="gentle")
        status = client.call("status")
        assert not catches(j.pid)
        assert status["sampling"] == "gentle" and status["signals_sent"] == 0 and status["exact"] == 0
        # One who wants no signals is heard while another wants exact samples.
        with Client(j.do("start()")[2]) as other:
            other.call("subscribe", {"stream": "samples", "rate_hz": 100.0})
            stop(client)
            sample(client, 200, 60, mode="gentle")
            before = client.call("status")["signals_sent"]
            for _ in range(4):
                client.notification("samples")
            assert client.call("status")["signals_sent"] == before
        stop(client)
        sample(client, 200, 60)
        assert client.call("status")["signals_sent"] > 0


def test_a_job_that_uses_the_signal_keeps_it(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    got = "[__import__('signal').signal(__import__('signal').SIGURG, lambda *a: events.append('urg')), 1][1]"
    with Client(j.start()) as client:
        assert j.do(got) == 1
        sample(client, 100, 20)
        status = client.call("status")
        assert status["sampling"] == "gentle" and "SIGURG" in status["note"]
        assert status["signals_sent"] == 0
        os.kill(j.pid, signal.SIGURG)
        assert wait_until(lambda: j.do("events.count('urg')"), what="the job's own handler") == 1
        stop(client)
    assert catches(j.pid)


def test_a_job_that_takes_the_signal_is_noticed(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        sample(client, 100, 20)
        assert client.call("status")["sampling"] == "exact"
        j.do("[__import__('signal').signal(__import__('signal').SIGURG, lambda *a: events.append('urg')), 1][1]")
        wait_until(lambda: client.call("status")["sampling"] == "gentle", what="the agent to notice")
        assert "SIGURG" in client.call("status")["note"]
        stop(client)
        os.kill(j.pid, signal.SIGURG)
        assert wait_until(lambda: j.do("events.count('urg')"), what="the job's own handler") >= 1
    assert catches(j.pid)


def test_children_have_no_handler(job):
    j = job()
    j.do("spawn('hot', hot_loop)")
    with Client(j.start()) as client:
        sample(client, 100, 20)
        assert catches(j.pid)
        child = j.do("fork_child()")["pid"]
        assert not catches(child)
        os.kill(child, signal.SIGKILL)


def test_threads_that_block_it_are_not_asked(job):
    j = job()
    masked = ("(__import__('signal').pthread_sigmask(__import__('signal').SIG_BLOCK, __import__('signal').valid_signals()), "
              "hot_loop())")
    j.do(f"spawn('hot', lambda: {masked})")
    wait_until(lambda: any(mask_of(j.pid, "SigBlk", tid) & URG for tid in os.listdir(f"/proc/{j.pid}/task")),
               what="the thread to block it")
    with Client(j.start()) as client:
        sample(client, 100, 40)
        status = client.call("status")
        assert status["signals_refused"] > 0
        tid = next(t["tid"] for t in threads_of(client.call("threads")) if t["name"] == "hot")
        assert not mask_of(j.pid, "SigPnd", tid) & URG
        stop(client)
    os.kill(j.pid, 0)


EXEC_JOB = r'''
import ctypes, os, sys, time
class Start(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("region", ctypes.c_uint64),
                ("region_size", ctypes.c_uint64), ("thread", ctypes.c_uint64), ("fd", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("error", ctypes.c_char * 256), ("endpoint", ctypes.c_char * 128)]
sys.path.insert(0, os.environ["KNOWN"])
import sampling
sampler = sampling.Sampling(os.environ["LIBRARY"], 2000.0, "exact")
until = time.monotonic() + 0.05
while time.monotonic() < until:
    pass
left = int(sys.argv[1])
if left == 0:
    print("survived", flush=True)
    os._exit(0)
os.execv(sys.executable, [sys.executable, sys.argv[0], str(left - 1)])
'''


def test_a_job_that_execs_while_it_is_sampled_lives(any_python, build_dir, tmp_path):
    """A signal that is pending when a new program begins would meet its default action."""
    script = tmp_path / "execs.py"
    script.write_text(EXEC_JOB)
    done = subprocess.run([any_python, str(script), "25"], capture_output=True, text=True, timeout=80,
                          env=dict(os.environ, KNOWN=os.path.join(ROOT, "tests", "known"),
                                   LIBRARY=os.path.join(build_dir, "tests", "known", "known.so")))
    assert done.returncode == 0, done
    assert done.stdout == "survived\n"


GREENLET_JOB = r'''
import json, os, sys, threading, time
import greenlet
sys.path.insert(0, os.environ["KNOWN"])
import sampling
def leaf(): pass
def ping():
    while True:
        for i in range(50): leaf()
        second.switch()
def pong():
    while True:
        for i in range(50): leaf()
        first.switch()
first, second = greenlet.greenlet(ping), greenlet.greenlet(pong)
sampler = sampling.Sampling(os.environ["LIBRARY"], 1000.0, "exact")
def end():
    until = time.monotonic() + 20
    while sampler.ticks() < 800 and time.monotonic() < until: time.sleep(0.02)
    print(json.dumps(sampler.stop()), flush=True)
    os._exit(0)
threading.Thread(target=end).start()
first.switch()
'''


def greenlets_for(python):
    """Where make test has put the module for this Python (tools/greenlets.sh)."""
    minor = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
    return os.path.join(os.environ.get("PROBING_TEST_GREENLETS", "/nonexistent"), minor.stdout.strip())


def test_greenlets(each_python, build_dir):
    """They exchange the frames of a thread under its feet."""
    env = dict(os.environ, PYTHONPATH=greenlets_for(each_python))
    if subprocess.run([each_python, "-c", "import greenlet"], capture_output=True, env=env).returncode != 0:
        pytest.skip("needs greenlet: this Python has no such module")
    done = run_command([each_python, "-c", GREENLET_JOB],
                       env={"PYTHONPATH": env["PYTHONPATH"], "KNOWN": os.path.join(ROOT, "tests", "known"),
                            "LIBRARY": os.path.join(build_dir, "tests", "known", "known.so")})
    result = done.ok().json()
    assert result["exact"] > 10
    # A thread that waits for a CPU for longer than the sampler waits for it is marked torn.
    assert result["torn"] <= result["samples"] / 5 and result["read_errors"] <= 2


def test_the_mode_can_be_chosen_for_an_export(target, probing_top, probing):
    t = target("import os\ndef hot():\n    while True:\n        sum(range(50))\n"
               "os.write(int(os.environ['READY_FD']), b'ready\\n')\nhot()\n")
    # A thread that has to wait for its CPU may not be caught at the first try; then the export would read from outside.
    wait_until(lambda: probing(t.pid, "inject").status == 0, 40, what="the agent")
    for option, sent in ((["--gentle"], False), ([], True)):
        before = 0 if option else json.loads(probing(t.pid, "status", "--json").ok().stdout)["sampler"]["signals_sent"]
        out = probing_top("--export", "folded", "--duration", "1s", *option, t.pid).ok().stdout
        assert "hot (" in out
        after = json.loads(probing(t.pid, "status", "--json").ok().stdout)["sampler"]["signals_sent"]
        assert (after > before) == sent
