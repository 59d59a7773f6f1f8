"""What may still matter from a block on: the conditions that later branches ask, and the registers that later instructions name.

Paths that differ in nothing else are one from there on (`walk`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.topics import topic
from streamlint.ordering.places.flow import BUFFER, EVENT, REPLACED, Tracked
from streamlint.ordering.places.gradients import GRADIENT
from streamlint.ordering.places.weights import GRADIENTS, WEIGHTS
from streamlint.support.memo import memoized
from streamlint.waits.questions import Key, asked_by

if TYPE_CHECKING:
    from streamlint.ordering.paths.conditions import Frame
    from streamlint.ordering.walk.walk_hooks import Hooks

_DYING = frozenset({BUFFER, EVENT, REPLACED})
_OF_MODULES = frozenset({GRADIENT, GRADIENTS, WEIGHTS})
Decided = frozenset[tuple["Frame", Key, bool]]


class Liveness:
    """What is alive on the paths of a walk."""

    def __init__(self, walk: Hooks) -> None:
        self.walk = walk
        self._tested: dict[Function, list[int]] = {}
        self._keys: dict[Function, dict[Key, int]] = {}
        self._read: dict[Function, list[int]] = {}

    def decided(self, frame: Frame, block: int, decided: Decided) -> Decided:
        """What a path knows of conditions, without what no branch of its function asks from a block on, and no caller learns."""
        function = frame.function
        if self.walk.currents.entered(function):
            return decided  # which stream is current may hang on it
        tested = self._tested.get(function)
        if tested is None:
            tested = self._tested[function] = spread(function, self._asks(function))
        keys, mask = self._keys[function], tested[block]
        is_root = frame.caller is None
        return frozenset(
            known
            for known in decided
            if known[0] != frame
            or mask >> keys.get(topic(known[1]), 0) & 1
            or (is_root and self.walk.conditions.is_given(function, known[1]))
            or self.walk.conditions.kept_flags.is_shared(function, known[1])
        )

    def _asks(self, function: Function) -> list[int]:
        """By block: the condition of its branch, as one bit; the lowest stands for those of no branch."""
        keys: dict[Key, int] = {}
        self._keys[function] = keys
        found = []
        for code in function.code.blocks:
            end = code[-1]
            key = topic(asked_by(function, end)) if end[0] == op.BRANCH else None
            found.append(1 << keys.setdefault(key, len(keys) + 1) if key is not None else 0)
        return found

    def tracked(self, function: Function, block: int, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked, without memory and events that have no other name than a register's which nothing names from a block on."""
        mask, is_register = self._live_in(function)[block], _is_register if self.walk.forgets_rounds else _is_register_memory
        return frozenset(held for held in tracked if not is_register(held) or mask >> int(str(held.place.root[1])) & 1)

    @memoized
    def _live_in(self, function: Function) -> list[int]:
        """By block: the registers that are named from its beginning on, before they are made anew, as bits."""
        blocks = function.code.blocks
        defined = [sum(1 << one[2] for one in code if op.DEFINES[one[0]]) for code in blocks] if self.walk.forgets_rounds else ()
        return spread(function, [self._names(function, code) for code in blocks], defined)

    def is_read(self, function: Function, block: int, register: int) -> bool:
        """Whether an instruction from a block on reads a register."""
        read = self._read.get(function)
        if read is None:
            reads = ({register for one in code for register in op.reads(one) if register >= 0} for code in function.code.blocks)
            read = self._read[function] = spread(function, [sum(1 << register for register in own) for own in reads])
        return bool(read[block] >> register & 1)

    def _names(self, function: Function, code: Sequence[Instruction]) -> int:
        """The registers that instructions name before one of them makes them anew, as bits."""
        found = made = 0
        for one in code:
            for register in (*op.reads(one), *self._packed(function, one)):
                for place in self.walk.names_of(function, register):
                    if place.root[0] == "register":
                        found |= 1 << int(str(place.root[1])) & ~made
            if op.DEFINES[one[0]] and not self.walk.forgets_rounds:
                found |= 1 << one[2]
            elif op.DEFINES[one[0]] and one[0] != op.PHI:  # those of a block join their values at once
                made |= 1 << one[2]
        return found

    def _packed(self, function: Function, one: Instruction) -> Iterator[int]:
        """The registers whose addresses a launch is given in an array: it names only that."""
        if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp and last_name(function, one) in self._packing:
            for work in self.walk.transfer.works(function, one):
                yield from (*work.reads, *work.writes)

    @cached_property
    def _packing(self) -> frozenset[str]:
        return self.walk.transfer.names({"launch"}, lambda row: row.get("packed") is not None)


def _is_register(held: Tracked) -> bool:
    """Whether what is tracked is known by the name of a register alone: what modules lead to is met by other names."""
    return held.kind in _DYING and held.place.root[0] == "register" and _OF_MODULES.isdisjoint(held.place.path)


def _is_register_memory(held: Tracked) -> bool:
    """Whether what is tracked is memory that a register holds itself."""
    return held.kind == BUFFER and not held.place.path and held.place.root[0] == "register"


def spread(function: Function, own: Sequence[int], ended: Sequence[int] = ()) -> list[int]:
    """By block: what it has of its own, joined with that of all blocks that may follow it, but for what it ends."""
    found = list(own)
    order = function.control.order[::-1]
    changed = True
    while changed:
        changed = False
        for block in order:
            mask = 0
            for after in function.control.successors[block]:
                mask |= found[after]
            mask = found[block] | (mask & ~ended[block] if ended else mask)
            changed = changed or mask != found[block]
            found[block] = mask
    return found
