"""Names of one value: registers, parameters and attributes that may hold the same object, followed both ways, without its class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.files.autograd import given_for
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

MOST_PLACES = 400
"""Places of one value that are looked at."""
_PASSED_ON = frozenset({op.PHI, op.COPY, op.CAST, op.ENTER, op.ITER, op.AWAIT})
_TAKEN_OUT = frozenset({op.NEXT, op.ITEM, op.UNPACK})
_DEEPEST = 2
"""Containers around one another that are distinguished."""
Place = tuple[Function, int]
Keys = tuple["str | int | None", ...]
"""The value is this element of what a place holds, of the innermost container last; None for any element."""


class Aliases:
    """Answers which members are used of a value."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._by_path: dict[Unit, dict[str, list[Place]]] = {}

    def uses(self, function: Function, register: int, members: frozenset[str]) -> bool:
        """Whether one of these members is used of the value that a register holds, wherever it is passed to."""
        seen: set[tuple[Function, int, Keys]] = set()
        names: set[tuple[int, str, Keys]] = set()
        waiting: list[tuple[Function, int, Keys]] = [(function, register, ())]
        while waiting and len(seen) < MOST_PLACES:
            place = waiting.pop()
            if place in seen or place[1] < 0:
                continue
            seen.add(place)
            one, held, keys = place
            if (made := one.definitions[held]) is not None and made[0] == op.CONST:
                continue  # ``a = b = None``: what is no object has no other names
            uses = (use for use in one.uses[held] if use[0] in (op.ATTR, op.INVOKE) and use[3] == held)
            if not keys and any(one.text(use[4]) in members for use in uses):
                return True
            waiting += self._elements(one, held, keys)
            around = [*self._around(one, held), *self._same_name(one, held, keys, names)]
            waiting += [(*found, keys) for found in around]
        return False

    def _elements(self, function: Function, register: int, keys: Keys) -> Iterator[tuple[Function, int, Keys]]:
        """The container that a register is taken from, and the elements that are taken from it."""
        one = function.definitions[register]
        if one is not None and one[0] in _TAKEN_OUT and len(keys) < _DEEPEST:
            yield function, one[3], (*keys, _key(function, one))
        if not keys:
            return
        if one is not None and one[0] == op.BUILD and isinstance(keys[-1], int) and 0 <= keys[-1] < len(one) - 4:
            yield function, one[4 + keys[-1]], keys[:-1]
        for use in function.uses[register]:
            if use[0] in _TAKEN_OUT and use[3] == register and (None in (key := _key(function, use), keys[-1]) or key == keys[-1]):
                yield function, use[2], keys[:-1]

    def _around(self, function: Function, register: int) -> Iterator[Place]:
        """The places that a register is copied from and to."""
        one = function.definitions[register]
        if one is not None:
            if one[0] in _PASSED_ON:
                yield from ((function, source) for source in op.reads(one)[: None if one[0] == op.PHI else 1])
            elif one[0] == op.PARAM:
                yield from self.given(function, one[3])
        for use in function.uses[register]:
            if use[0] in _PASSED_ON and (use[0] == op.PHI or use[3] == register):
                yield function, use[2]
            elif use[0] in (op.CALL, op.INVOKE):
                yield from self._parameters_for(function, register, use)

    def given(self, function: Function, index: int) -> Iterator[Place]:
        """What callers hand over for a parameter."""
        for caller, call in self.facts.call_places(function):
            if call[0] in (op.CALL, op.INVOKE) and function in self.facts.callee_functions(caller, call):
                register = given_for(caller, call, function, index)
                yield from ((caller, register),) if register is not None else ()

    def _parameters_for(self, function: Function, register: int, call: Instruction) -> Iterator[Place]:
        """The parameters that a call hands a register over for."""
        for callee in self.facts.callee_functions(function, call):
            for one in callee.by_opcode[op.PARAM]:
                if given_for(function, call, callee, one[3]) == register:
                    yield callee, one[2]

    def _same_name(self, function: Function, register: int, keys: Keys, names: set[tuple[int, str, Keys]]) -> Iterator[Place]:
        """Where the attribute, global or cell that a register was read from, or is stored in, is used: in the file, and in those of
        the classes that the object may have."""
        found = {path_of(function, register)}
        for use in function.uses[register]:
            if use[0] == op.SET_ATTR and use[4] == register:
                receiver = path_of(function, use[2])
                found.add(f"{receiver}.{function.text(use[3])}" if receiver else "")
            elif use[0] == op.STORE:
                found.add(str(function.unit.ir.constants[use[2]][0]))
            elif use[0] == op.SET_NAME:
                found.add(function.text(use[2]))
        for name in found - {"", SELF}:
            for unit in self._files(function) if name.startswith(f"{SELF}.") else [function.unit]:
                if (unit.number, name, keys) not in names:
                    names.add((unit.number, name, keys))
                    yield from self._named(unit).get(name, ())

    def _named(self, unit: Unit) -> dict[str, list[Place]]:
        """By path: the registers of a file that are read from there, and those that are stored there."""
        found = self._by_path.get(unit)
        if found is None:
            found = self._by_path[unit] = defaultdict(list)
            for function in unit.functions:
                for path, register in (*_named_members(function), *_named_variables(function)):
                    found[path].append((function, register))
        return found

    def _files(self, function: Function) -> list[Unit]:
        """The files of the classes that the receiver of a method may have."""
        owner = function.method.owner if function.method is not None else None
        if owner is None:
            return [function.unit]
        classes = [*self.facts.hierarchy.order(owner), *(self.facts.hierarchy.cone(owner) or ())]
        return list(dict.fromkeys(one.unit for one in classes))


SELF = "self"
"""The receiver of a method in a path, whatever its parameter is called."""


def path_of(function: Function, register: int) -> str:
    """A register as the path of names that it was read by, from a global, a cell, a parameter or the receiver; "" for anything
    else. Parameters of different functions have different paths."""
    parts: list[str] = []
    while register >= 0:
        found = function.definitions[register]
        if found is None or found[0] not in (op.ATTR, op.NAME, op.LOAD, op.PARAM):
            return ""
        if found[0] == op.ATTR:
            parts.append(function.text(found[4]))
            register = found[3]
            continue
        if function.method is not None and function.method.has_receiver and function.is_parameter(register):
            parts.append(SELF)
        elif found[0] == op.PARAM:
            parts.append(f"#{function.code.number}.{function.code.parameters[found[3]].name}")
        else:
            parts.append(str(function.unit.ir.constants[found[3]][0]) if found[0] == op.LOAD else function.text(found[3]))
        break
    return ".".join(reversed(parts))


def _key(function: Function, one: Instruction) -> str | int | None:
    """The element that an instruction takes; None where it may be any."""
    if one[0] == op.UNPACK:
        return one[4] if one[6] == op.NONE else None
    return function.constant(one[4]) if one[0] == op.ITEM else None


def source_of(function: Function, register: int) -> Instruction | None:
    """The instruction that makes a register's value, through the packing and unpacking of ``a, b = c, d``."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.UNPACK:
        packed = function.definitions[one[3]]
        if packed is None or packed[0] != op.BUILD or len(packed) != 4 + one[5] or one[6] != op.NONE:
            break
        one = function.definitions[packed[4 + one[4]]]
    return one


def _named_members(function: Function) -> Iterator[tuple[str, int]]:
    yield from ((path_of(function, one[2]), one[2]) for one in function.by_opcode[op.ATTR])
    yield from ((f"{path_of(function, one[2])}.{function.text(one[3])}", one[4]) for one in function.by_opcode[op.SET_ATTR])


def _named_variables(function: Function) -> Iterator[tuple[str, int]]:
    reads = (*function.by_opcode[op.NAME], *function.by_opcode[op.LOAD])
    yield from ((path_of(function, one[2]), one[2]) for one in reads)
    yield from ((str(function.unit.ir.constants[one[2]][0]), one[3]) for one in function.by_opcode[op.STORE])
    yield from ((function.text(one[2]), one[3]) for one in function.by_opcode[op.SET_NAME])
