# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md quotes what the programs print: each refusal has one entry with one remedy, and a test that shows it; each remedy
of a message is in a section of the page."""

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
    "this root lacks the capability SYS_PTRACE": "test_a_root_that_lacks_the_capability",
    "in another user namespace, and you are root only inside this one": "test_from_an_inner_user_namespace",
    "in another user namespace than this program": "test_from_a_user_namespace_beside_it",
    "the AppArmor profile": "test_inject_proc",
    "SELinux forbids it": "test_inject_proc",
    "is not visible: /proc is mounted with hidepid": "test_who_cannot_see_others_is_told",
    "/proc is not mounted here": "test_without_proc",
    "no process 4242": "test_no_such_process",
    "on this node: run this on a node of the job": "test_a_process_of_another_node",
    "is a thread of process": "test_a_thread_is_not_a_process",
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
    "this build is for 64-bit x86": "test_a_32_bit_program",
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


# What a message names as the remedy, and the section of the page that shows how to do it.
SECTIONS = {
    "run this as root": "As root",
    "kernel.yama.ptrace_scope=0": "As root",
    "docker exec --privileged": "In Docker or podman",
    "podman exec --privileged": "In Docker or podman",
    "--cap-add=SYS_PTRACE": "In Docker or podman",
    "kubectl debug --profile=general": "In Kubernetes",
    "add the capability SYS_PTRACE to the container": "In Kubernetes",
    "outside of the container": "In Apptainer or Singularity",
    "srun --jobid=": "In a Slurm job",
    "srun probing launch": "In a Slurm job",
    "start the job with 'probing launch'": "Without any right",
}
# Remedies that are no more than what the sentence says.
PLAIN = ["run this as that user", "run this outside of that sandbox", "run this on the host, outside of both"]


def page():
    with open(os.path.join(ROOT, "docs", "troubleshooting.md"), encoding="utf-8") as file:
        return file.read()


def quoted():
    return re.findall(r"^- `([^`]+)`: ", page(), re.M)


@functools.lru_cache(maxsize=None)
def said():
    """All text that the sources can print, literals that stand side by side as one."""
    text = ""
    for folder in ("base", "inject", "client", "pystack"):
        for path in glob.glob(os.path.join(ROOT, "src", folder, "**", "*.c"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text += re.sub(r'"\s*\n\s*"', "", file.read())
    return text


def entries():
    return re.findall(r"^- `([^`]+)`: ((?:.+\n)+?)(?=- |\n)", page(), re.M)


def section(heading):
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##|\Z)", page(), re.M | re.S)
    assert found, heading
    return re.sub(r"\s+", " ", found[1])


def literals(path, pattern):
    """String literals of a source file that follow the pattern; those that stand side by side are one."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = re.sub(r'"\s*\n\s*"', "", re.sub(r'" PRI\w+ "', "d", file.read()))
    return re.findall(pattern + r'\s*"((?:[^"\\]|\\.)*)"', text)


def test_each_has_a_test_and_a_remedy():
    """One entry each, with one thing to do about it."""
    assert sorted(quoted()) == sorted(SHOWN_BY) and len(SHOWN_BY) > 20
    assert [phrase for phrase, _ in entries()] == quoted()
    for phrase, text in entries():
        assert len(re.findall(r"\*\*Do:\*\*\s", text)) == 1, phrase


def test_each_refusal_has_an_entry():
    """Of those that the check before attaching gives, none is missing on the page."""
    refusals = literals("src/inject/check.c", r"err_set\(\s*e, ERR_ATTACH,") + literals("src/inject/check.c", r"\bby(?:\[[^]]*\] =|, sizeof by,)")
    assert len(refusals) > 20
    for text in refusals:
        if not re.fullmatch(r"(not allowed to attach to process %d: )?(%s|: )*", text):
            assert any(re.sub(r"ptrace_scope is \d$", "ptrace_scope is %d", phrase) in text or phrase in text for phrase in quoted()), text


def remedies():
    texts = literals("src/base/container.c", r"\breturn\b") + literals("src/inject/check.c", r"\breturn\b")
    texts += literals("src/base/container.c", r"snprintf\(buf, cap,")
    texts += literals("src/inject/check.c", r"snprintf\(remedy, sizeof remedy,")
    texts += [text.rpartition(": ")[2] for text in literals("src/inject/check.c", r"err_set\(\s*e, ERR_ATTACH,") if ": " in text]
    return [text for text in texts if re.match(r"(run|start|add) ", text) or " run this on" in text]


def test_each_remedy_has_a_section():
    seen = set()
    assert len(remedies()) > 8
    for text in remedies():
        found = [key for key in SECTIONS if key in text]
        seen.update(found)
        assert found or any(plain in text for plain in PLAIN) or "setsebool deny_ptrace off" in text, text
    assert seen == set(SECTIONS)


@pytest.mark.parametrize("words", sorted(SECTIONS))
def test_a_section_has_the_command_of_the_message(words):
    text = section(SECTIONS[words])
    for word in re.findall(r"--[\w=-]+|SYS_PTRACE|kubectl debug|docker|podman|exec|srun|probing launch|kernel[\w.=]+|outside of the container", words):
        assert word in text, (word, text)
    if words == "run this as root":
        assert "`sudo probing-top 4242`" in text


@pytest.mark.parametrize("phrase", sorted(SHOWN_BY), ids=lambda phrase: re.sub(r"\W+", "-", phrase).strip("-"))
def test_a_refusal(phrase):
    test, text = SHOWN_BY[phrase], said()
    printed = re.sub(r"(ptrace_scope is) \d$", r"\1 %d", re.sub(r"^no process 4242$", "\"no %s", phrase))
    assert phrase in text or printed in text, phrase
    if os.path.exists(os.path.join(ROOT, "tests", "unit", test + ".c")):
        return
    defined = [path for path in glob.glob(os.path.join(ROOT, "tests", "functional", "test_*.py"))
               if re.search(rf"^def {test}\(", open(path, encoding="utf-8").read(), re.M)]
    assert defined, test
