"""Runs jobs in children: a case that hangs or crashes is reported and the run goes on in a fresh child."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment, Figures, Judgement, Verdict, verdict
from streamlint.verify.watchdog import Message

STARTUP_S = 90.0  # interpreter, imports, context, the lab's own kernels
HANG_S = 3.0  # a deadlock is one that has not ended this long after the child armed itself


class Speaker(Protocol):
    """What the runner needs of a child; :class:`streamlint.verify.watchdog.Child` is one."""

    def read(self, seconds: float) -> Message | None: ...
    def kill(self) -> None: ...
    def epitaph(self) -> str: ...


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
        paired = {"beside": self.beside, "beside_library": self.beside_library} if self.beside else {}
        return {"rule": rule, "name": name, "api": api, "variant": self.variant, "library": self.library, **paired}


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
        }


Spawn = Callable[[Sequence[Job]], Speaker]
Progress = Callable[[str], None]


def _quiet(_line: str) -> None:
    pass


def run_jobs(jobs: Sequence[Job], spawn: Spawn, timeout: float, progress: Progress = _quiet) -> list[Answer]:
    """Run the jobs in sequence, in as few children as their deaths allow. ``timeout``: seconds for one job that should end."""
    answers: list[Answer] = []
    while len(answers) < len(jobs):
        rest = jobs[len(answers) :]
        child = spawn(rest)
        try:
            answers += _listen(child, rest, timeout, progress)
        finally:
            child.kill()
    return answers


def _listen(child: Speaker, jobs: Sequence[Job], timeout: float, progress: Progress) -> list[Answer]:
    """The answers of one child, at least one: if it dies before any job starts, that is the answer to all of them."""
    answers: list[Answer] = []
    started: float | None = None
    limit, armed = STARTUP_S, False
    while len(answers) < len(jobs):
        try:
            message = child.read(limit)
        except TimeoutError:
            return _silent(answers, jobs, limit, armed, started)
        event = "dead" if message is None else message["event"]
        if event == "start":
            started, limit, armed = time.perf_counter(), timeout, False
            job = jobs[len(answers)]
            progress(f"{job.case.rule} {job.case.name} [{job.case.api}] {job.variant} …")
        elif event == "armed":
            limit, armed = HANG_S, True
        elif event in ("figures", "failure", "unsupported") and message is not None:
            answers.append(_answer(message, 0.0 if started is None else time.perf_counter() - started))
            started, limit, armed = None, timeout, False
        elif event in ("dead", "broken", "end"):
            reason = child.epitaph() if message is None else message.get("reason", "the child stopped early")
            return _lost(answers, jobs, str(reason), started)
    return answers


def _answer(message: Message, seconds: float) -> Answer:
    if message["event"] == "figures":
        return Answer(figures=dict(message["figures"]), seconds=seconds)
    if message["event"] == "failure":
        return Answer(figures={"failure": message["reason"]}, seconds=seconds)
    return Answer(unsupported=message["reason"], seconds=seconds)


def _silent(answers: list[Answer], jobs: Sequence[Job], limit: float, armed: bool, started: float | None) -> list[Answer]:
    if armed:
        return [*answers, Answer(figures={"ended": False, "waited_s": limit}, seconds=limit)]
    what = "the case" if started is not None else "the child's start"
    return _lost(answers, jobs, f"{what} did not end within {limit:.0f} s, killed", started)


def _lost(answers: list[Answer], jobs: Sequence[Job], reason: str, started: float | None) -> list[Answer]:
    """The job in flight is lost; with none in flight and none answered, the child cannot start and all are."""
    failed = Answer(figures={"failure": reason})
    if started is not None:
        failed.seconds = time.perf_counter() - started
        return [*answers, failed]
    return answers or [Answer(figures={"failure": reason}) for _ in jobs]


def batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Cases that share a child: those of one API and number of GPUs, since a start costs more than a case. One that hangs is alone."""
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        group = case.key if case.experiment is Experiment.DEADLOCK else (case.api, str(case.devices))
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
) -> list[Result]:
    """Run misuse and remedy of each case and judge. ``swap`` lets each play the other's part (``--self-test``)."""
    roles = ("remedy", "misuse") if swap else ("misuse", "remedy")
    jobs = [job for case in cases for job in _jobs(case, roles, libraries)]
    deadlock = cases[0].experiment is Experiment.DEADLOCK
    groups = [[job] for job in jobs] if deadlock else [jobs]
    found = [answer for group in groups for answer in run_jobs(group, spawn, timeout, progress)]
    answers = [answer for job, both in zip(jobs, found, strict=True) for answer in (_parted(both) if job.beside else (both,))]
    return [judge(case, answers[2 * number], answers[2 * number + 1]) for number, case in enumerate(cases)]


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
