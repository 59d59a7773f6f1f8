"""What allocations and frees make the host wait for, and how surely."""

from __future__ import annotations

from streamlint.cuda_model import EFFECTS, FACTS, Strength

NEVER, MAY, OBSERVED, GUARANTEED = Strength


def test_nothing_about_allocations_and_frees_is_guaranteed() -> None:
    """No race may be excused by an allocation or a free: documents only say that these may synchronize."""
    objects = [
        row for row in EFFECTS.values() if row.stream == "" and row.call.lower().startswith(("malloc", "free", "host", "unregister"))
    ]
    strengths = {row.call: FACTS[row.waits[0].fact].strength for row in objects}
    assert {call for call, strength in strengths.items() if strength is OBSERVED} == {"free", "freeHost", "freeManaged", "hostUnregister"}
    assert {call for call, strength in strengths.items() if strength is NEVER} == {"freeOrdered"}
    assert {call for call, strength in strengths.items() if strength is MAY} == {"malloc", "hostAlloc", "hostRegister", "mallocManaged"}
    assert GUARANTEED not in strengths.values()
