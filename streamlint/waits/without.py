"""Edges that are taken only where no GPU works: ``if device == "cuda":``, ``if torch.cuda.is_available():``, ``if x.is_cuda:``.

Where a wait finds anything to wait for, the device is a GPU, and the branch goes the other way.
"""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.selectors import DEVICE_WORDS, HOST_WORDS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.origins import TENSOR

_EQUALS = {"==": True, "!=": False}


def edges_without(facts: Facts, function: Function) -> frozenset[tuple[int, int]]:
    """The edges of a function that are taken only where there is no GPU."""
    found = set(facts.arms.edges_without(function))
    for number, block in enumerate(function.code.blocks):
        end = block[-1] if block else None
        if end is not None and end[0] == op.BRANCH and end[3] != end[4]:
            register, turned = unnegated(function, end[2])
            one = function.definitions[register] if register >= 0 else None
            on_gpu = _is_on_gpu(function, one) if one is not None else None
            if on_gpu is not None:
                found.add((number, end[4] if on_gpu != turned else end[3]))
    return frozenset(found)


def _is_on_gpu(function: Function, one: Instruction) -> bool | None:
    """How a condition comes out where there is a GPU, if it asks for the kind of a device; None for any other."""
    if one[0] == op.ATTR:
        row = function.unit.models.member(TENSOR, function.text(one[4]))
        return True if row is not None and row.get("shows") == "device" else None
    if one[0] != op.COMPARE or function.text(one[3]) not in _EQUALS:
        return None
    words = [word.partition(":")[0] for part in one[4:6] if isinstance(word := function.constant(part), str)]
    if len(words) != 1 or words[0] not in DEVICE_WORDS | HOST_WORDS:
        return None
    return (words[0] in DEVICE_WORDS) == _EQUALS[function.text(one[3])]
