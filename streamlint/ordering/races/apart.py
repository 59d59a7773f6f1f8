"""Memory that two functions share which no known caller connects: one works on a stream that never waits for the other's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import OnDevice
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.places import Place, Places
from streamlint.ordering.places.sharing import Sharing
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.ordering.streams.stream_map import StreamMap
from streamlint.transfer.actions import CURRENT, NAMED, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of

_DEEPEST = 6
Begun = tuple[Function, Instruction, Worked]


class Left(NamedTuple):
    """Work on the current stream, and where a function has the memory while that may still run: behind an instruction, by a name."""

    work: Begun
    function: Function
    behind: Instruction
    place: Place


class Apart:
    """Finds memory that is used on a stream which the program never makes wait, and written on the current one by another function."""

    def __init__(self, transfer: Transfer, places: Places, lanes: Lanes, memory: OnDevice) -> None:
        self.transfer = transfer
        self.places = places
        self.lanes = lanes
        self.memory = memory
        self.map = StreamMap(transfer, lanes)
        self.sharing = Sharing(transfer)

    def find(self, found: Collection[Begun]) -> Iterator[Left]:
        """The work whose memory a function uses on such a stream."""
        works = [begun for begun in found if begun[2].library in ("", "torch") and not begun[2].assumed and not begun[0].is_cpp]
        lanes = {begun: self._lane(begun[0], begun[1], begun[2].stream) for begun in works}
        current = [begun for begun in works if lanes[begun].kind == CURRENT and begun[2].fills]
        for function, one, work in works:
            for register in (*work.reads, *work.writes):
                if not self.memory.is_on_device(function, register, work, True):
                    continue
                name = self.places.of(function, register)
                for start in dict.fromkeys(self._starts(function, name, lanes[function, one, work], _DEEPEST)):
                    if (writer := self._writer(function, register, member_of(start[2]), current)) is not None:
                        yield Left(writer, *start)

    def _lane(self, function: Function, one: Instruction, stream: Stream) -> Lane:
        return self.lanes.of(Frame(function, None, None, 0), one, stream)

    def _writer(self, function: Function, register: int, name: str, works: Collection[Begun]) -> Begun | None:
        """Work of another function on the current stream that writes what a register may hold, as the member of the same name; of what
        makes it, and what writes it later, the latter."""
        shared = set(self.sharing.with_any([(function, register)])) if name else set()
        found: list[Begun] = []
        for begun in works:
            written = [each for each in (*begun[2].writes, begun[2].made) if (begun[0], each) in shared]
            if begun[0] is not function and any(name in self._members(begun[0], each) for each in written):
                found.append(begun)
        return min(found, key=lambda begun: not begun[2].writes, default=None)

    def _members(self, function: Function, register: int) -> set[str]:
        """The names of the member that a register holds, or that it is given to."""
        given = {function.text(use[3]) for use in function.uses.get(register, ()) if use[0] == op.SET_ATTR and use[4] == register}
        return {member_of(self.places.of(function, register)), *given} - {""}

    def _starts(self, function: Function, name: Place, lane: Lane, depth: int) -> Iterator[tuple[Function, Instruction, Place]]:
        """Where functions that work on such a stream get memory which they share with others, and its name there."""
        if lane.kind == NAMED:
            behind = self._behind(function, name) if self.map.never_waits(lane) else None
            if behind is not None:
                yield function, behind, name
        elif lane.kind == CURRENT and depth:
            for caller, call in self.transfer.callers(function):
                above = self._lane(caller, call, Stream(CURRENT))
                for outer in self._above(caller, call, function, name):
                    yield from self._starts(caller, outer, above, depth - 1)

    def _above(self, caller: Function, call: Instruction, function: Function, name: Place) -> Iterator[Place]:
        """What a caller calls memory of the function that it calls."""
        if name.root[0] == "global":
            yield name
        elif name.root[0] == "parameter" and call[0] in (op.CALL, op.INVOKE):
            given = operand_of(caller, call, function, int(str(name.root[1])))
            if given is not None and given >= 0:
                yield self.places.of(caller, given).behind(*name.path)

    def _behind(self, function: Function, name: Place) -> Instruction | None:
        """The instruction behind which a function has memory that is not its own."""
        if name.root[0] in ("parameter", "global", "cell"):
            return next(function.code.instructions())
        is_member = name.root[0] == "register" and any(isinstance(key, str) for key in name.path)
        return function.definitions[int(str(name.root[1]))] if is_member else None


def member_of(place: Place) -> str:
    """The name of the member to which a place leads, as a whole or as an element of it."""
    return next((key for key in reversed(place.path) if isinstance(key, str)), "")
