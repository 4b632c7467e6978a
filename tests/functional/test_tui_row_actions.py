# SPDX-License-Identifier: Apache-2.0
"""Hands of probing-top on a pseudo terminal: an editor, the clipboard, the menu, files; and what --readonly leaves alone."""

import base64
import os
import re
import stat

import pytest

from test_tui_pty import terminal  # noqa: F401  (a fixture)

pytestmark = pytest.mark.timeout(180)

ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"

RECORD = """#!/bin/sh
printf '%s\\n' "$@" > "$RECORD.new"
stty -a < /dev/tty > "$RECORD.stty"
mv "$RECORD.new" "$RECORD"
{then}
"""


@pytest.fixture
def editor(tmp_path):
    """An editor that writes down how it was called; what it does then is up to the test."""

    def make(then="exit 0"):
        path = tmp_path / "bin" / "vim"
        path.parent.mkdir(exist_ok=True)
        path.write_text(RECORD.replace("{then}", then), encoding="utf-8")
        path.chmod(0o755)
        return {"VISUAL": str(path), "RECORD": str(tmp_path / "record")}

    return make


def repainted(t, wait_until, times):
    wait_until(lambda: t.read(0.02) and t.output.count(ENTER_SCREEN) >= times, timeout=60, what="the screen again")


def test_editor_opens_the_frame(terminal, plain_training, ptrace, editor, tmp_path, wait_until):
    t = terminal(plain_training.pid, env=editor())
    t.wait_for_stack(timeout=60)
    t.type("e")
    wait_until(lambda: t.read(0.02) and (tmp_path / "record").exists(), timeout=60, what="the editor")
    line, path = (tmp_path / "record").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"\+[1-9]\d*", line) and path.endswith(".py") and os.path.exists(path)
    settings = (tmp_path / "record.stty").read_text(encoding="utf-8")
    assert " icanon" in settings and " echo " in settings, "the editor began with the terminal as it was"
    assert LEAVE_SCREEN in t.output
    repainted(t, wait_until, 2)
    t.type("?")
    t.wait_for("shows all keys and commands", timeout=60)
    t.type("Q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    t.assert_restored()


def test_interrupt_is_the_editors(terminal, plain_training, ptrace, editor, tmp_path, wait_until):
    """ctrl-c ends an editor that lets it, and nothing else."""
    t = terminal(plain_training.pid, env=editor(then="exec sleep 60"))
    t.wait_for_stack(timeout=60)
    t.type("e")
    wait_until(lambda: t.read(0.02) and (tmp_path / "record").exists(), timeout=60, what="the editor")
    t.type("\x03")
    repainted(t, wait_until, 2)
    t.type("?")
    t.wait_for("shows all keys and commands", timeout=60)
    t.type("Q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    t.assert_restored()


def test_editor_that_is_not_there(terminal, plain_training, ptrace, wait_until):
    t = terminal(plain_training.pid, env={"VISUAL": "/no/such/editor"}, columns=120)
    t.wait_for_stack(timeout=60)
    t.type("e")
    t.wait_for("cannot run the editor", timeout=60)
    t.type("q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    t.assert_restored()


def test_copy_menu_and_paste(terminal, plain_training, ptrace, tmp_path, wait_until):
    state = tmp_path / "state"
    t = terminal(plain_training.pid, env={"XDG_STATE_HOME": str(state), "STY": "", "TMUX": ""})
    t.wait_for_stack(timeout=60)
    t.type("y")
    sequence = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07")
    wait_until(lambda: t.read(0.02) and sequence.search(t.output), timeout=60, what="the clipboard's sequence")
    text = base64.b64decode(sequence.search(t.output).group(1), validate=True).decode()
    assert re.fullmatch(r"/\S+\.py:\d+ \S.*", text)
    t.wait_for("copied the frame", timeout=60)
    t.type("\x1b[<2;10;8M\x1b[<2;10;8m")  # the right button
    t.wait_for("Actions", timeout=60)
    t.type("q:")  # not ESC, which with a key right behind it is Alt and that key
    t.type("\x1b[200~q\rq\r\x1b[201~")  # nothing of it is run
    t.wait_for("q q", timeout=60)
    t.type("\x15" + f"save-screen {tmp_path}/screen.txt\r")
    wait_until(lambda: t.read(0.02) and (tmp_path / "screen.txt").exists(), timeout=60, what="the file")
    assert "Stack of " in (tmp_path / "screen.txt").read_text(encoding="utf-8")
    t.type(":q\r")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    t.assert_restored()
    kept = state / "probing-top" / "commands"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text(encoding="utf-8").splitlines() == [f"save-screen {tmp_path}/screen.txt", "q"]


def test_copy_on_the_console_goes_to_a_file(terminal, plain_training, ptrace, tmp_path, wait_until):
    t = terminal(plain_training.pid, env={"TERM": "linux", "XDG_STATE_HOME": str(tmp_path)}, columns=160)
    t.wait_for_stack(timeout=60)
    file = tmp_path / "probing-top" / "copied"

    def copied():
        t.type("Y")
        text = wait_until(lambda: file.exists() and file.read_text(encoding="utf-8"), 60, "the file")
        assert text.startswith(f"{plain_training.pid} MainThread "), text
        return ".py:" in text  # unless the thread moved while it was read
    wait_until(copied, 60, "a stack in the file", interval=0.5)
    t.wait_for("the Linux console has no clipboard", timeout=60)
    assert b"\x1b]52;" not in t.output
    t.type("q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0


def has_agent(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        return "libprobing" in file.read()


def test_readonly_injects_nothing(terminal, plain_training, ptrace, probing):
    assert not has_agent(plain_training.pid)
    t = terminal("--readonly", plain_training.pid)
    t.wait_for_stack(timeout=60)
    t.wait_for("no agent", timeout=60)
    t.type("E")
    t.wait_for("--readonly: repr", timeout=60)
    t.type("3q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    assert not has_agent(plain_training.pid)
    probing(plain_training.pid, "inject", timeout=60).ok()
    assert has_agent(plain_training.pid)
    t = terminal("--readonly", plain_training.pid)  # one that is there is used
    t.wait_for_stack(timeout=60)
    t.type("q")
    assert os.WEXITSTATUS(t.wait(timeout=60)) == 0
    assert b"no agent" not in t.output


def test_readonly_and_block(probing_top):
    done = probing_top("--readonly", "--block", "1")
    assert done.status == 2 and "--readonly changes nothing, and --block stops threads" in done.stderr
