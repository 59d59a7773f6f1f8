"""A value of C++ followed forward."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.passing import STORES
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.program import Unit
from streamlint.facts.files.tracker import Tracker
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.cpp.cpp_callers import CppCallers

MAKES = frozenset({op.DECLARE, op.CONSTRUCT, op.NEW, op.NEW_ARRAY})
GIVEN = {op.CONSTRUCT: 5, op.NEW: 5, op.INIT: 5}
"""Where the arguments of an instruction begin."""


class CppTracker(Tracker):
    """Follows one value forward through C++."""

    def __init__(self, flow: CppCallers) -> None:
        super().__init__(flow)
        self.flow: CppCallers = flow

    def _use(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        opcode = use[0]
        if opcode == op.REBIND:
            if use[5] == register:
                self.follow(function, use[2], depth)
        elif opcode == op.DEREF:
            self.follow(function, use[2], depth)
        elif opcode == op.SET_DEREF:
            if use[2] == register:
                self.changed(function, use)
        elif opcode in (op.ADDRESS_ATTR, op.ADDRESS_ITEM):
            if use[3] == register:
                self.changed(function, use)
                self.follow(function, use[2], depth)
        elif opcode in GIVEN or opcode == op.LAUNCH:
            self._makes(function, register, use, depth)
        elif opcode in (op.DESTROY, op.DELETE):
            self.called(function, use)
        elif opcode == op.BINARY:
            self.follow(function, use[2], depth)
        else:
            super()._use(function, register, use, depth)

    def _makes(self, function: Function, register: int, use: Instruction, depth: int) -> None:
        """An object is made of the value, or a kernel launched with it."""
        self.called(function, use)
        if use[0] == op.INIT:
            name = function.text(use[3])
            self.attribute(name, function.unit, depth)
        first = 6 + use[5] if use[0] == op.LAUNCH else GIVEN[use[0]]
        if use[0] != op.INIT:
            self.follow(function, use[2], depth)
        for index, argument in enumerate(use[first:]):
            if argument == register:
                for target in self.flow.made_by(function, use):
                    self._to_parameter(target, index + 1, depth)
        for member, argument in self.flow.members_given(function, use):
            if argument == register:
                self.attribute(member.name, function.unit, depth)

    def _to_parameter(self, target: Function, number: int, depth: int) -> None:
        for one in target.by_opcode[op.PARAM]:
            if one[3] == number:
                self.follow(target, one[2], depth)

    def _cell(self, function: Function, use: Instruction, depth: int) -> None:
        super()._cell(function, use, depth)
        element = function.definitions[use[3]]
        if element is not None and element[0] == op.NEXT:
            self.changed(function, use)  # if its address is taken: ``for (auto& x : container)``
        for inner, one in function.on_variable(op.ADDRESS, use[2]):
            self.follow(inner, one[2], depth)

    def _name(self, function: Function, name: str, depth: int) -> None:
        self.attribute(last_part(name), function.unit, depth)

    def seen_from(self, unit: Unit) -> str:
        return ""

    def look_up(self, name: str, unit: Unit, depth: int) -> None:
        for near in self.flow.cpp.mentioning(name):
            for function, one in near.cpp_uses.get(name, ()):
                self.follow(function, one[2], depth)
            for function, one in near.attribute_uses.get(name, ()):
                self._attribute_use(function, one, depth)

    def _static_targets(self, function: Function, use: Instruction, name: str) -> Iterator[tuple[Function, int]]:
        one = function.definitions[use[3]] if use[0] != op.INVOKE else None
        if use[0] == op.INVOKE:
            classes = (definition for unit in self.flow.cpp.mentioning(name) for definition in unit.classes)
            yield from ((method, int(method.has_receiver)) for each in classes for method in each.methods.get(name, ()))
        elif one is not None and one[0] == op.NAME:
            yield from self._named_targets(function, function.text(one[3]))
        elif one is not None and one[0] == op.FUNCTION:
            yield function.unit.function(one[3]), 0

    def _named_targets(self, function: Function, text: str) -> Iterator[tuple[Function, int]]:
        found = list(self.flow.cpp.find(function.unit, scope_of(function), text))
        owner = function.method.owner if function.method is not None else None
        if owner is not None and "::" not in text:
            found += self.flow.overloads(owner, text)
        for meant in dict.fromkeys(found):
            if isinstance(meant, Function):
                yield meant, 1 if meant.has_receiver else 0
            elif isinstance(meant, ClassInfo):
                for method in meant.methods.get("__init__", ()):
                    yield method, 1

    def _method_of_it(self, function: Function, use: Instruction, depth: int) -> None:
        if function.invokes(use, *STORES):
            self.changed(function, use)
        self.follow(function, use[2], depth)  # a reference or an iterator, or an element

    def _held_by(self, function: Function, register: int, depth: int) -> None:
        self.follow(function, register, depth)
        one = function.definitions[register]
        if one is not None and one[0] == op.ATTR:
            self.attribute(function.text(one[4]), function.unit, depth)
        elif one is not None and one[0] in (op.NAME, op.ADDRESS_NAME):
            self.attribute(last_part(function.text(one[3])), function.unit, depth)
