"""Calls that are made where no gradients are kept (``with torch.no_grad()``), of functions that go backward from what they compute.

Nothing can go backward there: such a call takes another way through the function, and is no step of training.
"""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, passed_on
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.decoding import keeps_no_gradients
from streamlint.facts.repetition.effects import DERIVES
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until

_BACKWARD = frozenset({"backward", DERIVES})
_COMPUTING = frozenset({op.CALL, op.INVOKE, op.BINARY, op.UNARY, op.INPLACE})
_DEEPEST = 6


class Graphless:
    """Answers for the calls of a program. ``leads`` tells of a function whether calls lead from it to a round's call: what others call is
    not solved."""

    def __init__(self, graph: CallGraph, rounds: Rounds, leads: Callable[[Function], bool]) -> None:
        self.graph = graph
        self.rounds = rounds
        self.leads = leads
        self._scopes: dict[Function, frozenset[Instruction]] = {}
        self._goes: dict[Function, bool] = {}

    def rules_out(self, function: Function, call: Instruction, callee: Function) -> bool:
        """Whether a call cannot go the way of a function that goes backward."""
        return not callee.is_cpp and self._is_without(function, call) and self._needs_gradients(callee, _DEEPEST)

    def _is_without(self, function: Function, call: Instruction) -> bool:
        """Whether no gradients are kept where a call is made, as the function itself says."""
        if function not in self._scopes:
            self._scopes[function] = self._inside(function)
        return call in self._scopes[function] or (keeps_no_gradients(self.graph.facts, function) and not self._turns_on(function))

    def _inside(self, function: Function) -> frozenset[Instruction]:
        """The instructions of a function that stand in scopes without gradients, and in none that keeps them again."""
        found: set[Instruction] = set()
        for one in function.by_opcode[op.ENTER]:
            if self._says(function, one, "without_gradients"):
                found |= _between(function, one)
        for one in function.by_opcode[op.ENTER] if found else ():
            if self._says(function, one, "with_gradients"):
                found -= _between(function, one)
        return frozenset(found)

    def _says(self, function: Function, entered: Instruction, key: str) -> bool:
        """Whether a row says something of the call that gives a scope."""
        made = function.definitions[entered[3]] if entered[3] >= 0 else None
        return made is not None and any(
            call.instruction is made and call.row is not None and call.row.get(key) for call in self.graph.calls(function).libraries
        )

    def _turns_on(self, function: Function) -> bool:
        """Whether a function has gradients kept anywhere in it."""
        return any(call.row is not None and call.row.get("with_gradients") for call in self.graph.calls(function).libraries)

    def _needs_gradients(self, function: Function, depth: int) -> bool:
        """Whether a function, or one that it calls, goes backward from what it computes itself, and none of them has gradients kept."""
        known = self._goes.get(function)
        if known is not None or depth == 0 or not self.leads(function):
            return bool(known)
        self._goes[function] = False
        if self._turns_on(function):
            return False
        found = any(one.row.does in _BACKWARD and _computes(function, one.instruction) for one in self.rounds.of(function))
        found = found or any(
            edge.is_followed and edge.callee is not function and self._needs_gradients(edge.callee, depth - 1)
            for edge in self.graph.calls(function).edges
        )
        self._goes[function] = found
        return found


def _between(function: Function, entered: Instruction) -> set[Instruction]:
    """The instructions behind the beginning of a scope, up to its end."""
    block, index = function.homes[entered]

    def is_end(one: Instruction) -> bool:
        return one[0] == op.EXIT and one[3] == entered[3]

    return set(until(function.code, (block, index + 1), is_end, function.control.successors))


def _computes(function: Function, backward: Instruction) -> bool:
    """Whether what a call goes backward from was computed by the function that calls it."""
    return any(one[0] in _COMPUTING for one in behind(function, op.reads(backward), passed_on))
