"""What is compiled beside the first programs, and in which order the batches come."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence

from fake_machine import FakeChild, FakeMachine

from streamlint.verify import templates
from streamlint.verify.building import Builds, compiled
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Job
from streamlint.verify.session import run_cases


class Compiler:
    """Compiles for as long as it is not let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]:
        assert self.go.wait(20.0)
        return {str(case.path("misuse")): "library" for case in cases}, {}


def _cases() -> list[Case]:
    return [case for template in templates.load().values() for case in template.cases]


def test_what_needs_no_compiler_comes_first() -> None:
    compiler = Compiler()
    seen: list[list[Case]] = []
    with Builds(compiler, _cases()) as builds:
        for batch in builds.in_order(_cases()):
            if compiled(batch[0]):
                compiler.go.set()
                assert str(batch[0].path("misuse")) in builds.of(batch)[0]
            else:
                assert builds.of(batch) == ({}, {})
            seen.append(batch)
    kinds = [batch[0].builds + compiled(batch[0]) for batch in seen if batch[0].experiment is not Experiment.COSTS]
    assert kinds == sorted(kinds)
    assert sorted(str(case.identity) for batch in seen for case in batch) == sorted(str(case.identity) for case in _cases())


def test_costs_are_not_timed_beside_compilers() -> None:
    compiler = Compiler()
    with Builds(compiler, _cases()) as builds:
        for batch in builds.in_order(_cases()):
            if compiled(batch[0]):
                compiler.go.set()
                builds.of(batch)
            if not compiler.go.is_set():
                assert not [case for case in batch if case.experiment is Experiment.COSTS]


def test_nothing_to_compile() -> None:
    cases = [case for case in _cases() if not compiled(case)]
    with Builds(Compiler(), cases) as builds:
        batches = list(builds.in_order(cases))
    assert sum(map(len, batches)) == len(cases)
    assert any(case.experiment is Experiment.COSTS and len(batch) > 1 for batch in batches for case in batch)


def test_each_verdict_is_said_as_it_comes() -> None:
    log = io.StringIO()
    told: list[int] = []

    class Watched(FakeMachine):
        def spawn(self, jobs: Sequence[Job]) -> FakeChild:
            told.append(log.getvalue().count("CONFIRMED"))
            return super().spawn(jobs)

    cases = [case for case in _cases() if case.rule == "SL010"]
    results = run_cases(Watched(), cases, 5.0, Progress(log))
    assert told == sorted(told)
    assert 0 < told[1] < len(cases)
    assert log.getvalue().count("CONFIRMED") == len(results)
    assert "  SL010 fetching_thread [cupy]: CONFIRMED\n" in log.getvalue()
