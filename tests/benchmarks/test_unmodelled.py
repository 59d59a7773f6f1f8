"""Which calls count as unmodelled."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "unmodelled.py").is_file(), reason="benchmarks are not in the source distribution")
PROGRAM = """
import acme
import torch
from torch import nn

layer = nn.Linear(8, 8).cuda()


def helper(x):
    return x * 2


def run(hook):
    side = torch.cuda.Stream()
    x = torch.ones(8, 8, device="cuda")
    y = acme.blurred(helper(x))
    acme.finished(side)
    hook(x)
    acme.told("x")
    return layer(y.abs()), acme.blurred(x).cpu()
"""


@pytest.fixture
def unmodelled(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("unmodelled")


def test_rows_bodies_and_modules_are_known(unmodelled: Any, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(PROGRAM, encoding="utf-8")
    found = unmodelled.read_tree(tmp_path, decided=False)
    assert found.unmodelled == {"acme.blurred": 2, "acme.finished": 1}
    assert found.hides == {"acme.blurred": 2}
    assert found.nameless == 1


DECIDING = """
import acme
import torch


def fetch(scores):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = scores.to("cpu", non_blocking=True)
    acme.finished(side)
    return host.tolist()
"""


def test_a_call_decides_where_it_may_be_the_wait(unmodelled: Any, tmp_path: Path) -> None:
    (tmp_path / "fetch.py").write_text(DECIDING, encoding="utf-8")
    assert unmodelled.read_tree(tmp_path, decided=True).decided == {"acme.finished": 1}


def test_the_list_begins_with_what_decided(unmodelled: Any, tmp_path: Path) -> None:
    trees = {
        "one": unmodelled.Tree(10, 1, {"acme.seldom": 1, "acme.often": 4}, {"acme.seldom": 1}),
        "two": unmodelled.Tree(10, 0, {"acme.often": 1}, crash="no end within 5 s"),
    }
    lines = list(unmodelled.table(trees, 5))
    assert lines[1] == "unmodelled: 6 of libraries (30.0%), 1 of unknown values (5.0%)"
    assert [line.split() for line in lines[3:5]] == [["1", "0", "1", "1", "acme.seldom"], ["0", "0", "5", "2", "acme.often"]]
    assert lines[-1] == "two: no end within 5 s"
