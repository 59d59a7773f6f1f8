"""Which events the program records, and where: what an event waits for that no analysed code records is unknown."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Recorded
from streamlint.transfer.transfer import Transfer


class RecordedEvents:
    """Finds the records of events."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

    def is_empty(self, function: Function, one: Instruction, event: int) -> bool:
        """Whether a function waits for an event that it has made, and records only later: that is the affair of SL018."""
        definition = function.definitions[event] if event >= 0 else None
        values = [value for value in self.transfer.values(function, event) if isinstance(value, LibraryObject)]
        if definition is None or not values or any(value.site is None or value.site.function is not function for value in values):
            return False
        place = self.places.of(function, event)
        behind = False
        for each in function.code.instructions():
            behind |= each is one
            for action in self.transfer.of(function, each) if each[0] in (op.CALL, op.INVOKE) else ():
                if isinstance(action, Recorded) and self.places.of(function, action.event) == place:
                    return behind
        return False

    @memoized
    def is_recorded(self, function: Function, event: int) -> bool:
        """Whether analysed code records an event: then it tells what the event waits for."""
        return self._find(function, event)

    def _find(self, function: Function, event: int) -> bool:
        creations = {value.site for value in self.transfer.values(function, event) if isinstance(value, LibraryObject)}
        place = self.places.of(function, event)
        for other, recorded in self._records:
            if other is function and self.places.of(function, recorded) == place:
                return True
            values = self.transfer.values(other, recorded)
            if creations & {value.site for value in values if isinstance(value, LibraryObject) and value.site is not None}:
                return True
            one = other.definitions[recorded] if recorded >= 0 else None
            if one is not None and Site(other, one) in creations:
                return True  # one of several that a call gives
        return False

    @cached_property
    def _records(self) -> list[tuple[Function, int]]:
        """The registers of the events that the program records."""
        calls = [(call.function, call.instruction) for call in self.transfer.sites(frozenset({"record", "collective"}))]
        actions = ((function, action) for function, one in calls for action in self.transfer.of(function, one))
        return [(function, action.event) for function, action in actions if isinstance(action, Recorded)]
