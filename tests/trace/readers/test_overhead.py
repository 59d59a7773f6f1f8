"""What is put down to recording, between calls and in them."""

from __future__ import annotations

from streamlint.trace.model import Call, Trace
from streamlint.trace.readers import overhead
from streamlint.trace.readers.kineto_events import Spans

US = 1000


def spans(*times: tuple[int, int]) -> Spans:
    made = Spans()
    for start, end in times:
        made.add(start * US, end * US, 0)
    return made


def recorded(*times: tuple[int, int], operators: Spans, functions: Spans) -> list[int]:
    """The overhead of a thread's calls."""
    trace = Trace("kineto", [Call("cudaLaunchKernel", 1, 1, start * US, end * US) for start, end in times])
    overhead.of_kineto(trace, {(1, 1): operators}, {(1, 1): functions})
    assert trace.overhead == overhead.CALL
    return [call.overhead for call in trace.calls]


def test_pauses_without_records_have_no_overhead() -> None:
    assert recorded((0, 5), (500, 505), operators=spans((-1, 506)), functions=spans()) == [0, 0]


def test_begins_and_ends_count_half_each() -> None:
    """Before the second call one operator has ended and two have begun, before the third two have ended; they need not stand in order."""
    ran = spans((100, 105), (7, 20), (-3, 6), (6, 20))
    assert recorded((0, 5), (11, 15), (400, 405), operators=ran, functions=spans()) == [
        0,
        3 * overhead.OPERATOR // 2,
        2 * overhead.OPERATOR,
    ]


def test_functions_count_besides() -> None:
    found = recorded((0, 5), (11, 15), operators=spans((6, 10)), functions=spans((7, 9)))
    assert found == [0, overhead.OPERATOR + overhead.FUNCTION]


def test_threads_by_themselves() -> None:
    calls = [Call("cudaLaunchKernel", 1, thread, start * US, (start + 5) * US) for thread, start in ((1, 0), (2, 3), (1, 20))]
    trace = Trace("kineto", calls)
    overhead.of_kineto(trace, {(2, 9): spans((6, 10)), (1, 2): spans((6, 10))}, {})
    assert [call.overhead for call in trace.calls] == [0, 0, 0]


def test_the_recorder_takes_longer_in_other_threads() -> None:
    calls = [Call("cudaLaunchKernel", 1, thread, start * US, (start + 5) * US) for thread, start in ((1, 0), (2, 3), (1, 20))]
    trace = Trace("recorded", calls, main_threads={1: 1})
    overhead.of_recorder(trace)
    assert [call.overhead for call in trace.calls] == [overhead.BESIDE, overhead.BESIDE_IN_THREADS, overhead.BESIDE]
    assert trace.overhead == overhead.OWN_CALL
