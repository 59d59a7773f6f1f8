"""Which finding stands where several are at one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamlint.findings import Category, Finding

# Of the codes on one operation the first of these wins; others follow their category (semantics: cause before effect).
_PRECEDENCE = ("SL013", "SL018", "SL014", "SL027", "SL026")
# Among stalls the more specific one: a wait for the whole device before the read of a value, and before what an allocator does.
_STALLS = ("SL011", "SL010", "SL021", "SL020")
_BY_CATEGORY = (Category.ERROR, Category.DEADLOCK, Category.RACE, Category.STALL, Category.PORTABILITY)


def best(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding a place and code: the one with the shortest trail."""
    best: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        key = (finding.span, finding.code)
        held = best.get(key)
        if held is None or (len(finding.trail), finding.message) < (len(held.trail), held.message):
            best[key] = finding
    return best.values()


def winners(findings: Iterable[Finding]) -> Iterator[Finding]:
    """One code an operation; the others are listed as related."""
    places: dict[Any, list[Finding]] = {}
    for finding in best(findings):
        places.setdefault(finding.span, []).append(finding)
    for group in places.values():
        group.sort(key=_rank)
        winner, *others = group
        yield replace(winner, related=tuple(f.code for f in others)) if others else winner


def _rank(finding: Finding) -> tuple[int, int, int, str]:
    first = _PRECEDENCE.index(finding.code) if finding.code in _PRECEDENCE else len(_PRECEDENCE)
    stall = _STALLS.index(finding.code) if finding.code in _STALLS else len(_STALLS)
    return (first, _BY_CATEGORY.index(finding.category), stall, finding.code)
