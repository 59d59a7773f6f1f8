"""Loops that go backward and train nothing: they look at derivatives, or test a module under an attack."""

from __future__ import annotations

from streamlint.facts.code.counters import gone_over
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.repetition.effects import Effect
from streamlint.facts.repetition.hot import HotRegions
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.waits.operands import argument_registers


def derives(hot: HotRegions, function: Function, loop: Loop) -> bool:
    """Whether the rounds of a loop compute derivatives for the host, and train nothing."""
    home = hot.body(function).home
    read = any(
        home[one] in loop.body and function.text(one[4]) in function.known("to-host") and _is_gradient(function, one[3])
        for one in function.by_opcode[op.INVOKE]
    )
    return read and not any(step.does == "optimizer" and home[step.instruction] in loop.body for step in hot.steps(function, {}))


def _is_gradient(function: Function, register: int) -> bool:
    """``p.grad.data.detach()``: the gradient itself, all of it."""
    while (one := function.definitions[register]) is not None:
        if one[0] == op.ATTR and function.text(one[4]) == "grad":
            return True
        if not (one[0] == op.ATTR and function.text(one[4]) == "data") and not (function.invokes(one, "same-numbers")):
            return False
        register = one[3]
    return False


def evaluates(hot: HotRegions, function: Function, loop: Loop) -> bool:
    """Whether a loop goes over data with a module that was put into evaluation before, and nothing steps: it tests an attack."""
    graph, home = hot.body(function).graph, hot.body(function).home
    modes = [one for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in ("eval", "train") and len(one) == 6]
    before = [one for one in modes if home[one] not in loop.body and graph.dominates(home[one], loop.header)]
    if not before or function.text(before[-1][4]) != "eval" or any(home[one] in loop.body for one in modes):
        return False
    return _goes_over_data(function, loop) and function not in hot.effects.leading(Effect.OPTIMIZER)


def _goes_over_data(function: Function, loop: Loop) -> bool:
    source = gone_over(function, loop.header)
    made = behind(function, [source], lambda one: [each for _, each in argument_registers(function, one)] if one[0] == op.CALL else ())
    return source >= 0 and not any(one[0] == op.CALL and function.dotted(one[3]) == "range" for one in made)
