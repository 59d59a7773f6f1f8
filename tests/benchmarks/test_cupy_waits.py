"""What is told of measured calls of CuPy, and the rows that are made of it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from streamlint.models import Models

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("cupy_operators")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("cupy_waits")


RAW = [
    {"cupy": "14.2.0", "gpu": "A", "driver": "1", "date": "2026-11-28", "functions": ["cupy.f", "cupy.g", "cupy.h", "cupy.k", "cupy.m"]},
    {"name": "cupy.f", "calls": [["cupy.f(x)", "device array", ["cudaMemcpyAsync device-pageable", "cudaStreamSynchronize"], 1]]},
    {"name": "cupy.g", "calls": [["cupy.g(x)", "host scalar", ["cuStreamSynchronize"], 1], ["cupy.g(v)", "host scalar", [], 0]]},
    {
        "name": "cupy.h",
        "calls": [["cupy.h(x)", "tuple of device array", [], 0], ["cupy.h(v)", "tuple of device array", ["cuMemcpyHtoDAsync"], 0]],
    },
    {"name": "cupy.k", "calls": [["cupy.k(x)", "device array", [], 1]]},
]  # fmt: skip


def test_what_was_seen_is_told(waits: Any, operators: Any, tmp_path: Path) -> None:
    raw = tmp_path / "raw.jsonl"
    raw.write_text("\n".join(json.dumps(line) for line in RAW), encoding="utf-8")
    found = json.loads(waits.written(waits.tell([raw])))
    assert found["platform"] == {"cupy": "14.2.0", "gpu": "A", "driver": "1", "date": "2026-11-28"}
    assert (found["public functions"], found["measured"], found["calls"]) == (5, 3, 6)
    assert found["always"] == {"cupy.f": {"gives": ["device array"], "waits": ["cupy.f(x)"]}}
    assert found["some"] == {"cupy.g": {"gives": ["host scalar"], "waits": ["cupy.g(x)"], "not": ["cupy.g(v)"]}}
    assert found["never"] == {"tuple of device array": ["cupy.h"]}
    assert found["the two disagree"] == {"cupy.k": ["cupy.k(x): gate 1, CUPTI []"]}
    assert found["not measured"] == ["cupy.k", "cupy.m"]
    rows = operators.written(found, Models())
    assert rows.partition("fallback = true\n")[2] == (
        '\n[[call]]\nnames = [\n    "cupy.f",\n]\neffect = "compute"\nresult = "buffer"\nwaits = true\ntype = "cupy.ndarray"\n'
        '\n[[call]]\nnames = [\n    "cupy.h",\n]\neffect = "compute"\nresult = "sequence"\ntype = "cupy.ndarray"\n'
    )
