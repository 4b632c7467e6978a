#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/pystack/offsets_table.c from the headers of the CPythons given.

usage: tools/gen_offsets.py [-o FILE] [-p FILE] PYTHON-OR-HEADERS...

Each is an interpreter (3.4 to 3.15, x86-64, release build) with its headers installed, or the folder of such headers (of a
Python of another system). tools/gen_offsets.c is compiled against the headers with $CC (cc) and run; it prints one row, from
3.13 on also one of the free-threaded build. Two of the same minor version must give the same row. Rows of versions that are
not given are kept as they are. What 3.13 and later publish of themselves is written to tests/unit/pystack_published.txt.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets_table: one row per minor version of CPython, x86-64, release builds, and of their free-threaded builds.
 *
 * Written by tools/gen_offsets.py; do not edit. From the headers of CPython
 * {versions}.
 */
#include "pystack/offsets.h"

/* clang-format off */
const struct pystack_offsets pystack_offsets_table[] = {{
"""
FOOTER = """,
};
/* clang-format on */

const size_t pystack_offsets_table_size = sizeof pystack_offsets_table / sizeof pystack_offsets_table[0];
"""


def folders_of(python):
    """Where the headers of an interpreter are; a folder is itself."""
    if os.path.isdir(python):
        multiarch = os.path.join(os.path.dirname(python), "x86_64-linux-gnu", os.path.basename(python))
        return [python] + ([multiarch] if os.path.isdir(multiarch) else [])
    asked = "import sysconfig; p = sysconfig.get_paths(); print(p['include']); print(p['platinclude'])"
    return subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.split()


def output_of(python, scratch, options):
    """What the program prints for an interpreter."""
    folders = folders_of(python)
    program = os.path.join(scratch, "gen_offsets")
    includes = [f"-I{f}{sub}" for f in dict.fromkeys(folders) for sub in ("", "/internal")]
    if os.path.isdir(python):  # its pyconfig.h may name one beside it; the system's own headers come first
        options = [*options, "-idirafter", os.path.dirname(os.path.abspath(python))]
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *includes, *options, "-o", program, os.path.join(HERE, "gen_offsets.c")], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def row_of(python, scratch, options):
    """(version and build, exact version, text of the row) of an interpreter."""
    row = output_of(python, scratch, options)
    version = re.search(r"CPython (\S+)", row).group(1).rstrip("+")
    return (*(int(n) for n in version.split(".")[:2]), "free_threaded" in row), version, row


def write_published(path, published):
    """One row a version and build: version, free-threaded, bytes in hex. Rows of other versions are kept."""
    rows = []
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            rows = [line for line in file if not line.startswith("#")]
    minors = {(line.split(".")[1], line.split()[1]): line for line in rows + published}
    with open(path, "w", encoding="ascii") as out:
        out.write("# Written by tools/gen_offsets.py; do not edit.\n")
        out.write("".join(minors[key] for key in sorted(minors, key=lambda k: (int(k[0]), k[1]))))


def wrapped(row):
    """The text of a row in lines that are not too long; a comment stays whole."""
    comment, fields = re.fullmatch(r"\{\s*(/\*.*?\*/)\s*(.*)\}", row, re.S).groups()
    lines = textwrap.wrap(" ".join(fields.split()).replace(" = ", "~=~"), 108)
    return "    {" + comment + "\n" + "".join(f"     {line}\n" for line in lines).rstrip("\n").replace("~=~", " = ") + "}"


def known_rows(path):
    """Rows of an earlier run."""
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = re.findall(r"\{\s*/\* CPython .*?\}", file.read(), re.S)
        for row in found:
            version = re.search(r"CPython ([^\s,]+)", row).group(1)
            rows[(*(int(n) for n in version.split(".")[:2]), "free_threaded" in row)] = (version, row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "..", "src", "pystack", "offsets_table.c"))
    parser.add_argument("-p", "--published", default=os.path.join(HERE, "..", "tests", "unit", "pystack_published.txt"))
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    args = parser.parse_args()

    rows, kept, published = {}, known_rows(args.output), []
    with tempfile.TemporaryDirectory() as scratch:
        for python in args.pythons:
            made = [row_of(python, scratch, [])]
            if made[0][0] >= (3, 13):
                made.append(row_of(python, scratch, ["-DGEN_FREE_THREADED"]))
                # Only the constants at the start of what this makes are looked at; the rest names things that are not there.
                published += [output_of(python, scratch, [*build, "-DGEN_PUBLISHED", "-Wl,--unresolved-symbols=ignore-all"])
                              for build in ([], ["-DGEN_FREE_THREADED"])]
            for key, version, row in made:
                strip = re.compile(r"/\*.*?\*/")
                if key in rows and strip.sub("", rows[key][1]) != strip.sub("", row):
                    sys.exit(f"gen_offsets: {version} and {rows[key][0]} lay their structs out differently")
                rows.setdefault(key, (version, row))
    rows = {**kept, **rows}
    ordered = [rows[key] for key in sorted(rows)]
    write_published(args.published, published)
    with open(args.output, "w", encoding="utf-8") as out:
        out.write(HEADER.format(versions=textwrap.fill(
            ", ".join(dict.fromkeys(version for version, _ in ordered)), 110, subsequent_indent=" * ")))
        out.write(",\n".join(wrapped(row) for _, row in ordered))
        out.write(FOOTER)


if __name__ == "__main__":
    main()
