"""The trial of fixes: the edited file is re-linted, with all rules and with the files around it.

One look at a file takes as long for many edits as for one. So the proposals of a file that do not touch each other are tried at once, and
taken apart only where that leaves a finding which one of them is to end, brings a new one, or gives what does not parse.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from streamlint.findings import Edit, Finding, Fix, Span
from streamlint.fix import proposals
from streamlint.fix.edits import Edited, Overlap
from streamlint.support.lines import line_starts
from streamlint.support.records import field, record, replace

Lint = Callable[[str, str], "Sequence[Finding] | None"]  # path, text -> findings there; None: it does not parse
Place = tuple[str, int, int]
COMMENTS = ("#", "//", "/*")
FEW = 8  # proposals: of so many that fail together each is tried alone


@record(slots=False)
class Trial:
    """One file's fixes, held against its findings."""

    file: str
    text: str
    language: str
    lint: Lint  # by the widest set of rules
    found: Sequence[Finding] = ()  # what the run found from the file, by its own rules
    _before: set[Place] | None = field(default=None)
    _known: dict[str, set[Place] | None] = field(default_factory=dict)

    def propose(self, finding: Finding) -> Fix | None:
        """The first proposal that ends the finding and brings none."""
        return self.propose_all([finding])[0]

    def propose_all(self, findings: Sequence[Finding]) -> list[Fix | None]:
        """For each finding the first proposal that ends it; none brings a finding, and those that were tried together hold together."""
        more = [self._proposals(finding) for finding in findings]
        held: list[Fix | None] = [None] * len(findings)
        waiting = {number: fix for number, rest in enumerate(more) if (fix := next(rest, None))}
        while waiting:
            tried = {number: waiting.pop(number) for number in _apart(waiting)}
            holding = self._holding(findings, tried)
            for number, fix in tried.items():
                if number in holding:
                    held[number] = self._judged(fix)
                elif following := next(more[number], None):
                    waiting[number] = following
        return held

    def holds(self, ended: Sequence[Finding], edits: Iterable[Edit]) -> bool:
        """Whether the edits end these findings, bring none, and leave a file that parses."""
        gone = {_place(finding) for finding in ended}
        after = self._after(gone, edits)
        return after is not None and not (after & gone or self._new(after))

    def _proposals(self, finding: Finding) -> Iterator[Fix]:
        for fix in proposals(finding, self.text, self.language):
            if all(edit.span.file == self.file for edit in fix.edits):
                yield fix

    def _holding(self, findings: Sequence[Finding], fixes: Mapping[int, Fix]) -> set[int]:
        """Which of some fixes hold, by the numbers of what they end."""
        suspects = self._suspects(findings, fixes)
        if not suspects or len(fixes) == 1:
            return set() if suspects else set(fixes)
        if len(suspects) == len(fixes):
            if len(fixes) > FEW and self._after({_place(findings[number]) for number in fixes}, _edits(fixes)) is not None:
                return set()  # each has what speaks against it, and beside so many more trials none would be quick
            suspects = set(list(fixes)[len(fixes) // 2 :])
        parts = ({n: fix for n, fix in fixes.items() if (n in suspects) is late} for late in (False, True))
        return set().union(*(self._holding(findings, part) for part in parts))

    def _suspects(self, findings: Sequence[Finding], fixes: Mapping[int, Fix]) -> set[int]:
        """The fixes that speak against a trial of them all: they leave their finding, or are the nearest to one that they bring."""
        gone = {_place(findings[number]) for number in fixes}
        after = self._after(gone, _edits(fixes))
        if after is None:
            return set(fixes)
        suspects = {number for number in fixes if _place(findings[number]) in after}
        rows = sorted((edit.span.row, number) for number, fix in fixes.items() for edit in fix.edits)
        for _, row, _ in self._new(after):
            at = bisect_left(rows, (row, 0))
            suspects.add(min(rows[max(at - 1, 0) : at + 1], key=lambda near: abs(near[0] - row))[1])
        return suspects

    def _after(self, gone: set[Place], edits: Iterable[Edit]) -> set[Place] | None:
        """What is found after edits, by its places before; None if they cannot be made, or cannot have ended what is to go."""
        try:
            edited = Edited(self.text, edits, self._starts)
        except Overlap:
            return None
        if edited.text == self.text or not (self._own >= gone or self._places() >= gone):
            return None
        return self._linted(edited)

    def _new(self, after: set[Place]) -> set[Place]:
        """What was not found before."""
        new = after - self._own  # mostly nothing, which costs nothing
        return new - self._places() if new else new

    def _linted(self, edited: Edited) -> set[Place] | None:
        """What is found in the edited text, by its places in the old one; None where it does not parse."""
        if edited.text not in self._known:
            findings = self.lint(self.file, edited.text)
            places = {(found.code, *edited.was_at(found.span.row, found.span.column)) for found in findings or ()}
            self._known[edited.text] = None if findings is None else places
        return self._known[edited.text]

    def _places(self) -> set[Place]:
        if self._before is None:
            self._before = {_place(finding) for finding in self.lint(self.file, self.text) or ()}
        return self._before

    @functools.cached_property
    def _own(self) -> set[Place]:
        return {_place(finding) for finding in self.found}

    @functools.cached_property
    def _starts(self) -> list[int]:
        return line_starts(self.text)

    def _judged(self, fix: Fix) -> Fix:
        """Unsafe where a comment would go."""
        added = "".join(edit.content for edit in fix.edits)
        for gone, _ in Edited(self.text, fix.edits, self._starts).deleted():
            if any(sign in gone and sign not in added for sign in COMMENTS):
                return replace(fix, applicability="unsafe")
        return fix


def together(trial: Trial, findings: Sequence[Finding]) -> tuple[str, list[Finding]]:
    """The file's text with the fixes of findings applied, as many as hold together, and the findings that are mended."""
    mended = _added(trial, [], [finding for finding in findings if finding.fix])
    return Edited(trial.text, _fixing(mended)).text, mended


def _added(trial: Trial, mended: list[Finding], more: list[Finding]) -> list[Finding]:
    """Findings that are mended, with as many more as hold together with them."""
    if not more:
        return mended
    if trial.holds([*mended, *more], _fixing([*mended, *more])):
        return [*mended, *more]
    if len(more) == 1:
        return mended
    half = len(more) // 2
    return _added(trial, _added(trial, mended, more[:half]), more[half:])


def _fixing(findings: Iterable[Finding]) -> list[Edit]:
    return [edit for finding in findings if finding.fix for edit in finding.fix.edits]


def _edits(fixes: Mapping[int, Fix]) -> list[Edit]:
    return [edit for fix in fixes.values() for edit in fix.edits]


def _apart(fixes: Mapping[int, Fix]) -> list[int]:
    """As many fixes, from the first on, as neither overlap nor touch; those that make the same edits are one."""
    taken: list[tuple[tuple[int, int], tuple[int, int]]] = []
    tried: set[tuple[Edit, ...]] = set()
    chosen = []
    for number, fix in fixes.items():
        if fix.edits not in tried:
            ends = [_ends(edit.span) for edit in fix.edits]
            if any(_touches(taken, *one) for one in ends):
                continue
            tried.add(fix.edits)
            for one in ends:
                insort(taken, one)
        chosen.append(number)
    return chosen


def _ends(span: Span) -> tuple[tuple[int, int], tuple[int, int]]:
    return (span.row, span.column), (span.end_row, span.end_column)


def _touches(taken: Sequence[tuple[tuple[int, int], tuple[int, int]]], start: tuple[int, int], end: tuple[int, int]) -> bool:
    """Whether a stretch meets one of some in order, of which none meets another."""
    at = bisect_left(taken, (start, end))
    return (at < len(taken) and taken[at][0] <= end) or (at > 0 and taken[at - 1][1] >= start)


def _place(finding: Finding) -> Place:
    return finding.code, finding.span.row, finding.span.column
