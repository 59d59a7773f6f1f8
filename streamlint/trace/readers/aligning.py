"""Which line each event below a user's function came from: the cheapest way through the function's source that makes these events in order.

A profiler's event names a function, not a line, and a name may stand on several lines. The events of one invocation come in the order
in which the source makes them, so each is placed where the fewest places are passed over that must have made an event of their own.
Where several ways cost the same, all their lines are reported.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from streamlint.trace.readers.signs import OPERATOR, Sign, candidates
from streamlint.trace.readers.sites import Body

Lines = tuple[int, ...]
_Costs = dict[int, float]  # by site
_BACK = 0.05  # to begin a loop's next round
_AGAIN = 0.5  # of a second event of the same place
_IMPOSSIBLE = 100.0
_SAME = 1e-6
_MOST = 120  # candidates of an event: one with more says nothing of the order
_ELSEWHERE, _ELSEWHERE_THOUGH_NAMED = 1.5, 4.0  # to say that an event came from no place of the source: a callback of the collector
_BEAM = 8.0  # how much worse than the best a way may be on its way
_START = -1
_NEVER = float("inf")
_PASSING = 6.0  # at most, for what stands before the first event and behind the last


class Ways:
    """What it costs to go from one place of a body to another: how many places are passed that cannot have been left out.

    A branch or a loop that contains neither end is passed for nothing; the branches of one `if` exclude each other.
    """

    def __init__(self, body: Body, seen: Iterable[int]) -> None:
        """``seen`` are the sites that make an event whenever they are reached."""
        self.body = body
        self._own: list[list[int]] = [[] for _ in body.regions]  # positions of seen sites, by the innermost region
        for number in sorted(seen):
            self._own[body.sites[number].region].append(number)
        self._chains = [self._chain(number) for number in range(len(body.regions))]
        self._steps: dict[tuple[int, int], float] = {}

    def step(self, one: int, to: int) -> float:
        """From a site that made an event to the next that made one."""
        cost = self._steps.get((one, to))
        if cost is None:
            cost = self._steps[one, to] = self._step(one, to)
        return cost

    def into(self, to: int) -> float:
        """From the beginning of the function to a site."""
        return self._between(0, 0, to, self.body.sites[to].region)

    def out(self, one: int) -> float:
        """From a site to the end of the function."""
        return self._to_end(one, 0, ("return", "raise"))

    def _step(self, one: int, to: int) -> float:
        body = self.body
        here, there = body.sites[one].region, body.sites[to].region
        cost = _AGAIN if to == one else _IMPOSSIBLE
        if to > one:
            cost = min(cost, self._between(one + 1, here, to, there))
        for number in self._chains[here]:
            region = body.regions[number]
            if not region.loop:
                continue
            if region.begin <= to < region.end:
                back = self._to_end(one, number, ("continue",)) + self._between(region.begin, number, to, there) + _BACK
                cost = min(cost, back)
            elif to >= region.end:
                for jump in body.jumps:
                    if jump.kind == "break" and one < jump.position <= region.end and self._innermost_loop(jump.region) == number:
                        left = self._between(one + 1, here, jump.position, jump.region)
                        cost = min(cost, left + self._between(region.end, region.parent, to, there))
        return cost

    def _to_end(self, one: int, number: int, kinds: Sequence[str]) -> float:
        """From a site to the end of a region, or to a jump that leads there."""
        body, region = self.body, self.body.regions[number]
        here = body.sites[one].region
        cost = self._between(one + 1, here, region.end, number)
        for jump in body.jumps:
            if jump.kind in kinds and one < jump.position <= region.end and (number == 0 or self._innermost_loop(jump.region) == number):
                cost = min(cost, self._between(one + 1, here, jump.position, jump.region))
        return cost

    def _between(self, start: int, here: int, end: int, there: int) -> float:
        """What is passed on the straight way from a position in one region to a later one in another."""
        mine, theirs = self._chains[here], self._chains[there]
        common = next(number for number in mine if number in theirs)
        left, entered = mine[: mine.index(common)], theirs[: theirs.index(common)]
        regions = self.body.regions
        if left and entered and left[-1] != entered[-1] and regions[left[-1]].choice == regions[entered[-1]].choice >= 0:
            return _IMPOSSIBLE
        cost = self._count(common, start, end)
        cost += sum(self._count(number, start, regions[number].end) for number in left)
        return cost + sum(self._count(number, regions[number].begin, end) for number in entered)

    def _count(self, number: int, start: int, end: int) -> int:
        own = self._own[number]
        return max(0, bisect_left(own, end) - bisect_left(own, start))

    def _chain(self, number: int) -> list[int]:
        """A region and those around it, innermost first."""
        found = []
        while number >= 0:
            found.append(number)
            number = self.body.regions[number].parent
        return found

    def _innermost_loop(self, number: int) -> int:
        return next((one for one in self._chains[number] if self.body.regions[one].loop), -1)


class Alignment:
    """The places of one function's events, over all its invocations in a trace."""

    def __init__(self, body: Body, signs: Iterable[Sign]) -> None:
        """``signs`` are all that were seen below the function, in any invocation."""
        self.body = body
        self._chosen: set[int] = set()
        by_name: dict[str, list[int]] = {}
        for number, site in enumerate(body.sites):
            for name in site.names:
                by_name.setdefault(name, []).append(number)
        signs = list(signs)
        claimed = frozenset(sign.name for sign in signs if sign.name in by_name)
        places = {sign: candidates(sign, body, by_name, claimed) for sign in signs}
        self._candidates = {sign: (numbers, _ELSEWHERE_THOUGH_NAMED if named else _ELSEWHERE) for sign, (numbers, named) in places.items()}
        numbers = [(sign, numbers) for sign, (numbers, named) in places.items() if named or len(numbers) == 1]
        doubtful = {one for sign, ones in numbers if sign.kind == OPERATOR and len(ones) > 1 for one in ones}
        self._sure = {one for sign, ones in numbers for one in ones if one not in doubtful and not body.sites[one].attribute}
        self.doubts = bool(doubtful)
        self._ways = Ways(body, self._sure)

    def confirm_places(self) -> None:
        """Take the places that events were put on so far, and on no other, for ones that make an event whenever they are reached.

        Truth tests and operators are written of tensors and of numbers alike: which are of tensors shows in the trace.
        """
        self._ways = Ways(self.body, self._sure | self._chosen)

    def lines(self, signs: Sequence[Sign], begun: bool, ended: bool) -> list[Lines]:
        """The lines that each event of an invocation may have come from; none where the source has no such place.

        ``begun`` and ``ended`` say that the invocation was recorded from its beginning, and up to its end.
        """
        found: list[Lines] = [()] * len(signs)
        chosen = [(number, *self._candidates[sign]) for number, sign in enumerate(signs)]
        steps = [(number, ones, elsewhere) for number, ones, elsewhere in chosen if 0 < len(ones) <= _MOST]
        reached, placed = self._forward([(ones, elsewhere) for _, ones, elsewhere in steps], begun)
        left = {one: min(self._ways.out(one), _PASSING) if ended and one >= 0 else 0.0 for one in reached[-1]}
        for place in range(len(steps) - 1, -1, -1):
            number, _, elsewhere = steps[place]
            here, before = placed[place], reached[place]
            total = {one: cost + left[one] for one, cost in here.items() if one in left}
            least = min([*total.values(), *(cost + elsewhere + left[one] for one, cost in before.items() if one in left)]) + _SAME
            best = [one for one, cost in total.items() if cost <= least]
            if len(best) == 1:
                self._chosen.add(best[0])
            found[number] = tuple(sorted({self.body.sites[one].line for one in best}))
            left = {
                one: min([left.get(one, _NEVER) + elsewhere, *(self._cost(one, to, begun) + left[to] for to in total)]) for one in before
            }
        return found

    def _forward(self, steps: Sequence[tuple[Sequence[int], float]], begun: bool) -> tuple[list[_Costs], list[_Costs]]:
        """What it costs to have come to a site before each step and at the end, or to be there still; and to place each step's event there.

        A step has its candidates, and what it costs that the event comes from elsewhere.
        """
        reached: list[_Costs] = [{_START: 0.0}]
        placed: list[_Costs] = []
        for ones, elsewhere in steps:
            here = {to: min(cost + self._cost(one, to, begun) for one, cost in reached[-1].items()) for to in ones}
            still = {one: cost + elsewhere for one, cost in reached[-1].items()}
            both = {one: min(here.get(one, _NEVER), still.get(one, _NEVER)) for one in (*here, *still)}
            most = min(both.values()) + _BEAM
            placed.append(here)
            reached.append({one: cost for one, cost in both.items() if cost <= most})
        return reached, placed

    def _cost(self, one: int, to: int, begun: bool) -> float:
        if one == _START:
            return min(self._ways.into(to), _PASSING) if begun else 0.0
        return self._ways.step(one, to)
