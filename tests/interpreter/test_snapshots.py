"""Objects that are kept for the methods of a class: a run that begins with a copy goes on as one that made the object itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlint import models
from streamlint import program as p
from streamlint.engine import analyse
from streamlint.findings import Report
from streamlint.frontends.python import lower
from streamlint.hazards import findings as hazards
from streamlint.interpreter import snapshots
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.file import File
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Run, Settings
from streamlint.interpreter.values import Value
from streamlint.operations import Opaque
from streamlint.options import Options, Source
from streamlint.record import is_record
from streamlint.rules import UNREADABLE, UNUSED, all_rules

DOCUMENTS = Path(__file__).parents[1] / "rules"
CODES = frozenset(all_rules()) - {UNREADABLE, UNUSED} - hazards.codes()  # those that look at paths


def with_classes() -> Iterator[Source]:
    """The code of the rules' documents that has classes."""
    for document in sorted(DOCUMENTS.glob("*.md")):
        for block in re.finditer(r"^```(python|cuda)[^\n]*\n(.*?)^```", document.read_text(encoding="utf-8"), re.S | re.M):
            if re.search(r"\b(class|struct) ", block[2]):
                yield Source(f"{document.stem}.py", block[2], block[1])


def found(source: Source) -> object:
    report: Report = analyse([source], Options(CODES, hidden_sync="all-loops"))
    return report.findings, report.problems


def test_findings_are_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    restored = snapshots._restored
    monkeypatch.setattr(snapshots, "_restored", lambda run, kept: copies.append(kept) or restored(run, kept))
    for source in with_classes():
        monkeypatch.setattr(snapshots, "FEWEST_STEPS", 1 << 30)
        alone = found(source)
        monkeypatch.setattr(snapshots, "FEWEST_STEPS", 0)
        assert found(source) == alone, source.text
    assert len(copies) > 100


MADE = """
import torch

class Ring:
    def __init__(self, pin, depth):
        self.stream = torch.cuda.Stream()
        self.slots = [torch.empty(8, pin_memory=True) for _ in range(3)]
        self.first = self.slots[0]
        self.scale = load_scale(depth)
        keep(self.first)
        self.log = Log() if pin else None

    def send(self, x):
        with torch.cuda.stream(self.stream):
            self.first.copy_(x.cuda(), non_blocking=True)

    def read(self):
        return self.first.numpy()

    def measure(self):
        return measured(self.scale)

class Log:
    pass
"""


def run_of(method: str, forced: dict[str, bool], program: Program) -> Run:
    root = next(root for file in program.files.values() for root in roots_of(file) if root.qualname == f"Ring.{method}")
    return Explorer(program, root, Coverage(), Settings()).run(forced, 2)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setattr(snapshots, "FEWEST_STEPS", 0)
    made = Program()
    made.add(lower("ring.py", MADE), models.builtin("python"))
    return made


def attributes(run: Run) -> dict[str, Value]:
    receiver = next(value for value in run.rooted if value.term == "self")
    return receiver.attrs  # type: ignore[attr-defined, no-any-return]


def test_a_copy_has_its_own_values_with_all_aliases(program: Program) -> None:
    first, second = (attributes(run_of(method, {}, program)) for method in ("send", "read"))
    assert first["stream"] is not second["stream"]
    assert first["stream"].term == second["stream"].term
    for held in (first, second):
        assert held["slots"].items[0] is held["first"]  # type: ignore[attr-defined]


def test_what_one_run_does_is_not_there_in_the_next(program: Program) -> None:
    assert run_of("send", {}, program).machine.pending
    assert not run_of("read", {}, program).machine.pending


def test_another_way_through_the_constructor_is_another_object(program: Program) -> None:
    likely = run_of("send", {}, program)
    atom = next(atom for atom in likely.decisions if atom.endswith(":pin"))
    other = run_of("send", {atom: not likely.decisions[atom].arm}, program)
    assert type(attributes(likely)["log"]) is not type(attributes(other)["log"])
    again = run_of("read", {atom: not likely.decisions[atom].arm}, program)
    assert type(attributes(again)["log"]) is type(attributes(other)["log"])


def test_calls_out_of_view_are_shared_unless_they_hold_memory(program: Program) -> None:
    made, copy = (run_of(method, {}, program) for method in ("send", "read"))
    calls = [{o.callee: o for o in run.machine.operations if isinstance(o, Opaque)} for run in (made, copy)]
    assert calls[0]["load_scale"] is calls[1]["load_scale"]
    assert calls[0]["keep"] is not calls[1]["keep"]
    assert calls[1]["keep"].on_host[0].storage is attributes(copy)["first"].storage  # type: ignore[attr-defined]


def test_code_is_shared() -> None:
    """What a run refers to of the program is no part of what is copied, in whatever file it stands."""
    assert {File, Program, models.Models} <= snapshots._SHARED
    assert {kind for kind in vars(p).values() if isinstance(kind, type) and is_record(kind)} <= snapshots._SHARED
