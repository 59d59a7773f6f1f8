"""SL042: symmetric memory of a peer is read or written, and no barrier stands between that and what the peer does with it.

All ranks run one program: what a rank does to a peer's memory, a peer does to its own. So a write of a rank's own memory meets the next
read of a peer's, and a read of a peer's meets the next write of the rank's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.symmetric import Shared, Symmetric
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.own_streams import OwnStreams
from streamlint.ordering.walk.walk import ORDERED, Walk
from streamlint.transfer.actions import NAMED, Action, Lost, Stream, Synchronized
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited

_PENDING = Tracked("access", Place(("global", "access")))
_JOINED = Tracked("joined", Place(("global", "access")))
"""Another stream, or the host, has waited since: a barrier on any stream is taken for one behind the access."""
_BARRIER = "barrier"
"""A barrier was passed; its place holds where its stream was made current, if it was."""
_COUNTING = frozenset({"compute", "factory", "view", "read"})
_WORKING = frozenset({op.CALL, op.INVOKE, op.BINARY, op.UNARY, op.INPLACE, op.SET_ITEM, op.COMPARE})


class Access(NamedTuple):
    """What work does to shared memory."""

    shared: Shared
    writes: bool
    name: str
    library: str


class Unguarded(NamedTuple):
    """Two accesses that no barrier orders, and the calls that lead to the second one."""

    first: Site
    before: Access
    second: Site
    access: Access
    calls: tuple[Site, ...]
    barrier: Site | None  # one that is passed, on another stream than the second access


class UnguardedPeers(Walk):
    """Finds such pairs."""

    ordering: tuple[type[object], ...] = (Synchronized, Waited, Lost)
    hooked = _WORKING
    most_states = 1_000

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.symmetric = transfer.one_of(Symmetric, transfer)
        self.streams = transfer.one_of(OwnStreams, transfer)
        self._first: Site
        self._before: Access
        self._found: dict[Site, Unguarded] = {}

    def find(self) -> Iterator[Unguarded]:
        """The pairs of the program, one for each second access."""
        peers = {access.shared.buffer for found in self._accesses.values() for access in found if access.shared.is_peer}
        for (function, one), found in self._accesses.items():
            for access in found:
                if access.shared.buffer in peers:
                    self._follow(function, one, access)
        yield from self._found.values()

    def _follow(self, function: Function, one: Instruction, access: Access) -> None:
        self._first, self._before = Site(function, one), access
        around = self.currents.at(function, one)
        if around is not None and around.kind != NAMED:
            return
        sites = frozenset({self._first}) if around is not None else frozenset()
        self.run(self.start(function, one, frozenset({_PENDING}), ())._replace(sites=sites))

    @cached_property
    def _accesses(self) -> dict[tuple[Function, Instruction], list[Access]]:
        """The accesses to shared memory in the files that make it or lead to a peer's, and in the functions that these hand it to."""
        found: dict[tuple[Function, Instruction], list[Access]] = defaultdict(list)
        functions = [function for unit in self.symmetric.units() for function in unit.functions]
        looked_at = set(functions)
        for function in functions:
            for one in function.code.instructions():
                for access in self._of(function, one) if one[0] in _WORKING else ():
                    found[function, one].append(access)
                new = [callee for callee in self._receivers_of(function, one) if callee not in looked_at]
                looked_at.update(new)
                functions += new
        return dict(found)

    def _receivers_of(self, function: Function, one: Instruction) -> Iterator[Function]:
        """The functions that a call hands shared memory to."""
        edges = self.transfer.edges(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        callees = [edge.callee for edge in edges if edge.is_direct]
        if callees and any(self.symmetric.of(function, register) is not None for register in operands_of(function, one) if register >= 0):
            yield from callees

    def _of(self, function: Function, one: Instruction) -> Iterator[Access]:
        for work in self.transfer.works(function, one):
            for registers, writes in ((work.reads, False), (work.writes, True)):
                for register in registers if not work.assumed else ():
                    shared = self.symmetric.of(function, register) if register >= 0 and register != one[2] else None
                    if shared is None or (shared.is_address and self._counts(function, one)):
                        continue
                    if writes or register not in work.writes:
                        yield Access(shared, writes, work.name, work.library)

    def _counts(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction takes an address for the number that it is: no kernel that goes there."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return all(call.row.effect in _COUNTING for call in calls)

    # --- on the way

    def arrive(self, state: State, one: Instruction) -> Answer:
        function = state.frame.function
        for access in self._accesses.get((function, one), ()) if one[0] in _WORKING else ():
            if self._conflicts(access):
                barrier = self._passed_barrier(state)
                if barrier is None or self._is_elsewhere(self._current_at(barrier[1]), state, one):
                    found = Unguarded(self._first, self._before, Site(function, one), access, state.frame.calls, barrier and barrier[0])
                    self._found.setdefault(found.second, found)
                return ORDERED
        return None

    def _passed_barrier(self, state: State) -> tuple[Site, Site | None] | None:
        """The barrier that a path has passed behind the access, and where its stream was made current."""
        return next(((held.place.root[2], held.place.root[3]) for held in state.tracked if held.kind == _BARRIER), None)  # type: ignore[return-value]

    def _conflicts(self, access: Access) -> bool:
        mine = self._before.shared
        return (
            access.shared.buffer == mine.buffer
            and access.shared.is_peer != mine.is_peer
            and access.writes != self._before.writes
            and not (access.shared.is_part and mine.is_part)
        )

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        function = state.frame.function
        has_barrier = self._passed_barrier(state) is not None
        if isinstance(action, Lost):
            if has_barrier or not self._is_barrier(function, one):
                return ORDERED
            if _PENDING in state.tracked and self._is_elsewhere(self._current_at(next(iter(state.sites), None)), state, one):
                return None
            around = self._made_current(state.frame, one)
            scope = Site(around[0].function, around[1]) if around is not None else None
            return frozenset({Tracked(_BARRIER, Place(("global", _BARRIER, Site(function, one), scope)))})
        if isinstance(action, (Synchronized, Waited)):
            return ORDERED if has_barrier else frozenset({_JOINED})
        return None

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return isinstance(action, Lost)

    def _is_barrier(self, function: Function, one: Instruction) -> bool:
        call = self.symmetric.call(Site(function, one))
        return call is not None and call.text("part") in ("barrier", "wait")

    def _meets_ranks(self, function: Function, one: Instruction) -> bool:
        """Whether a call waits for other ranks."""
        calls = self.transfer.modelled(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return any(call.row.effect == "collective" or call.row.get("ranks") for call in calls)

    def passed(self, state: State, one: Instruction) -> bool:
        return one[0] in (op.CALL, op.INVOKE) and self._meets_ranks(state.frame.function, one)

    # --- streams

    def raised(self, state: State, call: Instruction) -> State:
        """What is current around the call that leads to the access is so for the access."""
        around = self.currents.at(state.frame.function, call) if not state.sites and _PENDING in state.tracked else None
        if around is None:
            return state if self._passed_barrier(state) is None else state._replace(tracked=frozenset())
        if around.kind != NAMED:
            return state._replace(tracked=frozenset())
        return state._replace(sites=frozenset({Site(state.frame.function, call)}))

    def over(self, state: State) -> bool:
        return not state.tracked

    def _current_at(self, site: Site | None) -> tuple[Function, Stream] | None:
        """The stream that is current at a place; None for that of the caller."""
        found = self.currents.at(*site) if site is not None else None
        return (site.function, found) if site is not None and found is not None else None

    def _is_elsewhere(self, mine: tuple[Function, Stream] | None, state: State, one: Instruction) -> bool:
        """Whether an instruction is shown to work on another stream than that one."""
        around = self._made_current(state.frame, one)
        theirs = (around[0].function, around[2]) if around is not None else None
        if mine is None or theirs is None:
            only = mine or theirs
            return only is not None and self.streams.is_own(*only)
        return self.streams.are_two(*mine, *theirs)
