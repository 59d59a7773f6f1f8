"""The words of identifiers, for the few decisions that a user's name may influence: each looks for words of a closed list.

A name is split at underscores, dots and changes of case, and a word counts only as a whole: ``sentiment`` does not say ``time``.
"""

from __future__ import annotations

import functools
import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NUMBER = re.compile(r"[0-9]+")


@functools.lru_cache(maxsize=8192)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and without numbers: ``runWarmup_2`` has ``run`` and ``warmup``."""
    return tuple(word.lower() for word in _WORD.findall(name) if _NUMBER.fullmatch(word) is None)


def says(name: str, words: frozenset[str]) -> bool:
    """Whether one of the words of a name is in a list."""
    return not words.isdisjoint(words_of(name))
