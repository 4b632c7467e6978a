# SPDX-License-Identifier: Apache-2.0
"""docs/dev/adding-a-method.md, adding-a-live-table.md and adding-a-column.md are followed to the letter on a copy of the sources: a real agent answers
the new method, and the new table, column and counter of a real job."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from test_tui_docs import insert

pytestmark = pytest.mark.long

CALLER = r"""
import ctypes, json, os, socket, struct, sys

class Start(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("abi_version", ctypes.c_uint32), ("region", ctypes.c_uint64),
                ("region_size", ctypes.c_uint64), ("thread", ctypes.c_uint64), ("fd", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("error", ctypes.c_char * 256), ("endpoint", ctypes.c_char * 128)]

def frame(payload):
    assert len(payload) < 126
    return bytes([0x82, 0x80 | len(payload)]) + bytes(4) + payload  # masked with zeros

def read_frame(s):
    head = s.recv(2, socket.MSG_WAITALL)
    n = head[1] & 127
    if n == 126:
        n = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
    return s.recv(n, socket.MSG_WAITALL)

agent = ctypes.CDLL(sys.argv[1])
start = Start(ctypes.sizeof(Start), 1, 0, 0, 0, -1, 0)
assert agent.probing_start(ctypes.byref(start)) == 0, start.error
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
s.connect(start.endpoint.decode())
s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: probing.v1\r\n\r\n")
answer = b""
while b"\r\n\r\n" not in answer:
    answer += s.recv(1)
hello = b"\x94\x00\x01\xa5hello\x81\xa7version" + bytes([int(sys.argv[3])])
s.sendall(frame(hello))
read_frame(s)
name = sys.argv[2].encode()
s.sendall(frame(b"\x94\x00\x02" + bytes([0xa0 | len(name)]) + name + b"\x80"))
print(json.dumps(list(read_frame(s))))
"""


def call(python, agent, method):
    with open(os.path.join(ROOT, "src", "wire", "wire.h"), encoding="utf-8") as file:
        version = re.search(r"^#define WIRE_VERSION (\d+)", file.read(), re.M).group(1)
    done = subprocess.run([python, "-c", CALLER, agent, method, version], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return bytes(json.loads(done.stdout))


def add_a_method(tree):
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-method.md"), encoding="utf-8") as file:
        row, handler, entry = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    assert len([line for line in (row + handler + entry).splitlines() if line.strip()]) <= 20
    wire = tree / "src" / "wire" / "wire.h"
    text = wire.read_text(encoding="utf-8")
    last = re.search(r"#define WIRE_METHODS\(X\).*?(\n[^\n\\]*\n)\n", text, re.S).group(1)
    wire.write_text(text.replace(last, last.rstrip("\n") + " \\\n" + row, 1), encoding="utf-8")
    peer = tree / "src" / "agent" / "server" / "peer.c"
    text = peer.read_text(encoding="utf-8")
    table = text.index("static enum peer_verdict (*const peer_methods[")
    end = text.index("\n};", table)
    peer.write_text(text[:table] + handler + "\n" + text[table:end] + "\n" + entry.rstrip() + text[end:], encoding="utf-8")


def add_a_live_table(tree):
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-live-table.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```(?:c|python)\n(.*?)^```", file.read(), re.M | re.S)
    unit, table = blocks
    src = tree / "src"
    (src / "agent" / "python" / "units" / "imports.py").write_text(unit, encoding="utf-8")
    insert(src / "store" / "ring" / "tables.def", r"^#undef KEPT_TABLE$", table)


def add_a_column(tree):
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-column.md"), encoding="utf-8") as file:
        column, value, counter, count = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    src = tree / "src"
    insert(src / "store" / "ring" / "tables.def", r"^TABLE_END\(PROCESS_HISTORY\)", column)
    insert(src / "agent" / "tables" / "record.c", r"^    record_append\(r, RING_PROCESS_HISTORY, v\);", value)
    insert(src / "base" / "model_status.def", r"^STATUS_COUNT\(gil_holds,", counter)
    insert(src / "agent" / "sampler" / "sampler.c", r"^    st->of\.exact = ", count)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The folder of the programs of a copy to which all are added."""
    tree = tmp_path_factory.mktemp("copy")
    for name in ("Makefile", "VERSION", "deps.lock"):
        shutil.copy(os.path.join(ROOT, name), tree)
    for name in ("mk", "src", "tools"):
        shutil.copytree(os.path.join(ROOT, name), tree / name)
    add_a_method(tree)
    add_a_live_table(tree)
    add_a_column(tree)
    deps = os.environ.get("DEPS", os.path.join(ROOT, "build", "deps"))
    done = subprocess.run(["make", "-s", "-C", str(tree), "BUILD=out", "CFLAGS=-O0", f"DEPS={deps}", f"PYTHON3={sys.executable}", "-j2",
                           "out/libprobing.so", "out/probing"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return tree / "out"


@pytest.mark.timeout(300)
def test_a_new_method_is_answered(copy, build_dir, any_python):
    assert call(any_python, str(copy / "libprobing.so"), "ping") == b"\x94\x01\x02\xc0\x80"
    old = call(any_python, os.path.join(build_dir, "libprobing.so"), "ping")
    assert old[:3] == b"\x94\x01\x02" and b"no such method" in old


JOB = """
import json, os, sys
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while input():
    print(json.dumps({n: getattr(m, "__file__", None) for n, m in sys.modules.items()}), flush=True)
"""


class Job:
    """A process that says what it has imported; its agent is that of the copy."""

    def __init__(self, python, copy):
        reader, writer = os.pipe()
        env = dict(os.environ, READY_FD=str(writer))
        self.probing = str(copy / "probing")
        self.process = subprocess.Popen([python, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, pass_fds=[writer])
        os.close(writer)
        assert os.read(reader, 6) == b"ready\n"
        os.close(reader)

    def ask(self, *words):
        done = subprocess.run([self.probing, str(self.process.pid), *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, query):
        return json.loads(self.ask("query", "--format", "json", query))["rows"]

    def imported(self):
        self.process.stdin.write("say\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def job(copy, any_python, ptrace, data_dir):
    j = Job(any_python, copy)
    with j.process:
        yield j
        j.process.kill()


@pytest.mark.timeout(300)
def test_a_new_table_is_answered(job):
    rows = job.rows("SELECT * FROM python.imports")
    assert {row["name"]: row["file"] for row in rows} == job.imported()


@pytest.mark.timeout(300)
def test_a_new_column_and_counter_are_reported(job):
    job.ask("inject")
    status = json.loads(job.ask("status", "--json"))
    assert status["sampler"]["retried"] >= 0
    rows = []
    while not rows:  # the first is written within a second
        rows = job.rows("SELECT ppid FROM system.process_history")
    assert {row["ppid"] for row in rows} == {os.getpid()}
