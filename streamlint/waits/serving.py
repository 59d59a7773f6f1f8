"""Loops that serve: each round gives a batch, a file or a segment to a model, and none trains.

What a round fetches of a model's result for the host to keep could be fetched once for all rounds, or behind the next launch. A round that
compares the result with more of its batch evaluates: its numbers are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Container, Group, Memory, are_plain
from streamlint.facts.repetition.decoding import is_module
from streamlint.facts.repetition.effects import Effect, Effects
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.reaching import above
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop, led_to
from streamlint.waits.operands import argument_registers

_CALLS = (op.CALL, op.INVOKE)
_JOINS = frozenset({"zip", "enumerate", "dict", "len", "isinstance"})
"""Functions of the language that put values side by side, or only ask for their kind."""


class Serving:
    """Finds such loops of a program."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        self.graph = effects.graph
        self.facts = effects.facts
        self.functions: frozenset[Function] = frozenset()
        """Those from which calls lead to a model that is given something of a device."""
        self._models: dict[Function, tuple[Instruction, ...]] = {}
        self._gives: dict[Function, bool] = {}

    def find(self, functions: Iterable[Function]) -> None:
        """Find all functions that run a model."""
        self.functions = above(self.graph, [one for one in functions if self.models(one)])

    def loops(self, body: Body) -> Iterator[Loop]:
        """The loops of a function that run a model in each round, on what no round before has made."""
        running: dict[int, list[Instruction]] = {}
        for one in self.running(body.function):
            running.setdefault(body.counted[body.home[one]], []).append(one)
        for index, calls in running.items():
            if index != NOBODY and not self._goes_on(body, body.graph.loops[index], calls):
                yield body.graph.loops[index]

    def _goes_on(self, body: Body, loop: Loop, calls: list[Instruction]) -> bool:
        """Whether a model is given what rounds before have made, but for numbers that count or give a place."""
        function = body.function
        given = [register for one in calls for register in op.reads(one)[1:]]
        made = behind(function, given, lambda one: one[3:4] if one[0] == op.ITEM else op.reads(one))
        changing = (one for one in made if one[0] == op.PHI and body.home[one] == loop.header)
        return any(not are_plain(self.facts.values(function, one[2]).values) for one in changing)

    def running(self, function: Function) -> list[Instruction]:
        """The calls of a function that run a model, or lead to one."""
        edges = self.graph.calls(function).edges if function in self.functions else ()
        return [*self.models(function), *(one.instruction for one in edges if one.is_followed and one.callee in self.functions)]

    def models(self, function: Function) -> tuple[Instruction, ...]:
        """The calls of a function that run a model on something of a device."""
        found = self._models.get(function)
        if found is None:
            calls = (one for opcode in _CALLS for one in function.by_opcode[opcode])
            found = self._models[function] = tuple(one for one in calls if self._runs_model(function, one))
        return found

    def leads_to_model(self, function: Function, one: Instruction) -> bool:
        """Whether a call enters a function that gives what a model, or a value that is called, makes of its parameters."""
        edges = self.graph.calls(function).edges
        return any(edge.instruction == one and edge.is_followed and self._gives_computed(edge.callee) for edge in edges)

    def advances(self, body: Body) -> Iterator[int]:
        """The loops of a function in which an object goes on from a state that it keeps: a call enters a method that gives attributes what
        another call computes of them."""
        for edge in self.graph.calls(body.function).edges if body.graph.loops else ():
            index = body.counted[body.home[edge.instruction]]
            if index != NOBODY and edge.is_followed and self._keeps_state(edge.callee):
                yield index

    def _keeps_state(self, function: Function) -> bool:
        if function.owner is None or function.code.name == "__init__":
            return False
        reads = {one[2]: function.text(one[4]) for one in function.by_opcode[op.ATTR] if function.is_parameter(one[3])}
        for store in function.by_opcode[op.SET_ATTR]:
            name = function.text(store[3])
            made = behind(function, [store[4]], op.reads) if function.is_parameter(store[2]) else ()
            calls = [one for one in made if one[0] in _CALLS]
            if any(reads.get(each) == name for one in calls for _, each in argument_registers(function, one)):
                return bool(self.effects.of(function) & (Effect.LAUNCHES | Effect.ALLOCATES))
        return False

    def _gives_computed(self, function: Function) -> bool:
        found = self._gives.get(function)
        if found is None:
            self._gives[function] = False  # while it is asked
            given = [one[2] for one in function.by_opcode[op.RETURN] if one[2] >= 0]
            calls = (one for one in behind(function, given, op.reads) if one[0] in _CALLS and self._is_given(function, one))
            found = self._gives[function] = any(self._is_called(function, one) or self.leads_to_model(function, one) for one in calls)
        return found

    def _is_called(self, function: Function, one: Instruction) -> bool:
        """Whether a call is that of a module or a function that a caller passed, not a method of some value."""
        return (one[0] == op.CALL or function.is_parameter(one[3], 0)) and is_module(self.graph, function, one)

    def _is_given(self, function: Function, one: Instruction) -> bool:
        """Whether a call is given something that is computed from a parameter."""
        first = 1 if function.has_receiver else 0
        return any(made[0] == op.PARAM and made[3] >= first for made in behind(function, op.reads(one)[1:], op.reads))

    def _runs_model(self, function: Function, one: Instruction) -> bool:
        given = argument_registers(function, one)
        return any(self._is_of_device(function, register) for _, register in given) and is_module(self.graph, function, one)

    def _is_of_device(self, function: Function, register: int) -> bool:
        """Whether a register holds memory of a device, or a container that holds some."""
        values = list(self.facts.values(function, register).values) if register >= 0 else []
        values += [part for value in values if isinstance(value, (Container, Group)) for part in self.facts.elements(value)]
        return any(isinstance(value, Memory) and value.space == "device" for value in values)

    def rows(self, body: Body) -> Iterator[Loop]:
        """The loops of a function that go through what a model gave before, once for each call of the function."""
        function = body.function
        models = [one[2] for one in self.models(function) if body.graph.innermost[body.home[one]] == NOBODY]
        given = _onward(function, models, ()) if models else ()
        for loop in body.graph.loops if given else ():
            inside = [one for block in loop.body for one in function.code.blocks[block]]
            taken = [one for one in inside if one[0] in (op.ITEM, op.NEXT) and one[3] in given]
            if loop.parent == NOBODY and any(self._is_of_device(function, one[2]) for one in taken):
                yield loop

    # --- what evaluates

    def evaluates(self, hot: HotRegions, region: Region) -> bool:
        """Whether the rounds behind a region compare what a model gave with more of their data, or fetch that as well."""
        return any(self._compares(hot.body(one.function), one) for one in region.chain() if one.function in self.functions)

    def _compares(self, body: Body, region: Region) -> bool:
        function = body.function
        blocks = region.loop.body if region.loop is not None else region.blocks
        inside = [one for block in blocks for one in function.code.blocks[block]]
        given = {one[2] for one in inside if one[0] == op.NEXT} if region.loop is not None else self._tensors_given(function)
        models = [one for one in self.running(function) if body.home[one] in blocks and op.DEFINES[one[0]]]
        outputs = _onward(function, [one[2] for one in models], ())
        models = [one for one in models if outputs.isdisjoint(op.reads(one))]  # not the loss, which is given what a model gave
        taken = {one[2] for model in models for one in behind(function, op.reads(model), op.reads)}
        others = _onward(function, given, outputs) - taken
        return any(one not in models and _brings_together(function, one, outputs, others) for one in inside)

    def _tensors_given(self, function: Function) -> set[int]:
        """The registers of a function's parameters that hold tensors."""
        given = (one[2] for one in function.by_opcode[op.PARAM])
        return {one for one in given if any(isinstance(value, Memory) for value in self.facts.values(function, one).values)}


def _brings_together(function: Function, one: Instruction, outputs: set[int], others: set[int]) -> bool:
    """Whether an instruction takes what a model gave and other data of the round, or fetches that."""
    if one[0] not in (*_CALLS, op.COMPARE, op.BINARY):
        return False
    if function.invokes(one, "to-host") and one[3] in others:
        return True
    reads = set(op.reads(one))
    return bool(reads & outputs and reads & others) and not (one[0] == op.CALL and function.dotted(one[3]) in _JOINS)


def _onward(function: Function, registers: Iterable[int], without: Iterable[int]) -> set[int]:
    """The registers that are computed from some, these included, but not from others."""
    return set(led_to(registers, lambda each: [use[2] for use in function.uses.get(each, ()) if op.DEFINES[use[0]]], without))
