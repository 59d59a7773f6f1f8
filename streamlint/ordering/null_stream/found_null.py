"""Streams that all ways to an instruction have asked for, and found to be the null stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.streams.choices import PARAMETER, Choices
from streamlint.transfer.modelled import is_null


def ways(function: Function, one: Instruction) -> dict[int, set[int]]:
    """The branches that decide whether an instruction runs, directly or through others, by the blocks that they lead on to."""
    found: dict[int, set[int]] = {}
    waiting = [function.homes[one][0]]
    while waiting:
        for branch, edge in function.control.controlled_by[waiting.pop()]:
            if branch not in found:
                waiting.append(branch)
            found.setdefault(branch, set()).add(edge)
    return found


def found_null(choices: Choices, function: Function, one: Instruction) -> frozenset[object]:
    """The keys of the streams that are null wherever an instruction runs, as the branches before it say."""
    found: set[object] = set()
    for branch, edges in ways(function, one).items():
        end = function.code.blocks[branch][-1]
        if end[0] != op.BRANCH or not function.control.dominates(branch, function.homes[one][0]):
            continue
        stream, null_if = _compared(function, end[2])
        if edges == {end[3] if null_if else end[4]}:
            choices_of_stream = choices.of_register(function, stream, Site(function, one), (), False)
            found |= {choice.key for choice in choices_of_stream if choice.place is not None}
    return frozenset(found)


def parameters_in(keys: frozenset[object]) -> Iterator[object]:
    """The numbers of the parameters among the keys of streams."""
    for key in keys:
        if isinstance(key, tuple) and key[0] == PARAMETER and not key[1].path:
            yield key[1].root[1]


def _compared(function: Function, condition: int) -> tuple[int, bool]:
    """The register of which a condition asks whether it is null, and whether it is where the condition holds."""
    register, turned = unnegated(function, condition)
    one = function.definitions[register] if register >= 0 else None
    operator = function.text(one[3]) if one is not None and one[0] == op.COMPARE else ""
    if one is not None and operator in ("==", "!="):
        for asked, other in (one[4:6], one[5:3:-1]):
            if is_null(function, other, []):
                return asked, (operator == "==") != turned
    return register, turned
