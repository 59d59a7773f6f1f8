"""What walks have in common that follow an event, not work: no branch is a guess, and few instructions are asked what they do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import is_at
from streamlint.ordering.places.places import Place, rest_behind
from streamlint.ordering.streams.event_places import EventPlaces
from streamlint.ordering.walk.walk import Walk
from streamlint.transfer.actions import Action
from streamlint.transfer.transfer import CALLING, Transfer

_ORDERING = frozenset({"record", "wait", "synchronize", "query"})


class Unordered(Walk):
    """A walk for something that no wait of the host brings to an end: a branch that leads past one is no guess."""

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return False

    def _may_order(self, state: State, block: int, *joins: int) -> bool:
        return False


class EventWalk(Unordered):
    """Follows events and streams into the functions that are given them."""

    resumes = True

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.events = EventPlaces(transfer, self.places)

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        if one[0] not in CALLING:
            return one[0] not in (op.YIELD, op.NEXT) and not (one[0] == op.ATTR and self.transfer.edges(function, one))
        return Site(function, one) not in self._sites and one[0] != op.EXIT and not self.transfer.edges(function, one)

    def names_of(self, function: Function, register: int) -> tuple[Place, ...]:
        return (*super().names_of(function, register), *self.events.names(function, register)) if register >= 0 else ()

    def is_event(self, state: State, kind: str, register: int) -> bool:
        """Whether a register holds an event or a stream that is tracked as of a kind."""
        return is_at(state.tracked, self.events.names(state.frame.function, register), kind)

    @cached_property
    def _sites(self) -> frozenset[Site]:
        """The calls that may record, wait, or ask."""
        return frozenset(Site(call.function, call.instruction) for call in self.transfer.sites(_ORDERING))

    def heard(self, state: State, one: Instruction) -> tuple[Action, ...]:
        """Of calls that neither record, wait nor ask, those that are given what is followed."""
        function = state.frame.function
        if one[0] in CALLING and (Site(function, one) in self._sites or self._is_given(state, one) or self.hands_on(state, one)):
            return self.actions(function, one)
        return ()

    def hands_on(self, state: State, one: Instruction) -> bool:
        """Whether a call gives a library a function that names what is followed, by a variable of the functions around it."""
        edges = (edge for edge in self.transfer.edges(state.frame.function, one) if edge.is_higher_order)
        inner = (each for edge in edges for each in edge.callee.below)
        places = [Place(("cell", *cell, each.unit.number)) for each in inner for cell in each.code.cells]
        return any(rest_behind(place, held.place) is not None for place in places for held in state.tracked)

    def _is_given(self, state: State, one: Instruction) -> bool:
        function, places = state.frame.function, [held.place for held in state.tracked]
        return any(
            rest_behind(name, place) is not None
            for register in op.reads(one)
            for name in (self.events.names(function, register) if register >= 0 else ())
            for place in places
        )

    def _entering(self, state: State, block: int) -> Iterator[State]:
        return super()._entering(state._replace(guards=frozenset()), block)

    def _orders_inside(self, function: Function) -> bool:
        return False
