# SPDX-License-Identifier: Apache-2.0
"""Code run in the job on request: what it gives, what it prints and nobody else, and that it can harm nobody by not ending."""

import os
import re
import signal
import subprocess
import time

import pytest

from agent_wire import Client

pytestmark = pytest.mark.timeout(300)

# Prints all the time on threads of its own; its main thread runs Python, and says what sys has when a file appears.
JOB = r'''
import os, sys, threading, time

folder = sys.argv[1]
kept = (sys.stdin, sys.stdout, sys.stderr)
count = 0

def noise(word):
    n = 0
    while True:
        sys.stdout.write("%s %d\n" % (word, n))
        n += 1
        time.sleep(0.002)

def work(number, secret="s3cret"):
    def inner():
        return number
    doubled = 2 * number
    while True:
        time.sleep(0.002)
        if os.access(folder + "/ask", 0):  # no frame of Python
            os.remove(folder + "/ask")
            same = all(a is b for a, b in zip(kept, (sys.stdin, sys.stdout, sys.stderr)))
            with open(folder + "/new", "w") as out:
                out.write(repr((same, sorted(globals()), sorted(threading._active) == sorted(t.ident for t in threading.enumerate()))))
            os.rename(folder + "/new", folder + "/told")

for word in ("red", "green"):
    threading.Thread(target=noise, args=(word,), name=word, daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
work(21)
'''

# Its main thread waits in C, without the GIL, until a file appears.
WAITING = r'''
import os, sys, threading, time

gate = threading.Lock()
gate.acquire()

def open_gate():
    while not os.path.exists(sys.argv[1] + "/open"):
        time.sleep(0.005)
    gate.release()

threading.Thread(target=open_gate, daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
gate.acquire()
while True:
    time.sleep(0.005)
'''

HOG = r'''
import ctypes, os, sys, threading, time
hog = ctypes.PyDLL(sys.argv[1])  # it ends when somebody writes to our memory
counter, stop = ctypes.c_uint64(0), ctypes.c_int(0)
os.write(int(os.environ["READY_FD"]), b"%d\n" % ctypes.addressof(stop))
hog.gilhog_spin(ctypes.byref(counter), ctypes.byref(stop))
while True:
    time.sleep(0.005)
'''


def evaluate(probing, pid, code, *options, verb="eval", status=0, **more):
    """The document of an eval."""
    done = probing(str(pid), verb, code, "--json", *options, timeout=90, **more)
    assert done.status == status, done
    document = done.json()
    assert set(document) == {"schema_version", "result", "output", "error", "duration_ms", "truncated", "timed_out", "unended"}
    assert document["schema_version"] == 1
    return document


def told(folder, wait_until):
    """What the job says of itself."""
    (folder / "ask").touch()
    wait_until((folder / "told").exists, 60, "the job to say what it has")
    text = (folder / "told").read_text()
    (folder / "told").unlink()
    return eval(text)


def again(probing, pid, code, wait_until, what="another eval"):
    """The document, once what ran before lets go."""
    def tried():
        done = probing(str(pid), "eval", code, "--json", timeout=60)
        assert done.status == 0 or "still running" in done.stderr or "another eval is running" in done.stderr, done
        return done.json() if done.status == 0 else None
    return wait_until(tried, 90, what)


def events(probing, pid):
    rows = probing(str(pid), "query", "SELECT kind, client_uid, client_pid, text FROM probing.events", "--format", "json").ok().json()["rows"]
    return [(r["kind"], r["text"]) for r in rows], rows


@pytest.fixture
def noisy(target, tmp_path, ptrace):
    return target(JOB, tmp_path)


def test_each_python(each_python, target, probing, tmp_path, wait_until, ptrace):
    job = target(JOB, tmp_path, python=each_python)
    before = told(tmp_path, wait_until)
    assert before[0] and before[2]
    assert evaluate(probing, job.pid, "1 + 1")["result"] == "2"
    # Statements, prints to both streams, then the last expression; names stay in __main__, the value does not.
    document = evaluate(probing, job.pid, "import sys\nfirst = 5\nprint('out')\nprint('err', file=sys.stderr)\nfirst * 2")
    assert (document["result"], document["output"], document["error"]) == ("10", "out\nerr\n", None)
    assert document["duration_ms"] > 0 and not document["truncated"] and not document["timed_out"]
    assert evaluate(probing, job.pid, "None")["result"] is None
    assert evaluate(probing, job.pid, "first, '_' in dir(__builtins__)")["result"] == "(5, False)"
    # An exception, with frames of the code alone.
    raised = evaluate(probing, job.pid, "def f():\n    raise ValueError('no')\nprint('before')\nf()", status=1)
    assert raised["output"] == "before\n" and raised["result"] is None
    assert (raised["error"]["type"], raised["error"]["message"]) == ("ValueError", "no")
    files = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', raised["error"]["traceback"])
    assert files == [("<eval>", "4", "<module>"), ("<eval>", "2", "f")]
    assert evaluate(probing, job.pid, "1 +", status=1)["error"]["type"] == "SyntaxError"
    assert evaluate(probing, job.pid, "def f(n): return f(n + 1)\nf(0)", status=1)["error"]["type"] == "RecursionError"
    assert evaluate(probing, job.pid, "import threading; threading.current_thread().name", "--main")["result"] == "'MainThread'"
    assert evaluate(probing, job.pid, "import logging; logging.getLogger('x').warning('w'); threading.current_thread() and 1")["output"] == "w\n"
    # A frame: its variables, those of the function around it, its globals, seen by what is made there too.
    frame = f"{job.pid}:0"
    seen = evaluate(probing, job.pid, "number, doubled, secret, [i * doubled for i in (1, 2)], (lambda: number + len(kept))()", "--frame", frame)
    assert seen["result"] == "(21, 42, 's3cret', [42, 84], 24)"
    evaluate(probing, job.pid, "doubled = 0; count = 77", "--frame", frame)
    assert evaluate(probing, job.pid, "doubled, count", "--frame", frame)["result"] == "(42, 0)"
    outer = evaluate(probing, job.pid, "outer_was_here = count; sorted(k for k in locals() if k == 'work')", "--frame", f"{job.pid}:1")
    assert outer["result"] == "['work']"
    # What never ends is ended, and its thread is free for others.
    ended = evaluate(probing, job.pid, "while True: pass", "--timeout", "300ms", status=1)
    assert ended["timed_out"] and ended["error"]["type"] == "KeyboardInterrupt"
    ended = evaluate(probing, job.pid, "while True: pass", "--timeout", "300ms", "--main", status=1)
    assert ended["timed_out"] and ended["error"]["type"] == "KeyboardInterrupt"
    evaluate(probing, job.pid, "del first, f, logging, outer_was_here")
    after = told(tmp_path, wait_until)
    assert after[0], "sys.stdin, stdout and stderr are those from before"
    assert after == before, "and so are the names of __main__, and the threads that threading knows"


def test_output_is_kept_apart(noisy, probing, tmp_path, wait_until):
    """Nothing of the job's goes to the client, nothing of the client's to the job, and no line of the job's is lost."""
    code = "import time\nfor i in range(300):\n    print('mine', i)\n    time.sleep(0.001)"
    for _ in range(3):
        document = evaluate(probing, noisy.pid, code)
        assert document["output"] == "".join(f"mine {i}\n" for i in range(300))
    evaluate(probing, noisy.pid, "import threading\nt = threading.Thread(target=print, args=('of a thread of the code',))\nt.start(); t.join(); del t")
    evaluate(probing, noisy.pid, code.replace("range(300)", "range(100)"), "--main")
    assert told(tmp_path, wait_until)[0]
    wait_until(lambda: "red 500" in noisy.output(), 60, "more noise")
    printed = noisy.output()
    assert "mine" not in printed and printed.count("of a thread of the code") == 1
    for word in ("red", "green"):
        numbers = [int(n) for n in re.findall(rf"{word} (\d+)", printed)]
        assert numbers == list(range(len(numbers))), f"lines of {word} are lost"
    assert "Error" not in printed


def test_a_stream_that_is_left_behind_goes_on(noisy, probing, wait_until, tmp_path):
    """Somebody takes sys.stdout while it is ours and keeps it."""
    evaluate(probing, noisy.pid, "import sys\nleft = sys.stdout\nold = kept[1]\nsys.stdout = left")
    # Used by a thread of the job's later: it is the job's own stream by another name.
    evaluate(probing, noisy.pid, "def use():\n    global same\n    left.write('left behind\\n'); left.flush()\n"
             "    same = isinstance(left, type(old)), left.fileno() == old.fileno(), left.encoding == old.encoding\n"
             "t = threading.Thread(target=use)\nt.start(); t.join()")
    assert evaluate(probing, noisy.pid, "same")["result"] == "(True, True, True)"
    wait_until(lambda: "left behind\n" in noisy.output(), 60, "what was written to it")
    # Put there again by the code itself: it stays, for what is there is not ours any more.
    evaluate(probing, noisy.pid, "import io\nmine = io.StringIO()\nsys.stdout = mine")
    assert told(tmp_path, wait_until)[0] is False
    assert evaluate(probing, noisy.pid, "sys.stdout is mine")["result"] == "False"
    evaluate(probing, noisy.pid, "sys.stdout = old")
    assert told(tmp_path, wait_until)[0]


def test_descriptors_are_those_of_the_job(noisy, probing, tmp_path):
    """What the code opens the job can use, and the other way round: the agent's own threads have others."""
    path = tmp_path / "written"
    evaluate(probing, noisy.pid, f"f = open({str(path)!r}, 'w')\nf.write('by the worker, ')")
    evaluate(probing, noisy.pid, "f.write('by main')\nf.close()", "--main")
    assert path.read_text() == "by the worker, by main"
    listed = "sorted(os.listdir('/proc/thread-self/fd'))"
    assert evaluate(probing, noisy.pid, listed)["result"] == evaluate(probing, noisy.pid, listed, "--main")["result"]
    assert evaluate(probing, noisy.pid, "os.fstat(1).st_ino, os.fstat(kept[1].fileno()).st_ino")["result"] == str((os.stat(f"/proc/{noisy.pid}/fd/1").st_ino,) * 2)


def test_nothing_is_left(noisy, probing, tmp_path, wait_until):
    before = told(tmp_path, wait_until)
    threads = set(noisy.thread_names().values())
    modules = evaluate(probing, noisy.pid, "sorted(sys.modules)")["result"]
    evaluate(probing, noisy.pid, "1 / 0", status=1)
    evaluate(probing, noisy.pid, "threading.current_thread().name, sorted(v for v in ()), count")
    evaluate(probing, noisy.pid, "number", "--frame", f"{noisy.pid}:0")
    assert evaluate(probing, noisy.pid, "sorted(sys.modules)")["result"] == modules
    probing(str(noisy.pid), "eject").ok()
    assert told(tmp_path, wait_until) == before
    assert set(noisy.thread_names().values()) == threads


def test_references_are_given_back(noisy, probing, wait_until):
    """Many evals, failed ones and interrupted ones too: what they saw is referred to by nobody, and nothing piles up."""
    evaluate(probing, noisy.pid, "import gc, weakref, sys\nclass Big: pass\nbig = Big(); ref = weakref.ref(big)")
    count = int(evaluate(probing, noisy.pid, "sys.getrefcount(big)")["result"])
    for _ in range(5):
        evaluate(probing, noisy.pid, "held = big\ndef f(x=big): raise ValueError(x)\nf()", status=1)
        evaluate(probing, noisy.pid, "big")
        evaluate(probing, noisy.pid, "del held, f")
    assert int(evaluate(probing, noisy.pid, "gc.collect(); sys.getrefcount(big)")["result"].strip()) == count
    evaluate(probing, noisy.pid, "del big")
    assert evaluate(probing, noisy.pid, "ref()")["result"] is None
    objects = "gc.collect(); len(gc.get_objects())"
    evaluate(probing, noisy.pid, objects)
    first = int(evaluate(probing, noisy.pid, objects)["result"])
    for _ in range(20):
        evaluate(probing, noisy.pid, "print(1); [i for i in range(3)]")
    assert int(evaluate(probing, noisy.pid, objects)["result"]) - first < 20


def test_files_and_standard_input(noisy, probing, tmp_path):
    script = tmp_path / "script.py"
    script.write_bytes("# -*- coding: latin-1 -*-\nprint('ä' == chr(228))\nraise KeyError('x')\n".encode("latin-1"))
    done = probing(str(noisy.pid), "execute", str(script))
    assert done.status == 1 and done.stdout == "True\n"
    assert f'File "{script}", line 3, in <module>' in done.stderr and "probing: the code raised KeyError" in done.stderr
    piped = subprocess.run([probing.path, "-t", str(noisy.pid), "execute", "-"], input="print(6 * 7)\n", capture_output=True, text=True, timeout=60)
    assert (piped.returncode, piped.stdout) == (0, "42\n")
    assert probing("-t", str(noisy.pid), "execute", "6 * 7").ok().stdout == "42\n"
    for operand, status, why in ((str(tmp_path), 2, "is a folder"), ("no_such_script.py", 2, "there is no file")):
        done = probing(str(noisy.pid), "execute", operand)
        assert done.status == status and why in done.stderr and done.stderr.count("\n") == 1, done
    big = tmp_path / "big.py"
    big.write_text("#" * (1 << 20))
    done = probing(str(noisy.pid), "execute", str(big))
    assert done.status == 2 and "longer than" in done.stderr, done
    fits = tmp_path / "fits.py"
    fits.write_text("1\n#" + "x" * 1000000)
    assert probing(str(noisy.pid), "execute", str(fits)).ok().stdout == "1\n"


def test_bad_options(noisy, probing):
    for arguments, why in ((["eval"], "needs code"), (["execute"], "needs a file"), (["eval", "1", "--frame", "x"], "is not a frame"),
                           (["eval", "1", "--frame", "1:x"], "is not a frame"), (["eval", "1", "--timeout", "0"], "timeout"),
                           (["eval", "1", "--max-output", "99999999"], "max-output"), (["eval", "1", "2"], "one argument")):
        done = probing(str(noisy.pid), *arguments)
        assert done.status == 2 and why in done.stderr and done.stderr.count("\n") == 1, done
    for frame, why in ((f"{noisy.pid}:99", "the outermost is"), ("1:0", "no Python frames")):
        done = probing(str(noisy.pid), "eval", "1", "--frame", frame)
        assert done.status == 1 and why in done.stderr, done


def test_lines_that_people_type(noisy, probing):
    names = probing("-t", str(noisy.pid), "eval", "import threading; print([t.name for t in threading.enumerate()])").ok().stdout
    assert names == "['MainThread', 'red', 'green']\n"
    assert probing(str(noisy.pid), "execute", "import traceback;traceback.print_stack()").ok().stdout.startswith('  File "<eval>", line 1')
    assert "work" in probing(str(noisy.pid), "dump").ok().stdout


def test_limits(noisy, probing):
    """A gigabyte of prints, a huge value, and bytes that are not text: bounded, and said so."""
    code = "import time\nuntil = time.monotonic() + 1\nwhile time.monotonic() < until: print('x' * 1000000)\n'y' * 10"
    document = evaluate(probing, noisy.pid, code, "--timeout", "60s")
    assert len(document["output"]) == 1 << 20 and document["truncated"] and document["result"] == repr("y" * 10)
    document = evaluate(probing, noisy.pid, "'z' * 10**8", "--max-output", "2", "--timeout", "60s")
    assert document["result"] == "'" + "z" * 2047 and document["truncated"]
    done = probing(str(noisy.pid), "eval", "'z' * 10**6", "--max-output", "1")
    assert done.status == 0 and len(done.stdout) == 1025 and "was truncated at 1 KiB" in done.stderr
    odd = evaluate(probing, noisy.pid, r"import sys; sys.stdout.buffer.write(b'a\xff\0b'); print('\ud800'); '\0'")
    assert odd["output"] == "a\ufffd\0b\\ud800\n" and odd["result"] == r"'\x00'"
    raised = evaluate(probing, noisy.pid, "raise ValueError('m' * 10**7)", "--max-output", "4", status=1)
    assert raised["truncated"] and len(raised["error"]["message"]) == 4096
    evil = "class E(Exception):\n    def __str__(self): raise KeyError\nraise E"
    assert evaluate(probing, noisy.pid, evil, status=1)["error"]["type"] == "E"
    assert evaluate(probing, noisy.pid, "class R:\n    def __repr__(self): return 1 / 0\nR()", status=1)["error"]["type"] == "ZeroDivisionError"


def test_ends_of_processes(noisy, probing, wait_until):
    """sys.exit ends nothing, a forked child ends itself and is not a second worker; os._exit is what was asked for."""
    left = evaluate(probing, noisy.pid, "import sys; sys.exit(3)", status=1)
    assert (left["error"]["type"], left["error"]["message"]) == ("SystemExit", "3")
    forked = evaluate(probing, noisy.pid, "import os\npid = os.fork()\nos.waitpid(pid, 0)[1] if pid else print('child')")
    assert (forked["result"], forked["error"]) == ("0", None) and "child" not in forked["output"]
    assert evaluate(probing, noisy.pid, "input()", status=1)["error"]["type"] == "EOFError"
    assert noisy.alive()
    done = probing(str(noisy.pid), "eval", "import os; os._exit(5)")
    assert done.status == 4 and done.stderr.count("\n") == 1, done
    assert noisy.process.wait(60) == 5
    assert ("eval", "import os; os._exit(5)") in events(probing, noisy.pid)[0], "kept though the process went at once"


def test_builtins_that_the_job_has_lost(noisy, probing):
    """Ours are our own; what code sees are the job's."""
    code = ("import builtins\nlost = {n: builtins.__dict__.pop(n) for n in ('compile', 'isinstance', 'getattr', 'memoryview', 'dict', 'min', 'type')}\n"
            "builtins.len = builtins.print = None\nlen")
    assert evaluate(probing, noisy.pid, code)["result"] is None
    assert evaluate(probing, noisy.pid, "compile", status=1)["error"]["type"] == "NameError"
    assert evaluate(probing, noisy.pid, "__builtins__.len is None, 'min' in vars(builtins)")["result"] == "(True, False)"
    assert evaluate(probing, noisy.pid, "builtins.__dict__.update(lost)\n1 + 1")["result"] == "2"


@pytest.mark.parametrize("code, why", [("del sys.modules['__main__']", "the job has no module __main__ to run code in"),
                                       ("sys.modules['__main__'] = 5", "cannot prepare the code: AttributeError: ")])
def test_what_cannot_be_prepared_is_named(noisy, probing, code, why):
    """A __main__ that is gone, and one that is something else, are two errors."""
    evaluate(probing, noisy.pid, f"import sys\nsys.whole = sys.modules['__main__']\n{code}")
    done = probing(str(noisy.pid), "eval", "1")
    assert done.status == 1 and why in done.stderr and done.stderr.count("\n") == 1, done


def test_a_job_that_has_not_imported_io(each_python, target, probing, ptrace):
    """Of 3.14 a small script has not; the others are made to have lost it."""
    job = target("import os, sys, time\nsys.modules.pop('io', None)\nos.write(int(os.environ['READY_FD']), b'ready\\n')\n"
                 "while True: time.sleep(0.01)", python=each_python)
    document = evaluate(probing, job.pid, "print('out')\n'io' in sys.modules")
    assert (document["result"], document["output"]) == ("False", "out\n")
    assert evaluate(probing, job.pid, "1/0", status=1)["error"]["type"] == "ZeroDivisionError"


def test_interrupted_while_the_main_thread_waits(target, probing, tmp_path, wait_until, ptrace):
    """Nobody but the code itself runs Python."""
    job = target(WAITING, tmp_path)
    ended = evaluate(probing, job.pid, "n = 0\nwhile True: n += 1", "--timeout", "300ms", status=1)
    assert ended["timed_out"] and not ended["unended"] and ended["error"]["type"] == "KeyboardInterrupt"
    assert again(probing, job.pid, "n > 0", wait_until)["result"] == "True"


def test_what_catches_the_interrupt(noisy, probing, wait_until):
    """It goes on until it is interrupted; until then no other code runs, nor an eject, and the answers say so."""
    code = "halt = False\ntimes = 0\nwhile not halt:\n    try:\n        while not halt: pass\n    except BaseException: times += 1"
    document = evaluate(probing, noisy.pid, code, "--timeout", "200ms", status=1)
    assert document["timed_out"] and document["unended"] and document["error"] is None and document["result"] is None
    refused = probing(str(noisy.pid), "eval", "1")
    assert refused.status == 1 and "still running" in refused.stderr and refused.stderr.count("\n") == 1
    refused = probing(str(noisy.pid), "eject")
    assert refused.status == 1 and "while an eval is running" in refused.stderr, refused
    backtrace = probing(str(noisy.pid), "backtrace", "--json").ok().json()
    assert any(t["name"] == "MainThread" for t in backtrace["threads"]), "everything else works"


def test_code_in_c_is_interrupted_behind_it(noisy, probing, wait_until):
    document = evaluate(probing, noisy.pid, "import time\ntime.sleep(3)\nreached = True", "--timeout", "200ms", status=1)
    assert document["unended"]
    assert again(probing, noisy.pid, "'reached' in globals()", wait_until)["result"] == "False"
    probing(str(noisy.pid), "eject").ok()


def test_the_client_goes(noisy, probing, wait_until):
    """^C in the terminal ends the code too, long before its time."""
    process = subprocess.Popen([probing.path, str(noisy.pid), "eval", "began = True\nwhile True: pass", "--timeout", "1h"])
    wait_until(lambda: any(text.startswith("began") for _, text in events(probing, noisy.pid)[0]), 60, "the code to begin")
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert again(probing, noisy.pid, "1", wait_until)["result"] == "1"


def test_one_at_a_time(noisy, probing, wait_until):
    first = subprocess.Popen([probing.path, str(noisy.pid), "eval", "go = False\nwhile not go: pass", "--timeout", "1h"])
    wait_until(lambda: any(text.startswith("go") for _, text in events(probing, noisy.pid)[0]), 60, "the first to begin")
    second = probing(str(noisy.pid), "eval", "1")
    assert second.status == 1 and "another eval is running" in second.stderr and second.stderr.count("\n") == 1
    first.send_signal(signal.SIGTERM)
    first.wait(60)
    # On a busy machine it is interrupted before its first line has run.
    assert again(probing, noisy.pid, "globals().get('go', False)", wait_until)["result"] == "False"


def poke(pid, address):
    """Set an int of another process."""
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(b"\1\0\0\0")


def refused(probing, pid, code, why, wait_until, *args):
    """The evaluation that is refused for that reason; on a busy machine one may be refused because a thread of the agent got no CPU in time."""
    def is_it():
        done = probing(str(pid), "eval", code, *args, timeout=90)
        assert done.status == 1 and done.stdout == "", done
        return why in done.stderr and done
    return wait_until(is_it, 90, why)


@pytest.mark.parametrize("where", [(), ("--main",)])
def test_the_gil_is_held(target, probing, build_dir, tmp_path, wait_until, ptrace, where):
    """Said within the time limit, and what was not begun is never run, not even when the GIL is free again."""
    job = target(HOG, os.path.join(build_dir, "tests", "targets", "gilhog.so"))
    marker = tmp_path / "marker"
    probing(str(job.pid), "inject").ok()
    started = time.monotonic()
    refused(probing, job.pid, f"open({str(marker)!r}, 'w')", f"thread {job.pid} holds it; nothing was run, and nothing will be", wait_until, "--timeout", "1s", *where)
    assert time.monotonic() - started >= 1
    probing(str(job.pid), "backtrace").ok()
    probing(str(job.pid), "status").ok()
    poke(job.pid, int(job.ready))
    assert again(probing, job.pid, "counter.value > 0", wait_until)["result"] == "True"
    assert evaluate(probing, job.pid, "1", "--main")["result"] == "1", "so what was asked for before would have been run by now"
    assert not marker.exists()


def test_a_main_thread_that_waits(target, probing, tmp_path, wait_until, ptrace):
    """It comes to no safe point in time; when it does later, nothing happens."""
    job = target(WAITING, tmp_path)
    marker = tmp_path / "marker"
    done = refused(probing, job.pid, f"open({str(marker)!r}, 'w')", "the main thread ran no Python within 0.3 s", wait_until, "--main", "--timeout", "300ms")
    assert "nothing will be" in done.stderr, done
    assert evaluate(probing, job.pid, "1")["result"] == "1", "the agent's own thread can"
    (tmp_path / "open").touch()

    def by_main():
        done = probing(str(job.pid), "eval", "threading.current_thread().name", "--main", "--timeout", "2s", timeout=90)
        return done.stdout == "'MainThread'\n"
    wait_until(by_main, 60, "the main thread to run Python")
    assert not marker.exists()


LATE = r'''
import os, sys, time
class Late:
    def __del__(self, name=sys.argv[1] + "/late", open=os.open, flags=os.O_CREAT, sleep=time.sleep):
        open(name, flags)
        sleep(600)
late = Late()
os.write(int(os.environ["READY_FD"]), b"ready\n")
while not os.path.exists(sys.argv[1] + "/end"):
    time.sleep(0.005)
'''


@pytest.mark.parametrize("there", [True, False])
def test_the_interpreter_ends(target, probing, tmp_path, wait_until, ptrace, there):
    """One line, whether an agent was there before or is only to be put in."""
    job = target(LATE, tmp_path)
    if there:
        assert evaluate(probing, job.pid, "1")["result"] == "1"
    (tmp_path / "end").touch()
    wait_until((tmp_path / "late").exists, 60, "the interpreter to end")
    for options in ((), ("--main",)):
        done = probing(str(job.pid), "eval", "open('/nowhere', 'w')", "--timeout", "2s", *options, timeout=90)
        assert done.status == (1 if there else 3) and done.stdout == "" and done.stderr.count("\n") == 1, done
        assert "ending" in done.stderr or "finali" in done.stderr or "ended" in done.stderr, done
    assert job.alive()


def test_switched_off_and_looking_only(noisy, probing):
    pid = str(noisy.pid)
    evaluate(probing, pid, "1 + 1 #" + "x" * 200)
    probing(pid, "config", "probing.eval=off").ok()
    refused = probing(pid, "eval", "print('no')")
    assert refused.status == 1 and "probing.eval is off" in refused.stderr and refused.stderr.count("\n") == 1, refused
    probing(pid, "config", "probing.eval=on").ok()
    for arguments in (["--readonly", pid, "eval", "print('ro')"], [pid, "execute", "print('ro')", "--readonly"], ["--readonly", pid, "eject"],
                      [pid, "config", "probing.eval=off", "--readonly"], ["--readonly", pid, "inject"]):
        refused = probing(*arguments)
        assert refused.status == 2 and "--readonly" in refused.stderr and refused.stderr.count("\n") == 1, refused
    assert probing(pid, "backtrace", "--readonly").ok() and probing("--readonly", pid, "config", "probing.eval").ok().stdout == "on\n"
    seen, rows = events(probing, pid)
    assert seen == [("eval", "1 + 1 #" + "x" * 73), ("eval refused", "print('no')")], "eighty characters; what --readonly refuses is not even asked"
    assert all(r["client_uid"] == os.geteuid() and r["client_pid"] > 0 for r in rows)


def test_readonly_injects_nothing(target, probing, tmp_path, ptrace):
    job = target(JOB, tmp_path)
    threads = job.tids()
    document = probing("--readonly", str(job.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and job.tids() == threads


def test_off_from_the_environment(target, probing, tmp_path, ptrace):
    job = target(JOB, tmp_path, env={"PROBING_EVAL": "off"})
    refused = probing(str(job.pid), "eval", "1")
    assert refused.status == 1 and "probing.eval is off" in refused.stderr


def test_bad_messages(noisy, probing):
    endpoint = probing(str(noisy.pid), "inject", "--json").ok().json()["endpoint"].removeprefix("unix:")
    with Client(endpoint) as client:
        for params in ({}, {"code": 5}, {"code": b"1", "timeout_s": -1.0}, {"code": b"1", "timeout_s": 1e9}, {"code": b"1", "main": 1},
                       {"code": b"1", "output_bytes": 1 << 40}, {"code": b"1", "tid": -1}, {"code": b"1", "name": "x" * 500}):
            assert client.call_error("eval", params)["code"] == 2, params
        answer = client.call("eval", {"code": "1 + 1", "unknown": [1, 2]})
        assert (answer["result"], answer["type"]) == (b"2", None)
        # Two at once of one client: the second is refused, the first is answered.
        first = client.send("eval", {"code": b"import time; time.sleep(0.3)"})
        second = client.send("eval", {"code": b"2"})
        answers = {m[1]: m[2] for m in (client.message(), client.message())}
        assert answers[first] is None and answers[second]["code"] == 3


def test_training(target, probing, torch_python, source_dir, wait_until, ptrace):
    """The model of a job that trains, looked at while it does."""
    job = target(os.path.join(source_dir, "examples", "train.py"), python=torch_python, ready=r"step +\d+ ")
    document = evaluate(probing, job.pid, "import torch; print(torch.__version__); torch.is_grad_enabled()")
    assert document["output"].startswith("2.") or document["output"].startswith("1."), document

    def outermost():  # frames are counted from the innermost, and this thread runs: it may be another one a moment later
        threads = probing(str(job.pid), "backtrace", "--json").ok().json()["threads"]
        main = next(t for t in threads if t["name"] == "MainThread")
        done = probing(str(job.pid), "eval", "sorted(k for k in dir() if k == 'torch')", "--frame", f"{main['tid']}:{len(main['frames']) - 1}", timeout=60)
        assert done.status == 0 or "frame has ended" in done.stderr or "the outermost is" in done.stderr or "ran on" in done.stderr, done
        return done.status == 0 and done.stdout.startswith("[")
    wait_until(outermost, 90, "a look into the outermost frame")
    at = job.output().count("step")
    wait_until(lambda: job.output().count("step") > at, 60, "the next step")


# Takes so much CPU time, of the calling thread.
BURN = """
import time
class Burner:
    def __repr__(self):
        burn(0.4)
        return "burnt"
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""


@pytest.mark.long
def test_holds_of_the_gil_are_ours_alone(noisy, probing):
    """What a client's code takes is not counted; what is made ready for it, the text of its value and what is put back are."""
    def holds():
        return probing(str(noisy.pid), "status", "--json").ok().json()["gil"]
    evaluate(probing, noisy.pid, BURN)
    before = holds()
    for options in ((), ("--main",)):
        assert evaluate(probing, noisy.pid, "burn(1.5)", *options)["error"] is None
        assert evaluate(probing, noisy.pid, "burn(1.5); 7", *options)["result"] == "7"
        assert evaluate(probing, noisy.pid, "burn(1.5); 1 / 0", *options, status=1)["error"]["type"] == "ZeroDivisionError"
    after = holds()
    assert after["us_longest_hold"] < 1.4e6, after
    assert after["holds"] >= before["holds"] + 12  # two at least for each: before the code, and after it
    assert after["holds"] * after["us_per_hold"] < 1.4e6
    assert evaluate(probing, noisy.pid, "Burner()")["result"] == "burnt"
    assert holds()["us_longest_hold"] > 0.39e6
    lines = "\n".join(f"a{i} = [{i}, {i} + 1]" for i in range(3000))
    before = holds()
    assert evaluate(probing, noisy.pid, f"if False:\n    pass\n{lines.replace('a', 'b')}")["error"] is None
    after = holds()
    assert after["holds"] * after["us_per_hold"] - before["holds"] * before["us_per_hold"] > 5e3  # compiling 3000 lines
