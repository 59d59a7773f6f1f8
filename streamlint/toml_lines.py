"""The line on which a key of a TOML file stands. TOML parsers of Python keep no positions."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_LINES = 2000  # a statement longer than this is not followed


def line_of(text: str, keys: Sequence[str | int]) -> int | None:
    """The line of the statement that sets a key, or a row of a list; None if none does.

    The parser itself decides: the statement begins where the text above it is a document without the key, and it ends where the
    text up to there is a document with the key.
    """
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
        return tomllib.loads("".join(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _holds(document: object, keys: Sequence[str | int]) -> bool:
    for key in keys:
        try:
            document = document[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return False
    return True
