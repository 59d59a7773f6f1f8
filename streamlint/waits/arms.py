"""What a test chooses where nothing but numbers and messages hang on it: counts, factors. The device could choose (``torch.where``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Object, Scalar
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.sinks import called_name, is_said

_PLAIN = frozenset(
    {op.CONST, op.NAME, op.LOAD, op.ATTR, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.FORMAT, op.ITEM, op.BUILD, op.COPY, op.CAST}
)
_CHOOSING = _PLAIN | {op.JUMP, op.BRANCH, op.PHI, op.BIND, op.UNBIND, op.UNDEF}
_KEEPING = {op.SET_ATTR: 4, op.STORE: 3, op.SET_NAME: 3}
"""By opcode: which operand is kept."""
_COUNTED = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.PHI, op.COPY})


def chosen(facts: Facts, body: Body, branch: Instruction) -> tuple[int, ...] | None:
    """The registers whose numbers hang on a branch; None where more than that does: calls but for messages, tensors, the loop's end."""
    function, graph = body.function, body.graph
    block = body.home[branch]
    inside = between(graph, block)
    if inside is None:
        return None
    found: list[int] = []
    for one in (one for number in inside for one in function.code.blocks[number]):
        if one[0] in _KEEPING:
            found.append(one[_KEEPING[one[0]]])
        elif one[0] in (op.CALL, op.INVOKE):
            if function.uses[one[2]] or not is_said(function, called_name(function, one)):
                return None
        elif one[0] not in _CHOOSING:
            return None
    found += _decided(function, graph.post_dominators[block], {*inside, block})
    return tuple(dict.fromkeys(found)) if all(_is_number(facts, function, each) for each in found) else None


def _decided(function: Function, join: int, inside: Collection[int]) -> Iterator[int]:
    """The registers whose value depends on which of some blocks a join is reached from."""
    for one in function.code.blocks[join]:
        before = zip(function.phi_order[join], one[3:], strict=False) if one[0] == op.PHI else ()
        if len({register for number, register in before if number in inside}) > 1:
            yield one[2]


def straight_way(body: Body, block: int, edge: int) -> list[int] | None:
    """The blocks of the way from an edge of a branch to where its ways meet, if nothing branches on it; None of another one."""
    inside = between(body.graph, block, edge) if body.graph.predecessors[edge] == [block] else None
    return inside if inside and all(body.function.code.blocks[number][-1][0] == op.JUMP for number in inside) else None


def between(graph: Graph, block: int, *edges: int) -> list[int] | None:
    """The blocks that run between a branch, or edges of it, and where its ways meet: also those to which other branches lead (``a or
    b``). None where the ways meet in another round."""
    join = graph.post_dominators[block]
    if join == NOBODY or graph.innermost[join] != graph.innermost[block]:
        return None
    return list(graph.reach(edges or graph.successors[block], (block, join)))


def _is_number(facts: Facts, function: Function, register: int) -> bool:
    """Whether a register holds a number of the host: written down, counted from such ones, or seen to be one."""
    waiting, seen = [(function, register)], set[tuple[Function, int]]()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        before = _counted_from(facts, *place)
        if before is None:
            return False
        waiting += before
    return True


def _counted_from(facts: Facts, function: Function, register: int) -> list[tuple[Function, int]] | None:
    """The registers that hold numbers if a register does, also where calls in view make them; None if it may hold another thing."""
    one = function.definitions[register] if register >= 0 else None
    if one is None:
        return None
    if one[0] in _COUNTED:
        return [(function, each) for each in op.reads(one)]
    if one[0] == op.CONST:
        return [] if isinstance(function.unit.ir.constants[one[3]], (int, float)) else None
    held = facts.values(function, register).values
    if held and all(isinstance(value, Scalar) or _is_numeral(value) for value in held):
        return []
    roots = constants_of(facts).given.roots(Held(function, register))
    made = [(root.function, root.register) for root in roots or ()]
    return made if made and (function, register) not in made else None


def _is_numeral(value: Object) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, (int, float))
