"""What is compiled while the first programs run: which cases wait for it, and in which order they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Protocol

from streamlint.verify import runner
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment

Built = tuple[Mapping[str, str], Mapping[str, str]]  # libraries by snippet, and failures by snippet
_SOONEST = ("cupy", "cuda-python", "numba", "torch", "cuda")  # by how long their libraries take to import


class Builder(Protocol):
    """The part of a machine that compiles."""

    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]: ...


def compiled(case: Case) -> bool:
    """Whether a program of the case is compiled before it runs."""
    return case.api == "cuda" or case.builds


class Builds:
    """Compiles from the start of its ``with`` block on. Extensions take far longer than plain libraries and are waited for apart."""

    def __init__(self, machine: Builder, cases: Sequence[Case]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._parts: dict[bool, Future[tuple[dict[str, str], dict[str, str]]]] = {}
        for extensions in (False, True):
            part = [case for case in cases if compiled(case) and case.builds is extensions]
            if part:
                self._parts[extensions] = self._pool.submit(machine.build, part)

    def __enter__(self) -> Builds:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        # After Ctrl-C nobody waits here for compilers: the machine ends them.
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def of(self, batch: Sequence[Case]) -> Built:
        """What came of the batch's builds; waits for them."""
        parts = [self._parts[case.builds].result() for case in batch[:1] if compiled(case)]
        return parts[0] if parts else ({}, {})

    @property
    def _going(self) -> bool:
        return not all(part.done() for part in self._parts.values())

    def in_order(self, cases: Sequence[Case]) -> Iterator[list[Case]]:
        """Batches: first what needs no compiler, last what takes it longest. What costs is not timed beside compilers that run."""
        late: list[list[Case]] = []
        for batch in sorted(runner.batches(cases), key=_turn):
            timed = [case for case in batch if case.experiment is Experiment.COSTS]
            if timed and self._going and not batch[0].builds:
                late.append(timed)
                batch = [case for case in batch if case.experiment is not Experiment.COSTS]
            if batch:
                yield batch
        yield from late


def _turn(batch: Sequence[Case]) -> tuple[int, bool, int]:
    first = batch[0]
    return (first.builds + compiled(first), first.experiment is Experiment.DEADLOCK, _SOONEST.index(first.api))
