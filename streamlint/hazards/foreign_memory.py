"""Python: which memory work of a library touches, by the register in which it was first, whatever has passed it on since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Container, Memory
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.storage import Storages, plain
from streamlint.ordering.places.places import Element, Place, Places
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.transfer.carried import Carried, Carriers
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Exchanged

_MOST = 24
"""Views, and hands through which memory went, of one register."""
_DEEPEST = 2
"""Loops over what is written out, one in another."""
Held = tuple[Function | ClassInfo | None, Place]
"""A piece of memory by a place, and whose that is: of a function, or of the objects of a class."""


class ForeignMemory:
    """The memory of pieces of work."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.storages = Storages(transfer, places)
        self.carriers = transfer.one_of(Carriers, transfer)
        self._touched: dict[Event, tuple[set[Held], set[Held]]] = {}

    def touched(self, event: Event) -> tuple[set[Held], set[Held]]:
        """What a piece of work reads and writes."""
        found = self._touched.get(event)
        if found is None:
            found = self._touched[event] = self._find(event)
        return found

    def is_of_other(self, event: Event, receiver: int | None) -> bool:
        """Whether the calls that lead to work show that the object of a method is an array of another library."""
        assert event.work is not None
        held = self.carriers.values(event.at.function, receiver, event.context) if receiver is not None and receiver >= 0 else []
        types = {value.type.partition(".")[0] if isinstance(value, Memory) else "" for value in held}
        return bool(types) and "" not in types and event.work.library not in types

    def _find(self, event: Event) -> tuple[set[Held], set[Held]]:
        assert event.work is not None
        function, work = event.at.function, event.work
        if work.library == "numba" and work.kind == "kernel":
            held = self._all(event, [register for register in work.reads if self._is_viewed_by_numba(function, register)])
            return held, held
        reads, writes = self._all(event, work.reads), self._all(event, work.writes)
        if work.kind in ("kernel", "library"):
            more = self._all(event, [part for register in work.reads for part in self.storages.parts(function, register)])
            reads, writes = reads | more, writes | more
        return reads, writes

    def _is_viewed_by_numba(self, function: Function, register: int) -> bool:
        """A tensor as it is goes through DLPack, and numba names its own stream; a view of it does not."""
        return not any(isinstance(value, Memory) and value.type.startswith("torch") for value in self.transfer.values(function, register))

    def _all(self, event: Event, registers: Iterable[int]) -> set[Held]:
        around = event.context
        ways = (Carried(event.at.function, register, around) for register in registers if register >= 0)
        return {held for way in ways for held in self._of(way, 0)}

    def _of(self, way: Carried, depth: int) -> Iterator[Held]:
        """The memory in a register, each that a loop over what is written out takes; none of a number."""
        *_, way = self._back(way)
        is_display = way.keys and way.instruction is not None and way.instruction[0] == op.BUILD
        elements = self.carriers.before(way) if is_display and depth < _DEEPEST else []
        if len(elements) > 1:
            yield from (held for each in elements for held in self._of(each, depth + 1))
        elif way.keys or not self.storages.is_number(way.function, way.register):
            yield self._place(way)

    def _back(self, way: Carried) -> Iterator[Carried]:
        """The registers by which memory came to one, back to the one that it was first in."""
        for _ in range(_MOST):
            way = self.carriers.alone(way)
            if way.keys and self._is_array(way):
                way = way._replace(keys=())  # a part of an array is its memory
            yield way
            inner = self.storages.inside(way.function, way.register) if not way.keys else None
            if inner is None or inner < 0:
                return
            way = way.at(inner)

    def is_exchanged(self, event: Event) -> bool:
        """Whether a protocol that orders the streams took over memory on its way to a piece of work."""
        assert event.work is not None
        first = (Carried(event.at.function, each, event.context) for each in (*event.work.reads, *event.work.writes) if each >= 0)
        return any(self._is_taken_over(way) for each in first for way in self._back(each))

    def _is_taken_over(self, way: Carried) -> bool:
        one = way.instruction
        return one is not None and any(isinstance(action, Exchanged) for action in self.transfer.of(way.function, one))

    def _place(self, way: Carried) -> Held:
        place = self.places.of(way.function, way.register)
        place = plain(place.behind(*(Element(key.name) if key.is_element else str(key.name) for key in way.keys)))
        if place.root[0] in ("cell", "global"):
            return None, place
        is_receiver = place.root == ("parameter", 0) and way.function.has_receiver and way.function.owner is not None
        return (way.function.owner if is_receiver else way.function), place

    def _is_array(self, way: Carried) -> bool:
        """Whether elements are asked of an array, or of what an operator has computed, and of nothing else."""
        one = way.function.definitions[way.register] if way.register >= 0 else None
        values = list(self.transfer.values(way.function, way.register))
        is_computed = one is not None and one[0] in (op.BINARY, op.COMPARE)
        return all(key.is_element for key in way.keys) and (
            is_computed
            or (any(isinstance(value, Memory) for value in values) and not any(isinstance(value, Container) for value in values))
        )


def home_of(transfer: Transfer, held: Iterable[Held]) -> str:
    """The library whose memory it is; "" where that is unknown."""
    for whose, place in held:
        register = place.root[1] if place.root[0] == "register" else None
        values = transfer.values(whose, register) if isinstance(register, int) and isinstance(whose, Function) else ()
        for value in values:
            if isinstance(value, Memory):
                return value.type.partition(".")[0]
    return ""
