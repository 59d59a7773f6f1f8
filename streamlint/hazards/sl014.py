"""SL014: a synchronization of the default stream does not wait for work on a non-blocking stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl014_legacy_sync_misses_nonblocking import LegacySyncMissesNonblocking
from streamlint.findings import Finding
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.legacy_waits import LegacyWaits
from streamlint.hazards.streams import Streams
from streamlint.support.records import replace

RULE = LegacySyncMissesNonblocking


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context)
    for missed in LegacyWaits(streams).find():
        found = RULE().report(
            span_of(missed.legacy),
            missed.kind,
            span_of(missed.work) if missed.work is not None else None,
            missed.made,
            span_of(missed.read) if missed.read is not None else None,
            span_of(missed.passed) if missed.passed is not None else None,
            [span_of(call) for call in missed.calls],
        )
        yield replace(found, qualname=missed.legacy.function.name)
