# SPDX-License-Identifier: Apache-2.0
"""What takes longer than a second shows its progress on standard error where that is a terminal, and nothing otherwise."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from conftest import read_all
from test_first_guesses import JOB


def on_terminal(command, columns=100, stdout=None):
    """(status, the texts that one place of the terminal had one after the other, what is left on it)"""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout or slave, stderr=slave)
    os.close(slave)
    text = read_all(master)
    status = process.wait(timeout=120)
    seen, left = [], []
    for line in text.decode("utf-8", "replace").split("\n"):
        shown = ""
        for part in line.rstrip("\r").split("\r"):
            shown = part + shown[len(part):]
            if part.strip():
                seen.append(part.rstrip())
        left.append(shown.rstrip())
    return status, seen, "\n".join(left).strip()


@pytest.fixture
def job(target):
    return target(JOB)


SAMPLED = r"\([\d.]+ \w*B; \d+ samples, 2\.\d s\)"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("verb,progress,end", [
    ("flamegraph -d 2s -o out.svg", r"sampling: [012] of 2 s(, \d+ samples)?", rf"probing: wrote out\.svg {SAMPLED}"),
    ("pprof -d 2s -o out.pb.gz", r"sampling: [012] of 2 s(, \d+ samples)?", rf"probing: wrote out\.pb\.gz {SAMPLED}"),
    ("report -d 2s -o out.html", r"sampling: [012] of 2 s(, \d+ samples)?", rf"probing: wrote out\.html {SAMPLED}"),
    ("record -d 2s -o out.db", r"recording: [012] of 2 s(, \d+ rows)?; \^C ends it",
     r"(probing: .*\n)?wrote out\.db \(\d+ rows, \d\.\d s\); 'probing-top out\.db' opens it, as does sqlite3"),
    ("verdict --wait 2s", r"watching the job: [012] of 2 s", r"[A-Z-]+ +[\s\S]*"),
    ("eval __import__('time').sleep(2.5)", r"running: [123] s; \^C interrupts it", ""),
    ("query WITH~RECURSIVE~n(i)~AS~(SELECT~1~UNION~ALL~SELECT~i+1~FROM~n~WHERE~i<24000000)~SELECT~max(i)~FROM~n",
     r"querying: \d+ s; \^C ends it", r"[\s\S]*24000000[\s\S]*"),
])
def test_verbs(probing, job, tmp_path, monkeypatch, verb, progress, end):
    monkeypatch.chdir(tmp_path)
    words = [word.replace("~", " ") for word in verb.split(" ")]
    status, seen, left = on_terminal([probing.path, job.pid, *words])
    assert status == 0 and re.fullmatch(end, left), (seen, left)
    lines = [text for text in seen if re.fullmatch(progress, text)]
    assert len(lines) >= 2, seen
    for path in tmp_path.iterdir():
        if path.name.startswith("out."):
            path.unlink()
    done = probing(job.pid, *words, timeout=120).ok()
    assert "\r" not in done.stderr and not re.search(progress, done.stderr), done
    assert re.fullmatch(end, (done.stderr + done.stdout).strip()), done


def test_exports_of_the_screens(probing_top, job, tmp_path):
    status, seen, left = on_terminal([probing_top.path, "--export", "folded", "--duration", "1.5s", "-o", tmp_path / "out", job.pid], 200)
    assert status == 0 and re.fullmatch(rf"probing-top: wrote {tmp_path}/out \([\d.]+ \w*B; \d+ samples, 1\.\d s\)", left), left
    assert any(re.fullmatch(r"sampling: [012] of 1\.5 s(, \d+ samples)?", text) for text in seen), seen
    with open(tmp_path / "rows.txt", "w", encoding="utf-8") as file:  # only what stands on the terminal moves
        status, seen, left = on_terminal([probing_top.path, "--export", "folded", "--duration", "1.5s", job.pid], stdout=file)
    assert status == 0 and left == "" and any(text.startswith("sampling: ") for text in seen)
    assert "(target_0.py:" in (tmp_path / "rows.txt").read_text() and "\r" not in (tmp_path / "rows.txt").read_text()


def test_what_is_quick_shows_none(probing, job, tmp_path):
    status, seen, left = on_terminal([probing.path, job.pid, "flamegraph", "-d", "0.2s", "-o", tmp_path / "out.svg"], 200)
    assert status == 0 and seen == [left] and left.startswith(f"probing: wrote {tmp_path}/out.svg ("), seen
    status, seen, left = on_terminal([probing.path, job.pid, "dump", "-o", tmp_path / "out.txt"], 200)
    assert status == 0 and seen == [left], seen
    assert re.fullmatch(rf"probing: wrote {tmp_path}/out\.txt \([\d.]+ \w*B\)", left)


def test_a_narrow_terminal(probing, job, tmp_path, monkeypatch):
    """The line never takes a second one, of which a part would stay."""
    monkeypatch.chdir(tmp_path)
    status, seen, left = on_terminal([probing.path, job.pid, "record", "-d", "1.5s", "-o", "r.db"], 20)
    assert status == 0 and "\nwrote r.db (" in f"\n{left}"
    lines = [text for text in seen if text.startswith("recording: ")]
    assert lines and max(map(len, lines)) == 19, seen


def test_an_error_stands_alone(probing, job, tmp_path):
    """What was shown until then is removed."""
    status, seen, left = on_terminal([probing.path, job.pid, "query", "--timeout", "1.5s", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"])
    assert status == 1 and any(text.startswith("querying: ") for text in seen)
    assert left.startswith("probing: ") and "querying" not in left, left


@pytest.mark.long
def test_steps_of_training(probing, training):
    """What waits for steps counts them."""
    status, seen, left = on_terminal([probing.path, training.pid, "trace", "--steps", "12"], 160)
    assert status == 0 and left.startswith("12 steps of "), left
    assert any(re.fullmatch(r"tracing: \d+ s, \d+ of 12 steps; \^C ends it", text) for text in seen), seen
    status, seen, left = on_terminal([probing.path, training.pid, "memory", "--trace", "--seconds", "2"], 160)
    assert status == 0 and " allocated in 2." in left, left
    assert any(re.fullmatch(r"tracing allocations: [012] of 2 s, \d+ samples; \^C ends it", text) for text in seen), seen
