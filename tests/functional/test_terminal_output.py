# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal, which pipes do not get: colour, joined threads, paths and tables that fit, no column that is the same in all rows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from conftest import read_all

JOB = """
import os, threading

stop = threading.Event()

def consume():
    stop.wait()

for i in range(3):
    threading.Thread(target=consume, name=f"consumer-{i}", daemon=True).start()
while sum(t.name.startswith("consumer") for t in threading.enumerate()) < 3:
    pass
os.write(int(os.environ["READY_FD"]), b"ready\\n")
os.read(int(os.environ["STOP_FD"]), 1)
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    script = tmp_path_factory.mktemp("terminal") / "consumers.py"
    script.write_text(JOB, encoding="utf-8")
    ready, tell = os.pipe()
    stop, hold = os.pipe()
    process = subprocess.Popen(["/usr/bin/env", "python3", script], pass_fds=[tell, stop],
                               env={**os.environ, "READY_FD": str(tell), "STOP_FD": str(stop)})
    os.close(tell)
    assert os.read(ready, 16) == b"ready\n"
    yield process
    process.kill()
    process.wait()
    for fd in ready, stop, hold:
        os.close(fd)


def on_terminal(columns, argv, **env):
    """Standard output of a program on a terminal of so many columns."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    fcntl.fcntl(there, fcntl.F_SETFD, 0)
    base = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    done = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=there, stderr=subprocess.PIPE, env={**base, "TERM": "xterm", **env})
    os.close(there)
    text = read_all(here)
    said = done.stderr.read()
    assert done.wait(60) == 0, said
    done.stderr.close()
    return text.decode().replace("\r\n", "\n")


def test_stacks(probing, job):
    argv = [probing.path, str(job.pid), "backtrace"]
    text = on_terminal(70, argv)
    plain = COLOUR.sub("", text)
    head = next(line for line in plain.splitlines() if line.startswith("3 threads: "))
    assert sorted(re.findall(r"consumer-\d", head)) == ["consumer-0", "consumer-1", "consumer-2"], plain
    assert plain.count("consume (") == 1 and "each waiting for Event stop" in plain, plain
    assert "Thread MainThread" in plain and re.search(r"Thread MainThread \(\d+\)  waiting for ", plain), plain
    # A frame of a library is dim and is cut to the width, one of the job's own is neither.
    frames = [line for line in text.splitlines() if "(" in line and COLOUR.sub("", line).startswith("    ") and ".py" in line]
    assert any(line.startswith("\x1b[2m") and "threading.py:" in line for line in frames), text
    assert all(not line.startswith("\x1b") for line in frames if "consumers.py" in line), text
    assert all(len(COLOUR.sub("", line)) <= 70 for line in frames), text
    assert "\x1b" not in on_terminal(70, argv, NO_COLOR="1") and "\x1b" not in on_terminal(70, argv, TERM="dumb")


def test_pipes_get_what_they_got(probing, job):
    text = probing(str(job.pid), "backtrace").ok().stdout
    assert text.count("Thread consumer-") == 3 and text.count("    consume (") == 3 and "\x1b" not in text, text
    assert "rank | host | pid" in re.sub(" +", " ", probing(str(job.pid), "query", "SELECT * FROM system.threads").ok().stdout)


def test_tables(probing, job):
    argv = [probing.path, str(job.pid), "query", "SELECT * FROM python.threads"]
    wide = on_terminal(400, argv).splitlines()
    assert "rank" not in wide[0] and wide[0].split(" | ")[0].strip() == "tid", wide[0]
    assert re.fullmatch(rf"\(\d+ rows, all of rank NULL, host \S+, pid {job.pid}, .* ms\)", wide[-1]), wide[-1]
    assert all(len(line) <= 400 for line in wide)
    narrow = on_terminal(40, argv)  # a value a line, for a row is wider
    assert narrow.startswith("-- 1 --\n") and "\ntid " in narrow and "\nhost " not in narrow, narrow
    # What is not a table of targets is left as it is.
    text = on_terminal(80, [probing.path, str(job.pid), "query", "SELECT 1 AS pid, 2 AS b UNION ALL SELECT 1, 3"])
    assert text.split("\n")[0].split() == ["pid", "|", "b"], text


def test_a_long_text_is_cut(probing, job):
    text = on_terminal(40, [probing.path, str(job.pid), "query", "SELECT 7 AS n, '/a/" + "x" * 90 + "/end.py' AS file"])
    line = text.splitlines()[2]
    assert len(line) <= 40 and line.startswith("7 |") and line.endswith("/end.py"), text
