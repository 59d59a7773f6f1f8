"""SL026: a thread is started under a stream, and works on the default stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl026_stream_context_not_inherited import StreamContextNotInherited
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, made_at, span_of
from streamlint.ordering.threads.thread_streams import ThreadStreams

RULE = StreamContextNotInherited


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    for lost in ThreadStreams(context.transfer).find():
        start = Operation(made_at(lost.start), lost.library, context=context.surroundings(lost.start.function, lost.calls))
        yield rule.report(start, span_of(lost.stream) if lost.stream is not None else None, span_of(lost.work), "created")
