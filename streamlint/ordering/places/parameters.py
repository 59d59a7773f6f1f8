"""Whose parameters a value is: of a known module, or of one from which an object has kept them in a container."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.values.constructions import is_constructor
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of

ELEMENTS, KEYS, VALUES, FIRST = "elements", "keys", "values", "first"
"""What is asked of a container: what a loop over it gives, its keys, its values, or the first of each pair."""
PARTS = frozenset({"members", "named", "mapping"})
"""Parts of a module that are its parameters: alone, with their names, in a dictionary."""
_GIVEN = "given("
"""How the keys begin of what the constructor of an object was given, each with the number of its parameter."""
_PASSED_ON = frozenset({op.NEXT, op.ITER, op.UNPACK, op.ITEM, op.COPY})
_THROUGH = frozenset({"enumerate", "list", "tuple", "reversed", "zip", "set", "sorted", "iter", "dict"})
_DEEPEST = 12


class _Asked(NamedTuple):
    """A register that is asked for what it holds, how deep the search may still go, and a register of a known function."""

    function: Function
    register: int
    part: str = ELEMENTS
    depth: int = _DEEPEST


class Parameters:
    """Looks for the modules of which values are parameters."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

    def owners(self, function: Function, register: int) -> Iterator[Place]:
        """The places, as a function has them, of the modules of which a value is a parameter, or a container of parameters."""
        for other, owner in self.modules(function, register):
            if other is function:
                yield from self.places.names(function, owner)
                continue
            if (given := self._given_to_constructor(function, other, owner)) is not None:
                yield given
            yield from (place for place in self._names(other, owner) if self._is_common(function, other, place))

    def modules(self, function: Function, register: int) -> Iterator[tuple[Function, int]]:
        """The registers of the modules of which a value is a parameter, or a container of parameters."""
        return self._found(_Asked(function, register))

    @cached_property
    def listing(self) -> frozenset[str]:
        """The names of the methods that give the parameters of modules."""
        return self.transfer.names({"view"}, lambda row: row.get("part") in PARTS)

    def written(self, function: Function) -> dict[tuple[Function, Instruction, Worked], list[tuple[Function, int]]]:
        """The work of a function that writes parameters which it asks modules for, or makes what it gives them, each with the modules: no
        register shares the memory of these."""
        found: dict[tuple[Function, Instruction, Worked], list[tuple[Function, int]]] = {}
        for one in function.code.instructions() if not self.listing.isdisjoint(function.called_names) else ():
            gives = one[0] == op.SET_ATTR and function.text(one[3]) in self.transfer.view_names
            made = (function.definitions[one[4]] if gives and one[4] >= 0 else None) or one
            for work in self.transfer.works(function, made):
                written = [one[2]] if gives else [register for register in work.writes if register >= 0]
                shared = (each for register in written for each in self.transfer.shared(function, register))
                if modules := [module for each in shared for module in self.modules(function, each)]:
                    found[function, made, work] = modules
        return found

    def _given_to_constructor(self, function: Function, other: Function, register: int) -> Place | None:
        """The name that a method has for what the constructor of its object was given."""
        one = other.definitions[register] if register >= 0 else None
        is_method = function.method is function and function.has_receiver
        if one is None or one[0] != op.PARAM or not (is_method and is_constructor(other)):
            return None
        return Place(("parameter", 0), (f"{_GIVEN}{one[3]})",))

    def by_arguments(self, function: Function, place: Place) -> Iterator[Place]:
        """A place inside of what the constructor of an object was given, by what the call that has made the object gives."""
        number = next((number for number, key in enumerate(place.path) if isinstance(key, str) and key.startswith(_GIVEN)), None)
        if number is None:
            return
        index, behind = int(str(place.path[number])[len(_GIVEN) : -1]), place.path[number + 1 :]
        for maker, call in self._makers(function, Place(place.root, place.path[:number])):
            constructors = (edge.callee for edge in self.transfer.edges(maker, call) if is_constructor(edge.callee))
            for given in dict.fromkeys(operand_of(maker, call, each, index) for each in constructors):
                for name in self._names(maker, given) if given is not None and given >= 0 else ():
                    if maker is function or self._is_common(function, maker, name):
                        yield name.behind(*behind)

    def _makers(self, function: Function, held: Place) -> Iterator[tuple[Function, Instruction]]:
        """The calls that may have made an object: of a register, or of an attribute of the receiver."""
        made = function.definitions[int(str(held.root[1]))] if held.root[0] == "register" and not held.path else None
        if made is not None and made[0] in (op.CALL, op.INVOKE):
            yield function, made
        owner = function.method.owner if function.method is not None else None
        if owner is not None and held.root == ("parameter", 0) and len(held.path) == 1:
            for store in owner.own_stores.get(str(held.path[0]), ()):
                made = store.function.definitions[store.value]
                if made is not None and made[0] in (op.CALL, op.INVOKE):
                    yield store.function, made

    def _names(self, function: Function, register: int) -> Iterator[Place]:
        """The names of a value in a function, those among them that it is given there."""
        yield from self.places.names(function, register)
        for use in function.uses[register]:
            if use[0] == op.SET_ATTR and use[4] == register:
                yield self.places.of(function, use[2]).behind(function.text(use[3]))

    def _is_common(self, function: Function, other: Function, place: Place) -> bool:
        """Whether two functions have one name for a place: a global one, or behind the object whose methods they are."""
        if place.root[0] == "global":
            return True
        is_mine = place.root == ("parameter", 0) and bool(place.path)
        return is_mine and all(each.method is each and each.has_receiver for each in (function, other))

    def _found(self, asked: _Asked) -> Iterator[tuple[Function, int]]:
        function, register, part, depth = asked
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0 or function.is_cpp:
            return
        inner = asked._replace(depth=depth - 1)
        if one[0] == op.INVOKE:
            yield from self._given(inner, one)
        elif one[0] == op.ATTR:
            yield from self._stored(inner, one)
        else:
            for held, taken in self._passed_on(function, one, part):
                yield from self._found(inner._replace(register=held, part=taken))

    def _passed_on(self, function: Function, one: Instruction, part: str) -> Iterator[tuple[int, str]]:
        """The registers whose parts an instruction passes on, each with the part that it takes of it."""
        if one[0] == op.UNPACK:
            beside = self._beside(function, one)
            yield (beside, part) if beside is not None else (one[3], FIRST if one[4] == 0 else ELEMENTS)
        elif one[0] in _PASSED_ON:
            yield one[3], VALUES if one[0] == op.ITEM else part
        elif one[0] == op.CALL and function.dotted(one[3]) in _THROUGH:
            yield from ((given, part) for given in one[5:])
        elif one[0] in (op.BUILD, op.DICT):
            yield from ((held, ELEMENTS) for held in self._held(function, one, part))

    def _beside(self, function: Function, one: Instruction) -> int | None:
        """What ``zip`` takes the elements from that stand at one place of what a loop over it gives."""
        made = function.definitions[one[3]]
        while made is not None and made[0] in (op.NEXT, op.ITER):
            made = function.definitions[made[3]]
        is_zip = made is not None and made[0] == op.CALL and function.dotted(made[3]) == "zip" and one[6] == op.NONE
        return made[5 + one[4]] if made is not None and is_zip and 5 + one[4] < len(made) else None

    def _given(self, asked: _Asked, one: Instruction) -> Iterator[tuple[Function, int]]:
        """A method gives the parameters of a module, or parts of a container."""
        function = asked.function
        calls = (call for call in self.transfer.modelled(function, one) if call.row.get("part") in PARTS)
        part_of = [call.one("of", call.receiver) for call in calls]
        yield from ((function, each) for each in part_of if each is not None)
        if not part_of and function.invokes(one, "gives-entries", "gives-keys", "gives-values"):
            is_key = function.invokes(one, "gives-keys") or (asked.part == FIRST and function.invokes(one, "gives-entries"))
            yield from self._found(asked._replace(register=one[3], part=KEYS if is_key else VALUES))

    def _stored(self, asked: _Asked, one: Instruction) -> Iterator[tuple[Function, int]]:
        """What the receiver keeps as an attribute."""
        function = asked.function
        owner = function.method.owner if function.method is not None else None
        if owner is not None and self.places.of(function, one[3]) == Place(("parameter", 0)):
            for store in owner.own_stores.get(function.text(one[4]), ()):
                yield from self._found(asked._replace(function=store.function, register=store.value))

    def _held(self, function: Function, one: Instruction, part: str) -> Iterator[int]:
        """What is put into a container where it is made, and later."""
        of_keys = one[0] == op.DICT and part != VALUES
        yield from one[3::2] if of_keys else one[4::2] if one[0] == op.DICT else one[4:]
        for use in function.uses[one[2]]:
            if use[0] in (op.PUT, op.SET_ITEM) and use[2] == one[2]:
                yield use[3 if of_keys else 4]
            elif use[0] == op.APPEND and use[2] == one[2]:
                yield use[3]
