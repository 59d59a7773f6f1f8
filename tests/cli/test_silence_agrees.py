"""``--explain-silence`` calls a line not silent where ``check`` prints a finding in it, and nowhere else: over the rules' documents."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from snippets import snippets

from streamlint import Settings
from streamlint.checks.base import registry
from streamlint.config.options import Source
from streamlint.config.settings import Resolver
from streamlint.runner.linter import run
from streamlint.silence.explain import explain_each


def settings(chance: random.Random, codes: list[str]) -> Iterator[dict[str, Any]]:
    """What is on by default, all that there is, and one rule: one that finds something here, where any does."""
    yield {}
    yield {"preview": True}
    yield {"select": [chance.choice(codes or sorted(registry()))]}


def rows_with_findings(source: Source, resolver: Resolver) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for finding in run([source.path], resolver).findings:
        found.setdefault(finding.span.row, set()).add(finding.code)
    return found


def rows_that_are_not_silent(source: Source, resolver: Resolver, rows: set[int]) -> dict[int, set[str]]:
    asked = sorted(rows)
    answers = explain_each([source.path], [f"{source.path}:{row}" for row in asked], resolver)
    found = {row: {reason.code for reason in answer.reasons if reason.kind == "found"} for row, answer in zip(asked, answers, strict=True)}
    return {row: codes for row, codes in found.items() if codes}


@pytest.mark.parametrize("seed", range(2))
def test_it_agrees_with_check(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    for source in chance.sample(list(snippets()), 20):
        Path(source.path).write_text(source.text, encoding="utf-8")
        every = rows_with_findings(source, Resolver(Settings.of(select=["ALL"])))
        lines = [row for row, line in enumerate(source.text.splitlines(), 1) if line.strip()]
        near = {row + step for row in every for step in (-1, 0, 1)} & set(lines)
        asked = near | set(chance.sample(lines, min(4, len(lines))))
        for keys in settings(chance, sorted(code for codes in every.values() for code in codes if code in registry())):
            resolver = Resolver(Settings.of(**keys))
            printed = rows_with_findings(source, resolver)
            assert rows_that_are_not_silent(source, resolver, asked | printed.keys()) == printed, (source.path, keys)
        Path(source.path).unlink()
