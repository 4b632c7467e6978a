#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's pictures: probing-top on the training job of examples/train.py, screen after screen, as docs/img/NAME.svg, and
docs/img/demo.svg, which moves: a terminal in which the fault of examples/slow_train.py is found.

usage: tools/pictures.py [--build DIR] [--python PATH] [--out DIR] [--warm-up S] [NAME ...]

The jobs and the screens are real, but for the 10,000 ranks: their rows are made by tests/cluster/engine_ranks.py. Needs tmux, Chromium, a
Python with torch, and for these ranks clickhouse-server.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

import screenshot

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "tests", "cluster"))
COLUMNS, ROWS = 120, 36
QUERY = "SELECT thread, count(*) AS samples, fold(stack_id) AS stack FROM python.samples GROUP BY tid, stack_id ORDER BY samples DESC LIMIT 12;"

# name: the screen, keys that are pressed there, what must stand on it then, seconds in which it fills
PICTURES = {
    "threads": ("threads", [], r"Stack of MainThread", 3),
    "flame": ("flame", ["/train_step", "Enter", "Escape", "o"], r"Called by[\s\S]*\d+ +\d+\.\d%", 12),
    "overview": ("overview", [], r"COMPUTE-BOUND|steps/s", 15),
    "steps": ("steps", [], r"steps/s", 30),
    "timeline": ("timeline", [], r"Timeline", 20),
    "tensors": ("tensors", ["*"], r"[1-9]\d* tensors +\S+ \S+ in", 8),
    "modules": ("modules", ["*"], r"\d+ modules +\S+ parameters", 8),
    "memory": ("memory", ["X", "y"], r"\n *[1-9][\d.]* MiB +\S+ +[1-9][\d.]* .*train\.py", 15),  # in the middle of a step
    "sql": ("sql " + QUERY, [], r"rows? in ", 2),
}
# The same of a job of eight ranks, one of which gets no batch (tests/cluster): keys, what must stand on the screen
JOB_PICTURES = {
    "ranks": ([], r"HUNG RANK 5: "),
    "stacks": (["O", "j"], r"Stacks +\d+ stacks of 8 ranks"),
}
# docs/img/demo.svg: keys, what must stand on the screen then, for how long it is shown, the line below it
DEMO = "demo"
DEMO_SIZE = (110, 30)
DEMO_STEPS = [
    (["probing-top {pid}"], r"probing-top \d+", 1.2, "A training job is slow. It was started as usual: nothing in it was prepared."),
    (["Enter"], r"CONNECTED", 1.0, "Attached: the job was not restarted."),
    ([":overview", "Enter"], r"INPUT-BOUND +\d+ % of a step[\s\S]*parse_sample", 6.0, "Overview: the verdict names the fault, the function and the line."),
    (["Enter"], r"no workers", 4.0, "Enter: the loader has no workers; the training itself makes every batch, and waits for it."),
    ([":flame", "Enter"], r"parse_sample", 4.0, "Flame: where the time goes."),
    (["/parse_sample", "Enter"], r"parse_sample", 2.0, "/ finds the function, and its share of the time."),
    (["Escape", "o"], r"float\(field\)[\s\S]*\d%|\d%[\s\S]*float\(field\)", 6.0, "o: its source, with the share of each line. Parse once, or use worker processes."),
]
FLAMEGRAPH = "flamegraph"  # of `probing flamegraph`: a file of its own, no screen
MANY = "ranks-10000"  # 10,000 ranks of a database, as they were when one of them hung
REPORT = "report"  # of `probing report`: the beginning of the page, as Chromium shows it
NAMES = (*PICTURES, *JOB_PICTURES, FLAMEGRAPH, REPORT, DEMO, MANY)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def renamed(text, place, name):
    """`text` with files of a folder in another one, also where the beginning is cut: the text after them stays in its column."""
    cut = "|".join("\u2026" + re.escape(place[at:]) for at in range(1, len(place)))

    def put(m):
        shown = name if m[1] == place else "\u2026" + name[-(len(m[1]) - 1):]
        return shown + m[2] + (m[3] or "") + " " * (len(m[1]) - len(shown))

    return re.sub(rf"({re.escape(place)}|{cut})(/[^\s\x1b]*)((?:\x1b\[[\d;]*m)*:\d+)?", put, text)


class Terminal:
    """A program in a tmux of its own; `setup`: lines of tmux's configuration."""

    def __init__(self, folder, name, command, size=(COLUMNS, ROWS), setup="", **env):
        self.socket = os.path.join(folder, name + ".tmux")
        self.columns, rows = size
        env = {**{k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "LINES", "COLUMNS")}, **env}
        env.update(LC_ALL="C.UTF-8", TERM="xterm-256color", XDG_CONFIG_HOME=folder, XDG_STATE_HOME=folder)
        config = os.path.join(folder, name + ".conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(setup)
        subprocess.run(["tmux", "-f", config, "-S", self.socket, "new-session", "-d", "-x", str(self.columns), "-y", str(rows), *command],
                       env=env, check=True)
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(self.columns), "-y", str(rows))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], capture_output=True, text=True, check=True).stdout

    def press(self, key):
        self.tmux("send-keys", *(["-l"] if len(key) > 1 and key not in ("Enter", "Escape", "F5") else []), key)

    def keys(self, keys):
        for key in keys:
            self.press(key)
            time.sleep(0.3)

    def wait_for(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.tmux("capture-pane", "-p")):
            if time.monotonic() > until:
                raise SystemExit(f"pictures: {pattern!r} did not come; there is\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.2)

    def screen(self, places):
        """With colours, and with the blanks at the end of lines: they have a background."""
        text = self.tmux("capture-pane", "-e", "-p", "-N")
        for place, name in places:
            text = renamed(text, place, name)
        return text

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


def write_picture(args, name, svg):
    path = os.path.join(args.out, name + ".svg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg)
    print(path)


def library_places(python):
    """[(folder, name in the picture)] of what is installed and of Python's own."""
    code = "import sysconfig as s; print(s.get_path('purelib')); print(s.get_path('stdlib')); print(s.get_python_version())"
    installed, own, version = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return [(installed, f"/usr/local/lib/python{version}/site-packages"), (own, f"/usr/lib/python{version}")]


def wait_for_steps(job, log):
    """Until the job trains: it imports torch for long where the machine is busy."""
    until = time.monotonic() + 300
    while not re.search(rb"(?m)^step ", open(log, "rb").read()):
        if job.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"pictures: the job does not train: see {log}")
        time.sleep(0.5)


@contextmanager
def training(args, folder, example):
    """The process of that file of examples/, once it trains; on the screens it is /tmp/training/train.py."""
    place, log = os.path.join(tempfile.gettempdir(), "training"), os.path.join(folder, "job.log")
    os.makedirs(place, exist_ok=True)
    shutil.copy(os.path.join(ROOT, "examples", example), os.path.join(place, "train.py"))
    with open(log, "wb") as file:
        job = subprocess.Popen([args.python, "train.py"], cwd=place, stdout=file, stderr=file)
    try:
        wait_for_steps(job, log)
        time.sleep(args.warm_up)
        yield job
    finally:
        job.terminate()
        job.wait()


def draw(args, folder, job, places):
    """Each screen with a program of its own: none shows what the one before has left."""
    for name in (name for name in args.names if name in PICTURES):
        screen, keys, pattern, fills = PICTURES[name]
        terminal = Terminal(folder, name, [os.path.join(args.build, "probing-top"), "-d", "250ms", str(job.pid)])
        try:
            terminal.wait_for(r"CONNECTED")
            terminal.keys([":" + screen, "Enter"])
            time.sleep(fills)
            terminal.keys(keys)
            terminal.wait_for(pattern)
            time.sleep(1)
            write_picture(args, name, screenshot.picture(terminal.screen(places), COLUMNS))
        finally:
            terminal.end()


@contextmanager
def hung(args, folder):
    """A job of eight ranks whose rank 5 has waited for a batch for a while, with an agent in each."""
    from ranks import Job
    shutil.rmtree(os.path.join(folder, "ranks"), ignore_errors=True)
    job = Job(args.python, os.path.join(folder, "ranks"), "loader_queue", ranks=8, bad=5)
    try:
        job.wait("ready", limit=300)
        subprocess.run([os.path.join(args.build, "probing"), "cluster", "attach", job.target()], check=True, stdout=subprocess.DEVNULL)
        time.sleep(args.warm_up)
        job.begin()
        yield job
    finally:
        job.close()


def draw_job(args, folder, job, places):
    for name in (name for name in args.names if name in JOB_PICTURES):
        keys, pattern = JOB_PICTURES[name]
        terminal = Terminal(folder, name, [os.path.join(args.build, "probing-top"), f"job:{job.target()}"])
        try:
            terminal.wait_for(r"HUNG RANK 5: ", 120)
            terminal.keys(keys)
            terminal.wait_for(pattern)
            time.sleep(2)
            write_picture(args, name, screenshot.picture(terminal.screen(places), COLUMNS))
        finally:
            terminal.end()


def draw_many(args, folder):
    """One of them hangs for 20 s; what the relays of 1,250 hosts would have written."""
    sys.path.append(os.path.join(ROOT, "tests", "functional"))
    from clickhouse import Server
    from engine_ranks import Job
    shutil.rmtree(os.path.join(folder, "clickhouse"), ignore_errors=True)
    server = Server(os.path.join(folder, "clickhouse"))
    server.start()
    try:
        subprocess.run([os.path.join(args.build, "probing"), "cluster", "init", server.url()], check=True, stdout=subprocess.DEVNULL)
        job, began = Job(server.ask, "llama-71c0", ranks=10000), float(int(time.time()) - 120)
        job.hang(4711, began + 15)
        for second in range(36):
            job.second(began + second)
        terminal = Terminal(folder, MANY, [os.path.join(args.build, "probing-top"), f"{server.url(job='llama-71c0')}&at=@{began + 35}"])
        try:
            terminal.wait_for(r"HUNG RANK 4711: ", 120)
            write_picture(args, MANY, screenshot.picture(terminal.screen([]), COLUMNS))
        finally:
            terminal.end()
    finally:
        server.kill()


def draw_demo(args, folder, job, places):
    """What a terminal shows while DEMO_STEPS are typed, four times a second, at the speed at which it happened."""
    frames, folder = [], os.path.join(folder, DEMO)  # with settings of its own
    os.makedirs(os.path.join(folder, "probing-top"), exist_ok=True)
    with open(os.path.join(folder, "probing-top", "config"), "w", encoding="ascii") as file:
        file.write("delay = 1s\n")  # the picture is as large as what changes in it
    terminal = Terminal(folder, DEMO, ["bash", "--norc", "--noprofile"], DEMO_SIZE, PS1="$ ", PATH=args.build + ":" + os.environ["PATH"],
                        HISTFILE="")

    def take(seconds, caption):
        until = time.monotonic() + seconds
        while True:
            frames.append((time.monotonic(), terminal.screen(places), caption))
            left = until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(0.25, left))

    try:
        for keys, pattern, seconds, caption in DEMO_STEPS:
            for key in keys:
                key = key.format(pid=job.pid)
                for letter in [key] if key in ("Enter", "Escape") else key:
                    terminal.press(letter)
                    take(0.06, caption)
            until = time.monotonic() + 30
            while not re.search(pattern, terminal.tmux("capture-pane", "-p")):
                if time.monotonic() > until:
                    raise SystemExit(f"pictures: {pattern!r} did not come; there is\n{terminal.tmux('capture-pane', '-p')}")
                take(0.25, caption)
            take(seconds, caption)
    finally:
        terminal.end()
    shown = screenshot.spans([(text, caption) for _, text, caption in frames])
    times = [at for at, _, _ in frames] + [frames[-1][0] + 2]
    write_picture(args, DEMO, screenshot.animation([(times[end] - times[first], *what) for first, end, what in shown], DEMO_SIZE[0]))


def draw_flamegraph(args, job):
    """As it is written, without the folders of this machine."""
    path = os.path.join(args.out, FLAMEGRAPH + ".svg")
    subprocess.run([os.path.join(args.build, "probing"), str(job.pid), "flamegraph", "--by-function", "--duration", "10", "-o", path], check=True)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        text = re.sub(r"(?m)^/.*/(?=site-packages/|lib/python3)", "", text.replace(ROOT + "/", ""))
        file.write(text.replace("?>\n", "?>\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n", 1))
    print(path)


def draw_report(args, folder, job):
    """As docs/img/report.png, without the folders and the name of this machine."""
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if not browser:
        raise SystemExit("pictures: the report needs chromium")
    page, path = os.path.join(folder, "report.html"), os.path.join(args.out, REPORT + ".png")
    subprocess.run([os.path.join(args.build, "probing"), str(job.pid), "report", "--duration", "10", "-o", page], check=True)
    with open(page, encoding="utf-8") as file:
        text = file.read().replace(socket.gethostname(), "node-1").replace(ROOT + "/", "")
    with open(page, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?<=>)/[^<]*/(?=bin/python)", "/usr/", text))
    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser",
                    "--window-size=1240,1300", f"--screenshot={path}", "file://" + page], check=True, stderr=subprocess.DEVNULL)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "img"))
    parser.add_argument("--warm-up", type=float, default=15, help="seconds that the job trains before the first picture")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(NAMES))
    args = parser.parse_args()
    if not shutil.which("tmux"):
        raise SystemExit("pictures: needs tmux")
    for name in args.names:
        if name not in NAMES:
            parser.error(f"no picture {name}; there are {', '.join(NAMES)}")
    args.names = args.names or NAMES
    args.build = os.path.abspath(args.build)
    folder = os.path.join(args.build, "pictures")
    os.makedirs(folder, exist_ok=True)
    places = library_places(args.python)
    if set(args.names) & set(JOB_PICTURES):
        with hung(args, folder) as job:
            draw_job(args, folder, job, places)
    if MANY in args.names:
        draw_many(args, folder)
    if set(args.names) - set(JOB_PICTURES) - {DEMO, MANY}:
        with training(args, folder, "train.py") as job:
            draw(args, folder, job, places)
            if FLAMEGRAPH in args.names:
                draw_flamegraph(args, job)
            if REPORT in args.names:
                draw_report(args, folder, job)
    if DEMO in args.names:
        with training(args, folder, "slow_train.py") as job:
            draw_demo(args, folder, job, places)


if __name__ == "__main__":
    main()
