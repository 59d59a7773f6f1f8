"""The task beside the files: what it keeps, and what it says where it does not come to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.cache.store import Store
from streamlint.config.options import Source
from streamlint.config.settings import Settings
from streamlint.findings import Report
from streamlint.runner import engine, tasks
from streamlint.waits import findings

HELPER = "def note(loss, rows):\n    rows.append(loss.item())\n"
LOOP = """import torch
from helper import note


def train(model, loader, optimizer):
    model.cuda()
    rows = []
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        note(loss, rows)
"""
SOURCES = [Source("helper.py", HELPER, "python"), Source("loop.py", LOOP, "python")]


def look(store: Store | None = None, sources: list[Source] = SOURCES) -> Report:
    options = Settings().options(coverage=True)
    return engine.analyse(sources, options, store=store)


def told(report: Report) -> list[tuple[str, int, str]]:
    return [(one.span.file, one.span.row, one.code) for one in report.findings]


def test_a_helper_in_another_file() -> None:
    assert told(look()) == [("helper.py", 2, "SL020")]


def test_what_is_kept_is_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = told(look(Store(tmp_path)))

    def fail(*_: object) -> None:
        raise AssertionError("it was to be kept")

    monkeypatch.setattr(tasks.waits, "find", fail)
    assert told(look(Store(tmp_path))) == first


def test_another_text_is_looked_at_anew(tmp_path: Path) -> None:
    look(Store(tmp_path))
    changed = [Source("helper.py", HELPER.replace(".item()", ".detach()"), "python"), SOURCES[1]]
    assert told(look(Store(tmp_path), changed)) == []


def test_questions_that_are_cut_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not look().coverage["over_budget"]
    monkeypatch.setattr(findings, "MOST_STEPS", 10)
    monkeypatch.setattr(findings, "FREE_STEPS", 0)
    report = look()
    assert (bool(report.coverage["over_budget"]), report.problems) == (True, [])


def test_a_fault_of_ours_costs_the_two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(tasks.waits, "find", fail)
    (problem,) = look().problems
    assert problem.message == "internal error: SL020, SL021 saw no Python file of this run: ValueError: odd"


SETTINGS = """import {module}
import torch


def train(model, loader, optimizer, path):
    with open(path) as file:
        pieces = {module}.{name}(file)
    for x in loader:
        loss = model(x.cuda()).sum()
        if pieces > 1:
            loss = loss / pieces
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
"""


@pytest.mark.parametrize(("module", "name"), [("yaml", "load"), ("msgpack", "unpack"), ("settings", "chunk")])
@pytest.mark.parametrize("most", [10, 40_000])
def test_functions_of_imports_are_none_of_tensors(module: str, name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are they where the steps ran out, and the module is not known any more."""
    monkeypatch.setattr(findings, "MOST_STEPS", most)
    report = look(sources=[Source("loop.py", SETTINGS.format(module=module, name=name), "python")])
    assert told(report) == [("loop.py", 15, "SL020")]


def test_a_file_that_cannot_be_read_costs_itself_alone() -> None:
    """Its body has no block, which asked for its loops ended the search of all files."""
    sources = [*SOURCES, Source("broken.py", "import torch\nsplit = 'valid'_name(torch)\n", "python")]
    report = engine.analyse(sources, Settings.of(hidden_sync="all-loops").options())
    assert told(report) == told(look())
    assert [problem.file for problem in report.problems] == ["broken.py"]
