"""Runs jobs in children: a case that hangs or crashes is reported and the run goes on in a fresh child."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment, Figures, Judgement, Verdict, verdict
from streamlint.verify.stacks import Stack, where
from streamlint.verify.watchdog import Message

STARTUP_S = 90.0  # interpreter, imports, context, the lab's own kernels
HANG_S = 3.0  # a deadlock is one that has not ended this long after the child armed itself


class Speaker(Protocol):
    """What the runner needs of a child; :class:`streamlint.verify.watchdog.Child` is one."""

    def read(self, seconds: float) -> Message | None: ...
    def kill(self) -> None: ...
    def epitaph(self) -> str: ...
    def stacks(self) -> list[Stack]: ...


@dataclass(frozen=True)
class Job:
    """One program to run: a variant of a case. ``beside``: the variant that it is timed in turns with."""

    case: Case
    variant: str
    library: str | None = None
    beside: str | None = None
    beside_library: str | None = None

    def request(self) -> dict[str, Any]:
        """The job as the child reads it."""
        rule, name, api = self.case.key
        more: dict[str, Any] = {"beside": self.beside, "beside_library": self.beside_library} if self.beside else {}
        if self.case.facts:
            more["parameters"] = dict(self.case.facts)
        return {"rule": rule, "name": name, "api": api, "variant": self.variant, "library": self.library, **more}


@dataclass
class Answer:
    """What came of a job. ``figures`` has a ``failure`` where there is no number; ``unsupported`` says what is missing."""

    figures: dict[str, Any] = field(default_factory=dict)
    unsupported: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Result:
    """A case with its verdict, as it is reported and kept. ``seconds`` is what the two programs took, without start-up and builds."""

    case: Case
    judgement: Judgement
    misuse: Figures
    remedy: Figures
    seconds: float

    def as_json(self) -> dict[str, Any]:
        rule, name, api = self.case.key
        facts = {"facts": dict(self.case.facts)} if self.case.facts else {}
        return {
            "rule": rule,
            "case": name,
            "api": api,
            "prediction": self.case.prediction,
            "verdict": self.judgement.verdict.value,
            "reason": self.judgement.reason,
            "misuse": dict(self.misuse),
            "remedy": dict(self.remedy),
            "seconds": round(self.seconds, 2),
            **facts,
        }


Spawn = Callable[[Sequence[Job]], Speaker]
Progress = Callable[[str], None]


def _quiet(_line: str) -> None:
    pass


def _unheard(_said: object) -> None:
    pass


def run_jobs(
    jobs: Sequence[Job],
    spawn: Spawn,
    timeout: float,
    progress: Progress = _quiet,
    into: list[Answer] | None = None,
    answered: Callable[[Answer], None] = _unheard,
) -> list[Answer]:
    """Run the jobs in sequence, in as few children as their deaths allow. ``timeout``: seconds for one job that should end.

    ``into`` gets the answers, also those that had come when this is interrupted; ``answered`` gets each as it comes.
    """
    answers: list[Answer] = [] if into is None else into
    before = len(answers)
    while len(answers) - before < len(jobs):
        rest = jobs[len(answers) - before :]
        child = spawn(rest)
        listener = _Listener(child, rest, timeout, progress, answered)
        try:
            heard = listener.hear()
        except BaseException:
            heard = listener.answers
            raise
        finally:
            answers += heard
            child.kill()
        for answer in heard[listener.reported :]:
            answered(answer)
    return answers


@dataclass
class _Listener:
    """Hears one child out: at least one answer comes of it. If it dies before any job starts, that is the answer to all of them."""

    child: Speaker
    jobs: Sequence[Job]
    timeout: float
    progress: Progress
    answered: Callable[[Answer], None] = _unheard
    reported: int = 0  # how many answers were reported
    answers: list[Answer] = field(default_factory=list)
    phases: dict[str, tuple[str, str]] = field(default_factory=dict)  # by thread: its name, and what it was about to do
    started: float | None = None  # when the job in flight did
    armed: bool = False
    limit: float = STARTUP_S
    deadline: float = 0.0

    def hear(self) -> list[Answer]:
        self._allow(STARTUP_S)
        while len(self.answers) < len(self.jobs):
            try:
                message = self.child.read(max(self.deadline - time.perf_counter(), 0.0))
            except TimeoutError:
                return self._silent()
            if message is None or message["event"] in ("broken", "end"):
                return self._ended(message)
            self._take(message)
        return self.answers

    def _allow(self, seconds: float) -> None:
        self.limit, self.deadline = seconds, time.perf_counter() + seconds

    def _take(self, message: Message) -> None:
        event = message["event"]
        if event == "phase":  # moves no deadline
            self.phases[message["thread"]] = (message["name"], message["doing"])
        elif event == "start":
            self.started, self.armed, self.phases = time.perf_counter(), False, {}
            self._allow(self.timeout)
            job = self.jobs[len(self.answers)]
            self.progress(f"{job.case.rule} {job.case.name} [{job.case.api}] {job.variant} …")
        elif event == "armed":
            self.armed = True
            self._allow(HANG_S)
        elif event in ("figures", "failure", "unsupported"):
            self.answers.append(_answer(message, self._spent()))
            self.started, self.armed = None, False
            self._allow(self.timeout)
            self.reported += 1
            self.answered(self.answers[-1])

    def _spent(self) -> float:
        return 0.0 if self.started is None else time.perf_counter() - self.started

    def _stood(self) -> list[str]:
        return where(self.child.stacks(), self.phases)

    def _silent(self) -> list[Answer]:
        """The deadline is over: where the child stands is part of the answer."""
        stood = self._stood()
        if self.armed:
            figures = {"ended": False, "waited_s": self.limit, **({"stood": stood} if stood else {})}
            if lanes := self._hung():
                figures["timeline"] = lanes
            return [*self.answers, Answer(figures=figures, seconds=self.limit)]
        what = "the case" if self.started is not None else "the child's start"
        return self._lost(f"{what} did not end within {self.limit:.3g} s, killed", stood)

    def _hung(self) -> list[dict[str, Any]]:
        """The timeline of threads that never came back."""
        rows = [(name, f"{doing}: does not return") for name, doing in self.phases.values()]
        return [{"name": name, "kind": "host", "spans": [{"from": 0.0, "to": self.limit * 1e3, "what": what}]} for name, what in rows]

    def _ended(self, message: Message | None) -> list[Answer]:
        if message is not None:
            return self._lost(str(message.get("reason", "the child stopped early")), [])
        return self._lost(self.child.epitaph(), self._stood() if self.started is not None else [])

    def _lost(self, reason: str, stood: Sequence[str]) -> list[Answer]:
        """The job in flight is lost; with none in flight and none answered, the child cannot start and all are."""
        figures: dict[str, Any] = {"failure": "; ".join([reason, *stood])}
        if self.started is not None:
            return [*self.answers, Answer(figures=figures, seconds=self._spent())]
        return self.answers or [Answer(figures=dict(figures)) for _ in self.jobs]


def _answer(message: Message, seconds: float) -> Answer:
    if message["event"] == "figures":
        return Answer(figures=dict(message["figures"]), seconds=seconds)
    if message["event"] == "failure":
        return Answer(figures={"failure": message["reason"]}, seconds=seconds)
    return Answer(unsupported=message["reason"], seconds=seconds)


def batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Cases that share a child: those of one API and number of GPUs, since a start costs more than a case. One that hangs is alone.

    Those that compile when they are imported have a child of their own: the others need not wait for the compiler.
    """
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        group = (
            tuple(map(str, case.identity)) if case.experiment is Experiment.DEADLOCK else (case.api, str(case.devices), str(case.builds))
        )
        groups.setdefault(group, []).append(case)
    return list(groups.values())


def judge(case: Case, misuse: Answer, remedy: Answer) -> Result:
    """The verdict on one case from its two answers."""
    missing = misuse.unsupported or remedy.unsupported
    judged = verdict(case.experiment, misuse.figures, remedy.figures)
    judgement = Judgement(Verdict.UNSUPPORTED, missing) if missing else judged
    return Result(case, judgement, misuse.figures, remedy.figures, misuse.seconds + remedy.seconds)


def run_batch(
    cases: Sequence[Case],
    spawn: Spawn,
    libraries: Mapping[str, str],
    timeout: float,
    *,
    swap: bool = False,
    progress: Progress = _quiet,
    judged: Callable[[Result], None] = _unheard,
) -> list[Result]:
    """Run misuse and remedy of each case and judge. ``swap`` lets each play the other's part (``--self-test``).

    ``judged`` gets each result as it comes, so that those of the cases that were through when this is interrupted are not lost.
    """
    roles = ("remedy", "misuse") if swap else ("misuse", "remedy")
    jobs = [job for case in cases for job in _jobs(case, roles, libraries)]
    deadlock = cases[0].experiment is Experiment.DEADLOCK
    groups = [[job] for job in jobs] if deadlock else [jobs]
    results: list[Result] = []
    halves: list[Answer] = []  # two for each case

    def answered(answer: Answer) -> None:
        halves.extend(_parted(answer) if cases[len(halves) // 2].experiment is Experiment.COSTS else (answer,))
        if len(halves) % 2 == 0:
            results.append(judge(cases[len(halves) // 2 - 1], *halves[-2:]))
            judged(results[-1])

    for group in groups:
        run_jobs(group, spawn, timeout, progress, answered=answered)
    return results


def _jobs(case: Case, roles: tuple[str, str], libraries: Mapping[str, str]) -> list[Job]:
    """A job for each program; what costs time is measured in turns, so that both meet the same machine."""
    first, second = (libraries.get(str(case.path(variant))) for variant in roles)
    if case.experiment is Experiment.COSTS:
        return [Job(case, roles[0], first, roles[1], second)]
    return [Job(case, roles[0], first), Job(case, roles[1], second)]


def _parted(both: Answer) -> tuple[Answer, Answer]:
    """The answers of two programs that were timed in turns."""
    if both.unsupported or "ms" not in both.figures:
        return both, Answer(both.figures, both.unsupported)
    figures = dict(both.figures)
    beside = figures.pop("beside_ms", [])
    return Answer(figures, seconds=both.seconds), Answer({"ms": beside})
