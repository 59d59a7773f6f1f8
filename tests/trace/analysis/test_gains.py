"""Estimates of gains beside the gain itself: the same program is played with and without the wait."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from played_runs import US, Played, played

from streamlint.trace.analysis import costs_of
from streamlint.trace.analysis.gains import PLACES
from streamlint.trace.analysis.places import group
from streamlint.trace.analysis.simulation import LEFT, SLOWER, program_of
from streamlint.trace.analysis.timeline import timelines
from streamlint.trace.analysis.waits import waits_of
from streamlint.trace.model import Call, Frame, Trace, Work
from streamlint.trace.results import Costs

STEPS = {  # programs with a wait in line 5, and what they show
    "the host gets ahead": "launch 100; launch 100; @5 wait; host 50",
    "a number is fetched": "launch 100; launch 100; @5 fetch; @5 wait; host 50",
    "the host is slower than the GPU": "launch 100; @5 wait; host 500",
    "another wait is left": "launch 100; @5 wait; host 50; launch 20; @6 wait",
    "a wait for all streams": "launch 100; launch 80 on 13; @5 device; host 60",
    "a wait for another stream": "launch 100; launch 300 on 13; @5 wait on 13; host 60",
    "an upload from pageable memory": "@5 upload 300; launch 300; host 20",
    "an allocation in each round": "launch 100; @5 malloc 200; launch 100; host 20",
    "a wait that never waits": "launch 2; host 40; @5 wait; host 40",
}


def without(text: str, line: int = 5) -> str:
    """The repaired program."""
    return re.sub(rf"@{line} (?=[a-z])", f"@{line} ~", text)


def gain(costs: Costs, line: int) -> int | None:
    """The gain of all of a line's calls."""
    gains = [cost.gain for cost in costs.costs if cost.place.lines == (line,) and cost.gain is not None]
    return sum(gains) if gains else None


def costs(trace: Trace) -> Costs:
    return costs_of(trace, lambda file: file)


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("text", STEPS.values(), ids=STEPS)
def test_the_gain_is_that_of_the_repaired_program(text: str, rounds: int) -> None:
    """Within the few µs that a call takes without a wait, of which a short run has no example."""
    trace, repaired = (played(";".join([one] * rounds)) for one in (text, without(text)))
    assert (gain(costs(trace), 5) or 0) == pytest.approx(trace.end - repaired.end, abs=3 * US * rounds)


def test_the_next_wait_bounds_the_gain() -> None:
    """Two waits for the same work: without the first, the second waits, and only the 2 µs of a call are gained, five times."""
    text = "launch 400; @5 wait; @6 wait; host 100;" * 5
    found = costs(played(text))
    assert gain(found, 5) == played(text).end - played(without(text)).end == 10 * US


def test_the_calls_of_a_place_share_its_gain() -> None:
    trace = played("launch 100; launch 100; @5 fetch; @5 wait; host 50;" * 10)
    copy, wait = sorted(costs(trace).costs, key=lambda cost: cost.kind)
    assert (copy.gain, wait.gain) != (None, None)
    assert (copy.gain or 0) == pytest.approx(99 * (wait.gain or 0), rel=0.15)


def test_what_is_not_freed_is_not_allocated() -> None:
    text = "launch 100; @4 malloc 40; launch 100; @8 free; host 20;" * 10
    trace, repaired = played(text), played(without(without(text, 8), 4))
    assert gain(costs(trace), 8) == trace.end - repaired.end
    (kept,) = [cost for cost in costs(played("launch 100; @4 malloc 40; launch 100; @8 device;" * 10)).costs if cost.kind == "allocate"]
    assert kept.gain == 0, "nothing is gained by an allocation behind which the host waits for the GPU"


def test_small_places_have_no_estimate() -> None:
    found = costs(played("launch 5000; @6 wait; @5 malloc 20; host 5000"))
    assert gain(found, 5) is None
    assert gain(found, 6) is not None


def test_many_places() -> None:
    trace = played(";".join(f"launch 100; @{line} wait; host 10" for line in range(1, PLACES + 6)))
    found = costs(trace)
    assert sum(cost.gain is not None for cost in found.costs) == PLACES
    assert found.notes == [f"process 100: gains are estimated for the {PLACES} places that held the host longest"]


def test_a_thread_that_takes_turns_with_the_main_thread() -> None:
    """As autograd's does: the wait is in the main thread, the launches of the next round come earlier in both."""
    trace, repaired = Trace("recorded"), Trace("recorded")
    for made, text in ((trace, "@5 wait"), (repaired, "@5 ~wait")):
        run = Played(made)
        for _ in range(20):
            run.play("launch 50; host 20")
            run.thread = 101
            run.play("launch 60; launch 60; launch 60; host 30")
            run.thread = 100
            run.play(text)
        run.done()
    assert gain(costs(trace), 5) == pytest.approx(repaired.end * -1 + trace.end, abs=60 * US)


def test_no_estimate_for_other_threads() -> None:
    trace = played("launch 10; host 10;" * 30)
    Played(trace, thread=101).play("launch 10 on 13; @5 wait on 13; host 3;" * 20).done()
    found = costs(trace)
    assert gain(found, 5) is None
    assert found.notes == [
        "process 100: no gain is estimated for 1 place in threads beside the main one, "
        "since a recording does not show which thread waits for which"
    ]


def test_each_process_gains_by_itself() -> None:
    trace = Trace("recorded")
    Played(trace).play("launch 100; @5 wait; host 50;" * 10).done()
    Played(trace, process=200, thread=200, device=1).play("launch 300; @6 wait; host 50;" * 10).done()
    found = costs(trace)
    alone = costs(played("launch 100; @5 wait; host 50;" * 10 + "host 0"))
    assert gain(found, 5) == pytest.approx(gain(alone, 5) or 0, abs=60 * US)


def test_a_graph_starts_many_kernels() -> None:
    """One call, three kernels in a row: without the wait, rounds follow one another."""
    made = []
    for text in ("@5 wait", "@5 ~wait"):
        run = Played()
        for _ in range(10):
            first = len(run.trace.calls)
            run.play("launch 40; launch 40; launch 40")
            launch, second, third = run.trace.calls[first:]
            launch.name = "cudaGraphLaunch"
            for work in run.trace.works[-3:]:
                work.correlation = launch.correlation
            run.trace.calls = [call for call in run.trace.calls if call not in (second, third)]
            run.play(text + "; host 60")
        made.append(run.done())
    trace, repaired = made
    assert gain(costs(trace), 5) == pytest.approx(trace.end - repaired.end, abs=50 * US)


# Random programs ------------------------------------------------------------------------------------------------------------------

_WAITING = ("wait", "wait on 13", "device", "upload 200", "upload 40", "malloc 100", "fetch")
_OTHERS = ("launch 3", "launch 100", "launch 400", "launch 100 on 13", "host 1", "host 30", "host 200", "upload 100 pinned")


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, frozenset[int]]:
    """Rounds of steps, each waiting one on a line of its own."""
    steps = draw(st.lists(st.sampled_from(_WAITING + _OTHERS), min_size=2, max_size=7))
    text = "; ".join(f"@{number} {step}" if step in _WAITING else step for number, step in enumerate(steps, 1))
    return "; ".join([text] * draw(st.integers(1, 6))), draw(st.sampled_from((frozenset(), frozenset({13}))))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs())
@example(("launch 100 on 13; @2 wait; launch 3; @4 device", frozenset({13})))
def test_random_programs(program: tuple[str, frozenset[int]]) -> None:
    """Figures keep within their bounds, and the unchanged simulation gives the recorded time."""
    trace = played(program[0], blocking=program[1])
    found = costs(trace)
    assert sum(cost.idle for cost in found.costs) <= found.idle
    assert sum(cost.avoidable for cost in found.costs) <= found.idle
    by_line: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0])
    for cost in found.costs:
        assert 0 <= cost.avoidable <= cost.blocked <= found.wall
        assert cost.idle >= 0
        assert 0 <= cost.median <= cost.largest <= cost.blocked
        by_line[cost.place.lines][0] += cost.gain or 0
        by_line[cost.place.lines][1] += cost.blocked
    assert all(0 <= gained <= blocked for gained, blocked in by_line.values())
    for timeline in timelines(trace):
        groups = group(trace, [timeline], lambda file: file)
        assert program_of(timeline, waits_of(timeline), groups.of_calls[timeline.process], {}, trace.end).run() == trace.end
    assert found == costs(trace), "the figures are the same each time"


def test_frames_outside_of_the_tree_are_one_place() -> None:
    trace = played("launch 100; wait; host 50;" * 5)
    trace.stacks.append((Frame("/usr/lib/x.py", 3, "f"),))
    for call in trace.calls:
        call.stack = 1
    (cost,) = [cost for cost in costs_of(trace, lambda file: None).costs if cost.gain]
    assert cost.place.file == ""


def pipeline(*, waits: bool, copy: int, kernel: int) -> Trace:
    """Copies on a stream of their own wait for the kernel before, by an event; the kernel waits for the copy: the host does, or not."""
    run = Played()

    def follow(stream: int, other: int) -> None:
        run._call("cudaEventRecord", US, 0, other)
        run._call("cudaStreamWaitEvent", US, 0, stream)
        run.ends[stream] = max(run.ends.get(stream, 0), run.ends.get(other, 0) - US)

    for _ in range(20):
        follow(13, 7)
        run.play(f"upload {copy} pinned on 13")
        if waits:
            run._call("cudaEventRecord", US, 0, 13)
            run._call("cudaEventSynchronize", max(run.ends[13] + 3 * US - run.now, US), 5, None)
        else:
            follow(7, 13)
        run.play(f"launch {kernel}; host 10")
    return run.done()


@pytest.mark.parametrize(("copy", "kernel"), [(100, 200), (200, 100), (60, 20)])
def test_a_stream_waits_where_the_host_did(copy: int, kernel: int) -> None:
    """Copies and kernels take turns as before: what is gained is the host's way from one to the other, not that they run side by side."""
    trace, repaired = (pipeline(waits=waits, copy=copy, kernel=kernel) for waits in (True, False))
    assert trace.end - repaired.end < 20 * min(copy, kernel) * US
    assert gain(costs(trace), 5) == pytest.approx(trace.end - repaired.end, abs=20 * 5 * US)


# What recording took --------------------------------------------------------------------------------------------------------------


def recorded(text: str, between: int = 0, in_calls: int = 0) -> Trace:
    """The recording of a program whose host is slower by ``between`` µs behind each step of its own, by ``in_calls`` in each launch."""
    run = Played()
    for step in text.split(";"):
        run.now += ("host" in step) * between * US + ("launch" in step) * in_calls * US
        run.play(step)
        if "launch" in step:
            run.trace.calls[-1].start -= in_calls * US
    trace = run.done()
    trace.overhead = in_calls * US
    for before, call in zip(trace.calls, trace.calls[1:], strict=False):
        call.overhead = between * US // SLOWER * (call.start > before.end)
    return trace


@pytest.mark.parametrize(("between", "in_calls"), [(0, 0), (40, 0), (0, 3), (70, 3), (90, 8)])
@pytest.mark.parametrize("text", ["launch 100; launch 80; @5 wait; host 60", "launch 90; launch 20; @5 wait; host 50; launch 30; host 40"])
def test_the_gain_is_that_of_a_run_that_nobody_records(text: str, between: int, in_calls: int) -> None:
    """Also where records make the host slower than the GPU: with 90 µs a round more, no wait would ever wait."""
    text = ";".join([text] * 20) + ";launch 1"
    plain, repaired = played(text), played(without(text))
    assert plain.end - repaired.end > 20 * 30 * US
    found = gain(costs(recorded(text, between, in_calls)), 5)
    assert found == pytest.approx(plain.end - repaired.end, rel=0.1)


def test_a_share_of_the_hosts_time_is_left() -> None:
    """However much is put down to recording: the host does not come to take no time."""
    text = "launch 100; @5 wait; host {0};" * 10 + "launch 100"
    trace, slow = played(text.format(round(100 * LEFT))), played(text.format(100))
    for call in slow.calls:
        call.overhead = 500 * US
    assert gain(costs(slow), 5) == gain(costs(trace), 5) == trace.end - played(without(text.format(round(100 * LEFT)))).end


def test_calls_that_took_no_time_have_a_gain() -> None:
    """A wait for other threads' work that a clock jump made an instant: its kinds have no time by which to share the gain."""
    trace = Trace("recorded", main_threads={100: 100})
    trace.calls = [
        Call("cudaLaunchKernel", 100, 101, 0, 0, 1, 7, overhead=1000),
        Call("cudaLaunchKernel", 100, 100, 1, 3001, 2, 7),
        Call("cudaFree", 100, 101, 3002, 3002, 3, 7, overhead=1000),
        Call("cudaEventSynchronize", 100, 101, 3002, 3002, 4, 7, overhead=1000),
    ]
    trace.works = [Work("kernel", "k", 100, 0, 7, 0, 0, 1), Work("kernel", "k", 100, 0, 7, 501, 4501, 2)]
    trace.sort()
    found = costs_of(trace, lambda file: file).costs
    assert [(cost.call, cost.blocked, cost.gain) for cost in found] == [("cudaFree", 0, 0), ("cudaEventSynchronize", 0, 0)]


@pytest.mark.parametrize(("count", "is_value"), [(8, True), (4096, False)])
def test_a_value_that_stays_on_the_device_is_not_copied(count: int, is_value: bool) -> None:
    """`.item()` copies 8 bytes, then waits: with the wait the copy goes. A larger one is still made."""
    trace = played("host 200; launch 5; @5 fetch; @5 wait; host 100;" * 20)
    for call in trace.calls:
        if call.name.startswith("cudaMemcpy"):
            call.bytes, call.source, call.destination = count, "device", "pinned"
            call.start -= 30 * US
    assert ((gain(costs(trace), 5) or 0) >= 20 * 30 * US) == is_value
