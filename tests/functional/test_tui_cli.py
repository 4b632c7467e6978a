# SPDX-License-Identifier: Apache-2.0
"""probing-top without a terminal: options, lists, the screen as text."""

import re

from conftest import wait_until


def test_help_and_version(probing_top, source_dir):
    help_text = probing_top("--help").ok().stdout
    for word in ("--delay", "--theme", "--export", "--list-keys", "TARGET", "Exit status"):
        assert word in help_text
    assert all(len(line) <= 100 for line in help_text.splitlines())
    with open(f"{source_dir}/VERSION", encoding="ascii") as version:
        assert probing_top("--version").ok().stdout.splitlines()[0] == f"probing-top {version.read().strip()}"


def test_list_keys(probing_top):
    lines = probing_top("--list-keys").ok().stdout.splitlines()
    keys = [tuple(line.split()[:2]) for line in lines]
    assert len(keys) == len(set(keys)), "a key is listed twice in a context"
    assert {context for context, _ in keys} == {"threads", "stack", "top", "flame", "overview", "log", "targets", "menu", "export", "picker", "jobs", "query", "complete", "result", "code", "names", "output", "help", "setup", "themes", "timeline", "tensors", "modules", "loader", "memory", "steps", "ranks", "stacks", "gpu"}
    assert ("threads", "q") in keys and ("stack", "Z") in keys


def test_usage_errors(probing_top):
    for args, text in (
        (["--no-such-option"], "no-such-option"),
        (["1", "2", "--export", "json"], "--export takes one TARGET"),
        (["--once", "1"], "--once is for --export"),
        (["--export", "yaml", "1"], "yaml"),
        (["--export", "json"], "needs a TARGET"),
        (["--export", "json", "--threads", "1"], "--threads is for --export folded"),
        (["--export", "csv", "--sql", "SELECT 1", "--filter", "main", "1"], "--filter is for --export txt, not for csv"),
        (["--color=pink"], "--color takes"),
        (["--screen", "flme", "1"], "--screen takes"),
        (["--export", "json", "--screen", "flame", "1"], "--screen is for --export txt, not for json"),
        (["--export", "txt", "--screen", "flme", "1"], "unknown screen 'flme': did you mean 'flame'?"),
        (["--export", "txt", "--screen", "flame", "--once", "1"], "--once is one snapshot"),
        (["--export", "txt", "--rows", "20", "1"], "--rows is for --screen"),
        (["--rate", "0", "1"], "--rate takes a number from 0.1 to 1000 (Hz), not '0'"),
        (["--rate", "1001", "--export", "folded", "1"], "--rate takes a number from 0.1 to 1000 (Hz), not '1001'"),
        (["--rate", "fast", "--export", "txt", "--screen", "flame", "1"], "--rate takes a number from 0.1 to 1000 (Hz), not 'fast'"),
        (["--rate", "-5Hz", "--print-config"], "--rate takes a number from 0.1 to 1000 (Hz), not '-5Hz'"),
        (["--rate"], "--rate needs a value: --rate HZ"),
        (["--rate", "20", "--export", "sqlite", "1"], "--rate is for --export json, folded, svg, pprof, speedscope, perfetto and txt, not for sqlite"),
        (["--rate", "20", "--export", "json", "1"], "--rate is for samples, and this takes none: give a --duration"),
        (["--rate", "20", "--export", "txt", "--screen", "threads", "1"], "--rate is for samples, and this takes none"),
        (["--rate", "20", "--export", "json", "--sql", "SELECT 1", "1"], "--rate changes nothing about the rows of --sql"),
    ):
        done = probing_top(*args)
        assert done.status == 2, done
        assert done.stdout == "" and text in done.stderr
        assert done.stderr.startswith("probing-top: ") and done.stderr.count("\n") == 1


def test_without_a_terminal(probing_top):
    done = probing_top()
    assert done.status == 2
    assert "not a terminal" in done.stderr and "--export" in done.stderr


def test_screen_as_text(probing_top, plain_training, ptrace):
    def whole():
        found = probing_top("--export", "txt", "--once", str(plain_training.pid), env={"COLUMNS": "100", "LC_ALL": "C.UTF-8"}).ok()
        return None if re.search(r"^Stack of MainThread .*moved while it was read", found.stdout, re.M) else found
    done = wait_until(whole, 30, "a stack that does not move while it is read")
    lines = done.stdout.splitlines()
    assert f"pid {plain_training.pid}" in lines[0] and "CONNECTED" in lines[0]
    assert re.search(r" memory \d", lines[1]) and re.search(r"Python 3\.\d+\.\d+", lines[3])
    assert all(len(line) <= 100 for line in lines)
    assert "\x1b" not in done.stdout
    text = done.stdout
    assert re.search(r"^ *\d+ MainThread .*", text, re.M), text
    assert re.search(r"^ +\d+ train +\S*train_plain\.py:\d+$", text, re.M), text
    for name in ("MainThread", "loader-0", "loader-1"):
        assert re.search(rf"^Stack of {name} \(\d+\)", text, re.M)


def test_screen_as_text_filtered(probing_top, plain_training, tmp_path, ptrace):
    out = tmp_path / "screen.txt"
    probing_top("--export=txt", "--once", "-F", "loader-0", "--ascii", "-o", str(out), str(plain_training.pid)).ok()
    text = out.read_text(encoding="ascii")
    assert "Stack of loader-0" in text and "Stack of MainThread" not in text


def test_export_of_a_screen(probing_top, plain_training):
    pid = str(plain_training.pid)
    for name in ("threads", "flame", "top"):
        text = probing_top("--export", "txt", "--screen", name, "--rows", "30", "--cols", "100",
                           *(("--duration", "1") if name != "threads" else ()), pid).ok().stdout
        lines = text.splitlines()
        assert len(lines) == 30 and max(map(len, lines)) <= 100
        assert f"{pid}" in lines[0] + lines[1], text
    text = probing_top("--export", "txt", "--screen", "top", "--duration", "1", "--rate", "20Hz", pid).ok().stdout
    assert re.search(r"sampling ([\d.?]+ of 20 Hz|slowed to [\d.]+ Hz to stay under)", text), text
    size = {"COLUMNS": "90", "LINES": "20", "LC_ALL": "C.UTF-8"}
    assert len(probing_top("--export", "txt", "--screen", "threads", pid, env=size).ok().stdout.splitlines()) == 20
