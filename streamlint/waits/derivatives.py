"""Loops that go backward to look at derivatives: they hand the gradients to the host, and no optimizer takes a step in them."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.hot import HotRegions
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop

_TO_HOST = frozenset({"cpu", "numpy", "tolist"})
_KEEPS = frozenset(
    "detach contiguous clone flatten view reshape permute transpose t float double half to cpu numpy squeeze unsqueeze".split()
)
"""Methods whose result holds the numbers of the tensor."""


def derives(hot: HotRegions, function: Function, loop: Loop) -> bool:
    """Whether the rounds of a loop compute derivatives for the host, and train nothing."""
    home = hot.body(function).home
    read = any(
        home[one] in loop.body and function.text(one[4]) in _TO_HOST and _is_gradient(function, one[3])
        for one in function.by_opcode[op.INVOKE]
    )
    return read and not any(step.does == "optimizer" and home[step.instruction] in loop.body for step in hot.steps(function, {}))


def _is_gradient(function: Function, register: int) -> bool:
    """``p.grad.data.detach()``: the gradient itself, all of it."""
    while (one := function.definitions[register]) is not None:
        if one[0] == op.ATTR and function.text(one[4]) == "grad":
            return True
        if not (one[0] == op.ATTR and function.text(one[4]) == "data") and not (one[0] == op.INVOKE and function.text(one[4]) in _KEEPS):
            return False
        register = one[3]
    return False
