"""What an application leaves out: the functions and classes of its modules that nothing means.

A name means what its scope says: a package that takes ``Step`` from one of its parts, and a table that takes it from another package, mean
two classes. Names that are computed may mean all that a module has, where the module is handed over as a value, or gives its own table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.applications import Applications, packages, uses_any
from streamlint.facts.graph.importers import importers, lists_names, texts_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.support.memo import memoized

_TABLE = "__dict__"
_STORING = frozenset({op.BIND, op.UNBIND, op.SET_NAME})
_MEMBER = frozenset({op.ATTR, op.INVOKE})
Holder = tuple[Unit, str]
"""A file, and what it calls a definition."""


class LeftOut:
    """Answers for the functions of a program."""

    def __init__(self, applications: Applications, hierarchy: Hierarchy) -> None:
        self.program = applications.program
        self.hierarchy = hierarchy
        self._scopes = hierarchy.scopes
        self._applications = applications

    def holds(self, function: Function) -> bool:
        """Whether an application leaves out the function or class of a module in which a function stands."""
        while function.parent is not None and function.parent.parent is not None:
            function = function.parent
        return function.parent is not None and not function.is_cpp and self._is_left_out(function)

    def is_part(self, unit: Unit) -> bool:
        """Whether a file is one of an application, which imports it and nothing by a name that is computed."""
        return self._applications.imports(unit) and not self.is_open

    @memoized
    def _is_left_out(self, function: Function) -> bool:
        unit, name = function.unit, function.code.name
        if function.code.kind == "class":
            definition = next(each for each in unit.classes if each.body is function)
            is_asked = not self._is_registered(definition) and (self.is_part(unit) or self._is_beside_others(definition))
        else:
            is_asked = self.is_part(unit) and not function.decorators and takes_something(function)
        return is_asked and not self._is_meant(unit, name, {function, *function.below})

    @cached_property
    def is_open(self) -> bool:
        """Whether the program imports or calls something by names that it computes."""
        return any(uses_any(unit, "imports-by-name", "calls-by-name") for unit in self.program.units.values())

    def _is_registered(self, definition: ClassInfo) -> bool:
        """Whether the definition of a class may hand it to others."""
        line = self.hierarchy.order(definition)
        hands = any(each.ir.decorators or each.ir.keywords or "__init_subclass__" in each.methods for each in line)
        return hands or bool(self.program.mentioning("__subclasses__"))

    def _is_beside_others(self, definition: ClassInfo) -> bool:
        """Whether no file imports that of a class, and applications take others of its base, or of its name, from elsewhere."""
        unit = definition.unit
        if self.is_open or any(True for _ in importers(unit)) or self._applications.is_entry(unit):
            return False
        bases = [each for each in self.hierarchy.bases(definition) if isinstance(each, ClassInfo) and each.unit is not unit]
        others = (one for each in self.program.units.values() if each is not unit and not each.is_cpp for one in each.classes)
        return any(
            (one.ir.name == definition.ir.name or not set(bases).isdisjoint(self.hierarchy.order(one)[1:]))
            and self._applications.imports(one.unit)
            for one in others
        )

    # --- what may mean a definition

    def _is_meant(self, unit: Unit, name: str, inside: set[Function]) -> bool:
        """Whether anything but its own instructions means what a module calls so."""
        holders = frozenset(led_to([(unit, name)], self._taking))
        units = {holder for holder, _ in holders}
        if any(self._is_read(*holder, inside) for holder in holders):
            return True
        is_imported = any(True for each in units for _ in importers(each))
        for user in self.program.mentioning(name):
            if user.is_cpp or (is_imported and any(function not in inside for function, _ in texts_of(user, name))):
                return True
            uses = (each for each in user.attribute_uses.get(name, ()) if each[0] not in inside)
            if any(self._may_be_of(function, one[3], units) for function, one in uses):
                return True
        return any(map(self._is_handed_over, led_to(units, self._offering)))

    def _taking(self, holder: Holder) -> Iterator[Holder]:
        """The files that import what one calls so, each with what it calls that."""
        _, name = holder
        for function, one in self._taken(*holder):
            is_all = function.text(one[4]) == "*"
            stored = (function.text(use[2]) for use in function.uses[one[2]] if use[0] in _STORING)
            yield from ((function.unit, local) for local in ((name,) if is_all else stored))

    @memoized
    def _taken(self, unit: Unit, name: str) -> list[tuple[Function, Instruction]]:
        """The instructions that import what a file calls so, or all that it has."""
        found = (each for other in importers(unit) for each in self._imports(other, unit))
        return [(function, one) for function, one in found if one[4] != op.NONE and function.text(one[4]) in (name, "*")]

    def _imports(self, other: Unit, unit: Unit) -> Iterator[tuple[Function, Instruction]]:
        """The imports of a file that take something from another file."""
        for function in other.functions:
            for one in function.by_opcode[op.IMPORT]:
                if self.program.imported(function.text(one[3]), other) is unit:
                    yield function, one

    def _is_read(self, unit: Unit, name: str, inside: set[Function]) -> bool:
        """Whether a file reads what it calls so, or a function that imports it from there."""
        if any(function not in inside for function, _ in unit.name_uses.get(name, ())):
            return True
        taken = ((function, one) for function, one in self._taken(unit, name) if function.text(one[4]) == name)
        return any(use[0] not in _STORING for function, one in taken for use in function.uses[one[2]])

    def _may_be_of(self, function: Function, register: int, units: set[Unit]) -> bool:
        """Whether a register may hold one of some files: not if its name means others alone."""
        meant = self._scopes.find(function.unit, function.dotted(register))
        return not meant or not all(isinstance(each, Unit) and each not in units for each in meant)

    @memoized
    def _offering(self, unit: Unit) -> list[Unit]:
        """The files that have a module among their names: those that import it, and then its package."""
        others = list(importers(unit))
        taking = (
            other
            for other in others
            if any(unit in self._modules(function, one) for function in other.functions for one in function.by_opcode[op.IMPORT])
        )
        return [*taking, *(packages(unit) if others else ())]

    @memoized
    def _is_handed_over(self, unit: Unit) -> bool:
        """Whether code takes what a module has by names that it computes: of its own file, or where the module or its table is a value."""
        return lists_names(unit) or any(self._hands_over(other, unit) for other in importers(unit))

    def _hands_over(self, other: Unit, unit: Unit) -> bool:
        if any(one[4] != op.NONE and function.text(one[4]) == _TABLE for function, one in self._imports(other, unit)):
            return True
        for function in other.functions:
            for one in (each for opcode in (op.IMPORT, op.NAME, op.ATTR) for each in function.by_opcode[opcode]):
                if any(_is_value(use, function) for use in function.uses[one[2]]) and unit in self._modules(function, one):
                    return True
        return False

    def _modules(self, function: Function, one: Instruction) -> tuple[object, ...]:
        """What an instruction gives, as far as names tell it."""
        if one[0] == op.IMPORT:
            name = function.text(one[4]) if one[4] != op.NONE else None
            return tuple(self._scopes.imported(function.unit, function.text(one[3]), name))
        return self._scopes.find(function.unit, function.dotted(one[2]))


def takes_something(function: Function) -> bool:
    """Whether a function needs an argument: it is no start of a program."""
    return any(one.kind in ("plain", "keyword") and not one.default for one in function.code.parameters)


def _is_value(use: Instruction, function: Function) -> bool:
    """Whether an instruction uses a module otherwise than for a member, or for its table."""
    if use[0] in _MEMBER:
        return function.text(use[4]) == _TABLE
    return use[0] not in _STORING
