"""C++: which of its results a call gets, where what it hands over decides: ``make_gate(Consumer::host)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast, unnegated
from streamlint.facts.code.objects import Constant, External, Object
from streamlint.facts.cpp.cpp_calls import CppCalls
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

_NAMED = frozenset({op.CONST, op.NAME})


class Guard(NamedTuple):
    """What leads to a result: a parameter that is, or is not, the same as something, or that is true where there is no ``other``. It has
    a number and a register."""

    number: int
    parameter: int
    other: int
    holds: bool


class Result(NamedTuple):
    """A register that a function gives back, and all that leads there, as far as parameters decide it."""

    register: int
    guards: tuple[Guard, ...]


class CppResults(CppCalls):
    """Value flow of what calls of C++ give back."""

    def dependence(self, function: Function) -> frozenset[int]:
        found = super().dependence(function)
        return found.union(guard.number for result in self._results(function) for guard in result.guards)

    def _join(self, frame: Frame, opcode: int, node: Node) -> None:
        results = self._results(frame.function) if opcode == op.RETURN and frame.arguments is not None else ()
        for register, guards in results:
            self._where(frame, guards, self._edge(frame, register, node))
        if not results:
            super()._join(frame, opcode, node)

    def _edge(self, frame: Frame, register: int, node: Node) -> Callable[[], None]:
        return lambda: self.solver.edge(self.register(frame, register), node)

    def _where(self, frame: Frame, guards: tuple[Guard, ...], action: Callable[[], None]) -> None:
        """Run an action where what arrives at parameters may lead to it, or nothing arrives that says otherwise."""
        if not guards:
            action()
            return
        guard = guards[0]
        nodes = [self.register(frame, each) for each in (guard.parameter, guard.other) if each >= 0]
        passed: list[Guard] = []  # each guard leads on once, however many values pass it

        def onward() -> None:
            if not passed:
                passed.append(guard)
                self._where(frame, guards[1:], action)

        def arrived(value: Object) -> None:
            if guard.other >= 0:
                self.solver.when(nodes[1], lambda other: compared(self._is_same(frame.function, value, other)))
            else:
                compared(bool(value.value) if isinstance(value, Constant) else None)

        def compared(truth: bool | None) -> None:
            if truth is None or truth == guard.holds:
                onward()

        self.solver.when(nodes[0], arrived)
        self.solver.at_last(lambda: None if all(node.values for node in nodes) else onward())

    def _is_same(self, function: Function, value: Object, other: Object) -> bool | None:
        """Whether two constants, or two enumerators of one type, are the same; None where that is not known."""
        if isinstance(value, Constant) and isinstance(other, Constant):
            pair = value.value, other.value
            return not any(pair) if None in pair else pair[0] == pair[1]  # ``0`` is ``nullptr``
        if not isinstance(value, External) or not isinstance(other, External):
            return None
        if value == other:
            return True
        (head, _, _), (own, _, _) = value.name.rpartition("::"), other.name.rpartition("::")
        is_one_type = bool(head) and head == own
        return False if is_one_type and self.program.cpp.find_class(function.unit, scope_of(function), head) is None else None

    @memoized
    def _results(self, function: Function) -> tuple[Result, ...]:
        """What a function gives back; nothing where no parameter decides it."""
        ends = [one for one in function.by_opcode[op.RETURN] if one[2] != op.NONE] if function.is_cpp else []
        if len(ends) == 1 and not _is_choice(function, ends[0]):
            return ()
        found = [result for one in ends for result in _given_back(function, one)]
        return tuple(found) if any(result.guards for result in found) else ()


def _given_back(function: Function, end: Instruction) -> Iterator[Result]:
    """What an end of a function gives back: each way of a choice by itself."""
    made = function.definitions[end[2]]
    if made is None or not _is_choice(function, end):
        yield Result(end[2], tuple(_guards(function, function.blocks[end])))
        return
    joined = function.blocks[made]
    for register, before in zip(made[3:], function.phi_order[joined], strict=False):
        yield Result(register, (*_asked(function, before, joined), *_guards(function, before)))


def _is_choice(function: Function, end: Instruction) -> bool:
    made = function.definitions[end[2]]
    return made is not None and made[0] == op.PHI


def _guards(function: Function, block: int) -> Iterator[Guard]:
    """What branches ask of parameters that lead to a block, as long as one of them alone does."""
    seen = {block}
    while len(edges := function.control.controlled_by[block]) == 1:
        guard, after = edges[0]
        yield from _asked(function, guard, after)
        if guard in seen:
            return
        seen.add(guard)
        block = guard


def _asked(function: Function, block: int, after: int) -> Iterator[Guard]:
    """What the branch at the end of a block asks of a parameter where it leads on to another one."""
    end = function.code.blocks[block][-1]
    if end[0] != op.BRANCH or end[3] == end[4]:
        return
    register, is_turned = unnegated(function, end[2])
    holds, one = (after == end[3]) != is_turned, function.definitions[register]
    if (parameter := _parameter(function, register)) is not None:
        yield Guard(parameter[3], parameter[2], op.NONE, holds)
    elif one is not None and one[0] == op.COMPARE and function.text(one[3]) in ("==", "!="):
        holds = holds == (function.text(one[3]) == "==")
        for asked, other in ((one[4], one[5]), (one[5], one[4])):
            parameter, made = _parameter(function, asked), function.definitions[uncast(function, other)]
            if parameter is not None and made is not None and made[0] in _NAMED:
                yield Guard(parameter[3], parameter[2], made[2], holds)


def _parameter(function: Function, register: int) -> Instruction | None:
    """The parameter that a register holds as it was given, if it is no receiver."""
    one = function.definitions[uncast(function, register)] if register >= 0 else None
    return one if one is not None and one[0] == op.PARAM and not (one[3] == 0 and function.has_receiver) else None
