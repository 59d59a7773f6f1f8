"""Values of Python literals, from their spelling."""

from __future__ import annotations

import re
import unicodedata

import libcst as cst

_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]+)\}|(\r\n|.))", re.DOTALL)
_BYTES_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(?!)()|(?!)()|(?!)()|(\r\n|.))", re.DOTALL)
MOST_BITS = 4096  # no larger number counts for anything, and Python refuses to print some
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CONTINUED = {"\n": "", "\r\n": "", "\r": ""}
_ESCAPES = _SHORT | _CONTINUED


def number(text: str) -> int | float | complex | None:
    """The value of a number literal; None for what Python itself would refuse, and for what is too large."""
    try:
        if text[-1] in "jJ" and text[:2] not in ("0x", "0X"):
            return complex(text.replace("_", ""))
        value = int(text, 0)
        return value if value.bit_length() <= MOST_BITS else None
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def string(node: cst.SimpleString) -> str | bytes:
    """The value of a string literal. An unknown escape stands for itself, as in Python, but without its warning."""
    prefix = node.prefix.lower()
    quotes = len(node.quote)
    text = node.value[len(prefix) + quotes : -quotes]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "b" in prefix:
        plain = text if "r" in prefix or "\\" not in text else _BYTES_ESCAPE.sub(_unescape, text)
        return plain.encode("latin-1", "replace")
    if "r" in prefix or "\\" not in text:
        return text
    return _ESCAPE.sub(_unescape, text)


def _unescape(found: re.Match[str]) -> str:
    octal, byte, short, long, name, other = found.groups()
    if other is not None:
        return _ESCAPES.get(other, found[0])
    if octal is not None:
        return chr(int(octal, 8))
    if name is not None:
        return _named(name, found[0])
    code = int(byte or short or long, 16)
    return chr(code) if code <= 0x10FFFF else found[0]


def _named(name: str, otherwise: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return otherwise
