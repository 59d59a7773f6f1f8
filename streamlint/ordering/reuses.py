"""SL008: the host writes, or frees, page-locked memory that an asynchronous copy may still be using."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.flow import BUFFER, Tracked
from streamlint.ordering.pending import Pending, bottom, calls_to
from streamlint.ordering.places import ANY, Element, Place, register_place
from streamlint.ordering.turns import Pools, Turns
from streamlint.ordering.walk import MOST_GUESSES, State
from streamlint.transfer.actions import Action, Copied, Freed, Viewed, Written
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

COPYING = frozenset({"copy", "transfer", "move"})
_UP = frozenset({"h2d", "unknown<host", "device<unknown", "unknown<unknown"})
_DOWN = frozenset({"d2h", "host<unknown", "host<device"})
_VIEWING = frozenset({op.ATTR, op.CALL, op.INVOKE, op.ITEM, op.BINARY})


class Reuse(NamedTuple):
    """A copy, the write or free that it may not see the end of, and the calls that lead to each from where their paths meet."""

    copy: Site
    copied: Copied
    write: Site
    name: str
    is_free: bool
    copy_calls: tuple[Site, ...]
    write_calls: tuple[Site, ...]
    doubts: int


class Reuses(Pending):
    """Finds the writes of a program to memory that copies still use."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.flow = Pools(self.places)
        self.turns = Turns()
        self._copied: Copied
        self._site: Site
        self._found: dict[tuple[Site, Site], Reuse] = {}

    def find(self) -> Iterator[Reuse]:
        """The reuses of the program."""
        for call in self.transfer.sites(COPYING, "asynchronous"):
            for action in self.transfer.of(call.function, call.instruction):
                if not isinstance(action, Copied) or action.asynchronous is False:
                    continue
                if action.asynchronous is None and action.flag == op.NONE:
                    continue
                memory = self._side(call, action)
                if memory is not None:
                    self._found = {}
                    self._copied, self._site = action, Site(call.function, call.instruction)
                    self.follow(self._site, action, memory)
                    yield from self._found.values()

    def _side(self, call: ModelledCall, copied: Copied) -> int | None:
        """The side of a copy that the host must leave alone: memory that the program is seen to have page-locked."""
        if copied.direction in _UP and self._is_locked(call, copied.source):
            return copied.source
        if copied.direction in _DOWN and self._is_locked(call, copied.target):
            return copied.target
        return None

    def _is_locked(self, call: ModelledCall, register: int) -> bool:
        held = [value for value in call.values(register) if isinstance(value, Memory) and value.space != "device"]
        return bool(held) and any(one.pinning == "pinned" for one in held) and not any(one.pinning == "pageable" for one in held)

    def _memory(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory by all its names, and views of it that were made before."""
        names = set(super()._memory(function, target))
        yield from names
        shared = {int(str(held.place.root[1])): held for held in names if held.place.root[0] == "register" and not held.place.path}
        for one in function.code.instructions():
            if one[0] in _VIEWING and one[2] not in shared:
                for action in self.transfer.of(function, one):
                    if isinstance(action, Viewed) and action.register in shared and self.transfer.shares(function, one, action.register):
                        view = Tracked(BUFFER, register_place(one[2]), action.type or shared[action.register].type)
                        shared[one[2]] = view
                        yield view

    # --- indices that change from round to round

    def _entering(self, state: State, block: int) -> Iterator[State]:
        is_again = any(loop.header == block and state.block in loop.body for loop in self.control(state.frame.function).loops)
        for after in super()._entering(state, block):
            yield self._anew(after, state.frame.function) if is_again else after

    def _returned(self, state: State, register: int) -> Iterator[State]:
        yield from super()._returned(self._anew(state, state.frame.function), register)

    def _anew(self, state: State, function: Function) -> State:
        """A state whose indices are computed anew: of memory only what comes again is known, of what orders any element may be meant."""
        kept: set[Tracked] = set()
        for held in state.tracked:
            if self.turns.stays(function, held.place):
                kept.add(held)
            elif held.kind != BUFFER:
                path = (ANY if isinstance(key, Element) else key for key in held.place.path)
                kept.add(held._replace(place=Place(held.place.root, tuple(path))))
        return state._replace(tracked=frozenset(kept))

    # --- what writes

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return not self._is_written(state, action) and super().orders(state, one, action)

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        if not self._is_written(state, action) or state.doubts > MOST_GUESSES:
            return False
        write = Site(state.frame.function, one)
        copy_calls = tuple(Site(bottom(state.frame).function, call) for call in state.path[-1:])
        name = action.call.name if isinstance(action, Copied) else str(getattr(action, "name", ""))
        calls = tuple(calls_to(state))
        found = Reuse(self._site, self._copied, write, name, isinstance(action, Freed), copy_calls, calls, state.doubts)
        before = self._found.get((self._site, write))
        if before is None or found.doubts < before.doubts:
            self._found[self._site, write] = found
        return True

    def _is_written(self, state: State, action: Action) -> bool:
        """Whether an action is a write of the host to the memory: by itself, by a copy that it waits for, or the memory's end."""
        if isinstance(action, (Written, Freed)):
            return self.held(state, action.register) is not None
        if isinstance(action, Copied) and action.asynchronous is False and action.direction not in ("d2h", "h2d", "d2d"):
            return self.held(state, action.target) is not None
        return False
