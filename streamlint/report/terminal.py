"""Colours, and text that is safe to print."""

from __future__ import annotations

import os
import re
import sys
import unicodedata

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

STYLES = {
    "error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;32", "frame": "34", "strong": "1", "label": "36", "dim": "2",
}  # fmt: skip
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_AGENT = re.compile(r"(?<=#)#(?=vso\[)", re.IGNORECASE)
_COMMAND = re.compile(r"^(\s*)(?=::[^:])", re.M)


class Paint:
    """Wraps text in ANSI styles, or leaves it alone."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to colour: ``always`` and ``never`` are obeyed, ``auto`` asks the environment, then the stream."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def plain(text: str) -> str:
    """The text without anything that a terminal would obey, or an agent of Azure Pipelines, which takes ``##vso[`` anywhere in a line.

    Every sign keeps its column.
    """
    instead = "\N{REPLACEMENT CHARACTER}" if _speaks_unicode() else "?"
    text = CONTROL.sub(instead, text)
    return _AGENT.sub(instead, text) if "##" in text else text


def line(text: str) -> str:
    """The text on one line: for names, which may hold line ends."""
    return plain(text).replace("\n", "\N{REPLACEMENT CHARACTER}" if _speaks_unicode() else "?")


def tame(text: str) -> str:
    """Lines of which none begins with two colons: GitHub takes such a line of a job's output for a command."""
    return _COMMAND.sub("\\1\N{WORD JOINER}", text) if "::" in text else text


def printable(text: str) -> str:
    """What may be printed beside a report: messages with the names and words that somebody else has chosen."""
    return tame(plain(text))


def width(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def link(text: str, address: str) -> str:
    """A terminal hyperlink."""
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def _speaks_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"
