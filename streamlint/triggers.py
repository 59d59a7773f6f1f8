"""Which files can hold a finding at all: those with a trigger, a distinctive literal of a model file's head."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Relevant = Callable[[bytes], bool]
MODELS = Path(__file__).parent / "models"


def relevant(language: str, user_models: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Relevant:
    """The test whether a file's bytes mention CUDA, for a language and the user's own models."""
    return _matcher(builtin(language) | frozenset(word for _, table in user_models for word in _user_words(table)))


@functools.cache
def builtin(language: str) -> frozenset[str]:
    """The triggers of the shipped models. Python and Cython see those of C++ as well: C++ stands in strings, and is called by name."""
    words: set[str] = set()
    for head in _heads():
        if language != "cuda" or head.get("language") == "cuda":
            words.update(head.get("triggers", ()))
    return frozenset(words)


@functools.cache
def seam(language: str) -> Relevant:
    """The test whether a file may call another's functions from Python: it counts only beside a file that mentions CUDA."""
    return _matcher(_seams(language))


@functools.cache
def _seams(language: str) -> frozenset[str]:
    return frozenset(word for head in _heads() if head.get("language") == language for word in head.get("seams", ()))


@functools.cache
def _heads() -> tuple[dict[str, Any], ...]:
    """The heads of the shipped model files: what stands before the first table."""
    from streamlint.config import parse_toml

    return tuple(parse_toml(path.read_bytes().partition(b"\n[")[0], path.name) for path in sorted(MODELS.glob("*.toml")))


def _user_words(table: Mapping[str, Any]) -> list[str]:
    """A user's triggers, and the last parts of the names in the rows: a file may reach CUDA through a wrapper alone."""
    from streamlint.models import last_part, names_of

    words = [*table.get("triggers", ()), *(last_part(name) for row in table.get("call", ()) for name in names_of(row))]
    return [word for word in words if word]


@functools.cache
def _matcher(words: frozenset[str]) -> Relevant:
    if not words:
        return lambda data: False
    patterns = [word.encode() for word in sorted(words)]
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ImportError:  # there are systems without a wheel of it
        search = re.compile(b"|".join(map(re.escape, patterns))).search
        return lambda data: search(data) is not None

    automaton = BytesAhoCorasick(patterns)

    def mentions(data: bytes) -> bool:
        return bool(automaton.find_matches_as_indexes(data))

    return mentions
