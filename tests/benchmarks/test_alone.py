"""A rule finds alone, and among those that are on, what it finds among all: over generated programs and the rules' examples."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from generated.programs import HAZARDS, build, specs
from snippets import snippets
from thorough import count

from streamlint import Settings, engine
from streamlint.checks.base import Check, registry
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.run import Run
from streamlint.options import Options, Source

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "alone.py").is_file(), reason="benchmarks are not in the source distribution")

WIDE = {"hidden_sync": "all-loops", "evidence": "possible"}
NARROW = {"hidden_sync": "hot-loops", "evidence": "shown"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("alone")
    sys.modules.pop("alone", None)


def programs(count: int) -> Iterator[tuple[str, list[Source]]]:
    """Generated programs with the rule that each is about."""
    for spec in specs(11, count):
        files = build(spec).files
        yield HAZARDS[spec.hazard].code, [Source(name, text, "python" if name.endswith(".py") else "cuda") for name, text in files.items()]


@pytest.mark.parametrize("breadth", [NARROW, WIDE], ids=["narrow", "wide"])
def test_generated_programs(alone: Any, breadth: dict[str, str]) -> None:
    default = Settings().codes & frozenset(registry())
    for code, sources in programs(count(50, 150)):
        selections = {"by default": default, code: frozenset((code,))}
        assert list(alone.differing(sources, Options(**breadth), selections)) == []


@pytest.mark.parametrize("breadth", [NARROW, WIDE], ids=["narrow", "wide"])
def test_examples_of_the_rules(alone: Any, breadth: dict[str, str]) -> None:
    default, codes = Settings().codes & frozenset(registry()), sorted(registry())
    for number, source in enumerate(itertools.islice(snippets(), 0, None, 5)):
        code = codes[number % len(codes)]
        selections = {"by default": default, code: frozenset((code,))}
        assert list(alone.differing([source], Options(**breadth), selections)) == [], source.path


def paths_of(sources: list[Source], code: str, alone: Any, monkeypatch: pytest.MonkeyPatch) -> set[tuple[Any, ...]]:
    """The paths that are run for a rule, before it asks for more to test what it has found."""
    met: set[tuple[Any, ...]] = set()
    real = Explorer.paths

    def paths(self: Explorer) -> Iterator[Run]:
        for run in real(self):
            met.add((self.root.file.path, self.root.qualname, tuple(sorted(run.forced.items())), run.rounds, run.calls, run.steps))
            yield run

    with monkeypatch.context() as patched:
        patched.setattr(Explorer, "paths", paths)
        alone.found(sources, [engine.lowered(source, engine.headers_of(sources)) for source in sources], Options(codes=frozenset((code,))))
    return met


def test_the_paths_are_the_same_for_each_rule(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [
        code
        for code, check in sorted(registry().items())
        if check.on_operation is not Check.on_operation or check.on_conflict is not Check.on_conflict
    ]
    samples = [[source] for source in itertools.islice(snippets(), 0, None, 40)] + [sources for _, sources in programs(20)]
    for number, sources in enumerate(samples):
        one, other = (codes[(number * step) % len(codes)] for step in (1, 7))
        assert paths_of(sources, one, alone, monkeypatch) == paths_of(sources, other, alone, monkeypatch), (one, other, sources[0].path)
