# SPDX-License-Identifier: Apache-2.0
"""The table of the rules of injection names functions and tests that there are."""

import functools
import glob
import os
import re

import pytest

from conftest import ROOT


def rows():
    with open(os.path.join(ROOT, "docs", "dev", "injection.md"), encoding="utf-8") as file:
        cells = [line.strip("|\n ").split(" | ") for line in file if line.startswith("| ") and "`" in line]
    assert len(cells) > 20 and all(len(row) == 3 for row in cells)
    return cells


@functools.lru_cache(maxsize=None)
def text_of(*patterns):
    found = []
    for pattern in patterns:
        for path in glob.glob(os.path.join(ROOT, *pattern.split("/")), recursive=True):
            with open(path, encoding="utf-8") as file:
                found.append(file.read())
    return "\n".join(found)


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row[1]).strip("-"))
def test_a_row(row):
    function = row[1].strip("` ")
    sources = text_of("src/inject/*.c", "src/agent/**/*.c", "src/base/err.c", "src/base/mem.c", "src/base/endpoint.c", "src/client/guard.c")
    assert re.search(rf"\b{function}\([^;{{]*\) {{", sources), function
    for test in re.findall(r"`(\w+)`", row[2]):
        is_program = os.path.exists(os.path.join(ROOT, "tests", "unit", test + ".c"))
        assert is_program or re.search(rf"^def {test}\(", text_of("tests/functional/test_*.py"), re.M) or \
            re.search(rf"^static void {test}\(", text_of("tests/unit/test_*.c"), re.M), test
