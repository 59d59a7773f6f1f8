"""Code that measures or tests: waits are its purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import LibraryObject
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.facts.repetition.hot import Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.waits.operands import ahead
from streamlint.waits.wait import CACHE, DEVICE, Wait

_FILES = frozenset("test tests benchmark benchmarks bench profile profiler conftest".split())
_KEPT_WITH = frozenset({"clock", "elapsed", "event", "record", "synchronize"})
"""Effects of what a timer calls besides functions of the language."""


_ARITHMETIC = frozenset({op.PHI, op.COPY, op.BINARY, op.INPLACE, op.UNARY})


class Measuring:
    """Answers for the functions of a program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self._timers: dict[Function, bool | None] = {}

    def measures(self, wait: Wait, region: Region, may_step: Callable[[], bool]) -> bool:
        """Whether the code around a wait tests or measures: by its file, by what its function gives, or for a device-wide wait by a clock
        beside it. A peak of memory is known without a wait: who looks at one in rounds that step (``may_step``) does not measure.
        """
        chain = region.chain()
        if self._is_for_time(wait, chain[0]) or self._is_for_memory(chain[0]):
            return True
        if any(_FILES.intersection(re.split(r"[^a-z]+", one.function.unit.path.rpartition("/")[2].lower())) for one in chain):
            return True
        places = (*(one.call for one in chain[1:]), wait.instruction)  # the calls that lead to the wait, and that itself
        if wait.what not in (DEVICE, CACHE):
            return False
        steps, ways = may_step(), zip(chain, places, strict=True)
        return any(at is not None and self._is_measured(one.function, at, not steps) for one, at in ways)

    def is_stopped(self, region: Region) -> bool:
        """Whether each round of a loop looks at a clock twice: it measures what the round runs, and for a loop that steps nothing that is
        all.

        Who looks at gradients there may make the step by hand.
        """
        function, loop = region.function, region.loop
        if loop is None or any(function.text(one[4]) == "grad" for one in function.by_opcode[op.ATTR]):
            return False
        always = function.control.every_round(loop)
        return len({one for one in self._looks(function, False) if function.blocks[one] in always}) > 1

    def _is_for_time(self, wait: Wait, region: Region) -> bool:
        """Whether the function around a loop gives nothing but the time that the loop took, and keeps no number that the wait fetches."""
        function, loop = region.function, region.loop
        if loop is None or wait.function is not function or not op.DEFINES[wait.instruction[0]]:
            return False
        clocks = {call.instruction for call in self.graph.calls(function).libraries if _is_clock(call)}
        outside = {one: function.blocks[one] for one in clocks if function.blocks[one] not in loop.body}
        before = {one for one, block in outside.items() if function.control.dominates(block, loop.header)}
        ends = [one for one in function.by_opcode[op.RETURN] if not _is_nothing(function, one[2])]
        given = [set(_leaves(function, one[2])) for one in ends]
        is_time = bool(given) and all(leaves <= outside.keys() and leaves & before and leaves - before for leaves in given)
        return is_time and _is_dropped(function, wait.instruction[2])

    def _is_for_memory(self, region: Region) -> bool:
        """Whether the function around a loop gives nothing but how much memory its rounds have used, and measures that anew."""
        function, loop = region.function, region.loop
        if loop is None or self.graph.facts.models.known("memory-in-use").isdisjoint(function.called_names):
            return False
        names = {call.instruction: call.name.rpartition(".")[2] for call in self.graph.calls(function).libraries}
        in_use = {one for one, name in names.items() if name in function.known("memory-in-use")}
        begun = {one for one, name in names.items() if name in function.known("figures")} | in_use
        given = [set(_leaves(function, one[2])) for one in function.by_opcode[op.RETURN] if not _is_nothing(function, one[2])]
        is_begun = any(function.control.dominates(function.blocks[one], loop.header) for one in begun)
        return is_begun and bool(given) and all(leaves & in_use and leaves <= in_use for leaves in given)

    def _is_measured(self, function: Function, one: Instruction, with_peaks: bool) -> bool:
        """Whether the innermost loop around an instruction looks at a clock (or a peak of memory) in its rounds, or else its function."""
        block = function.blocks.get(one, NOBODY)
        loop = function.control.innermost[block] if block != NOBODY else NOBODY
        looks = [*self._elapsed(function), *self._looks(function, with_peaks)]
        return any(loop == NOBODY or function.blocks[look] in function.control.loops[loop].body for look in looks)

    def _elapsed(self, function: Function) -> Iterator[Instruction]:
        """Where a function asks for the time between events."""
        yield from (call.instruction for call in self.graph.calls(function).libraries if _is_elapsed(call))

    def _looks(self, function: Function, with_peaks: bool) -> Iterator[Instruction]:
        """Where a function looks at a clock, by itself or by a timer.

        ``with_peaks``: or at a peak of memory.
        """
        calls = self.graph.calls(function)
        yield from (call.instruction for call in calls.libraries if _is_clock(call) or (with_peaks and _is_figure(function, call)))
        yield from (edge.instruction for edge in calls.edges if edge.is_followed and self._keeps_time(edge.callee))
        for one in function.by_opcode[op.ENTER]:
            entered = (value for value in self.graph.facts.values(function, one[3]).values if isinstance(value, LibraryObject))
            rows = (self.graph.facts.models.method(value.type, "__enter__") for value in entered)
            if any(row is not None and row.effect == "clock" for row in rows):
                yield one

    def _keeps_time(self, function: Function) -> bool:
        """Whether a function looks at a clock and does nothing else: it is a timer's."""
        return bool(self._is_timer(function))

    def _is_timer(self, function: Function) -> bool | None:
        """Whether a function that only keeps time and numbers looks at a clock; None for one that does something else."""
        if function not in self._timers:
            self._timers[function] = None  # where it calls itself
            calls = self.graph.calls(function)
            if not calls.unknown and all(map(_is_kept_with, calls.libraries)):
                inner = {self._is_timer(edge.callee) if edge.is_followed else None for edge in calls.edges}
                looks = any(_is_clock(call) or _is_elapsed(call) for call in calls.libraries)
                self._timers[function] = None if None in inner else looks or True in inner
        return self._timers[function]


def _is_clock(call: LibraryCall) -> bool:
    return (call.row is not None and call.row.effect == "clock") or call.name.endswith("clock::now")


def _is_elapsed(call: LibraryCall) -> bool:
    return call.row is not None and call.row.effect == "elapsed"


def _is_figure(function: Function, call: LibraryCall) -> bool:
    return call.name.rpartition(".")[2] in function.known("figures")


def _is_kept_with(call: LibraryCall) -> bool:
    """Whether a timer may call something: a clock, an event, or the language."""
    return _is_clock(call) or call.name.startswith("builtins.") or (call.row is not None and call.row.effect in _KEPT_WITH)


def _is_nothing(function: Function, register: int) -> bool:
    made = function.definitions[register] if register >= 0 else None
    return made is None or (made[0] == op.CONST and function.unit.ir.constants[made[3]] is None)


def _leaves(function: Function, register: int) -> Iterator[Instruction]:
    """What numbers are computed from, constants aside: ``float("inf")`` is one too."""
    made = behind(function, [register], lambda one: op.reads(one) if one[0] in _ARITHMETIC or one[0] == op.BUILD else ())
    kept = (one for one in made if one[0] not in _ARITHMETIC and one[0] not in (op.CONST, op.BUILD, op.UNDEF))
    yield from (one for one in kept if not (one[0] == op.CALL and len(one) == 6 and function.constant(one[5]) is not None))


def _is_dropped(function: Function, register: int) -> bool:
    """Whether a number goes into sums alone that nobody looks at."""
    return all(use[0] in _ARITHMETIC for _, use in ahead(function, register, _ARITHMETIC) if use[0] != op.BIND)
