"""Branches that are rarely taken, and those that the program never takes: from control flow and values, never from names that a user chose.

An edge of a branch is *rare* if it is taken in one of several rounds (``% n``, equality of a counter), once (what it does keeps it from
being taken again), after some time, or in evaluation only. It is *never* taken where the values of the program decide so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from streamlint.facts.aliases import SELF, path_of, source_of
from streamlint.facts.counters import is_counter
from streamlint.facts.facts import Facts
from streamlint.facts.flags import Flags, IsNone, Wanted, asked_none, comparison, own_flag
from streamlint.facts.functions import Function
from streamlint.facts.instructions import arguments_of
from streamlint.facts.kept_counts import counts_in_attribute
from streamlint.facts.kept_entries import differs
from streamlint.facts.objects import Constant, Container, Instance, LibraryObject, Object
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph

Settles = Callable[[Function, int], bool]
"""Whether a register of a function holds a value with which a condition is decided from then on."""
NEVER = "never, as far as the program tells"
_SWAPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_FEW = 2
"""A remainder of a number this small is met nearly as often as not."""


class Rare(NamedTuple):
    """An edge that is not taken in each round: the branch's block, the block it leads to, and why. ``is_decided``: it never is."""

    block: int
    after: int
    why: str
    is_decided: bool = False


class Conditions:
    """Classifies the branches of one function."""

    def __init__(self, facts: Facts, function: Function, graph: Graph) -> None:
        self.facts = facts
        self.function = function
        self.graph = graph
        self.home = {one: number for number, block in enumerate(function.code.blocks) for one in block}
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
        return Wanted(frozenset(truths), texts, optional.union(self._handed_on()))

    def _handed_on(self) -> Iterator[int]:
        """The parameters that are None by default, and that the function hands to others."""
        function = self.function
        for one in function.by_opcode[op.PARAM]:
            register = function.default_register(one[3])
            if register is None or function.parent is None or not _is_none(function.parent, register):
                continue
            if any(use[0] in (op.CALL, op.INVOKE) and one[2] in use[5:] for use in function.uses[one[2]]):
                yield one[3]

    # --- one branch

    def _definition(self, register: int) -> Instruction | None:
        return self.function.definitions[register] if register >= 0 else None

    def _unnegated(self, register: int) -> tuple[int, bool]:
        """A condition without ``not`` around it, and whether it was turned round."""
        turned = False
        while (one := self._definition(register)) is not None and one[0] == op.UNARY and self._operator(one) == "not":
            register, turned = one[4], not turned
        return register, turned

    def _operator(self, one: Instruction) -> str:
        return self.function.text(one[3])

    def _of_branch(self, block: int, end: Instruction) -> Iterator[Rare]:
        register, turned = self._unnegated(end[2])
        taken, other = (end[4], end[3]) if turned else (end[3], end[4])
        for why, edge in self._reasons(register, block, taken, other):
            if end[3] != end[4]:
                yield Rare(block, edge, why, why == NEVER)
                return

    def _reasons(self, register: int, block: int, taken: int, other: int) -> Iterator[tuple[str, int]]:
        yield from self._by_form(register, block, taken, other)
        values = self._values(register) if self._definition(register) is not None else []
        if values and all(isinstance(value, Constant) for value in values):
            truths = {bool(value.value) for value in values if isinstance(value, Constant)}
            if len(truths) == 1:
                yield NEVER, other if truths == {True} else taken

    def _by_form(self, register: int, block: int, taken: int, other: int) -> Iterator[tuple[str, int]]:
        """Reasons that the form of the code tells."""
        one = self._definition(register)
        if one is None:
            return
        if one[0] == op.COMPARE:
            yield from self._compared(one, block, taken, other)
        elif one[0] == op.PHI and (why := self._all_rare(one)) is not None:
            yield why, taken
        elif self._is_remainder(register):
            yield "in one of several rounds", other
        elif self._is_evaluation(one):
            yield "in evaluation", other
        if self._happens_once(register, taken, False):
            yield "the first time", taken
        elif self._happens_once(register, other, True):
            yield "the first time", other

    def _all_rare(self, phi: Instruction) -> str | None:
        """Why ``a and n % 32 == 0`` is rarely true: each value that it can have is false where it comes from, or rarely true itself."""
        why: str | None = None
        for operand in phi[3:]:
            one = self._definition(operand)
            if one is None:
                return None
            if operand in self._false_at.get(self.home[phi], ()) or (one[0] == op.CONST and not self.function.unit.ir.constants[one[3]]):
                continue
            why = next((reason for reason, edge in self._reasons(operand, 0, 1, 2) if edge == 1), None) if one[0] != op.PHI else None
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

    def _values(self, register: int) -> list[Object]:
        return list(self.facts.values(self.function, register).values)

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
            if self._is_clock(left) != self._is_clock(right):
                larger = operator if self._is_clock(left) else _SWAPPED[operator]
                yield "after some time", taken if larger[0] == ">" else other
            elif (first := self._is_first_round(operator, left, right)) is not None:
                yield "in one round", taken if first else other
        elif operator in ("in", "not in"):
            edge = other if operator == "in" else taken
            if self._is_put_into(right, edge):
                yield "the first time", edge

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

    def _counts(self, counter: int, fixed: int) -> bool:
        """Whether a register counts rounds, and another one does not change with them."""
        return self.is_counter(counter) and not self.is_counter(fixed)

    def is_counter(self, register: int) -> bool:
        """Whether a register counts rounds of a loop of the function, of the program, or of a framework."""
        return is_counter(self.function, self.graph, self.home, register, known=self._is_kept_count)

    def _is_kept_count(self, one: Instruction) -> bool:
        """Whether an instruction reads what counts the rounds of a loop elsewhere."""
        if one[0] == op.PARAM:
            return self.facts.frameworks.is_number(self.function, self.function.code.parameters[one[3]].name)
        return one[0] == op.ATTR and counts_in_attribute(self.facts, self.function, one)

    def _is_clock(self, register: int, depth: int = 3) -> bool:
        one = self._definition(register)
        if one is None or depth == 0:
            return False
        if one[0] == op.BINARY:
            return any(self._is_clock(part, depth - 1) for part in one[4:6])
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        return any(row.effect == "clock" for row in self.facts.rows(self.function, one))

    def _is_evaluation(self, one: Instruction) -> bool:
        """``module.training``: true where a loop trains."""
        if one[0] != op.ATTR or self.function.text(one[4]) != "training":
            return False
        return any(
            (isinstance(value, LibraryObject) and value.kind == "module")
            or (isinstance(value, Instance) and any(map(self.facts.forwarded, self.facts.hierarchy.libraries(value.definition))))
            for value in self._values(one[3])
        )

    # --- what happens once

    def _happens_once(self, register: int, edge: int, when_false: bool) -> bool:
        """Whether what stands behind an edge changes the condition so that the edge is not taken again."""
        one = self._definition(register)
        if one is None:
            return False
        is_none = one[0] == op.COMPARE and self._operator(one) in ("is", "is not", "==", "!=") and _is_none(self.function, one[5])
        if is_none:
            if (self._operator(one) in ("is", "==")) == when_false:
                return False
            return self._is_set(one[4], edge, lambda function, value: not _is_none(function, value)) or self._is_kept(one[4], edge)
        if one[0] == op.COMPARE and self._operator(one) in ("==", "!="):
            return (self._operator(one) == "==") == when_false and any(
                self._is_made_alike(first, second, edge) for first, second in ((one[4], one[5]), (one[5], one[4]))
            )
        if one[0] == op.CALL and len(one) == 7 and self.function.dotted(one[3]) == "hasattr" and when_false:
            return any(self.function.text(store[3]) == self.function.constant(one[6]) for store in self._behind(edge, op.SET_ATTR))
        if when_false and self._is_kept(register, edge):
            return True
        return self._is_set(register, edge, lambda function, value: _constant(function, value) is when_false)

    def _is_kept(self, register: int, edge: int) -> bool:
        """Whether a register was looked up in a container that outlives the round, and something is put into that behind an edge."""
        one = self._definition(register)
        if one is not None and one[0] == op.INVOKE and len(one) > 6 and self.function.text(one[4]) in self.function.known("looks-up"):
            key = one[6]
        elif one is not None and one[0] == op.ITEM:
            key = one[4]
        else:
            return False
        return not self.is_counter(key) and not differs(self.facts, self.function, key) and self._is_put_into(one[3], edge)

    def _is_made_alike(self, asked: int, wanted: int, edge: int) -> bool:
        """Whether an attribute of what is kept is not as wanted, and that is made anew with what is wanted behind an edge."""
        one, said = self._definition(asked), path_of(self.function, wanted)

        def makes(function: Function, value: int) -> bool:
            made = source_of(function, value)
            given = arguments_of(function, made) if made is not None and made[0] in (op.CALL, op.INVOKE) else ()
            return any(register == wanted or (said and path_of(function, register) == said) for register, _ in given)

        return one is not None and one[0] == op.ATTR and self._is_set(one[3], edge, makes)

    def _is_set(self, register: int, edge: int, settles: Settles) -> bool:
        """Whether the variable or attribute that a register was read from is set behind an edge to a value that settles it."""
        path = path_of(self.function, register)
        constants = self.function.unit.ir.constants
        if not path:
            return self._flows_back(register, edge, settles)
        receiver, _, name = path.rpartition(".")
        stored: list[int] = []
        if receiver:
            stores = (one for one in self._behind(edge, op.SET_ATTR) if self.function.text(one[3]) == name)
            stored = [one[4] for one in stores if path_of(self.function, one[2]) == receiver]
        else:
            stored = [one[3] for one in self._behind(edge, op.STORE) if constants[one[2]][0] == path]
            stored += [one[3] for one in self._behind(edge, op.SET_NAME) if self.function.text(one[2]) == path]
        is_settled = any(settles(self.function, value) for value in stored)
        return is_settled and not (receiver == SELF and self._is_reset(name, settles))

    def _is_reset(self, name: str, settles: Settles) -> bool:
        """Whether a method of the class, its constructor aside, sets an attribute back to a constant that is not settled."""
        owner = self.function.method.owner if self.function.method is not None else None
        for store in owner.own_stores.get(name, ()) if owner is not None else ():
            one = source_of(store.function, store.value)
            if one is None or one[0] != op.CONST or store.function.code.name == "__init__":
                continue
            if not settles(store.function, store.value):
                return True
        return False

    def _flows_back(self, register: int, edge: int, settles: Settles) -> bool:
        """Whether a local of a loop gets such a value behind an edge, for the rounds that follow."""
        start = self._definition(register)
        if start is None or start[0] != op.PHI:
            return False
        seen, waiting = {register}, list(start[3:])
        while waiting:
            value = waiting.pop()
            one = self._definition(value)
            if one is None or value in seen:
                continue
            seen.add(value)
            if self.graph.dominates(edge, self.home[one]) and settles(self.function, value):
                return True
            waiting += one[3:] if one[0] == op.PHI else ()
        return False

    def _is_put_into(self, container: int, edge: int) -> bool:
        """Whether an element is put behind an edge into a container that outlives the round."""
        made = self._definition(container)
        if made is not None and made[0] in (op.DICT, op.BUILD):
            around = [loop for loop in self.graph.loops if edge in loop.body]
            if all(self.home[made] in loop.body for loop in around):
                return False
        given = (
            [value for value in self._values(container) if isinstance(value, Container)] if made is not None and made[0] == op.PARAM else []
        )
        if any(value.frame.function.control.innermost[value.frame.function.blocks[value.instruction]] != NOBODY for value in given):
            return False  # made anew in a loop of who gives it
        path = path_of(self.function, container)
        stores = [*self._behind(edge, op.SET_ITEM)]
        keeping = self.function.known("puts", "extends", "puts-if-absent")
        stores += [one for one in self._behind(edge, op.INVOKE) if self.function.text(one[4]) in keeping]
        receivers = [store[2] if store[0] == op.SET_ITEM else store[3] for store in stores]
        return any(one == container or (path and path_of(self.function, one) == path) for one in receivers)

    def _behind(self, edge: int, opcode: int) -> Iterator[Instruction]:
        """The instructions that only this edge leads to."""
        for one in self.function.by_opcode[opcode]:
            if self.graph.dominates(edge, self.home[one]):
                yield one


def _is_none(function: Function, register: int) -> bool:
    one = source_of(function, register)
    return one is not None and one[0] == op.CONST and function.unit.ir.constants[one[3]] is None


def _constant(function: Function, register: int) -> bool | None:
    """The truth of a constant; None for what is none."""
    one = source_of(function, register)
    return bool(function.unit.ir.constants[one[3]]) if one is not None and one[0] == op.CONST else None
