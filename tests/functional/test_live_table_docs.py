# SPDX-License-Identifier: Apache-2.0
"""docs/adding-a-live-table.md is followed to the letter on a copy of the sources; the new table is asked for, of a real job."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from test_tui_docs import insert


def apply_document(tree):
    with open(os.path.join(ROOT, "docs", "adding-a-live-table.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```(?:c|python)\n(.*?)^```", file.read(), re.M | re.S)
    unit, helper, made, name, columns, declaration, table, live = blocks
    src = tree / "src"
    (src / "agent" / "python" / "imports.py").write_text(unit, encoding="utf-8")
    insert(src / "agent" / "helper.h", r"^    X\(trace, ", helper)
    insert(src / "agent" / "made.c", r'^    \{"python\.modules", ', made)
    insert(src / "store" / "ring_tables.h", r"^    RING_TABLE_COUNT$", name)
    insert(src / "store" / "ring_tables_made.c", r"^const struct ring_column_def ring_modules", columns)
    insert(src / "store" / "ring_tables_made.h", r"^extern const struct ring_column_def ring_modules", declaration)
    insert(src / "store" / "ring_tables.c", r"^    \[RING_MODULES\] = ", table)
    insert(src / "client" / "live_tables.c", r"^    \{RING_MODULES, ", live)


JOB = """
import json, os, sys
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while input():
    print(json.dumps({n: getattr(m, "__file__", None) for n, m in sys.modules.items()}), flush=True)
"""


@pytest.mark.timeout(600)
def test_a_new_table_is_answered(any_python, ptrace, tmp_path, data_dir):
    tree = tmp_path / "copy"
    tree.mkdir()
    for name in ("Makefile", "VERSION", "deps.lock"):
        shutil.copy(os.path.join(ROOT, name), tree)
    for name in ("mk", "src", "tools"):
        shutil.copytree(os.path.join(ROOT, name), tree / name)
    apply_document(tree)
    deps = os.environ.get("DEPS", os.path.join(ROOT, "build", "deps"))
    done = subprocess.run(["make", "-s", "-C", str(tree), "BUILD=out", "CFLAGS=-O0", f"DEPS={deps}", f"PYTHON3={sys.executable}", "-j2", "out/libprobing.so", "out/probing"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    reader, writer = os.pipe()
    env = dict(os.environ, READY_FD=str(writer))
    with subprocess.Popen([any_python, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, pass_fds=[writer]) as job:
        try:
            os.close(writer)
            assert os.read(reader, 6) == b"ready\n"
            ask = [str(tree / "out" / "probing"), str(job.pid), "query", "--format", "json", "SELECT * FROM python.imports"]
            found = subprocess.run(ask, capture_output=True, text=True, timeout=120)
            assert found.returncode == 0, found.stderr
            job.stdin.write("say\n")
            job.stdin.flush()
            said = json.loads(job.stdout.readline())
            assert {row["name"]: row["file"] for row in json.loads(found.stdout)["rows"]} == said
        finally:
            job.kill()
            os.close(reader)
