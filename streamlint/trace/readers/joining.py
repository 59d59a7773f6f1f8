"""What all readers do last: join calls with the work that they started, keep the outermost calls, and name main threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from streamlint.trace.model import Call, Trace, Work

_DAY = 86_400 * 10**9
_SKEW = 10**6
"""Nanoseconds by which clocks of host and GPU may differ: profilers convert one into the other, to some microseconds."""
_MEMORY_SIDE = ("copy", "fill")


def outermost(calls: list[Call]) -> tuple[list[Call], dict[tuple[int, int], Call]]:
    """The calls that no other call of their thread contains, by start, and by process and correlation the one around each call."""
    remaining: list[Call] = []
    around: dict[tuple[int, int], Call] = {}
    open_calls: dict[tuple[int, int], Call] = {}
    for call in sorted(calls, key=lambda one: (one.start, -one.end)):
        key = call.process, call.thread
        outer = open_calls.get(key)
        if outer is None or call.start >= outer.end or call.end > outer.end:
            outer = open_calls[key] = call
            remaining.append(call)
        if call.correlation:
            around[call.process, call.correlation] = outer
    return remaining, around


def join_works(works: Iterable[Work], around: dict[tuple[int, int], Call], processes: set[int]) -> None:
    """Give each work the process of the call that started it, and each call the stream, bytes and memory of its work.

    Where a file holds several processes, correlations of theirs may be equal: the latest call before the work started it.
    """
    one = next(iter(processes)) if len(processes) == 1 else None
    for work in works:
        if one is not None:
            work.process = one
        if one is not None or work.process in processes:
            call = around.get((work.process, work.correlation))
        else:
            found = [call for process in processes if (call := around.get((process, work.correlation))) and call.start <= work.start]
            call = max(found, key=lambda call: call.start, default=None)
        if call is None or not work.correlation:
            continue
        work.process = call.process
        work.correlation = call.correlation or work.correlation
        if call.stream is None:
            call.stream = work.stream
        if work.kind in _MEMORY_SIDE and not call.bytes and "Graph" not in call.name:
            call.bytes, call.source, call.destination = work.bytes, work.source, work.destination


def mark_captures(calls: Iterable[Call]) -> None:
    """Mark the calls that a thread made while it captured a graph; ``calls`` by start."""
    capturing: set[tuple[int, int]] = set()
    for call in calls:
        key = call.process, call.thread
        if "EndCapture" in call.name:
            capturing.discard(key)
        call.capturing = key in capturing
        if "BeginCapture" in call.name:
            capturing.add(key)


def leave_out_jumps(trace: Trace) -> None:
    """Take out calls and work more than a day from the middle of the run: their clock jumped."""
    starts = sorted(one.start for ones in (trace.calls, trace.works) for one in ones)
    if not starts or starts[-1] - starts[0] <= _DAY:
        return
    middle = starts[len(starts) // 2]
    before = len(starts)
    trace.calls = [one for one in trace.calls if abs(one.start - middle) <= _DAY]
    trace.works = [one for one in trace.works if abs(one.start - middle) <= _DAY]
    left = before - len(trace.calls) - len(trace.works)
    trace.notes.append(f"{left} events lie more than a day from the others and were left out: a clock jumped")


def tell_of_clocks(trace: Trace) -> None:
    """Say how much work began long before the call that started it: the clock of the host or of the GPU jumped, so times are wrong."""
    starts = {(call.process, call.correlation): call.start for call in trace.calls if call.correlation}
    early = sum(starts.get((work.process, work.correlation), work.start) - work.start > _SKEW for work in trace.works)
    if early:
        trace.notes.append(
            f"{early} kernels or copies begin before the calls that started them: a clock jumped, so times and costs are wrong"
        )


def main_threads(calls: Iterable[Call], likely: dict[int, int]) -> dict[int, int]:
    """Of each process its main thread: on Linux the thread that has the process's number, else the likely one, else the busiest."""
    count: dict[int, Counter[int]] = defaultdict(Counter)
    for call in calls:
        count[call.process][call.thread] += 1
    return {
        process: process if process in threads else likely.get(process, threads.most_common(1)[0][0]) for process, threads in count.items()
    }
