"""Conditions that tell whether another round of their loop comes: ``if index + 1 < count`` in ``for index in range(count)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.paths.conditions import Frame
from streamlint.support.memo import memoized
from streamlint.waits.questions import Key, alike

_LESS = {"<": (True, 1), ">=": (False, 1), "<=": (True, 2), ">": (False, 2)}
"""By comparison of a number that lies ahead of the counter with the count: whether another round comes where it holds, or where it does
not, and how far ahead the number has to be."""
_EQUAL = {"!=": True, "==": False}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Further(NamedTuple):
    """``holds``: the truth of a condition by which another round comes; ``asked``: what the head of the loop asks, and its truth then."""

    holds: bool
    header: int
    asked: tuple[Key, bool]


class FurtherRounds:
    """Finds such conditions."""

    def promised(self, frame: Frame, decided: Iterable[tuple[Frame, Key, bool]], loop: Loop) -> Iterator[tuple[Key, bool]]:
        """What the head of a loop asks, with its truth, where a path has found in the round before that another one comes."""
        known = self.of(frame.function)
        for where, key, holds in decided if known else ():
            further = known.get(key) if where == frame else None
            if further is not None and further.header == loop.header and further.holds == holds:
                yield further.asked

    @memoized
    def of(self, function: Function) -> Mapping[Key, Further]:
        """The conditions of a function by their keys."""
        return dict(self._find(function)) if function.control.loops else {}

    def _find(self, function: Function) -> Iterator[tuple[Key, Further]]:
        for loop in function.control.loops:
            head = function.code.blocks[loop.header][-1]
            counted = _counted(function, loop, head) if head[0] == op.BRANCH and (head[3] in loop.body) != (head[4] in loop.body) else None
            if counted is None:
                continue
            condition, turned = unnegated(function, head[2])
            asked = alike(function, condition), (head[3] in loop.body) != turned
            for one in function.by_opcode[op.COMPARE]:
                if function.blocks[one] in loop.body and function.blocks[one] != loop.header:
                    holds = _goes_on(function, one, *counted)
                    if holds is not None:
                        yield alike(function, one[2]), Further(holds, loop.header, asked)


def _counted(function: Function, loop: Loop, head: Instruction) -> tuple[int, Key] | None:
    """The register that counts the rounds of a loop one by one, and the key of the number at which it ends."""
    condition, _ = unnegated(function, head[2])
    asked = function.definitions[condition] if condition >= 0 else None
    iterator = function.definitions[asked[3]] if asked is not None and asked[0] == op.MORE else None
    source = function.definitions[iterator[3]] if iterator is not None and iterator[0] == op.ITER else None
    if source is None or source[0] != op.CALL or iterator is None:
        return None
    taken = next((one for one in function.by_opcode[op.NEXT] if one[3] == iterator[2] and function.blocks[one] in loop.body), None)
    return _number(function, source, taken[2]) if taken is not None else None


def _number(function: Function, source: Instruction, taken: int) -> tuple[int, Key] | None:
    """The same of what a loop takes from ``range`` or ``enumerate``."""
    name = function.dotted(source[3])
    if name == "range" and len(source) in (6, 7):
        return taken, alike(function, source[-1])
    numbers = [use[2] for use in function.uses[taken] if use[0] == op.UNPACK and use[4] == 0]
    return (numbers[0], ("len", alike(function, source[5]))) if name == "enumerate" and len(source) == 6 and numbers else None


def _goes_on(function: Function, one: Instruction, counter: int, count: Key) -> bool | None:
    """The truth of a comparison by which another round comes; None of one that does not tell."""
    operator = function.text(one[3])
    for left, right, asked in ((one[4], one[5], operator), (one[5], one[4], _MIRRORED.get(operator, operator))):
        base, ahead = _moved(function, left)
        end, behind = _moved(function, right)
        if base != counter or count not in _named(function, end):
            continue
        if asked in _LESS:
            holds, far = _LESS[asked]
            return holds if ahead - behind >= far else None
        return _EQUAL.get(asked) if ahead - behind == 1 else None
    return None


def _moved(function: Function, register: int) -> tuple[int, int]:
    """The register to which a whole number is added, and that number."""
    one = function.definitions[register] if register >= 0 else None
    number = function.constant(one[5]) if one is not None and one[0] == op.BINARY else None
    sign = {"+": 1, "-": -1}.get(function.text(one[3])) if one is not None and type(number) is int else None
    return (one[4], sign * number) if one is not None and sign is not None and type(number) is int else (register, 0)


def _named(function: Function, register: int) -> Iterator[Key]:
    """The keys of a number: by itself, and of the length of something."""
    yield alike(function, register)
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.CALL and len(one) == 6 and function.dotted(one[3]) == "len":
        yield "len", alike(function, one[5])
