"""SL020 and SL021 from program facts: which waits of hot regions are hazards, each with the loop that it holds up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Program
from streamlint.facts.graph.call_graph import MOST_NAMES, CallGraph
from streamlint.facts.graph.unused import Unused
from streamlint.facts.repetition.effects import Effect, Effects
from streamlint.facts.repetition.hot import TRAINING, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models, StepRow, last_part
from streamlint.support.records import replace
from streamlint.waits.captures import warms_up
from streamlint.waits.computing import reads_number
from streamlint.waits.found import WaitFinder
from streamlint.waits.host_rounds import HostRounds
from streamlint.waits.idle import Idle, answers
from streamlint.waits.indices import is_mask, is_of_array
from streamlint.waits.measuring import Measuring
from streamlint.waits.must_execute import is_chosen, is_executed
from streamlint.waits.naming import ON_DEVICE, name_of
from streamlint.waits.needed_waits import needed_waits
from streamlint.waits.operands import taken_from
from streamlint.waits.origins import GRADIENTS, INPUT, PARAMETERS, UNSURE, ModelFacts
from streamlint.waits.passed import is_plain, stands_for_number
from streamlint.waits.piecemeal import Piecemeal
from streamlint.waits.quiet import Quiet
from streamlint.waits.reasons import (
    DIFFERS,
    EVALUATES,
    MEASURES,
    NO_LOOP,
    NOT_EXECUTED,
    NOT_ON_DEVICE,
    ON_HOST,
    STEPS_READ,
    TRAINS_ON_HOST,
    UNUSED,
    WARMS_UP,
    needed,
    row_of,
)
from streamlint.waits.regions import CALLED, COMPUTE, INFER, LAUNCH, ROWS, WEIGHTS, WaitRegions, serves, trains
from streamlint.waits.round_values import RoundValues
from streamlint.waits.seeds import seeds_of
from streamlint.waits.uploads import upload_reason
from streamlint.waits.uses import Uses
from streamlint.waits.wait import CACHE, CAST, DEVICE, FETCH, READ, SIZE, STEP, UPLOAD, Wait

FROM_INPUT = "input-derived values"


class Hazard(NamedTuple):
    """A wait that holds up each round: what it reads (or uploads), the region that runs it in each round, and the place to look at;
    ``behind``: the places of other such waits that come right before an upload."""

    wait: Wait
    region: Region
    origin: str
    trains: bool
    place: Site
    behind: tuple[Site, ...] = ()


class HotWaits:
    """The hazards of a program in one language. ``most`` bounds the steps of each question about its facts, once all together took
    ``free``, and a tenth of that once they took eight times as many; behind that values are unknown."""

    def __init__(
        self, program: Program, all_loops: bool = False, models: Models | None = None, most: int | None = None, free: int = 0
    ) -> None:
        self.all_loops = all_loops
        self.facts = ModelFacts(program, models)
        solver = self.facts.solver
        solver.most, solver.free, solver.rest = most, free, most // 10 if most is not None else None
        self.graph = CallGraph(self.facts)
        self.hot = WaitRegions(Effects(self.graph), all_loops)
        self.hot.find()
        self.facts.plant(seeds_of(self.hot, all_loops))
        self.graph = CallGraph(self.facts)
        self.finder = WaitFinder(self.graph, all_loops)
        self.unused = self.facts.shared.one_of(Unused, program, self.facts.hierarchy)
        self._known: dict[Wait, Hazard | str] = {}

    @cached_property
    def _is_on_host(self) -> bool:
        """Whether the program makes modules of its own, and no file of it names a device, or what would choose one."""
        program = self.facts.program
        words = self.facts.models.known("device-word", "trainer-word")
        if "to" in program.identifiers or any(word in name for name in program.identifiers for word in words):
            return False
        classes = (one for unit in program.units.values() for one in unit.classes)
        modules = (one for one in classes if any(map(self.facts.forwarded, self.facts.hierarchy.libraries(one))))
        return any(self.facts.construction_places(one) for one in modules)

    def hazards(self) -> Iterator[Hazard]:
        """The hazards, one for each wait; of a helper's wait that is reported at its calls, one for each call."""
        hazards = self._hazards
        for wait in hazards:
            if isinstance(hazard := self._outcome(wait), Hazard):
                yield hazard
                yield from self._elsewhere(wait, hazard)

    def _elsewhere(self, wait: Wait, reported: Hazard) -> Iterator[Hazard]:
        """The hazards of the other calls, in loops or steps of whatever function, that enter a helper which waits."""
        if reported.place.function is wait.function or len(reported.region.chain()) != 2:
            return
        places = {reported.place}
        for first, call in self._calls_in_rounds.get(wait.function, ()):
            hazard = self._judged(wait, replace(reported.region, caller=first, call=call, does=first.does))
            if isinstance(hazard, Hazard) and hazard.place not in places and self._finds_nothing(wait, hazard) is None:
                places.add(hazard.place)
                yield hazard

    @cached_property
    def _calls_in_rounds(self) -> dict[Function, list[tuple[Region, Instruction]]]:
        """By function: the calls of it that stand in a loop or a step itself, with the region of that."""
        found: dict[Function, list[tuple[Region, Instruction]]] = {}
        for function, regions in self.hot.regions.items():
            home = self.hot.body(function).home
            for region in (one for one in regions if one.caller is None):
                for edge in self.graph.calls(function).edges:
                    if edge.is_followed and home[edge.instruction] in region.blocks:
                        found.setdefault(edge.callee, []).append((region, edge.instruction))
        return found

    def passed_over(self, path: str) -> Iterator[tuple[Wait, str]]:
        """The waits of a file that are no hazards, each with the reason."""
        for function in self.facts.program.units[path].functions:
            for wait in self.finder.waits(function):
                regions = self.hot.regions_of(function, self.hot.body(function).home[wait.instruction])
                if wait in self._hazards:
                    outcome = self._outcome(wait)
                    if not isinstance(outcome, Hazard):
                        yield wait, outcome
                elif regions:
                    yield wait, next(why for region in regions if isinstance(why := self._judged(wait, region), str))
                else:
                    yield wait, NOT_EXECUTED if self._is_beside(wait) else NO_LOOP

    def _is_beside(self, wait: Wait) -> bool:
        """Whether a wait that no round has to meet stands in a loop of rounds, or in what one calls."""
        place = self.hot.body(wait.function).home[wait.instruction]
        return any(region.loop is None or place in region.loop.body for region in self.hot.regions.get(wait.function, ()))

    @cached_property
    def _hazards(self) -> dict[Wait, list[Hazard]]:
        """By wait: the regions in which it would be a hazard, if it found something to wait for."""
        found: dict[Wait, list[Hazard]] = {}
        for function, each in self._waits.items():
            home = self.hot.body(function).home
            for wait in each:
                regions = self.hot.regions_of(function, home[wait.instruction])
                judged = [hazard for region in regions if isinstance(hazard := self._judged(wait, region), Hazard)]
                if judged:
                    found[wait] = judged
        return found

    @cached_property
    def _waits(self) -> dict[Function, list[Wait]]:
        """The waits of hot functions."""
        return {function: self.finder.waits(function) for function in self.hot.regions}

    @cached_property
    def _quiet(self) -> Quiet:
        return Quiet(self.graph)

    @cached_property
    def _host_rounds(self) -> HostRounds:
        return HostRounds(self.hot)

    @cached_property
    def _measuring(self) -> Measuring:
        return Measuring(self.graph)

    @cached_property
    def _values(self) -> RoundValues:
        return RoundValues(self.hot)

    @cached_property
    def _uses(self) -> Uses:
        return Uses(self.hot)

    @cached_property
    def _piecemeal(self) -> Piecemeal:
        return Piecemeal(self.hot, self.graph, self._quiet, self._uses, self.all_loops)

    @cached_property
    def _idle(self) -> Idle:
        found = self._waits.items()
        return Idle(
            self.hot,
            {function: [*self._on_device(each), *needed_waits(self.finder, function, self.hot.rounds)] for function, each in found},
        )

    def _on_device(self, waits: list[Wait]) -> list[Wait]:
        """The waits that may be for a value of a device, in whichever region."""
        found = []
        for wait in waits:
            regions = self.hot.regions_of(wait.function, self.hot.body(wait.function).home[wait.instruction])
            is_sized = wait.what == SIZE and not {"asked", "literal"}.isdisjoint(self.finder.reasons(wait.function, wait.value))
            if is_sized or answers(wait) or any(self._origin(wait, region) is not None for region in regions):
                found.append(wait)
        return found

    def _outcome(self, wait: Wait) -> Hazard | str:
        """The hazard of a wait that finds something to wait for, or why it finds nothing. Another hazard right before it is no reason to
        leave it out."""
        if wait not in self._known:
            self._known[wait] = NO_LOOP  # while it is asked
            self._known[wait] = self._found_busy(wait)
        return self._known[wait]

    def _found_busy(self, wait: Wait) -> Hazard | str:
        why = NO_LOOP
        for hazard in self._hazards.get(wait, ()):
            idle = self._finds_nothing(wait, hazard)
            if idle is None:
                before = map(self._outcome, self._idle.before(wait, hazard.region) if wait.what == UPLOAD else ())
                return hazard._replace(behind=tuple(one.place for one in before if isinstance(one, Hazard)))
            why = idle
        return why

    def _finds_nothing(self, wait: Wait, hazard: Hazard) -> str | None:
        """Why a wait finds nothing to wait for; None if it does."""
        before = self._idle.before(wait, hazard.region)
        if before and not any(isinstance(self._outcome(one), Hazard) for one in before):
            return f"the host has just waited in {row_of(before[0], wait)}, and a handful of operations at most is queued since"
        after = self._idle.after(wait, hazard.region, self._stays(hazard.region))
        return (
            None if after is None else f"the host waits in {row_of(after, wait)} anyway, and a handful of operations at most comes before"
        )

    def _stays(self, region: Region) -> Callable[[Wait], bool]:
        def stays(other: Wait) -> bool:
            if other.what == STEP:
                return True
            if other.what == DEVICE:  # a clock is beside it, which would tell nothing without
                return self._measuring.measures(other, region, partial(self._may_step, region.chain()[0].function))
            if other.what == SIZE:
                return other not in self._hazards
            if not (other.what in (READ, CAST) or answers(other)) or (serves(region) and self._piecemeal.is_part_by_part(other, region)):
                return False
            return not self._uses.is_avoidable(other, region, self.all_loops)

        return stays

    def _judged(self, wait: Wait, region: Region) -> Hazard | str:
        """A wait as a hazard of a region, if it finds something to wait for; else why it is none."""
        if (why := self._is_out_of_place(wait, region)) is not None:
            return why
        origin = self._origin(wait, region)
        if origin is None or (wait.what in (READ, CAST) and is_plain(self.hot, region, wait.function, wait.value)):
            return NOT_ON_DEVICE
        if not is_executed(self.hot, wait, region, self.all_loops):
            return NOT_EXECUTED
        if self._is_needed(wait, region, origin):
            return needed(wait, self._uses.takers.get(wait))
        if serves(region) and (why := self._is_asked_for(wait, region)):
            return why
        if wait.what == UPLOAD:
            reason = upload_reason(self.hot, wait, region, self.all_loops)
            if reason is None:
                return DIFFERS
            origin = reason
        if self._host_rounds.holds(region):
            return TRAINS_ON_HOST
        return Hazard(wait, region, origin, trains(region), self._place(wait, region))

    def _is_out_of_place(self, wait: Wait, region: Region) -> str | None:
        """Why no wait of its kind is a hazard of a region, whatever it waits for; None if one may be."""
        first = region.chain()[0]
        if self._is_on_host:
            return ON_HOST
        if self.unused.is_unused(first.function):
            return UNUSED
        if not self._is_of_kind(wait, region):
            return NO_LOOP
        if first.does == WEIGHTS and wait.what in (READ, CAST):
            return needed(wait)  # one read of what it is called for
        if self._is_guess(region):
            return NO_LOOP
        if self.hot.reading_steps.are_all(region):
            return STEPS_READ
        may_step = partial(self._may_step, first.function)
        if self._measuring.measures(wait, region, may_step) or (self._measuring.is_stopped(first) and not may_step()):
            return MEASURES
        return WARMS_UP if warms_up(self.hot, region) else None

    def _is_of_kind(self, wait: Wait, region: Region) -> bool:
        """Whether a region is one of those that are looked at for waits of a kind."""
        does = region.chain()[0].does
        if does == COMPUTE:
            return reads_number(self.finder, wait)
        return wait.what == DEVICE if does == LAUNCH else wait.what in (READ, CAST, UPLOAD) or not serves(region)

    def _is_needed(self, wait: Wait, region: Region, origin: str) -> bool:
        """Whether the rounds need what a wait fetches, each of them and at once."""
        first = region.chain()[0]
        if origin == GRADIENTS and first.loop is not None and first.does in TRAINING and not self._may_step(first.function):
            return True  # nothing else is done with them
        if wait.what not in (READ, CAST) or self._uses.is_avoidable(wait, region, self.all_loops):
            return False
        if self._piecemeal.is_part_by_part(wait, region):
            return False
        return origin not in (GRADIENTS, PARAMETERS) or not self._piecemeal.is_one_by_one(wait, region)

    def _is_asked_for(self, wait: Wait, region: Region) -> str:
        """Why a round that serves fetches what it is for; nothing where one read would do for all rounds or rows."""
        if wait.what != UPLOAD and self._piecemeal.is_part_by_part(wait, region):
            return ""
        is_number = wait.what == CAST or wait.name.endswith("item")
        if is_number and region.chain()[0].does != ROWS:
            return needed(wait)
        return EVALUATES if self.hot.serving.evaluates(self.hot, region) else ""

    def _may_step(self, function: Function) -> bool:
        """Whether a function runs an optimizer's step, or calls a method of that name of what nobody knows."""
        if function in self.hot.effects.leading(Effect.OPTIMIZER):
            return True
        return any(one[0] == op.INVOKE and function.text(one[4]) in self._steps for one in self.graph.calls(function).unknown)

    @cached_property
    def _steps(self) -> frozenset[str]:
        return frozenset(last_part(name) for row in self.hot.rounds.rows if row.does == "optimizer" for name in row.names)

    def _is_guess(self, region: Region) -> bool:
        """Whether the calls from a loop to a region may, taken together, enter so many functions of different names that they tell
        nothing: each of them is counted once all is known."""
        return prod(max(len({callee.code.name for callee in callees}), 1) for callees in self._entered(region)) > MOST_NAMES

    def is_sure(self, region: Region) -> bool:
        """Whether each call from a loop to a region may enter one function only."""
        return all(len(callees) == 1 for callees in self._entered(region))

    def is_chosen(self, hazard: Hazard) -> bool:
        """Whether a hazard hangs on a choice of the program."""
        return is_chosen(self.hot, hazard.wait, hazard.region)

    def _entered(self, region: Region) -> Iterator[set[Function]]:
        """For each call from a loop to a region: the functions that it may enter."""
        for one in region.chain()[1:]:
            if one.caller is not None and one.call is not None:
                edges = self.graph.calls(one.caller.function).edges
                yield {edge.callee for edge in edges if edge.instruction == one.call}

    def _place(self, wait: Wait, region: Region) -> Site:
        """The wait; or the call of a helper of another file, which is right to wait, where calling it in each round is not."""
        chain = region.chain()
        first = chain[0]
        is_forward = isinstance(first.row, StepRow) and first.row.forward and wait.function.owner is None
        if len(chain) > 1 and (is_forward or wait.what in (DEVICE, CACHE)) and first.function.unit is not wait.function.unit:
            entering = (each for each in reversed(chain[1:]) if each.caller and each.caller.function.unit is not wait.function.unit)
            helped = next(entering, None)
            if helped is not None and helped.caller is not None and helped.call is not None:
                return Site(helped.caller.function, helped.call)
        return Site(wait.function, wait.instruction)

    def _origin(self, wait: Wait, region: Region) -> str | None:
        """What the host waits for; None where nothing shows that it is on the device."""
        first = region.chain()[0]
        if wait.what in (DEVICE, CACHE, UPLOAD):
            return ""
        if self.finder.reads_state(wait):
            return ON_DEVICE
        is_read = _reads_numbers(wait, first)
        held = self._values.of(region, wait)
        if wait.what == FETCH:
            reasons = [reason for function, register in held for reason in self.finder.reasons_of_held(function, register)]
        else:
            reasons = [reason for function, register in held for reason in self.finder.reasons(function, register, is_read)]
        is_computed = self._is_computed(wait)
        if wait.what == SIZE or answers(wait):
            return self._origin_of_answer(wait, reasons, is_computed)
        return self._origin_of_numbers(wait, first, reasons, is_read, is_computed)

    def _origin_of_numbers(self, wait: Wait, first: Region, reasons: list[str], is_read: bool, is_computed: bool) -> str | None:
        of_row = isinstance(first.row, StepRow) or first.does == CALLED
        is_given = wait.what == READ and of_row and getattr(first.row, "of", first.row) is not None  # the trainer has moved its inputs
        found = _valid(reasons, is_computed, is_read or is_given)
        candidates = [one for one in found if one != INPUT]
        if not candidates:
            is_shown = of_row and (is_computed or is_given) and not stands_for_number(self.facts, wait)
            return FROM_INPUT if found and is_shown else None
        if isinstance(first.row, StepRow) and first.row.loop == "optimizer":  # no batch is moved there
            candidates = ["literal" if one == "asked" else one for one in candidates]
        return name_of(self.graph, self.facts.seeds, wait, candidates)

    def _origin_of_answer(self, wait: Wait, reasons: list[str], is_computed: bool) -> str | None:
        is_tensor = wait.what == SIZE and (is_computed or is_mask(self.facts, wait.function, wait.value))
        return ON_DEVICE if "literal" in _valid(reasons, is_tensor, False) else None

    def _is_computed(self, wait: Wait) -> bool:
        """Whether a value is the result of an operation on tensors, or a part of one."""
        function = wait.function
        calls = self.graph.calls(function).libraries
        computed = {call.instruction for call in calls if call.row is not None and call.row.effect in ("compute", "view", "factory")}

        def onward(one: Instruction) -> Iterable[int]:
            whole = taken_from(function, one) if self.all_loops and one[0] in (op.NEXT, op.UNPACK) else None
            return _computed_from(one) if whole is None else [whole]

        return any(one in computed for one in behind(function, [wait.value], onward))


def _reads_numbers(wait: Wait, first: Region) -> bool:
    """Whether a wait reads the numbers of a tensor; what is moved as a whole may be a module."""
    if wait.what == READ and wait.name.endswith(("item", "tolist")):
        return True
    return first.does in (INFER, ROWS) and is_of_array(wait.function, wait.value)


def _valid(reasons: list[str], is_computed: bool, may_guess: bool) -> list[str]:
    """The sure reasons why a value is on the device, else the unsure ones where they count; a computed value is where its operands are."""
    unsure = [one.removeprefix(UNSURE) for one in reasons if one.startswith(UNSURE)]
    sure = [one for one in reasons if not one.startswith(UNSURE)] + (unsure if is_computed else [])
    return sure or (unsure if may_guess else [])


def _computed_from(one: Instruction) -> Iterable[int]:
    if one[0] in (op.PHI, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE):
        return op.reads(one)
    return one[3:4] if one[0] in (op.ITEM, op.UNPACK, op.NEXT, op.ITER) else ()
