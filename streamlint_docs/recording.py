"""The picture of a terminal in the README: predict, confirm, fix. ``python -m streamlint_docs.recording`` writes it anew.

What the linter prints is printed by it then and there. What the GPU said is the recorded output of a real run,
``docs/recording/verify.txt``; where and when stands in its first line.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamlint_docs import DOCS

PROGRAM = DOCS / "recording" / "best.py"
RECORDED = DOCS / "recording" / "verify.txt"
PICTURE = DOCS / "images" / "recording.svg"
COLUMNS, CELL, ROW, SIZE, ROOM = 82, 8.43, 19, 14, 18  # in characters, and in px
SGR = re.compile(r"\x1b\[([\d;]*)m")
CUT = "  \N{VERTICAL ELLIPSIS} the finding, as above"
# Colours on a light ground and on a dark one, by SGR code; 1 is bold.
COLORS = {
    "31": ("#b3261e", "#ff8a80"),
    "32": ("#1b6e20", "#81c784"),
    "33": ("#8a5a00", "#ffca64"),
    "34": ("#1f4fb5", "#8ab4ff"),
    "35": ("#8a1f8a", "#e29af0"),
    "36": ("#00626e", "#6fd3e0"),
    "note": ("#63676e", "#9aa0a8"),
}
GROUND, INK, FRAME = ("#fbfbfc", "#17181b"), ("#1e2126", "#e4e6ea"), ("#d5d8dd", "#33363c")


def lines() -> Iterator[str]:
    """What the terminal shows, with its escapes."""
    place, recorded = _recorded()
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        shutil.copy(PROGRAM, room)
        yield from _ran(room, "check", PROGRAM.name)
        yield ""
        yield f"\x1b[notem# recorded on {place}\x1b[0m"
        yield f"$ streamlint verify {PROGRAM.name}"
        yield f"\x1b[notem{CUT}\x1b[0m"
        yield from recorded
        yield ""
        yield from _ran(room, "check", "--diff", PROGRAM.name)
        yield ""
        yield from _ran(room, "check", "--fix", PROGRAM.name)


def _ran(room: Path, *words: str) -> Iterator[str]:
    """A command line and what it prints, colours included; results do not depend on the user's own evidence."""
    yield f"$ streamlint {' '.join(words)}"
    env = {key: value for key, value in os.environ.items() if "COLOR" not in key}
    env |= {"FORCE_COLOR": "1", "XDG_DATA_HOME": str(room), "PYTHONPATH": str(DOCS.parent)}
    command = [sys.executable, "-m", "streamlint", *words, "--isolated"]
    done = subprocess.run(command, cwd=room, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode in {0, 1}, done.stdout
    yield from done.stdout.rstrip("\n").split("\n")


def _recorded() -> tuple[str, list[str]]:
    """Where and when it was, and what was printed from the finding's verdict on."""
    head, *text = RECORDED.read_text(encoding="utf-8").rstrip("\n").split("\n")
    (verdict,) = (number for number, line in enumerate(text) if re.match(r"  = (\x1b\[[\d;]*m)?verify", line))
    told = text[verdict:]
    return head.removeprefix("# "), [*told[: told.index("")], text[-1]]


def picture(shown: list[str]) -> str:
    """The lines as SVG, in the reader's light or dark scheme."""
    height = len(shown) * ROW + 2 * ROOM
    width = round(COLUMNS * CELL) + 2 * ROOM
    names = {code: f"c{code}" for code in COLORS}
    light = "".join(f".{names[code]}{{fill:{pair[0]}}}" for code, pair in COLORS.items())
    dark = "".join(f".{names[code]}{{fill:{pair[1]}}}" for code, pair in COLORS.items())
    style = (
        f"text{{font:{SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{INK[0]};white-space:pre}}"
        f"rect{{fill:{GROUND[0]};stroke:{FRAME[0]}}}.b{{font-weight:700}}{light}"
        f"@media(prefers-color-scheme:dark){{text{{fill:{INK[1]}}}rect{{fill:{GROUND[1]};stroke:{FRAME[1]}}}{dark}}}"
    )
    rows = "\n".join(_row(line, ROOM + SIZE + number * ROW) for number, line in enumerate(shown) if line)
    told = "A terminal: streamlint check finds a host read before a copy has ended, verify confirms it on an H200, --fix mends it"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>{told}</title>\n<style>{style}</style>\n"
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>\n{rows}\n</svg>\n'
    )


def _row(line: str, y: int) -> str:
    """One line; each run of a style has its own place and length, so that any monospaced font fits."""
    parts, column, classes = [], 0, ""
    pieces = SGR.split(line.replace("\x1b[notem", "\x1b[999m"))
    for number, piece in enumerate(pieces):
        if number % 2:
            classes = _classes(piece)
            continue
        for run in re.finditer(r"\S+(?: \S+)*", piece):
            x, length = ROOM + (column + run.start()) * CELL, len(run[0]) * CELL
            mark = f' class="{classes}"' if classes else ""
            parts.append(f'<tspan x="{x:.1f}" textLength="{length:.1f}"{mark}>{html.escape(run[0])}</tspan>')
        column += len(piece)
    return f'<text y="{y}">{"".join(parts)}</text>'


def _classes(codes: str) -> str:
    named = ["b" if code == "1" else "cnote" if code == "999" else f"c{code}" for code in codes.split(";") if code not in {"", "0"}]
    return " ".join(named)


if __name__ == "__main__":
    PICTURE.write_text(picture(list(lines())), encoding="utf-8")
