#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/pystack_lines.txt: line tables with the lines that the Python which made them reads in them.

usage: tools/gen_line_fixtures.py [-o FILE] PYTHON...

Each row: version, function, form (enum pystack_line_style), first line, table in hex ("-": empty), and start-end=line of
each range of bytes of the code, line 0 without one. The sources are made here, so that the tables have large steps, steps
back, ranges without a line and long entries.
"""

import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))

# Run by each interpreter: prints [version, [[name, first line, table, [[start, end, line]...]]...]].
MAKER = r"""
import dis, json, sys

SOURCES = {
    "plain": "def f(x):\n    y = x\n    return y\n",
    "far_apart": "def f(x):\n" + "\n" * 300 + "    x()\n" + "\n" * 700 + "    return x(\n" + "\n" * 200 + "  x)\n",
    "backwards": "def f(x):\n    return x(\n        x(1),\n        x(\n            2\n        ), [y for y in\n   x(3)],\n    )\n",
    "long": "def f(x):\n" + "".join("    x = x(x, %d, [x], {x: %d})\n" % (n, n) for n in range(60)) + "    return x\n",
    "one_line": "def f(x): return [" + ", ".join("x(%d)" % n for n in range(90)) + "]\n",
    "no_line": "def f(x):\n    with x as y:\n        try:\n            y()\n        except x as e:\n            del e\n"
               "        finally:\n            x()\n    for z in x:\n        if z:\n            continue\n    return 1\n",
    "generator": "def f(x):\n    for y in x:\n        z = yield y\n        print(z)\n",
    "decorated": "@abs\n@len\ndef f(x):\n\n\n    return lambda: x\n",
    "wide": "def f(x):\n    return" + " " * 300 + "x(" + " " * 400 + "1)\n",
}

def function_code(code):
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            return const

def ranges(code):
    if hasattr(code, "co_lines"):
        return [[start, end, line or 0] for start, end, line in code.co_lines()]
    starts = list(dis.findlinestarts(code)) + [(len(code.co_code), None)]
    found = [[start, starts[n + 1][0], line] for n, (start, line) in enumerate(starts[:-1])]
    if starts[0][0] > 0:
        found.insert(0, [0, starts[0][0], code.co_firstlineno])
    return found

out = []
for name, source in SOURCES.items():
    code = function_code(compile("\n" * 9 + source, "f", "exec"))
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    out.append([name, code.co_firstlineno, list(table), ranges(code)])
print(json.dumps(["%d.%d" % sys.version_info[:2], out]))
"""


def merged(ranges):
    """Neighbours of the same line made one; empty ranges left out."""
    out = []
    for start, end, line in ranges:
        if start == end:
            continue
        if out and out[-1][1] == start and out[-1][2] == line:
            out[-1][1] = end
        else:
            out.append([start, end, line])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "..", "tests", "unit", "pystack_lines.txt"))
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    args = parser.parse_args()

    with open(args.output, "w", encoding="ascii") as out:
        out.write("# Written by tools/gen_line_fixtures.py; do not edit.\n")
        for python in args.pythons:
            made = subprocess.run([python, "-c", MAKER], check=True, capture_output=True, text=True).stdout
            version, functions = json.loads(made)
            form = 3 if version in ("3.4", "3.5") else min(max(int(version.split(".")[1]) - 9, 0), 2)
            for name, first, table, ranges in functions:
                known = " ".join("%d-%d=%d" % tuple(r) for r in merged(ranges))
                out.write(f"{version} {name} {form} {first} {bytes(table).hex() or '-'} {known}\n")


if __name__ == "__main__":
    main()
