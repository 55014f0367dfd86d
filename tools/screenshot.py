#!/usr/bin/env python3
"""A picture of a terminal: tmux capture-pane -e -N -p | tools/screenshot.py [TITLE] > picture.svg

Reads the screen with its colours from tmux, and writes it as SVG. docs/top.svg is made in this way:
tmux new-session -d -x 100 -y 26 'luaspy top --pid PID'; tmux capture-pane -e -N -p | tools/screenshot.py 'luaspy top' > docs/top.svg
"""
import re
import sys
import unicodedata
from html import escape

COLUMN, LINE, SIZE = 8.4, 20, 14          # px; an advance of 0.6 em, as in most monospaced fonts
MARGIN, BAR = 18, 40                      # px; around the text, above it
INK, GROUND, FRAME, SOFT = "#d6dae2", "#14171c", "#1d2127", "#8b93a1"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
BASIC = ["#2a2f38", "#f0716f", "#8cc570", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d6dae2",
         "#5c6370", "#ff8f8c", "#a8dd8c", "#f2d399", "#84c4ff", "#dc9df0", "#79d0da", "#ffffff"]


def colour(number):
    """One of xterm's 256 colours."""
    if number < 16:
        return BASIC[number]
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return f"#{level:02x}{level:02x}{level:02x}"
    number -= 16
    levels = [0, 95, 135, 175, 215, 255]
    return "#{:02x}{:02x}{:02x}".format(levels[number // 36], levels[number // 6 % 6], levels[number % 6])


def apply(codes, style):
    """Select graphic rendition (ECMA-48, 8.3.117), as far as tmux writes it."""
    codes = [int(code or 0) for code in codes.split(";")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style.clear()
        elif code in (1, 4, 7):
            style[{1: "bold", 4: "underlined", 7: "reverse"}[code]] = True
        elif code in (22, 24, 27):
            style.pop({22: "bold", 24: "underlined", 27: "reverse"}[code], None)
        elif code in (38, 48) and codes and codes[0] == 5:
            style["ink" if code == 38 else "ground"] = colour(codes[1])
            del codes[:2]
        elif code in (38, 48) and codes and codes[0] == 2:
            style["ink" if code == 38 else "ground"] = "#{:02x}{:02x}{:02x}".format(*codes[1:4])
            del codes[:4]
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["ink"] = BASIC[code - 30 if code < 40 else code - 82]
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style["ground"] = BASIC[code - 40 if code < 50 else code - 92]
        elif code in (39, 49):
            style.pop("ink" if code == 39 else "ground", None)


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def runs(line, style):
    """Pieces of a line with the same style: (column, text, style). `style` continues in the next line."""
    column = 0
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            apply(piece[2:-1], style)
            continue
        piece = re.sub(r"\x1b[()].|[\x00-\x1f\x7f]", "", piece)
        for text in re.findall(r"━+|[^━]+", piece):
            yield column, text, dict(style)
            column += width(text)


def draw(column, text, style, y):
    x, w = MARGIN + column * COLUMN, width(text) * COLUMN
    ink, ground = style.get("ink", INK), style.get("ground")
    if style.get("reverse"):
        ink, ground = ground or GROUND, ink
    if ground:
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{w + 0.4:.1f}" height="{LINE}" fill="{ground}"/>'
    if text.startswith("━"):
        yield f'<rect x="{x:.1f}" y="{y + LINE / 2 - 2.5:.1f}" width="{w + 0.2:.1f}" height="5" fill="{ink}"/>'
        return
    # Words are separate from blanks, so that every word is in its column whatever the font is.
    for word in re.finditer(r"\S+(?: \S+)*", text):
        begin, size = x + width(text[:word.start()]) * COLUMN, width(word.group()) * COLUMN
        look = f' fill="{ink}"' if ink != INK else ""
        look += ' font-weight="600"' if style.get("bold") else ""
        look += ' text-decoration="underline"' if style.get("underlined") else ""
        yield f'<text x="{begin:.1f}" y="{y + 14.5:.1f}" textLength="{size:.1f}"{look}>{escape(word.group())}</text>'


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(width(re.sub(r"\x1b\[[0-9;]*m|\x1b[()].", "", line)) for line in lines)
    w, h = columns * COLUMN + 2 * MARGIN, len(lines) * LINE + BAR + MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" font-family="{FONT}" font-size="{SIZE}" fill="{INK}" xml:space="preserve">')
    print(f'<rect width="{w:.0f}" height="{h:.0f}" rx="9" fill="{FRAME}"/>')
    print(f'<path d="M0 {BAR - 8}h{w:.0f}v{h - BAR - 1:.0f}a9 9 0 0 1-9 9H9a9 9 0 0 1-9-9z" fill="{GROUND}"/>')
    for i, dot in enumerate(["#f0716f", "#e5c07b", "#8cc570"]):
        print(f'<circle cx="{MARGIN + 2 + 20 * i}" cy="16" r="5.5" fill="{dot}"/>')
    if len(sys.argv) > 1:
        print(f'<text x="{w / 2:.0f}" y="20.5" text-anchor="middle" font-size="13" fill="{SOFT}">{escape(sys.argv[1])}</text>')
    style = {}
    for number, line in enumerate(lines):
        for column, text, look in runs(line, style):
            for element in draw(column, text, look, BAR + number * LINE):
                print(element)
    print("</svg>")


main()
