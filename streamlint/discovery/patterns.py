"""Path patterns as git reads them.

pathspec decides. It takes longer to import than all the rest of a short run, so it is asked only about paths that a pattern may match:
each pattern has a segment that must be a segment of the path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec  # start-up: without patterns

_MOST_STARS = 4  # in a part of a pattern, and of folders in between
_SET = re.compile(r"\[[^\[\]\\/!^]+\]")
_SPECIAL = re.compile(r"[*?\[\]\\]")


class Patterns:
    """The lines of an ignore file, or a single pattern."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._lines = lines
        asked = [_segment(line) for line in lines]
        self._any = None in asked
        said = [segment for segment in asked if segment]
        self._names = frozenset(segment for segment in said if not _SPECIAL.search(segment))
        self._ends = tuple({segment[1:] for segment in said if segment[0] == "*" and not _SPECIAL.search(segment[1:])})
        rest = {segment for segment in said if _SPECIAL.search(segment) and not segment.endswith(self._ends)}
        self._shapes = "|".join(sorted(map(_shape, rest)))  # compiled when it is needed

    def verdict(self, path: str) -> bool | None:
        """Whether the last pattern that knows a relative path leaves it out; None if none does. A folder has a slash at its end."""
        return self._spec.check_file(path).include if self.may_know(path) else None

    def may_know(self, path: str) -> bool:
        """Whether a pattern may match a path or a folder above it: that none does is certain."""
        if self._any:
            return True
        segments = path.split("/")
        if not self._names.isdisjoint(segments):
            return True
        if self._ends and any(segment.endswith(self._ends) for segment in segments):
            return True
        return bool(self._shapes) and any(map(_compiled(self._shapes).fullmatch, segments))

    @functools.cached_property
    def _spec(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec  # start-up: without patterns

        return GitIgnoreSpec.from_lines(_parsable(self._lines))


@functools.cache
def patterns(lines: tuple[str, ...]) -> Patterns:
    """The patterns of some lines."""
    return Patterns(lines)


@functools.cache
def _compiled(shapes: str) -> re.Pattern[str]:
    return re.compile(shapes, re.DOTALL)


def _segment(line: str) -> str | None:
    """A segment that each path has that a pattern matches: the longest without a wildcard, else the last. None if any path may match.

    Empty: no path matches.
    """
    line = line.rstrip() if not line.endswith("\\ ") else line
    if not line or line.startswith("#") or _takes_years(line):
        return ""
    segments = line.removeprefix("!").strip("/").split("/")
    if "\\" in line or "" in segments:
        return None
    literal = [segment for segment in segments if segment not in ("*", "**")]
    if not literal or any("[" in _SET.sub("", segment) or "]" in _SET.sub("", segment) for segment in literal):
        return None
    return max((segment for segment in literal if not _SPECIAL.search(segment)), key=len, default=literal[-1])


def _shape(segment: str) -> str:
    """A segment with wildcards as a regular expression that matches at least as much."""
    parts = re.split(r"(\*+|\?)", _SET.sub("?", segment))
    return "".join("." if part == "?" else ".*" if part[:1] == "*" else re.escape(part) for part in parts)


def _takes_years(line: str) -> bool:
    """Whether to match a pattern could take years: it is passed over."""
    return any(part.count("*") > _MOST_STARS for part in line.split("/")) or line.count("**") > _MOST_STARS


def _parsable(lines: Iterable[str]) -> Iterator[str]:
    """Patterns that pathspec accepts; git itself skips the others without a word."""
    from pathspec import GitIgnoreSpec  # start-up: without patterns

    for line in lines:
        if _takes_years(line):
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        yield line
