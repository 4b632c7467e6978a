# SPDX-License-Identifier: Apache-2.0
"""A paused screen does nothing by itself: it is woken by what the agent sends, which it does seldom, and goes on where it stopped."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import pytest

from conftest import inject_in_time, wait_until

ROWS, COLUMNS = 30, 120


class Screen:
    """probing-top on a terminal of its own, read all the time."""

    def __init__(self, *command):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execv(command[0], command)

    def read(self, seconds=0.0):
        """What it writes in so many seconds."""
        out, until = b"", time.monotonic() + seconds
        while select.select([self.fd], [], [], max(0, until - time.monotonic()))[0]:
            out += os.read(self.fd, 1 << 16)
        self.text = (self.text + re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\x00", out.decode(errors="replace")))[-200000:]
        return out

    def wait_for(self, text):
        def look():
            self.read(0.1)
            return text in self.text.replace("\x00", "")
        wait_until(look, 60, repr(text))
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def switches(self):
        """How often a thread of it has gone to sleep."""
        total = 0
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/status", encoding="utf-8") as status:
                total += sum(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
        return total

    def end(self):
        os.kill(self.pid, 9)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def screen(probing_top):
    opened = []

    def start(*options):
        opened.append(Screen(probing_top.path, "--screen", "threads", *options))
        return opened[-1]
    yield start
    for one in opened:
        one.end()


def rate(screen, seconds):
    screen.read(0.2)
    before, began = screen.switches(), time.monotonic()
    screen.read(seconds)
    return (screen.switches() - before) / (time.monotonic() - began)


@pytest.mark.long
@pytest.mark.parametrize("view", ["threads", "top"])
def test_a_paused_screen_is_woken_seldom(screen, target, probing, plain_training, ptrace, view):
    inject_in_time(probing, plain_training.pid)
    s = screen("-d", "100ms", str(plain_training.pid))
    s.wait_for("CONNECTED")
    if view == "top":
        s.type("4")
        s.wait_for("%OWN")
    s.type("Z")
    s.wait_for("FROZEN")
    s.read(2)  # what was under way
    # Of ten snapshots a second it would wake up ten times at least. Now there is one in five seconds, a batch of samples in as many,
    # and a few waits to each of them.
    paused = rate(s, 8)
    assert paused < 3, paused
    # It goes on at once, as fast as before.
    s.type("Z")
    wait_until(lambda: rate(s, 1) > 6, 60, "it to go on")
    assert plain_training.alive()
