# SPDX-License-Identifier: Apache-2.0
"""The Flame screen in a real terminal, on real jobs: what is wide, what is searched for, what stays while samples come in."""

import re

import pytest

from test_tui_tmux import SPLIT_JOB, Screen

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def flame_screen(tmux, tmp_path, wait_until, probing_top, probing, ptrace):
    """Starts probing-top on a job and opens the screen."""
    opened = []

    class PatientScreen(Screen):
        """On a machine that does much else."""

        def wait_for(self, text, timeout=90):
            super().wait_for(text, timeout)

        def wait_gone(self, text, timeout=90):
            super().wait_gone(text, timeout)

        def wait_share(self, name, low, high):
            """Until a cell says that share of all the time, in %."""
            def found():
                cell = re.search(re.escape(name) + r"  ([0-9.]+)%", self.text())
                return cell and low <= float(cell[1]) <= high
            try:
                wait_until(found, 90, f"{name} with {low} to {high} %")
            except pytest.fail.Exception as failure:
                pytest.fail(f"{failure.msg}:\n{self.text()}")

    def start(job, columns=100, rows=30):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        s = PatientScreen(tmux, folder, columns, rows, wait_until)
        opened.append(s)
        s.shell(f"{probing_top.path} {job.pid}; echo status=$?")
        s.wait_for("Stack of ")
        s.type("3")
        s.wait_for("by function")
        return s

    yield start
    for one in opened:
        one.close()


def test_widths_are_where_the_time_goes(flame_screen, target):
    """Two thirds of the time of one thread in one function, a third in another; a second thread waits."""
    job = target(SPLIT_JOB, name="split_job.py")
    s = flame_screen(job)
    s.wait_for("time ON CPU")
    s.wait_share("busy_a", 55, 78)
    s.wait_share("busy_b", 22, 45)
    assert "doze" not in s.text()
    s.type("a")
    s.wait_for("time WALL")
    s.wait_share("doze", 35, 65)
    s.type("a")
    s.wait_for("time GIL HELD")
    s.wait_share("busy_a", 50, 80)  # who runs Python holds it
    s.type("a")
    s.wait_for("time ON CPU")
    s.type("]")
    s.wait_for("thread MainThread")
    s.type("L")
    s.wait_for("by line")
    s.wait_for("busy_a:")
    s.type("LL")
    s.wait_for("by function")
    s.type("/busy_b")
    s.keys("Enter")
    s.wait_for("/busy_b: 1, ")
    s.keys("Enter")
    s.wait_for("ZOOM busy_b")
    s.wait_for("of zoom 100.0%")
    s.keys("Escape")
    s.wait_gone("/busy_b")
    s.keys("BSpace")
    s.wait_gone("ZOOM busy_b")
    s.type("0")
    s.wait_for("counting from zero")
    s.type("2")
    s.wait_for("Stack of ")
    s.type("q")
    s.wait_for("status=0")
    assert job.alive() and job.state() in "RSD"


def test_a_training_job(flame_screen, training):
    """The example: find the step, zoom into it, look at it while it goes on, frozen, flipped, in a small window."""
    s = flame_screen(training, 200, 50)
    s.wait_for("train_step")
    s.type("/train_step")
    s.keys("Enter")
    s.wait_for("/train_step: ")
    s.wait_for("train.py")
    s.keys("Enter")
    s.wait_for("ZOOM train_step")
    s.keys("Escape")  # what was searched for
    s.wait_gone("/train_step")
    s.keys("Space")
    s.wait_for(" PAUSED ")
    # What stands below the header does not move while the job goes on.
    still = s.text().split("\n")[6:]
    step = training.counter()
    s.wait_until(lambda: training.counter() > step + 2, 90, "steps of the job")
    assert s.text().split("\n")[6:-3] == still[:-3]
    s.keys("Space")
    s.wait_gone(" PAUSED ")
    s.type("W")
    s.wait_for("last 10 s")
    s.type("i")
    s.wait_for("FLIP")
    assert "ZOOM train_step" in s.text()
    s.tmux("resize-window", "-x", "80", "-y", "24")
    s.wait_for("F10Quit")
    s.wait_for("ZOOM train_step")
    s.tmux("resize-window", "-x", "60", "-y", "12")
    s.wait_for("ZOOM train_step")
    s.type("?")
    s.wait_for("Help")
    s.type("q")
    s.wait_for("ZOOM train_step")
    s.type("q")
    s.wait_for("status=0")
    assert training.alive()


def test_what_is_known_of_a_frame(flame_screen, target):
    """Callers, callees and source lines of the selected frame, as the job's file has them; one module alone."""
    job = target(SPLIT_JOB, name="split_job.py")
    s = flame_screen(job, 160, 40)
    s.wait_share("busy_a", 40, 90)
    s.type("/work")
    s.keys("Enter")
    s.type("o")
    s.wait_for("Called by")
    s.wait_for("busy_a(2 * length)")  # the source, with the share of the line before it
    text = s.text()
    assert re.search(r"100\.0% <module>", text) and re.search(r"[0-9.]+% busy_b ", text), text
    assert re.search(r"\d+ +[0-9.]+% +busy_a\(2 \* length\)", text), text
    s.type("f")
    s.wait_for("module split_job.py")
    s.type("o")
    s.wait_gone("Called by")
    s.keys("Escape", "Escape")
    s.wait_for("all threads")


def test_native_frames(flame_screen, target):
    """Asked for, C functions stand where they belong; hidden, their time is their callers'."""
    job = target(SPLIT_JOB, name="split_job.py")
    s = flame_screen(job, 160, 40)
    s.type("a")
    s.wait_for("time WALL")
    s.wait_share("doze", 35, 65)
    assert "sleep" not in s.text()
    s.type("c")
    s.wait_for("sleep")  # time.sleep and what it calls
    s.type("j")
    s.wait_for("   native")
    s.type("c")
    s.wait_gone("sleep")
    s.type("k")
    s.wait_gone("   native")
    s.wait_share("doze", 35, 65)
    s.type("q")
    s.wait_for("status=0")
