"""A litmus session: programs to the GPU, outcomes against the model, disagreements confirmed, shrunk and counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from streamlint.cuda_model import FACTS
from streamlint.litmus import generate, shrink
from streamlint.litmus.predict import Outcome, Strengths, can_be_held, observed, outside
from streamlint.litmus.program import Program, needs_peers, parse
from streamlint.verify.watchdog import Message

START_S = 120.0  # imports, context, buffers, the lab's kernels, one warm-up of every call
RUN_S = 30.0  # one run; a hung one says so itself after 8 s
REPEATS = 2  # a disagreement must be repeated this often
SHRINK_S = 6.0  # for one disagreement
PROGRESS_S = 5.0
_ALIKE = 3  # after this many minimal programs of a kind the rest are only counted


class Speaker(Protocol):
    """What a session needs of the child; :class:`streamlint.verify.watchdog.Child` is one."""

    def ask(self, request: Message) -> None: ...
    def read(self, seconds: float) -> Message | None: ...
    def kill(self) -> None: ...
    def epitaph(self) -> str: ...


class NothingRanError(Exception):
    """No child could be started; the text says why."""


@dataclass
class Disagreement:
    """A minimal program whose outcome is not the expected one. ``violation``: it is outside of what the model allows at all."""

    program: Program
    expected: Outcome
    seen: Outcome
    violation: bool
    times: int = 1


@dataclass
class Tally:
    """The figures of a session. ``void`` runs yielded no outcome: a gate that did not run or gave up; ``reasons`` counts why."""

    programs: int = 0
    runs: int = 0
    agreed: int = 0
    unsteady: int = 0
    void: int = 0
    hung: int = 0
    disagreed: int = 0
    violations: int = 0
    seconds: float = 0.0
    disagreements: list[Disagreement] = field(default_factory=list)
    unsteady_programs: list[Disagreement] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    facts: dict[str, bool] = field(default_factory=dict)  # whether the program that shows a fact did what the model says
    platform: Message = field(default_factory=dict)

    @property
    def agreement(self) -> float:
        """The share of runs with an outcome that had the expected one; runs that did not repeat count against it."""
        return self.agreed / self.runs if self.runs else 0.0


class Session:
    """Owns the child; :meth:`fuzz` and :meth:`replay` run programs on it."""

    def __init__(self, spawn: Callable[[], Speaker], table: Strengths, progress: Callable[[str], None] = lambda _line: None) -> None:
        """``progress`` is given lines for people. :attr:`record` is given each program with its outcome."""
        self._spawn, self._table, self._progress = spawn, table, progress
        self._child: Speaker | None = None
        self.tally = Tally()
        self._kinds: dict[str, int] = {}
        self.record: Callable[[Program, Outcome], None] = lambda _program, _seen: None

    def start(self) -> None:
        """Start the child and wait until it is warm. Raises :class:`NothingRanError`."""
        child = self._spawn()
        self._child = child
        for wanted in ("ready", "warm"):
            try:
                message = child.read(START_S)
            except TimeoutError:
                raise NothingRanError(f"no answer within {START_S:.0f} s") from None
            if message is None:
                raise NothingRanError(child.epitaph())
            if message["event"] != wanted:
                raise NothingRanError(str(message.get("reason", message)))
            if wanted == "ready":
                self.tally.platform = {key: value for key, value in message.items() if key != "event"}

    def restart(self, table: Strengths) -> None:
        """Go on with another model and an empty tally, on the same child."""
        self._table = table
        self._kinds = {}
        self.tally = Tally(platform=self.tally.platform)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def fuzz(
        self, seed: int, seconds: float, *, enough: Callable[[Tally], bool] = lambda _tally: False, peers: float = generate.PEERS
    ) -> Tally:
        """Random programs for that long, or until it is enough; ``peers`` is the share of those on two devices, where there are two."""
        return self._all(self._gated(generate.programs(seed, peers=peers if self._peers else 0.0)), seconds, enough)

    def pairs(self) -> Tally:
        """Every call of one thread beside every call that another thread may wait in."""
        return self.replay(generate.pairs())

    def replay(self, programs: Iterable[Program]) -> Tally:
        """Run programs with the gates that they have."""
        return self._all(self._counted(programs), float("inf"), lambda _tally: False)

    def _counted(self, programs: Iterable[Program]) -> Iterator[Program]:
        for program in programs:
            self.tally.programs += 1
            yield program

    def show_facts(self) -> None:
        """Run the program of each fact; of facts about two devices, where there are two."""
        for fact in FACTS.values():
            program = parse(fact.shown_by)
            if self._peers or not needs_peers(program):
                agreed, runs = self.tally.agreed, self.tally.runs
                self.tally.programs += 1
                self._one(program)
                if self.tally.runs > runs:
                    self.tally.facts[fact.name] = self.tally.agreed > agreed

    @property
    def _peers(self) -> bool:
        return bool(self.tally.platform.get("peers"))

    def _gated(self, programs: Iterable[Program]) -> Iterator[Program]:
        for program in programs:
            self.tally.programs += 1
            for gate in program.gates():
                held = program.gated(gate, program.kind)
                if can_be_held(held, self._table):
                    yield held

    def _all(self, programs: Iterable[Program], seconds: float, enough: Callable[[Tally], bool]) -> Tally:
        begin = time.monotonic()
        reported_at = begin
        for program in programs:
            self._one(program)
            now = time.monotonic()
            self.tally.seconds = now - begin
            if now - reported_at > PROGRESS_S:
                reported_at = now
                self._progress(progress_line(self.tally))
            if self.tally.seconds > seconds or enough(self.tally):
                break
        return self.tally

    # --- one program --------------------------------------------------------------------------------------------------------------------

    def _one(self, program: Program) -> None:
        expected = observed(program, self._table)
        seen = self.outcome(program, expected)
        if seen is None:
            return
        self.record(program, seen)
        self.tally.runs += 1
        if seen == expected:
            self.tally.agreed += 1
            return
        for _ in range(REPEATS):
            if self.outcome(program, expected) != seen:
                self.tally.unsteady += 1
                self.tally.unsteady_programs.append(Disagreement(program, expected, seen, violation=False))
                return
        self.tally.disagreed += 1
        self.tally.violations += self._keep(program, expected, seen)

    def _keep(self, program: Program, expected: Outcome, seen: Outcome) -> bool:
        """Make the program small and keep it; whether its outcome is a violation."""
        violation = outside(program, seen, self._table)
        kind = shrink.kind_of(program, expected, seen)
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] <= _ALIKE:
            program = shrink.smallest(program, self._disagrees, SHRINK_S)
            expected = observed(program, self._table)
            repeated = self.outcome(program, expected)
            seen = seen if repeated is None else repeated
            violation = violation or outside(program, seen, self._table)
            for known in self.tally.disagreements:
                if str(known.program) == str(program):
                    known.times += 1
                    return violation
            self.tally.disagreements.append(Disagreement(program, expected, seen, violation))
            self._progress(f"disagreement:\n{program}\n  expected {sorted(expected)}\n  seen     {sorted(seen)}")
        return violation

    def _disagrees(self, program: Program) -> bool:
        expected = observed(program, self._table)
        if not can_be_held(program, self._table):
            return False
        seen = self.outcome(program, expected)
        return seen is not None and seen != expected and self.outcome(program, expected) == seen

    def outcome(self, program: Program, expected: Outcome) -> Outcome | None:
        """What the GPU did; ``None`` where the run is void, which is counted with its reason."""
        if self._child is None:
            self.start()
        assert self._child is not None
        self._child.ask({"program": str(program), "expected": sorted(expected)})
        try:
            message = self._child.read(RUN_S)
        except TimeoutError:
            message = {"event": "silent", "problem": f"the child was silent for {RUN_S:.0f} s", "hung": True}
        if message is None or message["event"] == "broken":
            reason = "the child broke: " + (self._child.epitaph() if message is None else str(message["reason"]))
            self._void(reason, program)
            self.close()
            return None
        if message.get("hung"):
            self.tally.hung += 1
            self.close()
        if message.get("problem"):
            self._void(str(message["problem"]), program)
            return None
        return frozenset(message["words"])

    def _void(self, reason: str, program: Program) -> None:
        self.tally.void += 1
        self.tally.reasons[reason] = self.tally.reasons.get(reason, 0) + 1
        if self.tally.reasons[reason] == 1:
            self._progress(f"no outcome ({reason}):\n{program}")


def progress_line(tally: Tally) -> str:
    """Rates and what was found so far, in a line."""
    rate = tally.runs / tally.seconds if tally.seconds else 0.0
    return (
        f"{tally.seconds:.0f} s: {tally.programs} programs, {tally.runs} runs ({rate:.0f}/s), {tally.agreement:.2%} as expected, "
        f"{tally.disagreed} not ({tally.violations} outside the model), {tally.unsteady} not repeatable, {tally.void} void"
    )
