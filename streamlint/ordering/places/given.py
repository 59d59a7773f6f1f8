"""Of a call of what a function was given: the functions that one of its callers gives, where several do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import FunctionObject, Instance, Object
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

Given = frozenset[tuple[int, frozenset["Function | ClassInfo"]]]
"""By the number of a parameter: the functions that it may be, and the classes of the objects that are called."""
NOTHING: Given = frozenset()


class Callables:
    """Tells by callers which of the functions that are passed are called."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._called: dict[Function, dict[Instruction, int]] = {}

    def called(self, function: Function) -> dict[Instruction, int]:
        """The calls of a function's parameters that enter several functions, with the number of the parameter."""
        found = self._called.get(function)
        if found is None:
            found = self._called[function] = {}
            for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
                number = _parameter(function, one[3])
                if number is not None and len({edge.callee for edge in self.transfer.edges(function, one)}) > 1:
                    found[one] = number
        return found

    def given(self, function: Function, call: Instruction, callee: Function, outer: Given) -> Given:
        """What a call gives for the parameters that a function calls; ``outer`` is what the calling function was given itself."""
        if call[0] not in (op.CALL, op.INVOKE):
            return NOTHING
        found: dict[int, frozenset[Function | ClassInfo]] = {}
        for number in sorted(set(self.called(callee).values())):
            register = operand_of(function, call, callee, number)
            if register is None or register < 0:
                continue
            own = _parameter(function, register)
            held = dict(outer).get(own) if own is not None else None
            meant = held or frozenset(self._meant(self.transfer.values(function, register)))
            if meant:
                found[number] = meant
        return frozenset(found.items())

    def _meant(self, values: Iterable[Object]) -> Iterator[Function | ClassInfo]:
        held = list(values)
        if all(isinstance(value, (Instance, FunctionObject)) for value in held):
            for value in held:
                if isinstance(value, Instance):
                    yield from self.transfer.facts.hierarchy.order(value.definition)
                elif isinstance(value, FunctionObject):
                    yield value.function

    def narrowed(self, function: Function, one: Instruction, edges: list[Edge], given: Given) -> list[Edge]:
        """The functions that a call enters, by what the function was given."""
        number = self.called(function).get(one) if given else None
        meant = dict(given).get(number) if number is not None else None
        kept = [edge for edge in edges if edge.callee in meant or edge.callee.owner in meant] if meant else edges
        return kept or edges


def _parameter(function: Function, register: int) -> int | None:
    """The number of the parameter that a register holds."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] in (op.COPY, op.CAST, op.DEREF):
        one = function.definitions[one[4 if one[0] == op.CAST else 3]]
    return int(one[3]) if one is not None and one[0] == op.PARAM else None
