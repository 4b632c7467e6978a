# SPDX-License-Identifier: Apache-2.0
"""probing HOST:PORT repl, eval and execute: what they do by a pid, over the agent's TCP listener."""

import os
import re
import subprocess

import pytest

from test_repl import JOB, enter, plain
from test_tui_pty import Terminal

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def job(target, ptrace):
    return target(JOB)


@pytest.fixture
def door(job, probing):
    """Where the job's agent listens, and its tokens."""
    return probing(str(job.pid), "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]


@pytest.fixture
def typed(probing, tmp_path):
    opened = []

    def start(address, *options):
        env = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "TERM": "xterm"}
        t = Terminal([probing.path, "-t", address, "repl", *options], env=env, rows=40, columns=120)
        opened.append(t)
        t.wait_for(">>> ", 60)
        return t

    yield start
    for t in opened:
        t.close()


def test_code_by_address(door, probing):
    address = door["address"]
    assert probing("-t", address, "eval", "count * 6").ok().stdout == "42\n"
    assert probing(address, "eval", "count * 6").ok().stdout == "42\n"
    assert probing(address, "execute", "-", stdin="x = count\nprint(x)\n").ok().stdout == "7\n"
    for line in (["-t", address], [address]):
        done = probing(*line, "repl", stdin="for i in range(2):\n    print(i)\n\ncount\n_ + 1\n", timeout=90).ok()
        assert done.stdout == "0\n1\n7\n8\n" and done.stderr == ""


def test_the_magics(job, door, probing):
    """All that say something of a job without torch do so; of this machine also what only /proc tells."""
    lines = "%bt\n%threads\n%status\n%who\n%time count\n%q SELECT 6 * 7 AS answer\n%q SELECT func FROM python.backtrace\n%q SELECT * FROM python.loader_workers\n"
    done = probing(door["address"], "repl", stdin=lines, timeout=90).ok()
    for wanted in ("Thread ", f"process        {job.pid}", "Asked ", "ms in the job", "answer\n------\n    42", "work", "(0 rows"):
        assert wanted in done.stdout, done
    assert "loader_workers" not in done.stderr, done.stderr


def test_who_may_only_look(door, probing, typed):
    address, token = door["address"], door["looking_token"]
    for more in ({"env": {"PROBING_TOKEN": token}}, {}):
        options = [] if more else ["--token", token]
        done = probing("-t", address, *options, "repl", stdin="count\n", timeout=90, **more)
        assert (done.status, done.stdout) == (1, "")
        assert done.stderr == ("probing: line 1: no code was run: this client is read-only: "
                               "reading values of the job or changing it takes the full-access token that listen printed\n")
    done = probing("-t", address, "repl", "--keep-going", "--token", token, stdin="count\n%bt\n", timeout=90)
    assert done.status == 1 and "Thread " in done.stdout
    assert "no code was run" in probing("-t", address, "--token", token, "eval", "1").stderr
    done = probing("-t", address, "--token", "0" * 48, "repl", stdin="1\n", timeout=90)
    assert done.status == 3 and "does not let this client in" in done.stderr
    t = typed(address, "--token", token)
    enter(t, "count\n", "no code was run: this client is read-only")
    enter(t, "%threads\n", "gil")
    t.type("\x04")
    assert os.WEXITSTATUS(t.wait()) == 0


def test_typing(job, door, typed, tmp_path, wait_until):
    t = typed(door["address"])
    assert f"code runs in process {job.pid}, by the agent at {door['address']}" in plain(t.output)
    enter(t, "count * 6\n", "42")
    enter(t, "_ + 1\n", "43")
    enter(t, "asked.inside.deeper_t\t\n", "2")
    enter(t, "%thre\t\n", "gil")
    marker = tmp_path / "runs"
    enter(t, "import time\n", "")
    enter(t, "while True:\n", "", "... ")
    enter(t, f"    open({str(marker)!r}, 'w').close(); time.sleep(0.001)\n", "", "... ")
    t.type("\n")
    wait_until(marker.exists, 60, "the code to run")
    enter(t, "\x03", "KeyboardInterrupt")
    enter(t, "_ * 1000\n", "2000")
    marker.unlink()
    t.type("\x04")
    assert os.WEXITSTATUS(t.wait()) == 0 and not marker.exists(), "it runs no more"


def test_the_door_goes_and_comes(job, door, typed, probing):
    address = door["address"]
    t = typed(address)
    enter(t, "kept = 11\n", "")
    probing(str(job.pid), "listen", "--off").ok()
    enter(t, "kept\n", "no agent answers at " + address)
    enter(t, "kept\n", "no agent answers at " + address)  # who types may try again, as often as it takes
    probing(str(job.pid), "listen", address).ok()
    shown = enter(t, "kept * 2\n", "22")
    assert len(re.findall("connected again", shown)) == 1
    enter(t, "_ + 1\n", "23")
    probing(address, "eject").ok()
    probing(str(job.pid), "inject").ok()
    probing(str(job.pid), "listen", address).ok()
    enter(t, "kept * 3\n", "33")
    job.end()
    enter(t, "kept\n", "no agent answers at " + address)
    t.type("\x04")
    assert os.WEXITSTATUS(t.wait()) == 0


def test_a_pipe_ends_with_the_door(job, door, probing):
    done = probing("127.0.0.1:1", "repl", stdin="1\n", timeout=90)
    assert done.status == 3 and "no agent answers at 127.0.0.1:1" in done.stderr
    with subprocess.Popen([probing.path, door["address"], "repl", "--keep-going"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as client:
        client.stdin.write("count\n")
        client.stdin.flush()
        assert client.stdout.readline() == "7\n"
        probing(str(job.pid), "listen", "--off").ok()
        out, err = client.communicate("count\ncount\n", timeout=90)
        assert client.returncode == 3 and out == "" and f"line 2: no agent answers at {door['address']}" in err
