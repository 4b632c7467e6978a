#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes inputs to begin fuzzing with that are better made than kept: small ELF files, in FOLDER/TARGET/NAME.

usage: tests/fuzz/seeds.py FOLDER
"""

import os
import struct
import sys

NAMES = [b"probing_start", b"probing_version", b"_PyRuntime", b"interp_head"]
SECTIONS = [b"", b".PyRuntime", b".symtab", b".strtab", b".shstrtab"]
HEADER, PROGRAM, SECTION, SYMBOL = 64, 56, 64, 24


def text_table(names):
    """The names one after the other, and where each begins."""
    data, places = b"\0", []
    for name in names:
        places.append(len(data) if name else 0)
        data += name + b"\0" if name else b""
    return data, places


def sysv_hash(name):
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def gnu_hash(name):
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def library(with_gnu_hash):
    """A shared library of one segment with symbols, hash tables and sections, as base/elf.c reads them."""
    strings, places = text_table(NAMES)
    sections, section_places = text_table(SECTIONS)
    at = HEADER + 2 * PROGRAM
    version = at
    body = b"1.0.0\0\0\0" + b"3.13 data".ljust(16, b"\0")
    symbols = at + len(body)
    body += bytes(SYMBOL)
    for place in places:
        body += struct.pack("<IBBHQQ", place, 0x11, 0, 1, version, 6)
    names = at + len(body)
    body += strings.ljust((len(strings) + 7) // 8 * 8, b"\0")
    hashes = at + len(body)
    if with_gnu_hash:  # one bucket: all symbols are one chain, the last of which is odd
        body += struct.pack("<IIIIQI", 1, 1, 1, 0, 2**64 - 1, 1)
        values = [gnu_hash(name) & ~1 for name in NAMES]
        values[-1] |= 1
        body += b"".join(struct.pack("<I", value) for value in values)
    else:
        count = len(NAMES) + 1
        body += struct.pack("<III", 1, count, 1)
        body += b"".join(struct.pack("<I", (i + 1) % count if i else 0) for i in range(count))
    body += bytes(-len(body) % 8)
    dynamic = at + len(body)
    entries = [(6, symbols), (5, names), (10, len(strings)), (0x6FFFFEF5 if with_gnu_hash else 4, hashes), (0, 0)]
    body += b"".join(struct.pack("<QQ", *entry) for entry in entries)
    section_names = at + len(body)
    body += sections.ljust((len(sections) + 7) // 8 * 8, b"\0")
    table = at + len(body)
    rows = [(0, 0, 0, 0, 0), (1, 1, version + 8, 16, 0), (2, 2, symbols, SYMBOL * (len(NAMES) + 1), 3),
            (3, 3, names, len(strings), 0), (4, 3, section_names, len(sections), 0)]
    for name, kind, place, size, link in rows:
        body += struct.pack("<IIQQQQIIQQ", section_places[name], kind, 0, place, place, size, link, 0, 8, 0)
    total = at + len(body)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, HEADER, table, 0, HEADER, PROGRAM, 2, SECTION,
                       len(rows), 4)
    head += struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, total, total, 4096)
    head += struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 16 * len(entries), 16 * len(entries), 8)
    return head + body


def main():
    folder = sys.argv[1]
    new, old = library(True), library(False)
    seeds = {"base/elf": b"\0" + new, "base_elf/gnu": new, "base_elf/sysv": old, "base_elf/header": new[:HEADER],
             "inject_agentfile/agent": new, "inject_agentfile/sysv": old, "inject_agentfile/header": new[:HEADER]}
    for name, data in seeds.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
