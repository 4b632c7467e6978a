# SPDX-License-Identifier: Apache-2.0
"""The Timeline screen in a real terminal, on a job whose thread is known to do two things in turn, for two seconds each."""

import re

import pytest

from test_tui_tmux import Screen

pytestmark = pytest.mark.timeout(400)

TURNS_JOB = """
import os, threading, time

def alpha(until):
    while time.monotonic() < until:
        pass

def omega(until):
    while time.monotonic() < until:
        time.sleep(0.001)
        sum(range(2000))

def doze():
    while True:
        time.sleep(1000)

def take_turns():
    at = time.monotonic()
    while True:
        at += 2
        alpha(at)
        at += 2
        omega(at)

threading.Thread(target=doze, name="dozing", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
take_turns()
"""


@pytest.fixture
def timeline_screen(tmux, tmp_path, wait_until, probing_top, ptrace):
    opened = []

    class PatientScreen(Screen):
        """On a machine that does much else."""

        def wait_for(self, text, timeout=90):
            super().wait_for(text, timeout)

        def lane(self, name):
            line = next((line for line in self.text().splitlines() if line.startswith(name)), "")
            return line[len(name):]

        def wait_lane(self, name, what, found):
            try:
                wait_until(lambda: found(self.lane(name)), 90, what)
            except pytest.fail.Exception as failure:
                pytest.fail(f"{failure.msg}:\n{self.text()}")

        def clock(self):
            """Of the selected slice."""
            found = re.search(r"^(\d\d:\d\d:\d\d\.\d) +\S+ ago", self.text(), re.M)
            return found and found[1]

        def step_back(self):
            before = self.clock()
            self.keys("Left")
            wait_until(lambda: self.clock() not in (before, None), 60, "the slice before")

        def back_to(self, function):
            for _ in range(70):
                if re.search(rf"ago  MainThread  {function}", self.text()):
                    return
                self.step_back()
            pytest.fail(f"no {function}:\n{self.text()}")

        def wait_gone(self, text, timeout=90):
            super().wait_gone(text, timeout)

    def start(job, columns=100, rows=30):
        s = PatientScreen(tmux, tmp_path, columns, rows, wait_until)
        opened.append(s)
        state = tmp_path / "state"
        s.shell(f"XDG_STATE_HOME={state} XDG_CONFIG_HOME={state} {probing_top.path} --screen threads {job.pid}; echo status=$?")
        s.wait_for("Stack of ")
        s.type("5")
        s.wait_for("slices of 100ms")
        return s

    yield start
    for one in opened:
        one.close()


def turns(lane):
    """What the lane of the main thread shows, block by block: those that are long enough to have their name."""
    found = re.findall(r"alpha|omega", lane)
    return [name for i, name in enumerate(found) if i == 0 or found[i - 1] != name]


def test_turns_are_seen_in_their_order(timeline_screen, target):
    """Blocks of one function and the other in turn; a thread that waits all the time; the span of one is the window of all screens."""
    job = target(TURNS_JOB, name="turns_job.py")
    s = timeline_screen(job)
    s.type("a")  # colour all time
    s.wait_for("time WALL")
    s.wait_lane("MainThread", "three turns", lambda lane: len(turns(lane)) >= 3)
    s.wait_lane("dozing", "one who waits", lambda lane: "doze" in lane and "alpha" not in lane)
    s.wait_lane("GIL held", "the GIL held", lambda lane: "\u2588" in lane)

    s.type("Z")  # what is looked at stands
    s.wait_for("FROZEN")
    s.keys("Up", "Up", "Up")
    s.back_to("omega")
    s.back_to("alpha")  # the end of a turn of it, which is twenty slices long
    for _ in range(7):  # to its middle: until its next sample a thread is shown where it was seen last, and samples may come late
        s.step_back()
    s.keys("s", "Left", "Left", "Left", "Left")
    s.wait_for("SELECT 500ms")
    s.keys("Enter")
    s.wait_for("+500ms")

    for key, name in ("3", "[3 Flame]"), ("4", "[4 Top]"):
        s.type(key)
        s.wait_for(name)
        s.wait_for("+500ms")
        s.type("a")  # on a busy machine it may have had no CPU in that time
        s.wait_for("time WALL")
        s.wait_for("alpha")
        s.wait_gone("omega")

    s.type("S")
    s.wait_for("and Enter runs it")
    s.type("SELECT 'did ' || group_concat(DISTINCT f.func) FROM python.samples s JOIN python.stacks k ON k.stack_id = s.stack_id "
           "JOIN python.frames f ON f.frame_id = k.frame_id WHERE s.timestamp >= :from AND s.timestamp < :to AND f.func <> 'doze'")
    s.keys("F5")
    s.wait_for("did alpha")
    assert "did alpha,omega" not in s.text()
