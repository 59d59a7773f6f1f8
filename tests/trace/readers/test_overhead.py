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
    assert trace.overhead == overhead.KINETO_CALL
    return [call.overhead for call in trace.calls]


def test_pauses_without_records_have_no_overhead() -> None:
    assert recorded((0, 5), (500, 505), operators=spans((-1, 506)), functions=spans()) == [0, 0]


def test_a_share_of_a_pause_by_what_was_recorded_in_it() -> None:
    """One operator ends and two begin: a share of the pause, at most a few times what such records take."""
    ran = spans((0, 6), (6, 20), (7, 20), (100, 105))
    (_, short, long) = recorded((0, 5), (11, 15), (400, 405), operators=ran, functions=spans())
    one = overhead.OPERATOR
    assert short == 6 * US * one.recorded // (one.recorded + one.itself)
    assert long == overhead.SLOWEST * 2 * one.recorded


def test_functions_are_cheaper_than_operators() -> None:
    stepped = recorded((0, 5), (11, 15), operators=spans(), functions=spans((6, 10)))
    ran = recorded((0, 5), (11, 15), operators=spans((6, 10)), functions=spans())
    assert 0 < stepped[1] < ran[1] < 6 * US


def test_threads_by_themselves() -> None:
    trace = Trace(
        "kineto", [Call("cudaLaunchKernel", 1, thread, start * US, (start + 5) * US) for thread, start in ((1, 0), (2, 3), (1, 20))]
    )
    overhead.of_kineto(trace, {(2, 9): spans((6, 10)), (1, 2): spans((6, 10))}, {})
    assert [call.overhead for call in trace.calls] == [0, 0, 0]
