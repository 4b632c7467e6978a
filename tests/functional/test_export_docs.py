# SPDX-License-Identifier: Apache-2.0
"""docs/dev/adding-an-export.md is followed to the letter on a copy; what comes out compiles, is as short as promised, and works."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_tui_docs import insert

PROGRAM = r"""
#include <stdio.h>
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"

int main(void) {
    struct model_frame frames[] = {{.func = "step", .file = "a.py"}, {.func = "main", .file = "a.py"}};
    struct model_thread thread = {.tid = 7, .frames = frames, .n_frames = 2};
    struct model_snapshot snapshot = {.threads = &thread, .n_threads = 1};
    struct model_target target = {.pid = 1};
    struct export_request request = {.format = "outline", .by_function = true};
    struct stack_counts *fold = stack_counts_new();
    struct export_data data = {.request = &request, .target = &target, .snapshot = &snapshot, .counts = fold};
    struct strbuf out;
    struct err e;
    strbuf_init(&out, 0);
    if (stack_counts_add_snapshot(fold, &snapshot) != 0 || export_render_outline(&data, &out, &e) != 0)
        return 1;
    fputs(strbuf_str(&out), stdout);
    strbuf_fini(&out);
    stack_counts_free(fold);
    return 0;
}
"""


def test_adding_an_export(build_dir, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    with open(os.path.join(ROOT, "docs", "dev", "adding-an-export.md"), encoding="utf-8") as file:
        source, prototype, row = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    assert len([line for line in (source + prototype + row).splitlines() if line.strip()]) <= 20

    client = tmp_path / "client"
    shutil.copytree(os.path.join(ROOT, "src", "client"), client)
    (client / "export" / "export_outline.c").write_text(source, encoding="utf-8")
    insert(client / "export" / "export_formats.h", r"^int export_render_txt", prototype)
    insert(client / "export" / "export.c", r'^ *\{"txt", ', row)
    program = tmp_path / "outline.c"
    program.write_text(PROGRAM, encoding="utf-8")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}", f"-I{ROOT}/src", f"-I{build_dir}/gen"]
    done = subprocess.run([compiler, *flags, "-fsyntax-only", client / "export" / "export.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    libraries = [os.path.join(build_dir, "lib", f"lib{name}.a") for name in ("client", "store", "pystack", "flame", "wire", "base")]
    done = subprocess.run([compiler, *flags, "-o", tmp_path / "outline", program, client / "export" / "export_outline.c", "-Wl,--start-group", *libraries,
                           "-Wl,--end-group", "-lm", "-pthread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([tmp_path / "outline"], capture_output=True, text=True, check=True).stdout
    assert printed == "all 1\n main (a.py) 1\n  step (a.py) 1\n"
