# SPDX-License-Identifier: Apache-2.0
"""The settings file as a user meets it: read at the start, overridden by the command line, written when asked for."""

import os

from test_tui_pty import terminal  # noqa: F401  (a fixture)


def named(path):
    return {"PROBING_TOP_CONFIG": str(path)}


def test_what_is_printed_can_be_read(probing_top, tmp_path):
    """--print-config says where each setting is from; its text is a settings file that gives the same."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("# mine\ndelay = 5\nmouse = off\n[keys]\nflame.zoom-in = x Enter\n")
    printed = probing_top("--print-config", "--theme", "light", env=named(first)).ok().stdout
    assert "from: file\ndelay = 500ms\n" in printed and "from: command line\ntheme = light\n" in printed
    assert "from: default\nascii = auto\n" in printed
    assert f"# {first}:5\nflame.zoom-in = x Enter\n" in printed
    second.write_text(printed)
    again = probing_top("--print-config", env=named(second)).ok()
    assert again.stderr == ""

    def pairs(text):
        return [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pairs(again.stdout) == pairs(printed)


def test_a_file_with_mistakes(probing_top, tmp_path):
    """Each is a line on stderr that says where; the rest is in effect."""
    path = tmp_path / "config"
    path.write_text("delay = soon\nmoose = on\n[keys]\nthreads.pause = X\nthreads.locals = X\n")
    done = probing_top("--list-keys", env=named(path)).ok()
    assert done.stderr.splitlines() == [
        f"{path}:1: delay takes tenths of a second, or a time such as 250ms or 2s, from 50ms to 60s, not 'soon'",
        f"{path}:2: there is no setting 'moose': did you mean mouse?",
        f"{path}:5: in threads 'X' is pause already, by line 4: give locals another"]
    assert "threads  X          pause " in done.stdout and "threads  Space" not in done.stdout


def test_a_key_of_ones_own(terminal, tmp_path):
    """A key that the file gives an action does it, is shown, and the one it had does nothing any more."""
    path = tmp_path / "config"
    path.write_text("theme = no-such-theme\n[keys]\npicker.quit = X\npicker.help = F9\n")
    t = terminal(env=named(path))
    t.wait_for("F9")
    assert f"{path}: theme: no theme 'no-such-theme'".encode() in t.output
    t.type("q")
    t.wait_for("q does nothing here")
    t.type("X")
    assert os.WEXITSTATUS(t.wait()) == 0
    t.assert_restored()
