"""Whether a block that goes back to its pool may get another owner: pools hand blocks out on the stream on which they were allocated."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import OnDevice
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import CURRENT, NAMED, Stream
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import ahead

_KEPT_IN_HAND = frozenset({op.BIND, op.ENTER, op.EXIT, op.PHI, op.COPY})


class NextOwners:
    """Knows the streams of pools, and what allocates on them."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.transfer = transfer
        self._memory = transfer.one_of(OnDevice, transfer)
        self.lanes = Lanes(transfer, places, currents)
        self._known: dict[Site, Lane | None] = {}

    def stream_of(self, allocation: Site, library: str) -> Lane | None:
        """The stream of a block, if the function that allocates it has made that and keeps it to itself: nobody else allocates there."""
        if allocation not in self._known:
            function = allocation.function
            lane = self.lanes.of(Frame(function, None, None, 0), allocation.instruction, Stream(CURRENT, library=library))
            is_own = lane.kind == NAMED and bool(lane.made) and all(self._is_private(function, site) for site in lane.made)
            self._known[allocation] = lane if is_own else None
        return self._known[allocation]

    def may_get(self, frame: Frame, one: Instruction, lane: Lane) -> bool:
        """Whether an instruction may take a block from the pool of a stream: new memory, or code that may make some there."""
        function = frame.function
        works = self.transfer.works(function, one)
        is_entered = one[0] in CALLING and any(edge.is_followed for edge in self.transfer.edges(function, one))
        if not is_entered and not any(work.assumed or self._makes_memory(function, work) for work in works):
            return False
        streams = {work.stream._replace(library=work.stream.library or lane.library) for work in works}
        streams = streams or {Stream(CURRENT, library=lane.library)}
        return any(self._is_one(self.lanes.of(frame, one, stream), lane) for stream in streams)

    def _makes_memory(self, function: Function, work: Worked) -> bool:
        """Whether what work makes may be memory, and not a number that is computed of numbers."""
        return work.made >= 0 and any(self._memory.may_be_memory(function, each) for each in (work.made, *work.reads))

    def _is_one(self, first: Lane, second: Lane) -> bool:
        """Whether a stream may be that of a pool. No object or caller has that one (`stream_of`): where it was made tells it apart."""
        return first.kind not in (CURRENT, NAMED) or not first.made.isdisjoint(second.made)

    def _is_private(self, function: Function, made: Site) -> bool:
        """Whether a stream that a function has made stays there: it is a method's receiver, a library's argument, and nothing else."""
        if made.function is not function or not op.DEFINES[made.instruction[0]]:
            return False
        uses = (use for _, use in ahead(function, made.instruction[2], (op.PHI, op.COPY)))
        return all(use[0] in _KEPT_IN_HAND or self._is_lent(function, use) for use in uses)

    def _is_lent(self, function: Function, use: Instruction) -> bool:
        """Whether a use is a call of a library, which gives the stream back."""
        if use[0] == op.ATTR:
            return True
        return (
            use[0] in (op.CALL, op.INVOKE)
            and not self.transfer.edges(function, use)
            and any(True for _ in self.transfer.modelled(function, use))
        )
