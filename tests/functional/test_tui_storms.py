# SPDX-License-Identifier: Apache-2.0
"""probing-top under a storm: of data, of sizes, of keys, and with a terminal that nobody reads; the terminal comes back in the end."""

import fcntl
import os
import random
import signal
import struct
import termios
import time

import pytest

from conftest import inject_in_time
from fake_agent import FakeAgent, observe
from test_tui_pty import terminal  # noqa: F401  pylint: disable=unused-import

RATE = 10_000_000

# Stacks of 40 frames in 150 threads: a snapshot of some 100 KB.
MANY = """
import os, threading, time
def deep(n):
    if n:
        deep(n - 1)
    else:
        time.sleep(100000)
for _ in range(150):
    threading.Thread(target=deep, args=(40,), daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
deep(40)
"""


@pytest.fixture
def storm(target, probing, ptrace, tmp_path):
    """A fake agent with the snapshot of a job of 151 threads."""
    job = target(MANY, name="many.py")
    endpoint = inject_in_time(probing, job.pid)["endpoint"]
    hello, snapshot = observe(endpoint)
    job.end()
    with FakeAgent(tmp_path / "fake.sock", hello, snapshot) as agent:
        yield agent


def resize(t, rows, columns):
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("VmRSS:")).split()[1]) / 1024


def test_ten_megabytes_a_second(storm, terminal):  # noqa: F811
    """It keeps up, answers keys meanwhile, and does not grow."""
    storm.rate = RATE // 20
    t = terminal(storm.target)
    t.wait_for_stack("")
    storm.rate, before, deadline = RATE, storm.sent, time.monotonic() + 60
    while storm.sent < before + 3 * RATE:
        assert time.monotonic() < deadline, f"{storm.sent - before} bytes in a minute"
        assert t.read(0.05)
        t.output = t.output[-100000:]
    t.type("?")
    t.wait_for("shows all keys and commands")
    assert t.poll() is None and rss_mb(t.pid) < 200
    os.kill(t.pid, signal.SIGTERM)
    assert os.WEXITSTATUS(t.wait()) == 0
    assert termios.tcgetattr(t.fd) == t.before


@pytest.mark.timeout(240)
def test_a_terminal_that_nobody_reads_does_not_hold_up_the_socket(storm, terminal):  # noqa: F811
    """What the agent sends is taken while nothing can be painted, and the picture is the newest when it can be again."""
    storm.rate = RATE // 20
    t = terminal(storm.target, rows=50, columns=200)
    t.wait_for_stack("", timeout=60)
    storm.rate, before, deadline = RATE // 2, storm.sent, time.monotonic() + 60
    keys = 0
    while storm.sent < before + 2 * RATE:  # far more than what sockets hold
        assert time.monotonic() < deadline, f"{storm.sent - before} bytes in a minute: the socket is not read"
        if keys < 200:
            t.type("jw")  # so that there is always something to paint
            keys += 1
        time.sleep(0.02)
    assert t.poll() is None
    t.type("?")
    t.wait_for("shows all keys and commands", timeout=60)
    os.kill(t.pid, signal.SIGTERM)
    assert os.WEXITSTATUS(t.wait()) == 0
    t.assert_restored()


def test_a_storm_of_sizes(storm, terminal):  # noqa: F811
    """Hundreds of sizes, some of them absurd, while data come: the last one is drawn."""
    chance = random.Random(6)
    storm.rate = RATE // 10
    t = terminal(storm.target)
    t.wait_for_stack("")
    for i in range(300):
        resize(t, chance.choice((1, 3, 12, 24, 50, 120)), chance.choice((1, 7, 39, 40, 60, 80, 140, 300)))
        if i % 10 == 0:
            t.type(chance.choice("234"))
        assert t.read(0.002) and t.poll() is None
        t.output = t.output[-200000:]
    resize(t, 24, 80)
    t.type("2")
    deadline = time.monotonic() + 30
    while b"Quit" not in t.output or b"sorted by" not in t.output:
        assert time.monotonic() < deadline and t.poll() is None, t.output[-2000:]
        t.output = b""
        t.type("\x0c")  # paint all of it
        for _ in range(20):
            t.read(0.05)
    t.type("q")
    assert os.WEXITSTATUS(t.wait()) == 0
    assert termios.tcgetattr(t.fd) == t.before
