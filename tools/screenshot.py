#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a terminal screen as SVG: `tmux capture-pane -e -p -N -t PANE | tools/screenshot.py --cols 120 > docs/img/x.svg`.

Reads text with SGR escape sequences (ECMA-48 8.3.117; 256 colours and RGB as xterm has them) and writes one <text>
element a run of equal style. No dependency; the README's pictures are made with it.
"""
import argparse
import html
import re
import sys
import unicodedata

SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][0-9A-B]|[=>])")
BASIC = ["#2e3436", "#cc0000", "#4e9a06", "#c4a000", "#3465a4", "#75507b", "#06989a", "#d3d7cf",
         "#555753", "#ef2929", "#8ae234", "#fce94f", "#729fcf", "#ad7fa8", "#34e2e2", "#eeeeec"]
CELL_W, CELL_H, SIZE = 8.4, 18, 14


def indexed(n):
    """xterm's 256 colours: 16 basic, a 6x6x6 cube, 24 greys."""
    if n < 16:
        return BASIC[n]
    if n < 232:
        n -= 16
        levels = [0, 95, 135, 175, 215, 255]
        return "#%02x%02x%02x" % (levels[n // 36], levels[n // 6 % 6], levels[n % 6])
    grey = 8 + 10 * (n - 232)
    return "#%02x%02x%02x" % (grey, grey, grey)


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.dim = self.reverse = self.underline = False

    def colour(self, codes):
        """The colour after 38 or 48; consumes its codes."""
        kind = codes.pop(0) if codes else 5
        if kind == 5:
            return indexed(codes.pop(0) if codes else 7)
        rgb = [codes.pop(0) if codes else 0 for _ in range(3)]
        return "#%02x%02x%02x" % tuple(rgb)

    def apply(self, text):
        codes = [int(c or 0) for c in text.split(";")]
        flags = {1: ("bold", True), 2: ("dim", True), 4: ("underline", True), 7: ("reverse", True),
                 24: ("underline", False), 27: ("reverse", False)}
        while codes:
            c = codes.pop(0)
            if c == 0:
                self.reset()
            elif c == 22:
                self.bold = self.dim = False
            elif c in flags:
                setattr(self, *flags[c])
            elif c in (38, 48):
                setattr(self, "fg" if c == 38 else "bg", self.colour(codes))
            elif c in (39, 49):
                setattr(self, "fg" if c == 39 else "bg", None)
            elif 30 <= c <= 37 or 90 <= c <= 97:
                self.fg = BASIC[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.bg = BASIC[c - 40 if c < 100 else c - 92]

    def key(self, paper, ink):
        fg, bg = self.fg or ink, self.bg or paper
        if self.reverse:
            fg, bg = bg, fg
        return fg, bg, self.bold, self.dim, self.underline


def width(ch):
    if unicodedata.combining(ch):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def runs(line, style, paper, ink):
    """(column, columns, text, style) of one line; `style` carries over to the next line."""
    col, out, at = 0, [], 0
    while at < len(line):
        m = SGR.match(line, at)
        if m:
            style.apply(m.group(1))
            at = m.end()
            continue
        m = OTHER.match(line, at)
        if m:
            at = m.end()
            continue
        key, w = style.key(paper, ink), width(line[at])
        if out and out[-1][3] == key:
            out[-1][1] += w
            out[-1][2] += line[at]
        else:
            out.append([col, w, line[at], key])
        col += w
        at += 1
    return out


def wide(text):
    return sum(width(c) for c in text)


def words(text):
    """(column, text) of what stands between two spaces or more: not every browser keeps these, and a text would be stretched over them."""
    return [(wide(text[:m.start()]), m.group()) for m in re.finditer(r"\S+(?: \S+)*", text)]


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--cols", type=int, default=80)
    ap.add_argument("--paper", default="#1c1c22")
    ap.add_argument("--ink", default="#d0d0d0")
    args = ap.parse_args()
    lines = sys.stdin.read().rstrip("\n").split("\n")
    w, h = args.cols * CELL_W + 20, len(lines) * CELL_H + 20
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}">')
    print("<!-- SPDX-License-Identifier: Apache-2.0 -->")
    print(f'<rect width="100%" height="100%" rx="6" fill="{args.paper}"/>')
    print(f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}">')
    style = Style()
    for row, line in enumerate(lines):
        y = 10 + row * CELL_H
        for col, cols, text, (fg, bg, bold, dim, underline) in runs(line, style, args.paper, args.ink):
            x = 10 + col * CELL_W
            if bg != args.paper:
                print(f'<rect x="{x:.1f}" y="{y}" width="{cols * CELL_W:.1f}" height="{CELL_H}" fill="{bg}"/>')
            for at, word in words(text):
                extra = (' font-weight="bold"' if bold else "") + (' opacity="0.65"' if dim else "")
                extra += ' text-decoration="underline"' if underline else ""
                print(f'<text x="{x + at * CELL_W:.1f}" y="{y + 13.5}" fill="{fg}" textLength="{wide(word) * CELL_W:.1f}"'
                      f' lengthAdjust="spacingAndGlyphs"{extra}>{html.escape(word)}</text>')
    print("</g></svg>")


if __name__ == "__main__":
    main()
