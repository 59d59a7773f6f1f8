"""A trace of PyTorch's profiler (Kineto), in Chrome's JSON, plain or packed with gzip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Trace
from streamlint.trace.readers import joining, overhead
from streamlint.trace.readers.json_stream import EventStream
from streamlint.trace.readers.kineto_events import Events, number, streams_of
from streamlint.trace.readers.lines import attribute
from streamlint.trace.readers.sources import Sources

HOW_TO_RECORD = "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True)"


def read(path: Path, roots: Sequence[Path]) -> Trace:
    """Read a trace.

    Raises StreamlintError where the file is no trace or says nothing of CUDA, OSError where it cannot be read.
    """
    stream = EventStream(path)
    events = Events()
    for event in stream.events():
        events.take(event)
    if not events.calls and not events.works:
        if stream.truncated:
            raise StreamlintError(f"{path} is cut off before its CUDA events, which PyTorch writes last: export or copy it anew")
        raise StreamlintError(f"{path} has no CUDA events: {HOW_TO_RECORD}")
    trace = Trace("kineto")
    _notes_of_reading(trace, stream, events)
    trace.calls, around = joining.outermost(events.calls)
    trace.works = events.works
    processes = {call.process for call in trace.calls}
    joining.join_works(trace.works, around, processes)
    for call in trace.calls:
        if call.stream is None:
            call.stream = events.waits.get(call.correlation)
    joining.leave_out_jumps(trace)
    joining.mark_captures(trace.calls)
    trace.streams = streams_of(trace.works)
    trace.main_threads = joining.main_threads(trace.calls, _most_python(events))
    trace.thread_names = {key: name for key, name in events.thread_names.items() if key[0] in processes}
    trace.gpu = _gpu(stream.header)
    if (rank := _rank(stream.header)) is not None and len(processes) == 1:
        trace.ranks = dict.fromkeys(processes, rank)
    _span(trace, events)
    trace.sort()
    overhead.of_kineto(trace, events.operators, events.python)
    _place(trace, events, Sources(roots))
    _since_1970(trace, number(stream.header.get("baseTimeNanoseconds")))
    return trace


def _since_1970(trace: Trace, base: int) -> None:
    """Times of newer traces count from a base of their own: from 1970 on, those of several ranks can be put side by side."""
    if base:
        trace.start, trace.end = trace.start + base, trace.end + base
        for call in trace.calls:
            call.start, call.end = call.start + base, call.end + base
        for work in trace.works:
            work.start, work.end = work.start + base, work.end + base


def _place(trace: Trace, events: Events, sources: Sources) -> None:
    if not events.python:
        attribute(trace, events, sources)
        trace.notes.append(f"the trace has no Python stacks, so costs have no lines: {HOW_TO_RECORD}")
        return
    users = attribute(trace, events, sources)
    if len(trace.stacks) == 1:
        given = ", ".join(str(root) for root in sources.roots) or "no files"
        trace.notes.append(f"no call was made from a file under {given}: is this the trace of another program?")
    trace.notes += [f"{path} was changed after the recording: its functions begin on other lines" for path in users.changed()]


def _most_python(events: Events) -> dict[int, int]:
    """Of each process the thread that ran the most Python functions."""
    found: dict[int, tuple[int, int]] = {}
    for (process, thread), spans in events.python.items():
        found[process] = max(found.get(process, (0, 0)), (len(spans), thread))
    return {process: thread for process, (_, thread) in found.items()}


def _rank(header: dict[str, Any]) -> int | None:
    """The rank that PyTorch's profiler notes where torch.distributed has begun."""
    distributed = header.get("distributedInfo")
    found = distributed.get("rank") if isinstance(distributed, dict) else None
    return found if type(found) is int and found >= 0 else None


def _gpu(header: dict[str, Any]) -> str:
    devices = header.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else None
    return str(first.get("name", "")) if isinstance(first, dict) else ""


def _span(trace: Trace, events: Events) -> None:
    """The recorded span, as far as it holds the calls."""
    if events.span and trace.calls and events.span[0] <= trace.calls[0].start < events.span[1]:
        trace.start, trace.end = events.span


def _notes_of_reading(trace: Trace, stream: EventStream, events: Events) -> None:
    if stream.truncated:
        trace.notes.append(f"{stream.path} is cut off: {len(events.calls)} calls up to there were read")
    if stream.skipped:
        trace.notes.append(f"{stream.skipped} events of {stream.path} are no valid JSON and were left out")
    if events.odd:
        trace.notes.append(f"{events.odd} events without a time were left out")
    if events.negative:
        trace.notes.append(f"{events.negative} events end before they begin, and count as instants: a clock jumped")
