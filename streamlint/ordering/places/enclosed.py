"""What a closure shares with the function that has made it and given it back, by the names of who has called that function."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, cell_of, in_lambdas


def maker_of(facts: Facts, function: Function, call: Instruction, closure: Function) -> Instruction | None:
    """The call that has made the closure which another call of the same function calls; None where it is made otherwise."""
    around = closure.parent
    if call[0] != op.CALL or around is None or around is function or around.code.kind in ("module", "class"):
        return None
    register = behind_copies(function, call[3])
    definition = function.definitions[register] if register >= 0 else None
    is_made = definition is not None and definition[0] in (op.CALL, op.INVOKE) and around in facts.callee_functions(function, definition)
    return definition if is_made else None


def shared_parameters(around: Function) -> Iterator[tuple[int, Place]]:
    """The parameters of a function that closures in it may read, each with its place there."""
    if around.is_cpp and around.has_receiver:
        yield 0, in_lambdas(around)
    given: dict[int, set[int]] = {}
    for inner in around.below:
        for store in inner.by_opcode[op.STORE]:
            if inner is around or inner.unit.ir.constants[store[2]][1] == around.code.number:
                given.setdefault(store[2], set()).add(_parameter(inner, store))
    for constant, indices in given.items():
        index = indices.pop()
        if not indices and index >= 0:
            yield index, cell_of(around, constant)


def _parameter(function: Function, store: Instruction) -> int:
    """The number of the parameter that a cell is given; negative of anything else."""
    one = function.definitions[behind_copies(function, store[3])] if store[3] >= 0 else None
    return one[3] if one is not None and one[0] == op.PARAM else op.NONE
