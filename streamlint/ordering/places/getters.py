"""Python: what leads to an object that has a name elsewhere: functions that give back what is global, modules, forwarded attributes."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.ordering.places.places import Place, Places

_NAMED = frozenset({op.NAME, op.ATTR})
_CHANGING = frozenset({op.CALL, op.INVOKE, op.SET_ATTR, op.SET_NAME, op.SET_ITEM, op.STORE})
_LONGEST = 2
"""Attributes on the way from an object to what a method of it gives back."""


class Getters:
    """Looks for names of objects behind calls, modules and attributes."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.facts = places.facts
        self._is_asked = False

    def given(self, function: Function, one: Instruction) -> Place | None:
        """The place of what a call gives back, where the one function that it enters gives what is global, or a member of its object."""
        if self._is_asked or last_name(function, one) not in self._known:
            return None
        callees = self.facts.callee_functions(function, one)
        callee = next(iter(callees)) if len(callees) == 1 else None
        place = self._known[last_name(function, one)].get(callee) if callee is not None else None
        if place is None or place.root[0] == "global":
            return place
        return self.places.of(function, one[3]).behind(*place.path) if one[0] == op.INVOKE else None

    @cached_property
    def _known(self) -> dict[str, dict[Function, Place]]:
        """By name: functions with the place of what they give back."""
        found: dict[str, dict[Function, Place]] = defaultdict(dict)
        self._is_asked = True
        for unit in self.facts.program.units.values():
            for function in unit.functions if not unit.is_cpp else ():
                if (place := self._given_back(function)) is not None:
                    found[function.code.name][function] = place
        self._is_asked = False
        return found

    def _given_back(self, function: Function) -> Place | None:
        if {"generator", "async"} & set(function.code.flags) or function.is_property:
            return None
        if not function.code.parameters and function.keeps_results:
            return self.places.of_name(function.unit.body, f"{function.code.qualname}()")
        place = self._read_last(function)
        if place is None or place.root[0] == "global":
            return place
        is_own = place.root == ("parameter", 0) and function.has_receiver and 0 < len(place.path) <= _LONGEST
        return place if is_own and all(isinstance(key, str) for key in place.path) else None

    def _read_last(self, function: Function) -> Place | None:
        """The place that a function reads last and gives back."""
        ends = function.by_opcode[op.RETURN]
        definition = function.definitions[ends[0][2]] if len(ends) == 1 and ends[0][2] >= 0 else None
        is_read = definition is not None and definition[0] in _NAMED and _is_at_end(function, definition, ends[0])
        return self.places.of(function, ends[0][2]) if is_read else None

    def module(self, function: Function, register: int) -> Unit | None:
        """The file of the program that a register names."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.NAME:
            return None
        stores = [holder.definitions[each] for holder, each in function.unit.globals.get(function.text(one[3]), ())]
        taken = stores[0] if len(stores) == 1 else None
        if taken is None or taken[0] != op.IMPORT:
            return None
        name, unit = function.unit.body.text(taken[3]), function.unit
        found = self.facts.program.imported(name, unit)
        if taken[4] == op.NONE:
            return found if "." not in name else None
        part = function.unit.body.text(taken[4])
        path = self.facts.program.modules.submodule(found.path, part) if found is not None and part not in found.globals else None
        return self.facts.program.units[path] if path is not None else None

    def forwarded(self, function: Function, one: Instruction) -> tuple[str, ...] | None:
        """The attributes that lead to the object of which ``__getattr__`` takes what its own does not have."""
        if self._is_asked or not self._forwarding:
            return None
        asked = [callee for callee in self.facts.callee_functions(function, one) if callee.code.name == "__getattr__"]
        return self._forwarding.get(asked[0]) if len(asked) == 1 else None

    @cached_property
    def _forwarding(self) -> dict[Function, tuple[str, ...]]:
        """The methods ``__getattr__`` that ask another object, each with the attributes that lead there."""
        units = [unit for unit in self.facts.program.mentioning("__getattr__") if not unit.is_cpp]
        self._is_asked, was_asked = True, self._is_asked
        found = {method: self._asks(method) for unit in units for method in unit.methods.get("__getattr__", ())}
        self._is_asked = was_asked
        return {method: path for method, path in found.items() if path}

    def _asks(self, method: Function) -> tuple[str, ...]:
        ends = method.by_opcode[op.RETURN]
        given = method.definitions[ends[0][2]] if len(ends) == 1 and ends[0][2] >= 0 else None
        if given is None or given[0] != op.CALL or len(given) != 7 or method.dotted(given[3]) != "getattr":
            return ()
        inner = self.places.of(method, given[5])
        is_plain = method.is_parameter(given[6], 1) and inner.root == ("parameter", 0)
        return tuple(map(str, inner.path)) if is_plain and all(isinstance(key, str) for key in inner.path) else ()

    def fixed_key(self, function: Function, register: int) -> str | int | None:
        """What stands for a key that has a name in the whole program: a member of an enumeration, a constant of a class or a file."""
        place = self.places.of(function, register)
        unit = self._units.get(place.root[1]) if place.root[0] == "global" else None
        if unit is None or len(place.path) > 1 or not all(isinstance(key, str) for key in place.path):
            return None
        stores = [holder.definitions[each] for holder, each in unit.globals.get(str(place.root[2]), ())]
        one = stores[0] if len(stores) == 1 else None
        if one is None or (not place.path) == (one[0] == op.CLASS):
            return None
        if not place.path:
            return unit.body.constant(one[2]) if one[0] == op.CONST else None
        return self._of_class(unit.classes[one[3]], one, str(place.root[2]), str(place.path[0]))

    def _of_class(self, owner: ClassInfo, one: Instruction, kind: str, name: str) -> str | int | None:
        given = owner.assigned.get(name, ()) if one[0] == op.CLASS else ()
        constant = owner.body.constant(given[0]) if len(given) == 1 else None
        is_of_enumeration = any(library.startswith("enum.") for library in self.facts.hierarchy.libraries(owner))
        return f"{kind}.{name}" if is_of_enumeration and constant is not None else constant

    @cached_property
    def _units(self) -> dict[object, Unit]:
        return {unit.number: unit for unit in self.facts.program.units.values()}


def _is_at_end(function: Function, made: Instruction, end: Instruction) -> bool:
    """Whether what a function gives back is read last: nothing else may have got its name in between."""
    (block, index), (last, place) = function.homes[made], function.homes[end]
    return block == last and not any(one[0] in _CHANGING for one in function.code.blocks[block][index:place])
