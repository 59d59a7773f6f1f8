"""Which branches have led to a block of a function, and what their conditions have said."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.waits.questions import Key, alike


def deciding(function: Function, block: int) -> set[tuple[Key, bool]]:
    """The branches that have led to a block, each with what its condition has said; not those of the loops that it stands in, and of
    loops behind which it stands none."""
    graph = function.control
    heads = {loop.header for loop in graph.loops if block in loop.body}
    left = {number for loop in graph.loops if block not in loop.body for number in loop.body}
    found: set[tuple[Key, bool]] = set()
    while block != NOBODY:
        for branch, edge in graph.controlled_by[block] if block not in left else ():
            end = function.code.blocks[branch][-1]
            is_before = branch not in heads and not graph.dominates(block, branch)  # else it decides about a later round
            if is_before and end[0] == op.BRANCH:  # else a loop that never ends
                asked, is_turned = unnegated(function, end[2])
                holds = (edge == end[3]) != is_turned
                found.add((alike(function, asked), holds))
                found |= deciding(function, _only_way(function, asked)) if holds else set()
        block = graph.dominators[block] if graph.dominators[block] != block else NOBODY
    return found


def _only_way(function: Function, register: int) -> int:
    """The block by which a choice is come to that is true: its other values are constants that are not; NOBODY where there are more."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.PHI or (home := function.blocks[one]) in function.loop_heads:
        return NOBODY
    definitions = [(function.definitions[part], before) for part, before in zip(one[3:], function.phi_order[home], strict=False)]
    ways = [before for part, before in definitions if part is None or part[0] != op.CONST or function.unit.ir.constants[part[3]]]
    return ways[0] if len(ways) == 1 else NOBODY
