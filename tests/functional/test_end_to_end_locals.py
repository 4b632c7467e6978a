# SPDX-License-Identifier: Apache-2.0
"""Locals on the way a person takes: verbs, exports and the screen, also when the GIL is never released; and only when asked for."""

import os

import pytest

from agent_wire import Client, threads_of
from test_tui_tmux import screen  # noqa: F401 (a fixture)
from test_end_to_end_gil import PROMPT_SECONDS, gilhog  # noqa: F401 (a fixture)

JOB = r'''
import os, threading, time

def worker(batch, scale):
    label = "größe '1'"
    time.sleep(3600)

threading.Thread(target=worker, args=([1, 2, 3], 0.5), name="worker", daemon=True).start()

def main(secret):
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

main("hunter2")
'''


def by_name(document):
    return {t["name"]: t for t in document["threads"]}


@pytest.mark.parametrize("how", [[], ["--no-inject"]])
def test_backtrace(target, probing, ptrace, how):
    job = target(JOB)
    document = probing(job.pid, "backtrace", "--locals", "--json", *how).ok().json()
    frame = by_name(document)["worker"]["frames"][0]
    assert frame["locals"] == {
        "batch": {"type": "list", "repr": "[1, 2, 3]", "kind": "argument"},
        "scale": {"type": "float", "repr": "0.5", "kind": "argument"},
        "label": {"type": "str", "repr": "\"größe '1'\"", "kind": "variable"},
    }
    assert frame["locals_truncated"] is False
    text = probing(job.pid, "backtrace", "--locals", *how).ok().stdout
    assert "    worker (" in text and "        batch: list = [1, 2, 3]\n" in text
    assert "        label: str = \"größe '1'\"\n" in text


def test_values_are_shown_on_request_only(target, probing, probing_top, ptrace):
    job = target(JOB)
    for result in (probing(job.pid, "backtrace"), probing(job.pid, "backtrace", "--json"), probing(job.pid, "status", "--json"),
                   probing_top("--export", "json", "--once", str(job.pid)),
                   probing_top("--export", "txt", "--once", str(job.pid))):
        assert "hunter2" not in result.ok().stdout and "locals" not in result.stdout
    document = probing_top("--export", "json", "--once", "--locals", str(job.pid)).ok().json()
    assert by_name(document)["MainThread"]["frames"][0]["locals"]["secret"]["repr"] == "'hunter2'"


def test_bad_usage(target, probing_top):
    job = target(JOB)
    for arguments in (["--locals", str(job.pid)], ["--export", "folded", "--locals", str(job.pid)]):
        result = probing_top(*arguments)
        assert result.status == 2 and "--locals" in result.stderr and len(result.stderr.splitlines()) == 1


def test_with_the_gil_held_for_ever(gilhog, probing, ptrace):  # noqa: F811
    probing(gilhog.pid, "inject").ok()
    result = probing(gilhog.pid, "backtrace", "--locals", "--json").ok()
    assert result.seconds < PROMPT_SECONDS
    threads = by_name(result.json())
    assert threads["MainThread"]["gil"] == "held"
    module = threads["MainThread"]["frames"][-1]["locals"]
    assert module["counter"]["type"] == "c_ulong" and module["stop"]["type"] == "c_int"
    assert threads["starving"]["frames"][0]["locals"] == {}
    assert threads["starving"]["frames"][1]["locals"]["self"]["repr"] == "<threading.Thread object>"


def endpoint_of(probing, pid):
    return probing(pid, "inject", "--json").ok().json()["endpoint"]


def test_the_stream_never_has_them(target, probing, ptrace):
    job = target(JOB)
    with Client(endpoint_of(probing, job.pid)) as client, Client(endpoint_of(probing, job.pid)) as other:
        other.subscribe("threads", 30)
        assert "locals" not in client.call("threads")
        assert "locals" not in client.call("threads", {"locals": False})
        for _ in range(20):
            everything = client.call("threads", {"locals": True})
        assert len(threads_of(everything)) >= 2 and everything["locals"]["values"]["name"]
        one = client.call("threads", {"locals": True, "tid": job.pid})
        assert [t["tid"] for t in threads_of(one)] == [job.pid]
        strings = one["strings"]
        names = [strings[i] for i in one["locals"]["values"]["name"]]
        assert names == ["secret"] and one["locals"]["frames"]["thread"][0] == 0
        assert threads_of(client.call("threads", {"locals": True, "tid": 1})) == []
        assert [t["tid"] for t in threads_of(client.call("threads", {"tid": job.pid}))] == [job.pid]
        for _ in range(20):
            assert "locals" not in other.notification("threads")


@pytest.mark.parametrize("params", [{"locals": 1}, {"locals": "yes"}, {"tid": "x"}, {"tid": -5}, {"tid": 1.5}])
def test_bad_params_are_refused(target, probing, ptrace, params):
    job = target(JOB)
    with Client(endpoint_of(probing, job.pid)) as client:
        with pytest.raises(Exception) as refused:
            client.call("threads", params)
        assert next(iter(params)) in str(refused.value)
        assert threads_of(client.call("threads"))


@pytest.mark.parametrize("how", ["", "--no-inject"])
def test_the_screen(screen, target, probing_top, ptrace, how):  # noqa: F811
    job = target(JOB)
    s = screen(100, 30)
    s.shell(f"{probing_top.path} --screen threads {how} {job.pid}; echo status=$?")
    s.wait_for("Stack of MainThread")
    assert "hunter2" not in s.text()
    s.type("v")
    s.wait_for("Locals of main, line")
    s.wait_for("'hunter2'")
    s.type(")")
    s.wait_for("Locals of worker, line")
    s.wait_for("[1, 2, 3]")
    s.type("v")
    s.wait_gone("Locals of")
    s.type("q")
    s.wait_for("status=0")
