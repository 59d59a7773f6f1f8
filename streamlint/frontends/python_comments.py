"""Python without its comments: they say nothing to whoever lowers and runs it, and an edit of one changes nothing that is found.

What is left keeps its place: a comment ends its line, so it is cut off, with the blanks before it. Those stay that declare something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.support.declared_words import COMMENT

# What no alternative begins with is passed over in one go, in a long string as well.
STRING = (
    r'''"(?:""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*")'''
    r"""|'(?:''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*')"""
)
# A stretch without a comment; a quote that opens no string is an error of syntax, which the parser reports.
_CODE = re.compile(rf"(?s)(?:[^#\"']+|{STRING}|[\"'])+")
# An f-string that may hold its own quote, as Python 3.12 lets it.
_NESTED = re.compile(r"""[fF][rR]?(?:"[^"\n]*\{[^}"\n]*"|'[^'\n]*\{[^}'\n]*')""")
_OPEN = re.compile(r"""\{[^}\n"']*["']""")  # what such a string holds: braces are found sooner than quotes
_LINE = re.compile(r"[^\r\n]*")


def without_comments(text: str) -> str:
    """A text of Python as it runs; as it stands where a line ends or begins no string for sure."""
    made = text.rstrip() + "\n" if "#" not in text else text if "\0" in text or _is_nested(text) else _cut(text)
    return text if made == text else made  # a long run holds it once


def _is_nested(text: str) -> bool:
    at = 0
    while (found := _OPEN.search(text, at)) is not None:  # each line once
        start, at = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.end()) + 1 or len(text)
        if _NESTED.search(text, start, at) is not None:
            return True
    return False


def _cut(text: str) -> str:
    found: list[str] = []
    for code, comment in _parts(text):
        kept = COMMENT.search(comment) if "streamlint:" in comment else None
        found.append(code + comment if kept is not None else code.rstrip(" \t") if comment else code)
    return "".join(found).rstrip() + "\n"


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a text of Python, each with its offset."""
    at = 0
    for code, comment in _parts(text):
        if comment:
            yield at + len(code), comment
        at += len(code) + len(comment)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Stretches of code, each with the comment behind it."""
    at, end = 0, len(text)
    while at < end:
        code = _CODE.match(text, at)
        begin, at = at, code.end() if code is not None else at
        comment = _LINE.match(text, at)
        after = comment.end() if comment is not None and at < end else end
        yield text[begin:at], text[at:after]
        at = after
