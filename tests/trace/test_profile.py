"""What an earlier answer of `streamlint trace` says of findings."""

from __future__ import annotations

import pytest

from streamlint.findings import Category, Finding, Span
from streamlint.trace.profile import Profile


@pytest.mark.parametrize("category", Category)
def test_only_a_stall_has_the_cost_of_the_stall_at_its_line(category: Category) -> None:
    finding = Finding("SL006", "a-rule", category, "message", Span("a.py", 4, 1, 4, 9), fingerprint="new")
    cost = {"cost_ns": 10}
    known = {"standing": "COSTS", "note": "", "cost": cost}
    assert Profile({}, {("a.py", 4): cost}).of(finding) == (known if category is Category.STALL else None)
    assert Profile({"new": known}).of(finding) == known
