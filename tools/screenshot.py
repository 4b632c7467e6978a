#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a terminal screen as SVG: `tmux capture-pane -e -p -N -t PANE | tools/screenshot.py --cols 120 > docs/img/x.svg`;
for tools/pictures.py also many screens, one after the other, as an SVG that moves.

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
MISSING = "\u25a0"  # what stands for a character that the font lacks
PAPER, INK = "#1c1c22", "#d0d0d0"


def indexed(n, palette=None):
    """xterm's 256 colours: 16 basic, a 6x6x6 cube, 24 greys."""
    if n < 16:
        return (palette or BASIC)[n]
    if n < 232:
        n -= 16
        levels = [0, 95, 135, 175, 215, 255]
        return "#%02x%02x%02x" % (levels[n // 36], levels[n // 6 % 6], levels[n % 6])
    grey = 8 + 10 * (n - 232)
    return "#%02x%02x%02x" % (grey, grey, grey)


class Style:
    """`palette`: the 16 basic colours; `bright_bold`: bold text has the bright half of them, as on a console; `characters`: all that the
    font has, None: any."""

    def __init__(self, palette=BASIC, bright_bold=False, characters=None):
        self.palette, self.bright_bold, self.characters = palette, bright_bold, characters
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.dim = self.reverse = self.underline = False

    def colour(self, codes):
        """The colour after 38 or 48; consumes its codes."""
        kind = codes.pop(0) if codes else 5
        if kind == 5:
            return indexed(codes.pop(0) if codes else 7, self.palette)
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
                self.fg = self.palette[c - 30 if c < 90 else c - 82]
            elif 40 <= c <= 47 or 100 <= c <= 107:
                self.bg = self.palette[c - 40 if c < 100 else c - 92]

    def key(self, paper, ink):
        fg, bg = self.fg or ink, self.bg or paper
        if self.bold and self.bright_bold:
            fg = dict(zip(self.palette[:8], self.palette[8:])).get(fg, fg)
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
        shown = line[at] if style.characters is None or line[at] in style.characters else MISSING
        if out and out[-1][3] == key:
            out[-1][1] += w
            out[-1][2] += shown
        else:
            out.append([col, w, shown, key])
        col += w
        at += 1
    return out


def wide(text):
    return sum(width(c) for c in text)


def words(text):
    """(column, text) of what stands between two spaces or more: not every browser keeps these, and a text would be stretched over them."""
    return [(wide(text[:m.start()]), m.group()) for m in re.finditer(r"\S+(?: \S+)*", text)]


def row_marks(line, row, style, paper, ink):
    """The marks of one line of a screen; `style` carries over to the next line."""
    out, y = [], 10 + row * CELL_H
    for col, cols, text, (fg, bg, bold, dim, underline) in runs(line, style, paper, ink):
        x = 10 + col * CELL_W
        if bg != paper:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{cols * CELL_W:.1f}" height="{CELL_H}" fill="{bg}"/>')
        for at, word in words(text):
            extra = (' font-weight="bold"' if bold else "") + (' opacity="0.65"' if dim else "")
            extra += ' text-decoration="underline"' if underline else ""
            extra += ' lengthAdjust="spacingAndGlyphs"' if not word.isascii() else ""  # blocks and lines leave no gaps
            out.append(f'<text x="{x + at * CELL_W:.1f}" y="{y + 13.5}" fill="{fg}" textLength="{wide(word) * CELL_W:.1f}"{extra}>'
                       f'{html.escape(word)}</text>')
    return "\n".join(out)


def screen_rows(text, paper, ink, **look):
    style = Style(**look)
    return [row_marks(line, row, style, paper, ink) for row, line in enumerate(text.rstrip("\n").split("\n"))]


def page(cols, rows, paper, style, body):
    w, h = cols * CELL_W + 20, rows * CELL_H + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}">'
    return "\n".join([head, "<!-- SPDX-License-Identifier: Apache-2.0 -->", *([f"<style>{style}</style>"] if style else []),
                      f'<rect width="100%" height="100%" rx="6" fill="{paper}"/>',
                      f'<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}">', body, "</g></svg>\n"])


def picture(text, cols, paper=PAPER, ink=INK, **look):
    """`look`: of Style."""
    rows = screen_rows(text, paper, ink, **look)
    return page(cols, len(rows), paper, "", "\n".join(row for row in rows if row))


def spans(values):
    """[(first, end, value)] of equal values that follow each other."""
    out = []
    for at, value in enumerate(values):
        if out and out[-1][2] == value:
            out[-1][1] = at + 1
        else:
            out.append([at, at + 1, value])
    return out


def animation(frames, cols, paper=PAPER, ink=INK):
    """
    One SVG of [(seconds, text, caption)], each shown that long, without end; a line that does not change is drawn once. Viewers
    that move nothing (prefers-reduced-motion, printing) show the last frame.
    """
    screens = [screen_rows(text, paper, ink) for _, text, _ in frames]
    height = max(map(len, screens))
    lines = [[screen[row] if row < len(screen) else "" for screen in screens] for row in range(height)]
    lines.append([row_marks(f"\x1b[1;38;5;16;48;5;221m {caption}" + " " * (cols - 1 - wide(caption)), height + 0.5, Style(), paper, ink)
                  for _, _, caption in frames])
    ends, total = [0.0], 0.0
    for seconds, _, _ in frames:
        total += seconds
        ends.append(total)
    rules, body, named = [], [], {}
    for line in lines:
        for first, end, marks in spans(line):
            if not marks:
                continue
            if (first, end) == (0, len(frames)):
                body.append(marks)
                continue
            if (first, end) not in named:
                named[first, end] = name = f"f{len(named)}"
                steps = {0.0: "hidden", 100 * ends[first] / total: "visible"}
                if end < len(frames):
                    steps[100 * ends[end] / total] = "hidden"
                rules.append(f"@keyframes {name}{{" + "".join(f"{at:.3f}%{{visibility:{seen}}}" for at, seen in steps.items()) + "}"
                             f".{name}{{animation-name:{name}" + (";visibility:visible" if end == len(frames) else "") + "}")
            body.append(f'<g class="f {named[first, end]}">{marks}</g>')
    style = (f".f{{visibility:hidden;animation:{total:.2f}s step-end infinite}}" + "".join(rules)
             + "@media (prefers-reduced-motion:reduce),print{.f{animation:none!important}}")
    return page(cols, height + 2, paper, style, "\n".join(body))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--cols", type=int, default=80)
    ap.add_argument("--paper", default=PAPER)
    ap.add_argument("--ink", default=INK)
    args = ap.parse_args()
    sys.stdout.write(picture(sys.stdin.read(), args.cols, args.paper, args.ink))


if __name__ == "__main__":
    main()
