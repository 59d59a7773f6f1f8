"""The places that a format reports one by one: those that cost something, with findings or without, the dearest first."""

from __future__ import annotations

from streamlint.support.records import field, record
from streamlint.trace.prices import by_price
from streamlint.trace.results import Cost, Joined, Judged, Place, Unnamed

ORDER = ("CHEAP", "NOT REACHED", "RACED ONLY")


@record(slots=True)
class Row:
    """A place: its cost, the findings there, or the stall that has none."""

    cost: Cost
    judged: list[Judged] = field(default_factory=list)
    unnamed: Unnamed | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """All lines that the cost is of."""
        return next((one.places for one in self.judged if one.places), ()) or (self.cost.place,)


def _has_row(joined: Joined, one: Judged) -> bool:
    """Whether a finding stands in the table: it costs something, or the host waits there for other ranks."""
    return one.standing == "COSTS" or (one.cost is not None and one.cost.other_ranks >= max(joined.border, 1))


def rows(joined: Joined) -> list[Row]:
    """All places that cost something, or at which the host waited for other ranks."""
    found: dict[tuple[object, ...], Row] = {}
    for one in joined.judged:
        if one.cost is not None and _has_row(joined, one):
            cost = one.cost
            found.setdefault((cost.place, cost.call, cost.idle, cost.blocked), Row(cost)).judged.append(one)
    every = [*found.values(), *(Row(one.cost, unnamed=one) for one in joined.unnamed)]
    return sorted(every, key=lambda row: by_price(row.cost))


def others(joined: Joined) -> list[tuple[str, list[Judged]]]:
    """The findings that cost nothing, by standing."""
    groups = [(standing, [one for one in joined.judged if one.standing == standing]) for standing in ORDER]
    return [(standing, mine) for standing, mine in groups if mine]
