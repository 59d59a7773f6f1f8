"""SL033: the host waits with the GIL held for a stream whose callback needs the GIL."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl033_callback_needs_gil import CallbackNeedsGil
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.queued_callbacks import QueuedCallbacks

RULE = CallbackNeedsGil


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule, one for each call of Python's."""
    rule = RULE()
    reported: set[Span] = set()
    for found in QueuedCallbacks(context.transfer).find():
        place = span_of(found.call)
        if place not in reported:
            reported.add(place)
            operation = Operation(place, found.library, found.name, context=context.surroundings(found.call.function))
            bound = span_of(found.binding) if found.binding is not None else None
            yield rule.report(operation, span_of(found.registration), bound, span_of(found.wait))
