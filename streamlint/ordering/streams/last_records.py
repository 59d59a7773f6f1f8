"""Which records an event may stand for where it is waited for: the last ones on all ways that lead there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.reaching import above
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, Places, rest_behind
from streamlint.ordering.streams.event_places import EventPlaces
from streamlint.transfer.actions import Lost, Recorded
from streamlint.transfer.transfer import CALLING, Transfer

Record = tuple[Instruction, Recorded]
_PASSED, _ENDS, _OPEN = "passed", "ends", "open"
"""What an instruction means for the way to a wait: nothing, the event begins there, or it may have been recorded by others."""


class LastRecords:
    """The last records of events within the functions that wait for them."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self.events = EventPlaces(transfer, self.places)

    def before(self, function: Function, one: Instruction, event: int) -> list[Record]:
        """The records that may be the last one of an event in front of an instruction; none where others may have recorded it later."""
        places = self.events.names(function, event)
        block, index = function.homes[one]
        found: dict[Record, None] = {}
        seen, waiting = set[int](), [(block, index)]
        while waiting:
            block, index = waiting.pop()
            code = function.code.blocks[block][:index]
            records, ends = self._of_block(function, list(reversed(code)), places)
            if ends == _OPEN:
                return []
            found.update(dict.fromkeys(records))
            if records or ends == _ENDS:
                continue
            before = function.control.predecessors[block]
            if not before:
                return []  # callers may have recorded it
            waiting += [(each, len(function.code.blocks[each])) for each in before if each not in seen]
            seen.update(before)
        return list(found)

    def _of_block(self, function: Function, code: list[Instruction], places: tuple[Place, ...]) -> tuple[list[Record], str]:
        for one in code:
            records = [each for each in self._records(function, one) if self._is_one_of(function, each.event, places)]
            if records:
                return [(one, each) for each in records], _OPEN if any(each.inside for each in records) else _PASSED
            meaning = self._meaning(function, one, places)
            if meaning != _PASSED:
                return [], meaning
        return [], _PASSED

    def _meaning(self, function: Function, one: Instruction, places: tuple[Place, ...]) -> str:
        if one[0] in CALLING and self._may_record(function, one, places):
            return _OPEN
        if any(each in places for each in self._made(function, one)):
            return _ENDS
        for target, value in self.places.assigned(function, one):
            definition = function.definitions[value] if value >= 0 else None
            opcode = definition[0] if definition is not None else op.NONE
            if opcode != op.REBIND and any(rest_behind(target, place) is not None for place in places):
                return _ENDS if opcode == op.DECLARE else _OPEN
        if not op.DEFINES[one[0]] or places[-1].root != ("register", one[2]):
            return _PASSED
        return _ENDS if one[0] == op.DECLARE else _OPEN

    def _made(self, function: Function, one: Instruction) -> Iterator[Place]:
        for holder, made, place in self._events if one in self._makers else ():
            if holder is function and made == one:
                yield place

    @cached_property
    def _events(self) -> list[tuple[Function, Instruction, Place]]:
        return list(self.events.made())

    @cached_property
    def _makers(self) -> frozenset[Instruction]:
        return frozenset(one for _, one, _ in self._events)

    @cached_property
    def _recording(self) -> frozenset[Function]:
        """The functions that may record an event, by themselves or in what they call."""
        return above(self.transfer.graph, {call.function for call in self.transfer.sites(frozenset({"record"}))})

    def _records(self, function: Function, one: Instruction) -> list[Recorded]:
        actions = self.transfer.of(function, one) if one[0] in CALLING and function in self._recording else ()
        return [action for action in actions if isinstance(action, Recorded)]

    def _is_one_of(self, function: Function, event: int, places: tuple[Place, ...]) -> bool:
        return any(rest_behind(name, place) == () for name in self.events.names(function, event) for place in places)

    def _may_record(self, function: Function, one: Instruction, places: tuple[Place, ...]) -> bool:
        """Whether a call may record the event: unknown code that is given it, or a known function that has a name for it."""
        if any(edge.is_followed and edge.callee in self._recording for edge in self.transfer.edges(function, one)):
            is_shared = any(place.root[0] not in ("register", "cell") for place in places)
            return is_shared or self._leads(function, op.reads(one), places)
        lost = (action for action in self.transfer.of(function, one) if isinstance(action, Lost))
        return any(self._leads(function, action.registers, places) for action in lost)

    def _leads(self, function: Function, registers: Iterable[int], places: tuple[Place, ...]) -> bool:
        """Whether a register holds the event, or something that leads to it."""
        held = [name for register in registers if register >= 0 for name in self.events.names(function, register)]
        return any(rest_behind(name, place) is not None for name in held for place in places)
