"""SL015: a blocking stream whose kernels serialize with work on the default stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl015_blocking_stream import BlockingStream
from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Site
from streamlint.findings import Finding
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.default_stream import DefaultStream
from streamlint.hazards.streams import Streams
from streamlint.ordering.at_hand import is_constructor
from streamlint.ordering.beside import Event
from streamlint.ordering.choices import MADE, NULL
from streamlint.ordering.places import Place
from streamlint.ordering.storage import Storages

RULE = BlockingStream


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context)
    if not _makes_blocking(streams):
        return
    judge = DefaultStream(streams)
    seen: set[Site] = set()
    for unit in context.facts.program.units.values():
        for function in unit.functions if judge.may_matter(unit) else ():
            if is_constructor(function) or judge.is_teardown(function) or not judge.uses_streams(function):
                continue
            for null in streams.beside.own(function):
                if null.work is not None and null.choice is not None and null.choice.kind == NULL and not null.choice.calls:
                    yield from _beside(streams, judge, function, null, seen)


def _makes_blocking(streams: Streams) -> bool:
    """Whether any call of the program makes a blocking stream."""
    calls = streams.transfer.sites(frozenset({"stream"}))
    return any(streams.asked_blocking(Site(call.function, call.instruction)) is True for call in calls)


def _beside(streams: Streams, judge: DefaultStream, function: Function, null: Event, seen: set[Site]) -> Iterator[Finding]:
    flying = [
        event for event in streams.beside.in_flight(function, null.instruction) if event.work is not None and event.work.kind != "copy"
    ]
    for event in flying:
        assert event.choice is not None
        made = [one for one in event.choice.made if streams.is_blocking(one)] if event.choice.kind == MADE else []
        if not made or judge.is_ordered_on_purpose(function, null.instruction) or _is_relied_upon(streams, function, event):
            continue
        for one in made:
            if one.site is not None and one.site not in seen:
                seen.add(one.site)
                last = [other for other in flying if other.choice is not None and other.choice.key == event.choice.key][-1]
                yield RULE().told(
                    span_of(one.site),
                    span_of(last.at),
                    span_of(null.at),
                    [span_of(call) for call in event.choice.calls],
                    _library(one),
                    streams.if_legacy(function.unit),
                    one.site.function.name,
                )


def _library(stream: LibraryObject) -> str:
    head = stream.type.partition(".")[0]
    return head if head in ("cupy", "numba") else "cuda-driver" if stream.type.rpartition(".")[2].startswith("cuStream") else ""


def _is_relied_upon(streams: Streams, function: Function, event: Event) -> bool:
    """Whether other streams meet the stream's data: the barrier is an order that the path may need."""
    assert event.choice is not None
    storages = Storages(streams.transfer, streams.choices.places, streams.launches)
    events = [other for other in streams.beside.events(function) if other.work is not None and other.choice is not None]
    own = [other for other in events if other.choice is not None and other.choice.key == event.choice.key]
    touched = {place for other in own for place in _touched(storages, other)}
    return any(touched & _touched(storages, other) for other in events if other not in own)


def _touched(storages: Storages, event: Event) -> set[Place]:
    reads, writes = storages.touched(event)
    return reads | writes
