"""Records that hold memory beside views of it: ``(slab, slab.numpy())``, an object with an attribute for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Instance, Memory, Object
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Element, Key, Place, Places
from streamlint.transfer.transfer import Transfer
from streamlint.waits.origins import TENSOR


class View(NamedTuple):
    """A part of the record in a register that is the same memory as another part."""

    record: int
    key: Key
    type: str


class RecordViews:
    """The parts of a program's records."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places

    def same_memory(self, function: Function, register: int) -> Iterator[View]:
        """Under which other keys the record has the same memory that a value was taken from."""
        taken = self.taken(function, register)
        if taken is None or function.is_cpp:
            return
        found: dict[View, None] = {}
        for value in self.transfer.values(function, taken[0]):
            for maker, parts in self._made(value):
                mine = [part for key, part in parts if key == taken[1]]
                others = ((key, part) for key, part in parts if key != taken[1])
                same = ((key, part) for key, part in others if any(self._are_one(maker, part, each) for each in mine))
                found.update((View(taken[0], key, self._type(maker, part)), None) for key, part in same)
        yield from found

    def taken(self, function: Function, register: int) -> tuple[int, Key] | None:
        """The register of a record that a value was taken from, and the key of it."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR:
            return one[3], function.text(one[4])
        if one is not None and one[0] == op.UNPACK and one[6] == op.NONE:
            return one[3], Element(one[4])
        return (one[3], self.places.element(function, one[4])) if one is not None and one[0] == op.ITEM else None

    def _made(self, value: Object) -> Iterator[tuple[Function, list[tuple[Key, int]]]]:
        """What a record is made of, for each place where it may be made."""
        if isinstance(value, Container):
            function, one = value.frame.function, value.instruction
            if one[0] == op.BUILD:
                yield function, [(Element(index), part) for index, part in enumerate(one[4:])]
            elif one[0] == op.DICT:
                keys = zip(one[3::2], one[4::2], strict=False)
                yield function, [(self.places.element(function, key), part) for key, part in keys if key != op.NONE]
        elif isinstance(value, Instance):
            for function, one in self.facts.construction_places(value.definition):
                yield function, list(self.places.records.given(function, one))
            stores = [(name, store) for name, each in value.definition.own_stores.items() for store in each]
            for function in dict.fromkeys(store.function for _, store in stores):
                reads = ((function.text(one[4]), one) for one in function.by_opcode[op.ATTR])
                mine = [(name, one[2]) for name, one in reads if self.places.of(function, one[3]) == Place(("parameter", 0))]
                yield function, [*mine, *((name, store.value) for name, store in stores if store.function is function)]

    def _are_one(self, function: Function, first: int, second: int) -> bool:
        """Whether one of two values is a view of the other."""
        return any(
            not names.isdisjoint(self.places.names(function, each))
            for names, of in ((set(self.places.names(function, first)), second), (set(self.places.names(function, second)), first))
            for each in self.transfer.shared(function, of)
        )

    def _type(self, function: Function, register: int) -> str:
        return next((value.type for value in self.transfer.values(function, register) if isinstance(value, Memory)), TENSOR)
