# SPDX-License-Identifier: Apache-2.0
"""docs/dev/adding-a-key.md and docs/dev/adding-a-theme-role.md are followed to the letter on a copy of the source; what comes out works.

How the example is answered is compiled, not run: that needs a terminal; what its key means is asked of the program."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_tui_docs import build_from_copy, insert


@pytest.fixture
def copy(tmp_path, build_dir):
    """A copy of src/tui and themes, and what compiles programs from it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    shutil.copytree(os.path.join(ROOT, "src", "tui"), tmp_path / "src" / "tui")
    shutil.copytree(os.path.join(ROOT, "themes"), tmp_path / "themes")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{tmp_path}/src", f"-I{ROOT}/src", f"-I{build_dir}/gen"]

    def compile_(*args):
        done = subprocess.run([compiler, *flags, *map(str, args)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    compile_.src, compile_.themes, compile_.root = tmp_path / "src", tmp_path / "themes", tmp_path
    return compile_


def examples(name):
    with open(os.path.join(ROOT, "docs", "dev", name), encoding="utf-8") as file:
        return re.findall(r"^```\w+\n(.*?)^```", file.read(), re.M | re.S)


BASE = [f"{ROOT}/src/base/{name}.c" for name in ("strbuf", "text", "err", "option")]

PRESS = r"""
#include <stdio.h>
#include <string.h>
#include "tui/core/action_keys.h"
#include "tui/core/config_file.h"
int main(int argc, char **argv) {
    struct err e = {0};
    struct strbuf b;
    strbuf_init(&b, 1 << 20);
    if (argc == 3 && action_bind_keys(argv[1], argv[2], 1, &e) != 0)
        return puts(e.text), 1;
    action_list_keys(&b);
    puts(strbuf_str(&b));
    strbuf_fini(&b);
    return action_find(CONTEXT_THREADS, argc == 3 ? 'b' : '&') == ACTION_BUSIEST ? 0 : 1;
}
"""


@pytest.mark.long
def test_adding_a_key(copy, build_dir):
    name, row, answer, settings = examples("adding-a-key.md")
    tui = copy.src / "tui"
    insert(tui / "keys" / "action.h", r"^ *ACTION_COUNT,", name)
    insert(tui / "core" / "action_table.c", r"^ *\{ACTION_NONE, NULL", row)
    app = tui / "core" / "app_input.c"
    text = app.read_text(encoding="utf-8")
    place = text.index("    default:", text.index("static bool app_input_act_common("))
    app.write_text(text[:place] + answer + text[place:], encoding="utf-8")
    keys = build_from_copy(build_dir, copy.root, PRESS, "press")
    listed = subprocess.run([keys], capture_output=True, text=True)
    assert listed.returncode == 0
    assert re.search(r"^threads +& +busiest +go to the thread that takes most of the CPU$", listed.stdout, re.M)
    changed, given = re.search(r"^(\S+) = (.*)$", settings, re.M).groups()
    listed = subprocess.run([keys, changed, given], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stdout
    assert re.search(r"^threads +ctrl-b +busiest ", listed.stdout, re.M) and "threads  & " not in listed.stdout


LOOKS = r"""
#include <stdio.h>
#include "tui/theme/theme.h"
int main(int argc, char **argv) {
    struct theme_path path = {.dirs = {argv[1]}};
    for (int i = 2; i < argc; i++) {
        struct theme t;
        struct strbuf w;
        struct err e;
        strbuf_init(&w, 65536);
        if (theme_load(&t, argv[i], &path, &w, &e) != 0 || w.len)
            return puts(w.len ? strbuf_str(&w) : e.text), 1;
        struct theme_attrs many = theme_resolve(&t, ROLE_ZOMBIE, THEME_256), few = theme_resolve(&t, ROLE_ZOMBIE, THEME_16);
        printf("%s %s %d %d %u\n", argv[i], theme_role_name(ROLE_ZOMBIE), many.fg, few.fg, theme_resolve(&t, ROLE_ZOMBIE, THEME_MONO).attrs);
        strbuf_fini(&w);
    }
    return 0;
}
"""


def test_adding_a_theme_role(copy):
    row, colours, mono = examples("adding-a-theme-role.md")
    header = copy.src / "tui" / "theme" / "theme.h"
    insert(header, r"^    X\(ROLE_HELP_KEY", "    " + row)
    theme = copy.themes / "default.theme"
    text = theme.read_text(encoding="utf-8")
    place = text.index("\n[mono]")
    comment = text.rindex("\n#", 0, place)
    theme.write_text(text[:comment] + colours + text[comment:] + mono, encoding="utf-8")
    shutil.copytree(os.path.join(ROOT, "tools"), copy.root / "tools")
    subprocess.run(["sh", copy.root / "tools" / "theme_default.sh"], check=True)
    program, looks = copy.root / "looks.c", copy.root / "looks"
    program.write_text(LOOKS, encoding="utf-8")
    copy("-o", looks, program, *sorted((copy.src / "tui" / "theme").glob("theme*.c")), *BASE[:3], "-lm")
    done = subprocess.run([looks, copy.themes, "default", "nord", "light", "okabe-ito"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [f"{name} zombie 245 7 2" for name in ("default", "nord", "light", "okabe-ito")]
