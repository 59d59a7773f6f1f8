"""Locks: which a function takes, and which are held while the host waits for a device."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import only_source
from streamlint.facts.code.objects import Instance, LibraryObject
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until
from streamlint.models import Row
from streamlint.ordering.streams.reach import Reach
from streamlint.support.memo import memoized
from streamlint.transfer import device
from streamlint.transfer.transfer import Transfer

Lock = tuple[object, str]
"""A lock by where it is made; else by the class whose member it is, or the file or function whose variable, and its name."""


class Locks:
    """The locks of a program."""

    def __init__(self, transfer: Transfer, reach: Reach) -> None:
        self.transfer = transfer
        self.reach = reach
        self._waiting: dict[Function, bool] = {}

    def taken(self, function: Function, one: Instruction) -> Lock | None:
        """The lock that an instruction takes."""
        register = self._taken(function, one)
        return self._identified(function, register) if register is not None else None

    def _identified(self, function: Function, register: int) -> Lock | None:
        """What tells a lock from others: Python's have a place where they are made, through whatever they are passed on."""
        node = self.transfer.facts.values(function, register)
        for value in list(node.values) if not function.is_cpp else ():
            is_lock = isinstance(value, LibraryObject) and value.type in function.unit.models.marked("mutex")
            for site in list(node.trace(value))[-1:] if is_lock else ():
                if site.instruction[0] in (op.CALL, op.INVOKE):
                    return site, ""
        return self.named(function, register)

    def _taken(self, function: Function, one: Instruction) -> int | None:
        if one[0] == op.ENTER:
            return one[3] if self._is_lock(function, one[3]) else None
        if one[0] == op.INVOKE and function.text(one[4]) in ("lock", "acquire") and self._is_lock(function, one[3]):
            return one[3]
        if one[0] == op.CONSTRUCT and len(one) > 5:
            spelled = function.unit.ir.constants[one[3]]
            row: Row | None = self.transfer.facts.cpp_models.call(str(spelled[0])) if spelled is not None else None
            return one[5] if row is not None and row.effect == "block" and row.get("what") == "lock" else None
        return None

    def _is_lock(self, function: Function, register: int) -> bool:
        values = self.transfer.values(function, register)
        return any(isinstance(value, LibraryObject) and value.type in function.unit.models.marked("mutex") for value in values)

    def named(self, function: Function, register: int) -> Lock | None:
        """What a register names as a lock."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return None
        if one[0] in (op.COPY, op.DEREF):
            return self.named(function, one[3])
        if one[0] in (op.ATTR, op.ADDRESS_ATTR):
            definition = next(self._classes(function, one[3]), None)
            if definition is not None:
                found = self.transfer.facts.field_of(definition, function.text(one[4])) if function.is_cpp else None
                return definition if found is None else found[0], function.text(one[4])
        if one[0] in (op.NAME, op.ADDRESS_NAME):
            return self._home(function, function.text(one[3])), function.text(one[3])
        if one[0] == op.LOAD and not function.is_cpp:  # a variable that functions within share
            cell = function.unit.ir.constants[one[3]]
            return ((function.unit, cell), str(cell[0])) if isinstance(cell, tuple) else None
        return None

    def _classes(self, function: Function, register: int) -> Iterator[ClassInfo]:
        """The classes of the objects that a register may hold or point to; else the one that a pointer is cast to."""
        yield from (value.definition for value in self.transfer.values(function, register) if isinstance(value, Instance))
        one = function.definitions[register] if register >= 0 else None
        if function.is_cpp and one is not None and one[0] == op.CAST:
            cpp, kind, scope = self.transfer.facts.program.cpp, function.unit.ir.constants[one[3]], scope_of(function)
            resolved = cpp.resolved(function.unit, scope, kind) if kind is not None else None
            meant = cpp.find_class(function.unit, scope, str(resolved[0])) if resolved is not None else None
            yield from (meant,) if meant is not None else ()

    def _home(self, function: Function, name: str) -> ClassInfo | Unit:
        """The class whose member a name is, or the file that defines it; of one that nobody is seen to define, the function's own."""
        if not function.is_cpp:
            return function.unit
        owner = self.transfer.facts.member_of(function, name)
        seen = self.transfer.facts.program.cpp.visible(function.unit)
        return owner if owner is not None else next((unit for unit in seen if name in unit.globals), function.unit)

    @memoized
    def is_held_over_a_wait(self, lock: Lock) -> bool:
        """Whether some function holds a lock while the host waits for a device."""
        return any(self._holds(function, lock) for function in self._near(lock))

    def _near(self, lock: Lock) -> Iterator[Function]:
        program = self.transfer.facts.program
        units = program.mentioning(lock[1]) if lock[1] else [unit for unit in program.units.values() if not unit.is_cpp]
        for unit in units:
            yield from unit.functions

    def _holds(self, function: Function, lock: Lock) -> bool:
        for number, block in enumerate(function.code.blocks):
            for index, one in enumerate(block):
                if self.taken(function, one) == lock and self._waits_behind(function, number, index, one):
                    return True
        return False

    def _waits_behind(self, function: Function, number: int, index: int, taking: Instruction) -> bool:
        """Whether the host waits on some way from where a lock is taken to where it is let go."""
        guard = taking[2] if taking[0] == op.CONSTRUCT else taking[3]
        held = until(function.code, (number, index + 1), lambda one: self._lets_go(function, one, guard, taking))
        return any(self._is_wait(function, one) for one in held)

    def _lets_go(self, function: Function, one: Instruction, guard: int, taking: Instruction) -> bool:
        if one[0] == op.EXIT:
            return guard in (one[2], one[3] if len(one) > 3 else op.NONE)
        if one[0] == op.DESTROY:
            return only_source(function, one[2]) == guard
        if one[0] != op.INVOKE or function.text(one[4]) not in ("unlock", "release"):
            return False
        return only_source(function, one[3]) == guard or self._identified(function, one[3]) == self.taken(function, taking)

    def _is_wait(self, function: Function, one: Instruction) -> bool:
        if any(operation.kind == device.SYNCHRONIZE for operation in self.reach.operations.of(function, one)):
            return True
        return any(self._waits(edge.callee) for edge in self.reach.edges(function).get(one, ()))

    def _waits(self, function: Function) -> bool:
        if function not in self._waiting:
            self._waiting[function] = False
            self._waiting[function] = any(self._is_wait(function, one) for one in function.code.instructions())
        return self._waiting[function]
