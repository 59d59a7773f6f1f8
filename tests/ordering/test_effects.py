"""What rows do: the tables of the modules of `streamlint.transfer` are one table."""

from __future__ import annotations

from collections import Counter

from streamlint.transfer import collectives, copies, memory, order, transfer, updates, waiting, work


def test_no_effect_is_read_in_two_ways() -> None:
    """One that stood in two tables would be read by the last one alone."""
    tables = (collectives, copies, order, memory, waiting, work, updates)
    count = Counter(effect for table in tables for effect in table.EFFECTS)
    assert [effect for effect, number in count.items() if number > 1] == []
    assert set(count) == set(transfer.EFFECTS)
