"""SL037: collectives of two communicators, which ranks can start the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl037_collectives_unordered import CollectivesUnordered
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.crosswise import Crosswise
from streamlint.ordering.threads.threaded_collectives import ThreadedCollectives
from streamlint.ordering.threads.unordered_collectives import UnorderedCollectives

RULE = CollectivesUnordered


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule: ways that cross, threads, then pairs that nothing orders, one for each second collective."""
    rule = RULE()
    walk = UnorderedCollectives(context.transfer)
    crossed: set[Site] = set()
    for ways in Crosswise(context.transfer, walk.known).find():
        second = ways.second
        crossed.add(second.site)
        surroundings = context.surroundings(second.site.function, second.calls)
        operation = Operation(span_of(second.site), second.call.row.library, second.call.name, context=surroundings)
        yield rule.crossed(operation, span_of(ways.first.site), span_of(ways.other.site))
    for threads in ThreadedCollectives(context.transfer, walk.known).find():
        crossed.add(threads.second)
        operation = Operation(
            span_of(threads.second), threads.call.row.library, threads.call.name, context=context.surroundings(threads.second.function)
        )
        yield rule.threaded(operation, span_of(threads.first), span_of(threads.started))
    for pair in walk.find():
        if pair.second not in crossed:
            surroundings = context.surroundings(pair.second.function, pair.calls)
            operation = Operation(span_of(pair.second), pair.library, pair.name, context=surroundings)
            yield rule.report(operation, span_of(pair.first), pair.is_asynchronous)
