"""SL037: collectives of two communicators that nothing orders on a rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.paths.conditions import context_of
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import EVENT, Tracked
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.own_streams import OwnStreams
from streamlint.ordering.threads.communicators import EFFECTS, Communicator, Communicators, has_communicator
from streamlint.ordering.walk.walk import ORDERED, Walk
from streamlint.transfer.actions import NAMED, NULL, Action, Lost, Recorded, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited

_PENDING = Tracked("collective", Place(("global", "collective")))
"""That a collective has not ended; every function has this name for it."""


class Unordered(NamedTuple):
    """A collective, a second one of another communicator that may start before it, and the calls that lead there."""

    first: Site
    second: Site
    name: str
    library: str
    calls: tuple[Site, ...]
    is_asynchronous: bool  # the first: it is on a stream that nobody but its handle leads to


class UnorderedCollectives(Walk):
    """Finds collectives that may start while one of another communicator has not ended."""

    ordering: tuple[type[object], ...] = (Synchronized, Waited)
    hooked = frozenset({op.CALL, op.INVOKE})
    most_states = 1_000

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.communicators = transfer.one_of(Communicators, transfer)
        self.streams = transfer.one_of(OwnStreams, transfer)
        self._call: ModelledCall
        self._mine: Communicator = frozenset()
        self._is_asynchronous = False
        self._found: dict[Site, Unordered] = {}

    def find(self) -> Iterator[Unordered]:
        """The pairs of the program, one for each second collective."""
        if len({communicator for _, communicator in self.known.values()}) < 2:
            return
        for (function, one), (call, communicator) in self.known.items():
            if function in self._grouped or not self.communicators.is_on_device(call, communicator):
                continue
            self._call, self._mine = call, communicator
            self._is_asynchronous = call.row.effect == "collective" and call.switch("asynchronous")[1] is True
            around = self._stream_of(call) if not self._is_asynchronous else None
            if around is not None and around.kind not in (NAMED, NULL):
                continue
            sites = frozenset({Site(function, one)}) if around is not None else frozenset()
            handles = (
                place
                for action in self.transfer.of(function, one)
                if isinstance(action, Recorded)
                for place in self.places.names(function, action.event)
            )
            tracked = frozenset({_PENDING, *(Tracked(EVENT, place) for place in handles)})
            self.run(self.start(function, one, tracked, ())._replace(sites=sites))
        yield from self._found.values()

    @cached_property
    def known(self) -> dict[tuple[Function, Instruction], tuple[ModelledCall, Communicator]]:
        """The collectives of the program whose communicators are known."""
        known = ((place, call, self.communicators.of(call)) for place, call in self._collectives.items())
        return {place: (call, communicator) for place, call, communicator in known if communicator is not None}

    @cached_property
    def _collectives(self) -> dict[tuple[Function, Instruction], ModelledCall]:
        """The collectives of the program."""
        calls = self.transfer.sites(EFFECTS, where=has_communicator)
        return {(call.function, call.instruction): call for call in calls}

    @cached_property
    def _grouped(self) -> frozenset[Function]:
        """The functions that start several collectives together: those are ordered by NCCL, or are of several devices."""
        return frozenset(call.function for call in self.transfer.sites({"none"}, where=lambda row: bool(row.get("groups"))))

    def _stream_of(self, call: ModelledCall) -> Stream | None:
        """The stream of a collective: the one that it is given, or that is current in its function; None for that of the caller."""
        if call.row.effect == "launch":
            return call.stream()
        return self.currents.at(call.function, call.instruction)

    # --- on the way

    def arrive(self, state: State, one: Instruction) -> Answer:
        function = state.frame.function
        if one[0] not in (op.CALL, op.INVOKE):
            return None
        if any(_sets_device(call.row) for call in self.transfer.modelled(function, one)):
            return ORDERED  # what follows is another device's
        call = self._collectives.get((function, one))
        if call is None or function in self._grouped:
            return None
        theirs = self.communicators.of(call, context_of(state.frame))
        if theirs is None or not (self.communicators.are_apart(self._mine, theirs) and self.communicators.may_be_on_device(call, theirs)):
            return None
        if not (self._is_asynchronous or self._is_on_other_stream(state, call)):
            return None
        second = Site(function, one)
        first = Site(self._call.function, self._call.instruction)
        found = Unordered(first, second, call.name, call.row.library, state.frame.calls, self._is_asynchronous)
        self._found.setdefault(second, found)
        return ORDERED

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if self.orders(state, one, action):
            return ORDERED
        if isinstance(action, Lost) and any(self._may_wait_by(state, register) for register in action.registers):
            return ORDERED
        return None

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        if isinstance(action, Synchronized):
            return True
        if not isinstance(action, Waited):
            return False
        if self._is_asynchronous and not action.is_event:
            return False  # the stream of a communicator is none that a program waits for
        definition = state.frame.function.definitions[action.of] if action.of >= 0 else None
        other = self.known.get((state.frame.function, definition)) if definition is not None else None
        return other is None or not self.communicators.are_apart(self._mine, other[1])

    def _may_wait_by(self, state: State, register: int) -> bool:
        """Whether unknown code may wait for the collective by what it is given: its handle, or a stream or event."""
        if not self._is_asynchronous:
            held = self.transfer.values(state.frame.function, register)
            return any(isinstance(value, LibraryObject) and value.kind in ("stream", "event") for value in held)
        return self.leads(state, EVENT, register)

    def raised(self, state: State, call: Instruction) -> State:
        """What is current around the call that leads to the collective is so for the collective."""
        if state.sites or self._is_asynchronous or self._call.row.effect == "launch":
            return state
        around = self.currents.at(state.frame.function, call)
        if around is None:
            return state
        if around.kind != NAMED:
            return state._replace(tracked=frozenset())
        return state._replace(sites=frozenset({Site(state.frame.function, call)}))

    def over(self, state: State) -> bool:
        return not state.tracked

    # --- streams

    def _is_on_other_stream(self, state: State, call: ModelledCall) -> bool:
        """Whether a collective is on another stream than the first one."""
        if call.row.effect != self._call.row.effect:
            return False
        mine = next(iter(state.sites), None)
        if call.row.effect == "launch":
            frame, register = as_passed(self.transfer, state.frame, call.stream().register)
            given = call.stream()._replace(register=register)
            return self.streams.are_two(self._call.function, self._call.stream(), frame.function, given)
        around = self._made_current(state.frame, call.instruction)
        if mine is None or around is None:
            if mine is not None:
                return self.streams.is_own(*self._named(mine))
            return around is not None and self.streams.is_own(around[0].function, around[2])
        return self.streams.are_two(*self._named(mine), around[0].function, around[2])

    def _named(self, site: Site) -> tuple[Function, Stream]:
        found = self.currents.at(site.function, site.instruction)
        assert found is not None
        return site.function, found


def _sets_device(row: Row) -> bool:
    """Whether a call makes another device the current one."""
    is_scope = row.effect == "device" and row.library == "cupy"
    return is_scope or bool(row.get("devices")) or (row.effect == "setting" and row.get("what") == "device")
