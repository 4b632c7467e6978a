# SPDX-License-Identifier: Apache-2.0
"""Every way a CPython gets into a process: shared, static, stripped, embedded, twice; and what is refused by name."""

import glob
import json
import os
import runpy
import shutil
import subprocess

import pytest

from conftest import ROOT, program_runner
from test_pystack_process import KEEPS_GIL, NO_THREADING
from test_pystack_stacks import PRELUDE, compare

AT_REST = PRELUDE + '''
def rest(): time.sleep(3600)
start(rest, name="größe")
start(report, 2)
rest()
'''


@pytest.fixture(scope="session")
def run_dump(build_dir):
    return program_runner(build_dir, os.path.join("tests", "tools", "pystack_dump"))


@pytest.fixture(scope="session")
def library_of():
    """The shared libpython of an interpreter with its prefix; skips where it has none."""
    def find(python):
        ask = ("import sys, sysconfig; v = sysconfig.get_config_var; "
               "print(sys.prefix, v('LIBDIR') or '-', v('INSTSONAME') or '-')")
        prefix, folder, name = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.split()
        path = os.path.join(folder, name)
        if ".so" not in name or not os.path.exists(path):
            pytest.skip(f"needs libpython: {python} has no shared one here")
        return path, prefix
    return find


@pytest.fixture
def embed(target, build_dir):
    """Starts a program that loads these libpythons and runs a script in the last."""
    program = os.path.join(build_dir, "tests", "tools", "embed_python")

    def start(source, prefix, *libraries):
        return target(source, python=program, flags=libraries, env={"PYTHONHOME": prefix})
    return start


def test_status_says_how_the_interpreter_was_found(each_python, ptrace, target, probing):
    job = target(NO_THREADING, python=each_python)
    probing(job.pid, "inject").ok()
    status = probing(job.pid, "status", "--json").ok().json()
    old = status["target"]["python"].startswith("3.6")
    assert status["discovery"] == ("interp_head" if old else "symbol")
    assert status["python_untested"] is False
    said = probing(job.pid, "status").ok().stdout
    assert f"python         {status['target']['python']}, found by {status['discovery']}\n" in said
    probing(job.pid, "eject").ok()


def check(run_dump, job):
    snapshot = run_dump(job.pid).ok().json()
    assert compare(job, snapshot) == 2
    return snapshot


def test_a_library_loaded_by_a_program(each_python, ptrace, embed, library_of, run_dump):
    library, prefix = library_of(each_python)
    check(run_dump, embed(AT_REST, prefix, library))


def test_of_a_python_that_may_be_unloaded_nothing_is_read_directly(each_python, build_dir, library_of, tmp_path):
    """A program has loaded it at run time."""
    library, prefix = library_of(each_python)
    script = tmp_path / "script.py"
    known = os.path.join(build_dir, "tests", "known", "known.so")
    job = runpy.run_path(os.path.join(ROOT, "bench", "handler.py"))["JOB"]
    script.write_text(f"import sys\nsys.argv = ['', {known!r}, '25', '51', 'released']\n{job}")
    embed = os.path.join(build_dir, "tests", "tools", "embed_python")
    done = subprocess.run([embed, library, str(script)], env=dict(os.environ, PYTHONHOME=prefix), timeout=100,
                          stdout=subprocess.PIPE, check=True)
    assert [cost["reads"] for cost in json.loads(done.stdout).values()] == [1, 1]


def test_a_stripped_library(each_python, ptrace, embed, library_of, run_dump, tmp_path, wait_until):
    library, prefix = library_of(each_python)
    if not shutil.which("strip"):
        pytest.skip("needs strip: not installed")
    stripped = tmp_path / os.path.basename(library)
    subprocess.run(["strip", "-s", "-o", stripped, library], check=True)
    snapshot = check(run_dump, embed(AT_REST, prefix, stripped))
    old = snapshot["version"].startswith("3.6")
    assert snapshot["discovery"] == ("static-scan" if old else "symbol")
    job = embed(KEEPS_GIL, prefix, stripped)

    def settled():
        threads = run_dump(job.pid).ok().json()["threads"]
        return threads if threads[0]["gil"] == "held" and len(threads) == 2 and threads[1]["gil"] != "none" else None

    # Without symbols 3.6 does not say where its GIL is, only who has it.
    assert wait_until(settled, 10, "the GIL to be kept")[1]["gil"] == (None if old else "waiting")


@pytest.mark.parametrize("idle", ["3.6", "3.9", "3.13"])
def test_the_runtime_that_lives_is_found(python_for, any_python, ptrace, embed, library_of, run_dump, idle):
    """Two runtimes in one process, of which one was never started."""
    other, _ = library_of(python_for(idle))
    library, prefix = library_of(any_python)
    told = subprocess.run([any_python, "-c", "import platform; print(platform.python_version())"], check=True,
                          capture_output=True, text=True).stdout.strip()
    assert check(run_dump, embed(AT_REST, prefix, other, library))["version"] == told


def test_the_page_lists_the_versions_that_the_code_supports(source_dir, build_dir):
    table = subprocess.run([os.path.join(build_dir, "tests", "tools", "pystack_versions")], check=True, capture_output=True,
                           text=True).stdout
    with open(os.path.join(source_dir, "docs", "pythons.md"), encoding="utf-8") as page:
        assert f"<!-- versions -->\n{table}<!-- versions end -->\n" in page.read(), "make docs-versions brings it up to date"
    assert table.count("| 3.") >= 13


def test_a_static_interpreter(ptrace, target, run_dump):
    """Debian's python3 has its runtime in the executable."""
    python = "/usr/bin/python3"
    if not os.path.exists(python) or "libpython" in subprocess.run(["ldd", python], capture_output=True, text=True).stdout:
        pytest.skip("needs static-python: /usr/bin/python3 is not one")
    check(run_dump, target(AT_REST, python=python))


def test_a_debug_build_before_3_13(ptrace, target, run_dump):
    python = os.environ.get("PROBING_TEST_REFUSED_PYTHON")
    if not python:
        pytest.skip("needs refused-python: $PROBING_TEST_REFUSED_PYTHON names no such build")
    job = target(NO_THREADING, python=python)
    result = run_dump(job.pid)
    assert result.status == 3
    assert f"Python 3.9d (debug build) of process {job.pid} is not supported" in result.stderr
    assert "debug builds from 3.13 on" in result.stderr


def test_a_python_that_is_too_old(ptrace, target, run_dump):
    found = [p for p in glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python2.7")) if os.path.exists(p)]
    python = shutil.which("python2.7") if not found else found[0]
    if not python:
        pytest.skip("needs py2.7: no such Python found")
    job = target(NO_THREADING, python=python)
    result = run_dump(job.pid)
    assert result.status == 3
    assert f"Python 2.7 of process {job.pid} is not supported: CPython 3.4 to 3.15 are" in result.stderr
