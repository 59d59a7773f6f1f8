"""Names of files that nothing sets but the file's own body: what a path has found out about one holds in all functions."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Memory, ModuleObject
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike, conditions

Decided = frozenset[tuple[Frame, Key, bool]]
_PLAIN = frozenset(
    {op.NAME, op.ATTR, op.CONST, op.COMPARE, op.UNARY, op.BINARY, op.PHI, op.BRANCH, op.JUMP, op.RETURN, op.BIND, op.COPY, op.CAST}
)
"""What a function does that asks for names alone."""


class FixedNames:
    """Conditions that rest on such names alone, each as one question of the whole program: the frame is that of the file's body."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts

    @memoized
    def tested(self, function: Function, register: int) -> tuple[Frame, Key] | None:
        """What a condition asks of such names, if other functions ask about them as well; None of any other condition."""
        return None if function.is_cpp or register < 0 else self._find(function, function.definitions[register])

    def said(self, function: Function, block: int) -> Decided:
        """What holds of such names wherever a block runs."""
        found = ((self.tested(function, condition), holds) for condition, holds in conditions(function, block))
        return frozenset((*asked, holds) for asked, holds in found if asked is not None)

    def kept(self, decided: Iterable[tuple[Frame, Key, bool]]) -> Decided:
        """What a path knows of such names, of all that it has decided."""
        return frozenset(known for known in decided if known[0].function is known[0].function.unit.body)

    def _find(self, function: Function, one: Instruction | None) -> tuple[Frame, Key] | None:
        if one is None:
            return None
        if one[0] == op.COMPARE:
            left, key = self.tested(function, one[4]), alike(function, one[2])
            right = function.definitions[one[5]] if one[5] >= 0 else None
            is_constant = right is not None and right[0] == op.CONST
            return (left[0], (*key[:2], left[1], *key[3:])) if left is not None and is_constant else None
        if one[0] in (op.CALL, op.INVOKE):
            return self._called(function, one)
        named = self._named(function, one)
        return (_frame(named[0]), (op.NAME, named[1])) if named is not None and self._is_shared(*named) else None

    def _called(self, function: Function, one: Instruction) -> tuple[Frame, Key] | None:
        """A function without arguments that asks for nothing but such names."""
        edges = self.transfer.edges(function, one) if len(one) == (6 if one[0] == op.INVOKE else 5) else ()
        callee = edges[0].callee if len(edges) == 1 and edges[0].is_followed else None
        if (
            callee is None
            or callee.code.parameters
            or callee.is_generator
            or not all(each[0] in _PLAIN for each in callee.code.instructions())
        ):
            return None
        reads = [each for opcode in (op.NAME, op.ATTR) for each in callee.by_opcode[opcode]]
        modules = {each[3] for each in callee.by_opcode[op.ATTR]}
        is_steady = all(each[2] in modules or self._named(callee, each) is not None for each in reads)
        return (_frame(callee.unit), (op.CALL, callee.name)) if is_steady and len(self.transfer.callers(callee)) > 1 else None

    def _named(self, function: Function, one: Instruction) -> tuple[Unit, str] | None:
        """The file and the name that an instruction reads, if the name is fixed."""
        unit, name = function.unit, function.text(one[3] if one[0] == op.NAME else one[4]) if one[0] in (op.NAME, op.ATTR) else ""
        if one[0] == op.ATTR:
            held = list(self.facts.values(function, one[3]).values)
            if len(held) != 1 or not isinstance(held[0], ModuleObject):
                return None
            unit = held[0].unit
        return (unit, name) if name and self._is_fixed(unit, name) else None

    @memoized
    def _is_fixed(self, unit: Unit, name: str) -> bool:
        """Whether nothing but the body of its file sets a name, to what does not change its truth."""
        stores = unit.globals.get(name, ())
        is_set = bool(stores) and all(function is unit.body for function, _ in stores)
        others = (other.attribute_stores.get(name) for other in self.facts.program.mentioning(name))
        held = [value for store in stores for value in self.facts.values(*store).values] if is_set else []
        return is_set and not any(others) and not any(isinstance(value, (Container, Memory)) for value in held)

    def _is_shared(self, unit: Unit, name: str) -> bool:
        """Whether more than one function reads a name."""
        readers = {function for function, _ in unit.name_uses.get(name, ()) if function is not unit.body}
        return len(readers) > 1 or len(self.facts.program.mentioning(name)) > 1


def _frame(unit: Unit) -> Frame:
    return Frame(unit.body, None, None, 0)
