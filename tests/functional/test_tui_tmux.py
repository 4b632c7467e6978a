# SPDX-License-Identifier: Apache-2.0
"""probing-top in a real terminal multiplexer, on a real job: what a person does in the first minute."""

import os
import re
import shlex
import signal
import subprocess

import pytest


class Screen:
    """A tmux server of its own with one window; keys go in, text comes out."""

    def __init__(self, tmux, folder, columns, rows, wait_until):
        self.base = [tmux, "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self.wait_until = wait_until
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TMUX", "LINES", "COLUMNS")}
        self.env["LC_ALL"] = "C.UTF-8"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh")
        self.tmux("set-option", "-g", "escape-time", "10")

    def tmux(self, *args):
        return subprocess.run([*self.base, *args], env=self.env, check=True, capture_output=True, text=True, timeout=20).stdout

    def keys(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def settled(self):
        """The text, when no more of what was under way comes."""
        seen = [None, self.text()]
        def is_still():
            seen[:] = seen[1], self.text()
            return seen[0] == seen[1]
        self.wait_until(is_still, 60, "a screen that does not change", interval=0.5)
        return seen[1]

    def wait_for(self, text, timeout=15):
        try:
            self.wait_until(lambda: text in self.text(), timeout, f"{text!r} on the screen")
        except pytest.fail.Exception as failure:
            pytest.fail(f"{failure.msg}:\n{self.text()}")

    def wait_gone(self, text, timeout=15):
        self.wait_until(lambda: text not in self.text(), timeout, f"{text!r} off the screen")

    def shell(self, command):
        """Runs a command at the prompt; it ends when its file is there."""
        self.type(command)
        self.keys("Enter")

    def result(self, command):
        path = self.folder / "result"
        path.unlink(missing_ok=True)
        self.shell(f"{command} >{shlex.quote(str(path))}.new; mv {shlex.quote(str(path))}.new {shlex.quote(str(path))}")
        self.wait_until(path.exists, 15, f"the end of {command}")
        return path.read_text()

    def close(self):
        subprocess.run([*self.base, "kill-server"], env=self.env, capture_output=True, timeout=20)


@pytest.fixture
def screen(tmux, tmp_path, wait_until):
    opened = []

    def start(columns=80, rows=24):
        opened.append(Screen(tmux, tmp_path, columns, rows, wait_until))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_first_minute(screen, plain_training, probing_top, ptrace):
    """Start, find the training function, look round, resize, read the help, quit: the terminal is as it was."""
    s = screen()
    before = s.result("stty -a")
    s.shell(f"{probing_top.path} --screen threads {plain_training.pid}; echo status=$?")
    s.wait_for("CONNECTED")
    s.wait_for("Stack of MainThread")
    s.wait_for("train_plain.py:")
    s.wait_for("main ")
    s.keys("o", "G")
    s.wait_for("<module>")
    s.keys("o")
    s.type("<<<<<<<")  # an order that does not change by itself
    s.wait_for("sorted by TID")
    s.type(")")
    s.wait_gone("Stack of MainThread")
    s.type("(")
    s.wait_for("Stack of MainThread")
    s.type("/loader-")  # a name: "loader" is also in Loader.next_batch, within which the main thread may be, and then it is the first match
    s.wait_for("Search: loader-")
    s.keys("Enter")
    s.wait_for("/loader-: ")
    s.wait_for("Stack of loader-")
    s.keys("Escape")
    s.wait_gone("/loader")
    s.type("\\main")
    s.keys("Enter")
    s.wait_for("FILTER main")
    s.type("A")
    s.wait_gone("FILTER main")
    s.type("Z")
    s.wait_for(" FROZEN ")
    s.type("Z")
    s.wait_gone(" FROZEN ")
    s.tmux("resize-window", "-x", "160", "-y", "40")
    s.wait_for("\u2502")
    s.tmux("resize-window", "-x", "20", "-y", "5")
    s.wait_for("needs 40x12")
    s.tmux("resize-window", "-x", "80", "-y", "24")
    s.wait_for("q Quit")
    s.type("?")
    s.wait_for("shows all keys and commands")
    s.type("q")
    s.wait_for("q Quit")
    s.type("q")
    s.wait_for("status=0")
    s.shell("clear")
    assert s.result("stty -a") == before
    assert plain_training.alive() and plain_training.state() in "RSD"


def test_nothing_is_left_after_a_resize(screen, plain_training, probing_top, ptrace, wait_until):
    """The lines of the shell are as they were, with nothing of ours between them."""
    s = screen()
    s.shell("seq 1 60")
    s.wait_until(lambda: s.text().split()[-2:-1] == ["60"], 30, "the prompt after them")
    s.type(f"{probing_top.path} --screen overview {plain_training.pid}; echo status=$?")
    s.keys("Enter")
    s.wait_for("CONNECTED")
    s.tmux("resize-window", "-x", "160", "-y", "45")
    s.wait_until(lambda: max(len(one) for one in s.text().splitlines()) > 120, 30, "a wide picture")
    s.type("q")
    s.wait_for("status=0")
    lines = s.text().splitlines()
    numbers = [int(one) for one in lines if one.isdigit()]
    assert numbers == list(range(numbers[0], 61)) and len(numbers) > 24, lines
    others = [one for one in lines[:len(numbers) + 1] if not one.isdigit()]
    assert all(any(word in one for word in ("probing-top", "seq", "status=")) for one in others), (len(numbers), others)


@pytest.mark.parametrize("background, ground", [("#ffffff", "188"), ("#101010", "236")], ids=["light", "dark"])
def test_the_theme_of_the_background(screen, plain_training, probing_top, ptrace, wait_until, background, ground):
    """tmux answers for its own background; the line with the names of columns has the ground of that theme. A theme that is named stays."""
    s = screen()
    s.tmux("set-option", "-g", "window-style", f"bg={background}")
    heading = re.compile(rf"\x1b\[[\d;]*48;5;{ground}[\d;]*m +TID")
    s.shell(f"{probing_top.path} --screen threads {plain_training.pid}")
    s.wait_for("Stack of MainThread")
    wait_until(lambda: heading.search(s.tmux("capture-pane", "-e", "-p")), 15, "the theme of the background")
    s.type("q")
    s.wait_gone("Stack of MainThread")
    s.shell(f"{probing_top.path} --theme nord --screen threads {plain_training.pid}")
    s.wait_for("Stack of MainThread")
    assert not heading.search(s.tmux("capture-pane", "-e", "-p"))


def test_on_a_console_all_is_ascii(screen, plain_training, probing_top, ptrace):
    """Its font has few other characters, though the locale has them all."""
    s = screen()
    s.shell(f"TERM=linux {probing_top.path} --screen flame {plain_training.pid}; clear")
    s.wait_for("[<module>")
    assert s.text().isascii()
    s.type("q")
    s.wait_gone("[<module>")
    s.shell(f"{probing_top.path} --screen flame {plain_training.pid}")
    s.wait_for("\u258f<module>")


def test_suspend_and_return(screen, plain_training, probing_top, ptrace):
    s = screen()
    s.shell(f"{probing_top.path} --screen threads {plain_training.pid}; echo status=$?")
    s.wait_for("Stack of MainThread")
    s.keys("C-z")
    s.wait_for("Stopped")
    assert plain_training.state() in "RSD"
    s.shell("fg")
    s.wait_for("Stack of MainThread")
    s.type("q")
    s.wait_gone("q Quit")


def test_the_target_ends(screen, plain_training, probing_top, ptrace):
    """The last snapshot stays, a banner says what happened, and leaving says 4."""
    s = screen(100, 30)
    s.shell(f"{probing_top.path} --screen threads {plain_training.pid}; echo status=$?")
    s.wait_for("Stack of MainThread")
    plain_training.end()
    s.wait_for("TARGET GONE")
    assert "Stack of MainThread" in s.text()
    s.keys("o", "G")
    s.wait_for("<module>")
    s.type("q")
    s.wait_for("status=4")


def test_picker(screen, plain_training, probing_top, ptrace):
    s = screen(120, 30)
    s.shell(f"{probing_top.path} --screen threads --ascii; echo status=$?")
    s.wait_for("Which Python process?")
    s.type(f"\\{plain_training.pid}")
    s.keys("Enter")
    s.wait_for(f"FILTER {plain_training.pid}")
    s.wait_for("train_plain.py")
    s.keys("Enter")
    s.wait_for("Stack of MainThread")
    s.wait_for("CONNECTED")
    s.type("q")
    s.wait_for("status=0")


def test_picker_reads_from_outside_and_says_why(screen, target, probing_top, ptrace, wait_until):
    """A process that cannot be injected into is read from outside, and the screen says why."""
    job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(1000)\n")
    s = screen(200, 30)
    s.shell(f"{probing_top.path} --screen threads; echo status=$?")
    s.wait_for("Which Python process?")
    s.type(f"\\{job.pid}")
    s.keys("Enter")
    s.wait_for(f"FILTER {job.pid}")
    s.wait_for("target_0.py")
    os.kill(job.pid, signal.SIGSTOP)
    wait_until(lambda: job.state() == "T", what="the job to be stopped")
    s.keys("Enter")
    s.wait_for("READ-ONLY")
    assert f"process {job.pid} is stopped" in s.text() and "Which Python process?" not in s.text()
    s.wait_for("target_0.py:3")
    os.kill(job.pid, signal.SIGCONT)
    s.type("q")
    s.wait_for("status=0")


# Two thirds of its time in `busy_a`, one in `busy_b`; the lengths vary so that no sampler keeps step. A second thread sleeps.
SPLIT_JOB = """
import os, random, threading, time

def busy_a(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def busy_b(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def doze():
    while True:
        time.sleep(1000)

def work():
    while True:
        length = random.uniform(0.004, 0.02)
        busy_a(2 * length)
        busy_b(length)

threading.Thread(target=doze, name="dozing", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
work()
"""


def top_shares(text):
    """{function: (own %, total %)} of the rows of the Top screen."""
    rows = re.findall(r"^ *([0-9.]+) +([0-9.]+) +[0-9.]+s +[0-9.]+s ([^ ]+)", text, re.M)
    return {func: (float(own), float(total)) for own, total, func in rows}


def test_top(screen, target, probing_top, probing, ptrace, wait_until):
    """Where the time goes, as the job knows it; samples are taken only while somebody looks."""
    job = target(SPLIT_JOB, name="split_job.py")
    s = screen(100, 30)

    def sampled(at_least):
        found = re.search(r"samples (\d+)", s.text())
        return found and int(found[1]) >= at_least

    s.shell(f"{probing_top.path} --screen threads {job.pid}; echo status=$?")
    s.wait_for("Stack of MainThread")
    assert probing(str(job.pid), "status", "--json").ok().json()["sampler"]["rate_hz"] == 0
    s.type("4")
    s.wait_for("of 100 Hz")
    s.wait_for("time ON CPU")  # who waits does not lead the list
    s.wait_for("busy_a")
    s.type("a")
    s.wait_for("time WALL")
    wait_until(lambda: sampled(800), 60, "800 samples")
    shares = top_shares(s.text())
    busy = shares["busy_a"][0] + shares["busy_b"][0]
    assert 40 < busy < 55, shares  # one thread of two
    assert abs(shares["busy_a"][0] / busy - 2 / 3) < 0.12, shares  # 400 samples: 5 standard deviations
    assert abs(shares["work"][1] - busy) < 3 and shares["doze"][0] > 40, shares
    assert max(total for _, total in shares.values()) <= 100
    s.type("a")
    s.wait_for("time ON CPU")
    wait_until(lambda: top_shares(s.text()).get("busy_a", (0, 0))[0] > 50, 15, "shares of what ran")
    assert top_shares(s.text()).get("doze", (0, 0))[0] < 5
    s.type("/busy_b")
    s.keys("Enter", "Enter")
    s.wait_for("Calls of busy_b")
    s.wait_for("called by")
    s.type("z")
    s.wait_for("counting from zero")
    s.type("2")
    s.wait_for("Stack of ")
    wait_until(lambda: probing(str(job.pid), "status", "--json").ok().json()["sampler"]["rate_hz"] == 0, 30, "the end of sampling")
    s.type("q")
    s.wait_for("status=0")
