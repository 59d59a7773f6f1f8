"""Branches that are rarely taken, and those that the program never takes: from control flow and values, never from names that a user chose.

An edge of a branch is *rare* if it is taken in one of several rounds (``% n``, equality of a counter), once (what it does keeps it from
being taken again), after some time, or in evaluation only. It is *never* taken where the values of the program decide so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from streamlint.facts.code.counters import range_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Instance, LibraryObject
from streamlint.facts.code.stores import Store
from streamlint.facts.graph.aliases import source_of
from streamlint.facts.graph.facts import Facts
from streamlint.facts.graph.first_times import FirstTimes, constant_truth, gives_none
from streamlint.facts.graph.kept_counts import classes_of
from streamlint.facts.values.flags import Flags, IsNone, Wanted, asked_none, comparison, own_flag
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY

NEVER = "never, as far as the program tells"
_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_TRUE, _FALSE = -2, -3
"""Stand for the edges of what is no branch."""
_FEW = 2
"""A remainder of a number this small is met nearly as often as not."""


class Rare(NamedTuple):
    """An edge that is not taken in each round: the branch's block, the block it leads to, and why. ``is_decided``: it never is."""

    block: int
    after: int
    why: str
    is_decided: bool = False


class Conditions(FirstTimes):
    """Classifies the branches of one function."""

    def __init__(self, facts: Facts, function: Function) -> None:
        super().__init__(facts, function)
        self._known: dict[int, list[Rare]] = {}

    def decided(self, flags: Flags) -> list[Rare]:
        """The edges that a call with these flags does not take."""
        found: list[Rare] = []
        for number in self.graph.order if flags else ():
            end = self.function.code.blocks[number][-1]
            found += self._by_flag(number, end, flags) if end[0] == op.BRANCH else []
        return found

    def rare(self, flags: Flags) -> list[Rare]:
        """The edges that are rare, and those that a call with these flags does not take."""
        found: list[Rare] = []
        for number in self.graph.order:
            end = self.function.code.blocks[number][-1]
            if end[0] == op.BRANCH:
                if number not in self._known:
                    self._known[number] = list(self._of_branch(number, end))
                found += self._known[number] or self._by_flag(number, end, flags)
        return found

    def rare_at(self, blocks: Iterable[int], by_values: bool = True) -> Iterator[Rare]:
        """The rare edges of some branches; ``by_values``: those too that the values of the program decide, which takes longer."""
        for number in blocks:
            end = self.function.code.blocks[number][-1]
            if end[0] != op.BRANCH or end[3] == end[4]:
                continue
            register, turned = self._unnegated(end[2])
            taken, other = (end[4], end[3]) if turned else (end[3], end[4])
            reasons = self._reasons if by_values else self._by_form
            yield from (Rare(number, edge, why, why == NEVER) for why, edge in islice(reasons(register, number, taken, other), 1))

    def wanted(self) -> Wanted:
        """The parameters that decide branches: by their truth, as texts, or by whether they are None."""
        truths = set()
        for one in self.function.by_opcode[op.BRANCH]:
            parameter = self._definition(self._unnegated(one[2])[0])
            if parameter is not None and parameter[0] == op.PARAM:
                truths.add(parameter[3])
        compared = self.function.by_opcode[op.COMPARE]
        texts = frozenset(found[0] for one in compared if (found := comparison(self.function, one)) is not None)
        optional = frozenset(index for one in compared if (index := asked_none(self.function, one)) is not None)
        return Wanted(frozenset(truths), texts, optional.union(self._forwarded_defaults()))

    def _forwarded_defaults(self) -> Iterator[int]:
        """The parameters that are None by default, and that the function hands to others."""
        function = self.function
        for one in function.by_opcode[op.PARAM]:
            register = function.default_register(one[3])
            if register is None or function.parent is None or not gives_none(function.parent, register):
                continue
            if any(use[0] in (op.CALL, op.INVOKE) and one[2] in use[5:] for use in function.uses[one[2]]):
                yield one[3]

    # --- one branch

    def _unnegated(self, register: int) -> tuple[int, bool]:
        """A condition without ``not`` around it, and whether it was turned round."""
        turned = False
        while (one := self._definition(register)) is not None and one[0] == op.UNARY and self._operator(one) == "not":
            register, turned = one[4], not turned
        return register, turned

    def _of_branch(self, block: int, end: Instruction) -> Iterator[Rare]:
        register, turned = self._unnegated(end[2])
        taken, other = (end[4], end[3]) if turned else (end[3], end[4])
        for why, edge in self._reasons(register, block, taken, other):
            if end[3] != end[4]:
                yield Rare(block, edge, why, why == NEVER)
                return

    def _reasons(self, register: int, block: int, taken: int, other: int) -> Iterator[tuple[str, int]]:
        yield from self._by_form(register, block, taken, other, by_values=True)
        one = self._definition(register)
        if one is not None and (one[0] in (op.CALL, op.INVOKE) or (one[0] == op.ATTR and self._is_switched_on_rarely(one))):
            yield from self._known_of(one, taken, other)
        values = self._values(register) if one is not None else []
        if values and all(isinstance(value, Constant) for value in values):
            truths = {bool(value.value) for value in values if isinstance(value, Constant)}
            if len(truths) == 1:
                yield NEVER, other if truths == {True} else taken

    def _by_form(self, register: int, block: int, taken: int, other: int, by_values: bool = False) -> Iterator[tuple[str, int]]:
        """Reasons that the form of the code tells; ``by_values``: so do values and callees of the parts of ``a and b``."""
        one = self._definition(register)
        if one is None:
            return
        if one[0] == op.COMPARE:
            yield from self._compared(one, block, taken, other)
        elif one[0] == op.PHI and (why := self._all_rare(one, block, taken, other, by_values)) is not None:
            yield why, taken
        elif self._is_remainder(register):
            yield "in one of several rounds", other
        elif self._is_evaluation(one):
            yield "in evaluation", other
        if self.happens_once(register, taken, False):
            yield "the first time", taken
        elif self.happens_once(register, other, True):
            yield "the first time", other

    def _all_rare(self, phi: Instruction, block: int, taken: int, other: int, by_values: bool) -> str | None:
        """Why ``a and n % 32 == 0`` is rarely true: each value that it can have is false where it comes from, or rarely true itself."""
        ask = self._reasons if by_values else self._by_form
        why: str | None = None
        for operand in phi[3:]:
            one = self._definition(operand)
            if one is None:
                return None
            if operand in self._false_at.get(self.home[phi], ()) or (one[0] == op.CONST and not self.function.unit.ir.constants[one[3]]):
                continue
            reasons = ask(operand, block, taken, other) if one[0] != op.PHI else ()
            why = next((reason for reason, edge in reasons if edge == taken), None)
            if why is None:
                return None
        return why

    @cached_property
    def _false_at(self) -> dict[int, set[int]]:
        """By block: the values that are false where a branch on them leads to it."""
        found: dict[int, set[int]] = defaultdict(set)
        for end in self.function.by_opcode[op.BRANCH]:
            if end[3] != end[4]:
                found[end[4]].add(end[2])
        return found

    def _by_flag(self, block: int, end: Instruction, flags: Flags) -> list[Rare]:
        register, turned = self._unnegated(end[2])
        one = self._definition(register)
        compared = comparison(self.function, one) if one is not None else None
        if one is not None and compared is not None and isinstance(text := flags.get(compared[0]), str):
            taken = (text in compared[1]) == (self._operator(one) in ("==", "in"))
            name, said = self.function.code.parameters[compared[0]].name, repr(text)
        elif one is not None and (index := asked_none(self.function, one)) is not None and IsNone(index) in flags:
            is_none = bool(flags[IsNone(index)])
            taken = is_none == (self._operator(one) in ("is", "=="))
            name, said = self.function.code.parameters[index].name, "None" if is_none else "given"
        else:
            key = (one[3] if one[0] == op.PARAM else own_flag(self.function, one)) if one is not None else None
            if key is None or key not in flags:
                return []
            taken = bool(flags[key])
            name = key if isinstance(key, str) else self.function.code.parameters[key].name
            said = "true" if taken else "false"
        return [Rare(block, end[4] if taken != turned else end[3], f"{name} is {said} in this call", True)]

    # --- comparisons

    def _compared(self, one: Instruction, block: int, taken: int, other: int) -> Iterator[tuple[str, int]]:
        operator = self._operator(one)
        left, right = one[4], one[5]
        if operator in ("==", "!="):
            edge = taken if operator == "==" else other
            if self._is_remainder(left) or self._is_remainder(right):
                yield "in one of several rounds", edge
            elif self._counts(left, right) or self._counts(right, left):
                yield "in one round", edge
        elif operator in ("<", ">", "<=", ">="):
            yield from self._ordered(operator, left, right, taken, other)
        elif operator in ("in", "not in"):
            member, edge = (taken, other) if operator == "in" else (other, taken)
            if self._is_put_into(right, edge):
                yield "the first time", edge
            elif self.is_counter(left) and not self._is_stretch(right):
                yield "in some rounds", member

    def _ordered(self, operator: str, left: int, right: int, taken: int, other: int) -> Iterator[tuple[str, int]]:
        """The same of a comparison that asks which side is larger."""
        if self._is_clock(left) != self._is_clock(right):
            larger = operator if self._is_clock(left) else _SWAPPED[operator]
            yield "after some time", taken if larger[0] == ">" else other
        elif (first := self._is_first_round(operator, left, right)) is not None:
            yield "in one round", taken if first else other
        elif (edge := self._starts_over(operator, left, right, taken, other)) is not None:
            yield "in one of several rounds", edge

    def _is_remainder(self, register: int) -> bool:
        one = self._definition(register)
        if one is None or one[0] != op.BINARY or self._operator(one) != "%":
            return False
        number = self.function.constant(one[5])
        return not isinstance(self.function.constant(one[4]), str) and not (isinstance(number, int) and number <= _FEW)

    def _is_first_round(self, operator: str, left: int, right: int) -> bool | None:
        """Whether ``count > 0`` and its like hold in the first round alone, or in all others alone; None for what does not part them."""
        if isinstance(self.function.constant(left), int):
            operator, left, right = _SWAPPED[operator], right, left
        parts = {(">", 0): False, (">=", 1): False, ("<=", 0): True, ("<", 1): True}
        number = self.function.constant(right)
        found = parts.get((operator, number)) if isinstance(number, int) else None
        return found if found is not None and self._counts(left, right) else None

    def _is_stretch(self, register: int) -> bool:
        """Whether a register holds numbers that follow one another: ``range(10, n)``."""
        return 0 < len(range_of(self.function, register)) < 3

    def _starts_over(self, operator: str, left: int, right: int, taken: int, other: int) -> int | None:
        """The edge behind which what counts rounds up to a number is set back, or the number moves on with it: ``step - last >= every``."""
        for larger, smaller, edge in ((left, right, taken), (right, left, other)):
            if operator[0] == "<":
                edge = other if edge == taken else taken
            counts = [each for each in self._summands(larger) if self.is_counter(each)]
            moving = [each for each in (*self._summands(larger), *self._summands(smaller)) if each not in counts]
            if any(self._is_set_behind(each, edge, lambda function, value: isinstance(function.constant(value), int)) for each in counts):
                return edge
            if counts and any(self._is_set_behind(each, edge, self._moves_on) for each in moving):
                return edge
        return None

    def _summands(self, register: int) -> Iterator[int]:
        """A register, and those of which it is the sum or the difference."""
        yield register
        one = self._definition(register)
        if one is not None and one[0] in (op.BINARY, op.INPLACE) and self._operator(one)[0] in "+-":
            yield from (each for part in one[4:6] for each in self._summands(part))

    def _moves_on(self, function: Function, value: int) -> bool:
        """Whether a value is the number of a round, or a sum."""
        one = function.definitions[value] if value >= 0 else None
        is_sum = one is not None and one[0] in (op.BINARY, op.INPLACE) and function.text(one[3])[0] == "+"
        return is_sum or (function is self.function and self.is_counter(value))

    def _counts(self, counter: int, fixed: int) -> bool:
        """Whether a register counts rounds, and another one does not change with them."""
        return self.is_counter(counter) and not self.is_counter(fixed)

    def _is_clock(self, register: int, depth: int = 3) -> bool:
        one = self._definition(register)
        if one is None or depth == 0:
            return False
        if one[0] == op.BINARY:
            return any(self._is_clock(part, depth - 1) for part in one[4:6])
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(row.effect == "clock" for row in self.facts.rows(self.function, one))

    # --- what other functions tell

    def _known_of(self, one: Instruction, taken: int, other: int) -> Iterator[tuple[str, int]]:
        """What is known of a switch that is rarely on, and of what a function of the program returns."""
        if one[0] == op.ATTR:
            yield "on in one of several rounds", taken
            return
        callees = list(self.facts.callee_functions(self.function, one))
        ends = callees[0].by_opcode[op.RETURN] if len(callees) == 1 and callees[0] is not self.function else ()
        if len(ends) == 1 and ends[0][2] >= 0:
            inner = Conditions(self.facts, callees[0])
            yield from ((why, taken if truth else other) for why, truth in inner.seldom(ends[0][2]))

    def _is_switched_on_rarely(self, one: Instruction) -> bool:
        """Whether all that turns an attribute on does so in some rounds of a loop alone, and it is turned off again."""
        is_reset = is_on = False
        for store in self._stores_of(one):
            if store.value < 0:
                return False
            truth = constant_truth(store.function, store.value)
            if truth is False or (truth is None and _keeps(store.function, store.value, self.function.text(one[4]))):
                is_reset = is_reset or store.function.code.name != "__init__"
                continue
            inner = Conditions(self.facts, store.function)
            if truth is None:  # it is set to what a round asks
                if not any(truth for _, truth in inner.seldom(store.value)):
                    return False
                is_reset = True
            elif not inner.is_rare(store.instruction):
                return False
            is_on = True
        return is_on and is_reset

    def seldom(self, register: int) -> Iterator[tuple[str, bool]]:
        """The truth that a value seldom has, and why."""
        register, turned = self._unnegated(register)
        yield from ((why, (edge == _TRUE) != turned) for why, edge in self._by_form(register, NOBODY, _TRUE, _FALSE))

    def is_rare(self, one: Instruction) -> bool:
        """Whether an instruction stands behind an edge that the form of the code shows to be rare."""
        home = self.home[one]
        return any(self.graph.dominates(each.after, home) for each in self.rare_at(self.graph.order, by_values=False))

    def _stores_of(self, one: Instruction) -> Iterator[Store]:
        """Where an attribute may be set that an instruction reads."""
        name, classes = self.function.text(one[4]), set(classes_of(self.facts, self.function, one[3]))
        for unit in self.facts.program.mentioning(name):
            for store in unit.attribute_stores.get(name, ()) if not unit.is_cpp else ():
                others = set(classes_of(self.facts, store.function, store.receiver))
                if not (classes and others) or not classes.isdisjoint(others):
                    yield store
            for definition in unit.classes if not unit.is_cpp else ():
                if name in definition.own_stores and not (classes and classes.isdisjoint(self.facts.hierarchy.order(definition))):
                    yield from definition.own_stores[name]

    def _is_evaluation(self, one: Instruction) -> bool:
        """``module.training``: true where a loop trains."""
        if one[0] != op.ATTR or self.function.text(one[4]) != "training":
            return False
        return any(
            (isinstance(value, LibraryObject) and value.kind == "module")
            or (isinstance(value, Instance) and any(map(self.facts.forwarded, self.facts.hierarchy.libraries(value.definition))))
            for value in self._values(one[3])
        )


def _keeps(function: Function, register: int, name: str) -> bool:
    """Whether a value is false on each way here, or was read from an attribute of this name, which it only sets back."""
    waiting, seen, is_read = [register], set[int](), False
    while waiting:
        one = source_of(function, value := waiting.pop())
        if one is None:
            return False
        if value in seen or (one[0] == op.CONST and not function.unit.ir.constants[one[3]]):
            continue
        seen.add(value)
        if one[0] == op.PHI:
            waiting += one[3:]
        elif one[0] == op.ATTR and function.text(one[4]) == name:
            is_read = True
        else:
            return False
    return is_read
