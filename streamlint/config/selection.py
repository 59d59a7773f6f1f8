"""Which rules run: selectors of the configuration and of the command line, in layers as in ruff."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from streamlint.checks.catalog import UNREADABLE, UNUSED, code_of, entries
from streamlint.support.errors import ConfigError, did_you_mean
from streamlint.support.records import record

ALL = "ALL"


@record(frozen=True, slots=True)
class Selectors:
    """What one place (a file, the command line) says about rules. ``select`` starts afresh, the others change what is there."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        return (self.select or ()) + self.extend_select

    @property
    def unwanted(self) -> tuple[str, ...]:
        return self.ignore + self.extend_ignore


def is_widest(layers: Sequence[Selectors]) -> bool:
    """Whether ``ALL`` is in force, which also turns on what is opt-in inside a rule."""
    widest = False
    for layer in layers:
        if layer.select is not None:
            widest = False
        widest = (widest or ALL in layer.wanted) and ALL not in layer.unwanted
    return widest


@functools.cache
def selected(layers: tuple[Selectors, ...], preview: bool) -> frozenset[str]:
    """The codes that the layers turn on, later layers over earlier ones.

    Raises ConfigError for a word that names no rule.
    """
    levels = {"on", "preview"} if preview else {"on"}
    codes = {code for code, rule in entries().items() if rule.default in levels}
    for layer in layers:
        changes = _changes(layer, preview)
        if layer.select is not None:
            codes = set()
        codes |= {code for code, on in changes.items() if on}
        codes -= {code for code, on in changes.items() if not on}
    return frozenset(codes)


def expand(selectors: Iterable[str]) -> frozenset[str]:
    """All codes that the selectors cover, in their widest reading.

    Raises ConfigError for a word that names no rule.
    """
    return frozenset(code for selector in selectors for code in _covered(selector))


def names_unreadable(words: Iterable[str]) -> bool:
    """Whether one of some words names SL000 itself: prefixes and ``ALL`` leave it alone."""
    return any(code_of().get(word) == UNREADABLE for word in words)


def _changes(layer: Selectors, preview: bool) -> dict[str, bool]:
    """Rules that a layer turns on or off: the longer selector wins, and off wins among equals."""
    changes: dict[str, bool] = {}
    steps = [(_weight(word), False, word) for word in layer.wanted] + [(_weight(word), True, word) for word in layer.unwanted]
    for _, off, word in sorted(steps):
        covered = _covered(word) if off else _turned_on(word, preview)
        changes.update(dict.fromkeys(covered, not off))
    return changes


def _weight(selector: str) -> int:
    if selector == ALL:
        return 0
    return 100 if selector in code_of() else len(selector)


def _turned_on(selector: str, preview: bool) -> list[str]:
    """What a selector turns on: a prefix leaves preview rules alone unless they are asked for."""
    covered = _covered(selector)
    if selector == ALL or selector in code_of() or preview:
        return covered
    return [code for code in covered if entries()[code].default != "preview"]


def _covered(selector: str) -> list[str]:
    if code := code_of().get(selector):
        return [code]
    codes = [code for code in entries() if code not in (UNREADABLE, UNUSED)]
    if selector == ALL:
        return codes
    covered = [code for code in codes if selector and code.startswith(selector)]
    if not covered and not (selector and "SL".startswith(selector)):
        raise ConfigError(f"unknown rule '{selector}'{did_you_mean(selector, [*code_of(), ALL])}")
    return covered
