"""The fields of records that calls make: of classes without a constructor, dataclasses and named tuples among them."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import ClassObject, ModuleObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers


class RecordFields:
    """The fields of the records of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._fields: dict[tuple[Function, Instruction], tuple[str, ...]] = {}

    def of(self, function: Function, call: Instruction) -> tuple[str, ...]:
        """The fields of the record that a call makes, in order; empty where it makes none."""
        if call[0] not in (op.CALL, op.INVOKE):
            return ()
        found = self._fields.get((function, call))
        if found is None:
            found = self._fields[function, call] = tuple(self._find(function, call))
        return found

    def given(self, function: Function, call: Instruction) -> Iterator[tuple[str, int]]:
        """The fields of the record that a call makes, each with the register that it is given."""
        fields = self.of(function, call)
        for place, (kind, register) in enumerate(argument_registers(function, call) if fields else ()):
            if kind is None and place < len(fields):
                yield fields[place], register
            elif isinstance(kind, str) and kind in fields:
                yield kind, register

    def _find(self, function: Function, call: Instruction) -> Iterator[str]:
        values = list(self.facts.values(function, call[3]).values)
        if call[0] == op.INVOKE:
            is_of_module = any(isinstance(value, ModuleObject) for value in values)
            values = self.facts.callees(function, call) if is_of_module else []
        for value in values:
            if isinstance(value, ClassObject) and self.facts.hierarchy.lookup(value.definition, "__init__") is None:
                yield from self.facts.fields(value.definition)
                return
        one = function.definitions[call[3]]
        if call[0] == op.INVOKE or one is None or one[0] != op.NAME:
            return
        for holder, register in function.unit.globals.get(function.text(one[3]), ()):
            made = holder.definitions[register]
            if made is None or made[0] not in (op.CALL, op.INVOKE):
                continue
            name = holder.text(made[4]) if made[0] == op.INVOKE else holder.dotted(made[3]).rpartition(".")[2]
            given = made[6 if made[0] == op.INVOKE else 5 :]
            if name in ("namedtuple", "NamedTuple") and len(given) > 1:
                yield from _names_in(holder, given[1])


def _names_in(function: Function, register: int) -> Iterator[str]:
    """The names of fields as `collections.namedtuple` and `typing.NamedTuple` take them."""
    text = function.constant(register)
    if isinstance(text, str):
        yield from text.replace(",", " ").split()
        return
    built = function.definitions[register]
    for part in built[4:] if built is not None and built[0] == op.BUILD else ():
        inner = function.definitions[part]
        name = function.constant(inner[4] if inner is not None and inner[0] == op.BUILD and len(inner) > 4 else part)
        if isinstance(name, str):
            yield name
