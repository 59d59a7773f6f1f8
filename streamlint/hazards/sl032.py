"""SL032: a wait that is there, and is for the wrong stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl032_wait_on_wrong_stream import WaitOnWrongStream
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding, Span
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.streams import Streams
from streamlint.ordering.null_stream.same_stream_waits import ITSELF, SameStreamWaits, VoidWait
from streamlint.ordering.races.void_waits import RacesBehindVoid
from streamlint.support.records import replace

RULE = WaitOnWrongStream
Pairs = dict[Site, list[tuple[Span, Span]]]


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    asked = SameStreamWaits(context.transfer)
    waits = list(asked.waits())
    pairs = _left_unordered(context, waits) if waits else {}
    for wait in waits:
        if wait.at in pairs or wait.why == ITSELF:
            yield _finding(wait, pairs.get(wait.at, []))
    for mark in asked.marks():
        yield _finding(mark, [])


def _left_unordered(context: Context, waits: list[VoidWait]) -> Pairs:
    """The accesses that each of some waits leaves unordered."""
    streams, races = Streams(context), RacesBehindVoid(context.transfer, waits)
    races.is_wide = context.options.evidence == "possible"
    races.lanes.per_thread = lambda unit: streams.per_thread(unit) is True
    for _ in races.find():
        pass
    return {site: sorted({(span_of(first), span_of(second)) for first, second in found}) for site, found in races.pairs.items()}


def _finding(wait: VoidWait, pairs: list[tuple[Span, Span]]) -> Finding:
    switched = span_of(wait.switched) if wait.switched is not None else None
    taken = span_of(wait.taken) if wait.taken is not None else None
    found = RULE().report(span_of(wait.at), wait.why, switched, taken, pairs, [span_of(call) for call in wait.calls])
    return replace(found, qualname=wait.at.function.name)
