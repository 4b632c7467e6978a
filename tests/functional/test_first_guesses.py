# SPDX-License-Identifier: Apache-2.0
"""What people type who have read nothing: it does what they want, or names the command that does. Nothing misleads.

The lines are those that were tried on people and other programs' habits (py-spy, htop, psql); PID is a small job's.
"""

import json
import os
import pty
import subprocess

import pytest

JOB = """
import os, time

def work():
    return sum(i * i for i in range(1000))

os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    work()
    time.sleep(0.01)
"""
WORKS = 0
# The line, the exit status, and what its output has to contain.
PROBING = (
    ("", 2, "probing 4242 dump"),
    ("-h", WORKS, "usage: probing"),
    ("help", WORKS, "usage: probing"),
    ("help query", WORKS, "probing query: "),
    ("PID --help", WORKS, "usage: probing"),
    ("PID dump --help", WORKS, "probing dump: "),
    ("-V", WORKS, "probing "),
    ("version", WORKS, "probing "),
    ("-v", 2, "did you mean -V"),
    ("PID", 2, "probing PID dump"),
    ("dump PID", WORKS, "first_guess.py:"),
    ("dump --pid PID", WORKS, "first_guess.py:"),
    ("dump -p PID", WORKS, "first_guess.py:"),
    ("--pid PID dump", WORKS, "first_guess.py:"),
    ("-p PID dump", WORKS, "first_guess.py:"),
    ("PID bt", WORKS, "first_guess.py:"),
    ("PID stack", WORKS, "first_guess.py:"),
    ("PID stacks", WORKS, "first_guess.py:"),
    ("PID threads", WORKS, "first_guess.py:"),
    ("stack PID", WORKS, "first_guess.py:"),
    ("PID info", WORKS, "agent"),
    ("PID locals", 2, "probing PID backtrace --locals"),
    ("top", 2, "probing-top"),
    ("top PID", 2, "probing-top PID"),
    ("PID top", 2, "probing-top PID"),
    ("attach PID", WORKS, "PID"),
    ("PID attach", WORKS, "PID"),
    ('PID sql "select 1 AS one"', WORKS, "one"),
    ("ps", WORKS, "COMMAND"),
    ("ls", WORKS, "COMMAND"),
    ("PID flame -d 0.3 -o flame.svg", WORKS, "wrote flame.svg"),
    ("PID flamegraph -o x.svg --duration 0.3", WORKS, "wrote x.svg"),
    ("PID pprof -o x.pb.gz -d 0.3", WORKS, "wrote x.pb.gz"),
    ("PID dmup", 2, "did you mean 'dump'"),
    ("PID backtrce", 2, "did you mean 'backtrace'"),
    ("PID profile", 1, "flamegraph"),
    ("PID record", 2, "-o run.db"),
    ("record -o x.svg --pid PID", 2, "probing PID flamegraph -o x.svg"),
    ("record -o run.db --pid PID -d 0.2", WORKS, "probing-top run.db"),
    ("PID dump -o stacks.txt", WORKS, ""),
    ("PID dump --format json", WORKS, '"schema_version"'),
    ("PID dump -j", WORKS, '"schema_version"'),
    ("PID status --format json", WORKS, '"schema_version"'),
    ("dump", 2, "probing TARGET dump"),
    ("first_guess.py dump", WORKS, "first_guess.py:"),
    ("first_guess dump", 3, "did you mean 'first_guess.py'"),
    ("first dump", 3, "did you mean 'first_guess.py'"),
    ("PID 1 dump", 2, "two targets, PID and 1"),
    ("99999999 dump", 3, "no process 99999999"),
    ("-t A,B dump", 3, "its own -t"),
    ("run python3 -c pass", WORKS, ""),
    ("python3 x.py", 2, "probing launch python3"),
    ('PID query "selct 1"', 1, "syntax error"),
    ('PID query "show tables"', WORKS, "python.samples"),
    ("PID query '\\dt'", WORKS, "python.samples"),
    ("PID query '\\d python.samples'", WORKS, "timestamp"),
    ("PID query '.tables'", WORKS, "python.samples"),
    ('PID query "select * from python.sample"', 1, "did you mean python.samples"),
    ("PID tables python.sample", 2, "did you mean 'python.samples'"),
    ("PID config sample_rat", 2, "sample_rate"),
    ("PID config sample_rate=abc", 2, "a number from"),
    ("PID eject now", 2, "takes no arguments"),
    ("PID inject --timeout x", 2, "2s"),
    ("launch nosuch-program", 1, "nosuch-program"),
    ('PID eval "1/0"', 1, "ZeroDivisionError"),
    ("PID execute nosuch.py", 2, "nosuch.py"),
    ("PID eval", 2, "eval"),
    ("PID verd", WORKS, ""),
    ("PID listen 0.0.0.0:0", 2, "0.0.0.0:0 is reachable from other machines"),
    ("PID listen '[::]:0'", 2, "--exposed"),
    ("PID inject -a '*:0'", 2, "--exposed"),
    ("PID listen 0.0.0.0:0 --exposed", WORKS, "listening at 0.0.0.0:"),
    ("PID listen off", WORKS, "no longer listens"),
    ("PID detach", WORKS, "PID"),
)
TOP = (
    ("-p PID --export json --once", WORKS, '"threads"'),
    ("--pid PID --export json --once", WORKS, '"threads"'),
    ("-t PID --export json --once", WORKS, '"threads"'),
    ("-P PID", 2, "-p"),
    ("-u root", 2, "probing list"),
    ("-r 100 PID", 2, "--rate"),
    ("--rate 100 PID", 2, "--export txt --once"),
    ("--sort cpu PID", 2, "F6"),
    ("-v", 2, "-V"),
    ("--format svg PID", 2, "--export"),
    ("--json PID", 2, "--export json"),
    ("--once PID", 2, "--export"),
    ("--export flamegraph PID", 2, "svg"),
    ("--export foo PID", 2, "svg"),
    ("--export txt --once --screen stacks PID", 3, "threads"),  # that is a screen of jobs of several ranks
    ("--thme x PID", 2, "--theme"),
    ("PID dump", 3, "probing PID dump"),
    ("-- python no_such_file.py", 3, "probing launch python no_such_file.py"),
    ("99999999", 3, "no process 99999999"),
    ("PID", 2, "--export txt --once"),
)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guesses")
    script = folder / "first_guess.py"
    script.write_text(JOB, encoding="utf-8")
    ready, told = os.pipe()
    process = subprocess.Popen(["/usr/bin/env", "python3", script], cwd=folder, pass_fds=[told],
                               env={**os.environ, "READY_FD": str(told)})
    os.close(told)
    assert os.read(ready, 16) == b"ready\n"
    os.close(ready)
    yield process
    process.kill()
    process.wait()


def typed(program, line, job, folder):
    line = line.replace("PID", str(job.pid))
    return subprocess.run(f"exec {program.path} {line}", shell=True, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)


def check(done, line, status, words, job):
    words = words.replace("PID", str(job.pid))
    assert done.returncode == status and words in done.stdout + done.stderr, (line, done)
    if status != WORKS and line and "eval" not in line:
        assert done.stderr.count("\n") == 1, (line, done)


def test_of_probing(probing, job, tmp_path):
    for line, status, words in PROBING:
        check(typed(probing, line, job, tmp_path), line, status, words, job)
    assert "first_guess.py:" in (tmp_path / "stacks.txt").read_text()


def test_of_probing_top(probing_top, job, tmp_path):
    for line, status, words in TOP:
        check(typed(probing_top, line, job, tmp_path), line, status, words, job)


def test_a_file_of_output_is_whole_or_not_there(probing, job, tmp_path):
    """--output of any verb: the same bytes as its standard output; nothing of a verb that fails."""
    told = typed(probing, "PID tables --json", job, tmp_path).stdout
    typed(probing, "PID tables --json -o tables.json", job, tmp_path)
    names = [[table["name"] for table in json.loads(text)["tables"]] for text in (told, (tmp_path / "tables.json").read_text())]
    assert names[0] == names[1] and "python.samples" in names[0]
    before = set(os.listdir(tmp_path))
    failed = typed(probing, "PID query 'SELECT 1; SELECT nonsense' -o rows.txt", job, tmp_path)
    assert failed.returncode == 1 and set(os.listdir(tmp_path)) == before, os.listdir(tmp_path)
    many = "PID query 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n' --limit 0 --format csv"
    assert typed(probing, f"{many} -o rows.csv", job, tmp_path).returncode == 0
    assert (tmp_path / "rows.csv").read_text().split() == ["i"] + [str(i) for i in range(1, 200001)]


def test_a_flame_graph_on_a_terminal_is_a_file(probing, job, tmp_path):
    """A page of SVG is not printed on a terminal: it is a file, whose name is said."""
    here, there = pty.openpty()
    done = subprocess.Popen([probing.path, str(job.pid), "flamegraph", "-d", "0.3"], cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=there,
                            stderr=subprocess.PIPE, text=True)
    os.close(there)
    _, said = done.communicate(timeout=60)
    os.close(here)
    assert done.returncode == 0 and f"wrote flame-{job.pid}.svg" in said, said
    assert (tmp_path / f"flame-{job.pid}.svg").read_text().startswith("<?xml")
