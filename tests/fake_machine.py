"""A made-up machine with a GPU, for tests alone: what it says was measured nowhere, and its name says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamlint.verify.care import Plan
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment
from streamlint.verify.runner import Job
from streamlint.verify.stacks import Stack
from streamlint.verify.watchdog import Message

SHOWN: dict[Experiment, dict[str, Any]] = {
    Experiment.HOST_WAITS: {"gate_ms": [20.0, 60.0, 120.0], "host_ms": [20.1, 60.1, 120.1]},
    Experiment.THREAD_HELD: {"runs": 5, "returned_before": 0},
    Experiment.GIL_HELD: {"inside_ms": [200.0] * 5, "beats": [0] * 5, "beat_ms": 2.0},
    Experiment.STREAMS_SERIALISE: {"runs": 5, "started_before": 0, "finished_after": 5, "host_waited": False},
    Experiment.DATA_RACE: {"runs": 20, "wrong": 20},
    Experiment.DEADLOCK: {"ended": False, "waited_s": 3.0},
    Experiment.ERROR: {"status": 800, "expected": 800},
    Experiment.COSTS: {"ms": [3.3] * 21},
}
NOT_SHOWN: dict[Experiment, dict[str, Any]] = {
    Experiment.HOST_WAITS: {"gate_ms": [20.0, 60.0, 120.0], "host_ms": [0.1, 0.1, 0.1]},
    Experiment.THREAD_HELD: {"runs": 5, "returned_before": 5},
    Experiment.GIL_HELD: {"inside_ms": [200.0] * 5, "beats": [90] * 5, "beat_ms": 2.0},
    Experiment.STREAMS_SERIALISE: {"runs": 5, "started_before": 5, "finished_after": 5, "host_waited": False},
    Experiment.DATA_RACE: {"runs": 20, "wrong": 0},
    Experiment.DEADLOCK: {"ended": True, "waited_s": 0.1},
    Experiment.ERROR: {"status": 0, "expected": 800},
    Experiment.COSTS: {"ms": [1.1] * 21},
}
Answers = Callable[[Job], dict[str, Any]]


def as_predicted(job: Job) -> dict[str, Any]:
    """Misuse shows the prediction, the remedy does not, but a pageable destination shows no race."""
    lucky = job.case.parameters.get("memory") == "pageable" and job.case.experiment is Experiment.DATA_RACE
    return (SHOWN if job.variant == "misuse" and not lucky else NOT_SHOWN)[job.case.experiment]


class FakeChild:
    def __init__(self, jobs: Sequence[Job], answers: Answers) -> None:
        self.messages: list[Message] = []
        for number, job in enumerate(jobs):
            self.messages += [
                {"event": "start", "job": number},
                {"event": "figures", "job": number, "figures": self._figures(job, answers)},
            ]

    def _figures(self, job: Job, answers: Answers) -> dict[str, Any]:
        if job.beside is None:
            return answers(job)
        return {"ms": answers(job)["ms"], "beside_ms": answers(replace(job, variant=job.beside))["ms"]}

    def read(self, seconds: float) -> Message | None:
        return self.messages.pop(0) if self.messages else None

    def kill(self) -> None:
        pass

    def epitaph(self) -> str:
        return "gone"

    def stacks(self) -> list[Stack]:
        return []


class FakeMachine:
    def __init__(self, answers: Answers = as_predicted, lacks: dict[str, str] | None = None) -> None:
        self.answers, self.lacks = answers, lacks or {}
        self.failures: dict[str, str] = {}
        self.plan = Plan(1 << 30)

    def probe(self) -> dict[str, Any]:
        return {"gpu": "Fake GPU (tests)", "cuda_runtime": "13.0", "cuda_driver": "13.0", "arch": "9.0"}

    def prepare(self, probed: Mapping[str, object]) -> Plan:
        return self.plan

    def missing(self, case: Case) -> str | None:
        return self.lacks.get(case.api)

    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]:
        return {}, self.failures

    def spawn(self, jobs: Sequence[Job]) -> FakeChild:
        return FakeChild(jobs, self.answers)


class NoGpu(FakeMachine):
    def probe(self) -> dict[str, Any]:
        return {"reason": "no CUDA device"}
