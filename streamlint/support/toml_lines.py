"""The line on which a key of a TOML file stands. TOML parsers of Python keep no positions."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from streamlint import TYPE_CHECKING
from streamlint.support import toml

if TYPE_CHECKING:
    from typing import Any

_HEAD = re.compile(r"\s*\[\[([\w\s.-]+)\]\]\s*(?:#.*)?$")
MOST_LINES = 2000  # a statement longer than this is not followed


@functools.lru_cache(maxsize=8)
def heads_of(text: str) -> Mapping[tuple[str | int, ...], int]:
    """The lines of the heads of tables in lists (``[[models.call]]``), by the keys and numbers that lead to a table.

    All are found in one pass; a list is left out where the parser counts other tables than there are heads, as of a head in a string.
    """
    lines: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    for row, line in enumerate(text.splitlines(), 1):
        if (found := _HEAD.match(line)) is None:
            continue
        key: tuple[str | int, ...] = ()
        for part in found[1].split("."):
            key = (*key, counts[key] - 1, part.strip()) if key in counts else (*key, part.strip())
        counts[key] = counts.get(key, 0) + 1
        lines[(*key, counts[key] - 1)] = row
    document = _parsed(text.splitlines(keepends=True)) or {}
    right = {key for key, count in counts.items() if _holds(document, (*key, count - 1)) and not _holds(document, (*key, count))}
    return {key: row for key, row in lines.items() if key[:-1] in right}


def line_of(text: str, keys: Sequence[str | int]) -> int | None:
    """The line of the statement that sets a key, or a row of a list; None if none does.

    The parser itself decides: the statement begins where the text above it is a document without the key, and it ends where the
    text up to there is a document with the key.
    """
    if (head := heads_of(text).get(tuple(keys))) is not None:
        return head
    lines = text.splitlines(keepends=True)
    word = next((key for key in reversed(keys) if isinstance(key, str)), "")
    for start, line in enumerate(lines):
        if word not in line:
            continue
        above = _parsed(lines[:start])
        if above is None or _holds(above, keys):
            continue
        for end in range(start + 1, min(len(lines), start + MOST_LINES) + 1):
            if (document := _parsed(lines[:end])) is not None:
                if _holds(document, keys):
                    return start + 1
                break
    return None


def _parsed(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return toml.parse("".join(lines))
    except toml.TomlError:
        return None


def _holds(document: object, keys: Sequence[str | int]) -> bool:
    for key in keys:
        try:
            document = document[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return False
    return True
