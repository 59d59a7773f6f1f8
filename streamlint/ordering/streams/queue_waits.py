"""At which instructions the host waits for a stream: for it or for the device, for an event behind its work, for what it fetches there."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ADDRESS, POINTEE, Place, Places, is_own_cell
from streamlint.ordering.streams.earlier import Earlier
from streamlint.ordering.streams.host_waits import HostWaits
from streamlint.ordering.streams.last_records import LastRecords
from streamlint.ordering.streams.streams import Currents, sites_of
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Copied, Read, Stream, Synchronized
from streamlint.transfer.modelled import operands_of


class Queue(NamedTuple):
    """The stream that an operation is put on, or that the host waits for: the operation, and the calls that lead to it."""

    at: Site
    stream: Stream
    passed: tuple[Site, ...] = ()


class QueueWaits:
    """The waits of a program's host."""

    def __init__(self, earlier: Earlier) -> None:
        self.earlier = earlier
        self.origins = earlier.origins
        self.transfer = earlier.transfer
        self.currents = self.transfer.one_of(Currents, self.transfer)
        self.places = self.transfer.one_of(Places, self.transfer.facts)
        self.records = self.transfer.one_of(LastRecords, self.transfer)
        self.host_waits = HostWaits(self.transfer, self.places)

    # --- what the host waits for

    def fetches(self, function: Function, one: Instruction, presumes: bool = False) -> bool | None:
        """Whether an instruction surely waits for its stream, for what it fetches from a device; None of one that fetches nothing.

        ``presumes``: what may be on a device is there."""
        for action in self.transfer.of(function, one):
            if isinstance(action, Copied) and action.direction == "d2h" and action.asynchronous is False:
                is_cuda = action.call.row is not None and action.call.row.library != "torch"
                return presumes or is_cuda or self.origins.is_on_device(function, action.source)
        return True if self.reads(function, one) else None

    def reads(self, function: Function, one: Instruction) -> bool:
        """Whether the host reads a number there that a device computes, or how many elements it gives."""
        read = (action for action in self.transfer.of(function, one) if isinstance(action, Read) and action.waits)
        return any(self._is_read_there(function, action.register) for action in read) or self._fetches_size(function, one)

    def _is_read_there(self, function: Function, register: int) -> bool:
        """Whether a register holds memory of a device, and is not the answer to whether there is any."""
        one = function.definitions[register] if register >= 0 else None
        is_identity = one is not None and one[0] == op.COMPARE and function.text(one[3]) in ("is", "is not")
        return not is_identity and self.origins.is_on_device(function, register)

    def _fetches_size(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits for how many elements a call on the device gives: ``nonzero``."""
        rows = [call.row for call in self.transfer.modelled(function, one)] if one[0] in (op.CALL, op.INVOKE) else []
        waits = any(row.effect == "compute" and row.get("waits") for row in rows)
        return waits and any(self.origins.is_on_device(function, each) for each in operands_of(function, one))

    def awaits(self, site: Site, through: Site, queue: Queue) -> bool:
        """Whether the host waits at an instruction for a stream, an event on it that was recorded last, or the device. ``through``: the
        call in whose course it does."""
        for action in self.transfer.of(*site):
            if isinstance(action, Synchronized):
                if action.of is None or (not isinstance(action.of, int) and self.is_same(queue, Queue(site, action.of))):
                    return True
                if isinstance(action.of, int):
                    return self._is_marked(site, action.of, queue)
        return self._is_named(through, queue) if through != site else False

    def _is_marked(self, wait: Site, event: int, queue: Queue) -> bool:
        """Whether an event was recorded on a stream behind all of its work, wherever it may have been recorded last."""
        records = self.records.before(*wait, event)
        marks = {Site(wait.function, at) for at, _ in records}

        def judge(other: Site, _: Site) -> bool | None:
            return True if other in marks else False if self.earlier.queues(*other) else None

        is_last = bool(records) and self.earlier.all_paths(wait, judge)
        return is_last and all(self.is_same(queue, Queue(Site(wait.function, at), record.stream)) for at, record in records)

    def _is_named(self, call: Site, queue: Queue) -> bool:
        """Whether a call waits whenever it comes by for the stream, by the place that its function has it at."""
        mine = self._places(queue).get(call.function)
        return mine is not None and any(place == mine for place in self.host_waits.at(*call) if place is not None)

    # --- which stream

    def is_same(self, first: Queue, second: Queue) -> bool | None:
        """Whether two operations are put on the same stream; None where nothing says."""
        one, other = self._meant(first), self._meant(second)
        if UNKNOWN in (one.kind, other.kind):
            return None
        if one.kind != NAMED or other.kind != NAMED:
            return one.kind == other.kind
        ours, theirs = self._places(first), self._places(second)
        near = [(ours[function], theirs[function]) for function in ours if function in theirs]
        if any(mine == place for mine, place in near):
            return True
        made, _ = sites_of(list(self.transfer.values(first.at.function, one.register)))
        others, _ = sites_of(list(self.transfer.values(second.at.function, other.register)))
        if made or others or near:
            return bool(made & others)
        path = ours[first.at.function].path
        return True if path and path == theirs[second.at.function].path else None

    def is_kept(self, queue: Queue) -> bool:
        """Whether an object, or a variable outside of functions, keeps a stream."""
        outer = queue.passed[0].function if queue.passed else queue.at.function
        place = self._places(queue).get(outer)
        if place is None:
            return False
        is_local = place.root[0] in ("register", "parameter") or is_own_cell(place.root, outer)
        return not is_local or any(key not in (ADDRESS, POINTEE) for key in place.path)

    def leads_to(self, function: Function, register: int, queue: Queue) -> bool:
        """Whether a register holds a stream, or the object that keeps that of an operation."""
        if any(isinstance(value, LibraryObject) and value.kind == "stream" for value in self.transfer.values(function, register)):
            return True
        mine = self._places(queue).get(function)
        place = self.places.of(function, register)
        return mine is not None and mine.root == place.root and mine.path[: len(place.path)] == place.path

    def _meant(self, queue: Queue) -> Stream:
        return self.currents.at(*queue.at) or queue.stream if queue.stream.kind == CURRENT else queue.stream

    def _places(self, queue: Queue) -> dict[Function, Place]:
        """The places of an operation's stream, in its function and in those that lead to it."""
        stream = self._meant(queue)
        if stream.kind != NAMED:
            return {}
        here, place = queue.at.function, self.places.of(queue.at.function, stream.register)
        found = {here: place}
        for call in reversed(queue.passed):
            above = self.host_waits.above(place, call.function, call.instruction, here)
            if above is None:
                break
            here, place = call.function, above
            found.setdefault(here, place)
        return found
