"""Whether streams are shown to be the program's own, and two."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.ordering.streams.streams import sites_of
from streamlint.transfer.actions import NAMED, NULL, Stream
from streamlint.transfer.carried import Carriers
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import alike

_OTHER = frozenset({"current", "default", "null", "per-thread"})
"""Streams that are not one of the program's own."""


class OwnStreams:
    """The streams of a program, as instructions name them."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.carriers = transfer.one_of(Carriers, transfer)

    def is_own(self, function: Function, stream: Stream) -> bool:
        """Whether a stream is one of the program's own, and not the one that is current anyway."""
        if stream.kind != NAMED:
            return False
        held = [value for value in self.transfer.values(function, stream.register) if isinstance(value, LibraryObject)]
        return not any(value.kind == "stream" and value.detail in _OTHER for value in held)

    def are_two(self, function: Function, first: Stream, other: Function, second: Stream) -> bool:
        """Whether two streams are shown to be two: made in two places, or one of them is the null stream."""
        if NULL in (first.kind, second.kind):
            named = (other, second) if first.kind == NULL else (function, first)
            return first.kind != second.kind and self.is_own(*named)
        if not (self.is_own(function, first) and self.is_own(other, second)):
            return False
        if function is other and alike(function, first.register) == alike(other, second.register):
            return False
        made, is_all = sites_of(self.carriers.values(function, first.register))
        others, are_all = sites_of(self.carriers.values(other, second.register))
        return is_all and are_all and made.isdisjoint(others)
