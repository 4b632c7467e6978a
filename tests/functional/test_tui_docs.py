# SPDX-License-Identifier: Apache-2.0
"""docs/dev/adding-a-screen.md is followed to the letter on a copy of the source; what comes out compiles."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT


def insert(path, before, text):
    """Puts a line before the last place where a pattern stands."""
    content = path.read_text(encoding="utf-8")
    places = list(re.finditer(before, content, re.M))
    assert places, f"{before} is not in {path}"
    at = places[-1].start()
    path.write_text(content[:at] + text.rstrip("\n") + "\n" + content[at:], encoding="utf-8")


def build_from_copy(build_dir, tmp_path, program, name):
    """A program with all of a copy of src/tui (but its main) and of libbase; of the rest it may call nothing. Its path."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-restrict", "-Wno-format-truncation", "-D_GNU_SOURCE", '-DPROBING_DATADIR=""', f"-I{tmp_path}", f"-I{tmp_path}/src", f"-I{ROOT}/src",
             f"-I{build_dir}/gen"]
    tui = next(path for path in (tmp_path / "src" / "tui", tmp_path / "tui") if path.exists())
    source = tmp_path / f"{name}.c"
    source.write_text(program, encoding="utf-8")
    objects = []
    for path in [source, *sorted(tui.rglob("*.c"))]:
        if path == tui / "main.c":
            continue
        objects.append(tmp_path / "objects" / f"{len(objects)}.o")
        objects[-1].parent.mkdir(exist_ok=True)
        done = subprocess.run([compiler, *flags, "-c", "-o", objects[-1], path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run([compiler, "-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-o", tmp_path / name, *objects, os.path.join(build_dir, "lib", "libbase.a"), "-lm"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path / name


LIST_KEYS = """
#include <stdio.h>
#include "tui/core/action_keys.h"
int main(void) {
    struct strbuf b;
    strbuf_init(&b, 1 << 20);
    action_list_keys(&b);
    puts(strbuf_str(&b));
    strbuf_fini(&b);
    return 0;
}
"""


@pytest.mark.long
def test_adding_a_screen(build_dir, tmp_path):
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-screen.md"), encoding="utf-8") as file:
        source, row = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    assert len([line for line in (source + row).splitlines() if line.strip()]) <= 20, "it is longer than promised"
    shutil.copytree(os.path.join(ROOT, "src", "tui"), tmp_path / "tui")
    (tmp_path / "tui" / "screens" / "command.c").write_text(source, encoding="utf-8")
    insert(tmp_path / "tui" / "keys" / "screen_list.h", r"^ *\/\* a new one", row)
    keys = build_from_copy(build_dir, tmp_path, LIST_KEYS, "keys")
    listed = subprocess.run([keys], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^threads +& +command +show the whole command line$", listed, re.M)
    assert re.search(r"^command +q +quit ", listed, re.M)


def test_adding_a_command(build_dir, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-command.md"), encoding="utf-8") as file:
        function, row = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    shutil.copytree(os.path.join(ROOT, "src", "tui"), tmp_path / "tui")
    table = tmp_path / "tui" / "core" / "command_table.c"
    insert(table, r"^#define ANYWHERE", function)
    insert(table, r"^ *\{NULL, NULL, NULL, 0", row)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}", f"-I{ROOT}/src", f"-I{build_dir}/gen"]
    done = subprocess.run([compiler, *flags, "-fsyntax-only", table], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
