"""SL026: threads that are started while a stream is current, and work on the default stream of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.models import Models
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.host_waits import HostWaits
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import CURRENT, NAMED, NULL, Stream, Synchronized
from streamlint.transfer.spawns import THREAD, Spawn, Spawns
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import WORK, Use, Uses
from streamlint.transfer.waiting import Waited

_MOST_INSIDE = 100
"""Functions that are looked at for the first work of one."""
_HIGHEST = 3


class LostStream(NamedTuple):
    """A start under a stream, where that stream was made current, and the work that runs on the thread's default stream."""

    start: Site
    stream: Site | None
    work: Site
    library: str
    calls: tuple[Site, ...]


class ThreadStreams:
    """Finds the starts of threads whose functions rely on the stream of the one that starts them."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.spawns = Spawns(transfer)
        self.currents = transfer.one_of(Currents, transfer)
        self.places = transfer.one_of(Places, transfer.facts)
        self.waits = HostWaits(transfer, self.places)
        self.uses = Uses(transfer, self._is_scoped)

    def find(self) -> Iterator[LostStream]:
        """The lost streams of the program."""
        for spawn in self.spawns.all():
            if spawn.kind != THREAD:
                continue
            function, one = spawn.start.function, spawn.start.instruction
            for home, stream, calls in self._currents_at(function, one, 0):
                library = self._library(home, stream)
                found = self._work(spawn, library)
                entered = calls[0].instruction if calls else one
                if found and (self._is_busy(home, entered, stream, library) or not any(map(self._waits_behind, found))):
                    yield LostStream(spawn.start, self._made(home, stream), found[-1], library, calls)
                    break

    # --- what is current

    def _is_scoped(self, function: Function, one: Instruction) -> bool:
        return self.currents.at(function, one) is not None

    def _currents_at(self, function: Function, one: Instruction, depth: int) -> Iterator[tuple[Function, Stream, tuple[Site, ...]]]:
        """The streams that may be current at an instruction, each with its function and the calls that lead from there."""
        stream = self.currents.around_start(function, one) if depth == 0 else self.currents.at(function, one)
        if stream is not None:
            if stream.kind == NAMED:
                yield function, stream, ()
            return
        if depth < _HIGHEST and self._may_be_called(function):
            for caller, call in self.transfer.callers(function):
                for home, found, calls in self._currents_at(caller, call, depth + 1):
                    yield home, found, (*calls, Site(caller, call))

    def _may_be_called(self, function: Function) -> bool:
        """Whether a file that may make a stream current names a function, or one around it, which may give it under any name."""
        mentioning, around = self.transfer.facts.program.mentioning, function
        while self._scoping.isdisjoint(mentioning(around.code.name)):
            if around.parent is None or around.parent.code.kind != "function":
                return False
            around = around.parent
        return True

    @cached_property
    def _scoping(self) -> frozenset[Unit]:
        """The files that may make a stream current: they mention a function that does, and its module or class, or a class of streams."""
        mentioning, facts = self.transfer.facts.program.mentioning, self.transfer.facts
        ways = facts.models.gathered(_scoping) | facts.cpp_models.gathered(_scoping)
        return frozenset(unit for name, owner in ways for unit in mentioning(name) if not owner or unit in mentioning(owner))

    def _library(self, function: Function, stream: Stream) -> str:
        """The library whose current stream it is."""
        types = [value.type for value in self.transfer.values(function, stream.register) if isinstance(value, LibraryObject)]
        begin = types[0].partition(".")[0] if types else stream.library.partition("-")[0]
        return begin if begin in function.unit.models.marked("device-alone") else "torch"

    def _made(self, function: Function, stream: Stream) -> Site | None:
        values = self.transfer.values(function, stream.register)
        return next((value.site for value in values if isinstance(value, LibraryObject) and value.site is not None), None)

    # --- what the thread does

    def _work(self, spawn: Spawn, library: str) -> tuple[Site, ...]:
        """The first work of the thread on its own default stream, behind the calls that lead to it; () where it orders its work before."""
        if spawn.made is not None and not spawn.roots:
            is_module = self._runs_module(spawn)
            return (Site(spawn.made.function, spawn.made.instruction),) if is_module and library == "torch" else ()
        self.uses.under(spawn.given)
        for root in spawn.roots:
            found = self._first(root, library, set())
            if found is not None and found != ():
                return found
        return ()

    def _runs_module(self, spawn: Spawn) -> bool:
        assert spawn.made is not None
        values = self.transfer.values(spawn.made.function, spawn.runs)
        return any(isinstance(value, LibraryObject) and value.kind == "module" for value in values)

    def _waits(self, function: Function, one: Instruction) -> bool:
        """Whether the thread, or its stream, waits in an instruction for what it has not begun itself."""
        actions = self.transfer.of(function, one)
        return any(isinstance(each, Waited) or (isinstance(each, Synchronized) and not self._is_own(each)) for each in actions)

    def _first(self, function: Function, library: str, seen: set[Function]) -> tuple[Site, ...] | None:
        """The first work on the default stream, behind the calls that lead to it; () where the thread waits before, None where none is.

        ``seen`` are the functions that were looked at on the way: what they call once more tells nothing new.
        """
        seen.add(function)
        for block in function.control.order:
            for one in function.code.blocks[block]:
                if self.currents.at(function, one) is not None:
                    continue
                if self._waits(function, one):
                    return ()
                if any(self._is_on_default(use, library) for use in self.uses.at(function, one)):
                    return (Site(function, one),)
                for edge in self.transfer.edges(function, one) if len(seen) < _MOST_INSIDE else ():
                    is_new = edge.is_followed and edge.callee not in seen
                    found = self._first(edge.callee, library, seen) if is_new else None
                    if found is not None:
                        return (Site(function, one), *found) if found else ()
        return None

    def _is_own(self, action: Synchronized) -> bool:
        """Whether the host waits for what the thread itself has queued."""
        return isinstance(action.of, Stream) and action.of.kind in (CURRENT, NULL)

    def _is_on_default(self, use: Use, library: str) -> bool:
        if use.kind != WORK or use.stream.kind != CURRENT:
            return False
        return (use.library.partition("-")[0] or "torch") == library

    def _waits_behind(self, work: Site) -> bool:
        """Whether the thread waits for its work before it ends."""
        function, graph = work.function, work.function.control
        place = function.homes[work.instruction]
        for one, (block, index) in function.homes.items():
            is_behind = (block == place[0] and index > place[1]) or (block != place[0] and graph.post_dominates(block, place[0]))
            if is_behind and any(True for _ in self.waits.at(function, one)):
                return True
        return False

    # --- what the one that starts it has done

    def _is_busy(self, function: Function, start: Instruction, stream: Stream, library: str) -> bool:
        """Whether the stream has work that nobody has waited for when the thread starts, as far as its function shows."""
        place = self.places.of(function, stream.register)
        for one in function.ahead(start):
            if any(awaited is None or awaited == place for awaited in self.waits.at(function, one)):
                return False
            if self.currents.at(function, one) == stream and self._works(function, one, library):
                return True
        return False

    def _works(self, function: Function, one: Instruction, library: str) -> bool:
        """Whether an instruction queues work on the current stream, by itself or in what it calls."""
        if any(use.kind == WORK for use in self.uses.at(function, one)):
            return True
        return any(edge.is_followed and self._first(edge.callee, library, {function}) for edge in self.transfer.edges(function, one))


def _scoping(models: Models) -> frozenset[tuple[str, str]]:
    """The last parts of the names of functions that make a stream current, each with the part before; and of the classes of streams."""
    calls = (name.replace("::", ".").split(".") for name, row in models.calls.items() if row.effect in ("scope", "set_stream"))
    types = (name.replace("::", ".").rpartition(".")[2] for name, row in models.types.items() if row.kind == "stream")
    return frozenset((*((parts[-1], parts[-2]) for parts in calls if len(parts) > 1), *((name, "") for name in types)))
