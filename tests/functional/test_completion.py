# SPDX-License-Identifier: Apache-2.0
"""Completion at the prompt of the shells themselves: what Tab makes of a beginning, where the files lie as `make install` puts them."""

import os
import re
import shutil

import pytest

from test_tui_tmux import Screen

# Where each shell looks for a program's file below a folder, and how it is started on that folder alone.
SHELLS = {
    "bash": ("{folder}/{program}",
             "exec bash --rcfile {folder}/rc --noprofile -i"),
    "zsh": ("{folder}/_{program}", "ZDOTDIR={folder} exec zsh -d -i"),
    "fish": ("{folder}/fish/completions/{program}.fish", "XDG_CONFIG_HOME={folder} XDG_DATA_HOME={folder} HOME={folder} exec fish -i"),
}
STARTS = {
    "bash": ("rc", "PS1='ready> '\nsource {folder}/probing\nsource {folder}/probing-top\n"),
    "zsh": (".zshrc", "PROMPT='ready> '\nfpath=({folder} $fpath)\nautoload -Uz compinit\ncompinit -u -D\nLISTMAX=0\n"),
    "fish": ("fish/config.fish", "function fish_prompt; echo -n 'ready> '; end\nfunction fish_greeting; end\nset -g fish_autosuggestion_enabled 0\n"),
}


@pytest.fixture(params=sorted(SHELLS))
def prompt(request, tmux, tmp_path, build_dir, wait_until):
    """A shell that is waiting, with the completion of both programs."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}: not installed")
    folder = tmp_path / "completion"
    place, start = SHELLS[shell]
    for program in ("probing", "probing-top"):
        made = os.path.join(build_dir, "share", shell, program)
        if not os.path.exists(made):
            pytest.skip(f"needs {made}: make man")
        at = place.format(folder=folder, program=program)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        shutil.copy(made, at)
    name, text = STARTS[shell]
    (folder / name).write_text(text.format(folder=folder))
    (folder / "job.db").write_text("")
    s = Screen(tmux, tmp_path, 120, 40, wait_until)
    s.shell(f"cd {folder} && PATH={build_dir}:$PATH && clear && {start.format(folder=folder)}")
    s.wait_for("ready>", 60)
    yield s
    s.close()


def line(s):
    """What stands at the prompt now."""
    return next((row for row in reversed(s.text().splitlines()) if row.startswith("ready>")), "")


def tab(s, beginning, whole):
    """Tab makes of the beginning the whole."""
    s.type(beginning)
    s.keys("Tab")
    try:
        s.wait_until(lambda: line(s).strip() == f"ready> {whole}".strip(), 30, f"{whole!r} at the prompt")
    except pytest.fail.Exception as failure:
        pytest.fail(f"{failure.msg}:\n{s.text()}")
    s.keys("C-u")
    s.wait_until(lambda: line(s).strip() == "ready>", 30, "an empty prompt")


def test_what_tab_makes(prompt):
    tab(prompt, "probing flameg", "probing flamegraph")
    tab(prompt, "probing 1234 backtr", "probing 1234 backtrace")
    tab(prompt, "probing -t 1234 backtrace --bloc", "probing -t 1234 backtrace --block")
    tab(prompt, "probing flamegraph --by-f", "probing flamegraph --by-function")
    tab(prompt, "probing-top --read", "probing-top --readonly")
    tab(prompt, "probing-top --export folde", "probing-top --export folded")
    tab(prompt, "probing-top --export sqlite -o jo", "probing-top --export sqlite -o job.db")


def test_all_there_is_can_be_listed(prompt, probing, wait_until):
    """Every verb, as the program has it; options of one verb are not offered to another."""
    verbs = re.findall(r"^  (\w+) ", probing("--help").ok().stdout, re.M)
    assert {"list", "backtrace", "record"} <= set(verbs)
    prompt.type("probing ")
    prompt.keys("Tab", "Tab")
    wait_until(lambda: all(verb in prompt.text() for verb in verbs), 30, f"{verbs} on the screen")
    prompt.keys("C-u", "C-l")
    tab(prompt, "probing backtrace --limi", "probing backtrace --limi")
