"""What the clocks order: streams, events, the null stream's barrier, and what each host thread has seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamlint.cuda_model import FACTS, NULL, Clocks, Stamp, Strength, Work
from streamlint.cuda_model.clocks import covers


@pytest.fixture
def clocks() -> Clocks:
    """Streams ``x`` and ``y`` are blocking; all others, but for the null stream, are not."""
    return Clocks(blocking={"x", "y"})


def with_facts(*also: str) -> Clocks:
    """Clocks that rely on facts which no document promises, too."""
    return Clocks({"x", "y"}, lambda fact: fact in also or FACTS[fact].strength is Strength.GUARANTEED)


def test_a_stream_is_ordered_with_itself(clocks: Clocks) -> None:
    first, second = clocks.issue("a"), clocks.issue("a")
    assert (first, second) == (Stamp("a", 1), Stamp("a", 2))
    assert clocks.ordered(first, "a")
    assert clocks.ordered(second, "a")


def test_streams_are_not_ordered_with_each_other(clocks: Clocks) -> None:
    for one, other in (("a", "b"), ("a", "x"), ("x", "a"), ("x", "y")):
        assert not clocks.ordered(clocks.issue(one), other)


def test_an_event_covers_what_was_before_it(clocks: Clocks) -> None:
    before, snapshot, after = clocks.issue("a"), clocks.record("a"), clocks.issue("a")
    clocks.wait("b", snapshot)
    assert clocks.ordered(before, "b")
    assert not clocks.ordered(after, "b")
    assert not clocks.host_sees(before)


def test_waits_are_transitive(clocks: Clocks) -> None:
    work = clocks.issue("a")
    clocks.wait("b", clocks.record("a"))
    clocks.wait("c", clocks.record("b"))
    assert clocks.ordered(work, "c")
    clocks.synchronize(clocks.stream_work("c"))
    assert clocks.host_sees(work)


def test_a_wait_has_no_effect_backwards(clocks: Clocks) -> None:
    clocks.issue("a")
    clocks.wait("b", clocks.record("a"))
    assert not clocks.ordered(clocks.issue("b"), "a")


def test_a_snapshot_is_not_the_clock(clocks: Clocks) -> None:
    snapshot = clocks.record("a")
    clocks.issue("a")
    assert snapshot == {}


def test_a_record_changes_no_clock_but_the_null_streams(clocks: Clocks) -> None:
    clocks.issue(NULL)
    clocks.issue("x")
    before = {name: dict(clock) for name, clock in clocks.streams.items()}
    clocks.record("y")
    clocks.record("a")
    assert {name: clock for name, clock in clocks.streams.items() if clock or name in before} == before
    clocks.record(NULL)
    assert clocks.of(NULL) == {NULL: 1, "x": 1}


def test_a_wait_for_an_event_that_was_never_recorded_does_nothing(clocks: Clocks) -> None:
    work = clocks.issue("x")
    clocks.wait("a", None)
    clocks.wait(NULL, None)
    assert not clocks.ordered(work, "a")
    assert not clocks.ordered(work, "y")


def test_a_wait_for_an_event_with_nothing_before_it_is_one_on_the_null_stream(clocks: Clocks) -> None:
    work, snapshot = clocks.issue("x"), clocks.record("a")
    clocks.wait(NULL, snapshot)
    assert clocks.ordered(work, "y")
    assert not clocks.ordered(work, "a")


def test_the_host_sees_only_what_it_waited_for(clocks: Clocks) -> None:
    one, other = clocks.issue("a"), clocks.issue("b")
    clocks.synchronize(clocks.stream_work("a"))
    assert (clocks.host_sees(one), clocks.host_sees(other)) == (True, False)
    clocks.synchronize(clocks.device_work())
    assert clocks.host_sees(other)


def test_what_the_host_saw_is_before_all_it_issues(clocks: Clocks) -> None:
    work = clocks.issue("a")
    clocks.synchronize(clocks.stream_work("a"))
    assert clocks.ordered(work, "b")
    clocks.issue("b")
    clocks.wait("c", clocks.record("b"))
    assert clocks.of("c")["a"] == work.tick


def test_old_news_take_nothing_back(clocks: Clocks) -> None:
    early = clocks.record("a")
    work = clocks.issue("a")
    clocks.synchronize(clocks.stream_work("a"))
    clocks.synchronize(early)
    assert clocks.host_sees(work)


# The null stream --------------------------------------------------------------------------------------------------------------


def test_null_stream_work_is_behind_blocking_streams_alone(clocks: Clocks) -> None:
    blocking, other = clocks.issue("x"), clocks.issue("a")
    assert clocks.ordered(blocking, NULL)
    assert not clocks.ordered(other, NULL)


def test_blocking_streams_alone_are_behind_null_stream_work(clocks: Clocks) -> None:
    work = clocks.issue(NULL)
    assert clocks.ordered(work, "x")
    assert not clocks.ordered(work, "a")


def test_the_null_stream_brings_blocking_streams_in_order(clocks: Clocks) -> None:
    work = clocks.issue("x")
    assert not clocks.ordered(work, "y")
    clocks.issue(NULL)
    assert clocks.ordered(work, "y")


def test_what_a_blocking_stream_waited_for_is_before_the_null_stream(clocks: Clocks) -> None:
    work = clocks.issue("a")
    clocks.wait("x", clocks.record("a"))
    assert clocks.ordered(work, NULL)
    assert not clocks.ordered(work, "y")


def test_what_the_null_stream_waited_for_is_before_blocking_streams(clocks: Clocks) -> None:
    work = clocks.issue("a")
    clocks.wait(NULL, clocks.record("a"))
    assert clocks.ordered(work, "x")
    assert not clocks.ordered(work, "b")


def test_an_event_on_an_idle_blocking_stream_covers_null_stream_work(clocks: Clocks) -> None:
    """H200: the event is not complete before the null stream's work; the stream itself is idle all the while."""
    work = clocks.issue(NULL)
    snapshot = clocks.record("x")
    clocks.synchronize(clocks.stream_work("x"))
    assert not clocks.host_sees(work)
    clocks.wait("a", snapshot)
    assert clocks.ordered(work, "a")
    clocks.synchronize(snapshot)
    assert clocks.host_sees(work)


def test_an_event_on_a_non_blocking_stream_does_not(clocks: Clocks) -> None:
    work = clocks.issue(NULL)
    clocks.synchronize(clocks.record("a"))
    assert not clocks.host_sees(work)


def test_an_event_on_the_null_stream_covers_blocking_streams_and_holds_them(clocks: Clocks) -> None:
    blocking, other = clocks.issue("x"), clocks.issue("a")
    clocks.wait("b", clocks.record(NULL))
    assert (clocks.ordered(blocking, "b"), clocks.ordered(other, "b")) == (True, False)
    assert clocks.ordered(blocking, "y")


def test_work_on_a_blocking_stream_holds_the_stream(clocks: Clocks) -> None:
    work = clocks.issue(NULL)
    clocks.issue("x")
    clocks.synchronize(clocks.stream_work("x"))
    assert clocks.host_sees(work)


def test_synchronizing_the_null_stream_waits_for_blocking_streams_alone(clocks: Clocks) -> None:
    """H200: ``cudaStreamSynchronize(0)`` waits for every blocking stream, the null stream idle or not."""
    blocking, other = clocks.issue("x"), clocks.issue("a")
    assert clocks.stream_work(NULL) == {"x": 1}
    assert clocks.of(NULL) == {}, "to ask changes nothing"
    clocks.synchronize(clocks.stream_work(NULL))
    assert (clocks.host_sees(blocking), clocks.host_sees(other)) == (True, False)


@pytest.mark.parametrize(
    ("work", "on_null", "on_blocking"),
    [
        (Work.DEVICE, True, True),
        (Work.PEER, True, True),
        (Work.HOST_FUNCTION, True, True),
        (Work.ALLOC, False, True),
        (Work.FREE, False, True),  # seen on an H200 to be a barrier on the null stream, which nobody promises
    ],
)
def test_which_work_the_barrier_is_promised_for(work: Work, on_null: bool, on_blocking: bool) -> None:
    for first, second, held in (("x", NULL, on_null), (NULL, "x", on_blocking), (NULL, "a", False), ("a", NULL, False)):
        clocks = Clocks(blocking={"x"})
        earlier = clocks.issue(first)
        clocks.issue(second, work)
        assert covers(clocks.of(second), earlier) is held, (first, second)


# Facts that nobody promises ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fact", "steps"),
    [
        ("ordered-free-on-null-waits-for-blocking", lambda clocks: clocks.issue(NULL, Work.FREE)),
        ("ordered-alloc-on-null-waits-for-blocking", lambda clocks: clocks.issue(NULL, Work.ALLOC)),
        ("wait-for-nothing-is-a-barrier", lambda clocks: clocks.wait(NULL, None)),
    ],
)
def test_what_nobody_promises_is_relied_on_only_where_asked_for(fact: str, steps: Callable[[Clocks], object]) -> None:
    for clocks, held in ((with_facts(), False), (with_facts(fact), True)):
        work = clocks.issue("x")
        steps(clocks)
        assert clocks.ordered(work, "y") is held


def test_events_can_be_made_to_cover_too_much() -> None:
    for clocks, covered in ((with_facts(), False), (with_facts("event-covers-later-work"), True)):
        snapshot = clocks.record("a")
        work = clocks.issue("a")
        assert covers(snapshot, work) is covered


def test_records_can_be_made_to_hold_their_stream() -> None:
    for clocks, held in ((with_facts(), False), (with_facts("record-holds-its-stream"), True)):
        work = clocks.issue(NULL)
        clocks.record("x")
        assert covers(clocks.stream_work("x"), work) is held


# Threads ----------------------------------------------------------------------------------------------------------------------


def test_what_one_thread_saw_another_did_not(clocks: Clocks) -> None:
    work = clocks.issue("a", thread="one")
    clocks.synchronize(clocks.stream_work("a"), "one")
    assert [clocks.host_sees(work, thread) for thread in ("one", "two", "main")] == [True, False, False]
    assert clocks.ordered(work, "b", "one")
    assert not clocks.ordered(work, "b", "two")


def test_until_they_meet(clocks: Clocks) -> None:
    work = clocks.issue("a", thread="one")
    clocks.synchronize(clocks.stream_work("a"), "one")
    clocks.join("two", "one")
    assert clocks.host_sees(work, "two")
    assert clocks.ordered(work, "b", "two")
    assert not clocks.host_sees(work), "the third was not there"


def test_a_meeting_tells_nothing_of_what_comes_later_nor_backwards(clocks: Clocks) -> None:
    clocks.join("two", "one")
    work = clocks.issue("a", thread="one")
    clocks.synchronize(clocks.stream_work("a"), "one")
    assert not clocks.host_sees(work, "two")
    clocks.join("one", "two")
    assert not clocks.host_sees(work, "two")


def test_a_stream_is_one_for_all_threads(clocks: Clocks) -> None:
    first = clocks.issue("a", thread="one")
    assert clocks.issue("a", thread="two") == Stamp("a", 2)
    clocks.synchronize(clocks.record("a"), "two")
    assert clocks.host_sees(first, "two")
    assert clocks.in_flight(["a"], "two") == []
    assert clocks.in_flight(["a"], "one") == ["a"]


def test_what_a_thread_saw_is_before_what_it_issues_for_whoever_waits_for_that(clocks: Clocks) -> None:
    work = clocks.issue("a", thread="one")
    clocks.synchronize(clocks.stream_work("a"), "one")
    clocks.issue("b", thread="two")
    assert not covers(clocks.of("b"), work)
    clocks.issue("b", thread="one")
    clocks.synchronize(clocks.stream_work("b"), "two")
    assert clocks.host_sees(work, "two")


def test_devices_are_synchronized_one_by_one(clocks: Clocks) -> None:
    here, there = clocks.issue("a"), clocks.issue("q")
    clocks.synchronize(clocks.device_work(["a", "b"]))
    assert (clocks.host_sees(here), clocks.host_sees(there)) == (True, False)
