"""How sure a finding is: the share of findings with such grounds that readers judged real, by a table of points.

The table (`confidence.json`) is fitted by `benchmarks/confidence.py` on judged findings of drawn repositories, and shown in
docs/accuracy.md on each draw by points of the others. It reads the structure of the program alone, no name in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.findings import LEVELS
from streamlint.findings.grounds import WAIT, Grounds

if TYPE_CHECKING:
    from typing import Any

    from streamlint.findings import Finding

LEAST = {"low": 0.0, "medium": 1 / 3, "high": 2 / 3}
"""The least share that is expected to be real at each level."""
_SURE = frozenset({"SL000", "SL900", "SL901"})
"""They are about the files and comments themselves: nothing is guessed."""


def share(finding: Finding) -> float:
    """The share of such findings that is real, from 0 to 1."""
    if finding.code in _SURE:
        return 1.0
    points = table()
    found = terms(finding.code, finding.facts, finding.grounds)
    return 1 / (1 + math.exp(-sum(points["points"].get(name, 0.0) * value for name, value in found.items())))


def level(finding: Finding) -> str:
    """The level of that share."""
    return level_of(share(finding))


def level_of(found: float) -> str:
    """The level of a share."""
    return next(one for one in reversed(LEVELS) if found >= LEAST[one])


def rank(finding: Finding) -> int:
    """That share in percent."""
    return round(100 * share(finding))


def in_words(finding: Finding) -> str:
    """The level, and what it rests on."""
    return f"{level(finding)}: of 100 such findings about {rank(finding)} are real"


@functools.cache
def table() -> Mapping[str, Any]:
    """The points of each term, and on what they were fitted."""
    import json  # start-up: a run without findings

    return dict(json.loads(Path(__file__).with_name("confidence.json").read_text(encoding="utf-8")))


def terms(code: str, facts: Mapping[str, object], grounds: Grounds | None) -> dict[str, float]:
    """What points are given for, with how often: a flag is 0 or 1."""
    found = {"any": 1.0, code: 1.0}
    if grounds is None:
        return found
    found.update(
        loss=facts.get("origin") == "the loss",
        loops=min(grounds.loops, 2),
        behind_wait=grounds.before == WAIT,
        cpp=grounds.is_cpp,
    )
    return {name: float(value) for name, value in found.items()}
