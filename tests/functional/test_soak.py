# SPDX-License-Identifier: Apache-2.0
"""make soak: its parts are run and told of; the program whose stacks are known is read in every way."""

import json
import os
import shutil
import sys

import pytest

from conftest import ROOT, run_command

SOAK = os.path.join(ROOT, "tests", "soak", "run")
PARTS = {
    "10-good": '#!/bin/sh\necho "{\\"cycles\\": $SOAK_CYCLES}"\necho "$SOAK_SAMPLES samples of $SOAK_PYTHONS, all well"\n',
    "20-bad": "#!/bin/sh\necho 3 harmed\nexit 1\n",
    "30-cannot": "#!/bin/sh\necho needs more than there is\nexit 77\n",
    "40-dies": "#!/bin/sh\nkill -9 $$\n",
    "notes": "not a part\n",
}


@pytest.fixture
def soak(tmp_path):
    folder = tmp_path / "tests" / "soak"
    folder.mkdir(parents=True)
    shutil.copy(SOAK, folder / "run")
    for name, text in PARTS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return lambda *args: run_command([folder / "run", "--build", tmp_path / "build", *args])


def rows_of(done):
    lines = done.stdout.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("part "))
    return {line.split()[0]: (line.split()[1], " ".join(line.split()[3:])) for line in lines[header + 1:]}


def test_parts_and_their_table(soak, tmp_path):
    done = soak("--samples", "7", "--cycles", "5", "--pythons", "3.9")
    assert done.status == 1
    assert rows_of(done) == {"good": ("ok", "7 samples of 3.9, all well"), "bad": ("FAILED", "3 harmed"),
                             "cannot": ("skipped", "needs more than there is"), "dies": ("FAILED", "")}
    assert json.loads((tmp_path / "build" / "soak" / "good.log").read_text().splitlines()[0]) == {"cycles": 5}
    assert soak("--only", "good,cannot").status == 0


def test_a_part_that_is_not(soak):
    done = soak("--only", "god")
    assert done.status == 2 and "no part god; there are good, bad, cannot, dies" in done.stderr


@pytest.mark.timeout(150)
def test_each_way_of_reading(any_python, build_dir, ptrace):
    done = run_command([sys.executable, os.path.join(ROOT, "bench", "known_answer.py"), "--build", build_dir, "--samples", "2000",
                        "--seconds", "20", "--python", any_python], timeout=140).ok()
    results = {r["mode"]: r for r in map(json.loads, done.stdout.splitlines())}
    assert set(results) == {"exact", "gentle", "no-inject", "block"}
    for mode, result in results.items():
        # Who does not stop threads may take all of its samples while the program waits for a processor.
        assert result["samples"] > 0 and result["distinct"] > (mode in ("exact", "block")), result
        assert mode not in ("exact", "block") or result["impossible"] + result["wrong_lines"] == 0, result
    assert results["block"]["held"] > 0 and results["no-inject"]["held"] == 0
    header, row = done.stderr.splitlines()
    assert header.split() == ["python", "exact", "gentle", "no-inject", "block"]
    assert row.startswith(results["exact"]["python"] + " ")
