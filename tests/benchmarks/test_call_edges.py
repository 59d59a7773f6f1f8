"""Executed calls: which are seen, of which kind, and how a call graph is held against them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "call_edges.py").is_file(), reason="benchmarks are not in the source distribution")
MONITORING = sys.version_info >= (3, 12)

PROGRAM = """import functools


def traced(act):
    @functools.wraps(act)
    def wrapper(*args):
        return act(*args)

    return wrapper


class Base:
    def __init__(self):
        self.count = 0

    def run(self):
        return self.step(1)


class Sub(Base):
    def step(self, by):
        return self.size + by

    @property
    def size(self):
        return 3


def pairs(count):
    yield from range(count)


@traced
def main():
    found = list(map(double, [1]))
    for pair in pairs(2):
        found.append(pair)
    return Sub().run(), found


def double(x):
    return 2 * x
"""
EXPECTED = {
    (7, "call", "main"),
    (17, "call", "Sub.step"),
    (22, "implicit", "Sub.size"),
    (33, "call", "traced"),
    (35, "through", "double"),
    (36, "call", "pairs"),
    (38, "call", "Base.run"),
    (38, "construct", "Base.__init__"),
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "package_of_calls"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "work.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    return root


@pytest.mark.skipif(not MONITORING, reason="what runs is watched with sys.monitoring")
def test_calls_are_seen(bench: Any, package: Path) -> None:
    recorder = bench("executed_calls").Recorder(package)
    recorder.start()
    try:
        bench("package_of_calls.work").main()
    finally:
        recorder.stop()
    edges = recorder.edges()
    assert {(edge[1], edge[5], edge[7]) for edge in edges} == EXPECTED
    assert {(edge[0], edge[6]) for edge in edges} == {("work.py", "work.py")}


def test_a_graph_is_held_against_them(bench: Any, package: Path) -> None:
    call_edges, targets = bench("call_edges"), bench("call_names").graph(package)
    edges = [call_edges.Edge("work.py", row, kind, ("work.py", name)) for row, kind, name in sorted(EXPECTED)]
    score = call_edges.score(edges, targets)
    assert dict(score.made) == {"call": 5, "construct": 1, "through": 1, "implicit": 1}
    assert (score.known["call"], score.known["construct"], score.known["implicit"]) == (3, 1, 0)
    assert [edge.row for edge in score.missed] == [7, 22, 33, 35]  # a variable, a property, a decorator, a function that is handed over
    assert targets("work.py", 38) == {("work.py", "Base.__init__"), ("work.py", "Base.run")}
    assert "call" in "\n".join(call_edges.table({"package": score}))


def test_the_facts_are_held_against_them(bench: Any, package: Path) -> None:
    call_edges, targets = bench("call_edges"), bench("call_facts").graph(package)
    edges = [call_edges.Edge("work.py", row, kind, ("work.py", name)) for row, kind, name in sorted(EXPECTED)]
    score = call_edges.score(edges, targets)
    assert score.missed == []
    assert targets("work.py", 38) == {("work.py", "Base.__init__"), ("work.py", "Base.run")}
    assert targets.virtual == [1]  # `self.step` of Base: only Sub has it


def test_suites_are_pinned(bench: Any) -> None:
    call_edges = bench("call_edges")
    pins = call_edges.read_pins(call_edges.PINS)
    assert {pin.name for pin in pins} == set(call_edges.suites())
    assert len(pins) >= 3


def test_calls_that_pyrefly_resolves_are_read(bench: Any, tmp_path: Path) -> None:
    target = {"module_id": 2, "function_id": "F:0", "function_name": "g"}
    there = {"module_id": 9, "function_id": "F:0", "function_name": "print"}
    made = {"module_id": 2, "function_id": "CF:0:1", "function_name": "__init__"}
    found = {
        "Call": {
            "call_targets": [{"target": {"Function": target}}, {"target": {"Function": there}}],
            "init_targets": [{"target": {"Function": made}}],
        }
    }
    read = {"AttributeAccess": {"property_getters": [{"target": {"Overrides": target}}]}}
    modules = [
        {"module_id": 1, "source_path": {"FileSystem": f"{tmp_path}/a.py"}, "call_graphs": {"F:0": {"3:1-3:4": found, "4:1-4:9": read}}},
        {"module_id": 2, "source_path": {"FileSystem": f"{tmp_path}/p/b.py"}, "call_graphs": {}},
        {"module_id": 9, "source_path": {"BundledTypeshed": "builtins.pyi"}, "call_graphs": {"F:0": {"1:1-1:2": found}}},
    ]
    assert list(bench("resolved_calls").calls(modules, tmp_path)) == [
        ("a.py", 3, "call", "p/b.py", "g"),
        ("a.py", 4, "implicit", "p/b.py", "g"),
    ]
