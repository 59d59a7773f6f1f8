"""Python: waits that no program can do without: elements that are asked whether they are true, one after the other
(``all(torch.isfinite(each) for each in norms)``), and calls that read by themselves what they go by (``scaler.step(optimizer)``)."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import opcodes as op
from streamlint.waits.found import WaitFinder
from streamlint.waits.wait import FETCH, STEP, Wait

_ASKING = frozenset({"all", "any"})


def needed_waits(finder: WaitFinder, function: Function, rounds: Rounds) -> Iterator[Wait]:
    """The needed waits of a function."""
    reading = finder.facts.models.marked("reads-itself")
    for step in rounds.of(function) if not function.is_cpp else ():
        if not reading.isdisjoint(step.row.names):
            yield Wait(function, step.instruction, STEP, step.name, op.NONE)
    for call in finder.graph.calls(function).libraries if not function.is_cpp else ():
        if call.name in reading:
            yield Wait(function, call.instruction, STEP, call.name, op.NONE)
        one = call.instruction
        is_asked = one[0] == op.CALL and call.name.removeprefix("builtins.") in _ASKING and len(one) == 6
        if is_asked and any(finder.reasons(*element) for element in _elements(finder, function, one[5])):
            yield Wait(function, one, FETCH, call.name, op.NONE)


def _elements(finder: WaitFinder, function: Function, register: int) -> Iterator[tuple[Function, int]]:
    """What a list holds, or a generator gives: registers, each with its function."""
    made = function.definitions[register] if register >= 0 else None
    if made is None:
        return
    if made[0] == op.BUILD:
        yield from ((function, use[-1]) for use in function.uses[register] if use[0] == op.APPEND)
        yield from ((function, part) for part in made[4:])
    for edge in finder.graph.calls(function).edges if made[0] == op.CALL else ():
        if edge.instruction == made and edge.callee.is_generator:
            yield from ((edge.callee, given[3]) for given in edge.callee.by_opcode[op.YIELD])
