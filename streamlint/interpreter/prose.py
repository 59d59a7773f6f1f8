"""What in a text does not run: comments and docstrings, whose words say nothing of what code does."""

from __future__ import annotations

import re

from streamlint.lines import split_lines

_BLANK = r"(?:[ \t]*(?:\#[^\n]*)?\n)"  # the rest of a line without code
_STRING = r"""\"\"\"(?:[^"\\]|\\.|"(?!""))*\"{3}|\'\'\'(?:[^'\\]|\\.|'(?!''))*\'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_DOCSTRING = rf"{_BLANK}*[ \t]*[rRuU]?(?:{_STRING})(?=[ \t]*(?:\#[^\n]*)?(?:\n|\Z))(?!{_BLANK}*[ \t]*[,)\]}}%.+\"'])"
_FIRST = re.compile(rf"(?s){_DOCSTRING}")
# A string that is a statement of its own, first in its block; any other string, which is kept; or a comment. Each begins with a letter
# of its own: so `re` looks for these letters, and tries nothing at others.
_PYTHON = re.compile(rf"(?s):{_BLANK}{_DOCSTRING}|{_STRING}|\#[^\n]*")
_CUDA = re.compile(
    r"""(?s)R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?<![0-9A-Fa-f]')(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?(?:\*/|\Z)"""
)
_WITHIN = re.compile(r"[^\r\n]")


def without_prose(text: str, language: str) -> list[str]:
    """A text line by line, with nothing where comments and docstrings stand; what is left keeps its place."""
    if language == "cuda":
        return split_lines(_CUDA.sub(lambda match: match[0] if match[0][0] != "/" else _blank(match[0]), text))
    first = _FIRST.match(text)
    begin = first.end() if first is not None else 0
    head = "\n" * text.count("\n", 0, begin)
    return split_lines(head + _PYTHON.sub(_without, text[begin:]))


def _blank(comment: str) -> str:
    """Blanks in place of a comment behind which code may stand."""
    return " " if comment.startswith("//") else _WITHIN.sub(" ", comment)


def _without(match: re.Match[str]) -> str:
    """A string that is kept; what is left of prose: the colon that it stands behind, and its line ends."""
    found = match[0]
    if found[0] in "\"'":
        return found
    return found[: found[0] == ":"] + "\n" * found.count("\n")
