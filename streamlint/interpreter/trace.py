"""What a finished path looks like to a check: its operations in order, and questions about their surroundings."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.operations import Clock, Conflict, Launch, LoopFrame, Opaque, Operation, Record, Synchronize
from streamlint.record import field, record


@record(frozen=True, slots=True, eq=False)
class Trace:
    """One path through one root. ``facts`` are those of the root's file."""

    operations: list[Operation]
    conflicts: list[Conflict]
    facts: FileFacts
    pinned_elsewhere: frozenset[tuple[Span, tuple[Span, ...]]] = frozenset()
    waited_elsewhere: frozenset[tuple[Span, tuple[Span, ...]]] = frozenset()
    recorded_elsewhere: frozenset[tuple[Span, tuple[Span, ...]]] = frozenset()  # where events are made that some path records
    _by_loop: dict[int, tuple[list[Operation], list[LoopFrame]]] = field(default_factory=dict)

    def after(self, operation: Operation) -> Iterator[Operation]:
        """The operations behind one, in order."""
        return iter(self.operations[operation.index + 1 :])

    def before(self, operation: Operation) -> Iterator[Operation]:
        return iter(self.operations[: operation.index])

    def next(self, operation: Operation) -> Operation | None:
        """The operation right behind one; a look at a clock is none, nor at the status of a call."""
        passing = (o for o in self.after(operation) if not isinstance(o, Clock) and not (isinstance(o, Opaque) and o.of_status))
        return next(passing, None)

    def times_repeated_work(self) -> bool:
        """Whether one piece of device work is put in the queue again and again between two looks at a clock: the path is a measurement."""
        started, between, before = ("", ""), list[Launch](), None
        for operation in self.operations:
            look = _look_at_clock(operation, before)
            if look is not None:
                repeated = len(between) > 1 and len({(o.span, o.context.calls) for o in between}) == 1
                if repeated and started[0] == look[0] and (not look[0] or started[1] != look[1]):
                    return True
                started, between = look, []
            elif isinstance(operation, Launch):
                between.append(operation)
            before = operation
        return False

    def within(self, loop: LoopFrame) -> tuple[list[Operation], list[LoopFrame]]:
        """The operations in the rounds of a loop, and the loops that are around any of them."""
        if loop.key not in self._by_loop:
            inside = [o for o in self.operations if any(frame.key == loop.key for frame in o.context.loops)]
            around = {id(frame): frame for loops in {id(o.context.loops): o.context.loops for o in inside}.values() for frame in loops}
            self._by_loop[loop.key] = inside, list(around.values())
        return self._by_loop[loop.key]


def _look_at_clock(operation: Operation, before: Operation | None) -> tuple[str, str] | None:
    """By what a path looks at a clock: the object and its method where an object of a class out of view is told right behind a wait."""
    if isinstance(operation, Clock) or (isinstance(operation, Record) and operation.event is not None and operation.event.timed):
        return "", ""
    if isinstance(operation, Opaque) and not operation.on_device and isinstance(before, Synchronize):
        held, _, method = operation.callee.rpartition(".")
        return (held, method) if held else None
    return None


def call_in_loop(operation: Operation, loop: LoopFrame) -> Span:
    """Where, in the body of the loop, the code stands that reached the operation: itself, or the call that led there."""
    for call in operation.context.calls:
        if is_inside(call, loop.span):
            return call
    return operation.span


def entered(operation: Operation) -> Iterator[tuple[str, Span]]:
    """The functions entered, outermost first, each with its place on the way: a call, at last the operation."""
    places = (*operation.context.calls, operation.span)
    return zip(operation.context.functions[-len(places) :], places, strict=False)


def is_inside(span: Span, outer: Span) -> bool:
    """Whether a place is within another."""
    return (
        span.file == outer.file
        and (outer.row, outer.column) <= (span.row, span.column)
        and (span.end_row, span.end_column) <= (outer.end_row, outer.end_column)
    )


def call_trail(operation: Operation, words: str = "called from here") -> tuple[Step, ...]:
    """The calls that led to an operation, outermost first."""
    return tuple(Step(words, span) for span in operation.context.calls)
