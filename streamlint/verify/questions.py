"""From findings to the programs that settle them: which case, with which of a finding's facts, and what had to be left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streamlint.findings import Facts, Finding
from streamlint.verify.cases import ANY_KIND, Case, Template

_CHOSEN_BY = ("direction", "memory")  # facts that distinguish cases of one API
_WHOLE = 4  # templates' own sizes are known to fit: only a share far below the usual one cuts them
_CPP = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp")
_WORD = 4  # bytes: templates hold floats
_SHARE = 16  # a template holds several buffers, some of them in several rounds: one may take this part of the device's share


@dataclass
class Question:
    """One run: the findings that it answers, and in words what of their facts it could not use."""

    case: Case
    notes: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)


def questions(findings: Iterable[Finding], templates: Mapping[str, Template], memory: int) -> tuple[list[Question], list[Finding]]:
    """One question for each distinct set of facts, in order of the findings; and the findings that no template answers."""
    found: dict[tuple[object, ...], Question] = {}
    without: list[Finding] = []
    for finding in findings:
        template = templates.get(finding.code)
        if template is None:
            without.append(finding)
            continue
        chosen = choose(template, _facts(finding), memory // _SHARE)
        if chosen is None:
            without.append(finding)
            continue
        case, notes = chosen
        found.setdefault((*case.identity, *notes), Question(case, notes)).findings.append(finding)
    return list(found.values()), without


def _facts(finding: Finding) -> Facts:
    """A finding's facts; a callback that waits for a lock is no library's, but its language is known."""
    facts = finding.known
    return replace(facts, api="cuda") if facts.api is None and finding.span.file.endswith(_CPP) else facts


def choose(template: Template, facts: Facts, most_bytes: int) -> tuple[Case, tuple[str, ...]] | None:
    """The case that is nearest to the facts, with those that it can run with, and notes on the rest; none if no case shows it."""
    cases, notes = _of_kind(template.cases, facts.kind), list[str]()
    if not cases:
        return None
    same = tuple(case for case in cases if case.api == facts.api)
    if not same:
        same = cases
        notes.append(f"{_called(facts.api)}: run with {same[0].api}")
    case = max(same, key=lambda case: _likeness(case, facts))  # the first of the best
    given: dict[str, object] = {}
    if facts.kind is not None and case.kinds and facts.kind not in case.kinds:
        notes.append(f"no template for '{facts.kind}': the nearest")
    for name in ("bytes", "stream", *_CHOSEN_BY):
        known, default = getattr(facts, name), case.parameters.get(name)
        if known is None:
            notes += [f"{name} not known: the template's {_amount(default)}"] if name in case.takes else []
        elif name in case.takes:
            given[name] = _fitted(known, most_bytes) if name == "bytes" else known
            if given[name] != known:
                notes.append(f"{_amount(known)} brought to {_amount(given[name])}")
        elif name in _CHOSEN_BY and default not in (None, known):
            notes.append(f"{name} is {_amount(known)}, the template's {_amount(default)}")
    return case.given(given), tuple(notes)


def _of_kind(cases: tuple[Case, ...], kind: str | None) -> tuple[Case, ...]:
    """The cases about that kind of mistake; where none names it, those that are about no kind in particular."""
    return tuple(case for case in cases if kind in case.kinds) or tuple(case for case in cases if not case.kinds or ANY_KIND in case.kinds)


def _likeness(case: Case, facts: Facts) -> int:
    """How many facts the case shares, less those that it contradicts."""
    score = 0
    for name in _CHOSEN_BY:
        known, own = getattr(facts, name), case.parameters.get(name)
        if known is not None and own is not None:
            score += 1 if known == own else -1
    return score


def within(case: Case, memory: int) -> Case:
    """The case with its own size cut to what may be taken of the device."""
    size = case.parameters.get("bytes", 0)
    return case if "bytes" not in case.takes or size <= memory // _WHOLE else case.given({"bytes": _fitted(size, memory // _SHARE)})


def _fitted(size: int, most: int) -> int:
    return max(min(size, most) // _WORD * _WORD, _WORD)


def _called(api: str | None) -> str:
    return "API not known" if api is None else f"no template for {api}"


def _amount(value: object) -> str:
    """``64 MiB``, ``4 KiB``, ``pinned``."""
    if not isinstance(value, int):
        return str(value)
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return f"{value} bytes"
