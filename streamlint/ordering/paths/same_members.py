"""Members that hold one value from the construction of an object on: ``self.buffer = buffer; self.filler = Filler(buffer)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.kept_members import KeptMembers
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import Place, Places, rest_behind
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers

_OBJECT = ("parameter", 0)


class SameMembers:
    """Finds the members of objects that hold what other members of theirs do, or members of these."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.kept = transfer.one_of(KeptMembers, transfer, places)

    def aliases(self, function: Function, tracked: Iterable[Tracked]) -> Iterator[Tracked]:
        """The other names that a method has for memory of its object."""
        owner = function.owner if function.method is function and function.has_receiver and not function.is_cpp else None
        for held in tracked if owner is not None else ():
            is_mine = held.kind == BUFFER and held.place.root == _OBJECT and held.place.path
            for group in self._of(owner) if is_mine and owner is not None else ():
                rests = [rest for name in group if (rest := rest_behind(name, held.place)) is not None]
                yield from (held._replace(place=name.behind(*rest)) for rest in rests[:1] for name in group)

    @memoized
    def _of(self, owner: ClassInfo) -> list[frozenset[Place]]:
        """The members of a class, in groups that hold one value each."""
        line = self.transfer.facts.hierarchy.order(owner)
        makers = [method for one in line for method in one.methods.get("__init__", ())]
        return [group for maker in makers for group in self._set_by(maker) if len(group) > 1]

    def _set_by(self, maker: Function) -> Iterator[frozenset[Place]]:
        """The groups of members that a constructor gives one value each."""
        ends = maker.by_opcode[op.RETURN]
        calls = ((one, self.transfer.values(maker, one[2])) for one in maker.by_opcode[op.CALL])
        making = (one for one, values in calls if any(isinstance(value, Instance) for value in values))
        given = (register for one in making for _, register in argument_registers(maker, one) if register >= 0)
        for mine in dict.fromkeys(self.places.of(maker, register) for register in given) if ends and maker.owner is not None else ():
            held = dict.fromkeys((mine, *self._members(maker, mine, ends[-1])))
            yield frozenset(
                place for place in held if place.root == _OBJECT and place.path and self._stays(maker.owner, str(place.path[0]))
            )

    def _members(self, maker: Function, mine: Place, end: Instruction) -> Iterator[Place]:
        """The members that hold what a place does, those of objects that are members themselves by the name of these."""
        for place in self.kept.of_place(maker, mine, end):
            yield place
            if place.root[0] == "register":
                yield from (outer.behind(*place.path) for outer in self.kept.of_place(maker, Place(place.root), end))

    def _stays(self, owner: ClassInfo | None, name: str) -> bool:
        """Whether an object keeps what its constructor has put into a member."""
        return owner is not None and len(self.transfer.facts.hierarchy.stores(owner, name)) == 1
