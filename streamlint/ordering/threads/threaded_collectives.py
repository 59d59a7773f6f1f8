"""SL037: a thread starts a collective of one communicator while its starter starts one of another: the host has no order for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.threads.communicators import Communicators
from streamlint.ordering.threads.crosswise import Known
from streamlint.ordering.threads.threads import Started, Threads
from streamlint.transfer.guards import Guards
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_HOLDING = frozenset({"block", "lock", "get", "unknown"})
"""Effects of calls by which threads may wait for one another: queues, locks, and what nobody knows."""


class Threaded(NamedTuple):
    """A collective that a thread starts, where the thread is started, and one of another communicator that its starter starts meanwhile."""

    first: Site
    started: Site
    second: Site
    call: ModelledCall


class ThreadedCollectives:
    """Finds such pairs."""

    def __init__(self, transfer: Transfer, known: Known) -> None:
        self.transfer = transfer
        self.communicators = transfer.one_of(Communicators, transfer)
        self.known = known

    def find(self) -> Iterator[Threaded]:
        """The pairs of the program, one for each thread."""
        if len({communicator for _, communicator in self.known.values()}) < 2:
            return
        threads = Threads(self.transfer, self.transfer.one_of(Guards, self.transfer))
        for started in threads.started:
            if started.awaited or threads.chooses_device(started) or any(map(self._may_wait, started.body)):
                continue
            for first in self._inside(started.body):
                found = self._first_other(threads, started, first)
                if found is not None:
                    yield found
                    break

    def _inside(self, body: tuple[Function, ...]) -> Iterator[Site]:
        """The known collectives of some functions that are work on devices."""
        for (function, one), (call, communicator) in self.known.items():
            if function in body and self.communicators.is_on_device(call, communicator):
                yield Site(function, one)

    def _may_wait(self, function: Function) -> bool:
        """Whether a function may wait for another thread by itself: then nobody knows who comes first."""
        if not all(self._is_of_stream(function, one) for one in function.by_opcode[op.ENTER]):
            return True
        return any(self._is_open(function, one) for opcode in (op.CALL, op.INVOKE) for one in function.by_opcode[opcode])

    def _is_open(self, function: Function, one: Instruction) -> bool:
        """Whether a call may wait for another thread: it does, or nobody knows what it runs."""
        if any(edge.is_followed and not edge.is_guess for edge in self.transfer.edges(function, one)):
            return False
        calls = list(self.transfer.modelled(function, one))
        return not calls or any(call.row.effect in _HOLDING for call in calls)

    def _is_of_stream(self, function: Function, one: Instruction) -> bool:
        """Whether a context manager makes a stream current, and is no lock."""
        held = self.transfer.values(function, one[3])
        return any(isinstance(value, LibraryObject) and value.kind in ("stream", "scope") for value in held)

    def _first_other(self, threads: Threads, started: Started, first: Site) -> Threaded | None:
        """The first collective of another communicator that the starter comes to before it waits for the thread."""
        _, mine = self.known[first]
        found: list[Site] = []

        def is_other(function: Function, one: Instruction) -> bool:
            for site in self._at(threads, function, one):
                call, communicator = self.known[site]
                is_apart = self.communicators.are_apart(mine, communicator) and self.communicators.is_on_device(call, communicator)
                if is_apart and site.function not in started.body:
                    found.append(site)
                    return True
            return False

        site = started.site
        reached = threads.reached(site.function, site.instruction, is_other, True)
        if reached is None or not found:
            return None
        return Threaded(first, site, found[0], self.known[found[0]][0])

    def _at(self, threads: Threads, function: Function, one: Instruction) -> Iterator[Site]:
        """The known collectives that an instruction starts, by itself or in what it calls."""
        if (function, one) in self.known:
            yield Site(function, one)
        elif one[0] in (op.CALL, op.INVOKE):
            entries = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_direct]
            body = threads.closure(entries) if entries else []
            yield from (Site(*key) for key in self.known if key[0] in body)
