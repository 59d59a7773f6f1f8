"""Waiting for other ranks, told apart from waiting for the own GPU."""

from __future__ import annotations

import pytest
from fake_runs import MS, Run

from streamlint.findings import Category, Finding, Span
from streamlint.support.records import replace
from streamlint.trace.analysis import costs_of
from streamlint.trace.analysis.ranks import waiting_of
from streamlint.trace.analysis.timeline import timelines
from streamlint.trace.join import Seen, join
from streamlint.trace.model import Call, Frame, Trace, Work
from streamlint.trace.prices import merged, price
from streamlint.trace.rendering.rows import rows
from streamlint.trace.rendering.words import of_ranks, rank_waits
from streamlint.trace.results import Cost, Costs, OfRank, RankWait

REDUCE = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
FIRST, SECOND = 100, 200


def step(run: Run, own: int, late: int, *, sleep: int = 0, name: str = REDUCE) -> Run:
    """A kernel of its own, an all-reduce that lasts 1 ms from the start of the later rank on, and a wait in line 5."""
    run.launch(own).host(sleep)
    begun = max(run.free, run.now + 5_000)
    return run.launch(max(late - begun, 0) + MS, name).wait(Frame("a.py", 5, "step"))


def two_ranks(name: str = REDUCE, others: str = REDUCE) -> Trace:
    """The first rank computes for 2 ms and then waits 9 ms for the second, which computes for 4 ms, and is held up elsewhere for 7 ms."""
    first = step(Run(process=FIRST), 2 * MS, 11 * MS + 10_000, name=name).done()
    second = step(Run(process=SECOND), 4 * MS, 0, sleep=11 * MS, name=others).done()
    trace = Trace("recorded", first.calls + second.calls, first.works + second.works, first.stacks, gpu="H100")
    trace.streams = first.streams | second.streams
    trace.main_threads = {FIRST: 100, SECOND: 100}
    trace.ranks = {FIRST: 0, SECOND: 1}
    trace.sort()
    return trace


def costs(trace: Trace) -> Costs:
    return costs_of(trace, lambda file: file)


def waits(found: Costs) -> list[Cost]:
    return sorted((cost for cost in found.costs if cost.kind == "wait"), key=lambda one: one.process)


def test_a_wait_for_the_other_rank_is_told_apart_from_one_for_the_own_gpu() -> None:
    found = costs(two_ranks())
    first, second = waits(found)
    late = 9 * MS + 5_000
    assert first.blocked == 12 * MS + 1_000
    assert (first.other_ranks, second.other_ranks) == (late, 0)
    assert first.of_ranks == (OfRank(FIRST, first.blocked, late, SECOND),)
    assert second.of_ranks == (OfRank(SECOND, second.blocked, 0),)
    assert found.rank_waits == [RankWait(FIRST, SECOND, late, 2 * MS, 1)]


def test_ranks_are_told_side_by_side() -> None:
    found = costs(two_ranks())
    joined = join(found, [], Seen(), {}, border=MS)
    (row,) = rows(joined)
    assert of_ranks(joined, row.cost) == [
        "blocked in rank 0 for 12.0 ms, 9.01 ms of it because rank 1 came later, in rank 1 for 1.00 ms",
    ]
    assert rank_waits(joined) == [
        "the GPU of rank 0 waited 9.01 ms for rank 1 in 1 collective; "
        "the GPU of rank 1 worked for 2.00 ms of it, and had no work for 7.00 ms"
    ]
    found.ranks = {}
    assert rank_waits(joined)[0].startswith("the GPU of process 100 waited 9.01 ms for process 200 in")
    assert rank_waits(join(found, [], Seen(), {}, border=10 * MS)) == []


def test_waiting_for_others_is_no_price_of_a_finding() -> None:
    """The finding is cheap, and stands in the table all the same."""
    finding = Finding("SL020", "hidden-sync-in-hot-loop", Category.STALL, "the host waits", Span("a.py", 5, 1, 5, 9), qualname="step")
    joined = join(costs(two_ranks()), [finding], Seen(), {}, border=MS)
    (judged,) = joined.judged
    assert (judged.standing, joined.unnamed, joined.named) == ("CHEAP", [], 0)
    assert [row.judged for row in rows(joined)] == [[judged]]


def test_a_line_of_two_ranks_has_one_entry_each() -> None:
    """Also where copies and waits of a line are told apart first."""
    first, second = waits(costs(two_ranks()))
    whole = merged([first, second, first])
    assert whole.of_ranks == (OfRank(FIRST, 2 * first.blocked, 2 * first.other_ranks, SECOND), OfRank(SECOND, second.blocked, 0))
    assert whole.other_ranks == 2 * first.other_ranks
    whole = merged(
        [replace(first, gain=5 * MS, avoidable=0), replace(second, gain=7 * MS, avoidable=0), replace(first, gain=MS, avoidable=0)]
    )
    assert (whole.gain, price(whole)) == (7 * MS, 13 * MS)


@pytest.mark.parametrize(
    "name", ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_AllReduce_RING_LL_Sum_float(x)"]
)
def test_names_of_collectives(name: str) -> None:
    assert [one.late for one in costs(two_ranks(name, name)).rank_waits] == [SECOND]


def test_what_other_ranks_do_not_take_part_in_is_no_waiting() -> None:
    found = costs(two_ranks(others=REDUCE.replace("AllReduce", "Broadcast")))
    assert (found.rank_waits, [cost.of_ranks for cost in waits(found)]) == ([], [(), ()])
    assert costs(two_ranks("gemm", "gemm")).rank_waits == []


def test_a_gpu_that_does_something_else_does_not_wait() -> None:
    trace = two_ranks()
    trace.works += [Work("kernel", "gemm", FIRST, 0, 13, start * MS, (start + 1) * MS) for start in (1, 3, 5)]
    late = 9 * MS + 5_000
    assert [one.time for one in costs(trace).rank_waits] == [late - 2 * MS]
    (first, _) = waits(costs(trace))
    assert first.other_ranks == late - 2 * MS


def test_a_collective_of_other_ranks_at_the_same_time_is_another() -> None:
    """A long one that both ranks begin at once; two others begin one of their own in the middle of it."""
    trace = Trace("recorded")
    for process, start in ((FIRST, 0), (SECOND, 0), (300, 6 * MS), (400, 6 * MS)):
        trace.calls.append(Call("cudaLaunchKernel", process, process, start, start + 1_000, process, 7))
        trace.works.append(Work("kernel", REDUCE, process, 0, 7, start + 5_000, start + 10 * MS, process))
    trace.sort()
    assert {process: one.spans for process, one in waiting_of(timelines(trace)).items()} == {FIRST: [], SECOND: [], 300: [], 400: []}


def test_of_several_ranks_the_last_one_is_waited_for() -> None:
    trace = two_ranks()
    third = step(Run(process=300), MS, 11 * MS + 10_000).done()
    trace.calls, trace.works = trace.calls + third.calls, trace.works + third.works
    trace.sort()
    found = waiting_of(timelines(trace))
    assert {process: [span[2] for span in one.spans] for process, one in found.items()} == {FIRST: [SECOND], SECOND: [], 300: [SECOND]}


def test_collectives_one_after_the_other_are_not_mixed_up() -> None:
    """Rank 0 waits in each round; kernels of the round before end while it is in the next."""
    trace = Trace("recorded")
    for round in range(3):
        base = round * 10 * MS
        for process, start in ((FIRST, base), (SECOND, base + 4 * MS)):
            run = Run(process=process, now=start, correlation=10 * round)
            run.trace.works.clear()
            run._call("cudaLaunchKernel", 5_000)
            trace.calls += run.trace.calls
            trace.works.append(Work("kernel", REDUCE, process, 0, 7, start + 5_000, base + 9 * MS + 900_000, run.correlation))
            trace.main_threads[process] = 100
    trace.sort()
    found = waiting_of(timelines(trace))
    assert [end - start for start, end, _ in found[FIRST].spans] == [4 * MS] * 3
    assert found[SECOND].spans == []


def test_a_rank_that_waits_for_another_gains_nothing_without_its_wait() -> None:
    """The first rank is slow to launch, and still waits for the second in each round: without line 5 it would wait longer there."""
    runs = [Run(process=FIRST), Run(process=SECOND)]
    for step_number in range(10):
        late = (12 * step_number + 10) * MS
        for run in runs:
            is_late = run.process == SECOND
            run.host(MS).launch(MS).host(late - run.now if is_late else 0)
            begun = max(run.free, run.now + 5_000)
            run.launch(late + 5_000 + MS - begun, REDUCE).wait(Frame("a.py", 5, "step"))
    first, second = (run.done() for run in runs)
    alone = waits(costs(first))
    first.calls, first.works = first.calls + second.calls, first.works + second.works
    first.main_threads[SECOND] = 100
    first.sort()
    (early, _) = waits(costs(first))
    assert [round((cost.gain or 0) / MS) for cost in (*alone, early)] == [9, 0]
