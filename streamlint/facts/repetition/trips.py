"""How many rounds loops have at most, as far as the program shows: each time that they begin, and in all."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from streamlint import TYPE_CHECKING
from streamlint.facts.code.counters import is_number_of_round, iterable_of, moved, raised
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import selected, unnegated
from streamlint.facts.files.autograd import given_for
from streamlint.facts.graph.importers import importers
from streamlint.facts.graph.unused import Unused
from streamlint.facts.values.numbers import Bounds, Numbers
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.models.traits import Trait
from streamlint.models.vocabulary import Selector

if TYPE_CHECKING:
    from streamlint.facts.graph.facts import Facts

FEW_IN_ALL = 10
"""Rounds of a whole program up to which no round's cost matters."""
_DEEPEST = 6
_MOST_CALLERS = 8
_NOT = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_VIEWS: tuple[Trait, ...] = ("gives-entries", "gives-values", "gives-keys")
"""What gives an element for each entry of a dictionary."""
_KEEPING_NONE = frozenset({op.CALL, op.INVOKE, op.ITER, op.ITEM, op.BRANCH})
"""Uses of a list that leave it where it is."""
_ORDERED = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "iter"})
"""Functions of the language that go once through what they are given."""


class Trips:
    """Answers for the loops of a program."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.numbers = Numbers(facts)
        self.unused = facts.shared.one_of(Unused, facts.program, facts.hierarchy)
        self._most: dict[tuple[Function, int], int | None] = {}

    def most(self, function: Function, loop: Loop) -> int | None:
        """The most rounds that a loop has each time that it begins; None where that is not known."""
        key = (function, loop.header)
        if key not in self._most:
            self._most[key] = None
            self._most[key] = min(self._by_exits(function, loop), default=None)
        return self._most[key]

    def around(self, function: Function, loop: Loop) -> int | None:
        """The most rounds that a loop has in each call of its function: with those of the loops around it."""
        return _product(self.most(function, each) for each in function.control.around(loop.header))

    def in_all(self, function: Function, loop: Loop) -> int | None:
        """The most rounds that a loop has while the program runs, if all that leads to it is in view."""
        own = self.around(function, loop)
        return _product((own, self._calls(function, _DEEPEST))) if own is not None and own <= FEW_IN_ALL else None

    def _calls(self, function: Function, depth: int) -> int | None:
        """How often a function is called at most."""
        if function.code.kind == "module":  # what a file that others import tries out says little of what they do
            return 1 if next(importers(function.unit), None) is None else None
        if function.is_cpp and (function.name == "main" or function.code.name in function.known("test-case")):
            return 1
        calls = list(self.numbers.calls(function)) if depth and not function.is_generator else []
        if not 0 < len(calls) <= _MOST_CALLERS:
            return None
        found = [self._of_call(caller, call, depth) for caller, call in calls]
        return sum(each for each in found if each is not None) if None not in found else None

    def _of_call(self, caller: Function, call: Instruction, depth: int) -> int | None:
        place = caller.control.innermost[caller.blocks[call]] if call in caller.blocks else NOBODY
        own = self.around(caller, caller.control.loops[place]) if place != NOBODY else 1
        return _product((own, self._calls(caller, depth - 1))) if own is not None else None

    def given(self, function: Function, loop: Loop, caller: Function, call: Instruction) -> int | None:
        """The most rounds of a loop that goes through what one call hands over, or takes out of it until it is empty."""
        if call[0] not in (op.CALL, op.INVOKE):
            return None
        end = function.code.blocks[loop.header][-1]
        asked = function.definitions[end[2]] if end[0] == op.BRANCH else None
        while asked is not None and asked[0] in (op.MORE, op.ITER):
            asked = function.definitions[asked[3]]
        if asked is not None and asked[0] == op.INVOKE and function.invokes(asked, *_VIEWS):
            asked = function.definitions[asked[3]]
        if asked is None or asked[0] != op.PARAM or any(function.invokes(use, "puts", "extends") for use in function.uses[asked[2]]):
            return None
        register = given_for(caller, call, function, asked[3])
        return self.elements(caller, register) if register is not None else None

    # --- one loop

    def _by_exits(self, function: Function, loop: Loop) -> Iterator[int]:
        """What the branches that each round asks whether to leave the loop say of its rounds."""
        always = {loop.header} | function.control.every_round(loop)
        for block, _ in loop.exits:
            end = function.code.blocks[block][-1]
            if end[0] != op.BRANCH or block not in always:
                continue
            register, is_turned = unnegated(function, end[2])
            one = function.definitions[register] if register >= 0 else None
            stays = (end[3] in loop.body) != is_turned
            found: int | None = None
            if one is not None and one[0] == op.MORE and stays:
                found = self.elements(function, iterable_of(function, one))
            elif one is not None and one[0] == op.COMPARE:
                found = self._compared(function, loop, one, stays)
            if found is not None:
                yield max(found, 0)

    def _compared(self, function: Function, loop: Loop, one: Instruction, stays: bool) -> int | None:
        """What a comparison of the number of a round says, that lets a loop go on."""
        sign = function.text(one[3])
        sign = sign if stays else _NOT.get(sign, "")
        for counter, bound, asked in ((one[4], one[5], sign), (one[5], one[4], _SWAPPED.get(sign, ""))):
            counted = self._counted(function, loop, counter)
            if counted is None or asked not in _SWAPPED or asked == "==":
                continue
            (first, step), last = counted, self.numbers.of(function, bound)
            if step > 0 and asked[0] in "<!" and last.high is not None and first.low is not None:
                return -(-(last.high - first.low + (asked == "<=")) // step)
            if step < 0 and asked[0] in ">!" and last.low is not None and first.high is not None:
                return -(-(first.high - last.low + (asked == ">=")) // -step)
        return None

    def _counted(self, function: Function, loop: Loop, register: int) -> tuple[Bounds, int] | None:
        """Where a number begins that each round of a loop changes by the same, and by how much."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and is_number_of_round(function, one) and _is_defined_in(function, loop, register):
            return Bounds(0, 0), 1
        variable, _ = moved(function, register)
        one = function.definitions[variable] if variable >= 0 else None
        if one is None or one[0] != op.PHI or function.blocks[one] != loop.header:
            return None
        begins, step = raised(function, loop, one)
        return (self.numbers.joined(function, begins), step) if step else None

    def elements(self, function: Function, register: int, depth: int = _DEEPEST) -> int | None:
        """The most elements that a loop takes out of what a register holds."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return None
        if one[0] in (op.CAST, op.COPY):
            return self.elements(function, one[-1], depth - 1)
        if one[0] == op.ITEM:
            return self._cut(function, one)
        if one[0] == op.PARAM:
            return self._given(function, one, depth - 1) if function.is_cpp else None
        if one[0] == op.BUILD:
            return self._displayed(function, one) if isinstance(function.unit.ir.constants[one[3]], str) else None
        is_open = any(function.invokes(use, "puts", "extends") for use in function.uses[register])
        return None if is_open else self._made(function, one, depth)

    def _made(self, function: Function, one: Instruction, depth: int) -> int | None:
        """The same of what an instruction makes, to which nobody adds elements."""
        if one[0] == op.DICT:
            is_plain = len(one) > 3 and op.NONE not in one[3::2] and all(use[0] != op.SET_ITEM for use in function.uses[one[2]])
            return len(one[3::2]) if is_plain else None
        if one[0] == op.INVOKE and function.invokes(one, *_VIEWS):
            return self.elements(function, one[3], depth - 1)
        if one[0] == op.CONSTRUCT:
            return self._listed(function, one, depth - 1)
        return self._called(function, one, depth - 1) if one[0] == op.CALL else None

    def _displayed(self, function: Function, one: Instruction) -> int | None:
        """The same of a list that is written out, and to which no other round adds elements than the one that makes it, one by one."""
        uses = [use for use in function.uses[one[2]] if use[0] != op.BIND]
        puts = [use for use in uses if function.invokes(use, "puts")]
        innermost, blocks = function.control.innermost, function.blocks
        is_here = all(use[0] in _KEEPING_NONE and innermost[blocks[use]] == innermost[blocks[one]] for use in (uses if puts else ()))
        is_open = any(function.invokes(use, "extends") for use in uses) or not is_here
        return None if is_open else len(one) - 4 + len(puts) or None  # what is empty is filled elsewhere

    def _listed(self, function: Function, one: Instruction, depth: int) -> int | None:
        """C++: the same of a container that is made of lists in braces: of one, or of one for each element."""
        given = [function.definitions[each] for each in one[5:]]
        if not given or any(each is None or each[0] != op.BUILD for each in given):
            return None
        return len(given) if len(given) > 1 else self.elements(function, one[5], depth)

    def _given(self, function: Function, one: Instruction, depth: int) -> int | None:
        """The same of what the callers in view give for a parameter."""
        found: list[int | None] = []
        for caller, call in self.numbers.calls(function):
            given = given_for(caller, call, function, one[3])
            found.append(self.elements(caller, given, depth) if given is not None else None)
        return max((each for each in found if each is not None), default=None) if None not in found else None

    def _cut(self, function: Function, one: Instruction) -> int | None:
        """The same of ``x[:3]``."""
        cut = function.definitions[one[4]] if one[4] >= 0 else None
        if cut is None or cut[0] != op.SLICE or cut[4] < 0 or not (cut[3] < 0 or function.constant(cut[3]) == 0):
            return None
        bound = self.numbers.of(function, cut[4])
        return bound.high if bound.low is not None and bound.low >= 0 else None

    def _called(self, function: Function, one: Instruction, depth: int) -> int | None:
        """The same of ``range``, and of what goes through something else."""
        name, given = function.dotted(one[3]), one[5:]
        if name == "range" and 0 < len(given) < 4:
            return self._ranged([self.numbers.of(function, each) for each in given])
        if name == "zip":
            return min((each for part in given if (each := self.elements(function, part, depth)) is not None), default=None)
        if name in _ORDERED and given:
            return self.elements(function, given[0], depth)
        if name.rpartition(".")[2] == "islice" and len(given) > 1:
            return self.numbers.of(function, given[min(2, len(given) - 1)]).high
        for row in self.facts.rows(function, one):
            of = row.get("of") if row.effect == "same" else None
            if isinstance(of, Selector) and (parts := selected(function, one, of)):
                return self.elements(function, parts[0], depth)
        return None

    def _ranged(self, given: list[Bounds]) -> int | None:
        first, last = (given[0], given[1]) if len(given) > 1 else (Bounds(0, 0), given[0])
        step = given[2].exact if len(given) > 2 else 1
        length = last.high - first.low if last.high is not None and first.low is not None else None
        return -(-length // step) if length is not None and step is not None and step > 0 else None


def _is_defined_in(function: Function, loop: Loop, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and function.blocks[one] in loop.body


def _product(numbers: Iterator[int | None] | tuple[int | None, ...]) -> int | None:
    found = list(numbers)
    return prod(each for each in found if each is not None) if None not in found else None
