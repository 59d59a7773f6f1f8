"""What the call of a round hands over for a parameter."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Scalar, are_plain
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.wait import CAST, Wait

_CALLS = (op.CALL, op.INVOKE)


class Passed(NamedTuple):
    """A register of the function that calls, in whose region the call stands."""

    function: Function
    register: int
    region: Region


def passed(region: Region, function: Function, register: int) -> Passed | None:
    """What the call by which a round enters a function gives for its parameter in a register; None where it gives nothing."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.PARAM or region.function is not function or region.caller is None or region.call is None:
        return None
    given = operand_of(region.caller.function, region.call, function, one[3]) if region.call[0] in _CALLS else None
    return Passed(region.caller.function, given, region.caller) if given is not None and given >= 0 else None


def is_plain(hot: HotRegions, region: Region, function: Function, register: int) -> bool:
    """Whether each call of the rounds gives a number, text or nothing for a parameter, whatever calls elsewhere give."""
    one = function.definitions[register] if register >= 0 else None
    caller = region.caller
    if one is None or one[0] != op.PARAM or region.function is not function or caller is None or region.call is None:
        return False
    home = hot.body(caller.function).home
    edges = [edge for edge in hot.graph.calls(caller.function).edges if edge.callee is function]
    calls = [edge.instruction for edge in edges if edge.instruction[0] in _CALLS and home[edge.instruction] in caller.blocks]
    return bool(calls) and all(_gives_plain(hot, caller, call, function, one[3]) for call in calls)


def _gives_plain(hot: HotRegions, caller: Region, call: Instruction, function: Function, index: int) -> bool:
    given = operand_of(caller.function, call, function, index)
    if given is None:  # it is left to its default
        parameters = function.code.parameters
        spreads = any(kind in (1, 2) for kind, _ in argument_registers(caller.function, call))
        return index < len(parameters) and bool(parameters[index].default) and not spreads
    values = list(hot.facts.values(caller.function, given).values) if given >= 0 else []
    return are_plain(values) or is_plain(hot, caller, caller.function, given)


def stands_for_number(facts: Facts, wait: Wait) -> bool:
    """Whether the program puts a number that it has computed in the place of an input: ``fill = draw() if fill is None else fill``."""
    one = wait.function.definitions[wait.value] if wait.value >= 0 else None
    arms = [list(facts.values(wait.function, each).values) for each in one[3:]] if one is not None and one[0] == op.PHI else []
    return wait.what == CAST and any(are_plain(held) and any(isinstance(value, Scalar) for value in held) for held in arms)
