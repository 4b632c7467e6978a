# SPDX-License-Identifier: Apache-2.0
"""probing TARGET repl: at a terminal (keys, completion, blocks, ^C, ^D, what is remembered) and from a pipe; what it leaves in the job."""

import os
import re
import stat
import subprocess

import pytest

from test_eval import HOG, WAITING, poke
from test_tui_pty import Terminal

pytestmark = pytest.mark.timeout(300)

# What it has says so when it is asked by code of its own.
JOB = r'''
import os, time

class Asked:
    kind = "asked"
    slots = __slots__ = ("slot", "__dict__")
    def __getattr__(self, name):
        print("GETATTR", name, flush=True)
        raise AttributeError(name)
    def __dir__(self):
        print("DIR", flush=True)
        return []
    @property
    def prop(self):
        print("PROPERTY", flush=True)
    def method(self):
        return 1

class Bare:
    pass

asked = Asked()
asked.inside = Bare()
asked.inside.deeper_one = 1
asked.inside.deeper_two = 2
asked.slot = Bare()
asked.slot.in_slot = 3
count = 7
_ = "the job's own"
def work(number):
    doubled = 2 * number
    while True:
        time.sleep(0.002)
os.write(int(os.environ["READY_FD"]), b"ready\n")
work(21)
'''


@pytest.fixture
def job(target, ptrace):
    return target(JOB)


@pytest.fixture
def piped(probing):
    """Runs lines that come from a pipe."""
    return lambda target, text, *options, **more: probing(str(target.pid), "repl", *options, stdin=text, timeout=90, **more)


@pytest.fixture
def typed(probing, tmp_path):
    """The same at a terminal, whose .state is where it remembers."""
    opened = []

    def start(target, *options):
        env = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "TERM": "xterm"}
        t = Terminal([probing.path, str(target.pid), "repl", *options], env=env, rows=40, columns=120)
        opened.append(t)
        t.wait_for(">>> ", 60)
        return t

    yield start
    for t in opened:
        t.close()


def enter(t, text, answer, prompt=">>> ", timeout=60):
    """Type a line, and wait for its answer and the prompt behind it."""
    begin = len(t.output)
    t.type(text)
    t.wait_until(lambda: re.search(re.escape(answer) + r"(?s:.)*" + re.escape(prompt), plain(t.output[begin:])), repr(answer), timeout)
    return plain(t.output[begin:])


def plain(raw):
    """Without what moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\x1b[=>]|\x07", "", raw.decode("utf-8", "replace"))


# ---- from a pipe ----

def test_each_python(each_python, target, piped, ptrace):
    job = target(JOB, python=each_python)
    done = piped(job, "x = 5\nx * 2\n_ + 1\n_\nfor i in range(3):\n    print(i)\nif x == 5:\n    y = 1\nelse:\n    y = 2\n\ny\n"
                 "(1,\n 2)\n'''a\nb'''\n@staticmethod\ndef f():\n    return count\nx = [  # open\n\n 1]\nx\nNone\n_\n\n# nothing\n"
                 "try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('caught')\nfinally:\n    print('done')\nwith open('/dev/null') as z: z = 3\nz").ok()
    assert done.stdout.split("\n") == ["10", "11", "11", "0", "1", "2", "1", "(1, 2)", "'a\\nb'", "[1]", "[1]", "caught", "done", "3", ""]
    assert done.stderr == ""
    # What is typed stays in __main__; the last value does not, nor is the job's own name touched.
    done = piped(job, "x, y\n_ = 9\n_\nfor _ in range(3): pass\n\n_\nglobals()['_']\nlen(dir()), 'x' in locals(), sorted(vars())[:1] == sorted(globals())[:1]\nexec('w = 4')\nw\ndel w\n'w' in globals()").ok()
    assert done.stdout.splitlines()[:4] == ["([1], 1)", "9", "2", "\"the job's own\""]
    assert done.stdout.splitlines()[5:] == ["4", "False"] and ", True, True)" in done.stdout
    assert piped(job, "_\nimport builtins\nhasattr(builtins, '_')\n").ok().stdout == "\"the job's own\"\nFalse\n"


def test_failures(job, piped):
    done = piped(job, "1\n\ndef f():\n    raise KeyError('k')\n\nf()\n2\n")
    assert (done.status, done.stdout) == (1, "1\n")
    assert re.findall(r'File "([^"]+)", line (\d+), in (\S+)', done.stderr) == [("<repl>", "1", "<module>"), ("<repl>", "2", "f")]
    assert done.stderr.endswith("probing: line 6: the code raised KeyError\n")
    done = piped(job, "1 / 0\na b\n%nothing\n3\nif 1:", "--keep-going")
    assert (done.status, done.stdout) == (1, "3\n")
    told = [line for line in done.stderr.splitlines() if line.startswith("probing: ")]
    assert told == ["probing: line 1: the code raised ZeroDivisionError", "probing: line 2: the code raised SyntaxError",
                    "probing: line 3: there is no '%nothing': %help lists the commands", told[3], "probing: 4 of the statements failed"]
    assert re.match(r"probing: line 5: the code raised (SyntaxError|IndentationError)", told[3])


def test_bad_input(job, piped, probing):
    for options, why in ((["--frame", "x"], "'x' is not a frame"), (["--json"], "--json is for eval"), (["more"], "takes no arguments"),
                         (["--timeout", "0"], "timeout"), (["--readonly"], "--readonly: repl would run code")):
        done = piped(job, "open('/tmp/never', 'w')\n", *options)
        assert done.status == 2 and why in done.stderr and done.stderr.count("\n") == 1, done
    done = piped(job, "1\n\0\n")
    assert done.status == 1 and "line 2 has a NUL" in done.stderr and done.stdout == "1\n"
    done = piped(job, "x = '" + "a" * (1 << 20) + "'\n")
    assert done.status == 1 and "longer than" in done.stderr and done.stderr.count("\n") == 1
    piped(job, "").ok()
    done = piped(job, "'\\x1b[31m' + chr(0xd800)\nprint('\\x1b')\n").ok()
    assert done.stdout == "'\\x1b[31m\\ud800'\n\x1b\n"
    done = piped(job, "raise ValueError('\\x1b[6n')\n")
    assert "ValueError" in done.stderr and "[6n" in done.stderr and "\x1b" not in done.stderr
    probing(str(job.pid), "config", "probing.eval=off").ok()
    done = piped(job, "1\n")
    assert done.status == 1 and "probing.eval is off" in done.stderr


def test_limits(job, piped, wait_until):
    done = piped(job, "while True: pass\n\n1\n", "--timeout", "300ms")
    assert done.status == 1 and "timed out after 0.3 s and was interrupted" in done.stderr and done.stdout == ""
    done = piped(job, "%timeout 0.2\nwhile True: pass\n", "--keep-going")
    assert "timed out after 0.2 s" in done.stderr
    done = piped(job, "'x' * 5000\nprint('y' * 5000)\n", "--max-output", "1").ok()
    assert len(done.stdout) < 2 * 1100 and done.stderr.count("was truncated at 1 KiB: --max-output raises the limit") == 2


def test_a_frame_and_the_main_thread(job, piped):
    assert piped(job, "number, doubled\n_[0]\n", "--frame", f"{job.pid}:0").ok().stdout == "(21, 42)\n21\n"
    assert piped(job, f"%frame {job.pid}:0\nnumber\n%frame off\n'number' in dir()\n").ok().stdout == "21\nFalse\n"
    assert piped(job, "import threading; threading.current_thread().name\n_\n", "--main").ok().stdout == "'MainThread'\n'MainThread'\n"


def test_a_gil_that_is_held(target, piped, build_dir, tmp_path, probing, ptrace):
    """It says so in time, and nothing is run later."""
    library = os.path.join(build_dir, "tests", "targets", "gilhog.so")
    job = target(HOG, library)
    probing(str(job.pid), "inject").ok()
    marker = tmp_path / "marker"
    done = piped(job, f"open({str(marker)!r}, 'w')\n", "--timeout", "1s")
    assert done.status == 1 and f"thread {job.pid} holds it; nothing was run, and nothing will be" in done.stderr, done
    poke(job.pid, int(job.ready))
    assert piped(job, "counter.value > 0\n", "--timeout", "60s").ok().stdout == "True\n"
    assert not marker.exists()


def test_the_last_value_goes_with_its_client(job, probing, wait_until):
    """Kept while the client is there, by nobody afterwards; that of one is not that of another."""
    def start():
        return subprocess.Popen([probing.path, str(job.pid), "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    probing(str(job.pid), "inject").ok()
    one, two = start(), start()
    try:
        def ask(client, text):
            client.stdin.write(text + "\n")
            client.stdin.flush()
            return client.stdout.readline()
        assert ask(one, "class Big: pass\n\nimport weakref\nbig = Big(); ref = weakref.ref(big); print(1)") == "1\n"
        assert "Big object" in ask(one, "big")
        assert ask(two, "2") == "2\n" and "Big object" in ask(one, "_") and ask(two, "_") == "2\n"
        assert ask(two, "del big; ref() is None") == "False\n"
        one.kill()
        one.wait()
        wait_until(lambda: ask(two, "ref() is None") == "True\n", 60, "the value to be let go of")
    finally:
        for client in (one, two):
            client.kill()
            client.communicate()


def test_each_magic(training, piped, probing):
    """Every row of the table works on a job that trains; %help lists them all."""
    listed = re.findall(r"^(%\w+) (\S*)", piped(training, "%help\n").ok().stdout, re.M)
    tid = training.pid
    expected = {
        "%help": ("", r"%frame"), "%bt": ("", r"Thread MainThread"), "%q": ("SELECT 6 * 7 AS answer", r"answer\n-+\n +42"),
        "%tensors": ("", r"weight"), "%modules": ("", r"Linear"), "%steps": ("", r"duration_ms"), "%threads": ("", r"MainThread"),
        "%status": ("", rf"process +{tid}\b"), "%who": ("", r"^torch +module"), "%time": ("1 + 1", r"^2\n[0-9.e-]+ ms in the job"),
        "%timeout": ("5", r"^$"), "%frame": ("off", r"^$"),
    }
    assert sorted(name for name, _ in listed) == sorted(expected)
    for name, operand in listed:
        words, answer = expected[name]
        done = piped(training, f"{name} {words}\n").ok()
        assert re.search(answer, done.stdout, re.M), done
        if not operand:
            assert f"{name} takes nothing" in piped(training, f"{name} something\n").stderr
        elif not operand.startswith("["):
            assert f"{name} takes {operand}" in piped(training, f"{name}\n").stderr
    assert "func" in piped(training, f"%bt {tid}\n").ok().stdout
    for wrong, why in (("%bt x", "'x' is not a thread"), ("%timeout never", "'never' is not a time"), ("%frame x", "is not a frame"),
                       ("%q SELEC", "SELEC"), ("%tensor", "did you mean '%tensors'?")):
        done = piped(training, wrong + "\n")
        assert done.status == 1 and why in done.stderr, done


# ---- at a terminal ----

def test_typing(job, typed):
    t = typed(job)
    enter(t, "count * 6\n", "42")
    enter(t, "_ + 1\n", "43")
    # A block ends with an empty line.
    enter(t, "def g(a):\n", "", "... ")
    enter(t, "    return a + 1\n", "", "... ")
    enter(t, "\n", "")
    enter(t, "g(1)\n", "2")
    shown = enter(t, "1 / 0\n", "ZeroDivisionError: division by zero")
    assert "Traceback" in shown and "the code raised" not in shown
    enter(t, "print('\\x1b[31m')\n", "\ufffd[31m")
    # Up: the line before, which is run again.
    enter(t, "g(41)\n", "42")
    enter(t, "\x1b[A\n", "42")
    t.type("\x04")
    assert os.WEXITSTATUS(t.wait()) == 0
    assert t.before == __import__("termios").tcgetattr(t.fd)


def test_completion(job, typed):
    t = typed(job)
    shown = enter(t, "asked.inside.deep\t\t", "deeper_two")
    assert "asked.inside.deeper_" in shown and "deeper_one" in shown
    enter(t, "one\n", "1")
    enter(t, "asked.slot.in\t\n", "3")
    enter(t, "asked.meth\t()\n", "1")
    enter(t, "os.path.basena\t('a/b')\n", "'b'")
    enter(t, "coun\t\n", "7")
    enter(t, "asked.inside\n", "Bare object")
    enter(t, "_.deeper_t\t\n", "2")
    enter(t, "%thre\t\n", "MainThread")
    enter(t, "%time coun\t\n", "ms in the job")
    enter(t, "%q SELECT func FROM python.backt\t WHERE func = 'wor' || 'k'\n", "(1 row, ")
    shown = enter(t, "%ti\t\t", "%timeout", "%time")
    assert re.search(r"%time +%timeout", shown)
    t.type("\x15")
    shown = enter(t, "asked.\t\t", "prop", "asked.")
    assert all(word in shown for word in ("inside", "kind", "method", "prop", "slot")) and "__init__" not in shown
    t.type("\x15")  # what is typed so far is taken back
    enter(t, "asked.prop.\t\t\x15nothing_at_all.\t\x15count\n", "7")
    t.type("\x04")
    t.wait()
    assert not re.search("GETATTR|DIR|PROPERTY", job.output()), "nothing of the job's own was asked"


def test_interrupts(job, typed, tmp_path, wait_until):
    t = typed(job)
    # A line that is typed is given up, and a block with it.
    t.type("1 + nonsense")
    t.wait_for("nonsense")
    enter(t, "\x03", "^C")
    enter(t, "if 1:\n", "", "... ")
    enter(t, "\x03", "^C")
    enter(t, "2 + 2\n", "4")
    # Code that runs is interrupted, long before its time is over; the connection stays, and what it has kept.
    marker = tmp_path / "runs"
    enter(t, "import time\n", "")
    enter(t, "while True:\n", "", "... ")
    enter(t, f"    open({str(marker)!r}, 'w').close(); time.sleep(0.001)\n", "", "... ")
    t.type("\n")
    wait_until(marker.exists, 60, "the code to run")
    enter(t, "\x03", "KeyboardInterrupt")
    shown = enter(t, "_ + 1\n", "5")
    assert "connected again" not in plain(t.output) and "Traceback" not in shown
    marker.unlink()
    t.type("\x04")
    assert os.WEXITSTATUS(t.wait()) == 0 and not marker.exists(), "it runs no more"


def test_code_that_waits_is_withdrawn(target, typed, tmp_path, wait_until, probing, ptrace):
    """^C before it begins: nothing is run, neither now nor when the main thread comes to it."""
    job = target(WAITING, tmp_path)
    marker = tmp_path / "marker"
    t = typed(job, "--main", "--timeout", "600s")
    t.type(f"open({str(marker)!r}, 'w')\n")
    wait_until(lambda: "open(" in probing(str(job.pid), "query", "SELECT text FROM probing.events WHERE kind = 'eval'").ok().stdout, 60, "the question")
    enter(t, "\x03", "it was interrupted before it began; nothing was run, and nothing will be")
    (tmp_path / "open").touch()
    enter(t, "6 * 7\n", "42")
    assert not marker.exists()


def test_remembering(job, typed, tmp_path):
    t = typed(job)
    enter(t, "count + 100\n", "107")
    t.type("\x04")
    t.wait()
    path = tmp_path / "state" / "probing-top" / "repl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text() == "count + 100\n"
    t = typed(job)
    enter(t, "\x1b[A\n", "107")
    enter(t, "\x12coun\n", "107")


def test_the_agent_goes_and_comes(job, typed, probing, wait_until):
    t = typed(job)
    enter(t, "kept = 11\n", "")
    probing(str(job.pid), "eject").ok()
    shown = enter(t, "kept * 2\n", "22")
    assert "connected again" in shown
    enter(t, "_ + 1\n", "23")
    job.end()
    begin = len(t.output)
    t.type("kept\n")
    assert os.WEXITSTATUS(t.wait(60)) in (3, 4), t.output[begin:]
    assert b"probing: " in t.output[begin:]
