"""The loops of a function that make rounds, and what in them makes progress: a backward pass, a step, a denoising step.

A loop over the few things that stand in the source, over optimizers that it steps, or of one round is no loop of rounds: what it does, the
loop around it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.counters import gone_over, range_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.trials import is_search, is_trial
from streamlint.facts.graph.aliases import path_of
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.conditions import Conditions, Rare
from streamlint.facts.graph.missing import missing_in
from streamlint.facts.repetition.rounds import Round, Rounds
from streamlint.facts.values.containers import put_by
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, failing

_EMPTY = {op.BUILD: 4, op.DICT: 3}
"""The length of an instruction that makes a container of nothing."""


class Feeding(NamedTuple):
    """A call whose result reaches its own arguments in the next round of a loop, and the variable that carries it there."""

    place: int
    call: Instruction
    carried: int


class Body:
    """The control flow of a function as the search for hot regions sees it: without exceptions."""

    def __init__(self, graph: CallGraph, rounds: Rounds, function: Function) -> None:
        self.calls = graph
        self.facts = graph.facts
        self.rounds = rounds
        self.function = function
        self.graph = function.control
        self.conditions = Conditions(graph.facts, function)
        self.home = function.blocks

    @cached_property
    def lost(self) -> frozenset[int]:
        """The blocks that lead to an exception only, or that only an exception leads to."""
        everything = frozenset(range(len(self.function.code.blocks)))
        return failing(self.function.code) | (everything - frozenset(self.graph.order)) | missing_in(self.calls, self.function)

    @cached_property
    def counted(self) -> list[int]:
        """For each block the innermost loop of rounds around it, as a place of ``graph.loops``, or NOBODY."""
        found = list(self.graph.innermost)
        for block, index in enumerate(found):
            while index != NOBODY and self._has_few_rounds(index):
                index = self.graph.loops[index].parent
            found[block] = index
        return found

    def runs(self, starts: Iterable[int], without: Iterable[Rare], within: frozenset[int] | None = None) -> frozenset[int]:
        """The blocks that are reached from others without these edges, and without exceptions."""
        skipped = {(one.block, one.after) for one in without}
        found: set[int] = set()
        waiting = list(starts)
        while waiting:
            block = waiting.pop()
            if block not in found and block not in self.lost and (within is None or block in within):
                found.add(block)
                waiting += [after for after in self.graph.successors[block] if (block, after) not in skipped]
        return frozenset(found)

    @cached_property
    def feeding(self) -> list[Feeding]:
        """The calls whose result comes back to them: by a variable, or as elements of a container from before the loop."""
        function = self.function
        calls = [one for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode] if self.counted[self.home[one]] >= 0]
        carried: dict[int, list[tuple[int, set[int]]]] = {}  # by loop: the variables, with what their next values are computed from
        found: list[Feeding] = []
        for call in calls:
            index = self.counted[self.home[call]]
            if index not in carried:
                carried[index] = [(one, self.slice_of(given, self.graph.loops[index].body)) for one, given in self._carried(index)]
            if any(call[2] in back for _, back in carried[index]):
                into = self.slice_of(op.reads(call)[1:], self.graph.loops[index].body)
                found += [Feeding(index, call, one) for one, back in carried[index] if call[2] in back and one in into]
        return found

    def _carried(self, index: int) -> Iterator[tuple[int, list[int]]]:
        """What a loop hands on from round to round, and what it puts there."""
        loop, function = self.graph.loops[index], self.function
        yield from ((one[2], list(one[3:])) for one in function.code.blocks[loop.header] if one[0] == op.PHI)
        yield from ((one[2], [one[4]]) for one in function.by_opcode[op.SET_ITEM] if self.home[one] in loop.body)

    @cached_property
    def _filled(self) -> dict[int, list[tuple[int, int]]]:
        """By container that the function makes: the blocks in which something is put into it, and what."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        function = self.function
        uses = (use for opcode in (op.APPEND, op.SET_ITEM, op.PUT, op.INPLACE, op.INVOKE) for use in function.by_opcode[opcode])
        for use in uses if any(function.by_opcode[opcode] for opcode in _EMPTY) else ():
            for container, _, value, _ in put_by(function, use):
                made = function.definitions[container] if container >= 0 else None
                if made is not None and made[0] in _EMPTY:
                    found[container].append((self.home[use], value))
        return found

    def slice_of(self, registers: list[int], blocks: frozenset[int]) -> set[int]:
        """The registers of a loop from which others are computed, these and those from before the loop included, and what the loop puts
        into a container that each round makes, but for what it reads on the host to put it there."""
        found: set[int] = set()
        waiting, parts, definitions, home = list(registers), list[int](), self.function.definitions, self.home
        is_part = False
        while waiting or parts:
            if not waiting:
                waiting, parts, is_part = parts, [], True
            register = waiting.pop()
            one = definitions[register] if register >= 0 and register not in found else None
            if one is None or (is_part and self.function.invokes(one, "number", "to-host")):
                continue
            found.add(register)
            if home[one] in blocks:
                waiting += op.reads(one)
                parts += (value for block, value in self._filled.get(register, ()) if block in blocks)
        return found

    def loop_of(self, instruction: Instruction) -> int:
        """The loop of rounds that an instruction stands in; of a step that is made for each element of a loop, the one around that."""
        index = self.counted[self.home[instruction]]
        while index != NOBODY and self._is_of_each(instruction, index):
            index = self.graph.loops[index].parent
            while index != NOBODY and self._has_few_rounds(index):
                index = self.graph.loops[index].parent
        return index

    def is_in_round(self, step: Instruction, block: int) -> bool:
        """Whether a step belongs to the round that a block runs in, and not to one of a loop behind it."""
        index = self.loop_of(step)
        return index == NOBODY or block in self.graph.loops[index].body

    def finishes(self, step: Instruction, backwards: Iterable[Instruction]) -> bool:
        """Whether a step only applies what a loop before it has left over: one that goes backward, and steps the same optimizer itself."""
        steps = [one.instruction for one in self.rounds.of(self.function) if one.row.does == "optimizer"]
        for other in steps if step in steps else ():
            index = self.loop_of(other) if self._are_all_same(step, other) else NOBODY
            loop = self.graph.loops[index] if index not in (NOBODY, self.loop_of(step)) else None
            if loop is None or self.home[step] in loop.body or not self.graph.dominates(loop.header, self.home[step]):
                continue
            if any(self.home[one] in loop.body for one in backwards):
                return True
        return False

    def _are_all_same(self, one: Instruction, other: Instruction) -> bool:
        """Whether two calls are made of the same, with the same."""
        given, wanted = op.reads(one), op.reads(other)
        return one != other and len(given) == len(wanted) and all(map(self._are_same, given, wanted))

    def _has_few_rounds(self, index: int) -> bool:
        source = gone_over(self.function, self.graph.loops[index].header)
        if source == op.NONE:
            return is_search(self.function, self.graph.loops[index])
        one = self.function.definitions[source]
        if one is not None and one[0] in (op.BUILD, op.DICT) and len(one) > _EMPTY[one[0]]:  # what is empty is filled elsewhere
            return True
        return self.rounds.trips.most(self.function, self.graph.loops[index]) in (0, 1)

    def _is_of_each(self, instruction: Instruction, index: int) -> bool:
        """Whether a step is made of the loop's own element, or of what it names: ``for optimizer in optimizers: optimizer.step()``. What
        a loop inside goes through may be the element itself: ``for group in groups: for optimizer in group: optimizer.step()``."""
        if not any(one.instruction == instruction and one.row.does == "optimizer" for one in self.rounds.of(self.function)):
            return False
        waiting = op.reads(instruction)
        seen: set[int] = set()
        while waiting:
            register = waiting.pop()
            one = self.function.definitions[register]
            if one is None or register in seen:
                continue
            seen.add(register)
            if one[0] == op.NEXT and self.graph.innermost[self.home[one]] == index:
                return True
            if one[0] in (op.UNPACK, op.ITEM, op.ATTR, op.NEXT, op.ITER):
                waiting += one[3:5] if one[0] == op.ITEM else one[3:4]
            elif one[0] == op.CALL and self.function.dotted(one[3]) == "getattr":
                waiting += one[5:7]
            elif one[0] == op.BINARY and self.function.text(one[3]) == "+":
                waiting += one[4:6]
        return False

    def tries_out(self, index: int) -> bool:
        """Whether what makes progress in a loop, or in the function where it is NOBODY, is no training."""
        if index == NOBODY and any(map(self._is_made_here, self.rounds.of(self.function))):
            return True  # a whole fit: who calls it again and again makes no steps of one training
        return is_trial(self.function, self.graph.loops[index].body if index != NOBODY else None)

    def _is_made_here(self, step: Round) -> bool:
        """Whether an optimizer that is stepped was made by the function itself, so that it lives for this call alone."""
        function, one = self.function, step.instruction
        if step.row.does != "optimizer" or one[0] != op.INVOKE:
            return False
        kinds = {name.rpartition(".")[0] for name in step.row.names}
        makers = {call.instruction[2] for call in self.calls.calls(function).libraries if call.row and call.row.get("type") in kinds}
        held, constants = function.definitions[one[3]], function.unit.ir.constants
        if held is not None and held[0] == op.LOAD:  # a function inside of it works with it, too
            return any(each[3] in makers for each in function.by_opcode[op.STORE] if constants[each[2]] == constants[held[3]])
        return one[3] in makers

    def accumulated_by(self, index: int) -> int | None:
        """The loop over slices around one that cuts each slice into pieces and accumulates them: one step is made for a slice."""
        loop = self.graph.loops[index]
        around = self.counted[self.graph.loops[loop.parent].header] if loop.parent != NOBODY else NOBODY
        accumulates = (one for one in self.rounds.of(self.function) if one.row.does == "accumulate")
        if around == NOBODY or not any(self.home[one.instruction] in loop.body for one in accumulates):
            return None
        inner, outer = self._range(index), self._range(around)
        return around if len(inner) == len(outer) == 3 and self._are_same(inner[1], outer[2]) else None

    def _are_same(self, one: int, other: int) -> bool:
        """Whether two registers hold the same, also if both are read by the same path: ``self.args.size``."""
        return one == other or path_of(self.function, one) == path_of(self.function, other) != ""

    def _range(self, index: int) -> tuple[int, ...]:
        """The arguments of the ``range`` that a loop goes over."""
        return range_of(self.function, gone_over(self.function, self.graph.loops[index].header))
