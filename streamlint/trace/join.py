"""Findings beside what a run says of their lines, and the stalls that no finding names.

A cost belongs to a finding whose statement holds its place; else, if it is of allocating, freeing or pinning memory, to one that has the
place in its trail (`pin-then-copy` stands at the copy, its trail names the pinning); else to the finding at the nearest of its callers.
Waits and copies do not go by trails: these name other operations too, such as the backward pass that makes a loss worth a wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from streamlint import TYPE_CHECKING
from streamlint.findings import Category, Finding, Span
from streamlint.support.memo import memoized
from streamlint.support.reading import language_of
from streamlint.support.records import field, record
from streamlint.trace.kinds import ALLOCATE, FREE, PIN, is_direct
from streamlint.trace.prices import BORDER, by_price, largest_price, largest_wait, merged, price
from streamlint.trace.results import Cost, Costs, Joined, Judged, Place, Unnamed
from streamlint.triage.layout import Layout, layout

if TYPE_CHECKING:
    from streamlint.trace.model import Trace
    from streamlint.trace.results import Standing

    Row = tuple[str, int]

NOT_SEEN = "its function ran, but no recorded call comes from this line"
NOT_IN_PARTS = "no call from it is in the recorded parts of the run"
NOT_THERE = "its function is not in the recording"
NEVER_HELD = "its line ran, and no call of it held the host or the GPU"
NO_TIME = "a race costs no time that could be shown"
DIRECT = 0.9
"""Share of a line's blocked time from which on it counts as that of copies which wait for nothing."""
_BY_TRAIL = (ALLOCATE, FREE, PIN)
# The heads of compound statements: what stands below them is not theirs.
_HEADS = ("for ", "while ", "async ", "with ", "def ", "class ", "if ", "elif ", "else", "try", "for(", "while(", "if(")


@record(slots=True)
class Seen:
    """The lines and functions of the user's code that stand in the stacks of a recording."""

    rows: set[Row] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    is_part: bool = False  # of the run, not all of it

    @classmethod
    def of(cls, trace: Trace, names: Callable[[str], str | None]) -> Seen:
        """From a recording, with the names that `check` gives files."""
        seen = cls(is_part=trace.left_out > 0)
        for stack in trace.stacks:
            for frame in stack:
                if (name := names(frame.file)) is not None:
                    seen.functions.add((name, _last(frame.function)))
                    seen.rows.update((name, row) for row in frame.lines or ((frame.line,) if frame.line else ()))
        return seen


def join(costs: Costs, findings: Sequence[Finding], seen: Seen, texts: Mapping[str, str], border: int | None = None) -> Joined:
    """Each finding's standing, and the stalls that have none. ``texts`` are the sources of files with findings, ``border`` in ns.

    The reasons of the stalls are empty: who knows the sources adds them.
    """
    border = round(costs.wall * BORDER) if border is None else border
    statements = _Statements(texts)
    taken = _Matched(costs.costs, findings, statements).all()
    judged: list[Judged] = []
    named: dict[int, Cost] = {}
    for number, finding in enumerate(findings):
        mine = taken.get(number, [])
        one = _judged(finding, mine, seen, statements, border)
        judged.append(one)
        if one.standing == "COSTS":
            named.update((id(cost), cost) for cost in mine)
    everybodys = {id(cost) for mine in taken.values() for cost in mine}
    joined = Joined(costs, judged, _unnamed([cost for cost in costs.costs if id(cost) not in everybodys], border), border)
    joined.named = sum(price(merged(mine)) for mine in _by_place(named.values()))
    joined.processes = max(1, len({cost.process for cost in costs.costs}))
    return joined


def _judged(finding: Finding, costs: list[Cost], seen: Seen, statements: _Statements, border: int) -> Judged:
    if finding.category is Category.RACE:
        return Judged(finding, "RACED ONLY", None, NO_TIME)
    if costs:
        places = tuple(dict.fromkeys(cost.place for cost in sorted(costs, key=by_price)))
        standing: Standing = "COSTS" if largest_price(costs) >= max(border, 1) else "CHEAP"
        return Judged(finding, standing, merged(costs), places=places if len(places) > 1 else ())
    if any(row in seen.rows for row in statements.rows(finding)):
        return Judged(finding, "CHEAP", None, NEVER_HELD)
    ran = (finding.span.file, _last(finding.qualname)) in seen.functions
    return Judged(finding, "NOT REACHED", None, NOT_IN_PARTS if seen.is_part else NOT_SEEN if ran else NOT_THERE)


def _by_place(costs: Iterable[Cost]) -> list[list[Cost]]:
    """The costs of each place, as a row of the table adds them up."""
    places: dict[Place, list[Cost]] = defaultdict(list)
    for cost in costs:
        places[cost.place].append(cost)
    return list(places.values())


def _unnamed(costs: Iterable[Cost], border: int) -> list[Unnamed]:
    dear = [mine for mine in _by_place(costs) if max(largest_price(mine), largest_wait(mine)) >= max(border, 1)]
    found = [Unnamed(merged(one), "", is_direct=_are_direct(one)) for one in dear]
    return sorted(found, key=lambda one: by_price(one.cost))


def _are_direct(costs: Sequence[Cost]) -> bool:
    """Whether nearly all of the blocked time of a line is that of asynchronous copies which wait for nothing."""
    direct = sum(one.blocked for one in costs if is_direct(one.call, one.source, one.destination))
    return direct >= DIRECT * sum(one.blocked for one in costs)


class _Statements:
    """The rows of statements, in files whose text is known; else a row stands for itself."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def rows(self, finding: Finding) -> set[Row]:
        """The lines of a finding's statement, and of those of its kind that it stands for."""
        return {row for span in (finding.span, *finding.covers) for row in self.of(span)}

    def of(self, span: Span) -> Iterable[Row]:
        """The lines of the statement at a place."""
        known = self._layout(span.file)
        first, last = known.statement_at(span.row) if known else (span.row, span.row)
        return [(span.file, row) for row in range(first, last + 1)]

    def is_head(self, span: Span) -> bool:
        """Whether the statement is the head of a block: its line is that of the whole block's calls in a traceback of loops."""
        known = self._layout(span.file)
        return known is not None and known.statement_text(span.row).startswith(_HEADS)

    @memoized
    def _layout(self, file: str) -> Layout | None:
        text = self._texts.get(file)
        return layout(text, language_of(file) or "python") if text else None


class _Matched:
    """The costs of each finding, by the finding's number."""

    def __init__(self, costs: Sequence[Cost], findings: Sequence[Finding], statements: _Statements) -> None:
        self._costs = costs
        self._own: dict[Row, list[int]] = defaultdict(list)
        self._trails: dict[Row, list[int]] = defaultdict(list)
        for number, finding in enumerate(findings):
            if finding.category is Category.RACE:
                continue
            for row in statements.rows(finding):
                self._own[row].append(number)
            for step in finding.trail:
                if not statements.is_head(step.span):
                    for row in statements.of(step.span):
                        self._trails[row].append(number)

    def all(self) -> dict[int, list[Cost]]:
        found: dict[int, list[Cost]] = defaultdict(list)
        for cost in self._costs:
            for number in self._of(cost):
                found[number].append(cost)
        return found

    def _of(self, cost: Cost) -> list[int]:
        if numbers := self._at(cost.place, self._own):
            return numbers
        if cost.kind in _BY_TRAIL and (numbers := self._at(cost.place, self._trails)):
            return numbers
        return next((numbers for place in cost.via if (numbers := self._at(place, self._own))), [])

    @staticmethod
    def _at(place: Place, rows: Mapping[Row, list[int]]) -> list[int]:
        return list(dict.fromkeys(number for line in place.lines for number in rows.get((place.file, line), ())))


def _last(name: str) -> str:
    """The last part of a qualified name."""
    return name.rpartition(".")[2].rpartition("::")[2]
