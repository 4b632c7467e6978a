# SPDX-License-Identifier: Apache-2.0
"""README and the pages of docs/: what they show can be typed, and does what they say. docs/questions.md has a test of its own.

A block in a page is one of
    sh        commands that end well, a line each
    console   `$ command` and its output, of which a comment below says what must be in it: <!-- shows: PATTERN -->
    sql       a query that runs
    ini       settings (tests/functional/test_tui_settings.py)
    text yaml not commands
They are of the job that the comment above them names: <!-- job: FILE -->. Commands that need what is not here have the reason above
them, <!-- not run: ... -->, and then each command of ours has to exist at least.
"""

import glob
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import ROOT, inject_in_time
from test_questions import fault, run_job  # noqa: F401

PAGES = ["README.md", *(os.path.relpath(path, ROOT) for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))
                        if os.path.basename(path) not in ("questions.md", "access.md"))]
MADE = ("cli", "keys", "tables", "settings", "formats")
BLOCK = re.compile(r"^<!-- (?P<word>job|not run): (?P<about>[^\n]+) -->$|^ *```(?P<kind>\w*)\n(?P<text>.*?)^ *```$(?:\n<!-- shows: (?P<shows>[^\n]+) -->)?", re.M | re.S)
PATIENCE_S = 60


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """[(job, kind, text, shows, why it is not run)]"""
    found, job, why = [], "examples/train_plain.py", None
    for match in BLOCK.finditer(read(page)):
        if match["word"] == "job":
            job = match["about"]
        elif match["word"]:
            why = match["about"]
        else:
            found.append((job, match["kind"], match["text"], match["shows"], why))
            why = None
    return found


RUNS = sorted({(page, block[0]) for page in PAGES for block in blocks(page) if block[1] in ("sh", "console", "sql") and not block[4]})


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_known(page):
    """None that this test would pass over in silence."""
    for _, kind, text, shows, _ in blocks(page):
        assert kind in ("sh", "console", "sql", "ini", "text", "yaml"), f"{page}: a block of kind '{kind}':\n{text}"
        assert kind != "console" or (shows and re.search(shows, text) and text.startswith("$ ")), f"{page}: no pattern, or another:\n{text}"
    assert read(page).count("```") == 2 * len(blocks(page)), page


def verbs_of(text):
    """Our commands in a text: [(program, words)]."""
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        for command in re.split(r"[|;&]+", line.split(" #")[0]):
            words = command.replace("sudo ", "").split()
            if words and words[0].split("/")[-1] in ("probing", "probing-top"):
                yield words[0].split("/")[-1], words[1:]


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page, probing, probing_top):
    """Also within sentences and tables: each verb and option that is named there."""
    text = read(page)
    shown = [text for _, kind, text, _, _ in blocks(page) if kind in ("sh", "console")]
    spans = re.findall(r"`((?:sudo )?probing(?:-top)? [^`]*)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.S | re.M))
    help_of = {}
    for program, words in verbs_of("\n".join([*(re.sub(r"^\$ ", "", block, flags=re.M) for block in shown), *spans])):
        verb = ""
        if program == "probing":
            while words and (words[0] in ("-t", "--target", "-p") or re.match(r"[-\d]|PID|TARGET|HOST|node|127|\w+\.(?:db|py)$", words[0])):
                words = words[2:] if words[0] in ("-t", "--target", "-p") else words[1:]
            if not words or not re.fullmatch(r"[a-z]+", words[0]) or words[0] == "help":
                continue
            verb = words[0]
            if verb == "cluster":
                verb = " ".join(words[:2])
        if (program, verb) not in help_of:
            run = probing if program == "probing" else probing_top
            help_of[program, verb] = run(*verb.split(), "--help").ok().stdout
        end = words.index("launch") + 3 if "launch" in words else len(words)
        for option in re.findall(r"(?<![\w-])(--[a-z][\w-]+)", " ".join(words[:end])):
            assert option in help_of[program, verb] or option in ("--export",), f"{page}: {program} {verb} has no {option}"


@pytest.mark.parametrize("name", MADE)
def test_made_pages_are_up_to_date(name, build_dir):
    made = subprocess.run([os.path.join(build_dir, "tools", "gen_manual"), "page", name], capture_output=True, text=True, check=True).stdout
    assert made == read(f"docs/{name}.md"), "make docs brings it up to date"


@pytest.fixture
def jobs_of(run_job, target, torch_python, torch_fork, probing, wait_until):  # noqa: F811
    """The jobs that a page names, with the agent in them, in the order of the pids 4242, 4243."""
    def plain(name, **env):
        job = target(os.path.join(ROOT, name), ready=r"step +\d+ ", env={"OMP_NUM_THREADS": "1", **env}, timeout=180,
                     **({} if "plain" in name else {"python": torch_python, "fork": torch_fork}))
        inject_in_time(probing, job.pid)
        return job

    def make(about):
        if about == "none":
            return []
        name = re.search(r"(?:examples|tests/faults)/\w+\.py", about)[0]
        if about.startswith("two of "):
            return [plain(name), plain(name)]
        if about.startswith("two ranks of "):
            key = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
            return [plain(name, RANK=str(rank), LOCAL_RANK=str(rank), **key) for rank in range(2)]
        job = run_job(name[:-3]) if name.startswith("tests/") or name.endswith("/train.py") else plain(name)
        if "ended by SIGKILL" in about:
            query = "SELECT count(*) AS n FROM python.samples"
            wait_until(lambda: probing(job.pid, "query", "--format", "csv", query).ok().stdout.split()[-1] > "0", 60, "samples")
            os.kill(job.pid, signal.SIGKILL)
            wait_until(lambda: not job.alive(), 30, "its end")
        return [job]
    return make


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page, about", RUNS)
def test_page(page, about, jobs_of, build_dir, torch_python, tmp_path, ptrace):
    """Each block in turn, in one folder: commands end well, and show what the page says, if not at once then soon."""
    pids = [(str(4242 + i), str(job.pid)) for i, job in enumerate(jobs_of(about))]
    (tmp_path / "bin").mkdir()
    os.symlink(torch_python, tmp_path / "bin" / "python")
    env = dict(os.environ, PATH=os.pathsep.join([os.path.abspath(build_dir), str(tmp_path / "bin"), os.environ["PATH"]]))
    port = free_port()

    def run(line):
        for shown, real in [*pids, ("3344", port)]:
            line = re.sub(rf"\b{shown}\b", real, line)
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=150, check=False)

    for kind, text, shows in ((b[1], b[2], b[3]) for b in blocks(page) if b[0] == about and not b[4]):
        if kind == "sql":
            targets = " ".join(f"-t {shown}" for shown, _ in pids)
            for query in text.strip().split("\n\n"):
                done = run(f"probing {targets} query {shlex.quote(re.sub(r'^--.*$', '', query, flags=re.M))}")
                assert done.returncode == 0 or (":from" in query and "from" in done.stdout), (page, query, done.stdout)
        for line in [text.split("\n")[0][2:]] if kind == "console" else text.strip().split("\n") if kind == "sh" else []:
            for tool in ("curl", "nc"):
                if re.search(rf"\b{tool} ", line) and not shutil.which(tool):
                    pytest.skip(f"needs {tool}")
            until = time.monotonic() + PATIENCE_S
            while True:
                done = run(line)
                good = done.returncode == 0 and re.search(shows or "", done.stdout)
                if good or not shows or time.monotonic() > until:
                    break
                time.sleep(0.5)
            assert good, f"{page}: {line}\n{done.stdout}"
