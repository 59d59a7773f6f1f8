"""SL011: the host reads what an asynchronous collective makes, and waits for all processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.counters import iterable_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.open_methods import open_methods
from streamlint.ordering.places.places import ANY, Element, Place, register_place, rest_behind
from streamlint.ordering.threads.communicators import Communicators
from streamlint.ordering.walk.walk import ORDERED, Walk
from streamlint.transfer.actions import Action, Copied, Read, Synchronized, Viewed
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_COMPUTES = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})


class CollectiveRead(NamedTuple):
    """A collective, the read of what it makes, and the calls that lead to the read."""

    collective: Site
    read: Site
    name: str
    library: str
    calls: tuple[Site, ...]


class CollectiveReads(Walk):
    """Finds the first host reads of what collectives make."""

    hooked = frozenset({op.INVOKE})

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.communicators = Communicators(transfer)
        self.uses = self.communicators.uses
        self._site: Site
        self._found: dict[Site, CollectiveRead] = {}

    def find(self) -> Iterator[CollectiveRead]:
        """The reads of the program."""
        for call in self.transfer.sites(frozenset({"collective"}), "asynchronous"):
            _, asynchronous = call.switch("asynchronous")
            function, one = call.function, call.instruction
            written = self._written(call) if asynchronous else []
            if not written:
                continue
            self._site, self._found = Site(function, one), {}
            tracked = {Tracked(BUFFER, place) for register in written for place in self._places(function, register)}
            self.run(self.start(function, one, frozenset(tracked), ()))
            yield from self._found.values()

    def _written(self, call: ModelledCall) -> list[int]:
        """The tensors of a collective that are on a device: by what is known of them, or by the backend of its group."""
        written = call.all("writes")
        found = [register for register in written if self.uses.on_device(call.function, register)]
        group = self.communicators.of(call) if not found else None
        return written if group is not None and self.communicators.is_on_device(call, group) else found

    def _up(self, state: State, register: int) -> Iterator[State]:
        yield from super()._up(state, register)
        yield from self._next_calls(state)

    def _next_calls(self, state: State) -> Iterator[State]:
        """The methods of an object that no known code calls, and that wait for the handle that was kept beside the memory."""
        methods = open_methods(self.transfer, state.frame.function) if not state.path else []
        yield from self._called_next(state, filter(self._waits, methods))

    def _waits(self, method: Function) -> bool:
        """Whether a method waits for a handle."""
        return any(_is_wait(call) for one in method.by_opcode[op.INVOKE] for call in self.transfer.modelled(method, one))

    def _places(self, function: Function, register: int) -> Iterator[Place]:
        """The places of a tensor; of an element that a loop takes, the container's as well."""
        for shared in self.transfer.shared(function, register):
            yield from self.places.names(function, shared)
        over = iterable_of(function, function.definitions[register])
        if over >= 0:
            yield from (place.behind(ANY) for place in self.places.names(function, over))

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        function = state.frame.function
        if self.orders(state, one, action):
            return ORDERED
        if isinstance(action, Read) and self._holds(state, action.register, action.depth):
            if action.waits:
                return self._report(state, one, action.name, "torch")
            if self._is_computed(function, one):
                return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        elif isinstance(action, Copied) and self._holds(state, action.source):
            if action.direction == "d2h" and not action.asynchronous:
                return self._report(state, one, action.call.name, action.call.row.library if action.call.row is not None else "")
            if op.DEFINES[one[0]] and action.direction != "d2h":
                return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        elif (
            isinstance(action, Viewed)
            and not self._is_fetched(function, one)
            and op.DEFINES[one[0]]
            and self._holds(state, action.register)
        ):
            return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        return None

    def _is_fetched(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction gives memory of the host."""
        return any(isinstance(action, Copied) and action.direction == "d2h" for action in self.transfer.of(function, one))

    def _report(self, state: State, one: Instruction, name: str, library: str) -> str:
        read = Site(state.frame.function, one)
        self._found.setdefault(read, CollectiveRead(self._site, read, name, library, state.frame.calls))
        return ORDERED

    def _is_computed(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction computes a new value on the device."""
        if one[0] in _COMPUTES:
            return True
        return any(call.row.effect == "compute" for call in self.transfer.modelled(function, one)) and op.DEFINES[one[0]]

    def _holds(self, state: State, register: int, depth: tuple[int, ...] = (0,)) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        for place in names:
            for held in state.tracked:
                rest = rest_behind(place, held.place) if held.kind == BUFFER else None
                if rest is not None and len(rest) in depth and all(isinstance(key, Element) for key in rest):
                    return True
        return False

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return isinstance(action, Synchronized)

    def passed(self, state: State, one: Instruction) -> bool:
        """A wait for the handle with a time limit holds the host."""
        if one[0] != op.INVOKE:
            return False
        calls = self.transfer.modelled(state.frame.function, one)
        return any(_is_wait(call) and call.one("timeout") is not None for call in calls)

    def done_where(self, state: State, condition: int) -> bool | None:
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        return frozenset()


def _is_wait(call: ModelledCall) -> bool:
    """Whether a call waits for the handle of a collective."""
    return call.row.effect == "collective" and call.row.get("part") == "wait"
