"""Loops whose rounds only launch kernels and wait for the device, of other libraries than PyTorch: time steps, sweeps of a solver.

The host needs nothing of such a round: it copies nothing back, and no test in it reads memory that the device may have written.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import DeviceValue
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.effects import Effect, Effects
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.reaching import above
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.models import Models, first_part, last_part
from streamlint.models.vocabulary import Selector
from streamlint.waits.operands import selected

OF_DEVICES = "synchronize"
"""The method of a device that waits for it."""
_READS = frozenset({op.ITEM, op.DEREF})
_STAYS = frozenset({"h2d", "d2d"})
_READS_NUMBERS = frozenset({"float", "int", "bool"})


class Launching:
    """Finds such loops of a program. Only files that name a device-wide wait are lowered, and those that lead there."""

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        self.graph = effects.graph
        self.facts = effects.facts
        self._names = self.facts.models.gathered(_waits)

    def functions(self) -> frozenset[Function]:
        """The functions from which calls lead to a device-wide wait."""
        units: dict[Unit, None] = {}
        for name, libraries in sorted(self._names.items()):
            for unit in self.facts.program.mentioning(name):
                if unit.is_cpp or any(self.effects.rounds.is_used_near(unit, library) for library in libraries):
                    units[unit] = None
        own = (one for unit in units for one in unit.functions if any(last_part(name) in self._names for name in one.called_names))
        return above(self.graph, (one for one in own if any(self._waits(one))))

    def is_beside(self, unit: Unit) -> bool:
        """Whether a file of Python uses a library with such a wait, or another file near it does."""
        libraries = {library for named in self._names.values() for library in named}
        return not unit.is_cpp and any(self.effects.rounds.is_used_near(unit, library) for library in libraries)

    def loops(self, body: Body, waiting: frozenset[Function]) -> Iterator[Loop]:
        """The loops of a function that wait for the device, launch work, and leave the rest to it."""
        calls = [*self._waits(body.function)]
        calls += [edge.instruction for edge in self.graph.calls(body.function).edges if edge.is_followed and edge.callee in waiting]
        for index in dict.fromkeys(body.loop_of(one) for one in calls):
            loop = body.graph.loops[index] if index != NOBODY else None
            if loop is not None and self.launches(body, loop) and not self._is_looked_at(body, loop):
                yield loop

    def _waits(self, function: Function) -> Iterator[Instruction]:
        calls = self.graph.calls(function)
        for call in calls.libraries:
            if call.row is not None and call.row.effect == "synchronize" and call.row.get("of") == "device" and call.row.library != "torch":
                yield call.instruction
        yield from (one for one in calls.unknown if waits_for_device(self.graph, function, one))

    def launches(self, body: Body, loop: Loop) -> bool:
        """Whether a round launches work, by itself or through what it calls."""
        function = body.function
        inside = [cause for cause in self.effects.own(function) if body.home[cause.instruction] in loop.body]
        if any(cause.effect & Effect.LAUNCHES for cause in inside) or any(
            body.home[one] in loop.body and self._is_kernel(function, one) for one in function.by_opcode[op.CALL]
        ):
            return True
        edges = (edge for edge in self.graph.calls(function).edges if edge.is_followed and body.home[edge.instruction] in loop.body)
        return any(self.effects.of(edge.callee) & Effect.LAUNCHES for edge in edges)

    def _is_kernel(self, function: Function, one: Instruction) -> bool:
        """Python: whether a call launches a kernel: ``kernel[grid, block](x)``, or an object that a library has compiled."""
        if function.is_cpp:
            return False
        called = function.definitions[one[3]]
        if called is not None and called[0] == op.ITEM:
            for kernel in self.facts.functions_in(self.facts.values(function, called[3]).values):
                meant = (self.facts.scopes.find(kernel.function.unit, name) for name in kernel.function.decorators if name)
                if any(isinstance(each, ExternalName) and each.name.startswith("numba.cuda.") for found in meant for each in found):
                    return True
        calls = (call for call in self.graph.calls(function).libraries if call.instruction == one)
        rows = (self.facts.models.call(call.name) for call in calls)
        return any(row is not None and row.effect == "launch" for row in rows)

    def _is_looked_at(self, body: Body, loop: Loop) -> bool:
        """Whether a round copies back what it made, or a test or a number in it reads memory."""
        function = body.function
        looks = Effect.COPIES | Effect.READS
        for cause in self.effects.own(function):
            if body.home[cause.instruction] in loop.body and cause.effect & looks and not self._stays(function, cause.instruction):
                return True
        for edge in self.graph.calls(function).edges:
            if edge.is_followed and body.home[edge.instruction] in loop.body and self.effects.of(edge.callee) & looks:
                return True
        numbers = [one for one in function.by_opcode[op.CALL] if not function.is_cpp and function.dotted(one[3]) in _READS_NUMBERS]
        asked = [register for one in numbers if body.home[one] in loop.body for register in one[5:]]
        asked += [one[2] for one in function.by_opcode[op.BRANCH] if body.home[one] in loop.body]
        return any(one[0] in _READS and body.home[one] in loop.body for one in behind(function, asked, op.reads))

    def _stays(self, function: Function, one: Instruction) -> bool:
        """Whether a copy goes to the device, or stays there."""
        rows = [(call.row, call.receiver is not None) for call in self.graph.calls(function).libraries if call.instruction == one]
        for row, is_method in rows:
            direction = row.get("direction") if row is not None and row.effect == "copy" else None
            if isinstance(direction, Selector):
                register = selected(function, one, direction, is_method)
                values = self.facts.values(function, register).values if register is not None else ()
                words = {self.facts.word_of(value) for value in values}
            else:
                words = {str(direction)}
            if not words or not words <= _STAYS:
                return False
        return bool(rows)


def waits_for_device(graph: CallGraph, function: Function, one: Instruction) -> bool:
    """Whether an unknown method is that of a device which waits for it: ``cupy.cuda.Device().synchronize()``."""
    if function.is_cpp or one[0] != op.INVOKE or function.text(one[4]) != OF_DEVICES:
        return False
    return any(isinstance(value, DeviceValue) for value in graph.facts.values(function, one[3]).values)


def _waits(models: Models) -> dict[str, set[str]]:
    """By the last parts of the names of device-wide waits: their libraries."""
    found: dict[str, set[str]] = {}
    for name, row in models.calls.items():
        if row.effect == "synchronize" and row.get("of") == "device" and row.library != "torch":
            found.setdefault(last_part(name), set()).add(first_part(name))
    return found
