"""SL018: a wait for an event that has not been recorded yet, and records that are lost to a later one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.checks.sl018_event_wait_before_record import EventWaitBeforeRecord
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ir import opcodes as op
from streamlint.ordering.null_stream.missed import Missed
from streamlint.ordering.races.events import EmptyWait, EmptyWaits
from streamlint.ordering.races.lost_records import LostRecords
from streamlint.support.records import replace

RULE = EventWaitBeforeRecord


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    seen: set[Span] = set()
    missed = Missed(context.transfer)
    for wait in EmptyWaits(context.transfer).find():
        finding = _finding(rule, context, wait)
        if finding.span not in seen:
            seen.add(finding.span)
            yield replace(finding, pairs=_pairs(missed.pairs(wait.wait, wait.calls, wait.record)))
    for lost in LostRecords(context.transfer).find():
        record = Operation(span_of(lost.record), name=lost.name, context=context.surroundings(lost.record.function))
        finding = rule.report_lost(record, span_of(lost.again) if lost.again is not None else None, span_of(lost.wait))
        yield replace(finding, pairs=_pairs(missed.pairs(lost.wait, (), lost.record)))


def _pairs(works: Iterable[tuple[Site, Site]]) -> tuple[tuple[Span, Span], ...]:
    return tuple((span_of(first), span_of(second)) for first, second in works)


def _finding(rule: EventWaitBeforeRecord, context: Context, empty: EmptyWait) -> Finding:
    operation = Operation(span_of(empty.wait), name=empty.name, context=context.surroundings(empty.wait.function, empty.calls))
    place = operation.span
    if empty.record is not None and not empty.is_of_object:
        for depth, call in enumerate(empty.calls):
            others = empty.record_calls[: depth + 1]
            if others != empty.calls[: depth + 1] and all(_only_calls(site.function) for site in (*empty.calls[depth + 1 :], empty.wait)):
                place = span_of(call)
                break
    record = span_of(empty.record) if empty.record is not None else None
    made_calls = tuple(map(span_of, empty.made_calls))
    report = rule.report_query if empty.is_query else rule.report
    return report(operation, span_of(empty.made), made_calls, record, tuple(map(span_of, empty.also)), place)


def _only_calls(function: Function) -> bool:
    """Whether a function does nothing but make one call, and hand on what that says, to a check of errors for instance."""
    calls = [one for opcode in (op.CALL, op.INVOKE, op.LAUNCH) for one in function.by_opcode[opcode]]
    given = {one[2] for one in calls if op.DEFINES[one[0]]}
    return sum(given.isdisjoint(op.reads(one)) for one in calls) == 1
