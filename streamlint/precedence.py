"""Which finding stands where several are at one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from streamlint.findings import Category, Finding

# Of the codes on one operation the first of these wins; others follow their category (semantics: cause before effect).
_PRECEDENCE = ("SL013", "SL018", "SL014", "SL027", "SL026")
# What explains a conflict of SL005 to SL008: work on the wrong stream.
_CAUSES = (*_PRECEDENCE, "SL002")
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
    """One code an operation, and one a conflicting pair: the others are listed as related."""
    places: dict[Any, list[Finding]] = {}
    for finding in _without_consequences(list(best(findings))):
        places.setdefault(finding.span, []).append(finding)
    for group in places.values():
        group.sort(key=_rank)
        winner, *others = group
        related = (*winner.related, *(f.code for f in others))
        yield replace(winner, related=related) if others else winner


def _without_consequences(findings: list[Finding]) -> Iterator[Finding]:
    """A conflict falls where one of its accesses has a finding of its own that names the cause."""
    causes = {finding.span: finding for finding in findings if finding.code in _CAUSES}
    lost: dict[Any, list[str]] = {}
    kept = []
    for finding in findings:
        cause = next((causes[span] for span in finding.pair if span in causes), None)
        if cause is None or finding.code in _CAUSES:
            kept.append(finding)
        else:
            lost.setdefault(cause.span, []).append(finding.code)
    for finding in kept:
        codes = lost.get(finding.span, ()) if finding.code in _CAUSES else ()
        yield replace(finding, related=(*finding.related, *dict.fromkeys(codes))) if codes else finding


def _rank(finding: Finding) -> tuple[int, int, str]:
    first = _PRECEDENCE.index(finding.code) if finding.code in _PRECEDENCE else len(_PRECEDENCE)
    return (first, _BY_CATEGORY.index(finding.category), finding.code)
