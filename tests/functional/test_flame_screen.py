# SPDX-License-Identifier: Apache-2.0
"""The Flame screen in a real terminal, on real jobs: what is wide, what is searched for, what stays while samples arrive."""

import json
import re

import pytest

from protobuf_reader import Profile, Trace
from test_export_profiles import check_schema, spent_in
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

        def wait_samples(self, at_least):
            wait_until(lambda: int((re.search(r"samples (\d+)", self.text()) or [0, 0])[1]) >= at_least, 90, f"{at_least} samples")

    def start(job, columns=100, rows=30):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        s = PatientScreen(tmux, folder, columns, rows, wait_until)
        opened.append(s)
        s.shell(f"{probing_top.path} --screen threads {job.pid}; echo status=$?")
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
    s.type(")")
    s.wait_for("thread MainThread")
    s.type("l")
    s.wait_for("by line")
    s.wait_for("busy_a:")
    s.type("ll")
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
    s.type("z")
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
    s.type("Z")
    s.wait_for(" FROZEN ")
    # What stands below the header does not move while the job goes on; the line of the sampler tells of now.
    still = s.settled().split("\n")[7:]
    assert s.text().split("\n")[6].startswith(" sampling ")
    step = training.counter()
    s.wait_until(lambda: training.counter() > step + 2, 90, "steps of the job")
    assert s.text().split("\n")[7:-3] == still[:-3]
    s.type("Z")
    s.wait_gone(" FROZEN ")
    s.type("W")
    s.wait_for("last 10 s")
    s.type("F")
    s.wait_for("flipped")
    assert "ZOOM train_step" in s.text()
    s.tmux("resize-window", "-x", "80", "-y", "24")
    s.wait_for("q Quit")
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
    s.type("|")
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


def exported(s, kind, path):
    """What `:export` of the kind has written."""
    s.type(f":export {kind} {path}")
    s.keys("Enter")
    s.wait_for(f"wrote {kind} of ")
    assert f"(MainThread ({s.job.pid}), waiting too, stacks with 'busy_b'; " in s.text()
    return path.read_bytes()


def test_exports_are_of_what_is_shown(flame_screen, target, tmp_path):
    """One thread, the stacks with one function: in every format that is made of samples, also those in the order of time."""
    job = target(SPLIT_JOB, name="split_job.py")
    s = flame_screen(job, 160, 30)
    s.job = job
    s.wait_for("time ON CPU")
    s.type("a")
    s.wait_for("time WALL")
    s.wait_for("busy_b")  # without a sample there is no thread to go to
    s.type(")")
    s.wait_for("thread MainThread")
    s.wait_share("busy_b", 20, 50)
    s.wait_samples(50)  # of some tens of calls
    s.type("\\busy_b")
    s.keys("Enter")
    s.wait_for("FILTER busy_b")
    path = ["<module>", "work", "busy_b"]
    for line in exported(s, "folded", tmp_path / "out.folded").decode().splitlines():
        assert [frame.partition(" (")[0] for frame in line.rpartition(" ")[0].split(";")] == path
    assert b"widths are the time of MainThread (" in exported(s, "svg", tmp_path / "out.svg")

    profile = Profile(exported(s, "pprof", tmp_path / "out.pb.gz"))
    assert {sample["labels"]["tid"] for sample in profile.samples} == {job.pid}
    assert all([frame[0] for frame in reversed(sample["frames"])] == path for sample in profile.samples)
    assert any(comment.startswith(f"MainThread ({job.pid}), waiting too, stacks with 'busy_b'") for comment in profile.comments)

    document = json.loads(exported(s, "speedscope", tmp_path / "out.json"))
    check_schema(document)
    assert [p["name"] for p in document["profiles"]] == [f"MainThread ({job.pid})"] and "stacks with 'busy_b'" in document["name"]
    spent = spent_in(document)
    assert set(spent) == {"busy_b"}
    one = document["profiles"][0]
    gaps = sum(weight for stack, weight in zip(one["samples"], one["weights"]) if not stack)
    total = one["endValue"] - one["startValue"]
    # The other function's time is a gap, not left out: of three parts, two.
    assert gaps == pytest.approx(total - spent["busy_b"], rel=1e-6) and 0.4 <= gaps / total <= 0.9

    trace = Trace(exported(s, "perfetto", tmp_path / "out.pftrace"))
    assert set(trace.threads) == {job.pid}
    assert {(depth, name) for *_, depth, name in trace.tracks[job.pid]} == set(enumerate(path))
    # Of the samples before it and of those after it, and some of those that came in the meantime.
    later = spent_in(json.loads(exported(s, "speedscope", tmp_path / "later.json")))
    assert 0.7 * spent["busy_b"] <= sum(trace.self_ns(job.pid).values()) / 1e3 <= 1.3 * later["busy_b"]
    s.type("q")
    s.wait_for("status=0")
    assert job.alive()
