"""Functions that a call hands over to be called: which one a path enters, and who has passed it over."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Unknown
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.waits.operands import operand_of

_DEEPEST = 4
"""Calls that hand one function on."""
MOST_GIVING = 12
"""Calls that hand over one function: where more do, a path goes up as from any function."""


class CalledArguments:
    """Which function an argument is that a function calls."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._called: dict[tuple[Function, Instruction], int | None] = {}

    def called(self, function: Function, one: Instruction) -> int | None:
        """The parameter that a call calls; None of any other call."""
        if one[0] != op.CALL:
            return None
        key = (function, one)
        if key not in self._called:
            self._called[key] = self._parameter(function, one[3])
        return self._called[key]

    def _parameter(self, function: Function, register: int) -> int | None:
        """The parameter that a register holds, also as C++ casts it or hands it on."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None:
            if one[0] == op.PARAM:
                return one[3] if one[3] or not function.has_receiver else None
            if one[0] in COPIES:
                register = one[COPIES[one[0]]]
            elif one[0] == op.CALL and len(one) == 6 and function.is_cpp and self._is_forwarding(function, one):
                register = one[5]
            else:
                return None
            one = function.definitions[register] if register >= 0 else None
        return None

    def _is_forwarding(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives its argument: ``std::forward<F>(f)``."""
        named = function.definitions[one[3]] if one[3] >= 0 else None
        return named is not None and named[0] == op.NAME and function.text(named[3]) in self.facts.cpp_models.marked("gives-argument")

    def may_run(self, frame: Frame, one: Instruction, callee: Function) -> bool:
        """Whether a call of an argument may run a function, as the calls of a path have passed it over."""
        index = self.called(frame.function, one)
        while index is not None and frame.caller is not None and frame.call is not None:
            register = _given(frame.caller.function, frame.call, frame.function, index)
            if register is None:
                return True
            index = self._parameter(frame.caller.function, register)
            frame = frame.caller
            if index is None:
                return self._may_be(frame.function, register, callee)
        return True

    def may_give(self, outer: Function, above: Instruction, holder: Function, call: Instruction, callee: Function) -> bool:
        """Whether a call of a function may hand over what another one calls in it."""
        index = self.called(holder, call)
        register = _given(outer, above, holder, index) if index is not None else None
        return register is None or self._may_be(outer, register, callee)

    def _may_be(self, function: Function, register: int, callee: Function) -> bool:
        """Whether a register may hold a function: it does, or something that is no plain function."""
        values = list(self.facts.values(function, register).values)
        known = {value.function for value in values if isinstance(value, FunctionObject)}
        known |= {value.method.function for value in values if isinstance(value, BoundMethod)}
        others = any(not isinstance(value, FunctionObject | BoundMethod | Unknown) for value in values)
        return others or not known or callee in known

    def above(self, caller: Function, call: Instruction, closure: Function) -> list[Frame]:
        """Where a caller of a closure that it was passed stands: in the calls that have passed it over, from the function around it."""
        index = self.called(caller, call) if closure.parent is not None and closure.code.kind != "module" else None
        frames = list(self._above(caller, index, closure, _DEEPEST)) if index is not None else []
        return frames if len(frames) <= MOST_GIVING else []

    def _above(self, holder: Function, index: int, closure: Function, depth: int) -> Iterator[Frame]:
        for outer, call in self.facts.call_places(holder) if depth else ():
            register = _given(outer, call, holder, index)
            if register is None or outer is holder:
                continue
            parameter = self._parameter(outer, register)
            if parameter is not None:
                yield from (
                    Frame(holder, each, call, each.depth + 1)
                    for each in self._above(outer, parameter, closure, depth - 1)
                    if not each.runs(holder)
                )
            elif outer is closure.parent and self._holds(outer, register, closure):
                yield Frame(holder, Frame(outer, None, None, 0), call, 1)

    def _holds(self, function: Function, register: int, closure: Function) -> bool:
        values = self.facts.values(function, register).values
        return any(isinstance(value, FunctionObject) and value.function is closure for value in values)


def _given(caller: Function, call: Instruction, callee: Function, index: int) -> int | None:
    """The register of the argument of a call; None where it is not known."""
    register = operand_of(caller, call, callee, index) if call[0] in (op.CALL, op.INVOKE) else None
    return register if register is not None and register >= 0 else None
