"""Captures behind a warm-up: an earlier call with the same request has already made what the captured call would make and keep."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Site
from streamlint.hazards.every_round import EveryRound
from streamlint.hazards.kept_sizes import root_place
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.captures.capture_walk import Refused
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import OWN, Place, Places
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import is_stream
from streamlint.waits.operands import argument_registers
from streamlint.waits.questions import alike


class SameRequests:
    """Asks for the calls that the capturing function makes before."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self.rounds = transfer.one_of(EveryRound, transfer, places)

    def is_done_before(self, refused: Refused) -> bool:
        """Whether an operation runs only for the first request, and the function has made the same request before the capture."""
        begin, calls = refused.capture.begin, refused.calls
        if not calls or calls[0].function is not begin.function:
            return False
        inner = (*calls[1:], refused.site)
        if not any(self.rounds.runs_for_first(site) for site in inner):
            return False
        kept = {name for site in inner for name in _read(site.function)}
        function, captured = calls[0]
        return any(self._is_same_request(function, one, captured, kept) for one in self._before(begin, captured))

    def _before(self, begin: Site, captured: Instruction) -> Iterator[Instruction]:
        """The calls that have run where a capture begins: on each way, or in the rounds of a loop on each way."""
        function, entered = begin.function, self._callees(begin.function, captured)
        home = function.blocks[begin.instruction]
        for one in function.by_opcode[captured[0]]:
            if one != captured and entered == self._callees(function, one) and leads_to(function, one, begin.instruction):
                loops = [loop.header for loop in self.rounds.loops(function, one) if home not in loop.body]
                if any(function.control.dominates(block, home) for block in (function.blocks[one], *loops)):
                    yield one

    def _callees(self, function: Function, one: Instruction) -> set[Function]:
        return {edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed}

    def _is_same_request(self, function: Function, one: Instruction, captured: Instruction, kept: set[str]) -> bool:
        """Whether two calls ask one object for the same, and nothing that they read is set in between."""
        if self._asked(function, one) != self._asked(function, captured):
            return False
        read = [OWN, *(self.places.of(function, register) for register in op.reads(captured) if register >= 0)]
        between = list(self._set_between(function, one, captured))
        return not any(_is_read(target, place, kept) for target in between for place in read)

    def _asked(self, function: Function, one: Instruction) -> list[object]:
        """What a call asks for, and of which object. A stream is no part of it."""
        given: list[tuple[object, int]] = list(argument_registers(function, one))
        registers = [("receiver", one[3]), *given] if one[0] == op.INVOKE else given
        return [(kind, self._said(function, register)) for kind, register in registers]

    def _said(self, function: Function, register: int) -> object:
        if register < 0 or is_stream(self.transfer.values(function, register)):
            return None
        return alike(function, behind_copies(function, register))

    def _set_between(self, function: Function, first: Instruction, second: Instruction) -> Iterator[Place]:
        """The places that may be set behind one call and before another one; a call like these sets nothing new."""
        asked, entered = self._asked(function, second), self._callees(function, second)
        for one in function.code.instructions():
            if one in (first, second) or not (leads_to(function, first, one) and leads_to(function, one, second)):
                continue
            yield from (place for place, _ in self.rounds.sizes.assigned_at(function, one))
            if one[0] in (op.CALL, op.INVOKE) and not (self._callees(function, one) == entered and self._asked(function, one) == asked):
                yield from (place for place, _ in self.rounds.sizes.assigned(function, one))
            if one[0] == op.INVOKE and not self.transfer.edges(function, one) and not function.invokes(one, "looks-into"):
                yield root_place(self.places.of(function, one[3]))


def _read(function: Function) -> Iterator[str]:
    """The members that a function reads."""
    yield from (function.text(one[4]) for one in function.by_opcode[op.ATTR])
    yield from (function.text(one[3]) for one in function.by_opcode[op.NAME])


def _is_read(target: Place, place: Place, kept: set[str]) -> bool:
    """Whether what is set is a place that a call is given, what holds it, or a member of it that the call reads."""
    if target.root != place.root:
        return False
    holder, inner = root_place(place).path, target.path
    return holder[: len(inner)] == inner or (inner[: len(holder)] == holder and inner[-1] in kept)
