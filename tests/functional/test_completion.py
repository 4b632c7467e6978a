# SPDX-License-Identifier: Apache-2.0
"""Completion at the prompt of the shells themselves: what Tab makes of a beginning, where the files lie as `make install` puts them."""

import os
import re
import shutil

import pytest

from conftest import run_command
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
    # Fish lists what fits in half of the rows, and other tests' processes are in the list too.
    s = Screen(tmux, tmp_path, 120, 200, wait_until)
    s.shell_name = shell
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


JOB = """
import os, time

os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.01)
"""


def test_what_there_is_in_a_job(prompt, target):
    """Pids, tables, columns and settings, where each may stand."""
    job = target(JOB, name="completed_job.py")
    tab(prompt, f"probing {str(job.pid)}", f"probing {job.pid}")
    tab(prompt, f"probing {job.pid} dum", f"probing {job.pid} dump")
    tab(prompt, f"probing -t {job.pid} repor", f"probing -t {job.pid} report")
    tab(prompt, f"probing backtrace {job.pid} --bloc", f"probing backtrace {job.pid} --block")
    tab(prompt, "probing tables python.backt", "probing tables python.backtrace")
    tab(prompt, f"probing {job.pid} tables python.step", f"probing {job.pid} tables python.steps")
    tab(prompt, f"probing {job.pid} config probing.sample_r", f"probing {job.pid} config probing.sample_rate=")
    tab(prompt, f"probing {job.pid} config sample_r", f"probing {job.pid} config sample_rate=")
    tab(prompt, f"probing {job.pid} config probing.gentle=of", f"probing {job.pid} config probing.gentle=off")
    tab(prompt, f"probing report {job.pid} --format=htm", f"probing report {job.pid} --format=html")
    tab(prompt, f"probing flamegraph {job.pid} -o jo", f"probing flamegraph {job.pid} -o job.db")
    tab(prompt, "probing jo", "probing job.db")
    tab(prompt, "probing-top --theme nor", "probing-top --theme nord")
    tab(prompt, "probing-top --screen time", "probing-top --screen timeline")
    tab(prompt, "probing launch dirnam", "probing launch dirname")
    query(prompt, "probing query 'SELECT * FROM python.backt", "probing query 'SELECT * FROM python.backtrace")
    query(prompt, "probing query 'SELECT count(*) FROM python.steps WHERE durat",
          "probing query 'SELECT count(*) FROM python.steps WHERE duration_ms")


def query(s, beginning, whole):
    """The same within an open quote, which some shells close."""
    s.type(beginning)
    s.keys("Tab")
    try:
        s.wait_until(lambda: line(s).strip().removesuffix("'") == f"ready> {whole}", 30, f"{whole!r} at the prompt")
    except pytest.fail.Exception as failure:
        pytest.fail(f"{failure.msg}:\n{s.text()}")
    s.keys("C-u")
    s.wait_until(lambda: line(s).strip() == "ready>", 30, "an empty prompt")


def test_pids_have_their_commands(prompt, target, probing):
    """Where the shell shows descriptions; after a verb that wants a target, and after -t."""
    jobs = [target(JOB, name=f"completed_{i}.py") for i in range(2)]
    for beginning in ("probing backtrace ", "probing -t ", "probing-top "):
        prompt.type(beginning)
        offered = run_command([probing.path, "__complete", "backtrace", ""]).stdout.splitlines()
        shared = os.path.commonprefix([one.split("\t")[0] for one in offered])  # is put first
        prompt.keys(*["Tab"] * ((2 if prompt.shell_name == "bash" else 1) + bool(shared)))  # more choose from the list
        for job in jobs:
            prompt.wait_for(str(job.pid), 30)
        if prompt.shell_name != "bash":
            prompt.wait_for("completed_0.py", 30)
        prompt.keys("C-u")
        prompt.wait_until(lambda: line(prompt).strip() == "ready>", 30, "an empty prompt")
        prompt.keys("C-l")
        prompt.wait_gone(str(jobs[0].pid), 30)


def test_nothing_is_asked_of_a_process(probing, target):
    """Its pid and command come from /proc: no agent is loaded, no thread stopped, no memory read."""
    if not shutil.which("strace"):
        pytest.skip("needs strace: not installed")
    job = target(JOB, name="left_alone.py")
    done = run_command(["strace", "-f", "-e", "trace=ptrace,process_vm_readv,connect,kill,tgkill", probing.path, "__complete", "backtrace", ""])
    assert f"{job.pid}\t" in done.stdout and "left_alone.py" in done.stdout
    assert not re.search(r"(ptrace|process_vm_readv|connect)\(", done.stderr), done.stderr
    assert not re.search(rf"kill\({job.pid}\b", done.stderr), done.stderr


def test_all_there_is_can_be_listed(prompt, probing, wait_until):
    """Every verb, as the program has it; options of one verb are not offered to another."""
    verbs = re.findall(r"^  (\w+) ", probing("--help").ok().stdout, re.M)
    assert {"list", "backtrace", "record"} <= set(verbs)
    prompt.type("probing ")
    prompt.keys("Tab", "Tab")
    wait_until(lambda: all(verb in prompt.text() for verb in verbs), 30, f"{verbs} on the screen")
    prompt.keys("C-u", "C-l")
    tab(prompt, "probing backtrace --limi", "probing backtrace --limi")
