"""Functions that are registered before a training begins, and that its rounds run: hooks of modules, of gradients and of optimizers.

A step runs the hooks of the optimizer that is stepped, a backward pass those of the tensors and modules that the round computes with, and
the call of a module its own. Whose hook it is, the objects say: what the receiver of the registration is, or is a part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Instance, LibraryObject, Object, Site
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait

_BACKWARD: Final[tuple[Trait, ...]] = ("hooks-gradients", "hooks-leaf", "hooks-module")
_KINDS: Final[dict[str, tuple[Trait, ...]]] = {"backward": _BACKWARD, "optimizer": ("hooks-step",), "forward": ("hooks-forward",)}
Blocks = tuple[Function, frozenset[int]]
"""A function, and its blocks that a round runs."""
Made = tuple[Object, Site]
"""An object, and where it comes from."""
_PARTS = (op.NEXT, op.ITER, op.ITEM, op.UNPACK, op.ATTR, op.INVOKE, op.COPY)


class Hook(NamedTuple):
    """A function that is registered; ``first`` is the first of its parameters that holds gradients."""

    kind: str
    function: Function
    first: int
    of: frozenset[Made]


class Hooks:
    """Finds the hooks of a program, and what runs them."""

    def __init__(self, graph: CallGraph, rounds: Rounds) -> None:
        self.graph = graph
        self.facts = graph.facts
        self.rounds = rounds

    def run_by(self, round_of: list[Blocks]) -> Iterator[tuple[Instruction, Hook]]:
        """The hooks that the last of some functions runs, each with the call that does; the others called it, the outermost first."""
        if not self.registered:
            return
        function, _ = round_of[-1]
        for one in self.rounds.of(function):
            kind = one.row.does
            if kind in ("backward", "optimizer"):
                objects = self._parts_of(function, one.instruction) if kind == "optimizer" else self._modules(round_of)
                yield from ((one.instruction, hook) for hook in self.registered if hook.kind == kind and hook.of & objects)
        forward = [hook for hook in self.registered if hook.kind == "forward"]
        for call in function.by_opcode[op.CALL] if forward else ():
            called = self._objects(function, [call[3]])
            yield from ((call, hook) for hook in forward if hook.of & called)

    def with_gradients(self) -> Iterator[tuple[Function, int]]:
        """The hooks that are called with gradients, each with the first parameter that holds some."""
        yield from ((hook.function, hook.first) for hook in self.registered if hook.kind == "backward")

    @cached_property
    def registered(self) -> tuple[Hook, ...]:
        """The hooks of the program whose objects are known."""
        models = self.facts.models
        names = models.known(*(trait for traits in _KINDS.values() for trait in traits))
        units = dict.fromkeys(unit for name in sorted(names) for unit in self.facts.program.mentioning(name) if not unit.is_cpp)
        functions = (function for unit in units for function in unit.functions if not names.isdisjoint(function.called_names))
        return tuple(hook for function in functions for hook in self._of(function))

    def _of(self, function: Function) -> Iterator[Hook]:
        for kind, traits in _KINDS.items():
            names = function.known(*traits)
            for one in function.by_opcode[op.INVOKE]:
                name = function.text(one[4])
                objects = self._parts_of(function, one) if name in names and not self._is_removed(function, one) else frozenset[Made]()
                for register in one[6:] if objects else ():
                    for value in self.facts.functions_in(self.facts.values(function, register).values):
                        first = (1 if value.function.has_receiver else 0) + (name in function.known("hooks-module"))
                        yield Hook(kind, value.function, first, objects)

    def _is_removed(self, function: Function, one: Instruction) -> bool:
        """Whether a hook is removed again where it was registered, say behind the one pass that it is for."""
        return any(use[0] == op.INVOKE and use[3] == one[2] and function.text(use[4]) == "remove" for use in function.uses[one[2]])

    def _parts_of(self, function: Function, one: Instruction) -> frozenset[Made]:
        """The objects that the receiver of a call is, or is a part of."""
        steps = behind(function, [one[3]], lambda each: each[3:4] if each[0] in _PARTS else ())
        return self._objects(function, [one[3], *(each[2] for each in steps)])

    def _modules(self, round_of: list[Blocks]) -> frozenset[Made]:
        """What a round calls of modules and other objects."""
        found: set[Made] = set()
        for function, blocks in round_of:
            homes = function.blocks
            found |= self._objects(function, [call[3] for call in function.by_opcode[op.CALL] if homes[call] in blocks])
        return frozenset(found)

    def _objects(self, function: Function, registers: Iterable[int]) -> frozenset[Made]:
        """The objects that registers hold: each with the place that it comes from, as those of one kind are one for the facts."""
        nodes = [self.facts.values(function, register) for register in registers]
        held = ((node, value) for node in nodes for value in list(node.values) if isinstance(value, Instance | LibraryObject))
        return frozenset((value, site) for node, value in held for site in list(node.trace(value))[-1:])
