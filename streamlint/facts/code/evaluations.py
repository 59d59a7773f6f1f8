"""Loops that run with a module in evaluation: it is put there in each round, or before the loop and back into training behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph, Loop

_MODES = frozenset({"eval", "train"})


def evaluated_loops(function: Function, graph: Graph) -> Iterator[tuple[int, Loop]]:
    """The loops of a function that evaluate a module, by their numbers."""
    if _MODES.isdisjoint(function.called_names):
        return
    setting = [one for one in function.by_opcode[op.INVOKE] if len(one) == 6 and function.text(one[4]) in _MODES]
    asking = {function.blocks[one] for one in setting if function.text(one[4]) == "eval"}
    for index, loop in enumerate(graph.loops):
        if asking & graph.every_round(loop) or _is_set_around(function, loop, setting):
            yield index, loop


def _is_set_around(function: Function, loop: Loop, setting: Sequence[Instruction]) -> bool:
    """Whether what comes before a loop puts a module into evaluation, and the last thing done to that behind it is training again."""
    start = function.code.blocks[loop.header][0]
    before = next((one for one in function.ahead(start) if one in setting), None)
    if before is None or function.text(before[4]) != "eval" or function.blocks[before] in loop.body:
        return False
    behind = [one for one in setting if function.text(one[4]) == "train" and _is_same(function, one[3], before[3])]
    return any(function.blocks[one] not in loop.body and function.runs_before(start, one) for one in behind)


def _is_same(function: Function, register: int, other: int) -> bool:
    """Whether two registers hold the same module, by its name."""
    name = function.dotted(register)
    return register == other or (bool(name) and name == function.dotted(other))
