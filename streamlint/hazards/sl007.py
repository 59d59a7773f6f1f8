"""SL007: memory goes back to the pool of its stream while another stream may still use it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl007_missing_record_stream import MissingRecordStream
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Drop, Launch
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.races.releases import Releases
from streamlint.ordering.streams.lanes import Lane

RULE = MissingRecordStream


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    for release in context.transfer.one_of(Releases, context.transfer).releases():
        if release.kind:  # SL039
            continue
        library = release.library or "torch"
        use = Launch(span_of(release.use), library, "", context=context.surroundings(release.use.function, release.calls))
        made = span_of(release.allocation) if release.allocation != release.use else None
        drop = Drop(span_of(release.drop), library, "", allocated=made)
        reuse = span_of(release.again) if release.again is not None else None
        yield rule.report(use, drop, reuse, (_made(release.home), _made(release.lane)))


def _made(lane: Lane) -> tuple[Step, ...]:
    """Where a stream is made."""
    return tuple(Step("stream created here", span_of(site)) for site in sorted(lane.made, key=span_of)[:1])
