"""SL002: work on the default stream in code that otherwise uses streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.checks.sl002_implicit_default_stream import ImplicitDefaultStream
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.findings import Finding, Step
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.default_stream import OVERTAKEN, SAME_MEMORY, DefaultStream
from streamlint.hazards.first_calls import FirstCalls
from streamlint.hazards.marks import Marks
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ordering.null_stream.cached_streams import CachedStream, CachedStreams
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import NULL
from streamlint.support.records import replace
from streamlint.transfer.actions import HANDLE
from streamlint.transfer.launch_rows import Queued

RULE = ImplicitDefaultStream
_KINDS = {"h2d": "host-to-device copy", "d2h": "device-to-host copy", "d2d": "device-to-device copy"}


class Found(NamedTuple):
    """Work on the null stream that somebody has chosen, and why that matters."""

    function: Function
    instruction: Instruction
    work: Queued
    choice: Choice
    reason: str
    calls: tuple[Site, ...] = ()  # from the function that works with streams, where it knows of none itself


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    streams = Streams(context)
    judge = DefaultStream(streams)
    first = FirstCalls(streams.transfer, streams.choices.places)
    kept = list(_kept(streams))
    stale = {use for one in kept for use in one.uses}
    reported: dict[tuple[Site, str], Finding] = {}
    for unit in context.facts.program.units.values():
        if judge.may_matter(unit):
            for function in filter(judge.uses_streams, unit.functions):
                for found in _of_function(streams, judge, function):
                    key = (found.choice.at, "" if found.choice.calls else found.work.name)
                    if (
                        key not in reported
                        and found.choice.at not in stale
                        and (judge.is_race(found.choice.at) or not first.is_first(found.choice.at))
                    ):
                        reported[key] = _finding(streams, judge, found)
    yield from (RULE().report_kept(one.name, span_of(one.read), list(map(span_of, one.uses)), one.read.function.name) for one in kept)
    yield from _marks(streams, judge)
    findings = [one for one in reported.values() if one.shown or context.options.evidence == "possible"]
    yield from _folded(streams, judge, findings)


def _of_function(streams: Streams, judge: DefaultStream, function: Function) -> Iterator[Found]:
    for one, work in streams.launches.of(function):
        for choice in streams.choices.of(function, one, work):
            if choice.kind == NULL and (reason := judge.reason(function, one, work, choice)):
                yield Found(function, one, work, choice, reason)
    for event in judge.inside(function):
        if event.work is not None and event.choice is not None:
            yield Found(event.at.function, event.at.instruction, event.work, event.choice, "other streams have work in flight", event.via)


def _kept(streams: Streams) -> Iterator[CachedStream]:
    """Current streams that were asked for once: as stale as none."""
    rows = streams.facts.cpp_models.with_effect("stream_of").items()
    asking = {name for name, each in rows if any(row.get("which") == "current" for row in each)}
    units = {unit for name in asking for unit in streams.facts.program.cpp.mentioning(name)}
    near = {one for unit in units for one in streams.facts.program.cpp.seeing(unit)}
    kept = CachedStreams(streams.transfer, streams.choices.places, streams.in_scope)
    for unit in sorted(near, key=lambda one: one.number):
        yield from kept.of(unit)


def _marks(streams: Streams, judge: DefaultStream) -> Iterator[Finding]:
    """C++: events for other streams, recorded on the default stream where the work before them is on another."""
    for mark in Marks(streams, judge).find():
        trail = [Step("default stream obtained here", span_of(mark.chosen))] if mark.chosen is not None else []
        suffix = streams.if_legacy(mark.record.function.unit)
        yield RULE().report_mark(span_of(mark.record), mark.missed, trail, suffix, mark.record.function.name)


def _finding(streams: Streams, judge: DefaultStream, found: Found) -> Finding:
    function, work, choice = found.function, found.work, found.choice
    holder = choice.at.function
    level = found.calls[0] if found.calls else choice.at
    race = judge.is_race(level) or found.reason in (SAME_MEMORY, OVERTAKEN)
    name = work.name.rpartition(".")[2]
    what = (
        f"{_KINDS.get(work.direction, 'copy')} ({name})" if work.kind == "copy" else f"launch of {name}" if work.kind == "kernel" else name
    )
    here = Site(function, found.instruction)
    finding = RULE().report(span_of(choice.at), what, choice.how, race, streams.if_legacy(function.unit), holder.name)
    trail = _trail(streams, judge, found, level)
    others = [] if choice.at == here else judge.near(level)
    pairs = [pair for other in others for pair in ((span_of(other), span_of(here)), (span_of(here), span_of(other)))]
    facts: dict[str, object] = {"stream": "null", "api": work.library, "direction": work.direction or None}
    help, shown = _help(judge, holder, work, choice), not judge.is_uncalled(function)
    return replace(finding, trail=tuple(trail), help=help, shown=shown, facts=facts, pairs=tuple(dict.fromkeys(pairs)))


def _trail(streams: Streams, judge: DefaultStream, found: Found, level: Site) -> list[Step]:
    """What leads to the work: other streams, where the default one was chosen, the handle, and the calls between."""
    choice, here = found.choice, Site(found.function, found.instruction)
    if found.reason == OVERTAKEN:
        overtaking = judge.memory.overtaking(here, found.work, choice)
        trail = [Step(found.reason, span_of(overtaking.at))] if overtaking is not None else []
    else:
        trail = [Step(f"{found.reason}: stream created here", span) for span in judge.made_beside(level)]
    if choice.obtained is not None and choice.obtained not in (choice.at, here):
        trail.append(Step("default stream obtained here", span_of(choice.obtained)))
    if choice.at != here:
        trail.append(Step("the work on the default stream", span_of(here)))
    trail += [Step("called from here", span_of(site)) for site in (*choice.calls, *found.calls) if site != choice.at]
    if not trail and (own := judge.own_stream(choice.at.function.unit)) is not None:
        trail.append(Step("other work in this file uses a stream", span_of(own)))
    if choice.how == HANDLE:
        trail += [
            Step("the handle is made here", span_of(site)) for site in streams.choices.handles.makers(found.function, found.work.operand)
        ]
    return trail


def _help(judge: DefaultStream, holder: Function, work: Queued, choice: Choice) -> str:
    if holder.is_cpp and judge.is_extension(holder.unit):
        return "pass at::cuda::getCurrentCUDAStream(), with a CUDAGuard for the tensor's device"
    if choice.how == HANDLE:
        return "set the handle's stream first (cublasSetStream, cufftSetStream, curandSetStream)"
    if choice.how == "policy":
        return "use thrust::cuda::par_nosync.on(stream)"
    if work.kind == "copy" and work.waits:
        return "use the asynchronous copy on that stream, and synchronize the stream before the host needs the data"
    return "pass the stream that the surrounding work uses"


def _folded(streams: Streams, judge: DefaultStream, findings: list[Finding]) -> Iterator[Finding]:
    """One finding for a file of an extension that uses no streams at all."""
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        by_file[one.span.file].append(one)
    units: dict[str, Unit] = streams.facts.program.units
    for path, own in by_file.items():
        unit = units.get(path)
        own.sort(key=Finding.sort_key)
        if unit is not None and len(own) > 1 and unit.is_cpp and judge.is_extension(unit) and judge.is_without_streams(unit):
            yield RULE().report_together(own, streams.if_legacy(unit))
        else:
            yield from own
