"""What a finished path looks like to a check: its operations in order, and questions about their surroundings."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.findings import Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.operations import Clock, Conflict, Opaque, Operation
from streamlint.record import record


@record(frozen=True, slots=True, eq=False)
class Trace:
    """One path through one root. ``facts`` are those of the root's file."""

    operations: list[Operation]
    conflicts: list[Conflict]
    facts: FileFacts
    pinned_elsewhere: frozenset[tuple[Span, tuple[Span, ...]]] = frozenset()
    waited_elsewhere: frozenset[tuple[Span, tuple[Span, ...]]] = frozenset()

    def after(self, operation: Operation) -> Iterator[Operation]:
        """The operations behind one, in order."""
        return iter(self.operations[operation.index + 1 :])

    def before(self, operation: Operation) -> Iterator[Operation]:
        return iter(self.operations[: operation.index])

    def next(self, operation: Operation) -> Operation | None:
        """The operation right behind one; a look at a clock is none, nor at the status of a call."""
        passing = (o for o in self.after(operation) if not isinstance(o, Clock) and not (isinstance(o, Opaque) and o.of_status))
        return next(passing, None)


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
