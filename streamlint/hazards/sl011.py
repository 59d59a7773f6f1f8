"""SL011: the host reads the result of an asynchronous collective, and waits for all processes."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl011_collective_then_host_read import CollectiveThenHostRead
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import HostRead
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.collective_reads import CollectiveReads

RULE = CollectiveThenHostRead


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule: of what several collectives make, each read once."""
    rule = RULE()
    seen: set[Site] = set()
    for found in CollectiveReads(context.transfer).find():
        if found.read not in seen:
            seen.add(found.read)
            surroundings = context.surroundings(found.read.function, found.calls)
            read = HostRead(span_of(found.read), found.library, found.name, context=surroundings)
            yield rule.report(read, span_of(found.collective))
