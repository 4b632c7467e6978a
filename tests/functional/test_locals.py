# SPDX-License-Identifier: Apache-2.0
"""Values of locals read from memory are what the target itself says they are, and no code of the target is run for them."""

import json
import os
import re
import time

import pytest

from conftest import program_runner

# What repr() says and what is read are the same text, for values that are short enough.
PLAIN = r'''
import json, os, sys, time

def values(ready):
    none = None; yes = True; no = False
    zero = 0; one = 1; small = -7; digit = 2**30 - 1; two_digits = 2**30; long = 2**64; longer = -(10**150)
    half = 1.5; tenth = 0.1; huge = 1e100; below = 1e-05; least = 5e-324; whole = 100.0; odd = 123456789012345.0
    exponent = 1e16; no_exponent = 9999999999999998.0; minus_zero = -0.0; infinite = float("inf"); third = 1 / 3
    ascii = "hello"; latin = "größe \xff"; two_bytes = "漢字 \u0440"; four_bytes = "\U0001f600 x"; empty = ""
    one_quote = "it's"; two_quotes = "a\"b'c"; control = "a\nb\tc\r\\d\x00e\x7f\x85"; lone = "\ud800x"; hidden = "\u202e\u200b"
    raw = b"abc\x00\xff"; raw_quote = b"it's"; no_bytes = b""
    pair = (1, "a"); single = (1,); nothing = (); mixed = [1, 2.5, None, "x", True]; inner = [1, [2, 3], (4,)]
    table = {"a": 1, "b": [1, 2]}; other_keys = {1: "x", None: 2.5}; no_keys = {}
    one_of = {1}; none_of = set(); frozen = frozenset([2])
    text = json.dumps({k: [type(v).__name__, repr(v)] for k, v in locals().items() if k != "ready"})
    os.write(ready, (text + "\n").encode())
    time.sleep(3600)

values(int(os.environ["READY_FD"]))
'''

OTHERS = r'''
import collections, math, os, sys, time

marker = sys.argv[1]
Point = collections.namedtuple("Point", "x y")

class Slots:
    __slots__ = ("a",)

    def method(self):
        pass

class Evil:
    def touched(self, *_):
        open(marker, "w").close()
        raise SystemExit
    __repr__ = __str__ = __len__ = __iter__ = __getattr__ = __hash__ = __eq__ = touched

class EvilDict(dict):
    __repr__ = __len__ = __iter__ = __getitem__ = items = Evil.touched

class Meta(type):
    def __repr__(cls):
        open(marker, "w").close()
        return "x"

WithMeta = Meta("WithMeta", (), {})

class Outer:
    class Inner:
        pass

class Number(int):
    pass

def values():
    many = list(range(100)); deep = [[[1]]]; large = {i: i for i in range(1000)}; letters = "x" * 1000; octets = b"y" * 500
    enormous = 1 << 100000; below_zero = -(1 << 1000); itself = []; itself.append(itself)
    function = values; nameless = lambda: 0; method = Slots().method; builtin = len; module = math
    kind = int; own_kind = Slots; inner_kind = Outer.Inner; meta_kind = WithMeta
    slots = Slots(); evil = Evil(); evil_dict = EvilDict(a=1); meta = WithMeta(); inner = Outer.Inner()
    number = Number(5); point = Point(1, 2); ordered = collections.OrderedDict(a=1); queue = collections.deque([1])
    error = ValueError("bad", 3); complicated = 1 + 2j; ellipsis = ...
    nan = float("nan"); full = ["s" * 60] * 9
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

values()
'''

OTHERS_EXPECTED = {
    "many": ("list", "[0, 1, 2, 3, 4, ... 95 more]"),
    "deep": ("list", "[[[1 item]]]"),
    "large": ("dict", "{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, ... 995 more}"),
    "letters": ("str", "'" + "x" * 100 + "'... (1000 characters)"),
    "octets": ("bytes", "b'" + "y" * 100 + "'... (500 bytes)"),
    "enormous": ("int", "<int of 100001 bits>"),
    "below_zero": ("int", "<negative int of 1001 bits>"),
    "itself": ("list", "[[[1 item]]]"),
    "function": ("function", "<function values>"),
    "nameless": ("function", "<function values.<locals>.<lambda>>"),
    "method": ("method", "<bound method Slots.method>"),
    "builtin": ("builtin_function_or_method", "<built-in function len>"),
    "module": ("module", "<module 'math'>"),
    "kind": ("type", "<class 'int'>"),
    "own_kind": ("type", "<class '__main__.Slots'>"),
    "inner_kind": ("type", "<class '__main__.Outer.Inner'>"),
    "meta_kind": ("Meta", "<class '__main__.WithMeta'>"),
    "slots": ("Slots", "<__main__.Slots object>"),
    "evil": ("Evil", "<__main__.Evil object>"),
    "evil_dict": ("EvilDict", "EvilDict({'a': 1})"),
    "meta": ("WithMeta", "<__main__.WithMeta object>"),
    "inner": ("Inner", "<__main__.Outer.Inner object>"),
    "number": ("Number", "Number(5)"),
    "point": ("Point", "Point(1, 2)"),
    "queue": ("collections.deque", "<collections.deque object>"),
    "error": ("ValueError", "ValueError('bad', 3)"),
    "complicated": ("complex", "<complex object>"),
    "ellipsis": ("ellipsis", "Ellipsis"),
    "nan": ("float", "nan"),
}

PLACES = r'''
import os, time

def rest(depth):
    if depth:
        return rest(depth - 1)
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

def generate(limit):
    for item in range(limit):
        yield item
        rest(3)

def outer(shared, alone, *more, option=3, **others):
    counter = 42
    gone = 1
    del gone
    if not alone:
        never = 1

    def inner(own):
        late = own + counter
        return [use(x, late, shared) for x in [own]]

    def use(x, late, text):
        numbers = generate(9)
        return next(numbers) + next(numbers)

    return inner(8)

class Body:
    attribute = "in a class"
    secret = [1, 2]
    outer("A", "B", 1, 2, option=4, z=9)
'''


@pytest.fixture(scope="session")
def dump(build_dir):
    """A look at a process with locals: dump(pid)."""
    run = program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))

    def look(pid, count=1, interval_ms=0):
        lines = run(pid, count, interval_ms, "any", "locals", timeout=60).ok().stdout.splitlines()
        return [json.loads(line) for line in lines]
    return look


@pytest.fixture(scope="session")
def at_rest(dump):
    """The same of a process whose threads are asleep: it writes that it is ready a moment before."""
    def look(pid):
        deadline = time.monotonic() + 20
        while True:
            snapshot = dump(pid)[0]
            if not any(t["torn"] or t["state"] == "R" for t in snapshot["threads"]):
                return snapshot
            assert time.monotonic() < deadline, "the target does not come to rest"
    return look


def main_frames(snapshot):
    """Function name and locals, as {name: (type, text, kind)}, of each frame of the main thread."""
    frames = []
    for frame in snapshot["threads"][0]["frames"]:
        known = None if frame["locals"] is None else {n: (t, v, k) for n, t, v, k in frame["locals"]}
        frames.append((frame["func"].split(".")[-1], known))
    return frames


def test_plain_values_are_what_repr_says(each_python, ptrace, target, at_rest):
    job = target(PLAIN, python=each_python)
    snapshot = at_rest(job.pid)
    told = json.loads(job.ready)
    func, seen = main_frames(snapshot)[0]
    assert func == "values" and len(told) > 40
    assert seen.pop("ready")[0] == "int"
    assert {name: list(v[:2]) for name, v in seen.items()} == {**told, "text": list(seen["text"][:2])}
    assert seen["text"][1].startswith("'{\"") and seen["text"][1].endswith("characters)")
    assert not snapshot["incomplete"]


def test_other_values(each_python, ptrace, target, at_rest, tmp_path):
    marker = tmp_path / "evil"
    job = target(OTHERS, marker, python=each_python)
    frames = main_frames(at_rest(job.pid))
    seen = {name: v[:2] for name, v in frames[0][1].items()}
    for name, expected in OTHERS_EXPECTED.items():
        assert seen[name] == expected
    assert "OrderedDict({'a': 1})" in seen["ordered"][1]
    assert seen["full"][1].startswith("['ssss") and len(seen["full"][1]) < 200
    assert all(len(text.encode()) < 200 for _, text in seen.values())
    assert not marker.exists(), "code of the target was run"
    assert job.alive()
    # Of what stands at the top of a module only what is no definition is told.
    func, module = frames[1]
    assert func == "<module>" and set(module) == {"marker"}
    assert module["marker"][1].startswith("'/")


def test_cells_generators_recursion_and_what_is_unbound(each_python, ptrace, target, at_rest):
    job = target(PLACES, python=each_python)
    frames = main_frames(at_rest(job.pid))
    assert [known for func, known in frames if func == "rest"] == [
        {"depth": ("int", str(n), "argument")} for n in range(4)]
    found = dict(frames)
    assert found["generate"] == {"limit": ("int", "9", "argument"), "item": ("int", "0", "variable")}
    assert found["use"]["x"] == ("int", "8", "argument") and found["use"]["text"] == ("str", "'A'", "argument")
    assert found["use"]["numbers"][0] == "generator"
    assert found["inner"]["own"][:2] == ("int", "8") and found["inner"]["late"][:2] == ("int", "50")
    assert found["inner"]["counter"] == ("int", "42", "free") and found["inner"]["shared"] == ("str", "'A'", "free")
    outer = found["outer"]
    assert "gone" not in outer and "never" not in outer
    assert outer["alone"] == ("str", "'B'", "argument") and outer["more"][1] == "(1, 2)"
    assert outer["option"][1] == "4" and outer["others"][1] == "{'z': 9}"
    assert outer["counter"] == ("int", "42", "cell") and outer["shared"][:2] == ("str", "'A'")
    assert outer["inner"][:2] == ("function", "<function outer.<locals>.inner>")
    assert found["Body"] == {"attribute": ("str", "'in a class'", "variable"), "secret": ("list", "[1, 2]", "variable")}


BUSY = r'''
import os, threading

def spin(name):
    word, count, pair = "", 0, (0, 0)
    while True:
        count = (count + 1) % 100000
        word = "w%d" % count
        pair = (count, [word, {"k": word}])
        turn(count, word)

def turn(number, label):
    mine = label + "!"
    return mine

for name in ("one", "two"):
    threading.Thread(target=spin, args=(name,), daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\n")
threading.Event().wait()
'''


# What each variable of BUSY can be; an element that went while it was read is a question mark.
LEGAL = {
    "count": ("int", r"\d+"), "number": ("int", r"\d+"), "name": ("str", "'(one|two)'"),
    "word": ("str", r"'(w\d+)?'"), "label": ("str", r"'w\d+'"), "mine": ("str", r"'w\d+!'"),
    "pair": ("tuple", r"\((\d+|\?), (0|\?|\[('w\d+'|\?), (\{1 item\}|\{\}|\?)\])\)"),
}


def legal(name, kind, text):
    """Is this a value that the variable can have? What could not be read is."""
    return text is None or (kind == LEGAL[name][0] and re.fullmatch(LEGAL[name][1], text))


def test_values_of_a_running_thread_are_its_own_or_unknown(each_python, ptrace, target, dump):
    job = target(BUSY, python=each_python)
    looked, known, strange = 0, 0, 0
    for snapshot in dump(job.pid, 200, 1):
        for thread in snapshot["threads"]:
            # What runs while it is read may have the values of two moments, and memory that is another's by now.
            assert thread["torn"] or thread["state"] != "R" or not thread["frames"], thread
            for frame in thread["frames"]:
                if frame["func"] in ("spin", "turn"):
                    for name, kind, text, _ in frame["locals"] or []:
                        looked += 1
                        known += text is not None
                        if not legal(name, kind, text):
                            strange += 1
                            assert thread["torn"], (name, kind, text)
    assert looked > 200 and known > looked / 2 and strange < looked / 5
    assert job.alive()


DEEP = r'''
import os, sys, threading, time

sys.setrecursionlimit(9000)
threading.stack_size(512 * 1024 * 1024)

def down(n):
    a = b = c = d = e = f = g = h = i = "x" * 90
    if n:
        return down(n - 1)
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

threading.Thread(target=down, args=(5000,), daemon=True).start()
time.sleep(3600)
'''


def test_what_is_read_is_bounded(any_python, ptrace, target, at_rest):
    """A recursion with more variables than a look may read: the innermost have theirs, the rest is said to be missing."""
    job = target(DEEP, python=any_python)
    snapshot = at_rest(job.pid)
    deep = [t for t in snapshot["threads"] if t["frames"] and t["frames"][0]["func"] == "down"][0]
    assert len(deep["frames"][0]["locals"]) == 10 and not deep["frames"][0]["locals_truncated"]
    assert deep["frames"][-1]["locals"] is None
    assert snapshot["incomplete"]
    texts = sum(len(v[2]) for f in deep["frames"] for v in f["locals"] or [])
    assert 500_000 < texts < 1_100_000


NUMPY = r'''
import os, time
import numpy as np

def values():
    matrix = np.zeros((3, 4)); vector = np.ones(7, dtype=np.float32); scalar = np.zeros(()); swapped = np.zeros(3, dtype=">i4")
    record = np.zeros(2, dtype=[("a", "i4")]); view = matrix[1:, ::2]; texts = np.array(["ab"])
    f64 = np.float64(1.5); f32 = np.float32(0.1); i8 = np.int8(-3); u64 = np.uint64(2**63); flag = np.bool_(True)
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    time.sleep(3600)

values()
'''

TORCH = r'''
import os, time, warnings
warnings.simplefilter("ignore")
import torch

def values():
    matrix = torch.zeros(32, 64); counts = torch.zeros(2, 3, dtype=torch.int64); number = torch.tensor(1.5)
    half = torch.zeros(4, dtype=torch.bfloat16); flags = torch.zeros(5, dtype=torch.bool); turned = matrix.T
    many = torch.zeros(1, 2, 3, 4, 5, 6); empty = torch.zeros(0, 3); meta = torch.zeros(2, 2, device="meta")
    weight = torch.nn.Parameter(torch.zeros(64, 8)); sparse = torch.eye(3).to_sparse(); part = matrix[3]
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    inside = [matrix, {"w": weight}]; shape = matrix.shape
    os.write(int(os.environ["READY_FD"]), (torch.__version__ + "\n").encode())
    time.sleep(3600)

values()
'''


def has_module(python, name):
    import subprocess
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True, timeout=120).returncode == 0


def test_arrays(torch_python, ptrace, target, at_rest):
    if not has_module(torch_python, "numpy"):
        pytest.skip("needs numpy: the Python with torch has none")
    job = target(NUMPY, python=torch_python)
    seen = {name: v[:2] for name, v in main_frames(at_rest(job.pid))[0][1].items()}
    flag = seen.pop("flag")
    assert flag[0] in ("numpy.bool", "numpy.bool_") and flag[1] == "True"
    assert seen == {
        "matrix": ("numpy.ndarray", "ndarray[3, 4] float64"),
        "vector": ("numpy.ndarray", "ndarray[7] float32"),
        "scalar": ("numpy.ndarray", "ndarray[] float64"),
        "swapped": ("numpy.ndarray", "ndarray[3] >int32"),
        "record": ("numpy.ndarray", "ndarray[2] void"),
        "view": ("numpy.ndarray", "ndarray[2, 2] float64"),
        "texts": ("numpy.ndarray", "ndarray[1] str_"),
        "f64": ("numpy.float64", "1.5"),
        "f32": ("numpy.float32", "0.1"),
        "i8": ("numpy.int8", "-3"),
        "u64": ("numpy.uint64", "9223372036854775808"),
    }


def test_tensors(torch_python, ptrace, target, at_rest):
    """Of the versions whose layout is known shape, type and device; of others that it is a tensor; never a guess."""
    job = target(TORCH, python=torch_python, timeout=120)
    seen = {name: v[:2] for name, v in main_frames(at_rest(job.pid))[0][1].items()}
    assert seen["shape"] == ("torch.Size", "torch.Size(32, 64)")
    assert seen["nested"] == ("Tensor", "<Tensor ?>")
    if job.ready.split(".")[:2] != ["2", "13"]:
        assert seen["matrix"] == ("Tensor", "<Tensor ?>") and seen["weight"] == ("Parameter", "<Parameter ?>")
        return
    expected = {
        "matrix": "Tensor[32, 64] float32 cpu", "counts": "Tensor[2, 3] int64 cpu", "number": "Tensor[] float32 cpu",
        "half": "Tensor[4] bfloat16 cpu", "flags": "Tensor[5] bool cpu", "turned": "Tensor[64, 32] float32 cpu",
        "many": "Tensor[1, 2, 3, 4, 5, 6] float32 cpu", "empty": "Tensor[0, 3] float32 cpu",
        "meta": "Tensor[2, 2] float32 meta", "weight": "Parameter[64, 8] float32 cpu",
        "sparse": "Tensor[3, 3] float32 cpu", "part": "Tensor[64] float32 cpu",
        "inside": "[Tensor[32, 64] float32 cpu, {'w': Parameter[64, 8] float32 cpu}]",
    }
    assert {name: seen[name][1] for name in expected} == expected
