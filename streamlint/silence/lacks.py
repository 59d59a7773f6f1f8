"""What a check lacks to speak of a line: the smallest set of suppositions under which it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamlint.findings import Span
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.roots import Root
from streamlint.interpreter.run import Run
from streamlint.interpreter.trace import Trace
from streamlint.interpreter.values import Buffer
from streamlint.operations import Conflict, Copy, Direction, HostRead, HostWrite, Operation, Record
from streamlint.silence import words
from streamlint.silence.runs import Rerun, Supposed, Supposition, key_of, rerun
from streamlint.silence.suppositions import BARRIER, facts, memories, orders

if TYPE_CHECKING:
    from streamlint.silence.line import Line

_MOST_ORDERS = 24
_MOST_LACKS = 3  # what lacks more is another program
Pinned = frozenset[tuple[Span, tuple[Span, ...]]]
Spoken = dict[str, Conflict | None]


@dataclass(frozen=True, slots=True)
class Lack:
    """What one check would need at a line. ``weight`` is how far it is from speaking."""

    code: str
    message: str
    rows: tuple[int, ...]
    kind: str
    weight: int


@dataclass(slots=True)
class _Trial:
    line: Line
    root: Root
    facts: FileFacts
    path: Run
    pinned: Pinned
    reads: bool = False  # the host looks at memory there: its looks elsewhere do not count

    def speaks(self, suppositions: tuple[Supposition, ...]) -> Spoken:
        """The checks that speak of the line if all this is supposed, each with the conflict that it speaks of."""
        supposed = Supposed(suppositions, self.line.path, self.line.rows if self.reads else (0, 0))
        done = rerun(self.line.program, self.root, self.line.settings, self.path.forced, supposed)
        return self._asked(done, self.pinned)

    def _asked(self, done: Rerun, pinned: Pinned) -> Spoken:
        line, machine = self.line, done.machine
        trace = Trace(machine.operations, machine.conflicts, self.facts, pinned)
        spoken: Spoken = {}
        for check in line.checks:
            for operation in machine.operations:
                for finding in check.on_operation(operation, trace):
                    if line.holds(finding.span) or line.holds(operation.span):
                        spoken.setdefault(finding.code, None)
            for conflict in machine.conflicts:
                for finding in check.on_conflict(conflict, trace):
                    if any(line.holds(place) for place in (finding.span, conflict.first.span, conflict.second.span)):
                        spoken.setdefault(finding.code, conflict)
        return spoken

    def least(self, code: str, suppositions: tuple[Supposition, ...]) -> tuple[Supposition, ...]:
        """A smallest part of the suppositions under which a check speaks: each is left out that can be."""
        kept = suppositions
        for supposition in suppositions:
            fewer = tuple(other for other in kept if other is not supposition)
            if code in self.speaks(fewer):
                kept = fewer
        return kept


def lacks(line: Line, root: Root, known: FileFacts, path: Run, pinned: Pinned) -> Iterator[Lack]:
    """For each check that a few suppositions would make speak of the line on one path: what they are."""
    plain = rerun(line.program, root, line.settings, path.forced, Supposed())
    here = [o for o in plain.machine.operations if line.holds(o.span)]
    if not here:
        return
    trial = _Trial(line, root, known, path, pinned, any(isinstance(o, HostRead | HostWrite) for o in here))
    orders_here, related = _orders(line, plain, here), _related(plain, here)
    changes = tuple(change for operation in related for change in facts(operation, _which(line, operation)))
    already = trial.speaks(())
    if not already and pinned:
        for code in _Trial(line, root, known, path, frozenset()).speaks(()):
            yield Lack(code, "on another path the same memory is pinned: pageable memory is the exception there", (), "facts", 0)
    open_ones = [o for o in related if o in here or (isinstance(o, Copy) and o.direction is Direction.UNKNOWN)]
    worlds = [(), *((m,) for operation in open_ones for m in memories(operation, _which(line, operation)))]
    for world in worlds:
        everything = (*orders_here, BARRIER, *changes, *world)
        for code in trial.speaks(everything):
            least = trial.least(code, everything)
            if 0 < len(least) <= _MOST_LACKS:
                yield _lack(code, least, trial.speaks(least).get(code))


def _orders(line: Line, plain: Rerun, here: list[Operation]) -> tuple[Supposition, ...]:
    """What orders something near the line: those left out first that are the least telling."""
    found = {key_of(operation): operation for operation in plain.machine.operations}
    near = sorted(found.values(), key=lambda o: abs(o.index - here[0].index))[: 4 * _MOST_ORDERS]
    near.sort(key=lambda o: (not isinstance(o, Record), -abs(o.index - here[0].index)))
    return tuple(orders(near, plain.machine.given, lambda o: line.quote(o.span)))[-_MOST_ORDERS:]


def _related(plain: Rerun, here: list[Operation]) -> list[Operation]:
    """The operations at the line, and the copies of the memory that they touch."""
    storages = {id(buffer.storage) for operation in here for buffer in touched(operation)}
    copies = [
        o for o in plain.machine.operations if isinstance(o, Copy) and o not in here and any(id(b.storage) in storages for b in touched(o))
    ]
    found = {key_of(o): o for o in (*here, *copies[:6])}
    return list(found.values())


def touched(operation: Operation) -> Iterator[Buffer]:
    """The buffers that an operation accesses."""
    for name in ("src", "dst", "buffer"):
        buffer = getattr(operation, name, None)
        if buffer is not None:
            yield buffer
    for name in ("reads", "writes"):
        yield from getattr(operation, name, ())


def _which(line: Line, operation: Operation) -> str:
    return f"{words.short(operation)} in line {operation.span.row}"


def _lack(code: str, least: tuple[Supposition, ...], conflict: Conflict | None) -> Lack:
    ordering = [s for s in least if s.change is None]
    changed = [s for s in least if s.change is not None]
    rows = [row for s in least for row in s.rows]
    parts = []
    if changed:
        wanted = " and ".join(dict.fromkeys(s.needs for s in changed))
        parts.append(f"needs {wanted}; " + "; ".join(dict.fromkeys(s.knew for s in changed)))
    if ordering and conflict is not None:
        first, second = conflict.first, conflict.second
        rows += [first.span.row, second.span.row]
        pair = f"{words.short(second)} in line {second.span.row} is ordered after {words.short(first)} in line {first.span.row}"
        parts.append(f"{pair}: {', and '.join(s.knew for s in ordering)}")
    elif ordering:
        parts.append(", and ".join(s.knew for s in ordering))
    kind = "order" if ordering else "facts"
    return Lack(code, "; ".join(parts), tuple(rows), kind, len(least))
