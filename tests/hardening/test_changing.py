"""Trees that change while they are linted: each run ends with what is left, and nothing wrong is kept of it.

A sample of the changes before a sample of the steps; ``python tests/hardening/changing.py`` tries each before each.
"""

from __future__ import annotations

import os
import random

import pytest
from hardening.changing import CHANGES, COMMANDS, Bench
from thorough import count

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each run is a fork")
TRIED = count(12, 25)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("STREAMLINT_NO_CACHE", raising=False)
        return Bench(tmp_path_factory.mktemp("changing"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_tree_that_changes_in_the_midst_of_a_run(bench: Bench, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMLINT_NO_CACHE", raising=False)
    steps = bench.undisturbed(command).steps
    assert steps > 20
    pick = random.Random(command)
    faults = []
    for change in pick.sample(CHANGES, TRIED):
        step = pick.randrange(steps)
        if fault := bench.fault(command, change, step):
            faults.append(f"{change.path}: {change.name} before step {step}: {fault}")
    assert faults == []
