#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes compile_commands.json from the commands that make would run, read on stdin (make -n -B V=1)."""

import json
import os
import re
import shlex
import sys


def main():
    entries = []
    for line in sys.stdin:
        words = shlex.split(line) if re.search(r"\s-c\s-o\s", line) else []
        if words and words[-1].endswith(".c"):
            entries.append({"directory": os.getcwd(), "file": words[-1], "arguments": words})
    with open("compile_commands.json", "w", encoding="utf-8") as out:
        json.dump(entries, out, indent=1)
        out.write("\n")
    print(f"compile_commands.json: {len(entries)} files")
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main())
