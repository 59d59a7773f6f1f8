"""Laws that clocks keep on all short programs."""

from __future__ import annotations

import itertools

import pytest

from streamlint.cuda_model import MAIN, NULL, Clocks, Stamp
from streamlint.cuda_model.clocks import covers

STEPS = ["issue a", "issue x", "issue null", "wait a x", "wait x a", "sync x", "sync null"]
STREAMS = ("a", "x", NULL)
# The same by another thread, and both ways for the two to meet.
SPREAD = [*STEPS, "issue a other", "issue x other", "sync a other", "sync null other", "join main other", "join other main"]
THREADS = (MAIN, "other")


def play(clocks: Clocks, program: tuple[str, ...]) -> list[Stamp]:
    stamps = []
    for step in program:
        match step.split():
            case ["issue", stream, *thread]:
                stamps.append(clocks.issue(stream, thread=thread[0] if thread else MAIN))
            case ["wait", stream, on]:
                clocks.wait(stream, clocks.record(on))
            case ["sync", stream, *thread]:
                clocks.synchronize(clocks.stream_work(stream), thread[0] if thread else MAIN)
            case ["join", thread, other]:
                clocks.join(thread, other)
    return stamps


def facts(clocks: Clocks, stamps: list[Stamp]) -> set[tuple[Stamp, str, str]]:
    """What is ordered before the next work of a stream, and what a thread has seen."""
    ordered = {
        (stamp, stream, thread) for stamp in stamps for stream in STREAMS for thread in THREADS if clocks.ordered(stamp, stream, thread)
    }
    return ordered | {(stamp, "host", thread) for stamp in stamps for thread in THREADS if clocks.host_sees(stamp, thread)}


@pytest.mark.parametrize("first", SPREAD)
def test_what_is_ordered_is_what_issuing_would_do(first: str) -> None:
    for rest in itertools.product(SPREAD, repeat=2):
        clocks = Clocks(blocking={"x"})
        stamps = play(clocks, (first, *rest))
        for stream, thread in itertools.product(STREAMS, THREADS):
            ahead = clocks.copy()
            ahead.issue(stream, thread=thread)
            for stamp in stamps:
                assert covers(ahead.of(stream), stamp) is clocks.ordered(stamp, stream, thread), (first, *rest)


@pytest.mark.parametrize("first", STEPS)
def test_a_stream_is_ordered_with_itself_and_what_the_host_saw_is_before_all(first: str) -> None:
    for rest in itertools.product(STEPS, repeat=3):
        clocks = Clocks(blocking={"x"})
        for stamp in play(clocks, (first, *rest)):
            assert clocks.ordered(stamp, stamp.stream)
            if clocks.host_sees(stamp):
                assert all(clocks.ordered(stamp, stream) for stream in STREAMS)


@pytest.mark.parametrize("extra", SPREAD)
def test_more_operations_never_undo_order(extra: str) -> None:
    for program in itertools.product(SPREAD, repeat=2):
        clocks = Clocks(blocking={"x"})
        stamps = play(clocks, program)
        before = facts(clocks, stamps)
        play(clocks, (extra,))
        assert before <= facts(clocks, stamps), (*program, extra)


@pytest.mark.parametrize("extra", SPREAD)
def test_a_copy_goes_its_own_way(extra: str) -> None:
    for program in itertools.product(SPREAD, repeat=2):
        clocks = Clocks(blocking={"x"})
        stamps = play(clocks, program)
        before, copy = facts(clocks, stamps), clocks.copy()
        assert facts(copy, stamps) == before
        play(copy, (extra,))
        copy.blocking.add("a")
        assert facts(clocks, stamps) == before, "what happens to the copy"
        original = clocks.copy()
        play(original, (extra,))
        play(clocks, (extra,))
        assert facts(original, stamps) == facts(clocks, stamps), "a copy fares as its original does"


def test_streams_in_flight_are_those_with_work_that_nobody_waited_for() -> None:
    clocks = Clocks(blocking={"x", "y"})
    clocks.issue("a")
    clocks.issue("b")
    clocks.synchronize(clocks.stream_work("b"))
    assert clocks.in_flight(["a", "b", "c"]) == ["a"]
    clocks.issue("b")
    assert clocks.in_flight(["b", "a"]) == ["b", "a"]
    clocks.synchronize(clocks.device_work())
    assert clocks.in_flight(["b", "a"]) == []
