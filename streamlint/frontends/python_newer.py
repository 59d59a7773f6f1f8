"""Python whose grammar is newer than the running one's, written as an older one reads it: in the same rows and columns.

``except*`` (3.11), type parameters, ``type`` and an f-string's own quotes in its fields (3.12), ``except`` without parentheses and template
strings (3.14).
"""

from __future__ import annotations

import re
from functools import partial

from streamlint.frontends.python_comments import STRING

_TEXT = re.compile(rf"(?s){STRING}|#[^\r\n]*")
_INNER = re.compile(r"[^\r\n'\"]")
_PARAMETERS = re.compile(r"(?m)^[ \t]*(?:(?:async[ \t]+)?def|class|type)[ \t]+\w+[ \t]*(\[)")
_ALIAS = re.compile(r"(?m)^[ \t]*(type[ \t]+(\w+))(?=[ \t]*(?:\[|=(?!=)))")
_GROUP = re.compile(r"(?m)^[ \t]*except[ \t]*(\*)")
_KINDS = re.compile(r"(?m)^[ \t]*except([ \t]+([^:()\n]*?,)[ \t]+([^:()\n]*?)):")
_FIELD = r"\{(?:[^{}\"\n]|\{[^{}\"\n]*\}|\"[^\"\n]*\")*\}"
_NESTED = rf"\b[fF][rR]?\"(?:[^\"{{\\\n]|\\.|\{{\{{|{_FIELD})*\""
_TEMPLATE = re.compile(r"\b[rR]?([tT])[rR]?(?=['\"])")


def in_older_grammar(text: str) -> str:
    """The text as an older Python reads it; as it stands where nothing in it is newer."""
    for own, other in ("\"'", "'\""):
        text = re.sub(_NESTED.replace('"', own), partial(_quoted, own, other), text)
    masked = _TEXT.sub(lambda found: _INNER.sub(" ", found[0]), text)
    characters = list(text)
    for found in _ALIAS.finditer(masked):
        characters[found.start(1) : found.end(1)] = found[2].ljust(len(found[1]))
    for found in _PARAMETERS.finditer(masked):
        end = _closing(masked, found.start(1))
        characters[found.start(1) : end] = " " * (end - found.start(1))
    for found in _GROUP.finditer(masked):
        characters[found.start(1)] = " "
    for found in _KINDS.finditer(masked):
        characters[found.start(1) : found.end(1)] = f"({found[2]}{found[3]})".ljust(len(found[1]))
    for found in _TEMPLATE.finditer(masked):
        characters[found.start(1)] = "f"
    return "".join(characters)


def _quoted(own: str, other: str, formatted: re.Match[str]) -> str:
    """An f-string whose fields quote otherwise than it does, and without a backslash."""
    return re.sub(_FIELD.replace('"', own), lambda field: field[0].replace(own, other).replace("\\", " "), formatted[0])


def _closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "[") - (text[at] == "]")
        if depth == 0:
            return at + 1
    return start
