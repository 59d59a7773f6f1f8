"""Which line each event below a user's function came from: the cheapest way through the function's source that makes these events in order.

A profiler's event names a function, not a line, and a name may stand on several lines. The events of one invocation come in the order
in which the source makes them, so each is placed where the fewest places are passed over that should have made an event of their own.
Where several ways cost the same, all their lines are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from streamlint.trace.readers.signs import Sign, candidates
from streamlint.trace.readers.sites import Body

Lines = tuple[int, ...]
_SILENT = 0.02  # of a place that made no event in any invocation
_BACK = 0.05  # to begin a loop's next round
_AGAIN = 0.5  # of a second event of the same place
_IMPOSSIBLE = 100.0
_SAME = 1e-6
_MOST = 24  # candidates of an event: one with more says nothing of the order
_PASSING = 6.0  # at most, for what stands before the first event


class Alignment:
    """The places of one function's events, over all its invocations in a trace."""

    def __init__(self, body: Body, signs: Iterable[Sign]) -> None:
        """``signs`` are all that were seen below the function, in any invocation."""
        self.body = body
        self._by_name: dict[str, list[int]] = {}
        for number, site in enumerate(body.sites):
            for name in site.names:
                self._by_name.setdefault(name, []).append(number)
        signs = list(signs)
        claimed = frozenset(sign.name for sign in signs if sign.name in self._by_name)
        self._candidates = {sign: candidates(sign, body, self._by_name, claimed) for sign in signs}
        seen = {number for found in self._candidates.values() for number in found}
        weights = [site.weight * (1.0 if number in seen else _SILENT) for number, site in enumerate(body.sites)]
        self._before = [0.0, *accumulate(weights)]

    def lines(self, signs: Sequence[Sign], from_start: bool) -> list[Lines]:
        """The lines that each event of an invocation may have come from; none where the source has no such place.

        ``from_start`` says that the invocation was recorded from its beginning.
        """
        found: list[Lines] = [()] * len(signs)
        chosen = [(number, self._candidates[sign]) for number, sign in enumerate(signs)]
        steps = [(number, ones) for number, ones in chosen if 0 < len(ones) <= _MOST]
        if not steps:
            return found
        first = {one: min(self._before[one], _PASSING) if from_start else 0.0 for one in steps[0][1]}
        forward = [first]
        for _, ones in steps[1:]:
            last = forward[-1].items()
            forward.append({to: min(cost + self._step(one, to) for one, cost in last) for to in ones})
        back = dict.fromkeys(steps[-1][1], 0.0)
        for place in range(len(steps) - 1, -1, -1):
            number, ones = steps[place]
            if place < len(steps) - 1:
                later = back.items()
                back = {one: min(cost + self._step(one, to) for to, cost in later) for one in ones}
            total = {one: forward[place][one] + back[one] for one in ones}
            least = min(total.values()) + _SAME
            found[number] = tuple(sorted({self.body.sites[one].line for one in ones if total[one] <= least}))
        return found

    def _step(self, one: int, to: int) -> float:
        """What it costs to go from a site to the next that made an event."""
        before, body = self._before, self.body
        if to > one:
            return before[to] - before[one + 1]
        inner = body.sites[to].loop
        while inner >= 0:
            loop = body.loops[inner]
            if loop.begin <= one < loop.end:
                return before[loop.end] - before[one + 1] + before[to] - before[loop.begin] + _BACK
            inner = loop.parent
        return _AGAIN if to == one else _IMPOSSIBLE
