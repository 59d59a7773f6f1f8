"""Runs that were recorded on a GPU, compared with the model: no GPU is needed.

A recording has a JSON array a line, the program's text and its outcome (``streamlint litmus --record``); ``.gz`` is unpacked.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlint.cuda_model import FACTS
from streamlint.litmus.predict import Outcome, Strengths, observed, strengths
from streamlint.litmus.program import Program, outcome_text, parse
from streamlint.support.errors import StreamlintError

Run = tuple[Program, Outcome]


def read(path: str | Path) -> list[Run]:
    """The runs of a recording. Raises :class:`StreamlintError` where the file is none."""
    try:
        return list(_runs(Path(path)))
    except OSError as problem:
        raise StreamlintError(f"cannot read {path}: {problem}") from None
    except (ValueError, TypeError, EOFError):
        raise StreamlintError(f"{path} is no recording of 'streamlint litmus --record'") from None


def _runs(path: Path) -> Iterator[Run]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            program, words = json.loads(line)
            yield parse(program), frozenset(() if words == outcome_text(()) else words.split())


def contradictions(runs: list[Run], table: Strengths) -> Iterator[tuple[int, Program, Outcome, Outcome]]:
    """The runs whose outcome is not the expected one: their number from 1, program, what was expected and what was seen."""
    for number, (program, seen) in enumerate(runs, 1):
        expected = observed(program, table)
        if expected != seen:
            yield number, program, expected, seen


def turned(runs: list[Run], facts: list[str]) -> list[dict[str, Any]]:
    """For each fact turned round, how many recorded runs it takes until one contradicts it; a fact's own program does not count."""
    own = {str(parse(fact.shown_by)) for fact in FACTS.values()}
    true = strengths()
    # What contradicts the true model proves nothing about a turned one.
    sound = [(program, seen) for program, seen in runs if str(program) not in own and observed(program, true) == seen]
    rows = []
    for fact in facts:
        first = next(contradictions(sound, strengths(fact)), None)
        row: dict[str, Any] = {"fact": fact, "caught": first is not None, "runs": first[0] if first else len(sound)}
        if first:
            row["by"] = {"program": str(first[1]), "expected": outcome_text(first[2]), "seen": outcome_text(first[3])}
        rows.append(row)
    return rows
