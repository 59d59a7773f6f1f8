"""What a loop's later rounds know of its counter: ``i > 0`` holds, ``i == 0`` does not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from streamlint.facts.code.counters import is_counter
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.queues import is_newest, takes_first
from streamlint.waits.questions import Key, alike

_LATER = {">": True, ">=": True, "!=": True, "<": False, "<=": False, "==": False}
_FULL = {">=": True, "==": True, "<": False, "!=": False}
"""What comparisons say of a queue that holds as much as a ring has slots, once a slot comes again."""
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def next_round(function: Function, left: int, entered: int) -> Loop | None:
    """The loop whose next round begins where a path goes from one block to another."""
    loop = function.loop_heads.get(entered)
    return loop if loop is not None and left in loop.body else None


Fills = Callable[[Function, int, Collection[int]], bool]
"""Whether a queue holds as much as a register says once a slot of a ring comes again that some blocks go round in."""


class Stretch(NamedTuple):
    """The blocks of a loop, or of a function that each round of a loop calls: that has no ``header`` of its own."""

    blocks: Collection[int]
    header: int


class Rounds:
    """The conditions in loops that ask which round it is."""

    def __init__(self, fills: Fills = lambda *_: False) -> None:
        self.fills = fills
        self._later: dict[tuple[Function, int, bool], tuple[tuple[Key, bool], ...]] = {}

    def later(self, function: Function, loop: Loop, is_slot: bool = False) -> tuple[tuple[Key, bool], ...]:
        """These conditions, and what they say once some rounds have gone by; ``is_slot``: once a slot of a ring comes again."""
        return self._known(function, Stretch(loop.body, loop.header), is_slot)

    def entered(self, function: Function) -> tuple[tuple[Key, bool], ...]:
        """The same of a method that each round calls, by the attributes in which it or another method of its class counts."""
        return self._known(function, Stretch(range(len(function.code.blocks)), op.NONE), True)

    def _known(self, function: Function, stretch: Stretch, is_slot: bool) -> tuple[tuple[Key, bool], ...]:
        key = function, stretch.header, is_slot
        known = self._later.get(key)
        if known is None:
            known = self._later[key] = tuple(_later(function, stretch, is_slot, self.fills))
        return known


def _later(function: Function, loop: Stretch, is_slot: bool, fills: Fills) -> Iterator[tuple[Key, bool]]:
    for block in sorted(loop.blocks):
        end = function.code.blocks[block][-1]
        if end[0] != op.BRANCH or block == loop.header:
            continue
        condition, _ = unnegated(function, end[2])
        one = function.definitions[condition]
        said: bool | None = None
        if _counts(function, loop, condition):
            said = True
        elif one is not None and one[0] == op.COMPARE:
            said = _compared(function, one, loop, is_slot, fills)
        if said is not None:
            yield alike(function, condition), said


def _counts(function: Function, loop: Stretch, register: int) -> bool:
    """Whether a register holds the number of a round of this loop, not of one around it or within it."""
    return is_counter(function, register) and _is_of(function, loop, register)


def _is_of(function: Function, loop: Stretch, register: int, depth: int = 4) -> bool:
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0:
        return False
    if one[0] in (op.BINARY, op.INPLACE):
        return any(_is_of(function, loop, side, depth - 1) for side in one[4:6])
    innermost = function.control.innermost[function.blocks[one]]
    return one[0] == op.ATTR or (innermost >= 0 and function.control.loops[innermost].header == loop.header)


def _compared(function: Function, one: Instruction, loop: Stretch, is_slot: bool, fills: Fills) -> bool | None:
    """What a comparison says of a round's number and a constant or the size of a ring, or of how much a queue holds and that size."""
    operator, ring = function.text(one[3]), loop if is_slot else None
    for counted, other, asked in ((one[4], one[5], operator), (one[5], one[4], _MIRRORED.get(operator, operator))):
        is_size = ring is not None and _is_size(function, other, ring)
        if ring is not None and _is_queue(function, counted, ring) and (is_size or fills(function, other, ring.blocks)):
            return _FULL.get(asked)
        is_known = isinstance(function.constant(_plain(function, other)), int) or (is_size and asked in (">=", "<"))
        if is_known and _counts(function, loop, counted):
            return _LATER.get(asked)
    return None


def _is_size(function: Function, register: int, loop: Stretch) -> bool:
    """Whether the rounds of a loop go round as many slots as a register says: ``slots[number % size]``."""
    sized = (one for one in function.by_opcode[op.BINARY] if function.text(one[3]) == "%" and function.blocks[one] in loop.blocks)
    return any(alike(function, one[5]) == alike(function, register) for one in sized)


def _is_queue(function: Function, register: int, loop: Stretch) -> bool:
    """Whether a register holds the length of what a loop adds to at the end, and takes from at the front."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.CALL or function.dotted(one[3]) != "len" or len(one) != 6:
        return False
    held = alike(function, one[5])
    done = [each for each in function.by_opcode[op.INVOKE] if function.blocks[each] in loop.blocks and alike(function, each[3]) == held]
    return any(is_newest(function, each) for each in done) and any(takes_first(function, each) for each in done)


def _plain(function: Function, register: int) -> int:
    one = function.definitions[register] if register >= 0 else None
    return one[4] if one is not None and one[0] == op.CAST else register
