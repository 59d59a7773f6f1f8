"""Whether a condition compares the shapes of two tensors: their form, which a round does not change."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.passed import passed


def compares_shapes(hot: HotRegions, region: Region, register: int) -> bool:
    """Whether a condition asks if two tensors of the round have one shape, dimension by dimension or at once."""
    function = region.function
    one = function.definitions[register]
    if one is not None and one[0] == op.CALL and function.dotted(one[3]) in ("all", "any") and len(one) == 6:
        one = function.definitions[one[5]]
    is_compared = one is not None and one[0] == op.COMPARE and function.text(one[3]) in ("==", "!=")
    sides = list(one[4:6]) if one is not None and is_compared else _zipped(function, one)
    shaped = [_shape_of(function, side) for side in sides]
    return bool(shaped) and all(held is not None and _is_of_round(hot, region, held) for held in shaped)


def _is_of_round(hot: HotRegions, region: Region, register: int) -> bool:
    """Whether a round is given or computes what a register holds: it is nothing that an object or a round before has kept."""
    function = region.function
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] in (op.ATTR, op.NAME, op.LOAD):
        return False
    if one[0] == op.PARAM:
        if region.caller is None or region.call is None:
            return region.loop is None
        given = passed(region, function, register)
        return given is not None and _is_of_round(hot, given.region, given.register)
    if one[0] == op.PHI:
        body = hot.body(function)
        is_kept = any(loop.header == body.home[one] for loop in body.graph.loops)
        return not is_kept and all(_is_of_round(hot, region, part) for part in one[3:])
    return one[0] not in (op.ITEM, op.UNPACK) or _is_of_round(hot, region, one[3])


def _shape_of(function: Function, register: int) -> int | None:
    """The register of the tensor whose whole shape a register holds."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.ATTR, op.INVOKE) or len(one) > 6:
        return None
    return one[3] if function.text(one[4]) == ("shape" if one[0] == op.ATTR else "size") else None


def _only_element(function: Function, made: Instruction | None) -> Instruction | None:
    """What one place of a function appends to a list, if no other one does."""
    puts = [one for one in function.uses[made[2]] if one[0] == op.APPEND] if made is not None and made[0] == op.BUILD else []
    return function.definitions[puts[0][-1]] if len(puts) == 1 else None


def _zipped(function: Function, made: Instruction | None) -> list[int]:
    """What a comprehension compares element by element: ``[i == j for i, j in zip(x.shape, y.shape)]``."""
    compared = _only_element(function, made)
    if compared is None or compared[0] != op.COMPARE:
        return []
    parts = [function.definitions[side] for side in compared[4:6]]
    taken = {part[3] if part is not None and part[0] == op.UNPACK else op.NONE for part in parts}
    one = function.definitions[taken.pop()] if len(taken) == 1 and op.NONE not in taken else None
    while one is not None and one[0] in (op.NEXT, op.ITER):
        one = function.definitions[one[3]]
    return list(one[5:]) if one is not None and one[0] == op.CALL and function.dotted(one[3]) == "zip" else []
