"""Members that constructors alone set: what a caller has found out about one holds in what it calls, and all objects in view may agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamlint.facts.flags import is_own
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.objects import Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.deciding import deciding
from streamlint.ordering.topics import implied
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike

if TYPE_CHECKING:
    from streamlint.ordering.conditions import Frame
    from streamlint.transfer.transfer import Transfer

_DEEPEST = 6
_HIGHEST = 4
"""Calls above one another that are asked what they have decided before a path begins."""
_KEEPING = {"bool": bool, "int": int}
Values = frozenset[object]


class KeptFlags:
    """The truth of members that constructors keep."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self._values: dict[tuple[ClassInfo, str], Values | None] = {}
        self._fixed: dict[str, bool] = {}
        self._decided: dict[tuple[Function, Key, int], bool | None] = {}
        self._asking: set[tuple[ClassInfo, str]] = set()

    def truth(self, function: Function, one: Instruction) -> bool | None:
        """Whether a member of the receiver holds: code in view makes objects of its class, and gives all of them constants that agree."""
        owner = function.owner
        if owner is None or function.is_cpp or not is_own(function, one[3]):
            return None
        truths = {bool(value) for value in self._of_class(owner, function.text(one[4])) or ()}
        return truths.pop() if len(truths) == 1 else None

    def above(self, frame: Frame, key: Key, decided: Iterable[tuple[Frame, Key, bool]]) -> bool | None:
        """The truth of a condition about such members that a caller on the path has decided, or all callers of where it begins."""
        while frame.caller is not None and frame.call is not None:
            passed = self._as_passed(frame.function, key, Site(frame.caller.function, frame.call))
            if passed is None:
                return None
            key, frame = passed, frame.caller
            for where, asked, holds in decided:
                if where == frame and (truth := implied(asked, holds, key)) is not None:
                    return truth
        return self._by_callers(frame.function, key, _HIGHEST)

    def _by_callers(self, function: Function, key: Key, depth: int) -> bool | None:
        """What all calls of a function have decided of a condition."""
        asked = (function, key, depth)
        if asked not in self._decided:
            truths = {self._by_caller(function, key, Site(*call), depth) for call in self.transfer.callers(function)} if depth else set()
            self._decided[asked] = truths.pop() if len(truths) == 1 else None
        return self._decided[asked]

    def _by_caller(self, function: Function, key: Key, call: Site, depth: int) -> bool | None:
        passed = self._as_passed(function, key, call)
        if passed is None:
            return None
        said = deciding(call.function, call.function.blocks[call.instruction])
        truths = {truth for asked, holds in said if (truth := implied(asked, holds, passed)) is not None}
        return truths.pop() if len(truths) == 1 else self._by_callers(call.function, passed, depth - 1)

    def _as_passed(self, function: Function, key: Key, call: Site) -> Key | None:
        """A condition as a caller says it; None where it does not hang on members of what the caller gives alone."""
        if function.is_cpp or call.instruction[0] not in (op.CALL, op.INVOKE):
            return None
        if len(key) == 1:
            one = function.definitions[key[0]] if isinstance(key[0], int) and key[0] >= 0 else None
            given = operand_of(call.function, call.instruction, function, one[3]) if one is not None and one[0] == op.PARAM else None
            return alike(call.function, given) if given is not None and given >= 0 else None
        if key[0] != op.ATTR or not self._is_fixed(str(key[1])) or not isinstance(key[2], tuple):
            return None
        base = self._as_passed(function, key[2], call)
        return (key[0], key[1], base, *key[3:]) if base is not None else None

    def _is_fixed(self, name: str) -> bool:
        """Whether constructors alone set the attributes of a name."""
        found = self._fixed.get(name)
        if found is None:
            units = [unit for unit in self.facts.program.mentioning(name) if not unit.is_cpp]
            inner = (store for unit in units for each in unit.classes for store in each.own_stores.get(name, ()))
            found = not any(name in unit.attribute_stores for unit in units) and all(
                store.function.code.name == "__init__" for store in inner
            )
            self._fixed[name] = found
        return found

    def _of_class(self, definition: ClassInfo, name: str, depth: int = _DEEPEST) -> Values | None:
        """The constants that an attribute of a class's objects may be; None where something else may be."""
        key = (definition, name)
        if key in self._asking:
            return frozenset()  # what hangs on itself adds nothing
        if key in self._values:
            return self._values[key]
        self._asking.add(key)
        line = dict.fromkeys((*self.facts.hierarchy.order(definition), *(self.facts.hierarchy.cone(definition) or ())))
        found = None
        if self._is_fixed(name) and not any(name in each.methods or name in each.assigned for each in line):
            stores = [store for each in line for store in each.own_stores.get(name, ())]
            found = _joined(self._of(store.function, store.value, depth) for store in stores)
        self._asking.discard(key)
        if not self._asking:
            self._values[key] = found or None
        return found

    def _of(self, function: Function, register: int, depth: int) -> Values | None:
        """The constants that a register may hold."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return None
        if one[0] == op.CONST:
            return frozenset({function.unit.ir.constants[one[3]]})
        if one[0] in (op.COPY, op.CAST):
            return self._of(function, one[-1], depth - 1)
        if one[0] == op.CALL:
            return self._converted(function, one, depth)
        if one[0] == op.ATTR:
            return self._member(function, one, depth)
        return self._given(function, one[3], depth - 1) if one[0] == op.PARAM else None

    def _converted(self, function: Function, one: Instruction, depth: int) -> Values | None:
        """The same of ``bool(x)`` and ``int(x)``."""
        keeping = _KEEPING.get(function.dotted(one[3])) if len(one) == 6 else None
        kept = self._of(function, one[5], depth - 1) if keeping is not None else None
        is_number = kept is not None and all(isinstance(each, (bool, int, float)) for each in kept)
        return frozenset(map(keeping, kept)) if keeping is not None and kept is not None and is_number else None

    def _member(self, function: Function, one: Instruction, depth: int) -> Values | None:
        """The same of a member of an object whose classes are known, but for what unknown callers give."""
        held = list(self.facts.values(function, one[3]).values)
        classes = [value.definition for value in held if isinstance(value, Instance)]
        if not classes or not all(isinstance(value, Instance) or getattr(value, "reason", "") == "caller" for value in held):
            return None
        return _joined(self._of_class(each, function.text(one[4]), depth - 1) for each in classes)

    def _given(self, function: Function, index: int, depth: int) -> Values | None:
        """What all calls in view give for a parameter, or leave at its default."""
        return _joined(
            self._by_call(function, index, arguments.site.function, arguments.site.instruction, depth)
            if arguments.site is not None
            else None
            for _, arguments in self.facts.callers(function)
        )

    def _by_call(self, function: Function, index: int, caller: Function, call: Instruction, depth: int) -> Values | None:
        given = operand_of(caller, call, function, index) if call[0] in (op.CALL, op.INVOKE) else op.NONE
        if given is not None:
            return self._of(caller, given, depth)
        default = function.default_register(index)
        return self._of(function.parent, default, depth) if default is not None and function.parent is not None else None


def _joined(parts: Iterable[Values | None]) -> Values | None:
    """All of several; None where one is not known."""
    found = set[object]()
    for part in parts:
        if part is None:
            return None
        found |= part
    return frozenset(found)
