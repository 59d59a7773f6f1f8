"""C++: events that other streams wait for, recorded on the default stream where the work to mark is on another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Site
from streamlint.facts.values.constructions import is_constructor
from streamlint.hazards.default_stream import DefaultStream
from streamlint.hazards.streams import Streams
from streamlint.ir import opcodes as op
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import AMBIENT, NULL
from streamlint.transfer.launch_rows import FIXED, GIVEN, OMITTED
from streamlint.transfer.modelled import ModelledCall


class Mark(NamedTuple):
    """A record on the default stream, what it may miss, and where the default stream was asked for."""

    record: Site
    missed: str
    chosen: Site | None


class Marks:
    """Finds such records."""

    def __init__(self, streams: Streams, judge: DefaultStream) -> None:
        self.streams = streams
        self.judge = judge

    def find(self) -> Iterator[Mark]:
        """The records of the program that miss what they are to mark."""
        for call in self.streams.transfer.sites(frozenset({"record"})):
            function, event = call.function, call.one("event")
            if not function.is_cpp or event is None or self.streams.per_thread(function.unit) is True or is_constructor(function):
                continue
            choice = next((each for each in self._choices(call) if each.kind == NULL and not each.calls), None)
            if choice is None or not self._is_awaited(call, event):
                continue
            missed = self._in_extension(function) if self.judge.is_extension(function.unit) else self._beside(call, choice)
            if missed:
                yield Mark(Site(function, call.instruction), missed, self._asked(call))

    def _choices(self, call: ModelledCall) -> list[Choice]:
        how, register = self.streams.launches.chosen(call)
        here = Site(call.function, call.instruction)
        if how in (OMITTED, FIXED):
            return [Choice(NULL, how, here)]
        return list(self.streams.choices.of_register(call.function, register, here)) if how == GIVEN else []

    def _asked(self, call: ModelledCall) -> Site | None:
        """Where a default stream was asked for that the record is given."""
        how, register = self.streams.launches.chosen(call)
        register = behind_copies(call.function, register) if how == GIVEN else op.NONE
        one = call.function.definitions[register] if register >= 0 else None
        return Site(call.function, one) if one is not None and one[0] == op.CALL else None

    def _is_awaited(self, record: ModelledCall, event: int) -> bool:
        """Whether a stream waits for the event behind the record."""
        function, places = record.function, self.streams.choices.places
        place = places.of(function, behind_copies(function, event))
        for call in self._waits(function):
            on = call.one("on")
            is_same = on is not None and places.of(function, behind_copies(function, on)) == place
            if is_same and leads_to(function, record.instruction, call.instruction):
                return True
        return False

    def _waits(self, function: Function) -> Iterator[ModelledCall]:
        for opcode in (op.CALL, op.INVOKE):
            for one in function.by_opcode[opcode]:
                yield from (call for call in self.streams.transfer.modelled(function, one) if call.row.effect == "wait")

    def _in_extension(self, function: Function) -> str:
        """Nothing in the function is ordered with PyTorch's current stream."""
        for event in self.streams.beside.own(function):
            if event.work is not None and event.choice is not None and event.choice.kind == AMBIENT and event.work.how == GIVEN:
                return ""
        for opcode in (op.CALL, op.INVOKE):
            for one in function.by_opcode[opcode]:
                for call in self.streams.transfer.modelled(function, one):
                    if call.row.effect in ("record", "wait") and any(each.kind == AMBIENT for each in self._choices(call)):
                        return ""
        return "it may miss work on PyTorch's stream"

    def _beside(self, record: ModelledCall, choice: Choice) -> str:
        function = record.function
        if choice.how not in (OMITTED, FIXED, "literal") or not self.streams.in_scope.is_given(function):
            return ""
        before = self.streams.beside.before(function, record.instruction)
        work = [event.choice for event in before if event.work is not None and event.choice is not None]
        if not work or any(each.kind == NULL for each in work) or self.judge.is_ordered_on_purpose(function, record.instruction):
            return ""  # it may well mark what the default stream has been given elsewhere
        return "it may miss the stream parameter's work"
