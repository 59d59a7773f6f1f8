"""Optimizers: what their steps read and write on the host is what they were made with, whoever calls them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, UPDATER, Tracked
from streamlint.ordering.places.origins import Origins
from streamlint.ordering.places.places import Key, Place, register_place, rest_behind
from streamlint.ordering.places.record_views import RecordViews
from streamlint.ordering.walk.pending import Pending
from streamlint.transfer.actions import Updated, Viewed
from streamlint.transfer.transfer import Transfer

_VIEWING = frozenset({op.ATTR, op.CALL, op.INVOKE, op.ITEM, op.BINARY})


class Updating(Pending):
    """Follows memory that optimizers work on. ``inside`` leads from a parameter of a model to the memory that counts."""

    inside: tuple[Key, ...] = ()

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.origins = Origins(transfer, self.places)
        self.views = RecordViews(transfer, self.places)

    def _memory(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory by all its names, also where a record has it beside."""
        yield from super()._memory(function, target)
        for register in self.transfer.shared(function, target):
            for view in self.views.same_memory(function, register):
                for record in (*self.places.names(function, view.record), *self.origins.of(function, view.record)):
                    yield Tracked(BUFFER, record.behind(view.key), view.type)
                for use in function.uses[view.record]:
                    if op.DEFINES[use[0]] and self.views.taken(function, use[2]) == (view.record, view.key):
                        yield Tracked(BUFFER, register_place(use[2]), view.type)

    def _seen_by(self, function: Function, names: Iterable[Tracked]) -> Iterator[Tracked]:
        """The views that a function makes of memory in its registers, and where it keeps them."""
        shared = {int(str(held.place.root[1])): held for held in names if held.place.root[0] == "register" and not held.place.path}
        for one in function.code.instructions():
            if one[0] in _VIEWING and one[2] not in shared:
                for action in self.transfer.of(function, one):
                    if isinstance(action, Viewed) and action.register in shared and self.transfer.shares(function, one, action.register):
                        of = shared[action.register]
                        part = self.part_of(function, one, of)
                        view = shared[one[2]] = Tracked(BUFFER, register_place(one[2]), action.type or of.type, None, part)
                        yield view
                        kept = (pair for use in function.uses[one[2]] for pair in self.places.assigned(function, use))
                        yield from (view._replace(place=target) for target, value in kept if value == one[2])

    def known_as(self, function: Function, register: int) -> Iterable[Place]:
        known = tuple(super().known_as(function, register))
        taken = [(int(str(place.root[1])), place.path) for place in known if place.root[0] == "register"]
        return (*known, *(place for each in taken for place in self.origins.of(function, *each)))

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
