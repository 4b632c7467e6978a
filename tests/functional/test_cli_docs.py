# SPDX-License-Identifier: Apache-2.0
"""The additions that the documents describe compile as they are printed there, and are as short as they say."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT


def code_blocks(name):
    with open(os.path.join(ROOT, "docs", "dev", name), encoding="utf-8") as file:
        return re.findall(r"^```c\n(.*?)^```", file.read(), re.M | re.S)


MAIN = """
int main(int argc, char **argv) {
    struct cli_line line;
    struct strbuf out;
    struct err e;
    strbuf_init(&out, 1 << 20);
    int rc = cli_parse(argc, argv, &line, &e);
    if (rc != 0)
        puts(e.text);
    else if (line.help)
        cli_put_help(&out, line.verb);
    else
        printf("%s of %s, %s\\n", line.verb->name, line.targets.items[0], line.options->json ? "JSON" : "text");
    printf("%s", strbuf_str(&out));
    strbuf_fini(&out);
    cli_line_fini(&line);
    return rc == 0 ? 0 : 2;
}
"""


def test_adding_a_verb(build_dir, tmp_path):
    """Added to a copy it compiles, is listed and understood. The other verbs are stand-ins there, so that nothing else has to be linked."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    source, row = code_blocks("adding-a-verb.md")
    assert len([line for line in (source + row).splitlines() if line.strip()]) <= 28 + 3  # and SPDX, banner, brace
    with open(os.path.join(ROOT, "src", "cli", "verbs.c"), encoding="utf-8") as file:
        verbs = file.read()
    names = re.findall(r"^    X\((\w+)\)", verbs, re.M)
    assert len(names) >= 20
    (tmp_path / "verbs.c").write_text(verbs.replace("    X(status)", row + "    X(status)"), encoding="utf-8")
    (tmp_path / "verb_gil.c").write_text(source, encoding="utf-8")
    others = "".join(f'const struct cli_verb verb_{name} = {{.name = "{name}", .help = ""}};\n' for name in names)
    (tmp_path / "main.c").write_text('#include <stdio.h>\n#include "cli/cli.h"\n' + others + MAIN, encoding="utf-8")
    program = tmp_path / "probing"
    rest = [f"{ROOT}/src/{name}.c" for name in ("cli/parse", "base/option", "base/strbuf", "base/text", "base/err")]
    done = subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{build_dir}/gen",
                           "-o", program, *(tmp_path / name for name in ("main.c", "verbs.c", "verb_gil.c")), *rest, "-lm",
                           "-no-pie", "-Wl,--unresolved-symbols=ignore-all,-z,lazy"],  # what only the verb itself calls
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def probing(*words):
        return subprocess.run([program, *words], capture_output=True, text=True).stdout

    assert re.search(r"^  gil +thread that holds TARGET's GIL$", probing("--help"), re.M)
    assert probing("gil", "--help").startswith("probing gil: thread that holds TARGET's GIL\n")
    assert "\nexample: probing 4242 gil\n" in probing("gil", "--help")
    assert probing("4242", "gil", "--json") == probing("-t", "4242", "gil", "--json") == "gil of 4242, JSON\n"
    assert probing("4242", "gill") == "unknown verb 'gill': did you mean 'gil'?\n"
