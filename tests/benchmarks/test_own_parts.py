"""What `docs/dependencies.md` says of our own parts holds of these; libraries are asked by the benchmark alone."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "own_parts.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("own_parts")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
def test_a_process_that_dies_costs_one_name(parts: Any) -> None:
    assert sorted(parts._own(parts.work, parts.NAMES)) == sorted(name for name in parts.NAMES if name != parts.FATAL)


def test_a_file_keeps_its_mode_and_the_link_to_it(parts: Any) -> None:
    assert dict(parts.writers())["streamlint.support.writing"] == "mode 640 becomes 640; a link stays one"
