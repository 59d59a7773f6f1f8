"""What an earlier `streamlint trace` said of findings, read from its JSON: for `check --profile`, and for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlint.findings import Category, Finding
from streamlint.report.entries import cost_of, costing
from streamlint.support.errors import StreamlintError
from streamlint.support.reading import Unreadable, read_bytes
from streamlint.support.records import field, record

FILE = Path(".streamlint", "trace.json")
"""Where editors look for it, below the root of a project."""
_MOST_BYTES = 1 << 28


@record(slots=True)
class Profile:
    """Standings and costs by fingerprint, which outlives moved lines, and the costs of stalls by file and line."""

    findings: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    stalls: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)

    def of(self, finding: Finding) -> Mapping[str, Any] | None:
        """Standing, note and cost of a finding; None where the run says nothing of it.

        A stall that was not reported then, of a rule that was off, has the cost of its line. Findings of other categories have none: a race
        beside a wait is not what the wait costs.
        """
        known = self.findings.get(finding.fingerprint)
        if known is not None or finding.category is not Category.STALL:
            return known
        cost = self.stalls.get((finding.span.file, finding.span.row))
        return None if cost is None else {"standing": "COSTS", "note": "", "cost": cost}


def load(path: Path) -> Profile:
    """Read what `streamlint trace --output-format json` wrote. Raises StreamlintError for anything else."""
    try:
        data: Any = json.loads(read_bytes(path, _MOST_BYTES))
        findings = {str(row["fingerprint"]): _checked(row["run"]) for row in data["findings"]}
        costs = [row["cost"] for row in data["stalls"]]
        stalls = {(str(cost["filename"]), int(line)): cost for cost in costs for line in cost["lines"] if cost_of({"cost": cost}) >= 0}
    except Unreadable as error:
        raise StreamlintError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StreamlintError(
            f"{path} is no answer of `streamlint trace`: write one with `streamlint trace RECORDING --output-format json:{path}`"
        ) from None
    return Profile(findings, stalls)


def _checked(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The words about a finding, where its cost has words and figures."""
    costing(known), cost_of(known)
    return known
