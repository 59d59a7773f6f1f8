"""Which finding stands where several are at one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamlint.checks.catalog import CONTRADICTED
from streamlint.findings import Category, Finding, Span
from streamlint.support.records import replace

# Of the codes on one operation the first of these wins; others follow their category (semantics: cause before effect).
_PRECEDENCE = ("SL013", "SL018", "SL014", "SL032", "SL027", "SL026")
# What explains a conflict of SL005 to SL008: work on the wrong stream.
_CAUSES = (*_PRECEDENCE, "SL002")
# Among stalls one that holds up all threads of Python, then the more specific one: a wait for the whole device before the read of a value,
# and before what an allocator does.
_STALLS = ("SL009", "SL011", "SL010", "SL021", "SL020")
_BY_CATEGORY = (Category.ERROR, Category.DEADLOCK, Category.RACE, Category.STALL, Category.PORTABILITY)


def best(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding a place and code: one that reports other places too, else one that is shown, of these the worst with the shortest trail.

    It speaks for the conflicts of all.
    """
    findings = list(findings)
    covered = {(span, finding.code) for finding in findings for span in finding.covers}
    best: dict[tuple[Any, ...], Finding] = {}
    pairs: dict[tuple[Any, ...], dict[tuple[Span, Span], None]] = {}
    for finding in findings:
        key = (finding.span, finding.code)
        pairs.setdefault(key, {}).update(dict.fromkeys(finding.pairs))
        held = best.get(key)
        if key in covered and not finding.covers:
            continue
        if held is None or _weight(finding) < _weight(held):
            best[key] = finding
    return [
        finding if set(finding.pairs) == set(pairs[key]) else replace(finding, pairs=tuple(pairs[key])) for key, finding in best.items()
    ]


def _weight(finding: Finding) -> tuple[int, bool, int, int, str]:
    return -len(finding.covers), not finding.shown, _BY_CATEGORY.index(finding.category), len(finding.trail), finding.message


def winners(findings: Iterable[Finding]) -> Iterator[Finding]:
    """One code an operation, and one a conflicting pair: the others are listed as related."""
    places: dict[Any, list[Finding]] = {}
    for finding in _without_consequences(list(best(findings))):
        places.setdefault((finding.span, finding.code == CONTRADICTED), []).append(finding)  # which is about no operation
    for group in places.values():
        group.sort(key=_rank)
        winner, *others = group
        related = (*winner.related, *(f.code for f in others))
        yield replace(winner, related=related) if others else winner


def _without_consequences(findings: list[Finding]) -> Iterator[Finding]:
    """A conflict falls where a finding names its cause: one of the same pair, or one at either of its accesses. An allocator that is
    emptied in a loop falls where the wait for it is reported, or the call that leads there."""
    causes: dict[Any, Finding] = {}
    emptied = {span: one for one in findings if _empties(one, "SL021") for span in (one.span, *(step.span for step in one.trail))}
    for finding in findings:
        if finding.code in _CAUSES:
            causes[finding.span] = finding
            causes.update(dict.fromkeys(finding.pairs, finding))
    lost: dict[Span, dict[str, None]] = {}
    kept = []
    for finding in findings:
        named = [emptied[finding.span]] if _empties(finding, "SL003") and finding.span in emptied else _causes_of(finding, causes)
        for cause in named:
            lost.setdefault(cause.span, {})[finding.code] = None
        if not named:
            kept.append(finding)
    for finding in kept:
        codes = lost.get(finding.span) if finding.code in (*_CAUSES, "SL021") else None
        yield replace(finding, related=(*finding.related, *codes)) if codes else finding


def _causes_of(finding: Finding, causes: dict[Any, Finding]) -> list[Finding]:
    """What names the causes of all pairs of a conflict; none where one of them has no named cause."""
    if finding.code in _CAUSES:
        return []
    named = [next((causes[key] for key in (pair, *pair) if key in causes), None) for pair in finding.pairs]
    return [] if None in named else [cause for cause in named if cause is not None]


def _empties(finding: Finding, code: str) -> bool:
    return finding.code == code and finding.facts.get("what") == "cache"


def _rank(finding: Finding) -> tuple[int, int, int, str]:
    first = _PRECEDENCE.index(finding.code) if finding.code in _PRECEDENCE else len(_PRECEDENCE)
    stall = _STALLS.index(finding.code) if finding.code in _STALLS else len(_STALLS)
    return (first, _BY_CATEGORY.index(finding.category), stall, finding.code)
