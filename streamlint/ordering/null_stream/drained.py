"""Whether a free finds the device idle: the host has waited right before it, or waits right behind it, with no work queued in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to
from streamlint.ordering.streams.earlier import Earlier, Life
from streamlint.transfer.actions import Copied, Read, Synchronized
from streamlint.transfer.launches import Launches
from streamlint.transfer.modelled import operands_of

_DEEPEST = 3
_MOST = 200


class Death(NamedTuple):
    """Where an object of a device ends: the instructions, all of one function, the calls that lead to it, and what is known of its life."""

    ends: tuple[Site, ...]
    passed: tuple[Site, ...]
    life: Life

    def calls_to(self, function: Function) -> tuple[Site, ...]:
        """Those of the calls that lead to a function."""
        if self.ends and self.ends[0].function is function:
            return self.passed
        return next((self.passed[:place] for place, site in enumerate(self.passed) if site.function is function), ())


class _Ahead(NamedTuple):
    """What the ways on from a place come to: waits of the host, work, and the returns of the function."""

    waits: frozenset[Site] = frozenset()
    queues: bool = False
    returns: tuple[Instruction, ...] = ()


class Drained:
    """Looks around the places where memory of a device is freed."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier = earlier
        self.transfer = earlier.transfer

    def reached(self, death: Death) -> Death:
        """The ends that an object can come to from where its round makes it."""
        function, start = death.life.made
        if not death.ends or death.ends[0].function is not function:
            return death
        reached = {after for _, after in self.earlier.ways(function, death.life)} | {function.blocks[start]}
        ends = tuple(end for end in death.ends if function.blocks[end.instruction] in reached)
        return death._replace(ends=ends or death.ends)

    def has_emptied(self, death: Death) -> bool:
        """Whether the host has waited for the whole device before the ends, and nothing that works on it was started since.

        Algorithms that end with a wait count as one, and copies that the host waits for start nothing that is left.
        """
        return all(self.earlier.all_paths(end, lambda other, at: self._empties(other), death.passed, death.life) for end in death.ends)

    def waits(self, death: Death) -> frozenset[Site]:
        """The waits of the host, for what it fetches, a stream or an event, right before or right behind the ends, with no work started in
        between; none where an end has none. Each waits for one stream alone."""
        found: set[Site] = set()
        for end in death.ends:
            near = self.waits_before(end, death.passed, death.life) or self._waits_behind(end, death.passed)
            if not near:
                return frozenset()
            found |= near
        return frozenset(found)

    # --- what instructions do

    def _judge(self, site: Site) -> bool | None:
        """Whether the host waits at an instruction, or starts work; None for neither."""
        if self._fetches(site.function, site.instruction) or self._is_for_one(site.function, site.instruction):
            return True
        return False if self.earlier.queues(site.function, site.instruction) else self._empties(site)

    def _empties(self, other: Site) -> bool | None:
        """Whether the host waits for the whole device at an instruction; False where it starts work, None for what does neither."""
        function, one = other.function, other.instruction
        rows = [call.row for call in self.transfer.modelled(function, one)] if one[0] in (op.CALL, op.INVOKE) else []
        if any(row.effect == "synchronize" and row.get("of") == "device" for row in rows):
            return True
        for work in self._launches.at(function, one):
            if work.kind == "library" or not work.waits:
                return work.waits
        given = operands_of(function, one) if not rows and self.earlier.work.may_queue(function, one) else ()
        return False if any(self.earlier.is_on_device(function, register) for register in given) else None

    def _fetches(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits at an instruction for what a device holds."""
        for action in self.transfer.of(function, one):
            if isinstance(action, Copied) and action.direction == "d2h" and action.asynchronous is False:
                is_cuda = action.call.row is not None and action.call.row.library != "torch"
                if is_cuda or self.earlier.is_on_device(function, action.source):
                    return True
            elif isinstance(action, Read) and action.waits and self.earlier.is_on_device(function, action.register):
                return True
        return False

    def _is_for_one(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits at an instruction for a stream or an event; a free that may wait is none."""
        if one[0] == op.EXIT and any(True for _ in self.transfer.awaiting(function, one)):
            return True
        rows = [call.row for call in self.transfer.modelled(function, one)] if one[0] in (op.CALL, op.INVOKE) else []
        return any(row.effect == "synchronize" for row in rows) and any(
            isinstance(action, Synchronized) and action.of is not None for action in self.transfer.of(function, one)
        )

    @cached_property
    def _launches(self) -> Launches:
        return Launches(self.transfer, presumes=True)

    # --- around an end

    def waits_before(
        self, end: Site, passed: tuple[Site, ...], life: Life | None = None, awaited: Collection[Site] = ()
    ) -> frozenset[Site]:
        """The waits that all ways to an end, or to another wait, come to last, with no work behind them but some that is awaited since."""
        found: set[Site] = set()

        def judge(other: Site, _: Site) -> bool | None:
            verdict = self._judge(other)
            if verdict:
                found.add(other)
            return None if verdict is False and other in awaited else verdict

        return frozenset(found) if self.earlier.all_paths(end, judge, passed, life) else frozenset()

    def _waits_behind(self, end: Site, passed: tuple[Site, ...]) -> frozenset[Site]:
        """The waits that all ways on from an end, out of the calls that lead to it, come to before any work, in the same round."""
        block, index = end.function.homes[end.instruction]
        function, ahead = end.function, self._on(end.function, block, index + (end.instruction[0] != op.RETURN), frozenset(), 0)
        carried: frozenset[int] = frozenset()
        for call in reversed(passed):
            if ahead.queues or ahead.waits or not ahead.returns:
                break
            carried = self._carriers(call, ahead.returns, function, carried)
            function, (block, index) = call.function, call.function.homes[call.instruction]
            ahead = self._on(function, block, index + 1, carried, 0)
        return frozenset() if ahead.queues or ahead.returns else ahead.waits

    def _carriers(self, call: Site, returns: Iterable[Instruction], inner: Function, carried: frozenset[int]) -> frozenset[int]:
        """The registers of a function that hold memory of a device since a call has returned. ``carried``: those of the inner function."""
        is_there = all(end[2] in carried or (end[2] >= 0 and self.earlier.is_on_device(inner, end[2])) for end in returns)
        uses = call.function.uses
        begin = [call.instruction[2]] if is_there else []
        return frozenset(led_to(begin, lambda register: [use[2] for use in uses[register] if use[0] in (op.PHI, op.COPY)]))

    def _on(self, function: Function, block: int, index: int, carried: frozenset[int], depth: int) -> _Ahead:
        """What the ways on from a place come to first, within the round that it stands in."""
        graph, blocks = function.control, function.code.blocks
        headers = {loop.header for loop in graph.loops if block in loop.body}
        waiting, seen = [(block, index)], set[int]()
        waits, returns = set[Site](), list[Instruction]()
        while waiting:
            number, start = waiting.pop()
            verdicts = (self._ahead(Site(function, each), depth) for each in blocks[number][start:])
            verdict = next((each for each in verdicts if each is not None), None)
            if (verdict is not None and not verdict) or len(seen) > _MOST:
                return _Ahead(queues=True)
            if verdict:
                waits |= verdict
                continue
            end = blocks[number][-1]
            returns += [end] if end[0] == op.RETURN else []
            for after in graph.successors[number]:
                if after in headers:
                    return _Ahead(queues=True)  # the next round
                if after not in seen and not self.earlier.is_against(function, number, after, carried):
                    seen.add(after)
                    waiting.append((after, 0))
        return _Ahead(frozenset(waits), False, tuple(returns))

    def _ahead(self, site: Site, depth: int) -> frozenset[Site] | None:
        """The waits of an instruction, and of the functions that it enters; empty where it starts work, None where it does neither."""
        function, one = site
        edges = self.transfer.edges(function, one) if one[0] in (op.CALL, op.INVOKE) and depth < _DEEPEST else ()
        inside = [self._on(edge.callee, 0, 0, frozenset(), depth + 1) for edge in edges if edge.is_direct]
        if any(each.queues for each in inside):
            return frozenset()
        if inside and all(each.waits and not each.returns for each in inside):
            return frozenset[Site]().union(*(each.waits for each in inside))
        verdict = self._judge(site)
        return None if verdict is None else frozenset({site} if verdict else ())
