"""SL036: an event is destroyed before another process can open the handle that it was exported by."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl036_ipc_event_too_short_lived import IpcEventTooShortLived
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.exported_events import ExportedEvents

RULE = IpcEventTooShortLived


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule, one for each export."""
    rule = RULE()
    reported: set[Span] = set()
    for export in ExportedEvents(context.transfer).find():
        call = export.call
        place = span_of(Site(call.function, call.instruction))
        if place not in reported:
            reported.add(place)
            operation = Operation(place, call.row.library, call.name, context=context.surroundings(call.function))
            ended = span_of(export.ended) if export.ended is not None else None
            yield rule.report(operation, span_of(export.made), span_of(export.given.site), export.given.how, ended)
