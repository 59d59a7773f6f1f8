"""Registers that may hold the memory of another one: over assignments, parts, containers, attributes, arguments and results.

A wide answer that costs little: it asks no values. Who follows an operation from there finds out whether it is the same memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.keyword_stores import sets_keywords
from streamlint.facts.code.passing import attribute_asked, attributes_given, is_put, put_by_function
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places
from streamlint.ordering.places.spread import brought
from streamlint.transfer.actions import Viewed
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import argument_registers, deferred_target, kept_by

MOST = 600
"""Registers that are looked at for one question."""
_MOST_FILES = 8
"""Files that mention an attribute, beyond which only those of the file itself count."""
_PARTS = {op.PHI: slice(3, None), op.BUILD: slice(4, None), op.DICT: slice(4, None, 2)}
"""By opcode: the registers of the values that one is joined or built of."""
_FROM = {
    **dict.fromkeys((op.COPY, op.AWAIT, op.ITER, op.ENTER, op.ITEM, op.NEXT, op.UNPACK, op.DEREF, op.ADDRESS_ITEM), 3),
    op.CAST: 4,
    op.INPLACE: 4,
    op.REBIND: 5,
}
"""By opcode: where the register stands of which the result is the same, a part, or an element."""
_CONSTRUCTING = (op.CONSTRUCT, op.NEW)
_FIRST = 5
"""Where the arguments of what makes an object of C++ begin."""
_GIVING = (op.RETURN, op.YIELD, op.YIELD_FROM)
Held = tuple[Function, int]


class Sharing:
    """Looks for registers that may share memory."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._named_in: dict[Unit, dict[str, list[tuple[Function, Instruction, int]]]] = {}
        self.records = transfer.one_of(Places, transfer.facts).records

    def with_any(self, held: Iterable[Held]) -> list[Held]:
        """All registers that may share memory with one of some."""
        found: dict[Held, None] = dict.fromkeys(held)
        waiting = list(found)
        names: set[tuple[int, str]] = set()
        while waiting and len(found) < MOST:
            for other in self._related(*waiting.pop(), names):
                if other[1] >= 0 and other not in found:
                    found[other] = None
                    waiting.append(other)
        return list(found)

    def _related(self, function: Function, register: int, names: set[tuple[int, str]]) -> Iterator[Held]:
        one = function.definitions[register] if register >= 0 else None
        if one is not None:
            yield from self._before(function, one, names)
        for use in function.uses.get(register, ()):
            yield from self._after(function, register, use, names)

    # --- where it comes from

    def _before(self, function: Function, one: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        opcode = one[0]
        if opcode in _PARTS:
            yield from ((function, each) for each in one[_PARTS[opcode]])
        elif opcode == op.PARAM:
            yield from self._arguments(function, one[3])
        elif opcode in (op.ATTR, op.ADDRESS_ATTR):
            yield from self._attribute(function, function.text(one[4]), names)
            yield from self._viewed(function, one)
        elif opcode in (op.LOAD, op.ADDRESS):
            yield from self._cell(function, one[3])
        elif opcode in (op.NAME, op.ADDRESS_NAME):
            yield from self._global(function, function.text(one[3]), names)
        elif opcode in _FROM:
            yield function, one[_FROM[opcode]]
        elif (asked := attribute_asked(function, one)) is not None:
            yield from self._attribute(function, asked, names)
        if opcode in CALLING:
            yield from self._given_back(function, one)

    def _given_back(self, function: Function, one: Instruction) -> Iterator[Held]:
        """What the result of a call may be: a view or a part of an operand, or what a function of the program returns."""
        if one[0] in (op.CALL, op.INVOKE):
            yield from self._viewed(function, one)
            yield from ((function, each) for each in self._taken(function, one))
            yield from ((function, each) for _, each in self.records.given(function, one))
        for edge in self.transfer.edges(function, one):
            ends = _GIVING if edge.is_followed else ()
            yield from ((edge.callee, end[-1]) for opcode in ends for end in edge.callee.by_opcode[opcode])

    def _viewed(self, function: Function, one: Instruction) -> Iterator[Held]:
        yield from ((function, each.register) for each in self.transfer.of(function, one) if isinstance(each, Viewed))

    def _taken(self, function: Function, one: Instruction) -> Iterator[int]:
        """What a call without a row may give back: its receiver's elements, or an argument of a function of the language."""
        if one[0] == op.INVOKE and not any(True for _ in self.transfer.modelled(function, one)):
            yield one[3]
        elif one[0] == op.CALL and self._gives_part(function, one):
            yield from operands_of(function, one)

    def _gives_part(self, function: Function, one: Instruction) -> bool:
        known = function.known("gives-part")
        return any(call.name.rpartition(".")[2] in known for call in self.transfer.libraries(function, one))

    def _arguments(self, function: Function, index: int) -> Iterator[Held]:
        for caller, call in self.facts.call_places(function):
            if call[0] in (op.CALL, op.INVOKE) or call[0] in _CONSTRUCTING:
                registers = _given_for(caller, call, function, index)
                if registers and self._enters(caller, call, function):
                    yield from ((caller, register) for register in registers)
        default = function.default_register(index)
        if default is not None and function.parent is not None:
            yield function.parent, default

    def _enters(self, caller: Function, call: Instruction, function: Function) -> bool:
        is_run = any(edge.callee is function and edge.is_followed for edge in self.transfer.edges(caller, call))
        return is_run or (caller, call) in self.transfer.registered(function)

    def _attribute(self, function: Function, name: str, names: set[tuple[int, str]]) -> Iterator[Held]:
        """All that is read and stored under the name of an attribute, near by."""
        if (-1, name) in names:
            return
        names.add((-1, name))
        units = self.facts.program.mentioning(name)
        for unit in units if len(units) <= _MOST_FILES else [function.unit]:
            if unit.is_cpp == function.is_cpp:
                yield from ((user, one[2]) for user, one in unit.attribute_uses.get(name, ()) if one[0] != op.INVOKE)
                yield from ((store.function, store.value) for store in unit.attribute_stores.get(name, ()))
                yield from self._by_keyword(unit, name)
                for owner in unit.classes:
                    yield from ((store.function, store.value) for store in owner.own_stores.get(name, ()))
                    yield from self._field(owner, name)
                if unit.is_cpp:
                    yield from ((store.function, store.value) for store in unit.cpp_stores.get(name, ()))
                    yield from ((user, one[2]) for user, one in unit.cpp_uses.get(name, ()))

    def _by_keyword(self, unit: Unit, name: str) -> Iterator[Held]:
        """What calls of a file give by keyword for an attribute of a name."""
        known = self._named_in.get(unit)
        if known is None:
            known = self._named_in[unit] = defaultdict(list)
            calls = ((each, one) for each in unit.functions for opcode in (op.CALL, op.INVOKE) for one in each.by_opcode[opcode])
            for function, one in calls if not unit.is_cpp else ():
                for key, register in (*attributes_given(function, one), *self._keywords(function, one)):
                    known[key].append((function, one, register))
                if (asked := attribute_asked(function, one)) is not None:
                    known[asked].append((function, one, one[2]))
        for function, one, register in known.get(name, ()):
            if register == one[2] or any(key == name for key, _ in self._attributes_given(function, one)):
                yield function, register

    def _attributes_given(self, function: Function, one: Instruction) -> Iterator[tuple[str, int]]:
        """The attributes that a call sets by their names, each with the register of the value."""
        yield from attributes_given(function, one)
        named = self._keywords(function, one)
        if named and any(map(sets_keywords, self.facts.callee_functions(function, one))):
            yield from named

    def _keywords(self, function: Function, one: Instruction) -> list[tuple[str, int]]:
        """The keywords of a call, where a function of the program sets attributes of such names."""
        given = argument_registers(function, one) if self._sets_keywords and one[0] in (op.CALL, op.INVOKE) else []
        return [(kind, register) for kind, register in given if isinstance(kind, str)]

    @cached_property
    def _sets_keywords(self) -> bool:
        methods = (
            each for unit in self.facts.program.storing if not unit.is_cpp for owner in unit.classes for each in owner.methods.values()
        )
        return any(sets_keywords(method) for each in methods for method in each)

    def _field(self, owner: ClassInfo, name: str) -> Iterator[Held]:
        """What the calls of a class give for a field, where no constructor takes it."""
        if not any(member.name == name for member in owner.ir.fields) or owner.methods.get("__init__"):
            return
        for function, call in self.facts.construction_places(owner):
            if owner.unit.is_cpp:
                yield from ((function, each) for member, each in self.facts.members_given(function, call) if member.name == name)
            else:
                yield from ((function, register) for field, register in self.records.given(function, call) if field == name)

    def _global(self, function: Function, name: str, names: set[tuple[int, str]]) -> Iterator[Held]:
        if function.is_cpp:
            yield from self._attribute(function, name.rpartition("::")[2], names)
        elif (function.unit.number, name) not in names:
            names.add((function.unit.number, name))
            yield from function.unit.globals.get(name, ())
            yield from ((user, one[2]) for user, one in function.unit.name_uses.get(name, ()))

    def _cell(self, function: Function, constant: int) -> Iterator[Held]:
        unit = function.unit
        name, owner = unit.ir.constants[constant]
        for each in unit.function(owner).below:
            yield from ((each, one[3]) for one in each.by_opcode[op.STORE] if unit.ir.constants[one[2]] == (name, owner))
            yield from ((each, one[2]) for one in each.by_opcode[op.LOAD] if unit.ir.constants[one[3]] == (name, owner))

    # --- where it goes

    def _after(self, function: Function, register: int, use: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        opcode = use[0]
        if opcode == op.PHI or (opcode in _FROM and use[_FROM[opcode]] == register):
            yield function, use[2]
        elif opcode == op.STORE:
            yield from self._cell(function, use[2])
        elif opcode == op.SET_ATTR:
            yield from self._assigned(function, register, use, names)
        elif opcode == op.SET_NAME:
            yield from self._global(function, function.text(use[2]), names)
        elif opcode in _GIVING:
            yield from self._passed_back(function)
        elif opcode in (op.SET_ITEM, op.APPEND, op.PUT, op.BUILD, op.DICT):
            is_holder = opcode not in (op.BUILD, op.DICT) and use[-1] != register
            yield function, use[-1 if is_holder else 2]
        elif opcode == op.FUNCTION:
            yield from self._as_default(function, register, use)
        elif opcode in _CONSTRUCTING:
            yield from self._constructed(function, register, use, names)
        elif opcode in (op.CALL, op.INVOKE, op.ATTR):
            yield from self._passed_on(function, register, use, names)

    def _constructed(self, function: Function, register: int, use: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        """C++: the members of a new object that are given a register, and the parameters of its constructors."""
        members = (member.name for member, given in self.facts.members_given(function, use) if given == register)
        yield from (each for name in members for each in self._attribute(function, name, names))
        yield from self._inside(function, register, use)

    def _assigned(self, function: Function, register: int, use: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        """What has the memory of a register that is assigned to an attribute, or the other way round: ``x.data = y`` makes it that of x."""
        if function.text(use[3]) in self.transfer.view_names:
            yield from ((function, each) for each in (use[2], use[4]) if each != register)
        if use[4] == register:
            yield from self._attribute(function, function.text(use[3]), names)

    def _as_default(self, function: Function, register: int, use: Instruction) -> Iterator[Held]:
        """The parameters of a function whose default a register is."""
        inner = function.unit.function(use[3])
        yield from ((inner, one[2]) for one in inner.by_opcode[op.PARAM] if inner.default_register(one[3]) == register)

    def _passed_on(self, function: Function, register: int, use: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        """What a call or property makes of a register, keeps it in, or gives it to."""
        if any(isinstance(each, Viewed) and each.register == register for each in self.transfer.of(function, use)):
            yield function, use[2]
        yield from self._named(function, register, use, names)
        if op.DEFINES[use[0]] and kept_by(function, use) is not None:  # by a partial object, a thread
            yield function, use[2]
        if is_put(function, use) or (use[0] == op.INVOKE and put_by_function(function, use) is not None):
            yield from ((function, each) for each in operands_of(function, use))
        if (use[0] == op.CALL or function.invokes(use, "takes", "ends", "whole")) and register in self._taken(function, use):
            yield function, use[2]
        yield from self._inside(function, register, use) if use[0] != op.ATTR else ()

    def _named(self, function: Function, register: int, use: Instruction, names: set[tuple[int, str]]) -> Iterator[Held]:
        """The fields and attributes that a call gives a register for."""
        for field, given in self.records.given(function, use):
            if given == register:
                yield function, use[2]
                yield from self._attribute(function, field, names)
        for name, given in self._attributes_given(function, use) if use[0] != op.ATTR else ():
            if given == register:
                yield from self._attribute(function, name, names)

    def _inside(self, function: Function, register: int, call: Instruction) -> Iterator[Held]:
        """The parameters of the functions that a call enters which it gives a register."""
        for edge in self.transfer.edges(function, call):
            if edge.is_followed:
                yield from self._given(function, call, edge.callee, register)

    def _passed_back(self, function: Function) -> Iterator[Held]:
        """What calls of a function hold that it gives a value back to."""
        for caller, call in self.facts.call_places(function):
            if op.DEFINES[call[0]] and self._enters(caller, call, function):
                yield caller, call[2]

    def _given(self, function: Function, call: Instruction, callee: Function, register: int) -> Iterator[Held]:
        holds = call[0] not in _CONSTRUCTING and call[3] == register and deferred_target(function, call) is not None
        for one in callee.by_opcode[op.PARAM]:
            if holds or register in _given_for(function, call, callee, one[3]):
                yield callee, one[2]


def _given_for(function: Function, call: Instruction, callee: Function, index: int) -> list[int]:
    """The registers that may bring what a parameter holds."""
    if call[0] not in _CONSTRUCTING:
        return brought(function, call, callee, index)
    given = call[_FIRST:]
    return [given[index - 1]] if 0 < index <= len(given) else []
