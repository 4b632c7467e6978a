# SPDX-License-Identifier: Apache-2.0
"""The table of refusals names what the programs really say, and tests that there are."""

import functools
import glob
import os
import re

import pytest

from conftest import ROOT


def rows():
    with open(os.path.join(ROOT, "docs", "refusals.md"), encoding="utf-8") as file:
        cells = [line.strip("|\n ").split(" | ") for line in file if line.startswith("| `")]
    assert len(cells) > 20 and all(len(row) == 5 for row in cells)
    return cells


@functools.lru_cache(maxsize=None)
def said():
    """All text that the sources can print, literals that stand side by side as one."""
    text = ""
    for folder in ("inject", "client", "pystack"):
        for path in glob.glob(os.path.join(ROOT, "src", folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text += re.sub(r'"\s*\n\s*"', "", file.read())
    return text


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row[0]).strip("-"))
def test_a_row(row):
    phrase, test = row[0].strip("`"), row[4].strip("` ")
    text = said()
    scope = re.fullmatch(r"(.*ptrace_scope is )\d", phrase)
    assert phrase in text or (scope and scope.group(1) in text), phrase
    if os.path.exists(os.path.join(ROOT, "tests", "unit", test + ".c")):
        return
    defined = [path for path in glob.glob(os.path.join(ROOT, "tests", "functional", "test_*.py"))
               if re.search(rf"^def {test}\(", open(path, encoding="utf-8").read(), re.M)]
    assert defined, test
