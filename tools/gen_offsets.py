#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/pystack/offsets_table.c from the headers of the CPythons given.

usage: tools/gen_offsets.py [-o FILE] PYTHON...

Each PYTHON is an interpreter (3.9 to 3.13, x86-64, release build) with its headers installed, one per minor version.
tools/gen_offsets.c is compiled against its headers with $CC (cc) and run; it prints one row. Two interpreters of the same
minor version must give the same row.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets_table: one row per minor version of CPython, x86-64, release builds.
 *
 * Written by tools/gen_offsets.py from the headers of CPython {versions}; do not edit.
 */
#include "pystack/offsets.h"

const struct pystack_offsets pystack_offsets_table[] = {{
"""
FOOTER = """};

const size_t pystack_offsets_table_size = sizeof pystack_offsets_table / sizeof pystack_offsets_table[0];
"""


def row_of(python, scratch):
    """(minor version, exact version, text of the row) of an interpreter."""
    asked = "import sysconfig; p = sysconfig.get_paths(); print(p['include']); print(p['platinclude'])"
    folders = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    program = os.path.join(scratch, "gen_offsets")
    includes = [f"-I{f}{sub}" for f in dict.fromkeys(folders) for sub in ("", "/internal")]
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *includes, "-o", program, os.path.join(HERE, "gen_offsets.c")], check=True)
    row = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    version = re.search(r"CPython (\S+)", row).group(1).rstrip("+")
    return tuple(int(n) for n in version.split(".")[:2]), version, row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "..", "src", "pystack", "offsets_table.c"))
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    args = parser.parse_args()

    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        for python in args.pythons:
            minor, version, row = row_of(python, scratch)
            strip = re.compile(r"/\*.*?\*/")
            if minor in rows and strip.sub("", rows[minor][1]) != strip.sub("", row):
                sys.exit(f"gen_offsets: {version} and {rows[minor][0]} lay their structs out differently")
            rows.setdefault(minor, (version, row))
    ordered = [rows[minor] for minor in sorted(rows)]
    with open(args.output, "w", encoding="utf-8") as out:
        out.write(HEADER.format(versions=", ".join(version for version, _ in ordered)))
        out.write("".join(row for _, row in ordered))
        out.write(FOOTER)


if __name__ == "__main__":
    main()
