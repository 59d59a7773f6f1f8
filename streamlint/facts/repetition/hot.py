"""Hot regions: what each round of a loop runs that trains, decodes or denoises, and what frameworks call in each step.

A loop is hot if its body makes progress in each round: it calls, outside of loops of its own and over any number of functions, what a row
of a round names. All that such a round runs is hot, with the loop as its reason, but what stands behind rare branches (`conditions`),
behind an exception, or in another thread. A method that a row of a framework names is hot with that row as its reason.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from streamlint.facts.code.evaluations import evaluated_loops
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Site, Unknown
from streamlint.facts.graph.applications import Scripts
from streamlint.facts.graph.call_graph import Edge
from streamlint.facts.graph.conditions import Rare
from streamlint.facts.graph.named import NamedMembers
from streamlint.facts.graph.trained import trained
from streamlint.facts.graph.wrapped import Wrapped
from streamlint.facts.repetition.decoding import feeds_back, may_feed_back
from streamlint.facts.repetition.effects import DERIVES, OF_ROUNDS, Effect, Effects
from streamlint.facts.repetition.gradients import Gradients
from streamlint.facts.repetition.graphless import Graphless
from streamlint.facts.repetition.handlers import Handlers
from streamlint.facts.repetition.hooks import Hooks
from streamlint.facts.repetition.long_rounds import LongRounds
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.reaching import reaching
from streamlint.facts.repetition.runs import Runs
from streamlint.facts.repetition.settings import set_before
from streamlint.facts.repetition.trips import FEW_IN_ALL
from streamlint.facts.values.flags import Flag, Flags, Holds, IsNone, decided
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.models import RoundRow, StepRow
from streamlint.support.records import record

TRAINING: Final = frozenset({"backward", "optimizer", "accumulate"})
"""What loops that train do."""
MOST_VERSIONS = 4
"""Sets of flags that a function is entered with; behind that all its branches are looked at."""
MOST_NAMED = 24
"""Sets of flags that one is entered with that takes members by their names: each of them leads to others."""
MOST_REASONS = 3
"""Loops and steps for which a function is entered with the same flags."""

_RESUMING: Final = frozenset({op.NEXT, op.AWAIT, op.YIELD_FROM})

Key = tuple[tuple[Flag, bool | str], ...]


class Progress(NamedTuple):
    """A call that makes progress: what it does, and the instruction."""

    does: str
    instruction: Instruction


class _Call(NamedTuple):
    """A function that a region enters by a call; ``around``: of a closure, the functions that it runs for this call."""

    function: Function
    caller: Region
    instruction: Instruction
    resumed: bool = False
    around: tuple[Function, ...] = ()


@record(frozen=True, eq=False, slots=True)
class Region:
    """Blocks of a function that run in each round, and why: the loop in it, the row of a framework, or the call that enters it."""

    function: Function
    blocks: frozenset[int]
    does: str
    loop: Loop | None
    row: StepRow | RoundRow | None
    caller: Region | None
    call: Instruction | None
    rare: tuple[Rare, ...]
    flags: Flags

    def chain(self) -> list[Region]:
        """The regions from the loop or row to this one."""
        found: list[Region] = []
        region: Region | None = self
        while region is not None:
            found.append(region)
            region = region.caller
        return found[::-1]


class HotRegions:
    """The hot regions of a program: all of them are found at once, callers first. ``decodes``: also those of loops that decode."""

    decodes = True

    def __init__(self, effects: Effects) -> None:
        self.reaching: frozenset[Function] = frozenset()
        self.effects = effects
        self.graph = effects.graph
        self.facts = effects.facts
        self.rounds = effects.rounds
        self.handlers = Handlers(self.rounds, lambda function: function in effects.leading(Effect.BACKWARD | Effect.OPTIMIZER))
        self.frameworks = effects.facts.frameworks
        self.hooks = Hooks(self.graph, self.rounds)
        self.gradients = Gradients(self.graph)
        self.graphless = Graphless(self.graph, self.rounds, lambda function: function in self.reaching)
        self.named = NamedMembers(self.graph)
        self.wrapped = Wrapped(self.graph)
        self.runs = Runs(self)
        self.scripts = Scripts()
        self.long_rounds = LongRounds(self.graph)
        self.regions: dict[Function, list[Region]] = {}
        self._bodies: dict[Function, Body] = {}
        self._progress: dict[tuple[Function, Key], dict[int, Progress]] = {}
        self._versions: dict[Function, dict[Key, set[tuple[Function, Loop | None]]]] = {}
        self._waiting: deque[_Call] = deque()

    def find(self) -> None:
        """Find all regions. Only what may make progress, and what a round runs, is solved."""
        functions = [function for unit in self.facts.program.units.values() for function in unit.functions if not function.is_cpp]
        self.reaching = reaching(self.graph, self.rounds, functions)
        for function in functions:
            row = self.frameworks.row(function)
            if row is not None:
                self._region(function, row=row)
            for handler in self.handlers.of(function):
                self._region(handler.function, row=handler.row)
            for index, progress in self.progress(function).items():
                if index != NOBODY:
                    self._region(function, self.body(function).graph.loops[index], does=progress.does)
        self._add_trained()
        self._spread()

    def _add_trained(self) -> None:
        """Modules that a framework's trainer runs in each step."""
        for function, row in trained(self.facts):
            self._region(function, row=row)

    def body(self, function: Function) -> Body:
        """A function's control flow."""
        if function not in self._bodies:
            self._bodies[function] = Body(self.graph, self.rounds, function)
        return self._bodies[function]

    def regions_of(self, function: Function, block: int) -> list[Region]:
        """The regions that a block is in."""
        return [region for region in self.regions.get(function, ()) if block in region.blocks]

    # --- progress

    def progress(self, function: Function, flags: Flags | None = None) -> dict[int, Progress]:
        """What makes progress in a function: by loop of rounds, or NOBODY for what each call of the function does."""
        key = (function, _sorted(flags or {}))
        found = self._progress.get(key)
        if found is None:
            self._progress[key] = {}
            found = self._progress[key] = self._find_progress(function, flags or {})
        return found

    def _find_progress(self, function: Function, flags: Flags) -> dict[int, Progress]:
        found: dict[int, Progress] = {}
        decodes = self.decodes and may_feed_back(function) and self.rounds.may_have(function.unit)
        if function not in self.reaching and not decodes:
            return found
        body = self.body(function)
        for progress in self._steps_that_run(function, flags) if function in self.reaching else ():
            index = body.loop_of(progress.instruction)
            if index not in found or found[index].does == DERIVES:
                found[index] = progress
        found = {index: one for index, one in found.items() if not (body.tries_out(index) or self._is_of_runs(function, index, one))}
        for index in [index for index in found if index != NOBODY]:
            if (around := body.accumulated_by(index)) is not None:
                found.setdefault(around, found[index])
        for fed in feeds_back(self.graph, body) if decodes else ():
            found.setdefault(fed.place, Progress("decode", function.code.blocks[body.graph.loops[fed.place].header][0]))
        return found

    def _is_of_runs(self, function: Function, index: int, progress: Progress) -> bool:
        """Whether a loop goes over whole runs, or a function is one: what they do by themselves is no step of one training."""
        if progress.does not in (*TRAINING, DERIVES):
            return False
        return self.runs.is_of_runs(function, index) if index != NOBODY else self.runs.is_run(function)

    def _steps_that_run(self, function: Function, flags: Flags) -> Iterator[Progress]:
        """The steps of a function that run with some flags, and do more than apply what a loop before them has left over."""
        body = self.body(function)
        blocks = body.runs([0], body.conditions.decided(flags))
        steps = list(self.steps(function, flags))
        backwards = [one.instruction for one in steps if one.does == "backward"]
        for one in steps:
            if body.home[one.instruction] in blocks and not body.finishes(one.instruction, backwards):
                yield one

    def steps(self, function: Function, flags: Flags) -> Iterator[Progress]:
        """What a function does of a round, by itself and by what it calls."""
        for one in self.rounds.of(function):
            if one.row.does in OF_ROUNDS:
                yield Progress(one.row.does, one.instruction)
        entered: dict[Instruction, list[Function]] = defaultdict(list)
        for edge in self.graph.calls(function).edges:
            if edge.is_followed and not edge.callee.is_generator and self.named.is_meant(function, flags, edge):
                entered[edge.instruction] += self.wrapped.meant(function, edge.instruction, edge.callee) or [edge.callee]
        for edge in self.graph.resumptions(function):
            entered[edge.instruction].append(edge.callee)
        for call, callees in entered.items():
            yield from self._agreed(function, flags, call, callees)

    def _agreed(self, function: Function, flags: Flags, call: Instruction, callees: list[Function]) -> Iterator[Progress]:
        """What a call does by all that it may enter, if half of those make progress."""
        able = [callee for callee in callees if callee in self.reaching and not self.graphless.rules_out(function, call, callee)]
        inner = [self._of_each(callee, self._decided_flags(function, flags, call, callee)) for callee in able]
        found = [Progress(one.does, call) for one in inner if one is not None]
        if 2 * len(found) >= len(callees):
            yield from found

    def _of_each(self, function: Function, flags: Flags) -> Progress | None:
        """What each call of a function does of a round; of a generator, what it does for each value that it gives."""
        progress = self.progress(function, flags)
        if not function.is_generator:
            return progress.get(NOBODY)
        body = self.body(function)
        for index, one in progress.items():
            if index == NOBODY and one.instruction[0] == op.YIELD_FROM:
                return one
            loop = body.graph.loops[index] if index != NOBODY else None
            runs = body.runs([loop.header], self._rare(function, flags), loop.body) if loop is not None else frozenset[int]()
            if any(body.home[given] in runs for opcode in (op.YIELD, op.YIELD_FROM) for given in function.by_opcode[opcode]):
                return one
        return None

    def _rare(self, function: Function, flags: Flags) -> list[Rare]:
        """The edges that are rarely taken, but for those that lead to a step of the round."""
        rare = self.body(function).conditions.rare(flags)
        return [one for one in rare if one.is_decided or not self._makes_progress(function, flags, one)]

    def _decided_flags(self, caller: Function, known: Flags, call: Instruction, callee: Function) -> Flags:
        """The flags that a call decides."""
        wanted, names = self.body(callee).conditions.wanted(), self.named.parameters(callee)
        found = decided(caller, known, call, callee, wanted._replace(texts=wanted.texts | names), self._is_there)
        texts = self.named.tables.known_from_call(caller, known, call, callee, names - wanted.texts) if names else {}
        return {**texts, **self.named.known_from_call(caller, known, call, callee), **found}

    def _is_there(self, function: Function, register: int) -> bool:
        """Whether a call gives something: an attribute, an element or what is known of it, and no code in view makes that None."""
        values = self.facts.values(function, register).values
        if any(isinstance(value, Constant) and value.value is None for value in values):
            return False
        one = function.definitions[register]
        return any(not isinstance(value, Unknown) for value in values) or (one is not None and one[0] in (op.ATTR, op.UNPACK))

    # --- regions

    def _region(
        self,
        function: Function,
        loop: Loop | None = None,
        row: StepRow | RoundRow | None = None,
        does: str = "",
        flags: Flags | None = None,
        entered: _Call | None = None,
    ) -> None:
        """Add the rounds of a loop, what a row says of a function, or what a call of another region enters."""
        if loop is not None and self._costs_nothing(function, loop):
            return
        body, (caller, call) = self.body(function), (entered.caller, entered.instruction) if entered is not None else (None, None)
        flags = set_before(self, function, function.code.blocks[loop.header][0]) if caller is None and loop is not None else flags or {}
        rare = self._rare(function, flags)
        starts, within = self._extent(body, loop, entered is not None and function.is_generator and entered.resumed)
        blocks = body.runs(starts, rare, within)
        if caller is not None and self.goes_backward(caller):
            blocks -= self._evaluating(function)
        region = Region(function, blocks, row.loop if isinstance(row, StepRow) else does, loop, row, caller, call, tuple(rare), flags)
        self.regions.setdefault(function, []).append(region)
        self._enter(region, entered.around if entered is not None else ())

    def _costs_nothing(self, function: Function, loop: Loop) -> bool:
        """Whether what a wait costs in the rounds of a loop is nothing: there are few while the program runs, or they take long."""
        rounds = self.rounds.trips.in_all(function, loop)
        return (rounds is not None and rounds <= FEW_IN_ALL) or self.long_rounds.take_long(function, loop)

    def _evaluating(self, function: Function) -> frozenset[int]:
        """The blocks of loops that evaluate a module, and train nothing."""
        loops = list(evaluated_loops(function, self.body(function).graph))
        progress = self.progress(function) if loops else {}
        found = (loop.body for index, loop in loops if index not in progress or progress[index].does not in TRAINING)
        return frozenset(block for body in found for block in body)

    def _extent(self, body: Body, loop: Loop | None, resumed: bool) -> tuple[list[int], frozenset[int] | None]:
        """The blocks with which a round begins, and those that it may run (None for all)."""
        if loop is not None:
            return [loop.header], loop.body
        if not resumed:
            return [0], None
        yields = {body.home[one] for opcode in (op.YIELD, op.YIELD_FROM) for one in body.function.by_opcode[opcode]}
        loops = [one for one in body.graph.loops if one.body & yields]
        return [one.header for one in loops], frozenset(block for one in loops for block in one.body)

    def _makes_progress(self, function: Function, flags: Flags, rare: Rare) -> bool:
        """Whether only this edge leads to a step of the round, as derivatives are none: the test of an accumulation is no rare branch."""
        body = self.body(function)
        steps = (one.instruction for one in self.steps(function, flags) if one.does != DERIVES)
        behind = (one for one in steps if body.graph.dominates(rare.after, body.home[one]))
        return any(body.is_in_round(one, rare.block) for one in behind)

    def _enter(self, region: Region, around: tuple[Function, ...]) -> None:
        """What a region calls is hot too. A closure enters the functions that it is ``around``, unless they were entered by themselves."""
        function, home = region.function, self.body(region.function).home
        known = dict.fromkeys(self.graph.calls(function).edges)
        for edge in known:
            if edge.is_followed and home[edge.instruction] in region.blocks and self._is_entered(region, edge, around):
                meant = tuple(self.wrapped.meant(function, edge.instruction, edge.callee))
                self._waiting.append(_Call(edge.callee, region, edge.instruction, edge.instruction[0] == op.NEXT, meant))
                self._waiting += [_Call(each, region, edge.instruction) for each in meant if self.wrapped.always_passes_on(edge.callee)]
        resumed = (edge for edge in self.graph.resumptions(function) if edge not in known)
        later = [_Call(edge.callee, region, edge.instruction, True) for edge in resumed]
        if self.goes_backward(region):
            later += [_Call(each.function, region, each.instruction) for each in self.gradients.behind(function)]
            hooks = self.hooks.run_by([(each.function, each.blocks) for each in region.chain()])
            later += [_Call(each.function, region, instruction) for instruction, each in hooks]
        self._waiting += [call for call in later if home[call.instruction] in region.blocks]

    def _is_entered(self, region: Region, edge: Edge, around: tuple[Function, ...]) -> bool:
        """Whether a call of a region enters a function for it: not the one that the region is ``around``, which was entered by itself, and
        not what only makes an iterator, or is kept from the first call."""
        function, call, callee = region.function, edge.instruction, edge.callee
        if not self.scripts.may_run(callee.unit, region.chain()[0].function.unit):
            return False
        if not self.named.is_meant(function, region.flags, edge) or callee.keeps_results:
            return False
        if around and call in self.wrapped.passes_on(function) and (callee not in around or self.wrapped.always_passes_on(function)):
            return False
        return call[0] not in _RESUMING or callee.code.name != "__iter__" or callee.is_generator

    def goes_backward(self, region: Region) -> bool:
        """Whether the rounds behind a region run backward passes over what they compute."""
        first = region.chain()[0]
        return first.row.loop == "training" if isinstance(first.row, StepRow) else first.does in TRAINING

    def _spread(self) -> None:
        while self._waiting:
            entering = self._waiting.popleft()
            function, caller, call, resumed, around = entering
            flags = self._decided_flags(caller.function, caller.flags, call, function)
            versions = self._versions.setdefault(function, {})
            kind = (NOBODY, " ".join(map(str, around)) if around else resumed)
            key = (*_sorted(flags), kind)
            most = MOST_NAMED if self.named.parameters(function) or any(isinstance(flag, Holds) for flag in flags) else MOST_VERSIONS
            if key not in versions and len(versions) >= most:
                flags = {flag: value for flag, value in flags.items() if not isinstance(flag, IsNone)}
                key = (*_sorted(flags), kind)
            if key not in versions and len(versions) >= most:
                key, flags = (kind,), {}
            first, entered = caller.chain()[0], versions.setdefault(key, set())
            if len(entered) >= MOST_REASONS or (first.function, first.loop) in entered:
                continue
            entered.add((first.function, first.loop))
            self._region(function, does=caller.does, flags=flags, entered=entering)


def _sorted(flags: Flags) -> Key:
    return tuple(sorted(flags.items(), key=str))


def site_of(region: Region) -> Site | None:
    """The place of a region's loop, or of the call that enters it."""
    if region.call is not None and region.caller is not None:
        return Site(region.caller.function, region.call)
    header = region.function.code.blocks[region.loop.header if region.loop is not None else 0]
    return Site(region.function, next((one for one in header if one[1] >= 0), header[0]))
