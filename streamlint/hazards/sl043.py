"""SL043: compiled code waits for streams, and the compiler leaves the wait out or fails."""

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
    for call in CompiledStreams(context.transfer).lost():
        calls = [span_of(site) for site in call.region.calls]
        found = RULE().told(span_of(call.at), call.name.rpartition(".")[2], call.why, span_of(call.region.at), calls)
        yield replace(found, qualname=call.at.function.name)
