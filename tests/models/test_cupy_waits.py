"""CuPy's rows against what was measured of its public functions on a GPU: ``benchmarks/cupy_waits.json``."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from streamlint.models import Models, Row, builtin

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


def row_of(name: str) -> Row | None:
    models = builtin("python")
    owner, _, last = name.rpartition(".")
    return models.named(name) or (models.method(owner, last) if owner in models.types else models.call(name))


def test_the_file_is_what_was_measured(operators: Any) -> None:
    assert operators.ROWS.read_text(encoding="utf-8") == operators.written(operators.measured(), builtin("python"))


def test_rows_say_waits_that_were_measured(operators: Any) -> None:
    wrong = [line for line in operators.otherwise(operators.measured(), builtin("python")) if line.partition(":")[0] not in LEFT]
    assert not wrong


def test_a_wait_is_known_of_each_function_that_always_waited(operators: Any) -> None:
    found = operators.measured()
    silent = []
    for name, one in found["always"].items():
        row = row_of(name)
        told = row is not None and (row.effect in ("read", "transfer", "copy", "synchronize") or row.get("waits"))
        if not told and operators.RESULTS.get(" | ".join(one["gives"])) and not name.startswith(operators.SPARSE):
            silent.append(name)
    assert not [name for name in silent if name not in LEFT]


RAW = [
    {"cupy": "14.2.0", "gpu": "A", "driver": "1", "date": "2026-11-28", "functions": ["cupy.f", "cupy.g", "cupy.h", "cupy.k", "cupy.m"]},
    {"name": "cupy.f", "calls": [["cupy.f(x)", "device array", ["cudaMemcpyAsync device-pageable", "cudaStreamSynchronize"], 1]]},
    {"name": "cupy.g", "calls": [["cupy.g(x)", "host scalar", ["cuStreamSynchronize"], 1], ["cupy.g(v)", "host scalar", [], 0]]},
    {
        "name": "cupy.h",
        "calls": [["cupy.h(x)", "tuple of device array", [], 0], ["cupy.h(v)", "tuple of device array", ["cudaMemcpyAsync host-device"], 0]],
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
