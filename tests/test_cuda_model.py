"""The CUDA model by itself: what waits, how surely, and what the clocks order."""

from __future__ import annotations

import itertools

import pytest

from streamlint.cuda_model import ALLOCATION_WAITS, NULL, Clocks, Stamp, Strength, copy_wait
from streamlint.operations import Direction, Memory

NEVER, MAY, OBSERVED, GUARANTEED = Strength

# --- copies ------------------------------------------------------------------------

# direction, asynchronous: strength for pinned, pageable, unknown, managed, device memory on the host's side
COPIES = {
    (Direction.H2D, True): (NEVER, MAY, MAY, MAY, MAY),
    (Direction.H2D, False): (GUARANTEED,) * 5,
    (Direction.D2H, True): (NEVER, OBSERVED, MAY, MAY, MAY),
    (Direction.D2H, False): (GUARANTEED,) * 5,
    (Direction.D2D, True): (NEVER,) * 5,
    (Direction.D2D, False): (NEVER,) * 5,
    (Direction.PEER, True): (NEVER,) * 5,
    (Direction.PEER, False): (NEVER,) * 5,
    (Direction.H2H, True): (GUARANTEED,) * 5,
    (Direction.H2H, False): (GUARANTEED,) * 5,
    (Direction.UNKNOWN, True): (MAY,) * 5,
    (Direction.UNKNOWN, False): (MAY,) * 5,
}
MEMORIES = (Memory.PINNED, Memory.PAGEABLE, Memory.UNKNOWN, Memory.MANAGED, Memory.DEVICE)
CASES = [(*key, memory, strength) for key, row in COPIES.items() for memory, strength in zip(MEMORIES, row, strict=True)]


@pytest.mark.parametrize(("direction", "asynchronous", "memory", "strength"), CASES)
def test_strength_of_a_copy(direction: Direction, asynchronous: bool, memory: Memory, strength: Strength) -> None:
    wait = copy_wait(direction, memory, asynchronous)
    assert wait.strength is strength
    assert wait.source


def test_the_table_is_whole() -> None:
    assert set(COPIES) == set(itertools.product(Direction, (True, False)))
    assert set(MEMORIES) == set(Memory)


def test_strengths_are_nested() -> None:
    """What is guaranteed is observed, and what is observed may be."""
    assert NEVER < MAY < OBSERVED < GUARANTEED


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("memory", Memory)
def test_a_synchronous_form_waits_no_less_than_the_asynchronous_one(direction: Direction, memory: Memory) -> None:
    assert copy_wait(direction, memory, False).strength >= copy_wait(direction, memory, True).strength


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_of_unknown_memory_nothing_is_said_that_its_kinds_do_not_share(direction: Direction, asynchronous: bool) -> None:
    unknown, pinned, pageable = (copy_wait(direction, memory, asynchronous).strength for memory in (Memory.UNKNOWN, *MEMORIES[:2]))
    guaranteed = pinned is pageable is GUARANTEED
    assert (unknown is GUARANTEED) is guaranteed
    assert (unknown is NEVER) is (pinned is pageable is NEVER)


def test_nothing_about_allocations_is_guaranteed() -> None:
    """No race may be excused by an allocation or a free: documents only say that these may synchronize."""
    assert {wait.strength for wait in ALLOCATION_WAITS.values()} == {MAY, OBSERVED}
    assert all(wait.source for wait in ALLOCATION_WAITS.values())


def test_frees_were_seen_to_wait_and_allocations_were_not() -> None:
    seen = {call for (call, _), wait in ALLOCATION_WAITS.items() if wait.strength is OBSERVED}
    assert seen == {"free", "unregister"}


# --- clocks ------------------------------------------------------------------------


@pytest.fixture
def clocks() -> Clocks:
    """Streams ``x`` and ``y`` are blocking; all others, but for the null stream, are not."""
    return Clocks(blocking={"x", "y"})


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
    clocks.synchronize_stream("c")
    assert clocks.host_sees(work)


def test_a_wait_has_no_effect_backwards(clocks: Clocks) -> None:
    clocks.issue("a")
    clocks.wait("b", clocks.record("a"))
    assert not clocks.ordered(clocks.issue("b"), "a")


def test_a_snapshot_is_not_the_clock(clocks: Clocks) -> None:
    snapshot = clocks.record("a")
    clocks.issue("a")
    assert snapshot == {}


def test_what_the_host_saw_is_before_all_it_issues(clocks: Clocks) -> None:
    work = clocks.issue("a")
    clocks.synchronize_stream("a")
    assert clocks.ordered(work, "b")
    clocks.issue("b")
    clocks.wait("c", clocks.record("b"))
    assert clocks.of("c")["a"] == work.tick


def test_the_host_sees_only_what_it_waited_for(clocks: Clocks) -> None:
    one, other = clocks.issue("a"), clocks.issue("b")
    clocks.synchronize_stream("a")
    assert (clocks.host_sees(one), clocks.host_sees(other)) == (True, False)
    clocks.synchronize_device()
    assert clocks.host_sees(other)


def test_old_news_take_nothing_back(clocks: Clocks) -> None:
    early = clocks.record("a")
    work = clocks.issue("a")
    clocks.synchronize_stream("a")
    clocks.synchronize(early)
    assert clocks.host_sees(work)


# --- the legacy default stream ------------------------------------------------------------------------


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


def test_an_event_on_an_idle_blocking_stream_does_not_cover_null_stream_work(clocks: Clocks) -> None:
    """H200: the barrier holds launches and copies, not records."""
    work = clocks.issue(NULL)
    snapshot = clocks.record("x")
    clocks.synchronize(snapshot)
    clocks.synchronize_stream("x")
    assert not clocks.host_sees(work)
    clocks.wait("a", snapshot)
    assert not clocks.ordered(work, "a")


def test_an_event_behind_work_on_the_blocking_stream_covers_it(clocks: Clocks) -> None:
    work = clocks.issue(NULL)
    clocks.issue("x")
    clocks.synchronize(clocks.record("x"))
    assert clocks.host_sees(work)


def test_synchronizing_the_null_stream_waits_for_blocking_streams_alone(clocks: Clocks) -> None:
    """H200: ``cudaStreamSynchronize(0)`` waits for every blocking stream, the null stream idle or not."""
    blocking, other = clocks.issue("x"), clocks.issue("a")
    clocks.synchronize_stream(NULL)
    assert (clocks.host_sees(blocking), clocks.host_sees(other)) == (True, False)


# --- what is in flight ------------------------------------------------------------------------


def test_streams_in_flight(clocks: Clocks) -> None:
    clocks.issue("a")
    clocks.issue("b")
    clocks.synchronize_stream("b")
    assert clocks.in_flight(["a", "b", "c"]) == ["a"]
    clocks.issue("b")
    assert clocks.in_flight(["b", "a"]) == ["b", "a"]


# --- laws ------------------------------------------------------------------------

STEPS = ["issue a", "issue x", "issue null", "wait a x", "wait x a", "sync x", "sync null"]


def play(clocks: Clocks, program: tuple[str, ...]) -> list[Stamp]:
    stamps = []
    for step in program:
        match step.split():
            case ["issue", stream]:
                stamps.append(clocks.issue(stream))
            case ["wait", stream, on]:
                clocks.wait(stream, clocks.record(on))
            case ["sync", stream]:
                clocks.synchronize_stream(stream)
    return stamps


@pytest.mark.parametrize("first", STEPS)
def test_laws_of_order_hold_on_all_short_programs(first: str) -> None:
    for rest in itertools.product(STEPS, repeat=3):
        clocks = Clocks(blocking={"x"})
        stamps = play(clocks, (first, *rest))
        for stamp in stamps:
            predicted = {stream: clocks.ordered(stamp, stream) for stream in ("a", "x", NULL)}
            assert predicted[stamp.stream], "a stream is ordered with itself"
            if clocks.host_sees(stamp):
                assert all(predicted.values()), "what the host saw is before all"
            for stream, ordered in predicted.items():
                clock = Clocks({key: dict(value) for key, value in clocks.streams.items()}, dict(clocks.host), set(clocks.blocking))
                clock.issue(stream)
                assert (clock.of(stream).get(stamp.stream, 0) >= stamp.tick) is ordered, "`ordered` foretells what `issue` does"


@pytest.mark.parametrize("extra", STEPS)
def test_more_operations_never_undo_order(extra: str) -> None:
    for program in itertools.product(STEPS, repeat=3):
        clocks = Clocks(blocking={"x"})
        stamps = play(clocks, program)
        before = {(stamp, stream) for stamp in stamps for stream in ("a", "x", NULL) if clocks.ordered(stamp, stream)}
        play(clocks, (extra,))
        assert all(clocks.ordered(stamp, stream) for stamp, stream in before)
