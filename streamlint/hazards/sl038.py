"""SL038: device work uses memory that is allocated in the order of another stream, and nothing puts it behind the allocation."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl038_use_before_allocation import UseBeforeAllocation
from streamlint.findings import Finding
from streamlint.findings.operations import Alloc, Launch
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.streams import Streams, created
from streamlint.ordering.races.first_uses import FirstUses
from streamlint.ordering.races.race_judge import Race

RULE = UseBeforeAllocation


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule, streams, uses = RULE(), Streams(context), FirstUses(context.transfer)
    uses.lanes.per_thread = lambda unit: streams.per_thread(unit) is True
    for race in sorted(uses.find(), key=lambda race: span_of(race.second)):
        yield _finding(rule, context, race)


def _finding(rule: UseBeforeAllocation, context: Context, race: Race) -> Finding:
    around = context.surroundings(race.first.function, race.first_calls)
    allocated = Alloc(span_of(race.first), race.work.library, race.work.name, context=around)
    library = race.use.library or race.work.library
    use = Launch(span_of(race.second), library, race.use.name, context=context.surroundings(race.second.function, race.second_calls))
    return rule.report(allocated, use, (*created("that stream", race.lane), *created("this stream", race.other)))
