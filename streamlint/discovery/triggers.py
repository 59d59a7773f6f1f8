"""Which files can hold a finding at all: those with a trigger, a distinctive literal of a model file's head."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping

from streamlint import TYPE_CHECKING
from streamlint.support.lazy import lazy
from streamlint.support.shipped import head_of, model_files

if TYPE_CHECKING:
    from typing import Any

    from streamlint import models
else:
    (models,) = lazy("streamlint", "models")

Relevant = Callable[[bytes], bool]
MOST_WORDS = 40  # of one matcher


def relevant(language: str, user_models: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Relevant:
    """The test whether a file's bytes mention CUDA, for a language and the user's own models."""
    return any_of(builtin(language) | frozenset(word for _, table in user_models for word in _user_words(table)))


@functools.cache
def builtin(language: str) -> frozenset[str]:
    """The triggers of the shipped models. Python and Cython see those of C++ as well: C++ stands in strings, and is called by name."""
    words: set[str] = set()
    for head in _heads():
        if language != "cuda" or head.get("language") == "cuda":
            words.update(head.get("triggers", ()))
    return frozenset(words)


@functools.cache
def libraries() -> dict[str, Relevant]:
    """The test whether the bytes of C++ mention a library of CUDA, for each library."""
    words: dict[str, set[str]] = {}
    for head in _heads():
        if head.get("language") == "cuda":
            words.setdefault(head["library"], set()).update(head.get("triggers", ()))
    return {name: any_of(frozenset(own)) for name, own in sorted(words.items()) if own}


@functools.cache
def seam(language: str) -> Relevant:
    """The test whether a file may call another's functions from Python: it counts only beside a file that mentions CUDA."""
    return any_of(_seams(language))


@functools.cache
def _seams(language: str) -> frozenset[str]:
    return frozenset(word for head in _heads() if head.get("language") == language for word in head.get("seams", ()))


@functools.cache
def _heads() -> tuple[dict[str, Any], ...]:
    """The heads of the shipped model files: what stands before the first table."""
    return tuple(map(head_of, model_files()))


def _user_words(table: Mapping[str, Any]) -> list[str]:
    """A user's triggers, and the last parts of the names in the rows: a file may reach CUDA through a wrapper alone."""
    words = [*table.get("triggers", ()), *(models.last_part(name) for row in table.get("call", ()) for name in models.names_of(row))]
    return [word for word in words if word]


@functools.cache
def any_of(words: frozenset[str]) -> Relevant:
    """The test whether a file's bytes hold one of some words."""
    if not words:
        return lambda data: False
    # What holds another word of these says nothing new.
    distinct = [word.encode() for word in sorted(words) if not any(other in word for other in words if other != word)]
    try:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind  # start-up: for runs that read a file
    except ImportError:  # there are systems without a wheel of it
        search = re.compile(b"|".join(map(re.escape, distinct))).search
        return lambda data: search(data) is not None

    # This kind of matcher is by far the fastest, but only with few words.
    shares = [distinct[start : start + MOST_WORDS] for start in range(0, len(distinct), MOST_WORDS)]
    automata = [BytesAhoCorasick(share, matchkind=MatchKind.LeftmostLongest) for share in shares]

    def mentions(data: bytes) -> bool:
        return any(automaton.find_matches_as_indexes(data) for automaton in automata)

    return mentions
