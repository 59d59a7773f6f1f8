"""Members that hold what a function has: those into which it has put it, and those of objects that it has made of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Instance
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.places import ANY, OWN, Place, Places, cell_of, rest_behind
from streamlint.support.memo import memoized
from streamlint.transfer import carried, carried_calls
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, operand_of

_KEEPING = (op.SET_NAME, op.SET_ATTR, op.INIT)
_MAKING = (op.CONSTRUCT, op.NEW, op.CALL, op.INVOKE)


class KeptMembers:
    """Finds such members."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self._found: dict[tuple[Function, Place], list[tuple[Instruction, Place]]] = {}
        self.carriers = transfer.one_of(carried.Carriers, transfer)
        self._elements: dict[Function, list[tuple[Instruction, Place, int]]] = {}

    def of(self, function: Function, register: int, one: Instruction) -> Iterator[Place]:
        """The members that hold what a register does, where an instruction runs."""
        yield from self.of_place(function, self.places.of(function, register), one)

    def of_place(self, function: Function, mine: Place, one: Instruction) -> Iterator[Place]:
        """The members that hold what a place does, where an instruction runs."""
        if one not in function.homes:
            return
        found = self._found.get((function, mine))
        if found is None:
            found = [(store, target) for store, target, held in self._kept(function) if held == mine]
            is_own = mine.root[0] in ("parameter", "register") or (mine.root[0] == "cell" and function.is_cpp)
            found += self._made_of(function, mine) if is_own else ()
            self._found[function, mine] = found
        before = set(function.ahead(one)) if found else set()
        yield from (target for store, target in found if store in before)

    @memoized
    def _kept(self, function: Function) -> list[tuple[Instruction, Place, Place]]:
        """The members that a function sets once, each with what it puts there; an initialiser comes before that."""
        stores = [store for opcode in _KEEPING for store in function.by_opcode[opcode]]
        every = [(store, target, held) for store in stores for target, held in self.places.assigned(function, store) if held >= 0]
        later = [(store, target) for store, target, _ in every if store[0] != op.INIT]
        return [
            (store, target, self.places.of(function, held))
            for store, target, held in every
            if not any(other == target and each is not store for each, other in later)
        ]

    def _made_of(self, function: Function, mine: Place) -> Iterator[tuple[Instruction, Place]]:
        """The members of objects that were made of what a place holds, where their constructors have put it."""
        for one in (each for opcode in _MAKING for each in function.by_opcode[opcode]):
            if any(register >= 0 and self.places.of(function, register) == mine for _, register in argument_registers(function, one)):
                for target, source in self._given(function, one):
                    if source == mine:
                        yield one, self.places.of(function, one[2]).behind(*target.path)
        if not function.is_cpp and not mine.path:
            yield from self._in_lists(function, mine)

    def _in_lists(self, function: Function, mine: Place) -> Iterator[tuple[Instruction, Place]]:
        """Python: the elements of lists that objects keep which the function makes, where they are what a place holds."""
        for one in function.by_opcode[op.CALL]:
            for name in self._lists_of(function, one):
                parts = self.carriers.parts(function, one[2], (carried_calls.Key(name, False), carried_calls.Key(None)))
                if any(part.function is function and self.places.of(function, part.register) == mine for part in parts):
                    yield one, self.places.of(function, one[2]).behind(name, ANY)

    @memoized
    def _lists_of(self, function: Function, one: Instruction) -> list[str]:
        """The attributes that hold lists, of the object of a class of the program that a call makes."""
        classes = [value.definition for value in self.transfer.values(function, one[2]) if isinstance(value, Instance)]
        lines = [each for kind in classes[:1] for each in self.transfer.facts.hierarchy.order(kind)] if len(classes) == 1 else []
        stores = [(name, store) for each in lines for name, found in each.own_stores.items() for store in found]
        return list(dict.fromkeys(name for name, store in stores if self._is_list(store.function, store.value)))

    def _is_list(self, function: Function, register: int) -> bool:
        values = self.transfer.values(function, register) if register >= 0 else ()
        return any(isinstance(value, Container) and value.kind == "list" for value in values)

    def given(self, function: Function, place: Place) -> Iterator[Place]:
        """What a member of an object that the function makes was given: by the name that the function has for it."""
        one = self._maker(function, place) if place.path else None
        for target, source in self._given(function, one) if one is not None and one[0] in _MAKING else ():
            rest = rest_behind(target, Place(target.root, place.path))
            if rest is not None:
                yield source.behind(*rest)

    def _maker(self, function: Function, place: Place) -> Instruction | None:
        """What makes an object that a register holds, or a variable whose address is taken."""
        if place.root[0] == "register":
            return function.definitions[int(str(place.root[1]))]
        stores = [one[3] for one in function.by_opcode[op.STORE] if function.is_cpp and cell_of(function, one[2]).root == place.root]
        made = [one for each in stores if each >= 0 and (one := function.definitions[each]) is not None and one[0] != op.REBIND]
        return made[0] if len(made) == 1 else None

    def given_on(self, function: Function, register: int, frame: Frame) -> tuple[Frame, int] | None:
        """C++: who calls a method on a path, and what it has made the object of for the member that a register of the method holds,
        if nothing else puts anything there."""
        caller, call = frame.caller, frame.call
        one = function.definitions[register] if function.is_cpp and register >= 0 else None
        if caller is None or call is None or call[0] != op.INVOKE or one is None or one[0] != op.NAME:
            return None
        facts, name = self.transfer.facts, function.text(one[3])
        owner = facts.member_of(function, name) if function.method is function else None
        if owner is None or len(list(islice(facts.given_to_member(owner, name), 2))) != 1:
            return None
        base = self.places.of(caller.function, call[3])
        definition = caller.function.definitions[int(str(base.root[1]))] if base.root[0] == "register" and not base.path else None
        if definition is None or definition[0] not in _MAKING:
            return None
        found = [given for target, given in self._registers(caller.function, definition) if target == Place(("parameter", 0), (name,))]
        return (caller, found[0]) if len(found) == 1 else None

    def stored(self, function: Function, register: int) -> int | None:
        """C++: what a function itself has put into the element, or the member, that a register holds, if it puts nothing else there."""
        place = self.places.of(function, register) if function.is_cpp and register >= 0 else None
        one = function.definitions[register] if place is not None else None
        if place is None or one is None or place.root[0] != "register" or not place.path or one not in function.homes:
            return None
        mine = [each for each in self._elements_set(function) if rest_behind(each[1], place) is not None]
        if len(mine) != 1 or mine[0][1] != place or mine[0][2] < 0:
            return None
        (block, index), (home, number) = function.homes[mine[0][0]], function.homes[one]
        is_before = index < number if block == home else function.control.dominates(block, home)
        return mine[0][2] if is_before else None

    def _elements_set(self, function: Function) -> list[tuple[Instruction, Place, int]]:
        """The elements and members that a function sets, each with the register of what it puts there."""
        known = self._elements.get(function)
        if known is None:
            stores = (store for opcode in (op.SET_ITEM, op.SET_ATTR) for store in function.by_opcode[opcode])
            known = [(store, target, held) for store in stores for target, held in self.places.assigned(function, store)]
            self._elements[function] = known
        return known

    def is_made_on(self, frame: Frame, register: int) -> bool:
        """C++: whether a register holds a member of an object that a path has made: in a caller of its method, or of one around."""
        place = self.places.of(frame.function, register)
        while place.root == OWN.root and frame.function.method is frame.function:
            caller, call = frame.caller, frame.call
            if caller is None or call is None or call[0] != op.INVOKE:
                return False
            frame, place = caller, self.places.of(caller.function, call[3])
        definition = frame.function.definitions[int(str(place.root[1]))] if place.root[0] == "register" else None
        return definition is not None and definition[0] in (*_MAKING, op.DECLARE)

    def taken(self, method: Function, member: str) -> Iterator[int]:
        """The numbers of the parameters that a method puts into a member of its object."""
        for _, target, held in self._kept(method):
            if target == Place(("parameter", 0), (member,)) and held.root[0] == "parameter" and not held.path:
                yield int(str(held.root[1]))

    def _given(self, function: Function, one: Instruction) -> Iterator[tuple[Place, Place]]:
        """The members of an object that an instruction makes, each with the place of what its constructor was given for it."""
        yield from ((target, self.places.of(function, register)) for target, register in self._registers(function, one))

    def _registers(self, function: Function, one: Instruction) -> Iterator[tuple[Place, int]]:
        """The same with the registers of what it was given."""
        if function.is_cpp and one[0] == op.CONSTRUCT:
            yield from self._listed(function, one)
        given = [register for _, register in argument_registers(function, one) if register >= 0]
        for maker in self._makers(function, one, len(given)):
            for _, target, held in self._kept(maker):
                index = held.root[1] if held.root[0] == "parameter" and not held.path else None
                if not isinstance(index, int) or index == 0 or target.root != ("parameter", 0):
                    continue
                register = operand_of(function, one, maker, index)
                if register is None and one[0] == op.CALL and function.is_cpp and index <= len(given):
                    register = given[index - 1]  # a function of the library that makes the object
                if register is not None and register >= 0:
                    yield target, register

    def _listed(self, function: Function, one: Instruction) -> Iterator[tuple[Place, int]]:
        """C++: the members of an object of a class without constructor, each with what the list that it is made of gives for it."""
        shape = function.unit.ir.constants[one[4]] if one[4] >= 0 else None
        members = list(self.places.members(function, one))
        for name, register in zip(shape or members, one[5:], strict=False):
            if name in members and register >= 0:
                yield OWN.behind(str(name)), register

    def _makers(self, function: Function, one: Instruction, count: int) -> list[Function]:
        """The constructor of the object that an instruction makes, if it is one alone."""
        kinds = {value.definition for value in self.transfer.values(function, one[2]) if isinstance(value, Instance)}
        makers = [maker for kind in kinds for maker in kind.methods.get("__init__", ()) if len(maker.code.parameters) > count]
        return makers if len(makers) == 1 else []
