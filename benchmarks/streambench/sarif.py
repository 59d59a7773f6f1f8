"""SARIF 2.1.0, as little of it as the benchmark needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def result(code: str, message: str, file: str, row: int) -> dict[str, Any]:
    """One result: a rule, what it says, and where."""
    place = {"artifactLocation": {"uri": file}, "region": {"startLine": row}}
    return {"ruleId": code, "message": {"text": message}, "locations": [{"physicalLocation": place}]}


def log(name: str, results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A SARIF log of one run."""
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": name}}, "results": list(results)}]}
