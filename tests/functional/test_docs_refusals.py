# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md quotes what the programs really say, and each of its refusals has a remedy and a test."""

import functools
import glob
import os
import re

import pytest

from conftest import ROOT


# What the page quotes of each message, and the test that shows it.
SHOWN_BY = {
    "kernel.yama.ptrace_scope is 1": "test_inject_proc",
    "kernel.yama.ptrace_scope is 2": "test_inject_proc",
    "kernel.yama.ptrace_scope is 3": "test_inject_proc",
    "belongs to another user": "test_of_another_user",
    "is not dumpable": "test_a_program_that_is_not_dumpable",
    "is in another user namespace": "test_from_an_inner_user_namespace",
    "has capabilities that this program lacks": "test_inject_proc",
    "a seccomp filter that this runs under may forbid it": "test_from_a_sandbox_of_our_own",
    "its container or security policy forbids it": "test_inject_proc",
    "is being traced by process": "test_under_a_debugger",
    "at this moment: try again": "test_nobody_waits_longer_than_the_limit",
    "is stopped: continue it with 'kill -CONT": "test_a_stopped_job",
    "is ending: its Python is being shut down": "test_a_python_that_is_being_shut_down",
    "is still starting": "test_a_program_that_has_only_just_begun",
    "has not started yet or has ended": "test_no_longer_than_the_time_given",
    "runs on musl libc": "test_inject_proc",
    "is statically linked": "test_a_static_program",
    "32-bit": "test_a_32_bit_program",
    "runs with a shadow stack (x86 CET)": "test_inject_proc",
    "is in strict seccomp mode": "test_strict_seccomp",
    "under a seccomp filter that would kill it": "test_a_sandbox_that_kills",
    "cannot make a memory file": "test_a_sandbox_that_forbids_what_it_takes",
    "has no /proc in its container": "test_inject_proc",
    "no safe point within": "test_a_thread_that_must_not_be_borrowed",
    "reached no safe point within": "test_a_main_thread_that_does_not_come",
    "PYTHON_DISABLE_REMOTE_DEBUG": "test_turned_off",
    "has ended and is a zombie": "test_a_zombie",
    "has ended: there is nothing to attach to": "test_inject_proc",
    "is a kernel thread": "test_not_a_library_program",
}


def page():
    with open(os.path.join(ROOT, "docs", "troubleshooting.md"), encoding="utf-8") as file:
        return file.read()


def quoted():
    return re.findall(r"^- `([^`]+)`: ", page(), re.M)


@functools.lru_cache(maxsize=None)
def said():
    """All text that the sources can print, literals that stand side by side as one."""
    text = ""
    for folder in ("inject", "client", "pystack"):
        for path in glob.glob(os.path.join(ROOT, "src", folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text += re.sub(r'"\s*\n\s*"', "", file.read())
    return text


def test_each_has_a_test_and_a_remedy():
    """One entry each, with what to do about it in one line or a sentence."""
    assert sorted(quoted()) == sorted(SHOWN_BY) and len(SHOWN_BY) > 20
    for entry in re.findall(r"^- `[^`]+`: (?:.+\n)+?(?=- |\n)", page(), re.M):
        assert re.search(r"\*\*Do:\*\*\s", entry), entry


@pytest.mark.parametrize("phrase", sorted(SHOWN_BY), ids=lambda phrase: re.sub(r"\W+", "-", phrase).strip("-"))
def test_a_refusal(phrase):
    test, text = SHOWN_BY[phrase], said()
    scope = re.fullmatch(r"(.*ptrace_scope is )\d", phrase)
    assert phrase in text or (scope and scope.group(1) in text), phrase
    if os.path.exists(os.path.join(ROOT, "tests", "unit", test + ".c")):
        return
    defined = [path for path in glob.glob(os.path.join(ROOT, "tests", "functional", "test_*.py"))
               if re.search(rf"^def {test}\(", open(path, encoding="utf-8").read(), re.M)]
    assert defined, test
