"""What recording took of the host's time: for each call, and for what was recorded between two calls of a thread.

The figures are of `benchmarks/trace_gains.py`, whose loops of one thing were timed plain and recorded. A host that is slow for the moment,
since its caches are cold after a wait, is slow in what it records as well: of a longer pause the same share is put down to recording.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamlint.trace.model import Call, Trace
    from streamlint.trace.readers.kineto_events import Spans, Thread

RECORDER_CALL, KINETO_CALL = 2_000, 2_000
"""Nanoseconds that the record of a call takes, by the project's recorder and by PyTorch's profiler."""
SLOWEST = 4
"""How many times as much as usual recording takes at most."""


@record(frozen=True, slots=True)
class Price:
    """Nanoseconds that a thing takes the host by itself, and that its record takes besides."""

    itself: int
    recorded: int


OPERATOR = Price(2_000, 2_000)
FUNCTION = Price(300, 500)


def of_kineto(trace: Trace, operators: Mapping[Thread, Spans], functions: Mapping[Thread, Spans]) -> None:
    """Say what recording took before and in the calls of a trace, from the operators and Python functions between them."""
    trace.overhead = KINETO_CALL
    by_thread: dict[Thread, list[Call]] = defaultdict(list)
    for call in trace.calls:
        by_thread[call.process, call.thread].append(call)
    for thread, calls in by_thread.items():
        counted = [_counted(calls, spans.get(thread)) for spans in (operators, functions)]
        before = calls[0].start
        for call, ran, stepped in zip(calls, *counted, strict=True):
            recorded = ran * OPERATOR.recorded + stepped * FUNCTION.recorded
            itself = ran * OPERATOR.itself + stepped * FUNCTION.itself
            if recorded and call.start > before:
                share = recorded / (recorded + itself)
                call.overhead = round(min((call.start - before) * share, SLOWEST * recorded))
            before = call.end


def _counted(calls: Sequence[Call], spans: Spans | None) -> Iterable[float]:
    """How many spans of its thread begin and end, half each, between a call and the one before it."""
    if spans is None:
        return [0.0] * len(calls)
    starts, ends = sorted(spans.start), sorted(spans.end)
    found: list[float] = []
    passed = bisect_left(starts, calls[0].start) + bisect_left(ends, calls[0].start)
    for call in calls:
        now = bisect_left(starts, call.start) + bisect_left(ends, call.start)
        found.append((now - passed) / 2)
        passed = now
    return found
