"""What in a text does not run: comments and docstrings, whose words say nothing of what code does."""

from __future__ import annotations

import re

from streamlint.lines import split_lines

_BLANK = r"(?:[ \t]*(?:\#[^\n]*)?\n)"  # the rest of a line without code
_STRING = r"""(?:\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|\'{3}(?:[^'\\]|\\.|'(?!''))*\'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
# A string that is a statement of its own, first in its block; any other string, which is kept; or a comment.
_PYTHON = re.compile(
    rf"(?s)(?P<docstring>(?:\A|:{_BLANK}){_BLANK}*[ \t]*[rRuU]?{_STRING}(?=[ \t]*(?:\#[^\n]*)?(?:\n|\Z))(?!{_BLANK}*[ \t]*[,)\]}}%.+\"']))"
    rf"|(?P<kept>{_STRING})"
    r"|\#[^\n]*"
)
_CUDA = re.compile(
    r"""(?s)(?P<kept>R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')|//[^\n]*|/\*.*?(?:\*/|\Z)"""
)
_WITHIN = re.compile(r"[^\r\n]")


def without_prose(text: str, language: str) -> list[str]:
    """A text line by line, with nothing where comments and docstrings stand; what is left keeps its place."""
    if language == "cuda":
        return split_lines(_CUDA.sub(lambda match: match["kept"] or _blank(match[0]), text))
    return split_lines(_PYTHON.sub(lambda match: match["kept"] or _ends(match), text))


def _blank(comment: str) -> str:
    """Blanks in place of a comment behind which code may stand."""
    return " " if comment.startswith("//") else _WITHIN.sub(" ", comment)


def _ends(match: re.Match[str]) -> str:
    """What is left of prose: the colon that it stands behind, and its line ends."""
    head = ":" if match["docstring"] is not None and match[0][0] == ":" else ""
    return head + "\n" * match[0].count("\n")
