"""C++: what the end of an owner runs (a deleter that the program gives a smart pointer), and whether objects of a class are copied."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Instance, Object, PartialObject
from streamlint.facts.code.stores import Store
from streamlint.facts.cpp.cpp_library import CppLibrary
from streamlint.facts.cpp.cpp_places import Place
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.support.memo import memoized

_SAME = {op.COPY: 3, op.REBIND: 5, op.CAST: 4}
"""By opcode: where the register stands whose value an instruction hands on."""
_TYPED = frozenset({op.DECLARE, op.CONSTRUCT})
_COPYING = frozenset({"__init__", "operator="})
"""What may copy or move an object of its class."""
_FIRST = 5
_MOST = 12
"""Instructions that are looked at for where an owner was made."""


class CppOwners(CppLibrary):
    """Value flow of smart pointers that end, and of objects that are copied."""

    # --- copies

    def _stored_in_field(self, owner: ClassInfo, name: str, store: Store, node: Node) -> None:
        if not self._is_unrun_copy(store.function, owner):
            super()._stored_in_field(owner, name, store, node)

    def _member_addresses(self, owner: ClassInfo, name: str) -> Iterator[Place]:
        for function, one in super()._member_addresses(owner, name):
            if not self._is_unrun_copy(function, owner):
                yield function, one

    def _is_unrun_copy(self, function: Function, owner: ClassInfo) -> bool:
        """Whether a function copies or moves objects of its class, and nothing in view does so."""
        is_copying = function.owner is owner and function.code.name in _COPYING and self.copies(function, owner)
        return is_copying and not self.is_copied(owner)

    @memoized
    def is_copied(self, definition: ClassInfo) -> bool:
        """Whether the program may copy or move an object of a class: it hands one over by value, or makes one of another one."""
        return any(
            self._copies_in(function, definition)
            for unit in self.cpp.mentioning(definition.ir.name)
            for function in unit.functions
            if function.owner is not definition or function.code.name not in _COPYING
        ) or any(
            self._holds(unit.body, member.type, definition)
            for unit in self.cpp.mentioning(definition.ir.name)
            for holder in unit.classes
            for member in holder.ir.fields
        )

    def _copies_in(self, function: Function, definition: ClassInfo) -> bool:
        """Whether a function takes an object by value, keeps some in a container, or makes one of another one."""
        constants = function.unit.ir.constants
        if any(self._is_object(function, parameter.type, definition) for parameter in function.code.parameters):
            return True
        if any(self._is_of(function, one[3], definition) for one in function.by_opcode[op.COPY]):
            return True
        made = [one for opcode in (*_TYPED, op.NEW) for one in function.by_opcode[opcode]]
        if any(self._holds(function, constants[one[3]], definition) for one in made):
            return True
        single = (one for one in (*made, *function.by_opcode[op.CALL]) if len(one) == _FIRST + 1)
        return any(self._is_of(function, one[_FIRST], definition) for one in single)

    def _is_of(self, function: Function, register: int, definition: ClassInfo) -> bool:
        return self.brace_lists.is_object(function, register, definition)

    def _is_object(self, function: Function, kind: TypeTuple | None, definition: ClassInfo) -> bool:
        """Whether a type is a class itself: no pointer or reference."""
        return kind is not None and not (kind[2] or kind[3]) and self.named_type(function, kind)[1] is definition

    def _holds(self, function: Function, kind: TypeTuple | None, definition: ClassInfo) -> bool:
        """Whether a type is a container of objects of a class, which it moves and copies."""
        if kind is None or kind[2]:
            return False
        kind = self.named_type(function, kind)[0]
        is_sequence = kind[0] in self.cpp_models.marked("sequence")
        return is_sequence and any(self._is_object(function, each, definition) for each in kind[1])

    # --- ends

    @memoized
    def owner_of(self, function: Function, register: int) -> tuple[Function, Instruction | None, TypeTuple] | None:
        """The type of the smart pointer in a register, and the function and the instruction that make it with that type."""
        waiting = [register]
        for each in waiting:
            one = function.definitions[each] if each >= 0 else None
            if one is None or len(waiting) > _MOST:
                continue
            kind = function.unit.ir.constants[one[3]] if one[0] in (*_TYPED, op.CAST) else None
            resolved = self.named_type(function, kind)[0] if kind is not None else None
            if resolved is not None and str(resolved[0]) in self.cpp_models.marked("owner"):
                return function, one if one[0] in _TYPED else None, resolved
            if one[0] == op.PHI:
                waiting += [other for other in one[3:] if other not in waiting]
            elif one[0] in _SAME:
                waiting.append(one[_SAME[one[0]]])
            elif one[0] == op.LOAD:
                waiting += [store[3] for holder, store in function.on_variable(op.STORE, one[3]) if holder is function]
        return None

    def deleters(self, function: Function, register: int) -> Iterator[Object | Node]:
        """The objects, or the nodes that hold them, that an owner in a register calls where what it owns ends."""
        found = self.owner_of(function, register)
        if found is None:
            return
        holder, made, kind = found
        if made is not None and made[0] == op.CONSTRUCT and len(made) > _FIRST + 1:
            yield self.register(self.base(holder), made[_FIRST + 1])
        for given in kind[1][1:2]:
            meant = self.named_type(holder, given)[1] if given is not None and not given[2] else None
            if isinstance(meant, ClassInfo) and "operator()" in meant.methods:
                yield self.objects(Instance, meant, True)

    def has_deleter(self, function: Function, register: int) -> bool:
        """Whether what a register owns ends by a deleter of its own, not by its destructor."""
        return any(True for _ in self.deleters(function, register))

    def run_deleters(self, frame: Frame, one: Instruction) -> None:
        """Have the end of an owner call its deleters."""
        given = self.no_arguments_of(frame, one)
        if not given.positional:
            given.positional.append(self.register(frame, one[2]))

        def arrived(value: Object) -> None:
            if isinstance(value, (FunctionObject, BoundMethod, PartialObject, Instance)):
                self.call(value, given, Node(None))

        for each in self.deleters(frame.function, one[2]):
            if isinstance(each, Node):
                self.solver.when(each, arrived)
            else:
                arrived(each)
