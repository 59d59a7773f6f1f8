"""C++ literals."""

from __future__ import annotations

import re

_LONGEST = 1000
_SUFFIX = re.compile(r"(?:[uU]?(?:ll|LL|[lLzZ])?[uU]?|_\w+)$")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(.)")
_RAW = re.compile(r'(?:u8|[uUL])?R"([^(]*)\((.*)\)\1"', re.S)
_QUOTED = re.compile(r"""(?:u8|[uUL])?(["'])(.*)\1""", re.S)


def number(text: str) -> int | float | None:
    """The value of a number literal, or None if it is written in a way that is not known."""
    text = text.replace("'", "")
    if len(text) > _LONGEST:
        return None
    try:
        if text[:2] in ("0x", "0X"):
            return float.fromhex(text.rstrip("fFlL")) if "p" in text.lower() else int(_SUFFIX.sub("", text), 16)
        if text[:2] in ("0b", "0B"):
            return int(_SUFFIX.sub("", text), 2)
        if "." in text or "e" in text or "E" in text or text[-1:] in "fF":
            return float(text.rstrip("fFlLhH"))
        digits = _SUFFIX.sub("", text)
        return int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits)
    except (ValueError, OverflowError):
        return None


def string(text: str) -> str:
    """The value of a string or character literal."""
    if raw := _RAW.fullmatch(text):
        return raw.group(2)
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return text
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(1), match.group(1)), quoted.group(2))
