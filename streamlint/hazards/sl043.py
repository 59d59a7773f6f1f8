"""SL043: compiled code waits for streams, and the compiler leaves the wait out or fails."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl043_stream_in_compiled_region import StreamInCompiledRegion
from streamlint.findings import Finding
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.captures.compiled_streams import CompiledStreams
from streamlint.ordering.races.compiled_races import CompiledRace, CompiledRaces
from streamlint.support.records import replace

RULE = StreamInCompiledRegion


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = CompiledStreams(context.transfer)
    lost = list(streams.lost())
    reported = {call.region.at for call in lost}
    for call in lost:
        calls = [span_of(site) for site in call.region.calls]
        found = RULE().report(span_of(call.at), call.name.rpartition(".")[2], call.why, span_of(call.region.at), calls)
        yield replace(found, qualname=call.at.function.name)
    for race in _races(context, streams):
        if race.region.at not in reported:  # else the wait that is left out is reported
            calls = [span_of(site) for site in race.region.calls]
            found = RULE().report(span_of(race.second), "", "work", span_of(race.region.at), calls, span_of(race.first))
            yield replace(found, qualname=race.second.function.name)


def _races(context: Context, streams: CompiledStreams) -> list[CompiledRace]:
    """Work of compiled code on a stream that it enters, where others have queued what it uses."""
    if not streams.enters:
        return []
    races = CompiledRaces(context.transfer, streams.compiled)
    for _ in races.find():
        pass
    return sorted(races.races.values(), key=lambda race: span_of(race.second))
