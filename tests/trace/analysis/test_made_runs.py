"""Which idle time follows from which call, and what a run would be without a line's waits."""

from __future__ import annotations

from fake_runs import MS, Run

from streamlint.trace.analysis import costs_of
from streamlint.trace.model import Call, Frame
from streamlint.trace.results import Cost, Costs


def line(row: int, function: str = "step") -> Frame:
    return Frame("a.py", row, function)


def costs(run: Run) -> Costs:
    return costs_of(run.done(), lambda file: None if file == "lib.py" else file)


def of(found: Costs, row: int) -> Cost:
    return next(cost for cost in found.costs if row in cost.place.lines)


def test_idle_time_follows_from_the_wait_in_which_the_device_drained() -> None:
    """The wait took 1 ms; the host then did something else for 20 ms before it launched again."""
    run = Run().launch(MS).wait(line(5)).host(20 * MS).launch(MS).host(5 * MS).launch(MS)
    found = costs(run)
    cost = of(found, 5)
    assert (cost.calls, cost.blocked, cost.call, cost.operator, cost.thread) == (
        1,
        MS + 1000,
        "cudaStreamSynchronize",
        "aten::item",
        "main",
    )
    assert cost.idle == 20 * MS + 1000 + 5000  # with the launch's own time
    assert found.idle == cost.idle + 4 * MS + 5000 + 5000  # the host was slow once more, and nobody waited; and before the first launch


def test_a_call_within_a_gap_has_as_much_of_it_as_it_lasted() -> None:
    run = Run().launch(MS).wait(line(5)).host(2 * MS)
    run._call("cudaMalloc", 3 * MS, (line(7),))
    found = costs(run.host(4 * MS).launch(MS))
    assert (of(found, 7).idle, of(found, 7).kind, of(found, 7).driver_allocations) == (3 * MS, "allocate", 1)
    assert of(found, 5).idle == 6 * MS + 1000 + 5000


def test_time_before_the_first_work_and_after_the_last_has_no_cause() -> None:
    found = costs(Run().wait(line(4)).host(9 * MS).launch(MS).wait(line(5)).host(9 * MS))
    assert [cost.idle for cost in found.costs] == [0, 0]


def test_callers_stand_behind_the_place() -> None:
    run = Run().launch(MS).wait(Frame("lib.py", 1, "lib"), line(6, "log"), line(22))
    cost = of(costs(run), 6)
    assert (cost.place.function, [place.lines for place in cost.via]) == ("log", [(22,)])


def test_without_a_wait_the_host_goes_on() -> None:
    """Each round the host works 2 ms while the device works 3: without the wait only the device's time is left."""
    run = Run()
    for _ in range(10):
        run.launch(3 * MS).wait(line(5)).host(2 * MS)
    cost = of(costs(run.launch(MS)), 5)
    assert cost.gain is not None
    assert abs(cost.gain - 20 * MS) < 0.2 * MS


def test_the_next_wait_bounds_what_is_gained() -> None:
    """Without the wait in line 5 the host would only wait in line 6 instead."""
    run = Run()
    for _ in range(10):
        run.launch(3 * MS).wait(line(5)).wait(line(6)).host(2 * MS)
    found = costs(run.launch(MS))
    assert of(found, 5).gain is not None
    assert (of(found, 5).gain or 0) < 0.2 * MS


def test_a_wait_that_the_device_needs_all_the_time_of_gains_nothing() -> None:
    run = Run()
    for _ in range(10):
        run.launch(3 * MS).launch(3 * MS).wait(line(5))
    assert (of(costs(run), 5).gain or 0) < 0.2 * MS


def test_copies_have_bytes_and_bandwidth() -> None:
    run = Run().copy(line(3), count=64 << 20, length=16 * MS)
    run.copy(line(4), count=64 << 20, length=2 * MS, source="pinned")
    cost = of(costs(run), 3)
    assert (cost.bytes, cost.source, cost.destination) == (64 << 20, "pageable", "device")
    assert cost.bandwidth is not None
    assert cost.pinned_bandwidth is not None
    assert round(cost.pinned_bandwidth / cost.bandwidth) == 8


def test_launches_of_other_threads_that_a_call_holds_up() -> None:
    run = Run().launch(MS).wait(line(5))
    run.trace.calls.append(Call("cudaLaunchKernel", 100, 7, 20_000, 900_000))
    assert of(costs(run), 5).held_up == 880_000


def test_calls_without_a_line_are_told_as_such() -> None:
    (cost,) = costs(Run().launch(MS).wait()).costs
    assert (cost.place.file, cost.place.lines) == ("", ())
