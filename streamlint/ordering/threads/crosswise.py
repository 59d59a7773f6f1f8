"""SL037: a branch that ranks take differently, whose two ways enter the collectives of two communicators the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.threads.communicators import Communicator, Communicators
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of

_DEEPEST = 4
_COMPUTED = frozenset({op.COMPARE, op.BINARY, op.UNARY, op.COPY, op.CAST, op.PHI, op.LOAD})
Known = dict[tuple[Function, Instruction], tuple[ModelledCall, Communicator]]


class Entered(NamedTuple):
    """A collective on a way, and the calls that lead to it from there."""

    site: Site
    call: ModelledCall
    communicator: Communicator
    calls: tuple[Site, ...]


class Crossed(NamedTuple):
    """Two collectives of one way, in the order of that way, and the first of the other way, which is the second one's."""

    first: Entered
    second: Entered
    other: Entered


class Crosswise:
    """Finds such branches."""

    def __init__(self, transfer: Transfer, known: Known) -> None:
        self.transfer = transfer
        self.communicators = transfer.one_of(Communicators, transfer)
        self.known = known
        self._deciding: set[tuple[Function, int]] = set()

    def find(self) -> Iterator[Crossed]:
        """The crossed pairs of the program, one for each branch."""
        if len({communicator for _, communicator in self.known.values()}) < 2:
            return
        for function in self._leading():
            for block, code in enumerate(function.code.blocks):
                if code[-1][0] == op.BRANCH and self._is_of_rank(function, code[-1][2], 0):
                    yield from self._crossed(function, block, code[-1])

    def _leading(self) -> list[Function]:
        """The functions that hold known collectives, and those that call them."""
        found = dict.fromkeys(function for function, _ in self.known)
        above = list(found)
        for _ in range(_DEEPEST):
            above = [caller for function in above for caller, _ in self.transfer.callers(function) if caller not in found]
            found.update(dict.fromkeys(above))
        return list(found)

    def _crossed(self, function: Function, block: int, branch: Instruction) -> Iterator[Crossed]:
        join = function.control.post_dominators[block]
        ways = [self._entered(function, way, join) for way in branch[3:5]]
        for index, first in enumerate(ways[0]):
            for second in ways[0][index + 1 :]:
                if not self._are_two(first, second):
                    continue
                before = next((each for each in ways[1] if each.communicator in (first.communicator, second.communicator)), None)
                after = next((each for each in ways[1] if each.communicator == first.communicator), None)
                if before is not None and after is not None and before.communicator == second.communicator:
                    yield Crossed(before, after, first)
                    return

    def _are_two(self, first: Entered, second: Entered) -> bool:
        one_each = self.communicators.is_one(first.communicator) and self.communicators.is_one(second.communicator)
        on_device = all(self.communicators.is_on_device(each.call, each.communicator) for each in (first, second))
        return one_each and on_device and self.communicators.are_apart(first.communicator, second.communicator)

    def _entered(self, function: Function, start: int, join: int) -> list[Entered]:
        """The collectives of a way, in the order of its blocks: the first one of each communicator."""
        reached = set(function.control.reach([start], [join]))
        found: dict[Communicator, Entered] = {}
        for number in function.control.order:
            if number in reached:
                for one in function.code.blocks[number]:
                    for each in self._at(function, one, (), 0):
                        found.setdefault(each.communicator, each)
        return list(found.values())

    def _at(self, function: Function, one: Instruction, calls: tuple[Site, ...], depth: int) -> Iterator[Entered]:
        """The collectives that an instruction starts, by itself or in what it calls."""
        known = self.known.get((function, one))
        if known is not None:
            yield Entered(Site(function, one), *known, calls)
        elif one[0] in CALLING and depth < _DEEPEST:
            for edge in self.transfer.edges(function, one):
                if edge.is_direct:
                    for inner in edge.callee.code.instructions():
                        yield from self._at(edge.callee, inner, (*calls, Site(function, one)), depth + 1)

    # --- conditions

    def _is_of_rank(self, function: Function, register: int, depth: int) -> bool:
        """Whether a value is computed from the number of the process among others."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST or (function, register) in self._deciding:
            return False
        self._deciding.add((function, register))
        try:
            return any(self._is_of_rank(holder, each, depth + near) for holder, each, near in self._sources(function, one)) or (
                one[0] in (op.CALL, op.INVOKE) and any(call.row.get("rank") for call in self.transfer.modelled(function, one))
            )
        finally:
            self._deciding.remove((function, register))

    def _sources(self, function: Function, one: Instruction) -> Iterator[tuple[Function, int, int]]:
        """The registers that a value comes from: in its function, else a step further away."""
        if one[0] in _COMPUTED:
            yield from ((function, each, 0) for each in op.reads(one) if each >= 0)
        elif one[0] == op.NAME:
            yield from ((holder, each, 1) for holder, each in function.unit.globals.get(function.text(one[3]), ()))
        elif one[0] == op.ATTR and function.owner is not None and function.is_parameter(one[3]):
            stores = function.owner.own_stores.get(function.text(one[4]), ())
            yield from ((store.function, store.value, 1) for store in stores)
        elif one[0] == op.PARAM:
            for caller, call in self.transfer.callers(function):
                given = operand_of(caller, call, function, one[3]) if call[0] in (op.CALL, op.INVOKE) else None
                if given is not None and given >= 0:
                    yield caller, given, 1
