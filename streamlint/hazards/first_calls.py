"""What runs the first time alone: behind a branch that asks for what it makes and keeps, in the function or on each way to it."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.values.constructions import is_constructor
from streamlint.hazards.every_round import EveryRound
from streamlint.ordering.places.places import Places
from streamlint.transfer.transfer import Transfer

_DEEPEST = 8
_MOST_CALLERS = 20


class FirstCalls:
    """Answers for the places of a program."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.rounds = transfer.one_of(EveryRound, transfer, places)
        self._known: dict[Function, bool] = {}

    def is_first(self, site: Site, depth: int = _DEEPEST) -> bool:
        """Whether each way to a place goes by a branch that keeps itself from being taken again, or a constructor, and one by a branch."""
        if self.rounds.runs_for_first(site):
            return True
        function = site.function
        if function not in self._known:
            self._known[function] = False  # where it calls itself
            self._known[function] = depth > 0 and self._is_entered_first(function, depth - 1)
        return self._known[function]

    def _is_entered_first(self, function: Function, depth: int) -> bool:
        callers = [Site(*each) for each in self.transfer.callers(function) if each[0] is not function]
        others = [each for each in callers if not is_constructor(each.function)]
        return bool(others) and len(callers) <= _MOST_CALLERS and all(self.is_first(each, depth) for each in others)
