# SPDX-License-Identifier: Apache-2.0
"""The Repl screen in a real terminal, on a real job: code, blocks, completion, ^C, the agent that goes and comes, who may not."""

import re

import pytest

from test_repl import JOB
from test_sql_screen import PatientScreen

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def job(target, ptrace):
    return target(JOB)


@pytest.fixture
def repl_screen(tmux, tmp_path, wait_until, probing_top):
    """Starts probing-top on a target and opens the screen; what it keeps, it keeps in the test's folder."""
    opened = []

    def start(target, *options, columns=80, rows=24, opens=True):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        s = PatientScreen(tmux, folder, columns, rows, wait_until)
        opened.append(s)
        state = tmp_path / "state"
        s.shell(f"XDG_STATE_HOME={state} XDG_CONFIG_HOME={state} {probing_top.path} --screen threads {target} {' '.join(options)}; echo status=$?")
        s.wait_for("Stack of MainThread")
        s.type("R")
        if opens:
            s.wait_for(" Code ")
            s.wait_for("Code typed here runs in the job")
        return s

    yield start
    for one in opened:
        one.close()


def enter(s, text):
    s.type(text)
    s.keys("Enter")


def test_a_session(repl_screen, job, tmp_path, wait_until):
    s = repl_screen(job.pid)
    enter(s, "count * 6")
    s.wait_for(" 42")
    enter(s, "_ + 1")
    enter(s, "for i in range(2):")  # typed ahead: nothing of it is lost
    enter(s, "print('row', i)")
    s.keys("Enter")
    s.wait_for(" 43")
    s.wait_for(" row 1")
    assert " ...     print('row', i)" in s.text()
    s.type("asked.inside.deep")
    s.keys("Tab")
    s.wait_for("deeper_one")
    s.keys("Down", "Enter")
    s.wait_for(">>> asked.inside.deeper_two")
    s.keys("Enter")
    s.wait_gone(">>> asked.inside.deeper_two\n\n")
    enter(s, "_ * 1000")
    s.wait_for(" 2000")
    enter(s, "1 / 0")
    s.wait_for("ZeroDivisionError: division by zero")
    # Another screen, and back: it is as it was; frozen it works, too.
    s.type("half")
    s.keys("Escape")
    s.wait_for("/ Search")
    s.type("2Z")
    s.wait_for("FROZEN")
    s.type("R")
    s.wait_for("ZeroDivisionError: division by zero")
    s.type("o")
    s.wait_for(">>> half")
    s.keys("C-c")
    enter(s, "count + 100")
    s.wait_for(" 107")
    # What runs ends by ^C, and runs no more.
    marker = tmp_path / "runs"
    enter(s, f"import time; f = {str(marker)!r}")
    enter(s, "while True:")
    enter(s, "open(f, 'w').close(); time.sleep(0.001)")
    s.keys("Enter")
    wait_until(marker.exists, 60, "the code to run")
    s.wait_for("ctrl-c ends it")
    s.keys("C-c")
    s.wait_for("KeyboardInterrupt")
    marker.unlink()
    enter(s, "_")
    s.wait_for(">>> _\n 107")
    assert not marker.exists(), "it runs no more"
    s.keys("F10")
    s.wait_for("status=0")
    # The history is that of `probing TARGET repl`, and comes back.
    assert "count + 100" in (tmp_path / "state" / "probing-top" / "repl").read_text().splitlines()
    s = repl_screen(job.pid)
    s.keys("C-r")
    s.type("count * ")
    s.keys("Enter", "Enter")
    s.wait_for(" 42")


def ask(s, line, answer):
    """Type a line with %, and wait until its answer stands behind it."""
    enter(s, line)
    def answered():
        # the answer stands behind the line, in what ran; what is being typed is behind the word Code
        _, asked, behind = s.text().partition("\n Code ")[0].rpartition(f">>> {line}")
        return asked and answer in behind
    s.wait_until(answered, 60, f"{answer!r} behind {line!r}")


def test_each_line_with_percent(repl_screen, training, tmp_path):
    """All that %help lists, on a job that trains; the same rows as `probing TARGET repl` has (test_each_magic)."""
    s = repl_screen(training.pid, columns=200, rows=60)
    enter(s, "%help")
    s.wait_for("%frame TID:DEPTH|off")
    listed = re.findall(r"^ (%\w+) ", s.text(), re.M)
    tid = training.pid
    expected = {
        "%help": ("%help", "Everything else is code that runs in the job"), "%bt": (f"%bt {tid}", "| train "), "%q": ("%q SELECT 6 * 7 AS answer", "     42"),
        "%tensors": ("%tensors", "weight"), "%modules": ("%modules", "LayerNorm"), "%steps": ("%steps", "duration_ms"),
        "%threads": ("%threads", "MainThread"), "%status": ("%status", "probing.events"), "%who": ("%who", "train_step               function"),
        "%time": ("%time 21 * 2", " ms in the job"), "%timeout": ("%timeout 0.3", ""), "%frame": ("%frame off", ""),
    }
    assert sorted(listed) == sorted(expected)
    for line, answer in expected.values():
        ask(s, line, answer)
    enter(s, "%bt")
    s.wait_for("Thread MainThread")
    enter(s, "while True: pass")
    s.keys("Enter")
    s.wait_for("timed out after 0.3 s and was interrupted; %timeout S raises the limit")
    ask(s, "%q SELEC", "syntax error")
    ask(s, "%tensor", "did you mean '%tensors'?")
    s.keys("Up")
    s.wait_for(">>> %tensor\n")
    s.keys("C-c")
    s.keys("F10")
    s.wait_for("status=0")
    kept = (tmp_path / "state" / "probing-top" / "repl").read_text().splitlines()
    assert "%q SELECT 6 * 7 AS answer" in kept and "%tensor" in kept and not any("globals()" in line for line in kept)


def test_percent_in_a_small_terminal(repl_screen, job):
    s = repl_screen(job.pid)
    enter(s, "%threads")
    s.wait_for("(1 row, ")
    head = next(line for line in s.text().splitlines() if line.startswith("   tid | ") or " tid | " in line)
    assert head.rstrip().endswith("lineno") and len(head.rstrip()) <= 80, "a table is made to fit"
    enter(s, "%q SELECT * FROM python.threads")
    s.wait_for(" deadlock    | ")  # where that cannot be, each value has its line
    s.type("%q SELECT func FROM python.backt")
    s.keys("Tab")
    s.wait_for(">>> %q SELECT func FROM python.backtrace")
    s.keys("Enter")
    s.wait_for("(2 rows, ")
    s.type("%time asked.inside.deeper_o")
    s.keys("Tab")
    s.wait_for(">>> %time asked.inside.deeper_one")
    s.keys("Enter")
    s.wait_for(" ms in the job")
    s.type("%fr")
    s.keys("Tab")
    s.wait_for(">>> %frame")
    s.type(f" {job.pid}:0")
    s.keys("Enter")
    s.wait_for(f"with the names of frame {job.pid}:0")
    enter(s, "number, doubled")
    s.wait_for(" (21, 42)")
    # A query that would never end goes when it is told to; what was typed meanwhile is not lost, nor done.
    enter(s, "%q WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n")
    s.wait_for("looking ")
    s.keys("C-c")
    s.wait_for("\n interrupted")
    enter(s, "doubled * 10")
    s.wait_for(" 420")


def test_looks_need_no_agent(repl_screen, job):
    """From outside, and when the job has ended: what can be seen is; code is not run."""
    s = repl_screen(job.pid, "--no-inject")
    s.wait_for("code needs an agent in the job, and there is none")
    enter(s, "%threads")
    s.wait_for("(1 row, ")
    assert "MainThr" in s.text()
    enter(s, "%bt")
    s.wait_for("Thread MainThread")
    ask(s, "%who", "code needs an agent")


def test_tables_of_a_job_that_has_ended(repl_screen, job):
    s = repl_screen(job.pid)
    enter(s, "%q SELECT 6 * 7 AS answer")
    s.wait_for("     42")
    job.end()
    s.wait_for("the job has ended: no code can be run in it")
    enter(s, "%q SELECT count(*) > 0 AS some, 'left' AS what FROM system.threads_history")
    s.wait_for("   1 | left")


def test_pasted_text_is_no_keys(repl_screen, job):
    s = repl_screen(job.pid, columns=100, rows=30)
    buffer = "for i in range(2):\n    q = i\n\nqQJ = 5"
    s.tmux("set-buffer", "-b", "code", buffer)
    s.tmux("paste-buffer", "-p", "-r", "-b", "code")
    s.wait_for("qQJ = 5")
    assert ">>> for i in range(2):" in s.text() and "Code typed here" in s.text(), "it is not run by itself"
    s.keys("F5")
    s.wait_gone("Code typed here")
    enter(s, "qQJ, q")
    s.wait_for(" (5, 1)")


def test_the_agent_goes_and_comes(repl_screen, job, probing, wait_until):
    s = repl_screen(job.pid)
    enter(s, "kept = 11")
    enter(s, "kept + 100")
    s.wait_for(" 111")
    wait_until(lambda: probing(str(job.pid), "eject").status == 0, 60, "the code to have ended")
    s.wait_for("the connection broke; _ is forgotten")
    s.wait_for("no code can be run now")
    enter(s, "kept * 2")
    s.wait_for("not connected to the job")
    probing(str(job.pid), "inject").ok()
    s.wait_for("runs in the job, with the names")
    s.keys("Enter")
    s.wait_for(" 22")
    job.end()
    s.wait_for("the job has ended: no code can be run in it")


def test_who_may_not(repl_screen, job, probing):
    """Read-only, through a listener, from outside: each is said in a line, and nothing is run."""
    s = repl_screen(job.pid, "--readonly", opens=False)
    s.wait_for("--readonly: repl would run code in the job or change it")
    assert "J Rep" not in s.text()
    s = repl_screen(job.pid, "--no-inject")
    s.wait_for("code needs an agent in the job, and there is none")
    enter(s, "count")
    s.wait_for(">>> count")
    door = probing(str(job.pid), "listen", "127.0.0.1:0", "--json").ok().json()["tcp"]
    s = repl_screen(door["address"], "--token", door["looking_token"])
    enter(s, "count")
    s.wait_for("no code was run: this client is read-only")
    s = repl_screen(door["address"])
    enter(s, "count * 6")
    s.wait_for(" 42")


def test_a_query_goes_before_a_table_that_is_read(repl_screen, training):
    """A line with % ends the reading of the Tensors screen, which has its rows afterwards all the same."""
    s = repl_screen(training.pid, columns=120, rows=40)
    for number in range(3):
        s.keys("Escape")
        s.wait_for("/ Search")
        s.type("7R")
        s.wait_for(" Code ")
        s.type("o")
        ask(s, f"%q SELECT 6 * 7 + {number} AS answer", str(42 + number))
    s.keys("Escape")
    s.wait_for("/ Search")
    s.type("7")
    s.wait_for("model.head")
