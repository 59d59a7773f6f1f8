"""The examples: findings on exactly the lines of ``expected.json``, and none in the repaired twins."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamlint.checks.base import registry
from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse

EXAMPLES = Path(__file__).parents[2] / "examples"
LANGUAGES = {".py": "python", ".cu": "cuda"}
CODES = frozenset(registry())


def programs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in LANGUAGES)


def lint(folder: Path) -> list[tuple[str, int, str]]:
    sources = [Source(str(path), path.read_text(encoding="utf-8"), LANGUAGES[path.suffix]) for path in programs(folder)]
    report = analyse(sources, Options(codes=CODES))
    assert not report.problems
    return sorted((Path(found.span.file).name, found.span.row, found.code) for found in report.findings)


def expected() -> list[tuple[str, int, str]]:
    rows = json.loads((EXAMPLES / "expected.json").read_text(encoding="utf-8"))
    return [(row["file"], row["row"], row["code"]) for row in rows]


def test_examples_show_what_they_promise() -> None:
    assert lint(EXAMPLES) == expected()


def test_repaired_examples_are_clean() -> None:
    assert lint(EXAMPLES / "repaired") == []


@pytest.mark.parametrize("path", programs(EXAMPLES / "repaired"), ids=lambda path: path.name)
def test_each_repaired_example_is_clean_alone(path: Path) -> None:
    report = analyse([Source(str(path), path.read_text(encoding="utf-8"), LANGUAGES[path.suffix])], Options(codes=CODES))
    assert [(found.span.row, found.code, found.message) for found in report.findings] == []


def test_every_example_has_a_twin() -> None:
    assert [path.name for path in programs(EXAMPLES)] == [path.name for path in programs(EXAMPLES / "repaired")]


def test_the_table_agrees_with_the_findings() -> None:
    table = {}
    for line in (EXAMPLES / "README.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| `(?P<file>[\w.]+)` \|[^|]*\|(?P<codes>[^|]*)\|", line):
            table[row["file"]] = set(re.findall(r"SL\d{3}", row["codes"]))
    promised: dict[str, set[str]] = {path.name: set() for path in programs(EXAMPLES)}
    for file, _, code in expected():
        promised[file].add(code)
    assert table == promised
