"""Waiting for other ranks: times in which a GPU runs a collective that another rank has not begun.

A kernel of NCCL runs until all ranks of its communicator have taken part: on the rank that came first it spins until the last one begins.
So a host that waits for such a GPU waits for the other rank. Kernels of one collective have one name, overlap in time on all ranks and end
together. A root that is done before the others begin has not waited.

Source: NCCL's user guide, "Collective Operations" and "CUDA Stream Semantics". Kernels that wait for other ranks in PyTorch's symmetric
memory or NVSHMEM are not known as such.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.analysis.places import NO_GROUP
from streamlint.trace.results import RankWait
from streamlint.trace.spans import joined_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlint.trace.analysis.places import Groups
    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.analysis.waits import Waits
    from streamlint.trace.model import Work
    from streamlint.trace.spans import Span

_COLLECTIVE = re.compile(r"nccl(?:Dev|Sym\w*?)?Kernel")
"""In the names of NCCL's and RCCL's kernels, mangled or not: ncclDevKernel_AllReduce_Sum_f32_RING_LL, before NCCL 2.19 ncclKernel_..."""
_SKEW = 5_000
"""Nanoseconds by which kernels of one collective seem to begin apart anyway: clocks of GPUs differ a little."""
_TOGETHER = 100_000
"""Nanoseconds by which kernels of one collective end apart, or half of the time in which all take part: else they are two collectives."""
_STEPS = 8  # kernels of one name and process that are looked at for one that overlaps


@record(slots=True)
class Waiting:
    """The times in which a process's GPU waited for other ranks and did nothing else, by start, and for which process each time."""

    spans: list[tuple[int, int, int]] = field(default_factory=list)  # start, end, process that came last

    def within(self, start: int, end: int) -> dict[int, int]:
        """How much of a time was such waiting, by the process that was waited for."""
        found: dict[int, int] = defaultdict(int)
        at = max(bisect_left(self.spans, (start,)) - 1, 0)
        while at < len(self.spans) and self.spans[at][0] < end:
            first, last, process = self.spans[at]
            if last > start:
                found[process] += min(last, end) - max(first, start)
            at += 1
        return found


def waiting_of(timelines: Sequence[Timeline]) -> dict[int, Waiting]:
    """The waiting of each process; empty where no collective of two processes is in the run.

    The works that waited are noted in their timelines.
    """
    kernels = {one.process: _collectives(one) for one in timelines}
    kernels = {process: named for process, named in kernels.items() if named}
    found: dict[int, Waiting] = {}
    for timeline in timelines:
        others = {process: named for process, named in kernels.items() if process != timeline.process}
        if timeline.process not in kernels or not others:
            continue
        spans: list[tuple[int, int, int]] = []
        is_joined = False
        for index, work in enumerate(timeline.works):
            if not _is_collective(work):
                continue
            begun = [(_begun(named.get(work.name, ()), work.start, work.end), process) for process, named in others.items()]
            late = [(time, process) for time, process in begun if time is not None]
            is_joined = is_joined or bool(late)
            if late and max(late)[0] > work.start + _SKEW:
                timeline.joined[index] = max(late)[0]
                spans.append((work.start, *max(late)))
        if is_joined:
            found[timeline.process] = Waiting(_without(sorted(spans), _busy(timeline, is_collective=False)))
    return found


def add(timelines: Sequence[Timeline], waits: Sequence[Waits], groups: Groups, waiting: dict[int, Waiting]) -> None:
    """Add to each group the time that its calls waited for other ranks."""
    for timeline, waited in zip(timelines, waits, strict=True):
        known = waiting.get(timeline.process)
        if known is None or not known.spans:
            continue
        numbers = groups.of_calls[timeline.process]
        for index, wait in waited.of_calls.items():
            if wait.waited and numbers[index] != NO_GROUP:
                call = timeline.calls[index]
                for process, time in known.within(call.start, call.end).items():
                    late = groups.groups[numbers[index]].late
                    late[process] = late.get(process, 0) + time


def totals(timelines: Sequence[Timeline], waiting: dict[int, Waiting]) -> list[RankWait]:
    """How long each process's GPU waited for each other one, and how long the GPU of that one worked meanwhile."""
    busy = {one.process: _busy(one) for one in timelines if one.process in waiting}
    found: list[RankWait] = []
    for process, known in sorted(waiting.items()):
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        for start, end, late in known.spans:
            mine = sums[late]
            mine[0] += end - start
            mine[1] += _within(busy.get(late, ()), start, end)
            mine[2] += 1
        found += [RankWait(process, late, *mine) for late, mine in sorted(sums.items(), key=lambda one: (-one[1][0], one[0]))]
    return found


def _collectives(timeline: Timeline) -> dict[str, list[Span]]:
    """The collectives of a process by name, by start."""
    found: dict[str, list[Span]] = defaultdict(list)
    for work in timeline.works:
        if _is_collective(work):
            found[work.name].append((work.start, work.end))
    return {name: sorted(spans) for name, spans in found.items()}


def _is_collective(work: Work) -> bool:
    return work.kind == "kernel" and _COLLECTIVE.search(work.name) is not None


def _begun(spans: Sequence[Span], start: int, end: int) -> int | None:
    """When the kernel of another process began that overlaps a time most, and ends with it; None where none does."""
    at = bisect_left(spans, (end,))
    found: list[Span] = []
    for first, last in spans[max(at - _STEPS, 0) : at]:
        both = min(last, end) - max(first, start)
        if both > 0 and abs(last - end) <= max(_TOGETHER, both // 2):
            found.append((both, first))
    return max(found)[1] if found else None


def _busy(timeline: Timeline, *, is_collective: bool = True) -> list[Span]:
    """The times in which a process's GPU ran anything; without collectives, anything else."""
    return joined_spans((work.start, work.end) for work in timeline.works if is_collective or not _is_collective(work))


def _without(spans: Iterable[tuple[int, int, int]], busy: Sequence[Span]) -> list[tuple[int, int, int]]:
    """What is left of waiting while nothing else ran; where two collectives wait at once, the time counts once."""
    found: list[tuple[int, int, int]] = []
    counted_to = 0  # up to where the time has been counted
    for start, end, process in spans:
        start = max(start, counted_to)
        counted_to = max(counted_to, end)
        at = max(bisect_right(busy, (start,)) - 1, 0)
        while at < len(busy) and busy[at][0] < end:
            if busy[at][1] > start:
                if busy[at][0] > start:
                    found.append((start, busy[at][0], process))
                start = busy[at][1]
            at += 1
        if start < end:
            found.append((start, end, process))
    return found


def _within(spans: Sequence[Span], start: int, end: int) -> int:
    """How much of a time spans cover."""
    at = max(bisect_left(spans, (start,)) - 1, 0)
    covered = 0
    while at < len(spans) and spans[at][0] < end:
        covered += max(0, min(spans[at][1], end) - max(spans[at][0], start))
        at += 1
    return covered
