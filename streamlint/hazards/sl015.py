"""SL015: a blocking stream whose kernels serialize with work on the default stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl015_blocking_stream import BlockingStream
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.program import Unit
from streamlint.facts.values.constructions import is_constructor
from streamlint.findings import Finding
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.default_stream import DefaultStream
from streamlint.hazards.streams import Streams
from streamlint.ordering.null_stream.passed_streams import PassedStreams
from streamlint.ordering.streams.choices import NULL
from streamlint.ordering.streams.concurrent_work import Event

RULE = BlockingStream


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context)
    if not _makes_blocking(streams):
        return
    judge, passed_streams = DefaultStream(streams), PassedStreams(streams.beside)
    seen: set[Site] = set()
    for unit in context.facts.program.units.values():
        for function in unit.functions if judge.may_matter(unit) else ():
            if not _is_life(judge, function) and judge.uses_streams(function):
                for null in _on_null(streams, judge, function):
                    yield from _beside(streams, judge, passed_streams, function, null, seen)


def _is_life(judge: DefaultStream, function: Function) -> bool:
    """Whether a function makes or ends an object."""
    return is_constructor(function) or judge.is_teardown(function)


def _on_null(streams: Streams, judge: DefaultStream, function: Function) -> Iterator[Event]:
    """The work on the null stream of a function, and of those that it calls, that nobody has chosen further up."""
    for event in streams.beside.events(function):
        is_null = event.work is not None and event.choice is not None and event.choice.kind == NULL and not event.choice.calls
        if is_null and (not event.via or not _is_life(judge, event.at.function)):
            yield event


def _makes_blocking(streams: Streams) -> bool:
    """Whether any call of the program makes a blocking stream."""
    calls = streams.transfer.sites(frozenset({"stream"}))
    return any(streams.asked_blocking(Site(call.function, call.instruction)) is True for call in calls)


def _beside(
    streams: Streams, judge: DefaultStream, passed_streams: PassedStreams, function: Function, null: Event, seen: set[Site]
) -> Iterator[Finding]:
    flying = _in_flight(streams, function, null)
    for event in flying:
        assert event.choice is not None
        made = frozenset(one for one in passed_streams.of(function, event.choice) if streams.is_blocking(one) and one.site not in seen)
        if not made or judge.is_ordered_on_purpose(function, null.instruction) or passed_streams.is_relied_upon(function, event, made):
            continue
        last = [other for other in flying if other.choice is not None and other.choice.key == event.choice.key][-1]
        for one in sorted(made, key=lambda each: each.site is not None and (each.site.function.unit.path, each.site.row)):
            assert one.site is not None
            seen.add(one.site)
            ways = passed_streams.ways(function, frozenset({one}))
            calls = event.choice.calls or next((way for home, way in ways if home is one.site.function), ())
            yield RULE().report(
                span_of(one.site),
                span_of(last.at),
                span_of(null.at),
                [span_of(call) for call in calls],
                _library(one, function.unit),
                streams.if_legacy(function.unit),
                one.site.function.name,
            )


def _in_flight(streams: Streams, function: Function, null: Event) -> list[Event]:
    """The kernels of other streams beside work on the null stream: of this call, or else of those before it."""
    flying = [event for event in streams.beside.in_flight(function, null.instruction) if _is_kernel(event)]
    return flying or ([] if null.via else streams.beside.of_earlier_calls(function, null.instruction, _is_kernel))


def _is_kernel(event: Event) -> bool:
    return event.work is not None and event.work.kind != "copy"


def _library(stream: LibraryObject, unit: Unit) -> str:
    head = stream.type.partition(".")[0]
    return (
        head
        if head in unit.models.marked("device-alone")
        else "cuda-driver"
        if stream.type.rpartition(".")[2].startswith("cuStream")
        else ""
    )
