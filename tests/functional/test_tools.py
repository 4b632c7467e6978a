# SPDX-License-Identifier: Apache-2.0
"""The project's own tools: a check that never complains is no check, so each is shown something wrong."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess

import pytest


def load(path, name):
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def driver(source_dir):
    return load(os.path.join(source_dir, "tests", "run"), "probing_test_driver")


@pytest.fixture(scope="module")
def lint(source_dir):
    return load(os.path.join(source_dir, "tools", "lint.py"), "probing_lint")


@pytest.fixture
def compiler():
    path = shutil.which("gcc") or shutil.which("cc")
    if not path:
        pytest.skip("needs gcc: no C compiler found")
    return path


# --- tests/run --------------------------------------------------------------------------------------------------

TAP = "1..3\nok 1 - reads\n# needs torch: none here\nok 2 # SKIP asks\nnot ok 3 - writes\n"


def count_of(driver, output, status, required=()):
    count = driver.Count(set(required))
    driver.count_tap("test_x", status, output, count)
    return count.passed, [name for name, _ in count.failures], count.skips


def test_driver_counts_results(driver):
    assert count_of(driver, TAP, 1) == (1, ["test_x: writes"], [("test_x: asks", "needs torch: none here")])


def test_driver_fails_a_skip_of_what_is_required(driver):
    passed, failed, skipped = count_of(driver, TAP, 1, ["torch"])
    assert (passed, failed, skipped) == (1, ["test_x: asks", "test_x: writes"], [])


@pytest.mark.parametrize("output, status", [("1..2\nok 1 - reads\n", -11), ("1..2\nok 1 - reads\n", 0), ("", 0), ("1..1\nok 1 - reads\n", None)])
def test_driver_fails_a_program_that_ends_early_or_badly(driver, output, status):
    assert "test_x" in count_of(driver, output, status)[1]


# --- tools/check_agent.sh ---------------------------------------------------------------------------------------

def check_agent(source_dir, path):
    done = subprocess.run([os.path.join(source_dir, "tools", "check_agent.sh"), path], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr + done.stdout


def test_agent_brings_nothing_with_it(source_dir, build_dir):
    status, said = check_agent(source_dir, os.path.join(build_dir, "libprobing.so"))
    assert status == 0, said


@pytest.mark.parametrize("source, flags, complaint", [
    ("int probing_start(void) { return 0; } int helper(void) { return 1; }", [], "shows the name helper"),
    ("#include <pthread.h>\nint probing_start(void) { return pthread_tryjoin_np(pthread_self(), 0); }", ["-D_GNU_SOURCE"], "needs glibc 2.3"),
    ("int probing_start(void) { return 0; }", ["-Wl,--no-as-needed", "-lpthread", "-l:libncursesw.so.6"], "needs libncursesw"),
    ("int probing_start(void) { return 0; }", ["-Wl,-z,execstack"], "executable stack"),
    ("int probing_start(void) { return 0; }", ["-Wl,-z,lazy"], "RELRO"),
    ("char probing_table[3000000] = {1};", [], "at most"),
])
def test_agent_check_complains(source_dir, compiler, tmp_path, source, flags, complaint):
    (tmp_path / "a.c").write_text(source)
    library = str(tmp_path / "a.so")
    hard = [] if flags else ["-Wl,-z,relro,-z,now"]
    subprocess.run([compiler, "-shared", "-fPIC", "-s", "-o", library, str(tmp_path / "a.c"), *hard, *flags], check=True)
    status, said = check_agent(source_dir, library)
    assert status == 1
    assert complaint in said


# --- tools/lint.py ----------------------------------------------------------------------------------------------

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def complaints(lint, path, text):
    findings = lint.Findings()
    lint.check_licence(path, text, findings)
    lint.check_words(path, text, findings)
    lint.check_c_file(path, text, findings)
    lint.check_file_size(path, text, findings)
    return findings.lines


@pytest.mark.parametrize("path, text, expected", [
    ("src/base/a.c", HEAD + '#include "wire/wire.h"\n', "may not include wire/wire.h"),
    ("src/agent/a.c", HEAD + '#include "store/sql.h"\n', "may not include store/sql.h"),
    ("src/tui/screens/a.c", HEAD + "#include <ncurses.h>\n", "may only be included by"),
    ("src/client/a.c", HEAD + "#include <libwebsockets.h>\n", "may only be included by"),
    ("src/pystack/a.c", HEAD + "#include <Python.h>\n", "may only be included by"),
    ("src/base/a.c", "int x;\n", "SPDX"),
    ("src/agent/a.c", HEAD + "void f(void)\n{\n    abort();\n}\n", "abort() may not be called"),
    ("src/agent/a.c", HEAD + 'void f(void)\n{\n    fprintf(stderr, "x");\n}\n', "standard streams"),
    ("src/base/a.c", HEAD + "#define A(x) if (x) return\n", "control flow"),
    ("src/base/a.c", HEAD + "int f(void)\n{\n" + "    x++;\n" * 60 + "}\n", "a function of 62 lines"),
    ("src/base/a.c", HEAD + "int x;\n" * 600, "601 lines"),
    ("src/base/a.c", HEAD + "/* " + "TO" + "DO: later */\n", "unfinished"),
])
def test_lint_finds(lint, path, text, expected):
    found = complaints(lint, path, text)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize("path, text", [
    ("src/tui/term/term_a.c", HEAD + '#include <ncurses.h>\n#include "client/session.h"\n#include "base/err.h"\n'),
    ("src/agent/net_server.c", HEAD + '#include <libwebsockets.h>\n#include "store/ring.h"\n#include "version.h"\n'),
    ("src/agent/a.c", HEAD + "/* abort() and stderr in words */\nvoid f(struct s *s)\n{\n    s->exit();\n    log_line(\"exit(1)\");\n}\n"),
    ("src/base/a.c", HEAD + "#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))\nstatic const int t[] = {\n" + "    1,\n" * 100 + "};\n"),
])
def test_lint_leaves_alone(lint, path, text):
    assert complaints(lint, path, text) == []


# --- tools/deps.sh, make install --------------------------------------------------------------------------------

def test_deps_are_built_once(source_dir):
    deps = os.path.join(source_dir, "build", "deps")
    stamp = os.path.join(deps, "stamp")
    if not os.path.exists(stamp):
        pytest.skip("needs deps: built elsewhere")
    library = os.stat(os.path.join(deps, "lib", "libwebsockets.a")).st_mtime_ns
    done = subprocess.run([os.path.join(source_dir, "tools", "deps.sh"), deps], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.stat(os.path.join(deps, "lib", "libwebsockets.a")).st_mtime_ns == library


def test_deps_refuse_other_bytes(source_dir, tmp_path):
    """A source whose hash is not the pinned one is never built, and the message says where to put the right one."""
    for part in ("tools", "deps"):
        (tmp_path / part).mkdir()
    shutil.copy(os.path.join(source_dir, "tools", "deps.sh"), tmp_path / "tools" / "deps.sh")
    (tmp_path / "deps.lock").write_text("nothing 1.0 " + "0" * 64 + " file:///nonexistent/nothing-1.0.tar.gz\n")
    done = subprocess.run([str(tmp_path / "tools" / "deps.sh"), str(tmp_path / "deps")], capture_output=True, text=True,
                          timeout=80, env=dict(os.environ, PATH=without_apt(tmp_path)))
    assert done.returncode == 1
    assert "no source for nothing 1.0" in done.stderr
    assert "0" * 64 in done.stderr


def without_apt(tmp_path):
    """A PATH with everything but apt: the Debian way is out of reach at once, without asking a mirror."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else []:
            link = folder / name
            if not name.startswith("apt") and not link.is_symlink():
                link.symlink_to(os.path.join(place, name))
    return str(folder)


# --- tools/check_stub.sh ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("body, complaint", [
    ("long f(long *p) { p[0] = g(p); return 1; } ", None),
    ("extern long outside; long f(long *p) { return p[0] + outside; }", "outside"),
    ("void puts_it(const char *); void f(void) { puts_it(\"text\"); }", "puts_it"),
])
def test_stub_check(source_dir, compiler, tmp_path, body, complaint):
    """Code that is copied into another process may call within its section, and refer to nothing else."""
    section = '__attribute__((section("copied"), noinline))'
    body = body.replace("long f(", f"{section} long f(").replace("void f(", f"{section} void f(")
    (tmp_path / "a.c").write_text(f"{section} long g(long *p) {{ return p[1]; }}\n{body}\n")
    obj = str(tmp_path / "a.o")
    subprocess.run([compiler, "-O2", "-fPIC", "-c", "-o", obj, str(tmp_path / "a.c")], check=True)
    done = subprocess.run([os.path.join(source_dir, "tools", "check_stub.sh"), obj, "copied"], capture_output=True, text=True)
    assert done.returncode == (1 if complaint else 0)
    assert (complaint or "") in done.stderr
