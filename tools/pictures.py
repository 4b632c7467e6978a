#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the README's pictures: probing-top on the training job of examples/train.py, screen after screen, as docs/img/NAME.svg.

usage: tools/pictures.py [--build DIR] [--python PATH] [--out DIR] [--warm-up S] [NAME ...]

The job runs for real; what stands on the screens is what it does. Needs tmux, Chromium, and a Python with torch.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS, ROWS = 120, 36
QUERY = "SELECT thread, count(*) AS samples, fold(stack_id) AS stack FROM python.samples GROUP BY tid, stack_id ORDER BY samples DESC LIMIT 12;"

# name: keys that lead there from Threads, what must stand on the screen then, seconds in which it fills
PICTURES = {
    "threads": (["2"], r"Stack of MainThread", 3),
    "flame": (["3", "/train_step", "Enter", "Escape", "o"], r"Called by[\s\S]*\d+ +\d+\.\d%", 12),
    "overview": (["1"], r"COMPUTE-BOUND|steps/s", 15),
    "steps": (["E"], r"steps/s", 30),
    "timeline": (["9"], r"Timeline", 20),
    "tensors": (["5", "*"], r"[1-9]\d* tensors +\S+ \S+ in", 8),
    "modules": (["6", "*"], r"\d+ modules +\S+ parameters", 8),
    "sql": (["7", QUERY, "F5"], r"rows? in ", 2),
}
FLAMEGRAPH = "flamegraph"  # of `probing flamegraph`: a file of its own, no screen
REPORT = "report"  # of `probing report`: the beginning of the page, as Chromium shows it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def renamed(text, place, name):
    """`text` with files of a folder in another one, also where the beginning is cut: what stands behind them stays in its column."""
    cut = "|".join("\u2026" + re.escape(place[at:]) for at in range(1, len(place)))

    def put(m):
        shown = name if m[1] == place else "\u2026" + name[-(len(m[1]) - 1):]
        return shown + m[2] + (m[3] or "") + " " * (len(m[1]) - len(shown))

    return re.sub(rf"({re.escape(place)}|{cut})(/[^\s\x1b]*)((?:\x1b\[[\d;]*m)*:\d+)?", put, text)


class Terminal:
    """probing-top in a tmux of its own."""

    def __init__(self, folder, name, command):
        self.socket = os.path.join(folder, name + ".tmux")
        env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "LINES", "COLUMNS")}
        env.update(LC_ALL="C.UTF-8", TERM="xterm-256color", XDG_CONFIG_HOME=folder, XDG_STATE_HOME=folder)
        subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), *command],
                       env=env, check=True)
        self.tmux("set", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(COLUMNS), "-y", str(ROWS))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], capture_output=True, text=True, check=True).stdout

    def keys(self, keys):
        for key in keys:
            self.tmux("send-keys", *(["-l"] if len(key) > 1 and key not in ("Enter", "Escape", "F5") else []), key)
            time.sleep(0.3)

    def wait_for(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.tmux("capture-pane", "-p")):
            if time.monotonic() > until:
                raise SystemExit(f"pictures: {pattern!r} did not come; there is\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.2)

    def picture(self, path, places):
        text = self.tmux("capture-pane", "-e", "-p", "-N")  # with the blanks at the end of lines: they have a background
        for place, name in places:
            text = renamed(text, place, name)
        svg = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "screenshot.py"), "--cols", str(COLUMNS)], input=text,
                             capture_output=True, text=True, check=True).stdout
        with open(path, "w", encoding="utf-8") as file:
            file.write(svg)

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


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


def draw(args, folder, job, places):
    """Each screen with a program of its own: none shows what the one before has left."""
    for name in (name for name in args.names or PICTURES if name not in (FLAMEGRAPH, REPORT)):
        keys, pattern, fills = PICTURES[name]
        terminal = Terminal(folder, name, [os.path.join(args.build, "probing-top"), "-d", "250ms", str(job.pid)])
        try:
            terminal.wait_for(r"CONNECTED")
            terminal.wait_for(r"Stack of MainThread")
            terminal.keys(keys[:1])
            time.sleep(fills)
            terminal.keys(keys[1:])
            terminal.wait_for(pattern)
            time.sleep(1)
            path = os.path.join(args.out, name + ".svg")
            terminal.picture(path, places)
            print(path)
        finally:
            terminal.end()


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
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join((*PICTURES, FLAMEGRAPH, REPORT)))
    args = parser.parse_args()
    if not shutil.which("tmux"):
        raise SystemExit("pictures: needs tmux")
    for name in args.names:
        if name not in (*PICTURES, FLAMEGRAPH, REPORT):
            parser.error(f"no picture {name}; there are {', '.join((*PICTURES, FLAMEGRAPH, REPORT))}")
    args.build = os.path.abspath(args.build)
    folder = os.path.join(args.build, "pictures")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "job.log"), "wb") as log:
        place = os.path.join(tempfile.gettempdir(), "training")  # it is in the pictures
        os.makedirs(place, exist_ok=True)
        shutil.copy(os.path.join(ROOT, "examples", "train.py"), place)
        job = subprocess.Popen([args.python, "train.py"], cwd=place, stdout=log, stderr=log)
    try:
        wait_for_steps(job, os.path.join(folder, "job.log"))
        time.sleep(args.warm_up)
        draw(args, folder, job, library_places(args.python))
        if not args.names or FLAMEGRAPH in args.names:
            draw_flamegraph(args, job)
        if not args.names or REPORT in args.names:
            draw_report(args, folder, job)
    finally:
        job.terminate()
        job.wait()


if __name__ == "__main__":
    main()
