"""What the host waits for at an instruction, by itself and in the functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.actions import Stream, Synchronized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_DEEPEST = 4


class HostWaits:
    """The waits of a program."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

    def at(self, function: Function, one: Instruction, depth: int = 0) -> Iterator[Place | None]:
        """The streams that the host waits for whenever it comes by, by their places; None for the device, or the current stream."""
        for action in self.transfer.of(function, one):
            if isinstance(action, Synchronized) and not isinstance(action.of, int):
                is_named = isinstance(action.of, Stream) and action.of.register >= 0
                yield self.places.of(function, action.of.register) if isinstance(action.of, Stream) and is_named else None
        for edge in self.transfer.edges(function, one) if depth < _DEEPEST else ():
            if edge.is_direct:
                for place in self._inside(edge.callee, depth + 1):
                    yield from self._named(place, function, one, edge.callee)

    def _inside(self, function: Function, depth: int) -> Iterator[Place | None]:
        for number, block in enumerate(function.code.blocks):
            if function.control.post_dominates(number, 0):
                for one in block:
                    yield from self.at(function, one, depth)

    def _named(self, place: Place | None, caller: Function, call: Instruction, callee: Function) -> Iterator[Place | None]:
        """A place that a function waits for as its caller names it; None stays the device."""
        above = self.above(place, caller, call, callee) if place is not None else None
        if place is None or above is not None:
            yield above

    def above(self, place: Place, caller: Function, call: Instruction, callee: Function) -> Place | None:
        """A place of a function as its caller names it."""
        if place.root[0] == "global":
            return place
        if place.root[0] != "parameter" or call[0] not in (op.CALL, op.INVOKE):
            return None
        given = operand_of(caller, call, callee, int(str(place.root[1])))
        return self.places.of(caller, given).behind(*place.path) if given is not None and given >= 0 else None
