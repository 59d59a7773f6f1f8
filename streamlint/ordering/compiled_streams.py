"""What compiled functions do with streams: scopes that they enter, what they change in place there, and what they wait for behind that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.choice import behind_copies
from streamlint.ordering.compiled import Compiled, Region
from streamlint.ordering.places import Place, Places
from streamlint.ordering.streams import Currents
from streamlint.transfer.actions import Copied
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_SWITCHES = frozenset({"scope", "set_stream"})
_WAITS = frozenset({"wait", "synchronize"})
_DEEPEST, _HELPERS = 6, 3
"""Calls over which memory is followed, and those to a change or a wait."""


class Change(NamedTuple):
    """What a compiled function is given, and changes in place on a stream that it has made current; and the wait behind that."""

    at: Site
    switched: Site
    wait: Site
    region: Region


class CompiledStreams:
    """The streams of compiled functions."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.places = transfer.one_of(Places, transfer.facts)
        self.currents = transfer.one_of(Currents, transfer)
        self.compiled = Compiled(transfer)

    @cached_property
    def calls(self) -> dict[Function, list[ModelledCall]]:
        """By compiled function its calls that make streams current, or wait."""
        found: dict[Function, list[ModelledCall]] = {}
        if not self.compiled.regions:
            return found
        for call in self.transfer.sites(_SWITCHES | _WAITS):
            if call.function in self.compiled.regions and not self.compiled.is_spared(call.function, call.instruction):
                found.setdefault(call.function, []).append(call)
        return found

    def changes(self) -> Iterator[Change]:
        """The first change in place on each stream that a function makes current, where the function waits behind that."""
        for function, calls in self.calls.items():
            switches = [call for call in calls if call.row.effect in _SWITCHES]
            told = set[Site]()
            for one in function.code.instructions() if switches else ():
                switched = self._switched(function, one, switches)
                at = self._changed(function, one, _HELPERS) if switched is not None and switched not in told else None
                wait = self._waited_behind(function, one) if at is not None else None
                if switched is not None and at is not None and wait is not None:
                    told.add(switched)
                    yield Change(at, switched, wait, self.compiled.regions[at.function])

    def _changed(self, function: Function, one: Instruction, left: int) -> Site | None:
        """Where an instruction, or a function that it calls, changes in place what the compiled code is given."""
        if self._changes_input(function, one):
            return Site(function, one)
        for callee in self._entered(function, one) if left else ():
            for inner in callee.code.instructions():
                if self.currents.at(callee, inner) is None and (found := self._changed(callee, inner, left - 1)) is not None:
                    return found
        return None

    def _waited_behind(self, function: Function, one: Instruction) -> Site | None:
        """A wait behind an instruction: in its function, in one that this calls there, or in those of the region that lead to it."""
        found = self._wait_in(function, one)
        for caller, call in reversed(self.compiled.regions[function].calls) if found is None else ():
            found = found or self._wait_in(caller, call)
        return found

    def _wait_in(self, function: Function, one: Instruction) -> Site | None:
        calling = (each for opcode in (op.CALL, op.INVOKE) for each in function.by_opcode[opcode])
        for each in sorted(calling, key=lambda each: function.homes[each]):
            if each != one and _is_behind(function, one, each) and (found := self._waiting(function, each, _HELPERS)) is not None:
                return found
        return None

    def _waiting(self, function: Function, one: Instruction, left: int) -> Site | None:
        """The wait that a call is, or that a function makes which it enters."""
        if any(call.instruction == one and call.row.effect in _WAITS for call in self.calls.get(function, ())):
            return Site(function, one)
        for callee in self._entered(function, one) if left else ():
            calling = (each for opcode in (op.CALL, op.INVOKE) for each in callee.by_opcode[opcode])
            found = next((found for each in calling if (found := self._waiting(callee, each, left - 1)) is not None), None)
            if found is not None:
                return found
        return None

    def _entered(self, function: Function, one: Instruction) -> Iterator[Function]:
        """The compiled functions that a call enters."""
        for edge in self.transfer.edges(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
            if edge.is_followed and not edge.is_handed and edge.callee in self.compiled.regions:
                yield edge.callee

    def _switched(self, function: Function, one: Instruction, switches: list[ModelledCall]) -> Site | None:
        """Where the stream was made current that is so at an instruction, in its function."""
        stream = self.currents.at(function, one)
        if stream is None:
            return None
        found = next((call for call in switches if call.one("stream") == stream.register), None)
        return Site(function, found.instruction) if found is not None else None

    def _changes_input(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction writes on the current stream what the compiled code is given."""
        if self.compiled.is_spared(function, one):
            return False
        written = [register for work in self.transfer.works(function, one) if not work.assumed for register in work.writes]
        copies = (each for each in self.transfer.of(function, one) if isinstance(each, Copied))
        written += [copied.target for copied in copies if copied.target != one[2]]
        return any(self._is_input(function, register, _DEEPEST) for register in written)

    def _is_input(self, function: Function, register: int, left: int) -> bool:
        """Whether memory comes from outside of what is compiled: an argument, a member, a variable of others."""
        if register < 0 or not left:
            return False
        for each in self._behind(function, register):
            place = self.places.of(function, each)
            if place.root[0] in ("cell", "global"):
                return True
            if place.root[0] == "parameter" and self._is_given(function, place, left):
                return True
        return False

    def _behind(self, function: Function, register: int) -> list[int]:
        """A register, and those of whose memory it holds a part: views, elements, what a loop goes through."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            held = [behind_copies(function, each), *self.transfer.shared(function, each)]
            if one is not None and one[0] in (op.ITEM, op.NEXT, op.ITER):
                held.append(one[3])
            found += [inner for inner in held if inner >= 0 and inner not in found]
        return found

    def _is_given(self, function: Function, place: Place, left: int) -> bool:
        region = self.compiled.regions[function]
        if not region.calls:
            return True
        caller, call = region.calls[-1]
        index = place.root[1]
        assert isinstance(index, int)
        if call[0] == op.INVOKE and index == 0 and function.has_receiver:
            return self._is_input(caller, call[3], left - 1)
        given = operand_of(caller, call, function, index)
        return given is not None and self._is_input(caller, given, left - 1)


def _is_behind(function: Function, first: Instruction, second: Instruction) -> bool:
    """Whether a path leads from an instruction to another one."""
    (block, index), (home, at) = function.homes[first], function.homes[second]
    if block == home and at > index:
        return True
    waiting, seen = list(function.control.successors[block]), set[int]()
    while waiting:
        number = waiting.pop()
        if number == home:
            return True
        if number not in seen:
            seen.add(number)
            waiting += function.control.successors[number]
    return False
