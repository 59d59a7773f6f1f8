"""Where a value that names a device comes from: over variables of closures and files, attributes, calls and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import Instance, ModuleObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, operand_of

Place = tuple[Function, int]
"""A register of a function."""
Call = tuple[Function, Instruction]
Entered = Mapping[Function, list[Call]]
"""By function: the only calls by which it was entered."""
MOST = 200
"""Registers that are looked at for one."""
_SPREAD = (1, 2)


class DeviceRoots:
    """Answers for the registers of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def before(self, function: Function, register: int, entered: Entered) -> list[Place]:
        """Where the value of a register was right before; empty where that is not known."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return []
        if one[0] in (op.PHI, op.COPY):
            return [(function, each) for each in op.reads(one)]
        if one[0] in (op.LOAD, op.NAME, op.IMPORT):
            return list(self._named(function, one))
        if one[0] == op.ATTR:
            return list(self.kept(function, one))
        if one[0] == op.PARAM:
            return self._given(function, one[3], entered)
        return self._returned(function, one) if one[0] in (op.CALL, op.INVOKE) else []

    def _named(self, function: Function, one: Instruction) -> Iterator[Place]:
        """What functions put into the variable that a closure reads, and what a file puts into its own."""
        if one[0] == op.LOAD:
            name, owner = function.unit.ir.constants[one[3]]
            for each in function.unit.function(owner).below:
                yield from ((each, store[3]) for store in each.by_opcode[op.STORE] if each.unit.ir.constants[store[2]] == (name, owner))
            return
        unit = self.facts.program.imported(function.text(one[3]), function.unit) if one[0] == op.IMPORT else function.unit
        name = one[4] if one[0] == op.IMPORT else one[3]
        if unit is not None and name != op.NONE:
            yield from unit.globals.get(function.text(name), ())

    def kept(self, function: Function, one: Instruction) -> Iterable[Place]:
        """What is stored under an attribute of an object of the program, or what a file names so; nothing where one is unknown."""
        name = function.text(one[4])
        if function.owner is not None and function.is_parameter(one[3], 0):
            owners = [function.owner]
        else:
            values = list(self.facts.values(function, one[3]).values)
            modules = [value.unit for value in values if isinstance(value, ModuleObject)]
            if modules and len(modules) == len(values):
                return [place for unit in modules for place in unit.globals.get(name, ())]
            owners = [value.definition for value in values if isinstance(value, Instance)]
            if len(owners) < len(values):
                return []
        classes = dict.fromkeys(each for owner in owners for each in self.facts.hierarchy.order(owner))
        stores = [(store.function, store.value) for each in classes for store in each.own_stores.get(name, ())]
        return stores + [(each.body, register) for each in classes for register in each.assigned.get(name, ())]

    def _given(self, function: Function, index: int, entered: Entered) -> list[Place]:
        """What all calls of a function give for a parameter, or leave to its default; nothing where one call does not show it."""
        calls = entered.get(function)
        if calls is None:
            calls = [each for each in self.facts.call_places(function) if function in self.facts.enters(*each)]
        found = [self._from_call(function, index, *each) for each in calls]
        return [place for place in found if place is not None] if None not in found else []

    def _from_call(self, function: Function, index: int, caller: Function, call: Instruction) -> Place | None:
        if call[0] not in (op.CALL, op.INVOKE):
            return None
        register = operand_of(caller, call, function, index)
        if register is not None:
            return (caller, register) if register >= 0 else None
        is_spread = any(kind in _SPREAD for kind, _ in argument_registers(caller, call))
        return function.default_place(index) if not is_spread else None

    def _returned(self, function: Function, one: Instruction) -> list[Place]:
        callees = self.facts.enters(function, one)
        return [(callee, end[2]) for callee in callees if callee.code.name != "__init__" for end in callee.by_opcode[op.RETURN]]
