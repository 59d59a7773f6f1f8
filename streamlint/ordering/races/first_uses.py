"""SL038: the first use of memory from a stream-ordered allocation, on another stream that nothing puts behind the allocation."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked
from streamlint.ordering.places.places import Place
from streamlint.ordering.races.race_judge import Race
from streamlint.ordering.races.races import Races
from streamlint.ordering.walk.lifetimes import made_by
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import UNKNOWN
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.work import Worked


def is_ordered(row: Row) -> bool:
    """Whether a row's calls allocate memory of a device in the order of a stream."""
    return row.effect == "alloc" and row.get("stream") is not None and row.get("memory") == "device"


class FirstUses(Races):
    """Follows allocations as work on their stream that nothing but the memory is known of."""

    reads_too = False

    def find(self) -> Iterator[Race]:
        """The first uses of memory that may not be allocated yet."""
        asked = self.transfer.asked
        for call in self.transfer.sites({"alloc"}, where=is_ordered, among=asked):
            if not _is_overloaded(call):
                work = Worked(call.stream(), (), (), call.name, call.row.library, evident=True)
                self._follow_allocation(call.function, call.instruction, work, made_by(self.places, call))
        yield from self._found.values()

    def _follow_allocation(self, function: Function, one: Instruction, work: Worked, places: frozenset[Place]) -> None:
        lane = self.lanes.of(Frame(function, None, None, 0), one, work.stream)
        if lane.kind == UNKNOWN:
            return
        self._follow(Site(function, one), work, lane)
        self._writes, self._is_evident, self._meeting = True, True, None
        tracked = frozenset(Tracked(BUFFER, place) for place in places) | lane.tracked(STREAM)
        self.run(self.start(function, one, tracked, frozenset()))

    def _worked(self, state: State, one: Instruction, work: Worked) -> str | None:
        """What the stream of the allocation does first with the memory is behind it, and what comes later is the affair of SL006.

        So is what unknown calls may do first.
        """
        if any(self._touches(state, register, 1, by=one) for register in (*work.reads, *work.writes)):
            function = state.frame.function
            is_freed = any(call.row.effect == "free" for call in self.transfer.modelled(function, one))
            lane = self.lanes.of(state.frame, one, self._stream(function, work))
            if work.assumed or is_freed or self.lanes.is_same(state.tracked, lane):
                return ORDERED
        return super()._worked(state, one, work)


def _is_overloaded(call: ModelledCall) -> bool:
    """C++: ``cudaMallocAsync(pointer, bytes, pool, stream)``, whose stream stands elsewhere."""
    pool, stream = call.row.get("pool"), call.row.get("stream")
    if not (isinstance(pool, Selector) and isinstance(stream, Selector)):
        return False
    return (pool.position or 0) > (stream.position or 0) and call.given(pool) is not None
