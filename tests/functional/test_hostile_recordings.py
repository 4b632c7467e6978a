# SPDX-License-Identifier: Apache-2.0
"""Recordings that nobody has recorded: made to be wrong, cut, changed. What can be read is shown, what cannot is said, nothing is run."""

import importlib.util
import os
import struct

import pytest


@pytest.fixture(scope="module")
def seeds(source_dir):
    """What the fuzz target begins with."""
    spec = importlib.util.spec_from_file_location("seeds", os.path.join(source_dir, "tests", "fuzz", "seeds.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def asked(probing, tmp_path):
    """asked(bytes, SQL): (rows, what was said of the recording)."""
    def ask(data, text):
        path = tmp_path / "run.db"
        path.write_bytes(data)
        result = probing("-t", str(path), "query", "--json", text, timeout=120).ok()
        return result.json()["rows"], result.stderr
    return ask


def test_a_whole_one(seeds, asked):
    rows, said = asked(seeds.recording(""), "SELECT count(*) AS n, sum(generation) AS g, count(DISTINCT pid) AS p FROM python.gc")
    assert rows == [{"n": 61, "g": sum(i % 3 for i in range(61)), "p": 2}] and said == ""
    rows, said = asked(seeds.recording("", "UTF-16le"), "SELECT t, e, b, i FROM python.zoo WHERE t IS NOT NULL")
    assert rows == [{"t": "text", "e": "R", "b": 1, "i": -1}] and said == ""


@pytest.mark.parametrize("change", ["computed", "virtual", "no_rowid"])
def test_tables_that_are_code_are_left_out(seeds, asked, change):
    rows, said = asked(seeds.recording(seeds.HOSTILE[change]), "SELECT count(*) AS n FROM python.gc")
    assert rows == [{"n": 61}] and said.count("\n") == 1 and "python.zoo" in said, said


def test_a_view_in_place_of_a_table(seeds, asked):
    rows, said = asked(seeds.recording(seeds.HOSTILE["view"]), "SELECT (SELECT count(*) FROM python.gc) AS g, (SELECT count(*) FROM python.zoo) AS n")
    assert rows == [{"g": 0, "n": 2}] and "python.gc" in said


def test_columns_that_the_table_has_not(seeds, asked):
    """SQLite would take the name of one for a text."""
    rows, said = asked(seeds.recording(seeds.HOSTILE["columns"]), "SELECT * FROM python.zoo WHERE i = -1")
    assert len(rows) == 1 and rows[0].pop("id") % 2 ** 32 == 3  # above that: of which target
    assert rows == [{"rank": None, "host": None, "pid": 7, "d": 0.5, "i": -1, "u": 2, "t": "text", "e": "R", "b": 1}] and said == ""


def test_values_of_other_types(seeds, asked):
    rows, _ = asked(seeds.recording(seeds.HOSTILE["types"]), "SELECT * FROM python.zoo")
    assert all(row["u"] is None and row["b"] in (None, 0, 1) for row in rows) and len(rows) == 2


def test_names_that_are_none(seeds, asked):
    rows, said = asked(seeds.recording(seeds.HOSTILE["names"]), "SELECT (SELECT count(*) FROM python.gc) AS g, (SELECT count(*) FROM python.zoo) AS z")
    assert rows == [{"g": 61, "z": 2}] and said.count("\n") == 1 and "not all of the recording is shown" in said and "\033" not in said
    rows, said = asked(seeds.recording(seeds.HOSTILE["hosts"]), "SELECT (SELECT count(*) FROM python.gc) AS g, (SELECT count(*) FROM python.zoo) AS z")
    assert rows == [{"g": 0, "z": 2}] and "host" in said


def test_rows_without_end(seeds, asked):
    """Pages that point at each other: SQLite would read them until the sun goes out."""
    rows, said = asked(seeds.endless(), "SELECT count(*) AS n FROM python.gc")
    assert rows == [{"n": 61}] and "reading it takes too long" in said


def test_a_journal_that_names_another_file(seeds, probing, tmp_path):
    """SQLite, playing it back, would remove what it names as the journal of several databases."""
    path, victim = tmp_path / "run.db", tmp_path / "thesis.tex"
    path.write_bytes(seeds.recording(""))
    victim.write_text("everything")
    size = 1024
    head = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + struct.pack(">IIIII", 0, 0, path.stat().st_size // size, 512, size)
    name = os.fsencode(str(victim))
    end = struct.pack(">I", 0x40000000 // size + 1) + name + struct.pack(">II", len(name), sum(name)) + head[:8]
    (tmp_path / "run.db-journal").write_bytes(head.ljust(512, b"\0") + end)
    result = probing("-t", str(path), "query", "SELECT count(*) FROM python.gc", timeout=60)
    assert victim.read_text() == "everything"
    assert result.status == 1 and len(result.stderr.splitlines()) == 1 and "run.db" in result.stderr
