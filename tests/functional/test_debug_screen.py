# SPDX-License-Identifier: Apache-2.0
"""Debuggers begun from probing-top, in a real terminal, on a real job: what is shown, and what becomes of it when probing-top ends."""

import json
import re
import socket

import pytest

from dap_client import DapClient
from left_behind import LEFT
from test_debug import JOB, adapters, counts_on, debugpy_for, free_port, hold_and_leave, line_of, value  # noqa: F401
from test_repl_screen import repl_screen  # noqa: F401

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def job(target, ptrace):
    return target(JOB)


def command(s, text, first=False):
    """From the code, where letters are text; or, behind the first command, from the output."""
    if first:
        s.keys("M-x")
    s.type(text if first else ":" + text)
    s.keys("Enter")


def leave(s):
    """From the output, where the answer of a command is."""
    s.type("Q")
    s.wait_for("status=0")


def test_a_debugger_ends_with_the_screen(repl_screen, job, probing, any_python, debugpy_for, wait_until):  # noqa: F811
    options = " ".join(debugpy_for(any_python))
    port = free_port()
    s = repl_screen(job.pid, columns=120, rows=40)
    command(s, f"debug {port} --exposed {options}", first=True)
    s.wait_for(f"debugpy listens on 127.0.0.1:{port}, no client is attached")
    s.wait_for('"name": "probing: attach to')
    hold_and_leave(port, job.script, line_of(job.script, "# held here"), "step")
    assert len(adapters(port)) == 1
    s.type("B")  # to end it nobody is asked
    s.wait_for("debugpy has ended")
    assert not adapters(port)
    command(s, f"debug {port} --exposed {options}")
    wait_until(lambda: len(adapters(port)) == 1, 60, "debugpy to listen again")
    wait_until(lambda: f":{port}, no client" in s.text().rpartition("debugpy has ended")[2], 60, "the answer")
    leave(s)
    wait_until(lambda: not adapters(port), 60, "debugpy to end with the screen")
    wait_until(lambda: value(probing, job, LEFT) == [], 60, "nothing to be left")
    counts_on(probing, job, wait_until)


def test_a_debugger_that_is_kept_or_used(repl_screen, job, probing, any_python, debugpy_for, wait_until):  # noqa: F811
    options = " ".join(debugpy_for(any_python))
    port = free_port()
    s = repl_screen(job.pid, columns=120, rows=40)
    command(s, f"debug {port} --keep --exposed {options}", first=True)
    s.wait_for("no client is attached")
    leave(s)
    assert f"127.0.0.1:{port}, no client" in probing(str(job.pid), "debug", "--status").ok().stdout
    probing(str(job.pid), "debug", "--off").ok()
    s = repl_screen(job.pid, columns=120, rows=40)
    command(s, f"debug {port} --exposed {options}", first=True)
    s.wait_for("no client is attached")
    client = DapClient(port)
    client.attach({job.script: [line_of(job.script, "# held here")]})
    stopped = client.event("stopped")
    leave(s)
    assert client.locals(stopped["threadId"])[0] == "step", "whoever is there is not cut off"
    client.ask("disconnect", terminateDebuggee=False)
    client.close()
    assert "debugpy has ended" in probing(str(job.pid), "debug", "--off").ok().stdout


def said(probing, job, verb):
    """What a verb tells of how it stands; whatever is asked by the screen at the same time comes first."""
    return probing(str(job.pid), verb, "--status", timeout=60).stdout


def pdb(address, token):
    s = socket.create_connection(address, timeout=60)
    s.sendall(token.encode() + b"\n")
    text = b""
    while b"(Pdb) " not in text:
        more = s.recv(4096)
        assert more, text
        text += more
    return s, text.decode()


def test_pause_and_catch(repl_screen, job, probing, wait_until):  # noqa: F811
    s = repl_screen(job.pid, columns=100, rows=30)
    command(s, "pause-job", first=True)
    s.wait_for("threads are held; a debugger is at")
    port = int(re.search(r"nc 127\.0\.0\.1 (\d+)", s.text()).group(1))
    token = re.search(r"^.*\b([0-9a-f]{48})\b", s.text(), re.M).group(1)
    connection, banner = pdb(("127.0.0.1", port), token)
    assert "is held" in banner
    connection.close()
    wait_until(lambda: "not paused" in said(probing, job, "pause"), 60, "it to go on")
    counts_on(probing, job, wait_until)
    command(s, "catch")
    s.wait_for("an uncaught exception")
    command(s, "pause-job")
    wait_until(lambda: "paused:" in said(probing, job, "pause"), 60, "it to be held again")
    leave(s)  # both end with it
    wait_until(lambda: "not paused" in said(probing, job, "pause"), 60, "it to go on")
    wait_until(lambda: "are not caught" in said(probing, job, "catch"), 60, "no hook to stay")
    counts_on(probing, job, wait_until)


RAISES = r"""
import os, threading, time
gate = threading.Event()

def work():
    gate.wait()
    raise ValueError("boom")

threading.Thread(target=work, name="worker").start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    time.sleep(0.01)
"""


def debuggers(probing, job):
    return {one["what"]: one for one in json.loads(probing(str(job.pid), "status", "--json").ok().stdout)["debuggers"]}


@pytest.mark.long
def test_what_others_hold_is_seen(repl_screen, target, ptrace, probing):  # noqa: F811
    job = target(RAISES)
    s = repl_screen(job.pid)
    s.keys("Escape")
    s.type("2")
    probing(str(job.pid), "pause", "--limit", "10m").ok()
    s.wait_for(r"PAUSED by process")
    told = debuggers(probing, job)["pause"]
    assert told["state"] == "held" and not told["client_connected"] and 0 < told["left_s"] <= 600 and told["by_pid"] > 0
    assert f"pdb at {told['address']}" in s.text()
    probing(str(job.pid), "pause", "--off").ok()
    s.wait_gone("PAUSED by process")
    assert debuggers(probing, job) == {}
    probing(str(job.pid), "catch").ok()
    s.wait_for("debuggers catch")
    assert debuggers(probing, job)["catch"]["state"] == "armed"
    probing(str(job.pid), "eval", "gate.set()").ok()
    s.wait_for("KEPT: pdb at 127.0.0.1:")
    s.wait_for("ValueError: boom")
    assert debuggers(probing, job)["catch"]["text"] == "ValueError: boom in worker"
    probing(str(job.pid), "catch", "--off").ok()
    s.wait_gone("KEPT: pdb")
    s.wait_gone("debuggers catch")
    assert debuggers(probing, job) == {} and job.alive()
