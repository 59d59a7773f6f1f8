"""Waits that find nothing to wait for: right behind another one, with no work queued in between, or right before one that has to stay.

From a wait all ways back (or on) through one round are followed to the nearest other waits. The wait is idle if each way comes to one, and
nothing on it may queue work. What is not known to leave the streams alone may: a forgotten case is a finding too many, never one too few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.repetition.effects import Effect
from streamlint.facts.repetition.hot import Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.support.memo import memoized
from streamlint.waits.barren import barren_edges, edges_of_nothing, has_rounds
from streamlint.waits.known import Fact, Known
from streamlint.waits.numbers import on_numbers
from streamlint.waits.operands import gives_too_few
from streamlint.waits.preparing import Preparing
from streamlint.waits.questions import alike
from streamlint.waits.quiet import Quiet, is_only_asked
from streamlint.waits.regions import WaitRegions
from streamlint.waits.wait import CAST, DEVICE, FETCH, NUMBER, READ, SIZE, STEP, UPLOAD, Wait
from streamlint.waits.ways import MOST_BRIEF, QUEUES, Limits, Reach, Way
from streamlint.waits.without import edges_without

_FETCHES = frozenset({"float", "int", "bool", "complex", "str", "repr", "print", "format"})
"""Casts that do nothing but fetch; others compare tensors first."""
_IMPLIED = frozenset({"indexing", "assignment"})
"""Uploads of indices that are on the device where the tensor is: whether they wait is not known."""
_DEEPEST = 6


def answers(wait: Wait) -> bool:
    """Whether a call compares tensors and gives the host the answer: ``torch.allclose(a, b)``."""
    return wait.what == FETCH and not wait.instead


class Idle:
    """Finds, for a wait, the one that leaves it nothing to wait for."""

    def __init__(self, hot: WaitRegions, waits: Mapping[Function, Sequence[Wait]]) -> None:
        self.hot = hot
        self.known = Known(hot)
        self.quiet = Quiet(hot.graph)
        self._at: dict[Function, dict[Instruction, Wait]] = {}
        self._uploads: dict[Function, dict[Instruction, Wait]] = {}
        self._steps: dict[Function, dict[Instruction, Wait]] = {}
        self._without: dict[Function, frozenset[tuple[int, int]]] = {}
        self._short: dict[Function, frozenset[Instruction]] = {}
        self.preparing = Preparing(self.quiet, lambda function: self._at.get(function, {}).values())
        self._summaries: dict[tuple[Function, bool, frozenset[tuple[Fact, bool]]], Reach] = {}
        self._sites: dict[Function, dict[tuple[Function, Instruction], None]] | None = None
        for function, found in waits.items():
            self._at[function] = {}
            for wait in found:
                is_fetch = wait.what == CAST and wait.name.rpartition(".")[2] in _FETCHES
                if is_fetch or wait.what in (READ, DEVICE, SIZE) or answers(wait):
                    self._at[function].setdefault(wait.instruction, wait)
            self._steps[function] = {wait.instruction: wait for wait in found if wait.what == STEP}
            self._uploads[function] = {wait.instruction: wait for wait in found if wait.what == UPLOAD and wait.name not in _IMPLIED}

    def before(self, wait: Wait, region: Region) -> list[Wait]:
        """The waits right before one, of which every round that reaches it has one; none where work may be queued in between."""
        if wait.what not in (READ, CAST, NUMBER, FETCH, DEVICE, UPLOAD, SIZE) or (
            wait.what == CAST and wait.name.rpartition(".")[2] not in _FETCHES
        ):
            return []
        facts = self.known.at(wait.function, wait.instruction, region)
        made = wait.function.definitions[wait.value] if wait.what == UPLOAD and wait.value >= 0 else None
        is_plain = made is not None and not self.quiet.entered(wait.function, made)  # what is uploaded was made on the host
        skipped = {*self.preparing.conversions(wait), *([made] if made is not None and is_plain else ())}

        def back(current: Region, at: Instruction) -> Reach:
            place = self._place(current.function, at)
            known = {**facts, **self.known.at(current.function, at, current)}
            return self._back(current.function, [place], self._limits(current, known), skipped, _DEEPEST)

        found = self._nearest(region, wait.instruction, back)
        nearest = [one for one in found if one.instruction != wait.instruction or one.function is not wait.function]  # of rounds within one
        return nearest if all(self._covers(first, wait, region) for first in nearest) else []

    def after(self, wait: Wait, region: Region, needed: Callable[[Wait], bool]) -> Wait | None:
        """The wait right behind one, which has to stay, in every round that reaches that one. It may stand in the round that follows."""
        is_reached = wait.what == UPLOAD or self._at.get(wait.function, {}).get(wait.instruction) is not None
        if not is_reached or wait.what not in (READ, CAST, UPLOAD, DEVICE, SIZE):
            return None

        def on(current: Region, at: Instruction) -> Reach:
            block, index = self._place(current.function, at)
            known = self.known.at(current.function, at, current)
            return self._on(current.function, (block, index + 1), self._limits(current, known), _DEEPEST, needed)

        if (step := self._step_behind(region, on(region, wait.instruction), on)) is not None:
            return wait._replace(function=step.function, instruction=step.instruction)
        nearest = self._nearest(region, wait.instruction, on)
        if not nearest or not all(self._covers(later, wait, region) and needed(later) for later in nearest):
            return None
        return nearest[0]

    def _nearest(self, region: Region, at: Instruction, look: Callable[[Region, Instruction], Reach]) -> list[Wait]:
        """The waits that all ways from a place come to first, out of all calls around it too; none where work may be queued before."""
        nearest: list[Wait] = []
        seen = {(region, at)}
        waiting = [(region, at, 0)]
        while waiting:
            current, place, brief = waiting.pop()
            reach = look(current, place)
            brief += reach.brief
            if reach.queues or brief > MOST_BRIEF:
                return []
            nearest += reach.waits
            around = self._around(current) if reach.passes else []
            if reach.passes and not around:
                return []
            waiting += [(*one, brief) for one in around if one not in seen]
            seen.update(around)
        return nearest

    def _step_behind(self, region: Region, reach: Reach, on: Callable[[Region, Instruction], Reach]) -> Site | None:
        """The step of an optimizer that reads what its closure gives, if all ways on lead out of that before anything else happens."""
        while reach == Reach(passes=True) and region.caller is not None and region.call is not None:
            if self.hot.reading_steps.runs(region):
                return Site(region.caller.function, region.call)
            around = self._around(region)
            if len(around) != 1:
                return None
            region, reach = around[0][0], on(*around[0])
        return None

    # --- where ways lead

    def _place(self, function: Function, one: Instruction) -> tuple[int, int]:
        block = self.hot.body(function).home[one]
        return block, function.code.blocks[block].index(one)

    def _around(self, region: Region) -> list[tuple[Region, Instruction]]:
        """The calls that enter a region's function in its rounds, each in its region; none where something else may enter it."""
        if region.loop is not None or region.caller is None or region.call is None or region.call[0] not in (op.CALL, op.INVOKE, op.ATTR):
            return []
        if region.function.code.flags & {"generator", "async"}:
            return []
        if self._sites is None:
            self._sites = defaultdict(dict)
            for function in self.hot.regions:
                for edge in self.hot.graph.calls(function).edges:
                    is_hot = self.hot.regions_of(function, self.hot.body(function).home[edge.instruction])
                    if is_hot and not gives_too_few(function, edge.instruction, edge.callee):
                        self._sites[edge.callee][function, edge.instruction] = None
        around = [(one, call) for function, call in self._sites[region.function] for one in self._beside(region, function, call)]
        is_seen = all(self.quiet.entered(one.function, call) for one, call in around)
        return around if is_seen and any((one.function, call) == (region.caller.function, region.call) for one, call in around) else []

    def _beside(self, region: Region, function: Function, call: Instruction) -> Iterator[Region]:
        """The regions of a call that runs in the rounds of a region: a function has one of its own for each loop or step behind it."""
        first = region.chain()[0]
        for one in self.hot.regions_of(function, self.hot.body(function).home[call]):
            around = one.chain()[0]
            if (around.function, around.loop) == (first.function, first.loop):
                yield one

    def _limits(self, region: Region, facts: Mapping[Fact, bool]) -> Limits:
        without = frozenset((one.block, one.after) for one in region.rare) | self._barren(region)
        later = {fact: truth for fact, truth in facts.items() if not self.known.is_made_in(fact, region.blocks)}
        return Limits(region.loop.header if region.loop is not None else NOBODY, region.blocks, without, facts, later)

    @memoized
    def _barren(self, region: Region) -> frozenset[tuple[int, int]]:
        return barren_edges(self.hot, region)

    def _inside(self, function: Function, facts: Mapping[Fact, bool]) -> Limits:
        """The limits of a function that is entered on the way: without the edges that are rare in each of its regions."""
        regions = self.hot.regions.get(function, ())
        if not regions:
            return Limits(NOBODY, None, frozenset(), facts, facts)
        rare = [frozenset((one.block, one.after) for one in region.rare) for region in regions]
        blocks = [region.blocks for region in regions]
        return Limits(NOBODY, frozenset().union(*blocks), frozenset.intersection(*rare), facts, facts)

    def _back(
        self, function: Function, starts: Iterable[tuple[int, int]], limits: Limits, skipped: Iterable[Instruction], depth: int
    ) -> Reach:
        """What the ways back from some places come to."""
        body = self.hot.body(function)
        waits: dict[Wait, None] = {}
        passes, most = False, 0
        seen, left = dict[tuple[int, bool], int](), set[int]()
        waiting = [(block, index, False, 0) for block, index in starts]
        while waiting:
            block, index, is_left, brief = waiting.pop()
            reach = self._back_along(function, function.code.blocks[block][:index], limits, skipped, depth)
            brief += reach.brief
            if reach.queues or brief > MOST_BRIEF:
                return QUEUES
            most = max(most, brief)
            waits.update(dict.fromkeys(reach.waits))
            if not reach.passes:
                continue
            if block == 0 or (block == limits.head and block in left):
                passes = True
                continue
            left.add(block)
            for before in body.graph.predecessors[block]:
                is_first = (block == limits.head or is_left) and not body.graph.dominates(block, before)  # the first round, or none
                is_over = has_rounds(self.hot.facts, function, before, block)
                if not is_first and seen.get((before, is_over), -1) < brief and self._is_way(function, before, block, limits, limits.facts):
                    seen[before, is_over] = brief
                    waiting.append((before, len(function.code.blocks[before]), is_over, brief))
        return Reach(tuple(waits), passes, brief=most)

    def _back_along(
        self, function: Function, instructions: Sequence[Instruction], limits: Limits, skipped: Iterable[Instruction], depth: int
    ) -> Reach:
        """What a way back comes to in the instructions of a block, the last one first."""
        waits: dict[Wait, None] = {}
        brief = 0
        for one in reversed(instructions):
            is_passed = one in skipped or self._is_short(function, one)
            reach = None if is_passed else self._reach(function, one, limits.facts, depth, False)
            if reach is None:
                continue
            if reach.queues:
                return QUEUES
            waits.update(dict.fromkeys(reach.waits))
            brief += reach.brief
            if not reach.passes:
                return Reach(tuple(waits), brief=brief)
        return Reach(tuple(waits), True, brief=brief)

    def _on(
        self, function: Function, start: tuple[int, int], limits: Limits, depth: int, needed: Callable[[Wait], bool] | None = None
    ) -> Reach:
        """What the ways on from a place come to, in the round that follows too. What computes the value that is read next does not count as
        work, and a wait of the function itself that is not ``needed`` is passed by."""
        waits: dict[Wait, None] = {}
        passes, most = False, 0
        seen: dict[Way, int] = {}
        waiting = [(Way(start[0], frozenset(), False, False), start[1], 0)]
        while waiting:
            way, index, brief = waiting.pop()
            reach, pending = self._along(function, way, index, limits, depth, needed)
            brief += reach.brief
            if reach.queues or brief > MOST_BRIEF:
                return QUEUES
            most = max(most, brief)
            waits.update(dict.fromkeys(reach.waits))
            if not reach.passes:
                continue
            ends = function.code.blocks[way.block][-1][0] == op.RETURN
            for after, begins in self._successors(function, way):
                is_next = after == limits.head
                if is_next and way.is_next:
                    ends = True  # two rounds without any
                    continue
                step = Way(after, pending, way.is_next or is_next, begins)
                known = limits.later if way.is_next else limits.facts
                if seen.get(step, -1) < brief and self._is_way(function, way.block, after, limits, known):
                    seen[step] = brief
                    waiting.append((step, 0, brief))
            if ends and pending:
                return QUEUES
            passes = passes or ends
        return Reach(tuple(waits), passes, brief=most)

    def _successors(self, function: Function, way: Way) -> Iterator[tuple[int, bool]]:
        """The blocks that a way goes on to, and whether each begins a loop there: it goes into a loop that has rounds."""
        graph = self.hot.body(function).graph
        for after in graph.successors[way.block]:
            if not (way.begins and has_rounds(self.hot.facts, function, way.block, after)):
                yield after, after in function.loop_heads and not graph.dominates(after, way.block)

    def _along(
        self, function: Function, way: Way, index: int, limits: Limits, depth: int, needed: Callable[[Wait], bool] | None
    ) -> tuple[Reach, frozenset[Instruction]]:
        """What a way comes to in its block, and what computes a value on it that was not read yet."""
        pending, brief = way.pending, 0
        known = limits.later if way.is_next else limits.facts
        for one in function.code.blocks[way.block][index:]:
            reach = self._reach(function, one, known, depth, True)
            if reach is None:
                continue
            brief += reach.brief
            own = self._at.get(function, {}).get(one)
            if reach.queues and one in self.preparing.of(function):
                pending |= {one}
            elif reach.queues or (reach.waits and not self.preparing.are_for(function, pending, reach.waits)):
                return QUEUES, pending
            elif own is not None and needed is not None and not needed(own):
                pending = frozenset()
            elif reach.waits or not reach.passes:
                return reach._replace(brief=brief), pending
        return Reach(passes=True, brief=brief), pending

    def _is_way(self, function: Function, before: int, after: int, limits: Limits, facts: Mapping[Fact, bool]) -> bool:
        """Whether a round may take an edge, as far as is known."""
        lost = self.hot.body(function).lost
        if (before, after) in limits.without or before in lost or after in lost:
            return False
        if function not in self._without:
            self._without[function] = edges_without(self.hot.facts, function).union(edges_of_nothing(function))
        if (before, after) in self._without[function]:
            return False
        if limits.within is not None and not (before in limits.within and after in limits.within):
            return False
        return all(facts.get(fact, truth) == truth for fact, truth in self.known.of_edge(function, before, after))

    def _reach(self, function: Function, one: Instruction, facts: Mapping[Fact, bool], depth: int, forwards: bool) -> Reach | None:
        """What an instruction comes to: its wait, or what the functions do that it enters; None for nothing."""
        wait = self._own(function, one, forwards)
        if wait is not None:
            return Reach((wait,), brief=wait.what == SIZE or (wait.what == STEP and not forwards))
        is_over = not forwards and is_only_asked(function, one)  # the host has waited at the branch
        if not is_over and self.quiet.queues(function, one):
            brief = 1 if not forwards and one in self._over_parameters(function) else self.quiet.brief(function, one)
            return Reach(passes=True, brief=brief) if brief is not None else QUEUES
        edges = self.quiet.edges(function, one)
        if not edges:
            return None
        waits: dict[Wait, None] = {}
        passes, brief = bool(self.quiet.library(function, one)), 0
        for edge in edges:
            reach = self._summary(edge.callee, self.known.handed_on(function, one, edge.callee, facts), depth - 1, forwards)
            if reach.queues or edge.is_higher_order:
                return QUEUES
            waits.update(dict.fromkeys(reach.waits))
            passes, brief = passes or reach.passes, max(brief, reach.brief)
        return Reach(tuple(waits), passes, brief=brief)

    def _own(self, function: Function, one: Instruction, forwards: bool) -> Wait | None:
        """The wait of an instruction itself. An upload has waited for its stream when it returns; a step waits before it works, and has
        done so unless an option leaves that out."""
        wait = self._at.get(function, {}).get(one)
        if wait is None and not forwards:
            wait = self._uploads.get(function, {}).get(one)
        step = self._steps.get(function, {}).get(one)
        return wait if wait is not None or step is None or (step.is_optional and not forwards) else step

    @memoized
    def _over_parameters(self, function: Function) -> frozenset[Instruction]:
        """The calls that go over all parameters and run no closure: an optimizer's step, clipping. Once they are started, what they queue
        is short beside a backward pass; a wait before them holds up many launches."""
        steps = {step.instruction for step in self.hot.rounds.of(function) if step.row.does == "optimizer"}
        rows = ((call.instruction, call.row) for call in self.hot.graph.calls(function).libraries)
        steps.update(one for one, row in rows if row is not None and row.get("gradients") is True)
        facts, quiet = self.hot.facts, self.quiet
        return frozenset(one for one in steps if not (quiet.entered(function, one) or facts.hands_function(function, op.reads(one))))

    def _summary(self, function: Function, facts: Mapping[Fact, bool], depth: int, forwards: bool) -> Reach:
        """What a call of a function comes to first, or last."""
        if depth <= 0 or function.code.flags & {"generator", "async"}:
            return QUEUES
        key = (function, forwards, frozenset(facts.items()))
        if key not in self._summaries:
            self._summaries[key] = QUEUES  # where it calls itself
            limits = self._inside(function, facts)
            if forwards:
                self._summaries[key] = self._on(function, (0, 0), limits, depth)
            else:
                lost = self.hot.body(function).lost
                blocks = limits.within if limits.within is not None else range(len(function.code.blocks))
                ends = [block for block in blocks if function.code.blocks[block][-1][0] == op.RETURN and block not in lost]
                starts = [(block, len(function.code.blocks[block])) for block in sorted(ends)]
                self._summaries[key] = self._back(function, starts, limits, (), depth)
        return self._summaries[key]

    def _is_short(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction only computes with single numbers."""
        if function not in self._short:
            waits = self._at.get(function, {})
            found = on_numbers(self.hot, function, waits.values()) - waits.keys()
            self._short[function] = frozenset(each for each in found if not self.quiet.entered(function, each))
        return one in self._short[function]

    # --- what covers

    def _covers(self, first: Wait, wait: Wait, region: Region) -> bool:
        """Whether the host, having waited at one, has waited for what it waits for at the other, if nothing was queued in between."""
        if first.instruction == wait.instruction and first.function is wait.function:
            return False
        if any("." in one.name and not one.name.startswith(("torch.", "builtins.")) for one in (first, wait)):
            return False
        if wait.what != DEVICE:
            return True
        if first.what == DEVICE:
            return self._device(first) == self._device(wait)
        return region.chain()[0].function not in self.hot.effects.leading(Effect.STREAMS)

    def _device(self, wait: Wait) -> tuple[object, ...]:
        """What says which device is waited for."""
        one, function = wait.instruction, wait.function
        given = [alike(function, register) for register in one[6 if one[0] == op.INVOKE else 5 :]]
        return (*given, function if any(len(key) == 1 for key in given) else None)
