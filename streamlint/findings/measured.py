"""What ``verify`` has measured about a rule, for those who show rules. Nothing, where nothing was kept."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.findings import Finding, as_facts

if TYPE_CHECKING:
    from typing import Any

VERDICTS = ("INCONCLUSIVE", "NOT OBSERVED", "CONFIRMED", "REFUTED")  # the later say more


@functools.cache
def records(code: str) -> tuple[Mapping[str, Any], ...]:
    """All kept records of a rule, as ``streamlint.verify.evidence`` stores them."""
    try:
        module = importlib.import_module("streamlint.verify.evidence")
        return tuple(module.load(code))
    except (ImportError, AttributeError, OSError, ValueError):
        return ()


def of_finding(finding: Finding) -> dict[str, Any] | None:
    """What is known about a finding: what was run with its own facts, else about its rule."""
    facts = as_facts(finding.known)
    for record in reversed(records(finding.code)):
        for asked in record.get("asked", ()):
            if asked.get("facts") == facts and record.get("verdict") in VERDICTS:
                notes = f" ({'; '.join(asked['notes'])})" if asked.get("notes") else ""
                return {**_shown(record), "summary": f"{record.get('prediction', '')}: {record.get('summary', '')}{notes}"}
    return summary(finding.code)


def summary(code: str) -> dict[str, Any] | None:
    """What is best known about a rule, in the keys of a finding's ``evidence``: a decided verdict before an open one, then the newest.

    What was run with the facts of somebody's findings says nothing of the rule.
    """
    return best(records(code))


def best(found: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The record of these that says most of a rule, as ``summary`` words it."""
    judged = [record for record in found if record.get("verdict") in VERDICTS and not record.get("asked")]
    if not judged:
        return None
    return _shown(max(judged, key=lambda record: (VERDICTS.index(record["verdict"]), str(record.get("date", "")))))


def _shown(newest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "verdict": newest["verdict"],
        "level": newest.get("level", "rule"),
        "platform": platform_text(newest.get("platform")),
        "date": newest.get("date"),
        "summary": newest.get("summary") or newest.get("prediction", ""),
    }


@functools.cache
def judged() -> Mapping[str, Mapping[str, int]]:
    """By code: how many findings on released packages were judged, and how (``benchmarks/accuracy.py`` writes it)."""
    try:
        text = Path(__file__).with_name("accuracy.json").read_text(encoding="utf-8")
        return dict(json.loads(text))
    except (OSError, ValueError):
        return {}


def judged_text(code: str) -> str:
    """That in a sentence."""
    count = judged().get(code)
    if count is None:
        return "No finding on a released package has been judged."
    counts = [f"{count['real']} real", f"{count['not_real']} not real", *([f"{count['unclear']} unclear"] if count["unclear"] else [])]
    noun = "finding" if count["judged"] == 1 else "findings"
    return f"{count['judged']} {noun} on released packages judged: {', '.join(counts)}."


def platform_text(platform: object) -> str:
    """A platform in one line: ``NVIDIA H200 · driver 580.159 · CUDA 13.0``."""
    if not isinstance(platform, Mapping):
        return str(platform or "")
    parts = [platform.get("gpu"), platform.get("driver") and f"driver {platform['driver']}"]
    parts.append(platform.get("cuda_runtime") and f"CUDA {platform['cuda_runtime']}")
    return " · ".join(str(part) for part in parts if part)


def figures(side: object) -> str:
    """The figures of one side of a case in one line."""
    if not isinstance(side, Mapping):
        return str(side or "")
    return ", ".join(f"{key} {_figure(value)}" for key, value in side.items())


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
