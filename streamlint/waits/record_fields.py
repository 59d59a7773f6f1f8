"""The fields of records that calls make: of classes without a constructor, dataclasses and named tuples among them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import ClassObject, ModuleObject
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers


class RecordFields:
    """The fields of the records of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._fields: dict[tuple[Function, Instruction], tuple[tuple[str, ...], bool]] = {}

    def of(self, function: Function, call: Instruction) -> tuple[str, ...]:
        """The fields of the record that a call makes, in order, up to where classes that it may be differ; empty where it makes none."""
        return self._known(function, call)[0]

    def _known(self, function: Function, call: Instruction) -> tuple[tuple[str, ...], bool]:
        """The fields of the record that a call makes, and whether it takes them by position."""
        if call[0] not in (op.CALL, op.INVOKE):
            return (), False
        found = self._fields.get((function, call))
        if found is None:
            found = self._fields[function, call] = self._find(function, call)
        return found

    def given(self, function: Function, call: Instruction) -> Iterator[tuple[str, int]]:
        """The fields of the record that a call makes, each with the register that it is given."""
        fields, is_by_position = self._known(function, call)
        for place, (kind, register) in enumerate(argument_registers(function, call) if fields else ()):
            if kind is None and is_by_position and place < len(fields):
                yield fields[place], register
            elif isinstance(kind, str) and kind in fields:
                yield kind, register

    def classes(self, function: Function, call: Instruction) -> list[ClassInfo]:
        """The classes without a constructor of which a call may make a record."""
        values = list(self.facts.values(function, call[3]).values)
        if call[0] == op.INVOKE:
            is_of_module = any(isinstance(value, ModuleObject) for value in values)
            values = self.facts.callees(function, call) if is_of_module else []
        classes = [value.definition for value in values if isinstance(value, ClassObject)]
        return [each for each in classes if self.facts.hierarchy.lookup(each, "__init__") is None]

    def _find(self, function: Function, call: Instruction) -> tuple[tuple[str, ...], bool]:
        classes = self.classes(function, call)
        alike = takewhile(lambda names: len(set(names)) == 1, zip(*map(self.facts.fields, classes), strict=False))
        return tuple(names[0] for names in alike), all(map(self.facts.takes_by_position, classes))
