"""Slots by the names of the next round: what a round calls ``i % 2``, the next one calls ``1 - i % 2``; what it calls ``i``, ``i - 1``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.counters import is_counter
from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import Element, Place
from streamlint.waits.questions import Key, alike

Turn = tuple[frozenset[Key], frozenset[Key]]
"""The names of the slot of a round, and of the other one."""


class Alternation:
    """The slots that take turns in the loops of a function."""

    def __init__(self) -> None:
        self._known: dict[tuple[Function, int], list[Turn]] = {}
        self._steps: dict[tuple[Function, int], list[Turn]] = {}

    def next_round(self, function: Function, loop: Loop, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked, by the names that the next round has for it."""
        turns = self._known.get((function, loop.header))
        if turns is None:
            turns = self._known[function, loop.header] = list(_turns(function, loop))
            self._steps[function, loop.header] = list(_steps(function, loop))
        ways = [*turns, *((other, mine) for mine, other in turns), *self._steps[function, loop.header]]
        return frozenset(one for held in tracked for one in _turned(_stepped(function, loop, held), ways))

    def takes_turns(self, function: Function, place: Place) -> bool:
        """Whether a slot on the way to a place is one of two in a loop that a path has gone round."""
        keys = {key.key for key in place.path if isinstance(key, Element)}
        known = (turn for (where, _), turns in self._known.items() if where is function for turn in turns)
        return any(keys & (mine | other) for mine, other in known)


def _stepped(function: Function, loop: Loop, held: Tracked) -> Tracked:
    """What another function has put at ``i + 1``, by the name that the next round has for it."""
    own = {alike(function, one[2]) for one in function.by_opcode[op.BINARY]}
    return as_next(held, lambda key, counter: key not in own and _counts_rounds(function, loop, counter))


def as_next(held: Tracked, counts: Callable[[object, int], bool]) -> Tracked:
    """Something tracked at ``i + 1``, by ``i``, where that counts: the register of an expression."""
    path = tuple(
        Element((below,)) if isinstance(key, Element) and (below := _one_below(key.key)) is not None and counts(key.key, below) else key
        for key in held.place.path
    )
    return held if path == held.place.path else held._replace(place=Place(held.place.root, path))


def _one_below(key: object) -> int | None:
    """The register to which an index adds one."""
    match key:
        case (op.BINARY, "+", (int(register),), (op.CONST, "1", *_), *_):
            return register
    return None


def _turned(held: Tracked, turns: list[Turn]) -> Iterator[Tracked]:
    path = held.place.path
    for index, key in enumerate(path):
        term = key.key if isinstance(key, Element) else None
        for here, there in turns:
            if term in here and there:
                for name in there:
                    yield held._replace(place=Place(held.place.root, (*path[:index], Element(name), *path[index + 1 :])))
                return
    yield held


def _steps(function: Function, loop: Loop) -> Iterator[Turn]:
    """What a counter that grows by one names in a round, and in the next one: ``i``, then ``i - 1``; ``i + 1``, then ``i``."""
    inside = [one for one in function.by_opcode[op.BINARY] if function.blocks[one] in loop.body]
    for operator in "-+":
        found = [one for one in inside if _is(function, one, operator, 5, 1) and _counts_rounds(function, loop, one[4])]
        for counter in {one[4] for one in found}:
            mine, other = frozenset({alike(function, counter)}), frozenset(alike(function, one[2]) for one in found if one[4] == counter)
            yield (mine, other) if operator == "-" else (other, mine)


def _is_one_more(function: Function, register: int) -> bool:
    """Whether a register is the sum of another one and 1."""
    one = function.definitions[register]
    return one is not None and one[0] in (op.BINARY, op.INPLACE) and 1 in map(function.constant, one[4:6])


def _iterated(function: Function, one: Instruction) -> Instruction | None:
    """What makes the iterator of which an instruction takes the next element, or a part of it."""
    given = function.definitions[one[3]] if one[0] == op.UNPACK else one
    definition = function.definitions[given[3]] if given is not None and given[0] == op.NEXT else None
    return function.definitions[definition[3]] if definition is not None and definition[0] == op.ITER else None


def _counts_rounds(function: Function, loop: Loop, register: int) -> bool:
    """Whether a register is one more in each round of a loop: by ``range``, ``enumerate`` or an addition at its end."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or not is_counter(function, function.control, function.blocks, register):
        return False
    if one[0] == op.PHI:
        return function.blocks[one] == loop.header and any(_is_one_more(function, value) for value in one[3:])
    source = _iterated(function, one)
    around = min((each for each in function.control.loops if function.blocks[one] in each.body), key=lambda each: len(each.body))
    is_plain = source is not None and len(source) <= (7 if function.dotted(source[3]) == "range" else 6)
    return is_plain and around == loop


def _turns(function: Function, loop: Loop) -> Iterator[Turn]:
    """The two names of the slots of a loop, by each counter that is taken modulo two."""
    inside = [one for one in function.by_opcode[op.BINARY] if function.blocks[one] in loop.body]
    slots = [one for one in inside if _is(function, one, "%", 5, 2) and is_counter(function, function.control, function.blocks, one[4])]
    for name in {alike(function, one[2]) for one in slots}:
        mine = {one[2] for one in slots if alike(function, one[2]) == name}
        others = (one for one in inside if _is_other(function, one, mine))
        yield frozenset({name}), frozenset(alike(function, one[2]) for one in others)


def _is_other(function: Function, one: Instruction, slots: set[int]) -> bool:
    """Whether an expression is the slot that a round does not have: ``1 - slot``, ``slot ^ 1``, ``(i + 1) % 2``, ``(i - 1) % 2``."""
    if _is(function, one, "-", 4, 1):
        return _plain(function, one[5]) in slots
    if _is(function, one, "^", 5, 1):
        return _plain(function, one[4]) in slots
    inner = function.definitions[one[4]] if _is(function, one, "%", 5, 2) else None
    counters = {function.definitions[slot][4] for slot in slots}  # type: ignore[index]
    is_next = inner is not None and inner[0] == op.BINARY and any(_is(function, inner, operator, 5, 1) for operator in "+-")
    return is_next and inner is not None and inner[4] in counters


def _is(function: Function, one: Instruction, operator: str, place: int, number: int) -> bool:
    return function.text(one[3]) == operator and function.constant(one[place]) == number


def _plain(function: Function, register: int) -> int:
    one = function.definitions[register] if register >= 0 else None
    return one[3] if one is not None and one[0] == op.COPY else register
