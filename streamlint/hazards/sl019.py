"""SL019: a copy between devices in a program that never enables peer access."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl019_peer_copy_unprepared import PeerCopyUnprepared
from streamlint.findings import Finding
from streamlint.findings.operations import Copy
from streamlint.hazards.context import Context, span_at, span_of
from streamlint.ordering.threads.peer_copies import PeerCopies

RULE = PeerCopyUnprepared


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    for found in PeerCopies(context.transfer).find():
        call = found.copy
        place = span_at(call.function, call.instruction)
        copy = Copy(place, call.row.library, call.name, context=context.surroundings(call.function))
        yield rule.report(copy, span_of(found.begin))
