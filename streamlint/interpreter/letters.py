"""Text that words are looked for in: how a sign takes a letter's place, and what stands outside of brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from streamlint.operations import BY_PLACE

_PART = re.compile(rf"""[()\[\]{{}}:,{BY_PLACE}]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_NAME = re.compile(r"[^\W\d]\w*")
_LONGEST = 2000  # characters that are read from a place on


def with_letter(text: str, places: Iterable[int], letter: str) -> str:
    """The text with a letter at these places; all else stays where it is."""
    letters: list[str] = []
    for place in places:
        letters = letters or list(text)
        letters[place] = letter
    return "".join(letters) if letters else text


def separators(text: str, begin: int) -> Iterator[re.Match[str]]:
    """The commas (or what took their place) and colons outside of brackets from a place on, and the bracket that ends what begins there."""
    depth = 0
    for part in _PART.finditer(text, begin, begin + _LONGEST):
        if part[0] in "([{":
            depth += 1
        elif part[0] in ")]}":
            depth -= 1
            if depth < 0:
                yield part
                return
        elif not depth and part[0] in (",", ":", BY_PLACE):
            yield part
