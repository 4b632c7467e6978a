# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completion: whole, valid, and of the programs as they are."""

import os
import re
import shutil
import subprocess

import pytest

PROGRAMS = ("probing-top", "probing")


def made(build_dir, kind, program):
    path = os.path.join(build_dir, "share", kind, program + (".1" if kind == "man" else ""))
    if not os.path.exists(path):
        pytest.skip(f"needs {path}: make man")
    return path


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("program", PROGRAMS)
def test_page_is_valid(build_dir, program):
    if not shutil.which("groff"):
        pytest.skip("needs groff: not installed")
    done = run("groff", "-man", "-ww", "-z", made(build_dir, "man", program))
    assert done.returncode == 0 and not done.stderr, done.stderr


def page_text(build_dir, program):
    """The source of a page as plain words."""
    with open(made(build_dir, "man", program), encoding="ascii") as file:
        text = file.read()
    for escape, plain in (("\\-", "-"), ("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\(aq", "'"), ("\\(ti", "~"), ("\\(ha", "^"),
                          ("\\(ga", "`"), ("\\&", ""), ("\\e", "\\")):
        text = text.replace(escape, plain)
    return text


def test_page_has_every_option_and_key(build_dir, probing_top):
    page = page_text(build_dir, "probing-top")
    options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", run(probing_top.path, "--help").stdout, re.M)
    assert len(options) > 20
    for option in options:
        assert re.search(rf"^(-\w, )?{option}( |$)", page, re.M), option
    keys = run(probing_top.path, "--list-keys").stdout.splitlines()
    assert len(keys) > 100
    for line in keys:
        _, _, name, text = line.split(None, 3)
        assert text in page and name in page, line
    for command in (":thread", ":export", ":set", ":attach"):
        assert f"\n{command} " in page


def test_page_has_every_verb(build_dir, probing):
    page = page_text(build_dir, "probing")
    verbs = re.findall(r"^  (\w+) ", run(probing.path, "--help").stdout, re.M)
    assert {"list", "backtrace", "query"} <= set(verbs)
    for verb in verbs:
        assert re.search(rf"^\.SS {verb}\b", page, re.M), verb


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_completion_is_valid(build_dir, shell, program):
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}: not installed")
    done = run(shell, "-n", made(build_dir, shell, program))
    assert done.returncode == 0 and not done.stderr, done.stderr


def completed(build_dir, program, *words):
    """What bash would offer for the last word."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '"$(complete -p "${0##*/}" | sed "s/.*-F //; s/ .*//")" "$0" "${COMP_WORDS[COMP_CWORD]}"; printf "%s\\n" "${COMPREPLY[@]}"')
    done = run("bash", "--norc", "-c", script, os.path.join(build_dir, program), made(build_dir, "bash", program), program, *words)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes(build_dir):
    if not shutil.which("bash"):
        pytest.skip("needs bash: not installed")
    assert completed(build_dir, "probing-top", "--exp") == ["--export"]
    assert completed(build_dir, "probing-top", "--export", "fol") == ["folded"]
    assert completed(build_dir, "probing-top", "--ra") == ["--rate"]
    assert completed(build_dir, "probing", "1234", "pprof", "--ra") == ["--rate"]
    assert "--json" in completed(build_dir, "probing", "1234", "backtrace", "--j")
    assert completed(build_dir, "probing", "1234", "backtr") == ["backtrace"]
    assert "--limit" not in completed(build_dir, "probing", "1234", "backtrace", "--")


# Words behind `probing`, of which the last is completed; what is offered, or some of it; what is not.
OFFERED = (
    (["ver"], ["verdict"], []),
    (["bt"], ["bt"], []),  # another name of backtrace
    (["1234", ""], ["backtrace", "report"], ["1234", "help"]),
    (["help", "tab"], ["tables"], []),
    (["list", ""], [], ["backtrace"]),  # it takes no target
    (["list", "--t"], ["--tree"], ["--limit"]),
    (["bt", "1234", "--loc"], ["--locals"], []),
    (["-t", "1234", "tables", "python.st"], ["python.stacks", "python.steps"], ["python.samples"]),
    (["tables", "memory_u"], ["memory_usage"], []),
    (["tables", "1234", "python.steps", ""], [], ["python.steps"]),  # one is enough
    (["1234", "config", "probing."], ["probing.budget=", "probing.env_allow"], ["probing.env_allow="]),  # for the next start
    (["1234", "config", "probing.eval="], ["probing.eval=on", "probing.eval=off"], []),
    (["1234", "config", "-"], ["--json"], ["probing.budget="]),
    (["1234", "report", "--format", ""], ["html", "md", "json"], ["csv"]),
    (["1234", "query", "--format=c"], ["--format=csv"], []),
    (["1234", "flamegraph", "--format", ""], ["svg", "folded", "speedscope"], ["txt", "csv"]),
    (["1234", "query", "select count(*) from python.steps where ste"], ["select count(*) from python.steps where step"], []),
    (["1234", "query", "SELECT st"], ["SELECT stack_id"], []),
    (["1234", "query", "SELECT 'FROM python."], [], ["SELECT 'FROM python.steps"]),  # within a text
    (["1234", "eval", "len("], [], ["backtrace"]),
    (["launch", "py"], [":commands"], ["backtrace"]),
    (["launch", "python", "tra"], [":files"], [":commands"]),
    (["1234", "report", "-o", "x"], [":files"], []),
    (["/var/tmp/run"], [":files"], []),
    (["1234", "report", "-do", "x"], [], []),  # -d has the rest of its word for a value
    (["--", "-x"], [":files"], ["--target"]),
    (["--nothing-like-it=", "x"], [], []),
    ([], ["backtrace"], []),
)


@pytest.mark.parametrize("words,offered,others", OFFERED, ids=lambda words: " ".join(words) if isinstance(words, list) else None)
def test_what_is_offered(probing, words, offered, others):
    lines = probing("__complete", *words).ok().stdout.splitlines()
    found = [line.split("\t")[0] for line in lines]
    assert set(offered) <= set(found) and not set(others) & set(found), lines
    assert all("\t" in line or line.startswith(":") for line in lines)


def test_all_of_a_word_is_offered_by_what_follows(probing):
    """Each verb's options, each table and each setting, from their own lists."""
    verbs = list(dict.fromkeys(re.findall(r"^  (\w+) ", probing("--help").ok().stdout, re.M)))
    assert len(verbs) > 20

    def words(*typed):
        return [line.split("\t")[0] for line in probing("__complete", *typed).ok().stdout.splitlines()]

    assert [w for w in words("1234", "") if not w.startswith(":")] == verbs
    for verb in re.findall(r"^  (\w+(?: \w+)?)  ", probing("--help").ok().stdout, re.M):
        options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", probing(*verb.split(), "--help").ok().stdout, re.M)
        assert words("1234", *verb.split(), "-") == options, verb
    tables = [t["name"] for t in probing("tables", "--json").ok().json()["tables"]]
    assert set(words("1234", "tables", "")) == set(tables)
