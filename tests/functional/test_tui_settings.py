# SPDX-License-Identifier: Apache-2.0
"""The settings file as a user meets it: read at the start, overridden by the command line, written when asked for."""

import os
import re
import signal
import stat

from test_tui_pty import terminal  # noqa: F401  (a fixture)
from test_tui_tmux import Screen


def named(path):
    return {"PROBING_TOP_CONFIG": str(path)}


def test_what_is_printed_can_be_read(probing_top, tmp_path):
    """--print-config says where each setting is from; its text is a settings file that gives the same."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("# mine\ndelay = 5\nmouse = off\n[keys]\nflame.zoom-in = X Enter\n")
    printed = probing_top("--print-config", "--theme", "light", "--rate", "250 Hz", env=named(first)).ok().stdout
    assert "from: file\ndelay = 500ms\n" in printed and "from: command line\ntheme = light\n" in printed
    assert "from: command line\nrate = 250\n" in printed
    assert "from: default\nascii = auto\n" in printed
    assert f"# {first}:5\nflame.zoom-in = X Enter\n" in printed
    second.write_text(printed)
    again = probing_top("--print-config", env=named(second)).ok()
    assert again.stderr == ""

    def pairs(text):
        return [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pairs(again.stdout) == pairs(printed)


def test_the_example(probing_top, source_dir, tmp_path):
    """The settings in docs/settings.md are read without a word."""
    with open(os.path.join(source_dir, "docs", "settings.md"), encoding="utf-8") as file:
        example = re.search(r"^ *```ini\n(.*?)^ *```", file.read(), re.M | re.S).group(1)
    path = tmp_path / "config"
    path.write_text(example)
    done = probing_top("--print-config", env=named(path)).ok()
    assert done.stderr == "" and "theme = nord\n" in done.stdout and "# " + str(path) + ":" in done.stdout


def test_a_file_with_mistakes(probing_top, tmp_path):
    """Each is a line on stderr that says where; the rest is in effect."""
    path = tmp_path / "config"
    path.write_text("delay = soon\nmoose = on\n[keys]\nthreads.freeze = X\nthreads.locals = X\n")
    done = probing_top("--list-keys", env=named(path)).ok()
    assert done.stderr.splitlines() == [
        f"{path}:1: delay takes tenths of a second, or a time such as 250ms or 2s, from 33ms to 60s, not 'soon'",
        f"{path}:2: there is no setting 'moose': did you mean mouse?",
        f"{path}:5: in threads 'X' is freeze already, by line 4: give locals another"]
    assert "threads  X          freeze " in done.stdout and "threads  Z " not in done.stdout


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


def theme_text(colour):
    return f"name = Mine\ninherit = default\n[roles]\nfooter.label = 16 {colour}\nfooter.key = 16 {colour}\n"


def shows(t, colour, after=0):
    """Has it painted that ground since `after` bytes?"""
    return f"48;5;{colour}m".encode() in t.output[after:]


def wait_for_colour(t, colour, after=0):
    """A terminal of 256 colours says 48;5;N for a ground."""
    t.wait_until(lambda: shows(t, colour, after), f"the colour {colour}")


def test_a_theme_that_is_edited(terminal, tmp_path):
    """Saved by an editor, the theme's file is read again while it runs; a line with a mistake is named and skipped."""
    theme = tmp_path / "mine.theme"
    theme.write_text(theme_text(201))
    t = terminal("--theme", theme, env=named(tmp_path / "none"), columns=200)
    wait_for_colour(t, 201)
    at = len(t.output)
    theme.write_text(theme_text(202))  # written in place
    wait_for_colour(t, 202, at)
    at = len(t.output)
    (tmp_path / "new").write_text(theme_text(203))
    (tmp_path / "new").replace(theme)  # put in its place, as most editors do
    wait_for_colour(t, 203, at)
    at = len(t.output)
    theme.write_text(theme_text(204).replace("footer.key = 16 204", "footer.key = 16 #zzz"))
    wait_for_colour(t, 204, at)
    t.wait_for("mine.theme:5: bad colour '#zzz'")
    theme.write_text(theme_text(205).replace("footer.label = 16 205", "footer.label = 16 #yyy"))
    os.kill(t.pid, signal.SIGUSR2)  # read again by hand
    t.wait_for("mine.theme:4: bad colour '#yyy'")
    at = len(t.output)
    t.type("\x0c")  # what was painted with the colours of before may still be on its way: all of it again
    wait_for_colour(t, 205, at)
    wait_for_colour(t, 73, at)  # the default's
    assert not shows(t, 204, t.output.rindex(b"\x1b[2J") if b"\x1b[2J" in t.output[at:] else at)
    t.type("q")
    assert os.WEXITSTATUS(t.wait()) == 0


def test_a_mistake_is_the_same_at_the_start_and_later(tmux, plain_training, probing_top, tmp_path, wait_until, ptrace):
    """Whenever a theme is read: a warning with file and line, on the screen and in the log."""
    theme = tmp_path / "mine.theme"
    theme.write_text("[roles]\ntext = #yyy\n")
    s = Screen(tmux, tmp_path, 200, 50, wait_until)
    try:
        s.shell(f"{probing_top.path} --screen threads --theme {theme} {plain_training.pid}")
        s.wait_for("Stack of MainThread")
        s.wait_for(f" {theme}:2: bad colour '#yyy'")
        s.type("L")
        s.wait_for(f"! {theme}:2: bad colour '#yyy'")
        theme.write_text("[roles]\n\ntext = #zzz\n")
        s.wait_for(f"! {theme}:3: bad colour '#zzz'")
        assert f"\n {theme}:3: bad colour '#zzz'" in s.text()
    finally:
        s.close()


def test_a_theme_is_looked_at_kept_and_saved(terminal, tmp_path):
    """Moving through the list shows each theme; Esc goes back, Enter keeps, and F12 writes the file, which the next start reads."""
    config = tmp_path / "new" / "config"
    folder = tmp_path / "probing-top" / "themes"
    folder.mkdir(parents=True)
    (folder / "aaa.theme").write_text(theme_text(201))
    env = {**named(config), "XDG_CONFIG_HOME": str(tmp_path)}
    t = terminal(env=env)
    t.wait_for("Quit")
    assert not shows(t, 201)
    t.type("\x1bt")
    t.wait_for("(in use)")
    t.type("g")
    wait_for_colour(t, 201)
    at = len(t.output)
    t.type("\x1b")
    wait_for_colour(t, 73, at)  # the default's
    t.type("\x1bt")
    t.wait_for("(in use)", after=at)
    at = len(t.output)
    t.type("g\r")
    wait_for_colour(t, 201, at)
    assert not config.exists()
    t.type("\x1b[24~")
    t.wait_until(config.exists, "the file")
    t.type("q")
    assert os.WEXITSTATUS(t.wait()) == 0
    assert re.search(r"^theme = aaa$", config.read_text(), re.M)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    again = terminal(env=env)
    wait_for_colour(again, 201)
    again.type("q")
    assert os.WEXITSTATUS(again.wait()) == 0


def test_info(probing_top, tmp_path):
    """--info names the files, what the terminal can do, and what is built in."""
    config = tmp_path / "config"
    config.write_text("moose = on\n")
    text = probing_top("--info", env={**named(config), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}).ok().stdout
    assert f"settings       {config}\n" in text and "1 warning, see --print-config" in text
    assert re.search(r"^terminal +TERM=xterm-256color$", text, re.M)
    assert re.search(r"^colours +256 of 256 ", text, re.M) and re.search(r"^characters +UTF-8$", text, re.M)
    assert re.search(r"^Python +3\.\d.* 3\.13t", text, re.M)
    assert re.search(r"^themes .* default deuteranopia gruvbox high-contrast light mono nord okabe-ito solarized-light tritanopia$", text, re.M)
    text = probing_top("--info", env={**named(config), "TERM": "", "NO_COLOR": "1", "LC_ALL": "C"}).ok().stdout
    assert "TERM=(not set)" in text and "NO_COLOR is set" in text and "ASCII" in text
