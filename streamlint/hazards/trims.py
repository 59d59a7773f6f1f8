"""Caches of allocators that each round of a loop empties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Container, Instance, LibraryObject, Site
from streamlint.facts.repetition.hot import TRAINING
from streamlint.facts.values.flags import Wanted, decided
from streamlint.hazards.allocations import Allocations
from streamlint.hazards.inside import FEW, Inside, Step
from streamlint.hazards.repetition import DEEPEST
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.transfer.modelled import ModelledCall

_MANY = 100
"""Rounds of a loop, from where on a wait that each of them begins with adds up."""


class Trim(NamedTuple):
    """A call that empties a cache in each round of a loop, and the calls that lead to it from there. ``is_often``: the rounds are many and
    short as far as the program shows."""

    call: ModelledCall
    function: Function
    loop: Loop
    made: tuple[Site, ...]
    is_often: bool


class Trims:
    """Finds the caches that are emptied repeatedly."""

    def __init__(self, allocations: Allocations) -> None:
        self.transfer = allocations.transfer
        self.facts = allocations.facts
        self.rounds = allocations.rounds
        self.lifetimes = allocations.lifetimes
        self.measuring = allocations.measuring
        self.inside = Inside(self.transfer, self.rounds)

    def find(self) -> Iterator[Trim]:
        """The caches that rounds empty."""
        for call in self.transfer.sites({"trim"}):
            waiting: list[tuple[Function, tuple[Site, ...]]] = [(call.function, (Site(call.function, call.instruction),))]
            seen: set[Site] = set()
            for function, made in waiting:
                loop = next(self.rounds.loops(function, made[0].instruction), None)
                calls = [Site(caller, one) for caller, one in self.lifetimes.starts(function)] if len(made) <= DEEPEST else []
                once = [site for site in calls if loop is None or self.transfer.rounds.trips.given(function, loop, *site) == 1]
                waiting += [(site.function, (site, *made)) for site in once if site not in seen]
                seen.update(once)
                if loop is not None and not (once and len(once) == len(calls)) and self._is_each(function, loop, made):
                    yield from self._trims(call, function, loop, made)

    def _is_each(self, function: Function, loop: Loop, made: tuple[Site, ...]) -> bool:
        if self.rounds.is_special(function, loop, FEW) or self.measuring.times_repeated_work(function):
            return False
        for number, site in enumerate(made):
            within = loop if number == 0 else None
            if not self.rounds.runs(site, within) or self._is_switched(site, within, made, number):
                return False
        return True

    def _is_switched(self, site: Site, loop: Loop | None, made: tuple[Site, ...], number: int) -> bool:
        """Whether a parameter decides whose value is not known: it is the callers' choice."""
        function = site.function
        body = self.rounds.body(function)
        wanted = Wanted(body.conditions.wanted().truths)
        known = decided(made[number - 1].function, {}, made[number - 1].instruction, function, wanted, lambda *_: False) if number else {}
        switches: set[tuple[int, int]] = set()
        heads = {each.header for each in body.graph.loops}  # ``while parts: parts.pop()``
        for block in (each for each in (loop.body if loop is not None else body.graph.order) if each not in heads):
            end = function.code.blocks[block][-1]
            one = function.definitions[end[2]] if end[0] == op.BRANCH else None
            if one is not None and one[0] == op.PARAM and one[3] not in known:
                switches |= {(block, end[3]), (block, end[4])}
        if not switches:
            return False
        home = body.home[site.instruction]
        return any(body.graph.dominates(after, home) for _, after in switches if after != home or len(body.graph.predecessors[after]) == 1)

    def _trims(self, call: ModelledCall, function: Function, loop: Loop, made: tuple[Site, ...]) -> Iterator[Trim]:
        loops = self.rounds.body(function).graph.loops
        if any(other.parent >= 0 and loops[other.parent] == loop and self._does_something(function, other) for other in loops):
            return  # behind an inner loop it is called once an epoch
        steps = list(self.inside.steps(function, loop))
        uploads = any(map(self.inside.uploads, steps))
        works = [step for step in steps if self.inside.is_work(step)]
        if not (works or uploads) or (self._collects(steps) and not uploads):
            return
        is_long = any(map(self.inside.is_long, steps)) or any(step.is_deeper for step in works)
        waits = any(self.inside.waits(step) for step in steps if step.instruction != made[-1].instruction)
        is_often = self._is_often(function, loop, made) or self._serves(function, loop, steps)
        yield Trim(call, function, loop, made, is_often and not (is_long or waits))

    def _is_often(self, function: Function, loop: Loop, made: tuple[Site, ...]) -> bool:
        """Whether rounds are many: by their number, as those of a loop that trains, or in steps that train or run a module."""
        around = list(self.rounds.loops(function, made[0].instruction))
        if self.rounds.least(function, loop) >= _MANY or self._is_stepwise(function, around[-1].body):
            return True
        return any(self._is_stepwise(site.function) for site in made[1:])

    def _serves(self, function: Function, loop: Loop, steps: list[Step]) -> bool:
        """Whether rounds go on for as long as somebody hands them something for a module: nothing counts them, and each takes from a
        queue."""
        if any(one[0] == op.MORE for one in function.code.blocks[loop.header]):
            return False
        calls = [step for step in steps if step.instruction[0] in (op.CALL, op.INVOKE)]
        return any(map(self._takes, calls)) and any(map(self._runs_module, calls))

    def _takes(self, step: Step) -> bool:
        """Whether a step takes something out of a queue, for which it waits if there is nothing."""
        function, one = step.function, step.instruction
        held = self.transfer.values(function, one[3]) if function.invokes(one, "queue-get") else ()
        return any(isinstance(value, Container) and value.kind == "list" for value in held)

    def _runs_module(self, step: Step) -> bool:
        """Whether a step calls a module of the library's, or of a class of the program."""
        called = list(self.facts.callees(step.function, step.instruction))
        own = (value.definition for value in called if isinstance(value, Instance))
        return any(map(self._is_class_of_modules, own)) or any(
            (isinstance(each, LibraryObject) and each.kind == "module") or (isinstance(each, Container) and each.kind == "modules")
            for each in called
        )

    def _is_class_of_modules(self, definition: ClassInfo) -> bool:
        models = definition.unit.models
        bases = (base for library in self.facts.hierarchy.libraries(definition) for base in models.lineage(library))
        return not models.marked("calls-forward").isdisjoint(bases)

    def _does_something(self, function: Function, loop: Loop) -> bool:
        """Whether a loop queues work or moves data."""
        return any(
            self.inside.is_work(step) or self.inside.uploads(step) or self.inside.waits(step) for step in self.inside.steps(function, loop)
        )

    def _collects(self, steps: list[Step]) -> bool:
        """Whether the garbage is collected too: memory is to be let go between heavy rounds."""
        calls = (step for step in steps if step.instruction[0] in (op.CALL, op.INVOKE))
        return any(call.row.effect == "collect" for step in calls for call in self.transfer.modelled(step.function, step.instruction))

    def _is_stepwise(self, function: Function, blocks: frozenset[int] | None = None) -> bool:
        """Whether a function trains, in some of its blocks, or is a method of a module: it works in each of many steps."""
        owner = function.method.owner if function.method is not None else None
        if owner is not None and self._is_class_of_modules(owner):
            return True
        training = (one.instruction for one in self.transfer.rounds.of(function) if one.row.does in TRAINING)
        return any(blocks is None or function.blocks[one] in blocks for one in training)
