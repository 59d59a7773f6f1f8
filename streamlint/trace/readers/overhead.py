"""What recording takes of the host's time: for each call, and for what was recorded between two calls of a thread.

The figures are those of `benchmarks/trace_gains.py` on an H200: loops of one thing, timed plain and recorded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlint.trace.model import Call, Trace
    from streamlint.trace.readers.kineto_events import Spans, Thread

CALL = 2_000
"""Nanoseconds by which CUPTI's record of a call makes it longer, as PyTorch's profiler has them made."""
OPERATOR, FUNCTION = 1_000, 400
"""Nanoseconds that PyTorch's profiler takes for the begin and the end of an operator, and of a Python function."""
OWN_CALL = 2_500
"""Nanoseconds by which a call takes longer in a recording of the project's recorder, most of them for CUPTI's record of its work.

Loops of one call each are 1.5 to 3 µs longer in all, a training step of 1,980 calls is 4.5 µs longer for each (`trace_overhead.json`): its
caches are cold. These are the loops' figures, taken up to that step's."""
BESIDE, BESIDE_IN_THREADS = 2_000, 4_500
"""Nanoseconds that the recorder takes besides, before or behind a call: in the main thread, and in others, as in autograd's."""


def of_recorder(trace: Trace) -> None:
    """Say what recording took before and in the calls of the project's recorder."""
    trace.overhead = OWN_CALL
    for call in trace.calls:
        call.overhead = BESIDE if call.thread == trace.main_threads.get(call.process) else BESIDE_IN_THREADS


def of_kineto(trace: Trace, operators: Mapping[Thread, Spans], functions: Mapping[Thread, Spans]) -> None:
    """Say what recording took before and in the calls of a trace, from the operators and Python functions between them."""
    trace.overhead = CALL
    by_thread: dict[Thread, list[Call]] = defaultdict(list)
    for call in trace.calls:
        by_thread[call.process, call.thread].append(call)
    for thread, calls in by_thread.items():
        counted = [_counted(calls, spans.get(thread)) for spans in (operators, functions)]
        for call, ran, stepped in zip(calls, *counted, strict=True):
            call.overhead = round(ran * OPERATOR + stepped * FUNCTION)


def _counted(calls: Sequence[Call], spans: Spans | None) -> list[float]:
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
