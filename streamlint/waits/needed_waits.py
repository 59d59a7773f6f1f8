"""Python: waits that no program can do without: elements that are asked whether they are true, one after the other
(``all(torch.isfinite(each) for each in norms)``), and calls that read by themselves what they go by (``scaler.step(optimizer)``)."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.found import WaitFinder
from streamlint.waits.operands import selected, selectors
from streamlint.waits.wait import FETCH, STEP, Wait

_ASKING = frozenset({"all", "any"})


def needed_waits(finder: WaitFinder, function: Function, rounds: Rounds) -> Iterator[Wait]:
    """The needed waits of a function."""
    if function.is_cpp:
        return
    reading = finder.facts.models.marked("reads-itself")
    steps = {step.instruction: step.name for step in rounds.of(function) if not reading.isdisjoint(step.row.names)}
    steps.update((call.instruction, call.name) for call in finder.graph.calls(function).libraries if call.name in reading)
    for one, name in steps.items():
        options = _options(finder, function, one)
        if options != {False}:
            yield Wait(function, one, STEP, name, op.NONE, is_optional=not options <= {True})
    for call in finder.graph.calls(function).libraries:
        one = call.instruction
        is_asked = one[0] == op.CALL and call.name.removeprefix("builtins.") in _ASKING and len(one) == 6
        if is_asked and any(finder.reasons(*element) for element in _elements(finder, function, one[5])):
            yield Wait(function, one, FETCH, call.name, op.NONE)


def _options(finder: WaitFinder, function: Function, one: Instruction) -> set[bool | None]:
    """What the argument holds that turns the object off whose method is called, wherever it was made (``GradScaler(enabled=mixed)``): None
    for what is not known; empty where it is left out."""
    found = set[bool | None]()
    for made, row in finder.makers(function, one):
        for selector in selectors(row, "enabled"):
            register = selected(made.function, made.instruction, selector, False)
            if register is not None:
                values = finder.facts.values(made.function, register).values
                found.update(bool(value.value) if isinstance(value, Constant) else None for value in values or (None,))
    return found


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
