#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes inputs to begin fuzzing with that are better made than kept: small ELF files and recordings, in FOLDER/TARGET/NAME.

usage: tests/fuzz/seeds.py FOLDER
"""

import os
import sqlite3
import struct
import sys
import tempfile

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


RECORDING = """
PRAGMA page_size = 1024;
CREATE TABLE probing_recording(key TEXT PRIMARY KEY, value);
CREATE TABLE probing_tables(name TEXT PRIMARY KEY, stored_as TEXT, alias TEXT, help TEXT, cost INTEGER, retention_s REAL);
CREATE TABLE probing_columns(table_name TEXT, position INTEGER, name TEXT, type INTEGER, unit TEXT, help TEXT);
INSERT INTO probing_recording VALUES ('schema_version', 1), ('began_at', 1e9), ('ended_at', 1.1e9);
INSERT INTO probing_tables VALUES ('python.gc', 'python_gc', NULL, 'collections', 1, 3600), ('python.zoo', 'python_zoo', 'other', 'all types', 1, 0);
INSERT INTO probing_columns VALUES ('python.gc', 0, 'timestamp', 1, 's', 'when'), ('python.gc', 1, 'generation', 4, '', ''),
    ('python.zoo', 0, 'd', 2, '', ''), ('python.zoo', 1, 'i', 3, '', ''), ('python.zoo', 2, 'u', 5, '', ''), ('python.zoo', 3, 'id', 6, '', ''), ('python.zoo', 4, 't', 7, '', ''),
    ('python.zoo', 5, 'e', 8, '', ''), ('python.zoo', 6, 'b', 9, '', '');
CREATE TABLE python_gc(rank INTEGER, host TEXT, pid INTEGER, timestamp REAL, generation INTEGER);
CREATE TABLE python_zoo(rank INTEGER, host TEXT, pid INTEGER, d REAL, i INTEGER, u INTEGER, id INTEGER, t TEXT, e TEXT, b INTEGER);
CREATE VIEW other AS SELECT * FROM python_zoo;
WITH n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 60)
    INSERT INTO python_gc SELECT 0, 'here', 7 + i % 2, 1e9 + i, i % 3 FROM n;
INSERT INTO python_zoo VALUES (NULL, NULL, 7, 0.5, -1, 2, 3, 'text', 'R', 1), (NULL, NULL, 7, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
"""

# What a recording may be that nobody has recorded.
HOSTILE = {
    "types": "UPDATE python_gc SET timestamp = CASE generation WHEN 0 THEN 'x' WHEN 1 THEN 9e999 ELSE x'00ff' END, generation = 1e300;"
             "UPDATE python_zoo SET i = x'ff', t = x'c3280000', b = 'maybe', u = -9e18, id = 'nine'; UPDATE probing_tables SET cost = 'much', retention_s = -9e999",
    "view": "DROP TABLE python_gc; CREATE VIEW python_gc AS SELECT * FROM python_zoo",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON python_zoo BEGIN DELETE FROM python_gc; END",
    "index": "CREATE INDEX i ON python_gc(pid, rank, host); CREATE INDEX j ON python_zoo(abs(i)) WHERE pid IS NOT NULL",
    "computed": "DROP TABLE python_zoo; CREATE TABLE python_zoo(rank, host, pid, d REAL, t TEXT AS (hex(zeroblob(pid * 1000000)))); INSERT INTO python_zoo VALUES (0, '', 7, 1)",
    "no_rowid": "DROP TABLE python_zoo; CREATE TABLE python_zoo(rank, host, pid PRIMARY KEY, t) WITHOUT ROWID; INSERT INTO python_zoo VALUES (0, '', 7, 'x')",
    "virtual": "DROP TABLE python_zoo; PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'python_zoo', 'python_zoo', 0, 'CREATE VIRTUAL TABLE python_zoo USING fts3(t)')",
    "text": "UPDATE python_zoo SET t = hex(zeroblob(200000)), e = t; INSERT INTO probing_columns SELECT 'python.zoo', 9, hex(zeroblob(50000)), 7, hex(zeroblob(50000)), 'x'",
    "columns": "INSERT INTO probing_columns SELECT 'python.zoo', p.position + 10 * c.position, p.name || c.position, p.type, '', '' FROM probing_columns p, probing_columns c;"
               "INSERT INTO probing_columns VALUES ('python.zoo', 99, 'pid', 3, '', ''), ('python.zoo', 98, 't', 7, '', ''), ('python.zoo', 97, 'missing', 7, '', ''), ('python.zoo', 96, 'd', 77, '', '')",
    "names": "INSERT INTO probing_tables SELECT 'python.zoo' || char(0) || cost || alias, '', '\"; DROP', char(10, 27, 0, 7), 3, 0 FROM probing_tables;"
             "INSERT INTO probing_tables VALUES ('', '', '', '', 0, 0), ('a.b.c', '', '', '', 0, 0), (x'00', '', '', '', 0, 0), ('sqlite.master', '', '', '', 0, 0);"
             "UPDATE probing_tables SET help = char(27) || '[2J' WHERE name = 'python.gc'",
    "hosts": "UPDATE python_gc SET host = 'a' || char(0) || 'b' || generation",
    "targets": "WITH n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO python_gc SELECT i, 'h' || i, i * 1e15, i, i FROM n",
}


# As small as one can be, for most of the fuzzer's time goes with the length: each of these is a few pages of 512 bytes.
SMALL = """
PRAGMA page_size = 512;
CREATE TABLE probing_recording(key, value);
CREATE TABLE probing_tables(name, alias, help, cost, retention_s);
CREATE TABLE probing_columns(table_name, name, type, unit, help);
CREATE TABLE a_b(rank, host, pid, d, t);
INSERT INTO probing_recording VALUES ('schema_version', 1);
INSERT INTO probing_tables VALUES ('a.b', 'c', 'h', 1, 9);
INSERT INTO probing_columns VALUES ('a.b', 'd', {0}, '', ''), ('a.b', 't', {1}, '', '');
INSERT INTO a_b VALUES (NULL, 'h', 7, {2}, {3}), (0, NULL, 7, NULL, NULL), (0, 'h', NULL, {3}, {2});
"""
VALUES = {"text": (1, 7, "1e9", "'text'"), "enum": (2, 8, "0.5", "'R'"), "int": (3, 4, "-1", "2147483648"), "id": (5, 6, "4294967296", "3"),
          "bool": (9, 1, "2", "9e999"), "none": (0, 77, "x'c328'", "''"), "real": (1, 2, "'x'", "1e300")}


def small(row):
    """The bytes of a small recording of two columns: their types, and two values."""
    return recording("", script=SMALL.format(*row))


def recording(change, encoding="UTF-8", script=RECORDING):
    """The bytes of a recording, after this change to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.db")
        database = sqlite3.connect(path)
        database.executescript(f"PRAGMA encoding = '{encoding}';" + script)
        database.executescript(change)
        database.commit()
        database.close()
        with open(path, "rb") as file:
            return file.read()


def varint(value):
    return bytes([0x80 | value >> 7, value & 0x7F]) if value > 127 else bytes([value])


def endless(levels=12, wide=100):
    """A recording whose table has pages that all point at the same next one: few bytes, rows without end."""
    data = bytearray(recording(""))
    size = struct.unpack_from(">H", data, 16)[0]
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        database = sqlite3.connect(file.name)
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'python_zoo'").fetchone()[0]
        database.close()
    leaf = bytes(data[(root - 1) * size:root * size])
    pages = len(data) // size
    chain = [root] + list(range(pages + 1, pages + levels + 1))
    for here, below in zip(chain, chain[1:]):  # an interior page: cells of a page's number and a key
        cells = [struct.pack(">I", below) + varint(key + 1) for key in range(wide)]
        page, end = bytearray(size), size
        struct.pack_into(">BHHHBI", page, 0, 5, 0, wide, size - sum(map(len, cells)), 0, below)
        for i, cell in enumerate(cells):
            end -= len(cell)
            page[end:end + len(cell)] = cell
            struct.pack_into(">H", page, 12 + 2 * i, end)
        data[(here - 1) * size:here * size] = page
    data[(chain[-1] - 1) * size:chain[-1] * size] = leaf
    struct.pack_into(">I", data, 28, len(data) // size)
    return bytes(data)


def recordings():
    whole = recording("")
    seeds = {"whole": whole, "cut": whole[:len(whole) * 6 // 10], "header": whole[:100], "utf16": recording("", "UTF-16le"), "endless": endless()}
    seeds.update((name, recording(change)) for name, change in HOSTILE.items())
    seeds.update((f"small_{name}", small(row)) for name, row in VALUES.items())
    for bit in range(0, len(whole) * 8, len(whole) * 8 // 24 | 1):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        seeds[f"flipped_{bit}"] = bytes(flipped)
    return {f"store_archive/{name}": data for name, data in seeds.items()}


def main():
    folder = sys.argv[1]
    new, old = library(True), library(False)
    seeds = {"base/elf": b"\0" + new, "base_elf/gnu": new, "base_elf/sysv": old, "base_elf/header": new[:HEADER],
             "inject_agentfile/agent": new, "inject_agentfile/sysv": old, "inject_agentfile/header": new[:HEADER], **recordings()}
    for name, data in seeds.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
