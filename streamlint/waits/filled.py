"""Guards for what has no data: a round without any, an empty list, the parts of a loop that hold nothing."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.hot import Region
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph
from streamlint.waits.questions import alike, compares, counted_in, holds_gradients, is_new, parts_of, says_filled


class Edge(NamedTuple):
    """An edge of a branch that a place hangs on: taken, the place runs."""

    block: int
    after: int


class Asked(NamedTuple):
    """A condition and how it comes out where the place runs; ``skips``: the other way leads out of the round at once."""

    region: Region
    edge: Edge
    register: int
    holds: bool
    skips: bool
    target: Instruction


def ends(function: Function, graph: Graph, block: int) -> bool:
    """Whether all ways from a block lead to the end of the round, the call, or an inner loop's round, and nothing else leads there."""
    stops = {loop.header for loop in graph.loops} | {place for place, one in enumerate(function.code.blocks) if one[-1][0] == op.RETURN}
    joins = (number for number in graph.reach([block], stops) if len(graph.predecessors[number]) > 1)
    return all(number != block and graph.dominates(block, number) for number in joins)


def is_of_nothing(body: Body, asked: Asked) -> bool:
    """A guard for a round without data: ``if count == 0: continue``, ``a / count if count > 0 else 0.0``; or for a part without any."""
    filled = says_filled(body.function, asked.register, asked.holds)
    if filled is None:
        return False
    counted, is_filled = filled
    held = counted_in(body.function, counted)
    if asked.skips or _divides(body, asked, counted) or _is_size_of_part(body, asked, counted):
        return True
    return is_filled and held is not None and holds_gradients(body.function, held)


def _divides(body: Body, asked: Asked, counted: int) -> bool:
    """Whether something is divided behind an edge by what was tested."""
    function = body.function
    key = alike(function, counted)
    behind = (one for one in function.by_opcode[op.BINARY] if body.graph.dominates(asked.edge.after, body.home[one]))
    divisors = [one[5] for one in behind if function.text(one[3]) == "/"]
    return any(op.DEFINES[part[0]] and alike(function, part[2]) == key for part in parts_of(function, divisors))


def _is_size_of_part(body: Body, asked: Asked, counted: int) -> bool:
    """``len(rows[i])`` in a loop around the place that ``i`` counts, or goes through the parts: those that hold something are reached."""
    function, home = body.function, body.home
    loops = [loop for loop in body.graph.loops if home[asked.target] in loop.body and asked.edge.block in loop.body]
    held = counted_in(function, counted)
    one = _measured(function, counted) if held is None else function.definitions[held]
    while one is not None and one[0] in (op.ITEM, op.ATTR, op.UNPACK):
        key = function.definitions[one[4]] if one[0] == op.ITEM else None
        one = key if key is not None and key[0] in (op.UNPACK, op.NEXT) else function.definitions[one[3]]
    return one is not None and one[0] == op.NEXT and any(home[one] in loop.body for loop in loops)


def _measured(function: Function, counted: int) -> Instruction | None:
    """What gives the tensor that a register holds a size of: ``x`` of ``x.size(0)`` and ``x.shape[0]``."""
    one = function.definitions[counted]
    if one is not None and one[0] == op.ITEM:
        one = function.definitions[one[3]]
    is_size = one is not None and one[0] in (op.ATTR, op.INVOKE) and function.text(one[4]) in function.known("of-form")
    return function.definitions[one[3]] if one is not None and is_size else None


def is_entry(body: Body, asked: Asked) -> bool:
    """Whether a condition in a loop asks if a mapping has an entry that the place reads: ``if key in held: held[key].item()``."""
    function = body.function
    one = function.definitions[asked.register]
    if one is None or one[0] != op.COMPARE or (function.text(one[3]), asked.holds) not in (("in", True), ("not in", False)):
        return False
    inside = {block for loop in body.graph.loops if body.home[asked.target] in loop.body for block in loop.body - {loop.header}}
    key, held = function.definitions[one[4]], alike(function, one[5])
    if key is None or key[0] == op.CONST or body.home[key] not in inside or body.home[one] not in inside:
        return False
    read = [function.definitions[register] for register in op.reads(asked.target)]
    read = [function.definitions[part[3]] if part is not None and part[0] == op.ATTR else part for part in read]  # `held[key].data`
    return any(part is not None and part[0] == op.ITEM and part[4] == one[4] and alike(function, part[3]) == held for part in read)


def fills(function: Function, asked: Asked) -> bool:
    """``len(x)`` of a list that the function begins with nothing in it, or of which an element is what is read."""
    compared = compares(function, asked.register)
    held = counted_in(function, compared[1]) if compared is not None else None
    if held is None or compared is None or says_filled(function, asked.register, not asked.holds) is not None:
        return False
    if is_new(function, held):
        return True
    is_some = compared[0] == ">" and compared[2] == 0 and asked.holds and not asked.skips
    row = function.definitions[held]
    if row is not None and row[0] == op.ITEM and isinstance(function.constant(row[4]), int):
        held = row[3]  # a row of what is read
    return is_some and any(held in op.reads(part) for part in parts_of(function, op.reads(asked.target)))
