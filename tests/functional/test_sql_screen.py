# SPDX-License-Identifier: Apache-2.0
"""The SQL screen in a real terminal, on a real job: complete a name, run, sort, export, cancel, and recall it tomorrow."""

import csv
import json
import re

import pytest

from test_tui_tmux import Screen

pytestmark = pytest.mark.timeout(300)

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n;"

# Every query that comes with the program, and a column that no other one has.
SAVED = {
    "hot functions": "percent",
    "hot lines": "lineno",
    "stacks": "stack",
    "busy threads": "gil_wait_percent",
    "now": "depth",
    "threads": "native_name",
    "native threads": "wchan",
    "memory": "minute",
    "leak": "mb_an_hour",
    "process": "read_bytes",
    "throttling": "swapped",
    "switches": "taken_away",
    "slow steps": "usual_pct",
    "garbage": "gc_pct",
    "agent": "overhead_pct",
    "window": "gil_percent",
    "gpu time": "idle_percent",
    "gpu processes": "device",
}


class PatientScreen(Screen):
    """On a machine that does much else."""

    def wait_for(self, text, timeout=60):
        super().wait_for(text, timeout)

    def wait_gone(self, text, timeout=60):
        super().wait_gone(text, timeout)


@pytest.fixture
def sql_screen(tmux, tmp_path, wait_until, plain_training, probing_top, ptrace):
    """Starts probing-top on a job and opens the screen; what it keeps, it keeps in the test's folder."""
    opened = []

    def start(columns=80, rows=24, pid=None):
        folder = tmp_path / f"screen{len(opened)}"
        folder.mkdir()
        s = PatientScreen(tmux, folder, columns, rows, wait_until)
        opened.append(s)
        state = tmp_path / "state"
        s.shell(f"XDG_STATE_HOME={state} XDG_CONFIG_HOME={state} {probing_top.path} --screen threads {pid or plain_training.pid}; echo status=$?")
        s.wait_for("Stack of MainThread")
        s.type("S")
        s.wait_for("SELECT ... ; and Enter runs it")
        return s

    yield start
    for one in opened:
        one.close()


def type_query(s, text):
    s.type(text[:-1] + "\\;" if text.endswith(";") else text)  # the last one would be tmux's


def head_of(text):
    """Names of the columns that are shown."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(" Result ")), None)
    return lines[at + 1].split() if at is not None else []


def test_a_query_from_its_name_to_a_file(sql_screen, plain_training, tmp_path, wait_until):
    """Complete a table, run, sort, look into a cell, export, leave; the job is as it was."""
    s = sql_screen()
    type_query(s, "SELECT tid, name, state FROM python.thr")
    s.keys("Tab")
    s.wait_for("FROM python.threads")
    type_query(s, " WHERE na")
    s.keys("Tab")
    s.wait_for("threading.Thread.name")  # a list, with what each is
    s.keys("Enter")
    s.wait_for("WHERE name")
    assert "rows in" not in s.text()  # that accepted, and ran nothing
    type_query(s, " IS NOT NULL;")
    s.keys("Enter")
    s.wait_for("rows in")
    s.wait_for("MainThread")
    s.keys("Escape")
    s.wait_for("tid, column 1 of 3")
    s.keys("F6")
    s.wait_for("sorted by tid")
    tids = [int(tid) for tid in re.findall(r"^ *(\d+) \S+ +[RSDTtZXI] *$", s.text(), re.M)]
    assert len(tids) >= 2 and tids == sorted(tids, reverse=True)
    s.keys("F6")
    wait_until(lambda: [int(t) for t in re.findall(r"^ *(\d+) \S+ +[RSDTtZXI] *$", s.text(), re.M)] == sorted(tids), 60, "the other order")
    path = tmp_path / "out.csv"
    s.type(f":export {path}")
    s.keys("Enter")
    s.wait_for("rows written to")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["tid"]) for row in rows] == sorted(tids)
    assert "MainThread" in {row["name"] for row in rows}
    s.type(f":export {tmp_path / 'out.json'}")
    s.keys("Enter")
    wait_until((tmp_path / "out.json").exists, 60, "the file")
    assert len(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["rows"]) == len(tids)
    s.type("v")
    s.wait_for("row 1 ")
    s.type("v")
    s.keys("Right")
    s.type("%")
    s.wait_for("Counts of name")
    s.keys("Escape")
    s.wait_for(" Result  ")
    s.type("2")
    s.wait_for("Stack of ")
    s.type("S")
    s.wait_for("rows in")  # as it was left
    s.type("q")
    s.wait_for("status=0")
    assert plain_training.alive() and plain_training.state() in "RSD"


def test_cancel_a_slow_query_and_recall_it_tomorrow(sql_screen, tmp_path):
    s = sql_screen()
    type_query(s, ENDLESS)
    s.keys("Enter")
    s.wait_for("ctrl-c ends it")
    s.keys("Escape")  # the screen answers meanwhile
    s.wait_for("o goes to the query")
    s.type("o")
    s.keys("C-c")
    s.wait_for("the query was ended after")
    s.keys("C-c")  # now it empties the editor
    s.wait_gone("RECURSIVE")
    type_query(s, "SELEC 1;")
    s.keys("Enter")
    s.wait_for("syntax error")
    s.keys("F10")
    s.wait_for("status=0")
    assert (tmp_path / "state" / "probing-top" / "history").stat().st_mode & 0o777 == 0o600
    s = sql_screen()
    s.keys("Up")
    s.wait_for("SELEC 1;")
    s.keys("C-r")
    s.type("recursive")
    s.wait_for("UNION ALL")
    s.keys("Enter")
    s.wait_gone("(ctrl-r: older)")
    s.keys("F5")
    s.wait_for("ctrl-c ends it")
    s.keys("F10")  # a query that runs keeps nobody here
    s.wait_for("status=0")


def test_every_saved_query_runs_on_a_job(sql_screen, wait_until):
    s = sql_screen(200, 50)
    for number, (name, column) in enumerate(SAVED.items()):
        s.keys("F2")
        s.wait_for("Saved queries")
        if number == 0:
            for each in SAVED:
                assert re.search(rf"^{each} ", s.text(), re.M), each
        s.type("/" + name)
        s.wait_for("Search: " + name)
        s.keys("Enter")
        s.type("g")
        s.type("j" * number)
        s.wait_for(f"Row {number + 1} of {len(SAVED)}")
        s.keys("Enter")

        def answered():
            text = s.text()
            assert "\n Error" not in text, text
            return column in " ".join(head_of(text)) and re.search(r"rows? in [0-9.]+ ms", text)
        wait_until(answered, 60, f"the rows of {name}")
    s.keys("F10")
    s.wait_for("status=0")


def test_pasted_text_is_no_keys(sql_screen, tmp_path, wait_until):
    """A paste with line ends and letters that are keys elsewhere goes into the editor and runs nothing."""
    s = sql_screen()
    (tmp_path / "text").write_text("SELECT 'q', 2,\n7;\n", encoding="utf-8")
    s.tmux("load-buffer", str(tmp_path / "text"))
    s.tmux("paste-buffer", "-p")
    s.wait_for("7;")
    assert "rows in" not in s.text() and "row in" not in s.text()

    def ran():
        s.keys("F5")  # not heeded while the tables are looked at for the first time
        return "1 row in" in s.text()
    wait_until(ran, 60, "the query's result", interval=0.5)
    s.keys("F10")
    s.wait_for("status=0")


def test_a_job_that_ends(sql_screen, plain_training, wait_until):
    """What it left can be asked for, at its last moment; nobody is there to say what is now, and a line says so."""
    s = sql_screen(100, 30)

    def counted():
        s.keys("F5")
        return re.search(r"^ *([1-9]\d*) +\d", s.text(), re.M)
    type_query(s, "SELECT count(*) AS n, now() - max(timestamp) AS age FROM python.samples")
    wait_until(counted, 60, "samples", interval=0.5)
    plain_training.end()
    s.wait_for("TARGET GONE")
    s.keys("F5")
    s.wait_for("ended: now() is the last recorded moment")
    wait_until(lambda: re.search(r"^ *[1-9]\d* +0(\.0+)?\s*(\S.*)?$", s.text(), re.M), 60, "an age of nothing")
    s.keys("C-c")
    type_query(s, "SELECT * FROM python.threads;")
    s.keys("Enter")
    s.wait_for("\n Error")
    s.keys("F10")
    s.wait_for("status=4")
