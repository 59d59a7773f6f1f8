"""New memory of a pool: what its stream still runs may use the block, which another user has given back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.streams.earlier import Earlier
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.ordering.streams.queue_waits import QueueWaits
from streamlint.transfer.actions import CURRENT, Stream, Synchronized
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked

_DEEPEST = 3
_CALLS = frozenset({op.CALL, op.INVOKE})
_TAKING = _CALLS | {op.ITER, op.YIELD_FROM}


class NewBlocks:
    """Tells whether work is under way on a stream where memory is taken from its pool."""

    def __init__(self, transfer: Transfer, lanes: Lanes) -> None:
        self.transfer = transfer
        self.lanes = lanes

    @cached_property
    def waits(self) -> QueueWaits:
        return QueueWaits(Earlier(self.transfer.one_of(Origins, self.transfer)))

    def is_busy(self, function: Function, one: Instruction, work: Worked) -> bool:
        """Whether work that every path has put on the stream of an allocation may still run there."""
        return self._is_busy(function, one, self.lanes.of(Frame(function, None, None, 0), one, work.stream), work.library, _DEEPEST)

    def _is_busy(self, function: Function, one: Instruction, lane: Lane, library: str, depth: int) -> bool:
        for before in function.ahead(one):
            if self._waits(function, before, lane, library, depth):
                return False
            if self._works(function, before, lane, library, depth):
                return True
        callers = list(self.transfer.callers(function)) if depth else []
        return bool(callers) and all(self._is_busy(caller, call, lane, library, depth - 1) for caller, call in callers)

    def _waits(self, function: Function, one: Instruction, lane: Lane, library: str, depth: int) -> bool:
        """Whether the host waits for a stream, or fetches what is computed on this one, in a function that is called as well."""
        if any(isinstance(action, Synchronized) for action in self.transfer.of(function, one)):
            return True
        if self.waits.fetches(function, one, presumes=True) and self._is_there(function, one, Stream(CURRENT, library=library), lane):
            return True
        return any(self._waits(*each, lane, library, depth - 1) for each in self._inside(function, one, depth))

    def _works(self, function: Function, one: Instruction, lane: Lane, library: str, depth: int) -> bool:
        """Whether an instruction puts work on the stream, in a function that is called as well."""
        works = (work for work in self.transfer.works(function, one) if work.fills and not (work.assumed or work.waits))
        if any(work.library == library and self._is_there(function, one, work.stream, lane) for work in works):
            return True
        return any(self._works(*each, lane, library, depth - 1) for each in self._inside(function, one, depth))

    def _is_there(self, function: Function, one: Instruction, stream: Stream, lane: Lane) -> bool:
        other = self.lanes.of(Frame(function, None, None, 0), one, stream)
        return other.kind == lane.kind and other.places == lane.places

    def _is_taken(self, function: Function, made: Instruction) -> bool:
        """Whether a function hands on a generator that it makes, to what takes its values, or does so itself."""
        return any(use[0] in _TAKING for use in function.uses[made[2]])

    def _inside(self, function: Function, one: Instruction, depth: int) -> Iterator[tuple[Function, Instruction]]:
        """The calls in the function that an instruction calls."""
        for edge in self.transfer.edges(function, one) if one[0] in _CALLS and depth else ():
            if edge.is_direct and not (edge.callee.is_generator and not self._is_taken(function, one)):
                yield from ((edge.callee, each) for each in edge.callee.code.instructions() if each[0] in _CALLS)
