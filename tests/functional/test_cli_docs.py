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


def test_adding_a_verb(build_dir, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs cc: no C compiler")
    function, row = code_blocks("adding-a-verb.md")
    assert len([line for line in (function + row).splitlines() if line.strip()]) <= 20 + 3  # and SPDX, banner, brace
    source = tmp_path / "verb.c"
    prototype = re.search(r"^(int cli_run_\w+\(.*?\)) \{", function, re.M).group(1)
    source.write_text(f"{function}\nextern const struct cli_verb row;\nconst struct cli_verb row = {row.strip().rstrip(',')};\n",
                      encoding="utf-8")
    header = tmp_path / "prototype.h"
    header.write_text(f'#include "cli/cli.h"\n{prototype};\n', encoding="utf-8")
    done = subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fsyntax-only",
                           f"-I{ROOT}/src", f"-I{build_dir}/gen", "-include", str(header), str(source)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
