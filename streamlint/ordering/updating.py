"""Optimizers: what their steps read and write on the host is what they were made with, whoever calls them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject
from streamlint.ir import Instruction
from streamlint.models.vocabulary import Selector
from streamlint.ordering.flow import BUFFER, UPDATER, Tracked
from streamlint.ordering.origins import Origins
from streamlint.ordering.pending import Pending
from streamlint.ordering.places import Key, Place, rest_behind
from streamlint.ordering.states import State
from streamlint.transfer.actions import Updated
from streamlint.transfer.transfer import Transfer


class Updating(Pending):
    """Follows memory that optimizers work on. ``inside`` leads from a parameter of a model to the memory that counts."""

    inside: tuple[Key, ...] = ()

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.origins = Origins(transfer, self.places)

    def updated(self, state: State, action: Updated) -> Tracked | None:
        """The memory, if an optimizer that takes a step was made with it."""
        if self.has(state, UPDATER, action.register):
            return next((held for held in state.tracked if held.kind == BUFFER), None)
        return self._parameter(state.frame.function, state.tracked, action.register, (action.given,))

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """An optimizer of the memory is one in the function that is given it."""
        found = super()._given(state, one, callee)
        if not self._positions:
            return found
        function = state.frame.function
        more: set[Tracked] = set()
        for index in range(len(callee.code.parameters)):
            for source in self.sources(function, one, callee, index)[:1]:
                register = int(str(source.root[1])) if source.root[0] == "register" else -1
                is_one = any(isinstance(value, LibraryObject) for value in self.transfer.values(function, register))
                if is_one and self._parameter(function, state.tracked, register, self._positions) is not None:
                    more.add(Tracked(UPDATER, Place(("parameter", index))))
        return found | more

    @cached_property
    def _positions(self) -> frozenset[int]:
        """The arguments of their makers that optimizers of the program work on."""
        calls = self.transfer.sites({"launch"}, where=lambda row: row.get("updates") is not None)
        selectors = (call.row.get("updates") for call in calls)
        return frozenset(each.position for each in selectors if isinstance(each, Selector) and each.position is not None)

    def _parameter(self, function: Function, tracked: Iterable[Tracked], register: int, positions: Iterable[int]) -> Tracked | None:
        """What is tracked of the parameters that an optimizer was made with."""
        made = [place.behind(*self.inside) for position in positions for place in self.origins.parameters(function, register, position)]
        for held in tracked if made else ():
            names = (held, *self.by_origin(function, held)) if held.kind == BUFFER else ()
            if any(rest_behind(outer, name.place) == () for name in names for outer in made):
                return held
        return None

    def by_origin(self, function: Function, held: Tracked) -> Iterator[Tracked]:
        """Something tracked, by the containers and iterators that loops of a function have taken it from."""
        root, path = held.place.root, held.place.path
        if root[0] == "register":
            yield from (held._replace(place=place) for place in self.origins.of(function, int(str(root[1])), path))
