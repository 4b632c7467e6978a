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


def test_adding_a_screen(build_dir, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    with open(os.path.join(ROOT, "docs", "dev", "adding-a-screen.md"), encoding="utf-8") as file:
        source, declaration, opening, context, action, row = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    added = [line for line in (source + declaration + opening + context + action + row).splitlines() if line.strip()]
    assert len(added) + 2 <= 20, "with the two names in the enums it is longer than promised"

    shutil.copytree(os.path.join(ROOT, "src", "tui"), tmp_path / "tui")
    screens = tmp_path / "tui" / "screens"
    (screens / "command.c").write_text(source, encoding="utf-8")
    insert(screens / "screens.h", r"^extern const struct screen_def screen_help", declaration)
    insert(screens / "screens.c", r"^ *\{ACTION_NONE, NULL\}", opening)
    insert(tmp_path / "tui" / "core" / "action.h", r"^ *ACTION_COUNT,", "ACTION_COMMAND,")
    insert(tmp_path / "tui" / "core" / "action.h", r"^ *CONTEXT_COUNT,", "CONTEXT_COMMAND,")
    assert "CONTEXT_COMMAND" in (tmp_path / "tui" / "core" / "action.h").read_text(encoding="utf-8")
    insert(tmp_path / "tui" / "core" / "action.c", r"^ *\[CONTEXT_HELP\] = ", context)
    insert(tmp_path / "tui" / "core" / "action_table.c", r"^ *\{ACTION_NONE, NULL", action)

    shutil.copytree(os.path.join(ROOT, "tests", "unit"), tmp_path / "unit")
    insert(tmp_path / "unit" / "tui_matrix.c", r"^ *\{NULL, NULL, NULL", row)

    program = tmp_path / "keys.c"
    program.write_text('#include <stdio.h>\n#include "tui/core/action.h"\nint main(void) {\n    struct strbuf b;\n    strbuf_init(&b, 1 << 20);\n'
                       "    action_list_keys(&b);\n    puts(strbuf_str(&b));\n    strbuf_fini(&b);\n    return 0;\n}\n", encoding="utf-8")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}", f"-I{ROOT}/src", f"-I{build_dir}/gen"]
    compiled = [screens / "command.c", screens / "screens.c", tmp_path / "tui" / "core" / "app.c", tmp_path / "unit" / "tui_matrix.c"]
    done = subprocess.run([compiler, *flags, "-fsyntax-only", *compiled], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    keys = tmp_path / "keys"
    done = subprocess.run([compiler, *flags, "-o", keys, program, tmp_path / "tui" / "core" / "action.c", tmp_path / "tui" / "core" / "action_table.c", tmp_path / "tui" / "core" / "input.c",
                           f"{ROOT}/src/base/strbuf.c", f"{ROOT}/src/base/text.c", "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([keys], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^threads +X +command +show the whole command line$", listed, re.M)
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
