"""What happened before an operation, the nearest first: whether the host has waited for the device already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from streamlint.facts.code.counters import leaves_rounds
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.paths.conditions import Conditions
from streamlint.ordering.streams.device_work import DeviceWork
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Synchronized
from streamlint.transfer.origins import Origins

Judge = Callable[[Site, Site], "bool | None"]
"""Whether an instruction is what is looked for; None where the search goes on behind it. The second place is the instruction itself, or the
call in whose course it runs."""
_MOST = 200
_DEEPEST = 3
"""Calls that are entered within one another."""


class Seen(NamedTuple):
    """What a search back has come to: what is looked for, something else, and the beginning of the function."""

    found: bool = False
    other: bool = False
    beginning: bool = False


class _Place(NamedTuple):
    """A block that a search comes to: whether in the round before, and whether by leaving the loop of which it is the head."""

    block: int
    is_before: bool
    is_left: bool = False


class Life(NamedTuple):
    """An object of a device: where it is made, and the registers of that function that hold it."""

    made: Site
    registers: frozenset[int] = frozenset()


Crosses = Callable[[Function, Loop | None], "bool | None"]
"""Whether a search that has come to the head of a loop, or of a function (None), goes on in the round or the call before; None where what
was before does not matter."""


class _Search(NamedTuple):
    """What is looked for, and on which paths; what the functions have come to that were entered by calls in the course of a call."""

    judge: Judge
    life: Life | None
    crosses: Crosses | None
    as_run: bool
    entered: dict[tuple[Function, Site | None], Seen]


class Earlier:
    """Looks back from operations: in their functions, in those that are called, and in callers."""

    def __init__(self, origins: Origins) -> None:
        self.origins = origins
        self.transfer = origins.transfer
        self.guards = origins.guards
        self.work = DeviceWork(origins)
        self.conditions = self.transfer.one_of(Conditions, self.transfer)
        self._raising: dict[Function, frozenset[tuple[int, int]]] = {}

    def all_paths(
        self,
        site: Site,
        judge: Judge,
        passed: tuple[Site, ...] = (),
        life: Life | None = None,
        crosses: Crosses | None = None,
        as_run: bool = False,
    ) -> bool:
        """Whether the nearest of the instructions that count is what is looked for, on all paths to an instruction.

        The search goes through the functions that are called, and before the beginning of a function through the calls of ``passed``.
        ``life``: only the paths that begin where an object is made, and that it can take, count. ``as_run``: a loop over elements is
        looked at as it runs.
        """
        search, found = _Search(judge, life, crosses, as_run, {}), False
        for place in (site, *reversed(passed)):
            home, index = place.function.homes[place.instruction]
            seen = self._back(place.function, [(home, index)], search, None, 0)
            found = found or seen.found
            if seen.other or not seen.beginning:
                return found and not seen.other
        outermost = passed[0].function if passed else site.function
        goes_on = crosses is not None and crosses(outermost, None)
        if not goes_on:
            return found and goes_on is None
        seen = self._inside(outermost, search, None, 0)
        return seen.found and not (seen.other or seen.beginning)

    def _back(self, function: Function, starts: list[tuple[int, int]], search: _Search, at: Site | None, depth: int) -> Seen:
        """Go back over a function from some places: blocks, and the number of their instructions that count."""
        ways = self._ways_of(function, search.life)
        seen, found, beginning = set[_Place](), False, False
        headers = _around(function, starts)
        waiting = [(_Place(block, False), end) for block, end in starts]
        while waiting and len(seen) < _MOST:
            place, end = waiting.pop()
            last = self._last(function, function.code.blocks[place.block][:end], search, at, depth)
            found = found or last.found
            if last.found and not last.beginning:
                continue
            before = None if last.other else self._before(function, place, headers.get(place.block), search, ways)
            if before is None:
                return Seen(other=True)
            beginning = beginning or not function.control.predecessors[place.block]
            waiting += [(each, len(function.code.blocks[each.block])) for each in before if each not in seen]
            seen.update(before)
        come_to = Seen(found, bool(waiting), beginning)
        again = {each.block for each in seen if each.is_before}
        idle = [loop for block, loop in headers.items() if block in again and come_to == Seen()]
        return self._outside(function, idle[0], search, at, depth) if idle else come_to

    def _outside(self, function: Function, loop: Loop, search: _Search, at: Site | None, depth: int) -> Seen:
        """What was before a loop counts where its rounds come to nothing."""
        before = [each for each in self._steps_back(function, _Place(loop.header, False)) if each not in loop.body]
        return self._back(function, [(each, len(function.code.blocks[each])) for each in before], search, at, depth)

    def _before(
        self, function: Function, place: _Place, loop: Loop | None, search: _Search, ways: set[tuple[int, int]] | None
    ) -> list[_Place] | None:
        """The places before one, the head of a loop or none; None where the round before is not looked at.

        A way through that round on which nothing counts leads to the one before it, which is alike.
        """
        block, is_before, _ = place
        before = [each for each in self._steps_back(function, place) if ways is None or (each, block) in ways]
        if loop is not None:
            goes_on = is_before or (search.crosses is not None and search.crosses(function, loop))
            if not goes_on:
                return [] if goes_on is None else None
            is_before, before = True, [each for each in before if each in loop.body]
        return [_Place(each, is_before, search.as_run and leaves_rounds(function, each, block)) for each in before]

    def _steps_back(self, function: Function, place: _Place) -> Iterator[int]:
        """The blocks before one: of a loop that was left, its rounds; not those that leave unbound what the function gives back."""
        loop = function.loop_heads.get(place.block)
        for each in function.control.predecessors[place.block]:
            is_round = loop is None or not place.is_left or each in loop.body
            if is_round and self.takes(function, each, place.block) and (each, place.block) not in self._unbound(function):
                yield each

    def takes(self, function: Function, block: int, after: int) -> bool:
        """Whether a path goes from a block to another where calls of CUDA succeed, and a device of CUDA is there, as far as it is asked."""
        end = function.code.blocks[block][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return True
        truth = self._truth(function, end[2])
        return truth is None or end[3 if truth else 4] == after

    @memoized
    def _truth(self, function: Function, register: int) -> bool | None:
        """The truth of a condition where calls of CUDA succeed, and a device of CUDA is there; None where it asks for neither."""
        condition, turned = unnegated(function, register)
        truth = self.conditions.at_best(function, condition)
        return None if truth is None else truth != turned

    def _unbound(self, function: Function) -> frozenset[tuple[int, int]]:
        """Python: the steps behind which a variable is not bound that every return of a function gives back: that would raise."""
        known = self._raising.get(function)
        if known is None:
            waiting = [] if function.is_cpp or len(function.by_opcode[op.RETURN]) != 1 else [function.by_opcode[op.RETURN][0][2]]
            found: set[tuple[int, int]] = set()
            for register in waiting:
                phi = function.definitions[register] if register >= 0 else None
                ways = zip(function.phi_order[function.blocks[phi]], phi[3:], strict=False) if phi is not None and phi[0] == op.PHI else ()
                for block, value in ways:
                    made = function.definitions[value] if value >= 0 else None
                    if made is not None and made[0] == op.UNDEF and phi is not None:
                        found.add((block, function.blocks[phi]))
                    elif value not in waiting:
                        waiting.append(value)
            known = self._raising[function] = frozenset(found)
        return known

    def _last(self, function: Function, block: Sequence[Instruction], search: _Search, at: Site | None, depth: int) -> Seen:
        """What the last of some instructions comes to that comes to anything; their beginning, where one does on some ways alone."""
        found = False
        for one in reversed(block):
            is_made = search.life is not None and search.life.made == (function, one)
            seen = Seen(other=True) if is_made else self._verdict(Site(function, one), search, at, depth)
            found = found or seen.found
            if not seen.beginning:
                return Seen(found, seen.other)
        return Seen(found, beginning=True)

    def _ways_of(self, function: Function, life: Life | None) -> set[tuple[int, int]] | None:
        """The steps that an object takes in a function; None of one that is made elsewhere."""
        return self.ways(function, life) if life is not None and life.made.function is function else None

    def ways(self, function: Function, life: Life) -> set[tuple[int, int]]:
        """The steps from block to block that an object takes from where it is made, in the same round of its loop."""
        against: set[tuple[int, int]] = set()
        while True:
            found = self._ways(function, life, against)
            more = set(self._flagged(function, life, found)) - against
            if not more:
                return found
            against |= more

    def _ways(self, function: Function, life: Life, against: set[tuple[int, int]]) -> set[tuple[int, int]]:
        graph, found = function.control, set[tuple[int, int]]()
        start = function.blocks[life.made.instruction]
        index = graph.innermost[start]
        header = graph.loops[index].header if index >= 0 else None
        waiting = [start]
        while waiting:
            block = waiting.pop()
            for after in graph.successors[block]:
                if (block, after) in found or (block, after) in against or after == header:
                    continue
                if not self.is_against(function, block, after, life.registers):
                    found.add((block, after))
                    waiting.append(after)
        return found

    def _flagged(self, function: Function, life: Life, found: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The steps that are not taken, since a flag says otherwise that was set to a constant on all ways which the object has come."""
        graph, start = function.control, function.blocks[life.made.instruction]
        for block in {after for _, after in found}:
            end = function.code.blocks[block][-1]
            register, turned = unnegated(function, end[2]) if end[0] == op.BRANCH else (op.NONE, False)
            phi = function.definitions[register] if register >= 0 else None
            if phi is None or phi[0] != op.PHI or graph.dominates(function.blocks[phi], start):
                continue
            home = function.blocks[phi]
            come = [value for number, value in zip(function.phi_order[home], phi[3:], strict=False) if (number, home) in found]
            truths = set(map(function.truth, come))
            if len(truths) == 1 and (truth := truths.pop()) is not None:
                yield block, end[4] if truth != turned else end[3]

    def is_against(self, function: Function, block: int, after: int, registers: frozenset[int]) -> bool:
        """Whether a branch asks where an object is, and leads there only for one that is not on a device."""
        end = function.code.blocks[block][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return False
        condition, turned = unnegated(function, end[2])
        holds = (after == end[3]) != turned
        return self.guards.says(function, condition, holds, registers) == "host"

    def _verdict(self, site: Site, search: _Search, at: Site | None, depth: int) -> Seen:
        """What the functions come to that an instruction enters, or else what it says itself; a beginning where neither says anything."""
        inside = self._entered(site, search, at or site, depth) if site.instruction[0] in (op.CALL, op.INVOKE) else Seen()
        if inside.other or (inside.found and not inside.beginning):
            return inside
        verdict = search.judge(site, at or site)
        return Seen(inside.found or verdict is True, verdict is False, verdict is None)

    def _entered(self, site: Site, search: _Search, at: Site, depth: int) -> Seen:
        """What the functions come to that a call enters; of those that are too deep to be looked at, whether one works on a device."""
        edges = [edge for edge in self.transfer.edges(site.function, site.instruction) if edge.is_followed and not edge.is_higher_order]
        if depth >= _DEEPEST:
            return Seen(other=any(self.work.works(edge.callee) for edge in edges))
        inside = [self._inside(edge.callee, search, at, depth + 1) for edge in edges]
        return Seen(any(seen.found for seen in inside), any(seen.other for seen in inside), any(seen.beginning for seen in inside))

    def last(self, function: Function, judge: Judge, crosses: Crosses | None = None) -> Seen:
        """What a call of a function comes to last."""
        return self._inside(function, _Search(judge, None, crosses, True, {}), None, 0)

    def _inside(self, function: Function, search: _Search, at: Site | None, depth: int) -> Seen:
        """What a call of a function comes to last, exceptions aside. A function that calls itself comes to nothing there."""
        found = search.entered.get((function, at))
        if found is None:
            search.entered[function, at] = Seen()
            ends = [function.homes[one] for one in function.by_opcode[op.RETURN]]
            regular = [end for end in ends if end[0] in function.control.order]
            found = search.entered[function, at] = self._back(function, regular or ends, search._replace(life=None), at, depth)
        return found

    def has_work(self, site: Site, passed: tuple[Site, ...] = ()) -> bool:
        """Whether work is shown to be on a device on some path to an operation, and the host has not waited for a device since."""
        shown = False

        def judge(other: Site, _: Site) -> bool | None:
            nonlocal shown
            if any(isinstance(action, Synchronized) for action in self.transfer.of(other.function, other.instruction)):
                return True
            shown = shown or self.queues(other.function, other.instruction) or self._fills(other.function, other.instruction)
            return False if shown else None

        self.all_paths(site, judge, passed)
        return shown

    def _fills(self, function: Function, one: Instruction) -> bool:
        """Python: whether elements of memory of a device are set."""
        return one[0] == op.SET_ITEM and not function.is_cpp and self.is_on_device(function, one[2])

    def is_work(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device, or may, as an unknown call."""
        return self.queues(function, one) or self.work.may_queue(function, one)

    def is_on_device(self, function: Function, register: int) -> bool:
        """Whether a register may hold memory of a device."""
        return self.origins.is_on_device(function, register)

    def queues(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts work on a device."""
        return self.work.queues(function, one)


def _around(function: Function, starts: list[tuple[int, int]]) -> dict[int, Loop]:
    """The loops around some places, by their first blocks."""
    return {loop.header: loop for block, _ in starts for loop in function.control.loops if block in loop.body}
