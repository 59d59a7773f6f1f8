"""SL006: device work uses memory that work on another stream writes, and nothing orders the two."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl006_cross_stream_use_without_wait import CrossStreamUseWithoutWait
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Launch
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.streams import Streams, created
from streamlint.ordering.races.race_judge import Race
from streamlint.ordering.races.races import Races
from streamlint.transfer.actions import APART, CURRENT

RULE = CrossStreamUseWithoutWait
_MOST_OTHERS = 8
"""Other calls that a trail names."""


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule, streams, races = RULE(), Streams(context), Races(context.transfer)
    races.is_wide = context.options.evidence == "possible"
    races.lanes.per_thread = lambda unit: streams.per_thread(unit) is True
    reported: dict[tuple[Site, tuple[Site, ...]], Function] = {}
    for race in sorted(races.find(), key=lambda race: span_of(race.second)):
        first = reported.setdefault((race.first, race.second_calls), race.second.function)
        if first is race.second.function or not race.second_calls:  # one of several functions that a call may enter speaks for all
            yield _reported(rule, context, race, streams)


def _reported(rule: CrossStreamUseWithoutWait, context: Context, race: Race, asked: Streams) -> Finding:
    function = race.second.function
    library = race.use.library or race.work.library or ("cuda-runtime" if function.is_cpp else "torch")
    is_apart = race.work.stream.kind == APART
    around = context.surroundings(race.first.function, race.first_calls)
    first = Launch(span_of(race.first), library, race.work.name, context=around, kind="collective" if is_apart else "kernel")
    kind = "upload" if race.use.moves else "kernel"
    second = Launch(span_of(race.second), library, race.use.name, kind=kind, context=context.surroundings(function, race.second_calls))
    streams = (*(_apart(race) if is_apart else created("that stream", race.lane)), *created("this stream", race.other))
    others = tuple(sorted(map(span_of, race.others)))[:_MOST_OTHERS]
    if any(lane.kind == CURRENT and lane.blocking is False for lane in (race.lane, race.other)):
        streams = (*streams, *asked.per_thread_because(function.unit))
    if race.unknown_work:
        return rule.report_unknown(first, second, streams, race.unknown_work, others)
    return rule.report(first, second, race.is_write, streams, others)


def _apart(race: Race) -> Iterator[Step]:
    """That a collective is asynchronous."""
    yield Step("works on a stream of its own here, which the wait of its handle orders", span_of(race.first))
