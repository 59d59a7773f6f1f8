"""What places of played runs cost, in exact figures."""

from __future__ import annotations

import pytest
from played_runs import DEFAULT, FILE, US, Played, played

from streamlint.trace.analysis import costs_of
from streamlint.trace.model import Call, Frame, Stream, Trace, Work
from streamlint.trace.results import Cost, Costs, Place


def at(costs: Costs, line: int, kind: str | None = None) -> Cost:
    """The costs of a line, of one kind if it has several."""
    (found,) = [cost for cost in costs.costs if cost.place.lines == (line,) and kind in (None, cost.kind)]
    return found


def costs(trace: Trace) -> Costs:
    return costs_of(trace, lambda file: file)


# Host time ------------------------------------------------------------------------------------------------------------------------


def test_host_time_of_a_place() -> None:
    found = costs(played("launch 100; @4 wait; launch 200; @4 wait; launch 50; @4 wait; @5 wait"))
    cost = at(found, 4)
    assert (cost.call, cost.kind, cost.calls) == ("cudaStreamSynchronize", "wait", 3)
    assert (cost.blocked, cost.median, cost.largest) == ((103 + 203 + 53) * US, 103 * US, 203 * US)
    assert (cost.thread, cost.process, cost.place) == ("main", 100, Place(FILE, (4,), "train"))
    assert at(found, 5).blocked == 2 * US
    assert found.wall == (3 * 5 + 103 + 203 + 53 + 2) * US
    assert found.blocked == (103 + 203 + 53 + 2) * US


def test_how_often_a_thread_came_to_a_place() -> None:
    """Calls with nothing in between are of one time, such as those that move a module; a launch or another place is in between."""
    found = costs(played("@3 wait; @3 wait; launch 10; @4 wait; @4 launch 10; @4 wait; @5 wait; @6 wait; @5 wait"))
    assert {line: at(found, line).stretches for line in (3, 4, 5, 6)} == {3: 1, 4: 2, 5: 2, 6: 1}


def test_launches_and_queries_are_no_waits() -> None:
    trace = played("@3 launch 100; @3 launch 100")
    trace.calls.append(Call("cudaEventQuery", 100, 100, 20 * US, 21 * US))
    assert costs(trace).costs == []


def test_a_place_is_the_innermost_frame_of_the_tree() -> None:
    trace = played("launch 10; wait; launch 10; wait; launch 10; wait")
    library, inner, outer = Frame("torch/optim.py", 9, "step"), Frame("a.py", 0, "f", 3, (4, 6)), Frame("b.py", 8, "g")
    trace.stacks += [(library, inner, outer), (library,), (library, inner)]
    waits = [call for call in trace.calls if call.name == "cudaStreamSynchronize"]
    for call, stack in zip(waits, (1, 2, 3), strict=True):
        call.stack = stack
    found = costs_of(trace, lambda file: None if file.startswith("torch/") else f"src/{file}")
    assert [(cost.place, cost.via, cost.calls) for cost in found.costs] == [
        (Place("src/a.py", (4, 6), "f"), (Place("src/b.py", (8,), "g"),), 2),
        (Place("", ()), (), 1),
    ]


def test_what_threads_and_processes_call() -> None:
    trace = played("launch 10; @3 wait")
    Played(trace, process=200, thread=201).play("launch 10; @3 wait").done()
    Played(trace, thread=101).play("@9 wait").done()
    Played(trace, thread=102).play("@10 wait").done()
    trace.thread_names = {(100, 101): "pt_autograd_0", (100, 102): "Thread-1"}
    trace.main_threads[200] = 200
    found = costs(trace)
    assert {(cost.place.lines, cost.process, cost.thread) for cost in found.costs} == {
        ((3,), 100, "main"),
        ((3,), 200, "thread 201"),
        ((9,), 100, "autograd"),
        ((10,), 100, "Thread-1"),
    }


# Idle time ------------------------------------------------------------------------------------------------------------------------


def idle(text: str, line: int, kind: str | None = None) -> tuple[float, float]:
    """The idle time of a line, and the avoidable part, in µs."""
    cost = at(costs(played(text)), line, kind)
    return cost.idle / US, cost.avoidable / US


def test_a_gpu_that_runs_dry_behind_a_wait() -> None:
    """The kernel ends at 105; the wait ends 3 µs later, the next launch begins 50 µs after that, its kernel 5 µs later."""
    text = "launch 100; @5 wait; host 50; launch 100"
    assert idle(text, 5) == (58, 58)
    assert costs(played(text)).idle == (5 + 58) * US, "and before the first kernel"


def test_a_host_that_is_busy_behind_a_wait() -> None:
    """The wait put the host back by 103 µs: no more of the idle time behind it can be avoided, the rest is the loader's."""
    assert idle("launch 100; @5 wait; host 5000; launch 100", 5) == (5008, 103)


def test_a_busy_host_that_did_not_wait() -> None:
    assert idle("launch 100; host 5000; launch 100; @5 wait", 5) == (0, 0)


def test_a_host_that_is_late_goes_on_being_late() -> None:
    """Behind the wait, each kernel is launched after the one before has ended."""
    text = "launch 500; @5 wait; launch 2; host 20; launch 2; host 20; launch 900; @6 wait"
    assert idle(text, 5) == (3 + 5, 3 + 5 + 2 * (20 + 5 - 2))
    assert idle(text, 6) == (0, 0), "no gap follows"


def test_a_wait_elsewhere_begins_anew() -> None:
    """What the first wait put back, the second would have held."""
    text = "launch 500; @5 wait; launch 50; @6 wait; host 200; launch 10"
    assert idle(text, 5) == (8, 8)
    assert idle(text, 6) == (208, 53)


def test_a_copy_and_its_wait_are_of_one_place() -> None:
    """The copy starts 1 µs after the kernel; behind it, the wait takes 2 µs of the gap."""
    text = "launch 100; @5 fetch; @5 wait; host 30; launch 100"
    assert idle(text, 5, "copy") == (1 + 3 + 30 + 5, 1 + 3 + 30 + 5)
    assert idle(text, 5, "wait") == (2, 2)


def test_an_allocation_while_the_gpu_has_nothing() -> None:
    """The gap begins at 15 within the allocation, which ends at 405, and ends at 410."""
    text = "launch 10; @7 malloc 400; launch 10; @8 wait"
    assert idle(text, 7) == (390, 395)
    assert (at(costs(played(text)), 7).driver_allocations, at(costs(played(text)), 7).kind) == (1, "allocate")


def test_work_of_another_stream_keeps_the_gpu_busy() -> None:
    text = "launch 500 on 13; launch 100; @5 wait; host 50; launch 100"
    assert idle(text, 5) == (0, 0)
    assert at(costs(played(text)), 5).blocked == 103 * US


def test_a_gap_within_queued_work_is_none_of_the_hosts() -> None:
    """The second kernel starts 1 µs after the first, long launched."""
    text = "launch 100; launch 100; @5 wait"
    assert idle(text, 5) == (0, 0)
    assert costs(played(text)).idle == (5 + 1 + 3) * US


def test_gpus_are_counted_each() -> None:
    trace = Trace("recorded")
    Played(trace).play("launch 100; @5 wait; host 50; launch 100; wait").done()
    Played(trace, thread=101, device=1, ends={}).play("launch 100; @6 wait; host 60; launch 90; wait").done()
    found = costs(trace)
    assert found.wall == 266 * US
    assert (at(found, 5).idle, at(found, 6).idle, found.idle) == (58 * US, 68 * US, (66 + 76) * US)


def test_two_processes_on_one_gpu() -> None:
    """While one waits, the other's kernel runs, from 120 to 150: of 58 µs only 28 are left, and another process ends the first 15."""
    trace = played("launch 100; @5 wait; host 50; launch 100")
    Played(trace, process=200, thread=200, now=115 * US).play("launch 30").done()
    found = costs(trace)
    assert found.wall - found.idle == (100 + 30 + 100) * US
    assert (at(found, 5).idle, at(found, 5).avoidable) == (0, 13 * US)


def test_two_ranks_whose_gpus_have_one_number() -> None:
    """Their kernels overlap, so they are two GPUs."""
    trace = played("launch 100; @5 wait; host 50; launch 100")
    Played(trace, process=200, thread=200, now=10 * US).play("launch 100; @5 wait; host 50; launch 100").done()
    found = costs(trace)
    assert 2 * found.wall - found.idle == 4 * 100 * US


def test_captured_calls_wait_for_nothing() -> None:
    trace = played("launch 100; @5 wait; host 50; launch 100")
    for call in trace.calls:
        call.capturing = call.name == "cudaStreamSynchronize"
    assert at(costs(trace), 5).idle == 0


# Copies ---------------------------------------------------------------------------------------------------------------------------


def test_bytes_and_rates() -> None:
    found = costs(played("@3 upload 1000; @4 upload 500 pinned; @5 fetch; @6 upload 500 pinned"))
    cost = at(found, 3)
    assert (cost.bytes, cost.source, cost.destination) == (10_000_000, "pageable", "device")
    assert cost.bandwidth == pytest.approx(10e9)
    assert cost.pinned_bandwidth == pytest.approx(2 * 5_000_000 / 1000e-6)
    assert at(found, 5).pinned_bandwidth is None, "no pinned copy went that way"


# Streams --------------------------------------------------------------------------------------------------------------------------


def test_the_default_stream_serializes_a_blocking_stream() -> None:
    """The kernel on stream 13 is launched at 10, and starts when that of the default stream ends, at 105; so does the one behind it."""
    text = "@3 launch 100; @4 launch 50 on 13; @5 launch 20"
    found = costs(played(text, blocking=frozenset({13})))
    assert at(found, 3).serialized == (105 - 10) * US
    assert at(found, 5).serialized == (155 - 105) * US, "this waits for the stream in its turn, ready when the first has ended"
    assert at(found, 3).kind == "launch"
    assert costs(played(text)).costs == []


def test_streams_of_unknown_flags_are_blocking_if_they_wait_again_and_again() -> None:
    trace = played("@3 launch 100; launch 50 on 13;" * 4, blocking=frozenset({13}))
    for stream in trace.streams.values():
        stream.non_blocking = None
    assert at(costs(trace), 3).serialized > 0
    trace.calls.append(Call("cudaStreamWaitEvent", 100, 100, trace.end, trace.end))
    assert costs(trace).costs == [], "an event may be the reason"


def test_launches_that_another_threads_call_held_up() -> None:
    trace = played("launch 100; @5 wait; launch 100; launch 100")
    trace.calls += [Call("cudaLaunchKernel", 100, 101, start * US, end * US) for start, end in ((20, 80), (150, 155), (200, 210))]
    trace.sort()
    assert at(costs(trace), 5).held_up == 60 * US


def test_launches_that_meet_a_full_queue_are_not_held_up() -> None:
    """600 kernels are pending when another thread waits, and a launch takes long."""
    trace = played("launch 100;" * 600)
    free = trace.works[100].end
    launch = Call("cudaLaunchKernel", 100, 100, trace.calls[-1].end, free, 9000, DEFAULT)
    last = trace.works[-1].end + US
    trace.works.append(Work("kernel", "", 100, 0, DEFAULT, last, last + US, 9000))
    trace.calls += [launch, Call("cudaStreamSynchronize", 100, 101, trace.calls[-1].start, free + US, 9001, DEFAULT, stack=1)]
    trace.stacks.append((Frame(FILE, 5, "other"),))
    trace.sort()
    assert at(costs(trace), 5).held_up == 0


# Whole runs -----------------------------------------------------------------------------------------------------------------------


def test_most_idle_time_comes_first() -> None:
    found = costs(played("launch 100; @5 wait; host 10; launch 100; @6 wait; host 50; launch 1"))
    assert [cost.place.lines for cost in found.costs] == [(6,), (5,)]


def test_nothing_recorded() -> None:
    found = costs(Trace("kineto", gpu="H100", notes=["cut off"]))
    assert found == Costs(0, 0, 0, [], "H100", "kineto", ["cut off"])


def test_calls_without_work_and_work_without_calls() -> None:
    trace = Trace("nsight", streams={(1, 7): Stream(1, 7, True)})
    trace.works.append(Work("kernel", "", 1, 0, 7, 10, 20))
    trace.sort()
    assert costs(trace).costs == []
    trace.calls.append(Call("cudaStreamSynchronize", 1, 1, 15, 30))
    trace.works.append(Work("kernel", "", 1, 0, 7, 40, 50, 77))
    trace.sort()
    (cost,) = costs(trace).costs
    assert (cost.blocked, cost.idle) == (15, 0)
