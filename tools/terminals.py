#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/dev/terminals.md: probing-top as different terminals show it, on the job of examples/slow_train.py, whose
fault the screens name.

usage: tools/terminals.py [--build DIR] [--python PATH] [--out DIR] [--warm-up S] [NAME ...]

Each runs in a tmux that stands for the terminal: TERM, size, colours and characters are that terminal's. Needs tmux, GNU screen for the
picture of it, and a Python with torch.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time

import pictures
import screenshot

ROOT = pictures.ROOT
VGA = ["#000000", "#aa0000", "#00aa00", "#aa5500", "#0000aa", "#aa00aa", "#00aaaa", "#aaaaaa",
       "#555555", "#ff5555", "#55ff55", "#ffff55", "#5555ff", "#ff55ff", "#55ffff", "#ffffff"]
XTERM = ["#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
         "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"]
DARK = {"paper": "#1c1c22", "ink": "#d0d0d0"}
LIGHT = {"paper": "#ffffff", "ink": "#1e1e1e", "palette": XTERM}
# The kernel's own font has the characters of code page 437 (drivers/tty/vt/cp437.uni of Linux); for others it draws a box.
CONSOLE = {"paper": "#000000", "ink": "#aaaaaa", "palette": VGA, "bright_bold": True,
           "characters": set(bytes(range(128, 256)).decode("cp437")) | {chr(c) for c in range(128)} | set("•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼⌂")}

OVERVIEW = ("overview", [], r"INPUT-BOUND")
FLAME = ("flame", ["/parse_sample", "Enter"], r"total +\d")
THREADS = ("threads", [], r"MainThread")
COPY = ("threads", ["y"], r"MainThread")

SCREEN = ["screen", "-c", "/dev/null"]

# name: TERM, size, options, what stands around the program, look of the terminal, (screen, keys, what must stand on it)
TERMINALS = {
    "tmux": ("tmux-256color", (80, 24), [], [], DARK, OVERVIEW),
    "tmux-copy": ("tmux-256color", (80, 24), [], [], DARK, COPY),
    "screen": ("xterm-256color", (80, 24), [], SCREEN, DARK, OVERVIEW),
    "screen-copy": ("xterm-256color", (80, 24), [], SCREEN, DARK, COPY),
    "linux-console": ("linux", (80, 25), [], [], CONSOLE, OVERVIEW),
    "linux-console-flame": ("linux", (80, 25), [], [], CONSOLE, FLAME),
    "xterm": ("xterm", (80, 24), [], [], LIGHT, OVERVIEW),
    "xterm-flame": ("xterm", (80, 24), [], [], LIGHT, FLAME),
    "xterm-256color": ("xterm-256color", (80, 24), [], [], DARK, FLAME),
    "light": ("xterm-256color", (80, 24), [], [], LIGHT, OVERVIEW),
    "light-flame": ("xterm-256color", (80, 24), [], [], LIGHT, FLAME),
    "16-colors": ("xterm-256color", (80, 24), ["--color", "16"], [], DARK, OVERVIEW),
    "16-colors-flame": ("xterm-256color", (80, 24), ["--color", "16"], [], DARK, FLAME),
    "no-colors": ("vt100", (80, 24), [], [], DARK, OVERVIEW),
    "phone": ("xterm-256color", (40, 12), [], [], DARK, OVERVIEW),
    "phone-threads": ("xterm-256color", (40, 12), [], [], DARK, THREADS),
    "phone-flame": ("xterm-256color", (40, 12), [], [], DARK, FLAME),
}


def terminfo(folder, term):
    """A folder with that type of terminal, less one ability: what a program erases in a colour is not among what tmux captures."""
    described = subprocess.run(["infocmp", "-x", term], capture_output=True, text=True, check=True).stdout
    place = os.path.join(folder, "terminfo")
    os.makedirs(place, exist_ok=True)
    subprocess.run(["tic", "-x", "-o", place, "-"], input=re.sub(r"\bbce, ?", "", described), text=True, check=True)
    return place


def draw(args, folder, job, places, name):
    term, size, options, around, look, (screen, keys, pattern) = TERMINALS[name]
    if around and not shutil.which(around[0]):
        raise SystemExit(f"terminals: needs {around[0]}")
    program = [os.path.join(args.build, "probing-top"), "-d", "250ms", *options, str(job.pid)]
    setup = f"set -g window-style bg={look['paper']},fg={look['ink']}\n"  # what it answers when it is asked for its background
    terminal = pictures.Terminal(folder, name, ["env", "TERM=" + term, "TERMINFO=" + terminfo(folder, term), *around, *program], size, setup)
    try:
        terminal.wait_for(r"steps/s|CONN")
        terminal.keys([":" + screen, "Enter"])
        terminal.wait_for(pattern)
        time.sleep(args.fill)
        terminal.keys(keys)
        terminal.wait_for(pattern)
        time.sleep(1)
        pictures.write_picture(args, "terminal-" + name, screenshot.picture(terminal.screen(places), size[0], **look))
    finally:
        terminal.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "dev", "img"))
    parser.add_argument("--warm-up", type=float, default=15, help="seconds that the job trains before the first picture")
    parser.add_argument("--fill", type=float, default=8, help="seconds in which a screen fills")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of " + ", ".join(TERMINALS))
    args = parser.parse_args()
    for name in args.names:
        if name not in TERMINALS:
            parser.error(f"no terminal {name}; there are {', '.join(TERMINALS)}")
    args.build = os.path.abspath(args.build)
    folder = os.path.join(args.build, "pictures")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(args.out, exist_ok=True)
    places = [*pictures.library_places(args.python), (folder, "~/.local/state")]
    with pictures.training(args, folder, "slow_train.py") as job:
        for name in args.names or TERMINALS:
            draw(args, folder, job, places, name)


if __name__ == "__main__":
    main()
