"""Conditions that tell whether another round of their loop comes: ``if index + 1 < count`` in ``for index in range(count)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from streamlint.facts.code.counters import count_of, moved
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
    if asked is None or asked[0] != op.MORE:
        return None
    for taken in (one for one in function.by_opcode[op.NEXT] if one[3] == asked[3] and function.blocks[one] in loop.body):
        for one in (taken, *function.uses[taken[2]]):
            count = count_of(function, one) if one[0] in (op.NEXT, op.UNPACK) else None
            if count is not None and count.step == 1 and count.end >= 0:
                end = alike(function, count.end)
                return one[2], ("len", end) if count.is_length else end
    return None


def _goes_on(function: Function, one: Instruction, counter: int, count: Key) -> bool | None:
    """The truth of a comparison by which another round comes; None of one that does not tell."""
    operator = function.text(one[3])
    for left, right, asked in ((one[4], one[5], operator), (one[5], one[4], _MIRRORED.get(operator, operator))):
        base, ahead = moved(function, left)
        end, behind = moved(function, right)
        if base != counter or count not in _named(function, end):
            continue
        if asked in _LESS:
            holds, far = _LESS[asked]
            return holds if ahead - behind >= far else None
        return _EQUAL.get(asked) if ahead - behind == 1 else None
    return None


def _named(function: Function, register: int) -> Iterator[Key]:
    """The keys of a number: by itself, and of the length of something."""
    yield alike(function, register)
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.CALL and len(one) == 6 and function.dotted(one[3]) == "len":
        yield "len", alike(function, one[5])
