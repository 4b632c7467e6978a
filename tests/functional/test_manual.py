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


def completed(path, function, *words):
    """What bash would offer for the last word."""
    script = 'source "$1"; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' + function + '; printf "%s\\n" "${COMPREPLY[@]}"'
    done = run("bash", "--norc", "-c", script, "bash", path, "-", *words)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes(build_dir):
    if not shutil.which("bash"):
        pytest.skip("needs bash: not installed")
    top, cli = made(build_dir, "bash", "probing-top"), made(build_dir, "bash", "probing")
    assert completed(top, "_probing_top", "probing-top", "--exp") == ["--export"]
    assert completed(top, "_probing_top", "probing-top", "--export", "fol") == ["folded"]
    assert completed(top, "_probing_top", "probing-top", "--ra") == ["--rate"]
    assert completed(cli, "_probing", "probing", "1234", "pprof", "--ra") == ["--rate"]
    assert "--json" in completed(cli, "_probing", "probing", "1234", "backtrace", "--j")
    assert completed(cli, "_probing", "probing", "1234", "backtr") == ["backtrace"]
    assert "--limit" not in completed(cli, "_probing", "probing", "1234", "backtrace", "--")
