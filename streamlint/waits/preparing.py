"""Instructions that compute the value for which a wait waits: behind them the host has as much to wait for as before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.quiet import Quiet
from streamlint.waits.wait import Wait


class Preparing:
    """Finds what computes the values of the waits of functions."""

    def __init__(self, quiet: Quiet, waits: Callable[[Function], Iterable[Wait]]) -> None:
        self.quiet = quiet
        self._waits = waits
        self._prepares: dict[Function, dict[Instruction, set[Wait]]] = {}

    def of(self, function: Function) -> dict[Instruction, set[Wait]]:
        """The instructions that compute what a wait reads: arithmetic, conversions, and questions about numbers."""
        if function not in self._prepares:
            found: dict[Instruction, set[Wait]] = defaultdict(set)
            for wait in self._waits(function):
                for one in (*self.conversions(wait), *_computed(wait)):
                    found[one].add(wait)
            self._prepares[function] = found
        return self._prepares[function]

    def are_for(self, function: Function, instructions: Iterable[Instruction], waits: Iterable[Wait]) -> bool:
        """Whether all of some instructions compute what each of some waits reads."""
        prepares = self.of(function)
        return all(wait in prepares[one] for one in instructions for wait in waits)

    def conversions(self, wait: Wait) -> Iterable[Instruction]:
        """The conversions of the value that is read: a copy takes as long as a conversion and a copy."""
        register = wait.value
        while (one := wait.function.definitions[register] if register >= 0 else None) is not None and one[0] == op.INVOKE:
            calls = self.quiet.library(wait.function, one)
            rows = [call.row for call in calls if call.row is not None]
            is_cast = bool(rows) and len(rows) == len(calls) and all(row.get("cast") for row in rows)
            if is_cast:
                yield one
            elif not rows or any(row.effect not in ("view", "same") for row in rows):
                return
            register = one[3]


def _computed(wait: Wait) -> Iterator[Instruction]:
    """The arithmetic, comparisons and summaries that the value of a wait is computed by."""
    function = wait.function
    found = behind(function, [wait.value], lambda one: op.reads(one) if _computes(function, one) else ())
    return (one for one in found if _computes(function, one))


def _computes(function: Function, one: Instruction) -> bool:
    """Whether an instruction computes element by element, or a summary of all elements."""
    if one[0] in (op.BINARY, op.UNARY, op.COMPARE):
        return function.text(one[3]) != "@"
    return one[0] in (op.CALL, op.INVOKE) and last_name(function, one) in function.known("summary", "elementwise")
