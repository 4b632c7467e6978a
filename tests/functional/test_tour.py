# SPDX-License-Identifier: Apache-2.0
"""`probing-top --tour`: it starts its own job, walks through the screens in a terminal, and leaves nothing, however it ends."""

import os
import re
import signal
import subprocess
import tempfile

import pytest

from test_tui_tmux import Screen

PAGES = ["Overview", "Threads", "Flame", "Top", "Timeline", "Steps", "Tensors", "Modules", "SQL", "Overview"]
PLAIN = ["Overview", "Threads", "Flame", "Top", "Timeline", "SQL", "Overview"]


@pytest.fixture
def tour(tmux, tmp_path, probing_top, ptrace, wait_until):
    """Starts the tour in a terminal of that size; its files are in .place."""
    opened = []
    place = tempfile.mkdtemp(prefix="tour-")  # short, as a user's: paths are cut to the screen

    def start(python, columns=80, rows=24):
        s = Screen(tmux, tmp_path, columns, rows, wait_until)
        opened.append(s)
        s.place = place
        s.shell(f"TMPDIR={place} PYTHON={python} PROBING_TOP_CONFIG=/nonexistent {probing_top.path} --tour; echo left with $?")
        s.wait_for("Tour 1 of ", 180)
        return s

    yield start
    for s in opened:
        s.close()
    wait_until(lambda: not os.listdir(place), 30, f"an empty {place}")
    os.rmdir(place)


def job_of(s):
    """The pid of the job that is shown."""
    pid = int(re.search(r"^ pid (\d+)", s.text(), re.M).group(1))
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
        assert s.place in file.read()
    return pid


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def walk(s, pages, wait_until):
    """Through all pages; the texts of each screen."""
    seen = []
    for number, title in enumerate(pages, 1):
        s.wait_for(f"Tour {number} of {len(pages)}: {title}", 30)
        assert re.search(rf"\[\w {title}\]", s.text()), s.text()
        seen.append(title)
        if number < len(pages):
            s.keys("Enter" if number % 2 else "Right")
    s.keys("Left")
    s.wait_for(f"Tour {len(pages) - 1} of", 30)
    s.keys("Right")
    s.wait_for(f"Tour {len(pages)} of", 30)
    return seen


@pytest.mark.parametrize("columns,rows", [(80, 24), pytest.param(160, 45, marks=pytest.mark.long)])
def test_walk_with_torch(tour, torch_python, columns, rows, wait_until):
    s = tour(torch_python, columns, rows)
    pid = job_of(s)
    s.wait_for("parse_sample", 60)  # the verdict names the fault
    walk(s, PAGES, wait_until)
    s.keys("Enter")
    s.wait_for("left with 0", 30)
    assert "the tour is over, and its job has ended" in " ".join(s.text().split())
    assert is_gone(pid)
    assert not os.listdir(s.place)


@pytest.mark.parametrize("columns,rows", [(80, 24), (160, 45)])
def test_walk_without_torch(tour, any_python, columns, rows, wait_until):
    s = tour(any_python, columns, rows)
    pid = job_of(s)
    s.keys("Enter")
    s.wait_for("train_step", 30)  # its stack is there
    s.keys("Left")
    walk(s, PLAIN, wait_until)
    s.keys("q")
    s.wait_for("left with 0", 30)
    assert is_gone(pid)


def test_the_query_of_the_tour(tour, any_python):
    s = tour(any_python)
    for _ in PLAIN[:-2]:
        s.keys("Enter")
    s.wait_for("FROM python.threads;", 30)
    s.keys("F5")
    s.wait_for("loader-0", 30)
    s.keys("Escape")
    s.wait_for("left with 0", 30)


@pytest.mark.parametrize("how", ["KILL", "SEGV", "TERM", "HUP"])
def test_nothing_is_left(tour, any_python, probing_top, how, wait_until):
    """However the program ends, the job ends, and its files, socket and tables are removed."""
    s = tour(any_python)
    pid = job_of(s)
    tours = subprocess.run(["pgrep", "-f", f"^{re.escape(probing_top.path)} --tour"], capture_output=True, text=True, check=True)
    found = [int(p) for p in tours.stdout.split()]
    # it has children of its own, some of them for a moment
    ours = [p for p in found if f"TMPDIR={s.place}" in environment(p) and parent(pid) != p and parent(p) not in found]
    assert len(ours) == 1
    os.kill(ours[0], getattr(signal, f"SIG{how}"))
    wait_until(lambda: is_gone(pid), 30, f"the end of the job {pid}")
    wait_until(lambda: not os.listdir(s.place), 30, "no files")
    socket = f"/tmp/probing-{os.geteuid()}/{pid}.sock"
    wait_until(lambda: not os.path.exists(socket), 30, f"no {socket}")


def environment(pid):
    """[]: it has ended."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []


def parent(pid):
    """0: it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return int(re.search(r"^PPid:\s+(\d+)", file.read(), re.M).group(1))
    except OSError:
        return 0


@pytest.mark.parametrize("options,said", [
    (["--tour"], "not a terminal: --tour needs one"),
    (["--tour", "4242"], "--tour starts a job of its own: give no TARGET with it"),
    (["--tour", "--export", "json"], "--tour is for the screens, not for --export"),
])
def test_what_it_refuses(probing_top, options, said):
    done = probing_top(*options)
    assert done.status == 2 and done.stderr == f"probing-top: {said}\n"


def test_a_python_that_cannot(tmux, tmp_path, probing_top, wait_until):
    """One that is not there; one whose torch is broken, and which can then run nothing."""
    broken = tmp_path / "python"
    broken.write_text('#!/bin/sh\ncase "$2" in *find_spec*) echo "1$0" ;; *) echo "ImportError: no libtorch" >&2; exit 1 ;; esac\n')
    broken.chmod(0o755)
    s = Screen(tmux, tmp_path, 120, 24, wait_until)
    try:
        s.shell(f"PYTHON=/nonexistent {probing_top.path} --tour; echo left with $?")
        s.wait_for("PYTHON=/nonexistent does not run as a Python 3.6 or newer", 30)
        s.wait_for("left with 1", 30)
        s.shell(f"clear; TMPDIR={tmp_path} PYTHON={broken} {probing_top.path} --tour; echo now left with $?")
        s.wait_for("now left with 1", 30)
        assert s.text().count("the tour's job ended before its first step: ImportError: no libtorch") == 2, s.text()
        assert not [name for name in os.listdir(tmp_path) if name.startswith("probing-tour-")]
    finally:
        s.close()
