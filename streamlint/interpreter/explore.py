"""Paths through a root: the likely one, then those that differ from it in one undecided condition, then in two.

A path is run from the start with its decisions forced, so no state is ever copied or joined; a finding is a witness path. A conflict must
not rest on more than one guess: its undecided conditions are flipped one by one, and counted where the conflict is gone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set

from streamlint.findings import Span
from streamlint.interpreter.again import CALLS, MOST_ROUNDS, is_worth_more, only_between
from streamlint.interpreter.index import Program
from streamlint.interpreter.novelty import Shown, shown
from streamlint.interpreter.per_thread import has_per_thread_streams, per_thread_because
from streamlint.interpreter.prelude import can_notice, preludes_of
from streamlint.interpreter.roots import Root, run_root
from streamlint.interpreter.run import Coverage, Decision, OutOfBudget, Run, Settings
from streamlint.interpreter.snapshots import Made, Sight, Unnoticed
from streamlint.interpreter.stakes import Stakes, everything
from streamlint.operations import Conflict, Copy, Entry, Memory, Operation, Synchronize
from streamlint.program import Position, Statement
from streamlint.record import field, record, replace

MOST_RUNS = 12
MOST_RUNS_CPP = 24  # with one guess: functions that choose among many kernels are short
MOST_STEPS = 12_000  # over the runs of a root, before one more path is looked at
MOST_TO_SETTLE = 200_000  # with those that conflicts are tested by
MOST_FLIPS = 2

Place = tuple[Span, tuple[Span, ...]]
Key = tuple[tuple[tuple[str, bool], ...], int, bool]  # of a run: its decisions, its rounds, whether the root is called again


@record(slots=True)
class _Way:
    """A path that waits: its decisions, and the one that was turned last."""

    forced: dict[str, bool]
    turned: Decision | None = None

    def is_news(self, arms: Set[tuple[str, Position]]) -> bool:
        """Whether the decision may lead to an arm that is not among these."""
        if self.turned is None or self.turned.arms is None:
            return True
        bodies = ((file.path, body[0]) for file, body in self.turned.arms if body)
        return any(isinstance(first, Statement) and (path, first.at) not in arms for path, first in bodies)


@record(slots=True)
class Budget:
    """What it may take to test the conflicts of one check, counted as if no other check had any tested."""

    steps: int
    known: set[Key]

    def run(self, explorer: Explorer, forced: dict[str, bool], rounds: int, again: bool = False) -> Run:
        """A run of the root, counted."""
        run, key = explorer.run(forced, rounds, again), _key(forced, rounds, again)
        if key not in self.known:
            self.known.add(key)
            self.steps += run.steps - run.made_in
        return run


@record(slots=True)
class Explorer:
    """Runs one root on its paths."""

    program: Program
    root: Root
    coverage: Coverage
    settings: Settings
    stakes: Stakes = field(default_factory=everything)
    steps: int = 0
    links: dict[str, str] = field(default_factory=dict)
    runs: dict[Key, Run] = field(default_factory=dict)
    cut_short: bool = False  # the likely path did not come to its end
    arms: set[tuple[str, Position]] = field(default_factory=set)  # that some path has run

    def paths(self) -> Iterator[Run]:
        """The runs of this root, most likely first."""
        waiting: list[_Way] = [_Way({})]
        idle: list[_Way] = []  # they show nothing that a check begins with, as long as no path does
        seen: set[tuple[tuple[str, bool], ...]] = set()
        told: set[tuple[Shown, int]] = set()
        count = 0
        most = MOST_RUNS_CPP if self.root.file.is_cuda else MOST_RUNS
        while waiting and count < most and self.steps < MOST_STEPS:
            way = waiting.pop(self._next(waiting))
            forced = way.forced
            key = tuple(sorted(forced.items()))
            if key in seen or (count >= MOST_RUNS and self._guesses(forced) > 1):
                continue
            seen.add(key)
            count += 1
            try:
                run = self.run(forced, 2, sight=self._sight(way))
            except Unnoticed as found:
                waiting += self._behind(way, found.kept)
                continue
            self.arms |= run.arms
            yield run
            speaks = self.stakes.look(run)
            if not (forced or run.decisions):  # it is the only path, so that nobody asks what it shows
                if speaks and run.ring >= run.most_rounds:
                    yield self.run(forced, run.ring + 1)
                if speaks and is_worth_more(run, self.root.function):
                    yield self.run(forced, MOST_ROUNDS, again=True)
                break
            shows = shown(run), run.ring
            if speaks and run.ring >= run.most_rounds and shows not in told:  # what is no news in two rounds is none in more
                yield self.run(forced, run.ring + 1)
            told.add(shows)
            if speaks and not forced and is_worth_more(run, self.root.function):
                yield self.run(forced, MOST_ROUNDS, again=True)
            if not forced:
                likely = shows[0]
            self.links.update((atom, decision.link) for atom, decision in run.decisions.items() if decision.link)
            # Two guesses are for what one of them made possible; a chain of choices goes on in any case.
            deeper = not forced or shows[0] != likely
            worth = [
                decision
                for atom, decision in run.decisions.items()
                if atom not in forced and (deeper or decision.link in forced) and self._is_worth(run, decision)
            ]
            if worth:
                worth.sort(key=lambda decision: (decision.setup, decision.depth))
                for decision in worth:
                    decided = {**forced, decision.atom: not decision.arm}
                    if self._guesses(decided) <= MOST_FLIPS:
                        (waiting if speaks or self.stakes.may_show(decision) else idle).append(_Way(decided, decision))
            if speaks and idle:
                waiting, idle = idle + waiting, []
        if waiting and (count >= MOST_RUNS or self.steps >= MOST_STEPS):
            self.coverage.over_budget += 1

    def _sight(self, way: _Way) -> Sight | None:
        """What the body saw before a decision was turned: behind that it does no other work unless it finds something else in its object.

        That is told of decisions about the object alone, while no path shows what a check begins with.
        """
        before = self._before(way)
        if before is None or before.made_from is None or self.stakes.shown:
            return None
        asked = before.questions | before.asked_before
        return Sight(before.made_from, frozenset(before.read)) if way.forced.keys().isdisjoint(asked) else None

    def _before(self, way: _Way) -> Run | None:
        """The path whose decision was turned, if there is one and it was run."""
        forced = ((atom, arm) for atom, arm in way.forced.items() if way.turned is None or atom != way.turned.atom)
        return self.runs.get((tuple(sorted(forced)), 2, False)) if way.turned is not None else None

    def _behind(self, way: _Way, kept: Made) -> Iterator[_Way]:
        """A path that was not run to its end: its steps, and the choices that go on where its decision was turned."""
        before, forced = self._before(way), way.forced
        assert before is not None
        assert before.made_from is not None
        self.steps += before.steps - before.made_in
        self.links.update((decision.atom, decision.link) for decision in kept.linked)
        for decision in kept.linked:
            if decision.atom not in forced and decision.link in forced and self._is_worth(before, decision):
                yield _Way({**forced, decision.atom: not decision.arm}, decision)

    def _next(self, waiting: Sequence[_Way]) -> int:
        """Of paths with two guesses, one that comes to an arm which no path has run is first."""
        if self._guesses(waiting[0].forced) > 1:
            return next((number for number, way in enumerate(waiting) if way.is_news(self.arms)), 0)
        return 0

    def _guesses(self, forced: dict[str, bool]) -> int:
        """How many choices were made: the conditions before an arm of `if … else if …` or of a `switch` are one with its own."""
        before = {self.links.get(atom) for atom in forced}
        return sum(atom not in before for atom in forced)

    def _is_worth(self, run: Run, decision: Decision) -> bool:
        """Whether the other arm of a decision can show anything new, in the body that this root is run for."""
        if not decision.worth or not decision.way or decision.atom in run.questions:
            return decision.worth
        touched = preludes_of(self.program).touched(decision.way, decision.span)
        return can_notice(touched, run.read, self.root.file.is_cuda)

    def run(self, forced: dict[str, bool], rounds: int, again: bool = False, sight: Sight | None = None) -> Run:
        """The run with these decisions; each is run once. ``again``: the root is called more than once.

        Raises ``Unnoticed`` where the body would see no more than ``sight``.
        """
        key = _key(forced, rounds, again)
        if key not in self.runs:
            run = Run(self.program, forced, rounds, self.coverage, self.settings)
            run.calls = CALLS if again else 1
            run.sight = sight
            run.machine.per_thread = has_per_thread_streams(self.root.file, self.settings.default_stream)
            if run.machine.per_thread:
                run.machine.per_thread_because = per_thread_because(self.root.file, self.settings.default_stream)
            try:
                run_root(run, self.root)
            except OutOfBudget:
                self.coverage.over_budget += 1
                self.cut_short = self.cut_short or not forced
            if again:
                only_between(run)
            self.steps += run.steps - run.made_in
            self.coverage.runs += 1
            self.runs[key] = run
        return self.runs[key]

    def budget(self) -> Budget:
        """For the conflicts of one check, once all paths were run."""
        return Budget(self.steps, set(self.runs))

    # --- guesses -----------------------------------------------------------------------------------------------------------------------

    def settled(self, run: Run, conflict: Conflict, budget: Budget) -> Conflict | None:
        """The conflict with its guesses counted; None if it falls: two guesses, or gone when loops run once more."""
        between = [decision for decision in run.decisions.values() if conflict.first.index < decision.index <= conflict.second.index]
        again = run.calls > 1
        guesses = 0
        for decision in between:
            if budget.steps >= MOST_TO_SETTLE:
                self.coverage.over_budget += 1
                return None
            forced = {**run.forced, decision.atom: not decision.arm}
            other = budget.run(self, forced, run.most_rounds, again)
            if isinstance(conflict.first, Entry) and not _reaches(other, conflict.second):
                continue  # a condition of the whole, and no order
            if not _misses(other, conflict) and decision.atom not in other.raised_in:
                guesses += 1
            if guesses > 1:
                return None
        longer = None if again else budget.run(self, run.forced, run.most_rounds + 1) if run.counts_rounds else run
        if longer is not None and not _holds(longer, conflict) and all(atom in longer.atoms for atom in run.forced):
            return None  # (a run that never met what it was to decide went another way, and tells nothing)
        return replace(conflict, guesses=guesses)

    def pinned_places(self) -> frozenset[Place]:
        """Copies whose host memory is pinned on some path: there, pageable memory is the exception that a condition handles."""
        found = set()
        for run in self.runs.values():
            for operation in run.machine.operations:
                if isinstance(operation, Copy) and operation.host_memory is Memory.PINNED:
                    found.add((operation.span, operation.context.calls))
        return frozenset(found)

    def waited_places(self) -> frozenset[Place]:
        """Copies that the host waits for right away on some path: where nothing comes behind them on another, they have failed there."""
        found = set()
        for run in self.runs.values():
            for operation, following in itertools.pairwise(run.machine.operations):
                if isinstance(operation, Copy) and isinstance(following, Synchronize):
                    found.add((operation.span, operation.context.calls))
        return frozenset(found)


def _key(forced: dict[str, bool], rounds: int, again: bool) -> Key:
    return tuple(sorted(forced.items())), rounds, again


def _misses(run: Run, conflict: Conflict) -> bool:
    """Whether nothing orders the first access on this path either, whichever place meets it."""
    return any(c.first.span == conflict.first.span and c.missing == conflict.missing for c in run.machine.conflicts)


def _reaches(run: Run, operation: Operation) -> bool:
    return any(o.span == operation.span for o in run.machine.operations)


def _holds(run: Run, conflict: Conflict) -> bool:
    places = conflict.first.span, conflict.second.span
    return any((c.first.span, c.second.span) == places for c in run.machine.conflicts)
