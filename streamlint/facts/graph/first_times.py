"""What happens once: a branch whose own code keeps it from being taken again, and what is set, kept or put behind an edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.counters import is_counter
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.code.objects import Container, Object
from streamlint.facts.graph.aliases import SELF, path_of, source_of
from streamlint.facts.graph.facts import Facts
from streamlint.facts.graph.kept_counts import counts_in_attribute
from streamlint.facts.values.kept_entries import differs
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

Settles = Callable[[Function, int], bool]
"""Whether a register of a function holds a value with which a condition is decided from then on."""


class FirstTimes:
    """Answers for the branches of one function."""

    def __init__(self, facts: Facts, function: Function) -> None:
        self.facts = facts
        self.function = function
        self.graph = function.control
        self.home = function.blocks

    def _definition(self, register: int) -> Instruction | None:
        return self.function.definitions[register] if register >= 0 else None

    def _operator(self, one: Instruction) -> str:
        return self.function.text(one[3])

    def _values(self, register: int) -> list[Object]:
        return list(self.facts.values(self.function, register).values)

    def is_counter(self, register: int) -> bool:
        """Whether a register counts rounds of a loop of the function, of the program, or of a framework."""
        return is_counter(self.function, register, known=self._is_kept_count)

    def _is_kept_count(self, one: Instruction) -> bool:
        """Whether an instruction reads what counts the rounds of a loop elsewhere."""
        if one[0] == op.PARAM:
            return self.facts.frameworks.is_number(self.function, self.function.code.parameters[one[3]].name)
        return one[0] == op.ATTR and counts_in_attribute(self.facts, self.function, one)

    def happens_once(self, register: int, edge: int, when_false: bool) -> bool:
        """Whether what stands behind an edge changes the condition so that the edge is not taken again."""
        one = self._definition(register)
        if one is None:
            return False
        is_none = one[0] == op.COMPARE and self._operator(one) in ("is", "is not", "==", "!=") and gives_none(self.function, one[5])
        if is_none:
            if (self._operator(one) in ("is", "==")) == when_false:
                return False
            return self._is_set(one[4], edge, lambda function, value: not gives_none(function, value)) or self._is_kept(one[4], edge)
        if one[0] == op.COMPARE and self._operator(one) in ("==", "!="):
            return (self._operator(one) == "==") == when_false and any(
                self._is_made_alike(first, second, edge) for first, second in ((one[4], one[5]), (one[5], one[4]))
            )
        if one[0] == op.CALL and len(one) == 7 and self.function.dotted(one[3]) == "hasattr" and when_false:
            return any(self.function.text(store[3]) == self.function.constant(one[6]) for store in self._behind(edge, op.SET_ATTR))
        if when_false and self._is_kept(register, edge):
            return True
        return self._is_set(register, edge, lambda function, value: constant_truth(function, value) is when_false)

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
        receiver, _, name = path_of(self.function, register).rpartition(".")
        return self._is_set_behind(register, edge, settles) and not (receiver == SELF and self._is_reset(name, settles))

    def _is_set_behind(self, register: int, edge: int, settles: Settles) -> bool:
        """The same, whatever other methods of the class set it to."""
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
        return any(settles(self.function, value) for value in stored)

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
            if self.is_behind(edge, one) and settles(self.function, value):
                return True
            waiting += one[3:] if one[0] == op.PHI else ()
        return False

    def _is_made_anew(self, container: int, edge: int) -> bool:
        """Whether a container is made in the loops around an edge, or in a loop of who gives it."""
        made = self._definition(container)
        if made is not None and made[0] in (op.DICT, op.BUILD):
            return all(self.home[made] in loop.body for loop in self.graph.loops if edge in loop.body)
        values = self._values(container) if made is not None and made[0] == op.PARAM else ()
        given = ((value.frame.function, value.instruction) for value in values if isinstance(value, Container))
        return any(function.is_repeated(one) for function, one in given)

    def _is_put_into(self, container: int, edge: int) -> bool:
        """Whether an element is put behind an edge into a container that outlives the round."""
        if self._is_made_anew(container, edge):
            return False
        path = path_of(self.function, container)
        stores = [*self._behind(edge, op.SET_ITEM)]
        keeping = self.function.known("puts", "extends", "puts-if-absent")
        stores += [one for one in self._behind(edge, op.INVOKE) if self.function.text(one[4]) in keeping]
        receivers = [store[2] if store[0] == op.SET_ITEM else store[3] for store in stores]
        return any(one == container or (path and path_of(self.function, one) == path) for one in receivers)

    def _behind(self, edge: int, opcode: int) -> Iterator[Instruction]:
        """The instructions that only this edge leads to."""
        yield from (one for one in self.function.by_opcode[opcode] if self.is_behind(edge, one))

    def is_behind(self, edge: int, one: Instruction) -> bool:
        """Whether only this edge leads to an instruction; none does to what is no branch."""
        return edge >= 0 and self.graph.dominates(edge, self.home[one])


def gives_none(function: Function, register: int) -> bool:
    one = source_of(function, register)
    return one is not None and one[0] == op.CONST and function.unit.ir.constants[one[3]] is None


def constant_truth(function: Function, register: int) -> bool | None:
    """The truth of a constant; None for what is none."""
    one = source_of(function, register)
    return bool(function.unit.ir.constants[one[3]]) if one is not None and one[0] == op.CONST else None
