"""What a backward pass runs of a program: the ``backward`` of functions of autograd that were applied, and hooks of gradients.

``Function.apply`` runs ``forward``, with the context before its arguments. A round that trains, and applies the function, runs its
``backward`` too; so it does with a hook that it registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.files.autograd import is_of_autograd
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


class Behind(NamedTuple):
    """A function that a backward pass runs because of an instruction, and the first of its parameters that holds gradients."""

    instruction: Instruction
    function: Function
    first: int


class Gradients:
    """Finds what backward passes run of the program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts
        self._found: dict[Function, tuple[Behind, ...]] = {}

    def behind(self, function: Function) -> tuple[Behind, ...]:
        """What backward passes run because of the instructions of a function."""
        found = self._found.get(function)
        if found is None:
            found = self._found[function] = (*self._applied(function), *self._hooks(function))
        return found

    def given(self, functions: Iterable[Function]) -> Iterator[tuple[Function, int]]:
        """The functions that are called with gradients, each with the first parameter that holds some: those found, and among others."""
        yield from dict.fromkeys((one.function, one.first) for each in self._found.values() for one in each)
        yield from ((one, 1) for one in functions if one.code.name == "backward" and is_of_autograd(self.facts.hierarchy, one))

    def _applied(self, function: Function) -> Iterator[Behind]:
        for edge in self.graph.calls(function).edges:
            owner = edge.callee.owner
            if owner is None or edge.callee.code.name != "forward" or not is_of_autograd(self.facts.hierarchy, edge.callee):
                continue
            found = self.facts.hierarchy.lookup(owner, "backward")
            for one in found[1] if found is not None else ():
                yield Behind(edge.instruction, one, 1)

    def _hooks(self, function: Function) -> Iterator[Behind]:
        hooks = function.known("hooks-gradients", "hooks-module")
        for one in function.by_opcode[op.INVOKE] if not hooks.isdisjoint(function.called_names) else ():
            name = function.text(one[4])
            if name not in hooks:
                continue
            for register in one[6:]:
                for value in self.facts.functions_in(self.facts.values(function, register).values):
                    first = 1 if value.function.has_receiver else 0
                    yield Behind(one, value.function, first + (name in function.known("hooks-module")))
