"""A root run once more, with some of what it did left out or some facts changed: what would have to be so for a rule to speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from streamlint.findings import Span
from streamlint.interpreter.index import Program
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.roots import Root, run_root
from streamlint.interpreter.run import Coverage, OutOfBudget, Run, Settings
from streamlint.interpreter.values import Event, Stream, Value
from streamlint.operations import (
    Block,
    HostRead,
    HostWrite,
    Launch,
    Opaque,
    Operation,
    Query,
    Record,
    Synchronize,
    Wait,
)

Key = tuple[Span, str]


def key_of(operation: Operation) -> Key:
    """What tells an operation from others in another run of the same code."""
    return operation.span, type(operation).__name__


@dataclass(frozen=True, slots=True)
class Supposition:
    """Something that is taken to be otherwise.

    ``without`` names an operation that orders nothing; ``change`` alters an operation once its surroundings are known; ``needs`` says
    what a rule would need, ``knew`` what is known in its place.
    """

    knew: str
    needs: str = ""
    without: Key | None = None
    barrier: bool = False  # the default stream's barrier does not hold
    change: Callable[[Operation], None] | None = None
    rows: tuple[int, ...] = ()


@dataclass(slots=True)
class Supposed:
    """All that is supposed in one run. The host's accesses away from ``rows`` of ``file`` are not looked at, if there are any rows."""

    suppositions: tuple[Supposition, ...] = ()
    file: str = ""
    rows: tuple[int, int] = (0, 0)
    without: set[Key] = field(init=False)

    def __post_init__(self) -> None:
        self.without = {s.without for s in self.suppositions if s.without is not None}

    def holds(self, span: Span) -> bool:
        return span.file == self.file and self.rows[0] <= span.row <= self.rows[1]


class SupposingMachine(Machine):
    """A machine that leaves out, and changes, what is supposed. It also remembers what opaque calls were given."""

    def __init__(self, supposed: Supposed) -> None:
        super().__init__()
        self.supposed = supposed
        self.given: dict[int, tuple[Value, ...]] = {}  # what an opaque call can reach, by the call's index
        if any(s.barrier for s in supposed.suppositions):
            self.clocks.blocking = _Nobody()

    def _out(self, operation: Operation) -> bool:
        return key_of(operation) in self.supposed.without

    def note(self, operation: Operation) -> Operation:
        super().note(operation)
        for supposition in self.supposed.suppositions:
            if supposition.change is not None:
                supposition.change(operation)
        return operation

    def launch(self, operation: Launch) -> None:
        operation.host_waits = operation.host_waits and not self._out(operation)
        super().launch(operation)

    def record(self, operation: Record) -> None:
        if not self._out(operation):
            super().record(operation)

    def wait(self, operation: Wait) -> None:
        if not self._out(operation):
            super().wait(operation)

    def synchronize(self, operation: Synchronize) -> None:
        if not self._out(operation):
            super().synchronize(operation)

    def opaque_among(self, operation: Opaque, reached: Iterable[Value]) -> None:
        given = tuple(reached)
        super().opaque_among(operation, () if self._out(operation) else given)
        self.given[operation.index] = given

    def host_read(self, operation: HostRead) -> bool:
        if self._elsewhere(operation):
            self.note(operation)
            return False
        return super().host_read(operation)

    def host_write(self, operation: HostWrite) -> None:
        if self._elsewhere(operation):
            self.note(operation)
        else:
            super().host_write(operation)

    def _elsewhere(self, operation: Operation) -> bool:
        """An earlier look at a buffer hides a later one: one finding a copy. Here the one that is asked about counts."""
        return self.supposed.rows[0] > 0 and not self.supposed.holds(operation.span)

    def host_waits(self, on: Event | Stream | None) -> None:
        last = next((o for o in reversed(self.operations) if isinstance(o, Query) and o.of is on), None)
        if last is None or not self._out(last):
            super().host_waits(on)

    def forget_everything(self) -> None:
        last = self.operations[-1] if self.operations else None
        if not (isinstance(last, Block) and self._out(last)):
            super().forget_everything()


class _Nobody(set[str]):
    """Streams that take part in no barrier, whoever joins."""

    def add(self, element: str) -> None:
        """Stays empty."""


@dataclass(slots=True)
class Rerun:
    """One path of a root, run with suppositions. ``reached`` are the rows of the statements that were run."""

    run: Run
    machine: SupposingMachine
    cut: bool = False

    @property
    def reached(self) -> set[tuple[str, int]]:
        return self.run.reached or set()


def rerun(program: Program, root: Root, settings: Settings, forced: dict[str, bool], supposed: Supposed) -> Rerun:
    """Run one path of a root."""
    run = Run(program, forced, 2, Coverage(), settings)
    run.reached = set()
    run.machine = machine = SupposingMachine(supposed)
    done = Rerun(run, machine)
    try:
        run_root(run, root)
    except OutOfBudget:
        done.cut = True
    return done
