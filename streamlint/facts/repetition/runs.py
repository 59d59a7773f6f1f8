"""Loops over whole runs: each round trains something from the beginning, and what stands beside that training happens once for each run.

Two signs. What a round steps by itself is stepped with optimizers that the round has made: none of them lives on in the next one. Or a
round only goes backward by itself, and trains in a loop of its own or of what it calls: it looks at gradients of what it has trained.
A round that takes derivatives may do so to train, as natural gradients do: there the loop inside has to step what the round has made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, LibraryObject
from streamlint.facts.files.autograd import given_for
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import DERIVES
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop, led_to

_DEEPEST = 8
_WHOLE = frozenset({"backward", "optimizer"})
_MADE = (LibraryObject, Instance)
_PARTS = frozenset({op.ATTR, op.ITEM, op.UNPACK, op.COPY, op.CAST})
Roots = frozenset[tuple[int, int]]
"""What steps an optimizer: registers, each with the one from which it was taken as an attribute, an element or a part."""


class Bodies(Protocol):
    """The call graph of a program, what makes progress in it, and the control flow of its functions."""

    graph: CallGraph
    rounds: Rounds
    reaching: frozenset[Function]

    def body(self, function: Function) -> Body:
        """The control flow of a function."""


class Runs:
    """Answers for the loops of a program."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self._own: dict[Function, dict[int, tuple[frozenset[str], tuple[Roots, ...]]]] = {}
        self._trains: dict[Function, bool] = {}

    def is_of_runs(self, function: Function, index: int) -> bool:
        """Whether each round of a loop that makes progress is a run of its own."""
        does, steps = self._levels(function, _DEEPEST).get(index, (frozenset(), ()))
        loop = self.bodies.body(function).graph.loops[index]
        if steps:
            return all(self._is_made_in(function, loop.body, roots) for roots in steps)
        if DERIVES in does:
            inner = [roots for _, stepped in self._inside(function, loop) for roots in stepped]
            return bool(inner) and all(self._is_made_in(function, loop.body, roots) for roots in inner)
        return does == {"backward"} and self._has_run(function, loop)

    def is_run(self, function: Function) -> bool:
        """Whether each call of a function is a run of its own: outside of loops it steps what it has made itself."""
        _, steps = self._levels(function, _DEEPEST).get(NOBODY, (frozenset(), ()))
        return bool(steps) and all(self._is_made_in(function, function.control.order, roots) for roots in steps)

    # --- what is done by itself

    def _levels(self, function: Function, depth: int) -> dict[int, tuple[frozenset[str], tuple[Roots, ...]]]:
        """By loop, or NOBODY: what a function does by itself, and of what it takes the optimizers that it steps."""
        known = self._own.get(function)
        if known is not None or depth == 0:
            return known or {}
        self._own[function] = {}
        found: dict[int, tuple[frozenset[str], tuple[Roots, ...]]] = {}
        for one, does, roots in self._done(function, depth):
            index = self.bodies.body(function).loop_of(one)
            before = found.get(index, (frozenset[str](), ()))
            found[index] = (before[0] | does, (*before[1], *roots))
        self._own[function] = found
        return found

    def _done(self, function: Function, depth: int) -> Iterator[tuple[Instruction, frozenset[str], tuple[Roots, ...]]]:
        for each in self.bodies.rounds.of(function):
            is_step = each.row.does == "optimizer"
            yield each.instruction, frozenset({each.row.does}), (_roots(function, op.reads(each.instruction)),) if is_step else ()
        for edge in self.bodies.graph.calls(function).edges:
            if edge.is_followed and edge.callee in self.bodies.reaching:
                does, steps = self._levels(edge.callee, depth - 1).get(NOBODY, (frozenset(), ()))
                given = tuple(self._given(function, edge.instruction, edge.callee, roots) for roots in steps)
                yield edge.instruction, does, given

    def _given(self, function: Function, call: Instruction, callee: Function, roots: Roots) -> Roots:
        """What a call gives for the parameters among some registers of what it calls."""
        found: list[int] = []
        for one in (callee.definitions[root] for _, root in roots) if call[0] in (op.CALL, op.INVOKE) else ():
            if one is None or one[0] != op.PARAM:
                continue
            is_receiver = one[3] == 0 and callee.has_receiver and call[0] == op.INVOKE
            given = call[3] if is_receiver else given_for(function, call, callee, one[3])
            found += [given] if given is not None else []
        return _roots(function, found)

    # --- optimizers of the round

    def _is_made_in(self, function: Function, blocks: Collection[int], roots: Roots) -> bool:
        """Whether one of some registers gets an optimizer, or what holds one, that these blocks have made."""
        home = self.bodies.body(function).home
        for register, root in roots:
            one = function.definitions[root]
            if one is None or home.get(one) not in blocks or one[0] not in (op.CALL, op.INVOKE):
                continue
            node = self.bodies.graph.facts.values(function, register)
            made = [site for value in node.values for site in list(node.trace(value))[-1:] if isinstance(value, _MADE)]
            inside = self._called(function, blocks) if made else ()
            if any(home.get(site.instruction) in blocks if site.function is function else site.function in inside for site in made):
                return True
        return False

    # --- what is trained inside

    def _inside(self, function: Function, loop: Loop) -> Iterator[tuple[frozenset[str], tuple[Roots, ...]]]:
        """What the loops in a loop do by themselves, and of what they take the optimizers that they step."""
        loops = self.bodies.body(function).graph.loops
        for index, level in self._levels(function, _DEEPEST).items():
            if index != NOBODY and loops[index].body < loop.body:
                yield level

    def _has_run(self, function: Function, loop: Loop) -> bool:
        """Whether the rounds of a loop train in a loop, of their own or of what they call."""
        if any(does >= _WHOLE for does, _ in self._inside(function, loop)):
            return True
        return any(self._trains_inside(callee) for callee in self._called(function, loop.body))

    def _trains_inside(self, function: Function) -> bool:
        if function not in self._trains:
            self._trains[function] = any(
                index != NOBODY and does >= _WHOLE for index, (does, _) in self._levels(function, _DEEPEST).items()
            )
        return self._trains[function]

    def _called(self, function: Function, blocks: Collection[int]) -> set[Function]:
        """The functions that come to a step, and that blocks of a function call, by themselves or by others."""
        home, graph = self.bodies.body(function).home, self.bodies.graph
        called = [edge.callee for edge in graph.calls(function).edges if edge.is_followed and home[edge.instruction] in blocks]
        return set(led_to(called, self._callees))

    def _callees(self, function: Function) -> list[Function]:
        """What a function calls that comes to a step."""
        edges = self.bodies.graph.calls(function).edges if function in self.bodies.reaching else ()
        return [edge.callee for edge in edges if edge.is_followed]


def _roots(function: Function, registers: Iterable[int]) -> Roots:
    found = set[tuple[int, int]]()
    for register in registers:
        root, one = register, function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in _PARTS:
            root = one[-1] if one[0] == op.CAST else one[3]
            one = function.definitions[root] if root >= 0 else None
        found.update([(register, root)] if one is not None else [])
    return frozenset(found)
