# SPDX-License-Identifier: Apache-2.0
"""What the agent says of every thread, through the whole way, against what the interpreter itself says at rest."""

import json
import os

import pytest

from conftest import is_free_threaded

PLACES = '''
import ctypes, json, os, sys, threading, time, traceback

libc = ctypes.CDLL(None)

def sleep_long():
    time.sleep(3600)

def wait_for_lock():
    lock.acquire()

def wait_in_c():
    libc.pause()

def recurse(n):
    return recurse(n - 1) if n else wait_on_event()

def wait_on_event():
    forever.wait()

def größe_ändern():
    forever.wait()

class 模型:
    def 前向(self):
        return [self.内层() for _ in range(1)]

    def 内层(self):
        forever.wait()

def one_of_many():
    forever.wait()

def qualified_name(code):
    return getattr(code, "co_qualname", code.co_name)

def stacks():
    """{tid: [function, file, line]...} of all threads but this one, innermost first."""
    tids = {t.ident: t.native_id for t in threading.enumerate() if hasattr(t, "native_id")}  # before 3.8: once it runs
    me = threading.get_ident()
    found = {}
    for ident, frame in sys._current_frames().items():
        if ident != me and ident in tids:
            found[tids[ident]] = [[qualified_name(f.f_code), f.f_code.co_filename, line] for f, line in
                                  traceback.walk_stack(frame)]
    return found

def report():
    """Once nobody moves any more, the truth."""
    before = None
    while True:
        now = stacks()
        if now == before and len(now) == EXPECTED:
            break
        before = now
        time.sleep(0.05)
    names = {t.native_id: t.name for t in threading.enumerate()}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({str(tid): {"name": names[tid], "frames": frames} for tid, frames in now.items()}, out)
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    time.sleep(3600)

if not hasattr(threading.Thread, "native_id"):  # before 3.8
    def run_numbered(self, run=threading.Thread.run):
        self.native_id = libc.syscall(186)
        run(self)
    threading.Thread.run = run_numbered
    threading.main_thread().native_id = os.getpid()

sys.setrecursionlimit(5000)
threading.stack_size(64 * 1024 * 1024)
lock = threading.Lock()
lock.acquire()
forever = threading.Event()
places = [(sleep_long, (), "sleeper"), (wait_for_lock, (), "locked"), (wait_in_c, (), "in C"),
          (recurse, (900,), "deep"), (größe_ändern, (), "Größe"), (模型().前向, (), "训练 🚂"),
          (forever.wait, (), "a name of more than fifteen characters, with \\x1b[31m in it")]
for function, arguments, name in places:
    threading.Thread(target=function, args=arguments, name=name, daemon=True).start()
threading.stack_size(1024 * 1024)
for i in range(60):
    threading.Thread(target=one_of_many, name=f"worker-{i}", daemon=True).start()
EXPECTED = 1 + len(places) + 60
threading.Thread(target=report, name="reporter", daemon=True).start()
forever.wait()
'''


def test_every_thread(each_python, target, probing, ptrace, tmp_path):
    truth_file = tmp_path / "truth.json"
    job = target(PLACES, truth_file, python=each_python, name="plätze.py")
    truth = json.loads(truth_file.read_text(encoding="utf-8"))
    assert len(truth) == 68
    borrowed = probing(str(job.pid), "inject", "--json").ok().json()["borrowed_tid"]
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    threads = {str(t["tid"]): t for t in document["threads"]}
    assert set(truth) <= set(threads)
    for tid, expected in truth.items():
        seen = threads[tid]
        assert seen["torn"] is False and seen["truncated"] is False
        assert seen["name"] == expected["name"]
        assert [[f["func"], f["file"], f["line"]] for f in seen["frames"]] == expected["frames"], expected["name"]
        assert (seen["state"], seen["gil"]) == ("S", "none"), seen
        # The borrowed thread goes back into its system call, for which it runs once more, whenever it gets its turn.
        assert seen["on_cpu"] is False or seen["tid"] == borrowed, seen
    assert document["gil_holder_tid"] == 0 and document["gil_enabled"] is not is_free_threaded(each_python)
    deep = [t for t in document["threads"] if t["name"] == "deep"][0]
    assert len([f for f in deep["frames"] if f["func"] == "recurse"]) == 901
    text = probing(str(job.pid), "backtrace").ok().stdout
    assert "\x1b" not in text and "训练 🚂" in text and "    größe_ändern (" in text
    probing(str(job.pid), "eject").ok()
    assert job.state() == "S"


NESTED_BACKWARD = """
import os, sys, threading, time, torch

class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.n == 0:
            os.write(int(os.environ["READY_FD"]), b"%d\\n" % threading.get_native_id())
            time.sleep(3600)
        with torch.enable_grad():
            y = Nested.apply(torch.ones(1, requires_grad=True), ctx.n - 1)
            y.sum().backward()
        return gradient, None

# Beyond 60 levels autograd goes on in a thread of its own.
Nested.apply(torch.ones(1, requires_grad=True), 70).sum().backward()
"""


def test_autograd_thread(target, torch_python, probing, ptrace):
    """A thread that torch made, not Python: it has Python frames all the same."""
    job = target(NESTED_BACKWARD, python=torch_python, name="nested.py", timeout=120)
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    threads = {t["tid"]: t for t in document["threads"]}
    autograd = threads[int(job.ready)]
    assert autograd["tid"] != job.pid
    assert autograd["has_python"] is True and autograd["gil"] == "none"
    assert autograd["frames"][0]["func"].endswith("backward")
    assert autograd["frames"][0]["file"] == job.script and autograd["frames"][0]["line"] == 14
    assert any(f["file"].endswith(os.path.join("torch", "autograd", "function.py")) for f in autograd["frames"])
    main = threads[job.pid]
    assert main["name"] == "MainThread"
    assert main["frames"][-1] == {"depth": len(main["frames"]) - 1, "kind": "python", "func": "<module>",
                                  "file": job.script, "line": 21}
    assert len([f for f in main["frames"] if f["func"].endswith("backward") and f["file"] == job.script]) >= 50
    probing(str(job.pid), "eject").ok()
