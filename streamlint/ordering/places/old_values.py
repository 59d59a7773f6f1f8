"""Python: values that were read from an attribute of the receiver before the attribute is set anew."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_DEEPEST = 3


class OldValues:
    """Knows which registers hold what an attribute has held before, where they are used last."""

    def __init__(self) -> None:
        self._known: dict[tuple[Function, int], bool] = {}

    def is_old(self, function: Function, one: Instruction) -> bool:
        """Whether what an instruction reads from an attribute is used after the function, or a method, has set that attribute anew."""
        key = (function, one[2])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._is_replaced(function, one)
        return found

    def _is_replaced(self, function: Function, one: Instruction) -> bool:
        if function.is_cpp or not self._is_receiver(function, one[3]):
            return False
        uses = [use for use in function.uses[one[2]] if use[0] != op.BIND]
        calls = (each for each in function.by_opcode[op.INVOKE] if self._is_receiver(function, each[3]))
        name = function.text(one[4])
        setting = [each for each in calls if _sets(function, function.text(each[4]), name, _DEEPEST)]
        stores = function.by_opcode[op.SET_ATTR]
        setting += [
            each for each in stores if function.text(each[3]) == name and self._is_receiver(function, each[2]) and each[4] != one[2]
        ]
        return any(function.runs_before(one, each) and any(function.runs_before(each, use) for use in uses) for each in setting)

    def _is_receiver(self, function: Function, register: int) -> bool:
        definition = function.definitions[register] if register >= 0 else None
        return definition is not None and definition[0] == op.PARAM and definition[3] == 0 and function.has_receiver


def _sets(function: Function, method: str, name: str, depth: int) -> bool:
    """Whether a method of the object sets an attribute, by itself or through another one."""
    owner = function.method.owner if function.method is not None else None
    if owner is None or depth == 0:
        return False
    stores = {store.function for store in owner.own_stores.get(name, ())}
    for each in owner.methods.get(method, ()):
        if each in stores or any(_sets(each, inner, name, depth - 1) for inner in _called(each) if inner in owner.methods):
            return True
    return False


def _called(method: Function) -> Iterator[str]:
    """The names of the methods that a method calls on its own object."""
    for one in method.by_opcode[op.INVOKE]:
        definition = method.definitions[one[3]] if one[3] >= 0 else None
        if definition is not None and definition[0] == op.PARAM and definition[3] == 0:
            yield method.text(one[4])
