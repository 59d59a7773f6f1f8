"""The same cases on the GPUs of several machines: each worker of a cluster runs them on its own, and is lost without the others.

What runs on a worker is `look` and `run`; they start the same watched children as a run on one machine does. The other side hands a worker
one batch of cases after the other, never two at a time, so that what it has reported outlives it. Nothing here knows Dask.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamlint.verify import device, evidence, report, runner, templates
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Judgement, Verdict
from streamlint.verify.platforms import platform_facts
from streamlint.verify.progress import Progress
from streamlint.verify.questions import within
from streamlint.verify.runner import Result
from streamlint.verify.session import Results, run_cases

LOOK_S = 1.0  # between two looks at who is still there

Record = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """What each worker is to do: which of the GPUs that it sees, how much of its memory, how long for a program."""

    number: int
    memory: int
    timeout: float
    swap: bool


class Grid(Protocol):
    """What is needed of a cluster; :class:`streamlint.runner.cluster.client.Cluster` is one, tests have another."""

    def workers(self) -> dict[str, str] | None:
        """Names by address; None while nobody answers."""

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]: ...
    def patience(self) -> float: ...


@dataclass
class Member:
    """A worker: its GPU, what came of its cases, and why there is no more of it."""

    name: str
    address: str
    facts: Record = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    results: Results = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)  # as its memory allows
    lost: str = ""
    seen: Record = field(default_factory=dict)
    left: list[list[Case]] = field(default_factory=list)

    @property
    def platform(self) -> str:
        return evidence.platform_name(self.facts) if self.facts else ""

    @property
    def missed(self) -> list[Case]:
        """The cases without a result."""
        return [case for case in self.cases if case.identity not in self.results]


# On a worker


def look(order: Order) -> Record:
    """What the GPU of this machine is and how it is dealt with, or ``{"reason": …}`` why there is none."""
    with device.Device(order.number, memory=order.memory) as machine:
        probed = machine.probe()
        if "reason" in probed:
            return {"reason": probed["reason"]}
        plan = machine.prepare(probed)
        if plan.stop is not None:
            return {"reason": plan.stop}
        return {
            "probed": probed,
            "facts": platform_facts(probed, order.number),
            "memory": plan.memory,
            "remarks": plan.remarks,
            "place": f"{socket.gethostname()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')} {order.number}",
        }


def run(order: Order, probed: Record, chosen: Sequence[tuple[tuple[str, str, str], Record]]) -> list[Record]:
    """What came of some cases, which are named by their keys and facts."""
    known = {case.key: case for template in templates.load().values() for case in template.cases}
    cases = [known[key].given(facts) for key, facts in chosen]
    with device.Device(order.number, memory=order.memory) as machine:
        machine.arch = str(probed.get("arch", ""))
        machine.prepare(probed)
        results = run_cases(machine, cases, order.timeout, Progress(quiet=True), swap=order.swap)
    return [_packed(results[case.identity]) for case in cases]


def _packed(result: Result) -> Record:
    judged = result.judgement
    return {
        "verdict": judged.verdict.value,
        "reason": judged.reason,
        "misuse": dict(result.misuse),
        "remedy": dict(result.remedy),
        "seconds": result.seconds,
    }


def _unpacked(case: Case, record: Record) -> Result:
    judgement = Judgement(Verdict(record["verdict"]), record["reason"])
    return Result(case, judgement, record["misuse"], record["remedy"], record["seconds"])


# On the side that asks


def verify(grid: Grid, cases: Sequence[Case], order: Order, progress: Progress, into: list[Member]) -> None:
    """Have each worker run the cases. ``into`` gets the workers at once, and they their results as they come."""
    members = {address: Member(name, address) for address, name in (grid.workers() or {}).items()}
    into += members.values()
    found: list[Member] = []
    for member, answer in _answers(grid, {member.address: (member, look, (order,)) for member in into}):
        if isinstance(answer, str):
            member.lost = answer
        elif "reason" in answer:
            member.lost = f"no GPU that can be used: {answer['reason']}"
        else:
            member.seen, member.facts, member.remarks = answer, answer["facts"], answer["remarks"]
            found.append(member)
    _one_for_each_gpu(found)
    ready = [member for member in found if not member.lost]
    for member in ready:
        member.cases = [within(case, member.seen["memory"]) for case in cases]
        member.left = runner.batches(member.cases)
        progress.say(f"{member.name}: {member.platform}")
        for remark in member.remarks:
            progress.say(f"{member.name}: {remark}")
    progress.total = sum(len(member.left) for member in ready)
    _run_batches(grid, ready, order, progress)


def _one_for_each_gpu(members: Iterable[Member]) -> None:
    """Two workers that see the same device would measure each other."""
    first: dict[object, Member] = {}
    for member in sorted(members, key=lambda member: member.name):
        holder = first.setdefault(member.seen["place"], member)
        if holder is not member:
            member.lost = f"it sees the GPU of worker {holder.name}, which runs the cases"


def _run_batches(grid: Grid, members: Sequence[Member], order: Order, progress: Progress) -> None:
    def task(member: Member) -> tuple[Member, Callable[..., Any], tuple[Any, ...]]:
        chosen = [(case.key, dict(case.facts)) for case in member.left[0]]
        return member, run, (order, member.seen["probed"], chosen)

    def further(member: Member, answer: Any) -> tuple[Member, Callable[..., Any], tuple[Any, ...]] | None:
        if isinstance(answer, str):
            member.lost = answer
            progress.say(f"worker {member.name} is lost: {answer}")
            return None
        batch = member.left.pop(0)
        results = [_unpacked(case, record) for case, record in zip(batch, answer, strict=True)]
        member.results.update((result.case.identity, result) for result in results)
        progress.step(f"{member.name}: {report.counts(results)}")
        return task(member) if member.left else None

    for _ in _answers(grid, {member.address: task(member) for member in members if member.left}, further):
        pass


_Task = tuple[Member, Callable[..., Any], tuple[Any, ...]]


def _answers(
    grid: Grid, tasks: dict[str, _Task], further: Callable[[Member, Any], _Task | None] | None = None
) -> Iterable[tuple[Member, Any]]:
    """Each member with its answer, or with a text why none comes. ``further`` may give the member its next task."""
    waiting: dict[Future[Any], Member] = {grid.submit(address, task, *words): member for address, (member, task, words) in tasks.items()}
    heard = time.monotonic()
    while waiting:
        done, _ = wait(waiting, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        answers = [(waiting.pop(future), _answer(future)) for future in done]
        there = grid.workers()
        heard = time.monotonic() if there is not None else heard
        for future, member in list(waiting.items()):
            silent = time.monotonic() - heard > grid.patience()
            if silent or (there is not None and member.address not in there):
                future.cancel()
                del waiting[future]
                answers.append((member, "the scheduler does not answer any more" if silent else "it has gone"))
        for member, answer in answers:
            next_task = further(member, answer) if further is not None else None
            if next_task is not None:
                waiting[grid.submit(member.address, next_task[1], *next_task[2])] = member
            yield member, answer


def _answer(future: Future[Any]) -> Any:
    if future.cancelled():
        return "the scheduler gave up its work"
    error = future.exception()
    return future.result() if error is None else f"{type(error).__name__}: {error}"
