# SPDX-License-Identifier: Apache-2.0
"""The project's own tools: a check that never complains checks nothing, so each is shown something wrong."""

import html
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


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


UNSTEADY = """
import os, pytest

def once(name):
    path = os.path.join(os.environ["SCRATCH"], name)
    first = not os.path.exists(path)
    open(path, "w").close()
    return first

def test_good():
    pass

@pytest.mark.parametrize("x", ["a b"])
def test_of_a_busy_machine(x):
    assert not once("busy"), "it took too long"

def test_bad():
    assert False, "it is so"

def test_harms(request):
    if once("harmed"):
        request.node.user_properties.append(("harm", "process 7 had ended: -11"))
        assert False, "no answer"
"""


def test_driver_tells_a_busy_machine_from_a_fault(driver, tmp_path, monkeypatch):
    (tmp_path / "tests" / "functional").mkdir(parents=True)
    (tmp_path / "tests" / "functional" / "test_a.py").write_text(UNSTEADY)
    monkeypatch.setattr(driver, "ROOT", str(tmp_path))
    count = driver.Count(set())
    driver.run_functional("", dict(os.environ, SCRATCH=str(tmp_path)), False, [], 1, count)
    assert count.passed == 1, "what is unsteady has not passed"
    assert [(name, "it took too long" in why) for name, why in count.unsteady] == [("test_a: test_of_a_busy_machine[a b]", True)]
    failed = dict(count.failures)
    assert set(failed) == {"test_a: test_bad", "test_a: test_harms"}
    assert "process 7 had ended: -11" in failed["test_a: test_harms"] and (tmp_path / "harmed").exists()


def test_driver_gives_many_failures_no_second_try(driver, tmp_path, monkeypatch):
    (tmp_path / "tests" / "functional").mkdir(parents=True)
    (tmp_path / "tests" / "functional" / "test_a.py").write_text(
        UNSTEADY + "\n\n@pytest.mark.parametrize('n', range(1))\ndef test_many(n):\n    assert not once(f'many{n}')\n")
    monkeypatch.setattr(driver, "ROOT", str(tmp_path))
    count = driver.Count(set())
    driver.run_functional("", dict(os.environ, SCRATCH=str(tmp_path)), False, [], 1, count)
    assert (count.passed, len(count.failures), count.unsteady) == (1, 4, [])


def test_driver_closes_with_what_was_slow_skipped_and_unsteady(driver, capsys):
    count = driver.Count(set())
    for name in ("test_a: one[3.14]", "test_a: two[3.14]", "test_b: three"):
        count.skip(name, "needs py3.14: none here")
    count.skip("test_b: four", "needs zsh: not installed")
    count.unsteady.append(("test_a: five", "it took too long"))
    count.seconds += [(0.5, 0.25, "test_a: five"), (12.25, 3.0, "test_b: six"), (1.0, 5.0, "test_a: seven")]
    count.pass_one()
    assert count.close() == 0, "an unsteady test alone does not fail the run"
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("slow", "file", "all"))] == [
        "slow       12.2 s, of a processor   3.0 s  test_b: six", "slow        1.0 s, of a processor   5.0 s  test_a: seven",
        "slow        0.5 s, of a processor   0.2 s  test_a: five", "file        1.5 s, of a processor   5.2 s  test_a",
        "file       12.2 s, of a processor   3.0 s  test_b", "all        13.8 s, of a processor   8.2 s"]
    assert [line for line in lines if line.startswith("skipped")] == ["skipped  3: needs py3.14: none here: test_a (2), test_b: three",
                                                                      "skipped  1: needs zsh: not installed: test_b: four"]
    assert any(line.startswith("unsteady 20") and " load " in line and line.endswith("test_a: five: passed by itself, after: it took too long") for line in lines)
    assert lines[-2:] == ["1 unsteady, neither passed nor failed; tests/unsteady.txt keeps them", "1 passed, 0 failed, 4 skipped"]


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
    ("#include <pthread.h>\nint probing_start(void) { return pthread_detach(pthread_self()); }", [], "insists on pthread_detach"),
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
    lint.check_dialect(path, text, findings)
    if path.endswith((".c", ".h")):
        lint.check_c_file(path, text, findings)
    if path.endswith(".md"):
        lint.check_markdown(path, text, findings)
    return findings.lines


@pytest.mark.parametrize("path, text, expected", [
    ("src/base/a.c", HEAD + '#include "wire/wire.h"\n', "may not include wire/wire.h"),
    ("src/agent/a.c", HEAD + '#include "store/sql/sql.h"\n', "may not include store/sql/sql.h"),
    ("src/agent/a.c", HEAD + "int agent_look(void)\n{\n    return 0;\n}\n", "'look' says nothing in the name agent_look"),
    ("src/agent/told.h", HEAD, "'told' says nothing in the name of a file"),
    ("src/base/a.h", HEAD + "struct a_wish {\n    int n;\n};\n", "'wish' says nothing"),
    ("src/base/a.h", HEAD + "#define A_ROOM 1\n", "'room' says nothing"),
    ("src/client/target/a.c", HEAD + '#include "client/sql/result.h"\n', "target may not include client/sql/result.h"),
    ("src/store/ring/a.c", HEAD + '#include "store/recording/archive.h"\n', "rooms of src/store"),
    ("src/tui/screens/a.c", HEAD + "#include <ncurses.h>\n", "may only be included by"),
    ("src/client/a.c", HEAD + "#include <libwebsockets.h>\n", "may only be included by"),
    ("src/pystack/a.c", HEAD + "#include <Python.h>\n", "may only be included by"),
    ("src/base/a.c", "int x;\n", "SPDX"),
    ("src/agent/a.c", HEAD + "void f(void)\n{\n    abort();\n}\n", "abort() may not be called"),
    ("src/agent/a.c", HEAD + 'void f(void)\n{\n    fprintf(stderr, "x");\n}\n', "standard streams"),
    ("src/base/a.c", HEAD + "#define A(x) if (x) return\n", "control flow"),
    ("src/cli/a.c", HEAD + 'void f(void)\n{\n    (void)fprintf(stderr, "x");\n}\n', "goes through client/output.h"),
    ("src/tui/a.c", HEAD + 'void f(void)\n{\n    puts("x");\n}\n', "goes through client/output.h"),
    ("src/base/a.c", HEAD + "/* " + "TO" + "DO: later */\n", "unfinished"),
    ("src/base/a.h", HEAD + "/* The client asks, and\n * is told why. */\n", "a.h:3: 'is told': write is shown"),
    ("src/wire/a.c", HEAD + "/* so that the thread wakes up no oftener */\n", "a.c:2: 'oftener': write more often"),
    ("src/store/a.c", HEAD + "int x; /* looked up anew */\n", "'anew': write again"),
    ("src/cli/a.c", HEAD + 'const char *a = "%s is "\n                "no picture";\n', "a.c:2: 'is no picture': write is not a"),
    ("src/store/a.def", HEAD + 'COLUMN(A, "at", TEXT, "the time of the last look")\n', "a.def:2: 'last look': write snapshot"),
    ("docs/a.md", "One.\n\nWhat is no\nPython is refused.\n", "docs/a.md:3: 'is no Python': write is not a"),
    ("README.md", "The row of before is shown.\n", "README.md:1: 'of before': write earlier"),
    ("docs/a.md", "The screen\nsays why.\n", "docs/a.md:2: 'says': write shows"),
    ("docs/a.md", "One look is cheap.\n", "'One look': write sample"),
    ("docs/a.md", "word " * 21 + "\n", "docs/a.md:1: a line of 105 columns"),
    ("README.md", "One.\n\n" + "\n".join(["word"] * 26) + ".\n", "README.md:28: a sentence of 26 words"),
    ("docs/a.md", "See [there](nowhere.md).\n\n```\n[here](nowhere.md)\n```\n", "docs/a.md:1: a link to docs/nowhere.md"),
    ("docs/a.md", "See [there](../README.md#no-such-heading).\n", "a link to #no-such-heading of README.md"),
    ("tests/a.py", '# SPDX-License-Identifier: Apache-2.0\n"""Looks in vain."""\n', "a.py:2: 'in vain': write without success"),
    ("tools/a.py", '# SPDX-License-Identifier: Apache-2.0\ndef f():\n    """Reads\n    two files at once."""\n', "a.py:4: 'two files at once'"),
])
def test_lint_finds(lint, path, text, expected):
    found = complaints(lint, path, text)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize("path, text", [
    ("src/tui/term/term_a.c", HEAD + '#include <ncurses.h>\n#include "client/session/session.h"\n#include "base/err.h"\n'),
    ("src/agent/server/net_server.c", HEAD + '#include <libwebsockets.h>\n#include "store/ring/ring.h"\n#include "version.h"\n'),
    ("src/agent/a.c", HEAD + "/* abort() and stderr in words */\nvoid f(struct s *s)\n{\n    s->exit();\n    log_line(\"exit(1)\");\n}\n"),
    ("src/client/output.c", HEAD + 'void f(void)\n{\n    (void)fwrite("x", 1, 1, stderr);\n}\n'),
    ("src/client/a.c", HEAD + 'void f(char *b)\n{\n    (void)snprintf(b, 2, "x");\n}\n'),
    ("src/base/a.c", HEAD + 'const char *f(void)\n{\n    return "of no use"; /* `anew`: there is no file, and there\n * is no link */\n}\n'),
    ("docs/a.md", "See [there](../README.md#what-does-it-cost).\n\n```text\n" + "word " * 30 + "\n```\n"),
    ("docs/dev/a.md", "| " + "word " * 30 + " |\n"),
    ("docs/a.md", "`for ever` is a name; it runs until it is told to stop, and no longer. There is no more room.\n"),
    ("src/base/a.c", HEAD + "#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))\nstatic const int t[] = {\n" + "    1,\n" * 100 + "};\n"),
])
def test_lint_leaves_alone(lint, path, text):
    assert complaints(lint, path, text) == []


def test_lint_finds_circles_of_files(lint):
    includes = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"f"}, "f": {"e"}, "g": {"a"}}
    assert sorted(lint.circles_of(includes)) == [("a", "b", "c"), ("e", "f")]


def test_lint_finds_a_picture_of_the_structure_that_is_old(lint, monkeypatch):
    findings = lint.Findings()
    lint.check_structure(findings)
    assert findings.lines == []
    monkeypatch.setitem(lint.ROOMS, "store", ["ring", "recording"])
    monkeypatch.setitem(lint.MAY_INCLUDE, "flame", ["base", "wire"])
    lint.check_structure(findings)
    assert len(findings.lines) == 2 and all("docs/dev/structure.md" in line for line in findings.lines)


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


# --- tools/fuzz.py ----------------------------------------------------------------------------------------------

FUZZER = """#!{python}
import re, signal, sys, time
found = next(a[len("-artifact_prefix="):] for a in sys.argv if a.startswith("-artifact_prefix="))
runs = next((int(a[len("-runs="):]) for a in sys.argv if a.startswith("-runs=")), 0)
print(" ".join(sys.argv[1:]))
{body}
print(f"stat::number_of_executed_units: {{runs}}", flush=True)
"""

FALLS = "runs = 7\nprint('Test unit written to ' + found + 'crash-1')\nprint('stat::number_of_executed_units: 7')\nsys.exit(77)"
WAITS = "signal.signal(signal.SIGINT, lambda *_: (print('#1500\\tDONE', flush=True), sys.exit(0)))\nprint('#1234\\tpulse')\n" \
        "open(found + 'ready', 'w').close()\nwhile True: signal.pause()"


@pytest.fixture
def fuzz(source_dir, tmp_path):
    """Runs tools/fuzz.py over targets whose programs are given: what it exits with, and its lines by target."""
    (tmp_path / "fuzzers").mkdir()

    def run(programs, *args):
        for name, body in programs.items():
            path = tmp_path / "fuzzers" / name
            path.write_text(FUZZER.format(python=sys.executable, body=body))
            path.chmod(0o755)
        done = subprocess.run([sys.executable, os.path.join(source_dir, "tools", "fuzz.py"), str(tmp_path), *args],
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, {row["target"]: row for row in map(json.loads, done.stdout.splitlines())}

    return run


def had(row):
    return row["executions"], row["total"]


def test_fuzz_reaches_a_number_in_pieces(fuzz, tmp_path):
    code, rows = fuzz({"fuzz_a": "", "fuzz_b": ""}, "--runs", "100", "--only", "_a")
    assert (code, list(rows), had(rows["fuzz_a"])) == (0, ["fuzz_a"], (100, 100))
    code, rows = fuzz({}, "--runs", "250")
    assert (code, had(rows["fuzz_a"]), had(rows["fuzz_b"])) == (0, (150, 250), (250, 250))
    assert "-runs=150" in (tmp_path / "fuzz_a.log").read_text()
    code, rows = fuzz({}, "--runs", "250")
    assert (code, had(rows["fuzz_a"])) == (0, (0, 250)), "what has had its executions ran again"
    counts = tmp_path / "corpus" / "executions.json"
    kept = json.loads(counts.read_text())
    counts.write_text(json.dumps({**kept, "fuzz_a": {**kept["fuzz_a"], "source": "of before"}}))
    code, rows = fuzz({}, "--runs", "250")
    assert (code, had(rows["fuzz_a"]), had(rows["fuzz_b"])) == (0, (250, 250), (0, 250)), "another target begins anew"
    code, rows = fuzz({}, "--runs", "50", "--anew")
    assert (code, had(rows["fuzz_a"]), had(rows["fuzz_b"])) == (0, (50, 50), (50, 50))


def test_fuzz_counts_anew_from_a_finding(fuzz, tmp_path):
    fuzz({"fuzz_a": ""}, "--runs", "5")
    code, rows = fuzz({"fuzz_a": FALLS}, "--runs", "19")
    assert (code, had(rows["fuzz_a"]), rows["fuzz_a"]["status"]) == (1, (7, 0), 77)
    assert rows["fuzz_a"]["finding"] == str(tmp_path / "found" / "fuzz_a-crash-1")
    code, rows = fuzz({"fuzz_a": "print('Test unit written to ' + found + 'slow-unit-1')"}, "--runs", "19")
    assert (code, had(rows["fuzz_a"]), rows["fuzz_a"]["finding"]) == (0, (19, 19), None), "what it had before it fell counts, or what was only slow"


LINKED = """Archive member included to satisfy reference by file (symbol)

{build}/lib/libwire.a(codec.o)
                              {build}/obj/tests/fuzz/fuzz_a.o (wire_parse)
{build}/lib/libtui.a(tree.o)  {build}/lib/libwire.a(codec.o) (tree)
/usr/lib/libc.a(printf.o)     (printf)

LOAD {build}/obj/tests/fuzz/fuzz_a.o
"""


def test_fuzz_counts_for_what_is_linked(source_dir, tmp_path, monkeypatch):
    """A change of the product starts the count again, where it is linked; one of what is not linked does not."""
    tool = load(os.path.join(source_dir, "tools", "fuzz.py"), "probing_fuzz")
    monkeypatch.setattr(tool, "ROOT", str(tmp_path))
    build = tmp_path / "build" / "fuzz"
    for name, text in {"tests/fuzz/fuzz_a.c": "a", "src/wire/codec.c": "codec", "src/wire/codec.h": "head", "src/tui/widgets/tree.c": "tree",
                       "src/wire/other.c": "other", "deps.lock": "deps", "build/fuzz/gen/version.h": "1",
                       "build/fuzz/obj/tests/fuzz/fuzz_a.d": "build/fuzz/obj/tests/fuzz/fuzz_a.o: tests/fuzz/fuzz_a.c \\\n src/wire/codec.h\nsrc/wire/codec.h:\n",
                       "build/fuzz/obj/src/wire/codec.d": "build/fuzz/obj/src/wire/codec.o: src/wire/codec.c src/wire/codec.h build/fuzz/gen/version.h\n",
                       "build/fuzz/obj/src/tui/widgets/tree.d": "build/fuzz/obj/src/tui/widgets/tree.o: src/tui/widgets/tree.c\n",
                       "build/fuzz/fuzzers/fuzz_a.map": LINKED.format(build="build/fuzz")}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [os.path.relpath(path, tmp_path) for path in tool.linked(str(build), "fuzz_a")] == \
        ["deps.lock", "src/tui/widgets/tree.c", "src/wire/codec.c", "src/wire/codec.h", "tests/fuzz/fuzz_a.c"]

    def total():
        return tool.Counts(str(build)).of("fuzz_a")["executions"]

    tool.Counts(str(build)).add("fuzz_a", 30, 2, None, (120, 340))
    for name, kept in {"src/wire/other.c": 30, "build/fuzz/gen/version.h": 30, "src/wire/codec.h": 0, "src/tui/widgets/tree.c": 0, "deps.lock": 0,
                       "tests/fuzz/fuzz_a.c": 0}.items():
        before = (tmp_path / name).read_text()
        (tmp_path / name).write_text("another")
        assert total() == kept, name
        (tmp_path / name).write_text(before)
    assert total() == 30
    row = tool.Counts(str(build)).add("fuzz_a", 5, 2, None, (100, 400))
    assert (row["executions"], row["cov"], row["ft"]) == (35, 120, 400), "what was reached once stays reached"


def test_fuzz_tells_what_was_reached(fuzz):
    code, rows = fuzz({"fuzz_a": "print('#2\\tINITED cov: 11 ft: 22 corp: 1/1b')\nprint('#9\\tDONE   cov: 13 ft: 25 corp: 2/4b')"}, "--runs", "9")
    assert (code, rows["fuzz_a"]["cov"], rows["fuzz_a"]["ft"]) == (0, 13, 25)


def test_fuzz_record(source_dir, tmp_path, monkeypatch):
    """What a target has had stays in the source, for as long as the target is the same, and is where the next build begins."""
    tool = load(os.path.join(source_dir, "tools", "fuzz.py"), "probing_fuzz")
    monkeypatch.setattr(tool, "ROOT", str(tmp_path))
    monkeypatch.setattr(tool, "RECORD", str(tmp_path / "record.json"))
    (tmp_path / "tests" / "fuzz").mkdir(parents=True)
    for name in ("fuzz_a", "fuzz_b"):
        (tmp_path / "tests" / "fuzz" / f"{name}.c").write_text(name)
    counts = tool.Counts(str(tmp_path / "one"))
    counts.add("fuzz_a", 30, 2, None)
    counts.add("fuzz_b", 40, 2, None)
    (tmp_path / "tests" / "fuzz" / "fuzz_b.c").write_text("another")
    monkeypatch.setattr(sys, "argv", ["fuzz.py", str(tmp_path / "one"), "--record"])
    tool.main()
    assert set(json.loads((tmp_path / "record.json").read_text())) == {"fuzz_a"}
    assert tool.Counts(str(tmp_path / "two")).add("fuzz_a", 5, 1, None)["executions"] == 35


def test_fuzz_counts_what_was_interrupted(fuzz, source_dir, tmp_path, wait_until):
    fuzz({"fuzz_a": WAITS, "fuzz_b": ""}, "--runs", "1", "--only", "_b")
    process = subprocess.Popen([sys.executable, os.path.join(source_dir, "tools", "fuzz.py"), str(tmp_path), "--runs", "9999"],
                               stdout=subprocess.PIPE, text=True)
    wait_until((tmp_path / "found" / "fuzz_a-ready").exists)
    process.terminate()
    rows = [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]
    assert [had(row) for row in rows if row["target"] == "fuzz_a"] == [(1500, 1500)]
    assert process.returncode == 1, "not all was run that was asked for"
    assert json.loads((tmp_path / "corpus" / "executions.json").read_text())["fuzz_a"]["executions"] == 1500


STARVED = "import os\nunit = found + 'timeout-1'\nif sys.argv[-1] == unit: sys.exit(0)\nif not os.path.exists(found + 'was'):\n" \
          "    open(unit, 'w').close()\n    open(found + 'was', 'w').close()\n" \
          "    print('#40\\tpulse\\nSUMMARY: libFuzzer: timeout\\nTest unit written to ' + unit)\n    sys.exit(70)"


def test_fuzz_goes_on_when_the_machine_was_busy(fuzz, tmp_path):
    code, rows = fuzz({"fuzz_a": STARVED}, "--runs", "100")
    assert (code, had(rows["fuzz_a"]), rows["fuzz_a"]["finding"]) == (0, (100, 100), None)
    assert sorted(os.listdir(tmp_path / "found")) == ["fuzz_a-was"], "an input that is no finding was kept"


INTERRUPTED = "import os\nif not os.path.exists(found + 'was'):\n    open(found + 'was', 'w').close()\n" \
              "    print('==1== libFuzzer: run interrupted; exiting\\nstat::number_of_executed_units: 40')\n    sys.exit(72)"


def test_fuzz_goes_on_when_somebody_ends_a_target(fuzz):
    code, rows = fuzz({"fuzz_a": INTERRUPTED}, "--runs", "100")
    assert (code, had(rows["fuzz_a"]), rows["fuzz_a"]["finding"]) == (0, (100, 100), None)


def test_fuzz_options_are_flags_or_environment(source_dir):
    tool = load(os.path.join(source_dir, "tools", "fuzz.py"), "probing_fuzz")
    assert tool.options("fuzz_store_archive") == (["-max_len=6144"], {"FUZZ_BLOCK_MB": "2"})
    assert tool.options("fuzz_none") == ([], {})


def test_fuzz_knows_what_takes_too_long_of_a_processor(source_dir, tmp_path):
    tool = load(os.path.join(source_dir, "tools", "fuzz.py"), "probing_fuzz")
    tool.UNIT_S = 0.3
    for name, body, slow in (("works", "while time.process_time() < 0.5: pass", True), ("waits", "time.sleep(0.5)", False)):
        (tmp_path / name).write_text(f"#!{sys.executable} -IS\nimport time\n{body}\n")
        (tmp_path / name).chmod(0o755)
        assert tool.is_slow(str(tmp_path / name), "unit") == slow


# --- tools/pictures.py, tools/screenshot.py ----------------------------------------------------------------------

def pictured(svg):
    """(grounds, words) of a picture: [(row, column, columns, colour)] and [(row, column, text, colour)]."""
    cell_w, cell_h = 8.4, 18
    grounds = [(round((float(y) - 10) / cell_h), round((float(x) - 10) / cell_w), round(float(w) / cell_w), fill)
               for x, y, w, fill in re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)" height="18" fill="(#\w+)"/>', svg)]
    words = [(int((float(y) - 10) / cell_h), round((float(x) - 10) / cell_w), html.unescape(text), fill)
             for x, y, fill, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" fill="(#\w+)"[^>]*>([^<]*)</text>', svg)]
    return grounds, words


def seen_at(svg, seconds):
    """The words of a moving picture at a time, by its own style sheet."""
    root = ElementTree.fromstring(svg)
    style = root.find(SVG + "style").text
    total = float(re.search(r"animation:([\d.]+)s", style)[1])
    words = []
    for text in root.iter(SVG + "text"):
        group = next((group for group in root.iter(SVG + "g") if group.get("class") and text in list(group)), None)
        if group is not None:
            name = group.get("class").split()[1]
            steps = re.search(rf"@keyframes {name}{{((?:[\d.]+%{{\w+:\w+}})+)}}", style)[1]
            states = [(float(at), state) for at, state in re.findall(r"([\d.]+)%{visibility:(\w+)}", steps)]
            if [state for at, state in states if at <= 100 * seconds / total][-1] == "hidden":
                continue
        words.append(text.text)
    return words


def test_a_moving_picture_shows_each_screen_in_its_time(source_dir):
    screenshot = load(os.path.join(source_dir, "tools", "screenshot.py"), "probing_screenshot")
    svg = screenshot.animation([(1, "same\none\n", "first"), (2, "same\n\x1b[31mtwo\x1b[0m\n", "first"), (1, "same\none\nthree", "last")], 12)
    assert [seen_at(svg, at) for at in (0, 0.9, 1.1, 2.9, 3.1)] == [
        ["same", "one", "first"], ["same", "one", "first"], ["same", "two", "first"], ["same", "two", "first"], ["same", "one", "three", "last"]]
    assert svg.count(">same<") == 1 and svg.count(">first<") == 1


def test_screenshot_of_a_known_screen(source_dir):
    """Grounds are as wide as their cells, blanks too; colours and what is reversed are those of the terminal."""
    screen = ("plain\n"
              "\x1b[38;5;231;48;5;24mbar  a<b  \x1b[0m|\n"
              "\x1b[7m  \x1b[27m \x1b[48;2;1;2;3m\xe8\xa8\x93\x1b[0m\n".encode("latin-1").decode() +
              "\x1b[44m    \n"  # and goes on
              " \x1b[49m \n")
    done = subprocess.run([sys.executable, os.path.join(source_dir, "tools", "screenshot.py"), "--cols", "12"], input=screen,
                          capture_output=True, text=True, encoding="utf-8", check=True)
    grounds, words = pictured(done.stdout)
    assert grounds == [(1, 0, 10, "#005f87"), (2, 0, 2, "#d0d0d0"), (2, 3, 2, "#010203"), (3, 0, 4, "#3465a4"), (4, 0, 1, "#3465a4")]
    assert words == [(0, 0, "plain", "#d0d0d0"), (1, 0, "bar", "#ffffff"), (1, 5, "a<b", "#ffffff"), (1, 10, "|", "#d0d0d0"),
                     (2, 3, "\u8a13", "#d0d0d0")]


def test_a_picture_of_another_terminal(source_dir):
    """Its own sixteen colours, bold text in the bright ones, and a box for what its font lacks: a Linux console."""
    screenshot = load(os.path.join(source_dir, "tools", "screenshot.py"), "probing_screenshot")
    colors = [f"#0000{i:02x}" for i in range(16)]
    svg = screenshot.picture("\x1b[31ma\x1b[1mb\x1b[0m \x1b[1;38;5;4mc\x1b[0m\x1b[42m \x1b[0m\u2588\u2581", 9, "#000000", "#aaaaaa", palette=colors,
                             bright_bold=True, characters=set("abc \u2588"))
    grounds, words = pictured(svg)
    assert words == [(0, 0, "a", "#000001"), (0, 1, "b", "#000009"), (0, 3, "c", "#00000c"), (0, 5, "\u2588\u25a0", "#aaaaaa")]
    assert grounds == [(0, 4, 1, "#000002")]


def test_picture_has_the_grounds_of_the_terminal(source_dir, tmux, tmp_path, monkeypatch):
    """Also where a line ends in blanks."""
    monkeypatch.syspath_prepend(os.path.join(source_dir, "tools"))
    pictures = load(os.path.join(source_dir, "tools", "pictures.py"), "probing_pictures")
    text = r"\033[48;5;24mbar    \033[0m\n\033[48;5;88mrest" + " " * (pictures.COLUMNS - 4) + r"\033[0m\n"
    text += r"/of/this/machine/a.py\033[1m:12\033[0m end\n\342\200\246machine/a.py end\ndrawn"
    terminal = pictures.Terminal(str(tmp_path), "known", ["sh", "-c", f"printf '{text}'; read end"])
    try:
        terminal.wait_for("drawn")
        # What is here is nobody's business.
        svg = pictures.screenshot.picture(terminal.screen([("/of/this/machine", "/usr/lib")]), pictures.COLUMNS)
    finally:
        terminal.end()
    grounds, words = pictured(svg)
    assert grounds == [(0, 0, 7, "#005f87"), (1, 0, pictures.COLUMNS, "#870000")]
    assert [word[:3] for word in words] == [(0, 0, "bar"), (1, 0, "rest"), (2, 0, "/usr/lib/a.py"), (2, 13, ":12"), (2, 25, "end"),
                                             (3, 0, "\u2026usr/lib/a.py end"), (4, 0, "drawn")]
