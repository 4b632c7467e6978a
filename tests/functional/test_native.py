# SPDX-License-Identifier: Apache-2.0
"""Native frames: in the order of the calls among the Python frames, as a debugger sees the same process, or marked."""

import os
import re
import shutil
import signal

import pytest

from conftest import run_command, wait_until

EVERY_VERSION = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")

# Python calls C calls Python calls C: twice, and from within sorted(). Then it sleeps, or computes in C.
NESTED = r'''
import ctypes, os, sys, threading, time

library = ctypes.CDLL(sys.argv[1])
end = ctypes.c_int(0)
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)

def ready():
    os.write(int(os.environ["READY_FD"]), b"ready\n")

def rest():
    ready()
    if sys.argv[2] == "sleep":
        time.sleep(3600)
    else:
        library.native_compute(ctypes.byref(end))

def second(value):
    rest()
    return value

def between(value):
    library.native_middle(CALLBACK(second), value)
    return value

def first(value):
    between(value)
    return value

def key(value):
    library.native_outer(CALLBACK(first), value)
    return value

def plain(values):
    return sorted(values, key=key)

plain([1])
'''
NESTED_PYTHON = ["rest", "second", "between", "first", "key", "plain", "<module>"]
# What of the native frames is certain whatever Python was built with.
NESTED_ORDER = ["rest", "second", "native_inner", "native_middle", "between", "first", "native_inner",
                "native_middle", "native_outer", "key", "plain", "<module>"]

# Never still for long: calls between Python and C as fast as they go.
RESTLESS = r'''
import os, json, re

class Thing:
    @property
    def value(self):
        return sorted([3, 1, 2], key=lambda x: -x)

def make(n):
    for i in range(n):
        yield Thing().value

def work():
    return [json.loads(json.dumps(list(make(3)))), re.sub("a", lambda m: m.group(0).upper(), "banana")]

os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    work()
'''

# Inside of an operation of torch Python is called again, and sleeps there.
TORCH_DISPATCH = r'''
import os, time, torch
from torch.utils._python_dispatch import TorchDispatchMode

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        os.write(int(os.environ["READY_FD"]), b"ready\n")
        time.sleep(3600)

def step(x):
    with Watch():
        return torch.add(x, x)

step(torch.ones(3))
'''

TORCH_COMPUTE = r'''
import os, torch
torch.set_num_threads(1)

def step(x):
    return torch.bmm(x, x)

x = torch.ones(4, 1200, 1200, dtype=torch.float64)
step(x[:, :8, :8])
os.write(int(os.environ["READY_FD"]), b"ready\n")
while True:
    step(x)
'''


@pytest.fixture
def native_calls(build_dir):
    return os.path.join(build_dir, "tests", "targets", "native_calls.so")


@pytest.fixture
def gdb(ptrace):
    path = shutil.which("gdb")
    if not path:
        pytest.skip("needs gdb: not installed")
    return path


def main_thread(document):
    return document["threads"][0]


def python_names(thread):
    return [f["func"].split(".")[-1] for f in thread["frames"] if f["kind"] == "python"]


def names(thread):
    return [f["func"].split(".")[-1] if f["kind"] == "python" else f["func"] for f in thread["frames"]]


def is_part(parts, whole):
    """Do `parts` occur in `whole`, in this order?"""
    rest = iter(whole)
    return all(part in rest for part in parts)


def look(probing, job, *options):
    return main_thread(probing(job.pid, "backtrace", "--json", *options, timeout=90).ok().json())


# --- known calls ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("minor, options", [pytest.param(minor, ["--native"], id=minor) for minor in EVERY_VERSION] +
                         [pytest.param(minor, ["--native", "--block"], id=f"{minor}-block") for minor in ("3.8", "3.12")])
def test_calls_between_python_and_c_are_in_order(probing, target, python_for, native_calls, ptrace, minor, options):
    job = target(NESTED, native_calls, "sleep", python=python_for(minor))
    wait_until(lambda: job.state() == "S", 20, "the job to sleep")
    thread = look(probing, job, *options)
    assert thread["native_merge"] == "merged", names(thread)
    assert python_names(thread) == NESTED_PYTHON
    assert is_part(NESTED_ORDER, names(thread)), names(thread)
    # What sleeps is inside of Python's innermost frame, what started the interpreter outside of its outermost.
    first, last = names(thread).index("rest"), names(thread).index("<module>")
    assert any("sleep" in (f["func"] or "") or "select" in (f["func"] or "") for f in thread["frames"][:first])
    assert all(f["kind"] == "native" for f in thread["frames"][:first] + thread["frames"][last + 1:])
    assert last + 1 < len(thread["frames"])
    ours = [f for f in thread["frames"] if f["func"] == "native_outer"]
    assert len(ours) == 1 and ours[0]["module"] == native_calls
    assert ours[0]["file"].endswith("native_calls.c") and ours[0]["line"] > 0
    assert [f["depth"] for f in thread["frames"]] == list(range(len(thread["frames"])))
    # The interpreter's own loop is what the Python frames stand for.
    assert not any("_PyEval_EvalFrameDefault" in (f["func"] or "") for f in thread["frames"])


@pytest.mark.parametrize("minor, options", [
    ("3.8", ["--native"]), ("3.11", ["--native"]), ("3.12", ["--native"]), ("3.13", ["--native"]),
    ("3.11", ["--native", "--block"])])
def test_a_thread_that_computes_in_c(probing, target, python_for, native_calls, ptrace, minor, options):
    job = target(NESTED, native_calls, "compute", python=python_for(minor))

    def computing():
        thread = look(probing, job, *options)
        assert python_names(thread) == NESTED_PYTHON
        return thread if thread["native_merge"] == "merged" and thread["frames"][0]["func"] == "native_loop" else None
    thread = wait_until(computing, 60, "a look at the loop")  # it may have to wait for a processor
    assert is_part(["native_loop", "native_compute", *NESTED_ORDER], names(thread)), names(thread)


def test_the_text_shows_both_kinds(probing, target, native_calls, ptrace):
    job = target(NESTED, native_calls, "sleep")
    wait_until(lambda: job.state() == "S", 20, "the job to sleep")
    lines = probing(job.pid, "backtrace", "--native", timeout=90).ok().stdout.splitlines()
    assert any(re.match(r"    native_outer \(.*native_calls\.c:\d+\) \[native_calls\.so\]$", line) for line in lines), lines
    assert any(re.match(r"    key \(.*\.py:\d+\)$", line) for line in lines)
    plain = probing(job.pid, "backtrace", timeout=60).ok().stdout
    assert "native_outer" not in plain
    both = look(probing, job, "--native", "--locals")
    assert both["native_merge"] == "merged"
    key = [f for f in both["frames"] if f["func"] == "key"][0]
    assert key["locals"]["value"]["repr"] == "1"


def test_what_never_rests_is_never_put_together_wrongly(probing, target, each_python, ptrace):
    job = target(RESTLESS, python=each_python)
    legal = {"<lambda>": {"value", "work"}, "value": {"make"}, "make": {"work"}, "work": {"<module>"}, "<module>": set()}
    looks, merged, apart = 0, 0, []
    while looks < 4 or (not merged and looks < 40):
        looks += 1
        thread = look(probing, job, "--native")
        python = [f for f in thread["frames"] if f["kind"] == "python" and f["file"] == job.script]
        if thread["native_merge"] == "apart":  # that is honest where hand-written code had no unwind information, and seldom
            apart.append(names(thread))
        if thread["native_merge"] != "merged" or thread["torn"]:
            continue
        merged += 1
        order = [f["func"].split(".")[-1] for f in python]
        assert order[-1] == "<module>", names(thread)
        for inner, outer in zip(order, order[1:]):
            assert outer in legal[inner], names(thread)
    assert merged and len(apart) <= 1, (looks, merged, apart)


# --- against a debugger -----------------------------------------------------------------------------------------

def gdb_frames(gdb, pid):
    """Innermost first: for each physical frame the names of the functions that gdb shows there."""
    done = run_command([gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
                        "-p", str(pid), "-ex", "bt"], timeout=150)
    frames = []
    for line in done.stdout.splitlines():
        match = re.match(r"#(\d+) +(0x[0-9a-f]+ in )?(.*)", line)
        if not match:
            continue
        if match.group(2) or match.group(1) == "0":
            frames.append([])
        frames[-1].append(match.group(3))
    if not frames:
        pytest.skip(f"needs gdb: it cannot show a stack here: {done.stderr[-300:]!r}")
    return frames


def reduced_gdb(frames):
    """One text for each physical frame, "PYTHON" for the interpreter's loop."""
    return ["PYTHON" if any(name.startswith("_PyEval_EvalFrameDefault") for name in frame) else frame[-1] for frame in frames]


def reduced_ours(thread):
    """The same: Python frames in a row are one call of the loop, inlined functions are of the frame that follows."""
    out = []
    for f in thread["frames"]:
        if f["kind"] == "python":
            if not out or out[-1] != "PYTHON":
                out.append("PYTHON")
        else:
            out.append(f["func"])
    return out


def assert_agree(ours, theirs):
    """Each frame of gdb is one of ours, in the same order. gdb writes names with their parameters. Where there is DWARF it also shows
    functions that ended in a jump to the next one and are not on the stack any more: only frames of libraries without (" from FILE") and
    those of the interpreter's loop are looked for. Where gdb knows no name ("??": a library without its table of symbols) any native
    frame of ours will do."""
    at = 0
    for name in [name for name in theirs if name == "PYTHON" or " from " in name]:
        while at < len(ours) and not (ours[at] != "PYTHON" if name.startswith("?? ") else ours[at] and ours[at] in name):
            at += 1
        assert at < len(ours), f"{name!r} of gdb is not among ours, or elsewhere:\n{ours}\n{theirs}"
        at += 1
    calls = [name for name in ours if name == "PYTHON"]
    assert len(calls) == theirs.count("PYTHON"), f"{ours}\n{theirs}"


@pytest.mark.parametrize("ours, agree", [
    (["poll", "at::add", "PYTHON", "main"], True),
    ([None, "at::add", "PYTHON", "main"], True),   # neither knows its name
    (["at::add", "PYTHON", "main"], False),        # the frame that has no name is missing
    (["PYTHON", "at::add", "main"], False),        # elsewhere
    (["poll", "at::sub", "PYTHON", "main"], False),
    (["poll", None, "PYTHON", "main"], False),     # gdb knows that name
    (["poll", "at::add", "main"], False),
])
def test_what_gdb_cannot_name_counts_for_nothing(ours, agree):
    theirs = ["?? () from /lib/libc.so.6", "at::add(int) () from /lib/libtorch.so", "PYTHON", "?? ()", "main () from /lib/libpython.so"]
    if agree:
        assert_agree(ours, theirs)
    else:
        with pytest.raises(AssertionError):
            assert_agree(ours, theirs)


def torch_frames(frames):
    return [name for name in frames if re.match(r"(at|c10|torch)::", name or "")]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_torch_operation_is_as_gdb_shows_it(probing, target, torch_python, gdb):
    """Python calls at::..., which calls Python again, which sleeps."""
    job = target(TORCH_DISPATCH, python=torch_python, timeout=150)
    wait_until(lambda: job.state() == "S", 60, "the job to sleep")
    thread = look(probing, job, "--native")
    assert thread["native_merge"] == "merged"
    ours = reduced_ours(thread)
    theirs = reduced_gdb(gdb_frames(gdb, job.pid))
    assert job.state() == "S"
    assert_agree(ours, theirs)
    assert sum(" from " in name for name in theirs) >= 10, theirs
    order = names(thread)
    assert is_part(["__torch_dispatch__", "at::_ops::add_Tensor::call", "torch::autograd::THPVariable_add", "step",
                    "<module>"], order), order
    assert len(torch_frames(order)) >= 5
    assert look(probing, job, "--native", "--block")["native_merge"] == "merged"


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_stopped_torch_process_is_as_gdb_shows_it(probing, target, torch_python, gdb):
    """Stopped in the middle of an operation: nobody moves between the two looks."""
    job = target(TORCH_COMPUTE, python=torch_python, timeout=150)
    for _ in range(60):
        os.kill(job.pid, signal.SIGSTOP)
        wait_until(lambda: job.state() == "T", 20, "the job to stop")
        thread = look(probing, job, "--native", "--block")
        if thread["native_merge"] == "merged" and any("at::native" in (name or "") for name in names(thread)):
            theirs = reduced_gdb(gdb_frames(gdb, job.pid))
            if any("at::native" in name for name in theirs):  # gdb does not find out of all hand-written code
                break
        os.kill(job.pid, signal.SIGCONT)
    order = names(thread)
    assert job.state() == "T", "it is stopped as it was"
    assert is_part(["at::_ops::bmm::call", "torch::autograd::THPVariable_bmm", "step", "<module>"], order), order
    # Hand-written code at the inner end has no unwind information: gdb guesses there, ours is marked.
    inner = next(i for i, name in enumerate(theirs) if "at::native" in name)
    assert_agree(reduced_ours(thread), theirs[inner:])
    os.kill(job.pid, signal.SIGCONT)
    wait_until(lambda: job.state() in "RS", 20, "the job to go on")


# --- samples ----------------------------------------------------------------------------------------------------

def catches_our_signal(job):
    with open(f"/proc/{job.pid}/status", encoding="ascii") as status:
        caught = int(re.search(r"^SigCgt:\s*([0-9a-f]+)", status.read(), re.M).group(1), 16)
    return bool(caught >> (signal.SIGURG - 1) & 1)


def test_samples_have_native_frames(probing_top, target, native_calls, ptrace):
    job = target(NESTED, native_calls, "compute")
    exported = probing_top("--export", "folded", "--native", "--duration", "3", job.pid, timeout=90).ok().stdout
    lines = [line for line in exported.splitlines() if "native_loop" in line]
    assert lines, exported
    for line in lines:
        frames = [re.sub(r" \(.*", "", frame) for frame in line.rsplit(" ", 1)[0].split(";")]
        assert is_part(list(reversed(["native_loop", "native_compute", *NESTED_ORDER])), frames), line
    document = probing_top("--export", "json", "--native", "--duration", "2", job.pid, timeout=90).ok().json()
    kinds = {f["kind"] for sample in document["samples"] for f in sample["frames"]}
    assert kinds == {"native", "python"}
    plain = probing_top("--export", "folded", "--duration", "1", job.pid, timeout=60).ok().stdout
    assert "native_loop" not in plain


def test_sampling_leaves_the_job_as_it_was(probing, probing_top, plain_training, wait_until, ptrace):
    job = plain_training
    start = job.counter()
    probing(job.pid, "inject").ok()
    probing(job.pid, "config", "sample_rate=0").ok()  # nothing is looked at for the tables
    exported = probing_top("--export", "folded", "--native", "--duration", "4", job.pid, timeout=90).ok().stdout
    assert len(exported.splitlines()) > 3
    wait_until(lambda: job.counter() > start + 1, 60, "the job's steps")
    wait_until(lambda: not catches_our_signal(job), 20, "the handler to be gone")
    status = probing(job.pid, "status", "--json").ok().json()
    assert status["rss_bytes"] < 12 * 1024 * 1024
    probing(job.pid, "eject").ok()
    wait_until(lambda: not any(n.startswith("probing") for n in job.thread_names().values()), 20, "the agent to be gone")
    after = job.counter()
    wait_until(lambda: job.counter() > after + 1, 60, "the job's steps without the agent")


# --- where they are not to be had -------------------------------------------------------------------------------

def test_refusals_say_what_to_do(probing, probing_top, target, ptrace):
    job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(3600)\n")
    for done in (probing(job.pid, "backtrace", "--native", "--no-inject"),
                 probing_top("--export", "json", "--native", "--no-inject", job.pid)):
        assert done.status == 2 and "--block" in done.stderr and done.stderr.count("\n") == 1, done
    done = probing_top("--export", "txt", "--native", "--once", job.pid)
    assert done.status == 2 and "--native" in done.stderr, done
    done = probing_top("--native", job.pid)
    assert done.status == 2 and "--native" in done.stderr, done
    done = probing_top("--export", "folded", "--native", "--block", "--duration", "1", job.pid)
    assert done.status == 3 and "agent" in done.stderr and not done.stdout, done
    os.kill(job.pid, signal.SIGSTOP)
    wait_until(lambda: job.state() == "T", 20, "the job to stop")
    done = probing(job.pid, "backtrace", "--native")
    assert done.status == 3 and "--block" in done.stderr and done.stderr.count("\n") == 1, done
    assert look(probing, job, "--native", "--block")["native_merge"] == "merged"
    assert job.state() == "T"
