# SPDX-License-Identifier: Apache-2.0
"""docs/dev/adding-an-option.md is followed to the letter on a copy of the source; what comes out compiles, and takes the options."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_tui_docs import insert

MAIN = """
#include <stdio.h>
#include "base/config.h"
#include "tui/core/settings.h"
#include "tui/main_options.h"

int main(int argc, char **argv) {
    struct main_options o = {0};
    struct config c;
    struct err e;
    const char *operands[8];
    int n = option_parse(main_table, &o, argc, argv, operands, false, &e);
    config_init(&c);
    int key = n == 1 ? config_find(operands[0], &e) : -1;
    if (n < 0 || (n == 1 && key < 0)) {
        puts(e.text);
        return 2;
    }
    if (n == 1)
        printf("%s %s, by default %g\\n", config_defs[key].env, config_set(&c, (enum config_key)key, "quiet", "Yes", &e) == 0 &&
               c.values[key] == 1 ? "is on" : e.text, config_defs[key].default_number);
    printf("pause %g, bell %d\\n", o.pause_s, o.bell);
    return 0;
}
"""


def test_adding_an_option(build_dir, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    with open(os.path.join(ROOT, "docs", "dev", "adding-an-option.md"), encoding="utf-8") as file:
        member, flag, config_key, config_row, key, row, bell = re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)
    for folder in ("base", "tui"):
        shutil.copytree(os.path.join(ROOT, "src", folder), tmp_path / folder)
    tui, base = tmp_path / "tui", tmp_path / "base"
    insert(tui / "main_options.h", r"^    double duration_s;", member + "    bool bell;\n")
    insert(tui / "main_options.c", r"^    \{\.name = NULL\}", flag + bell)
    insert(base / "config.h", r"^    CONFIG_KEYS,", config_key)
    insert(base / "config.c", r"^\};\n_Static_assert\(sizeof config_defs", config_row)
    insert(tui / "core" / "settings.h", r"^    SETTINGS_COUNT,", key)
    insert(tui / "core" / "settings.c", r"^\};\n_Static_assert\(sizeof settings_table", row)
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")

    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", '-DPROBING_DATADIR=""', f"-I{tmp_path}", f"-I{ROOT}/src",
             f"-I{build_dir}/gen"]
    done = subprocess.run([compiler, *flags, "-fsyntax-only", tui / "core" / "settings.c", tui / "startup.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "program"
    rest = [base / f"{name}.c" for name in ("config", "option", "address", "watch", "strbuf", "text", "err", "procfs", "file", "clock")]
    done = subprocess.run([compiler, *flags, "-o", program, tmp_path / "main.c", tui / "main_options.c", *rest, "-lm", "-no-pie",
                           "-Wl,--unresolved-symbols=ignore-all,-z,lazy"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def said(*words):
        return subprocess.run([program, *words], capture_output=True, text=True).stdout

    assert said("--pause", "250ms", "--bell") == "pause 0.25, bell 1\n"
    assert said("--pause", "2h") == "--pause 2h: out of range, give 0 to 3600\n"
    assert said("quiet") == "PROBING_QUIET is on, by default 0\npause 0, bell 0\n"
    assert said("quite") == "unknown setting 'quite': did you mean probing.quiet?\n"
