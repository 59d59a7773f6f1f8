"""SL043: compiled code changes its input in place on a side stream, and its own wait comes before the copy back."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl043_stream_in_compiled_region import StreamInCompiledRegion
from streamlint.findings import Finding
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.compiled_streams import CompiledStreams
from streamlint.record import replace

RULE = StreamInCompiledRegion


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    for change in CompiledStreams(context.transfer).changes():
        calls = [span_of(call) for call in change.region.calls]
        found = RULE().told(span_of(change.at), span_of(change.switched), span_of(change.wait), span_of(change.region.at), calls)
        yield replace(found, qualname=change.at.function.name)
