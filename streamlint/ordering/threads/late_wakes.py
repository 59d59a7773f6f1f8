"""Host functions that wait for what their own thread does only behind a wait for the stream that runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import MADE, Choices
from streamlint.ordering.streams.reach import Reach
from streamlint.ordering.streams.streams import Currents
from streamlint.ordering.threads.locks import Locks
from streamlint.transfer import device
from streamlint.transfer.carried import Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_DEEPEST = 6


class Waked(NamedTuple):
    """The calls that wake who waits for an object, behind a call that registers a host function: before a wait for its stream and after."""

    early: frozenset[Site] = frozenset()
    late: frozenset[Site] = frozenset()

    def with_(self, other: Waked, is_late: bool) -> Waked:
        """Those of a callee too, which is called behind the wait or not."""
        if is_late:
            return Waked(self.early, self.late | other.early | other.late)
        return Waked(self.early | other.early, self.late | other.late)


class LateWakes:
    """Says of what a host function waits for whether it comes too late."""

    def __init__(self, transfer: Transfer, reach: Reach, locks: Locks) -> None:
        self.transfer = transfer
        self.reach = reach
        self.locks = locks
        self.carriers = transfer.one_of(Carriers, transfer)
        self.choices = Choices(transfer, transfer.one_of(Places, transfer.facts), Currents(transfer, guesses=True))

    def is_late(self, registration: Site, waiting: ModelledCall) -> bool:
        """Whether all that wakes a host function comes behind a wait for the stream that has to run it before it goes on."""
        wakers = frozenset(self._wakers(waiting))
        streams = self._registered_on(registration) if wakers else []
        if not streams:
            return False
        walk = _Walk(self, wakers, streams)
        waked = walk.behind(registration, 0)
        return not waked.early and waked.late == wakers

    # --- what wakes

    def _wakers(self, waiting: ModelledCall) -> Iterator[Site]:
        """The calls of the program that wake who waits for the same object."""
        register = waiting.receiver
        mine = set(self._identities(waiting.function, register)) if register is not None else set()
        names, program = waiting.function.known("wakes"), self.transfer.facts.program
        units = {unit.number: unit for name in sorted(names) for unit in program.mentioning(name)} if mine else {}
        for _, unit in sorted(units.items()):
            for function in unit.functions:
                for one in function.by_opcode[op.INVOKE]:
                    if function.invokes(one, "wakes") and mine & set(self._identities(function, one[3])):
                        yield Site(function, one)

    def _identities(self, function: Function, register: int) -> Iterator[object]:
        """What tells an object from others: its variable or member, where it is made; of what a method gives, that method's object."""
        for source in self.carriers.sources(function, register):
            yield from self._identities_at(source.function, source.register)

    def _identities_at(self, function: Function, register: int) -> Iterator[object]:
        if (named := self.locks.named(function, register)) is not None:
            yield named
        node = self.transfer.facts.values(function, register)
        for value in [one for one in node.values if isinstance(one, LibraryObject)]:
            giver = self._giver(list(node.trace(value)))
            if giver is not None and giver != (function, register):
                yield from self._identities(*giver)
            else:
                yield from list(node.trace(value))[-1:]

    def _giver(self, trace: list[Site]) -> tuple[Function, int] | None:
        """The object whose method has given a value: the promise of a future."""
        made = trace[-1] if trace else None
        if made is None or made.instruction[0] != op.INVOKE:
            return None
        calls = self.transfer.modelled(made.function, made.instruction)
        return (
            (made.function, made.instruction[3])
            if any(call.row.effect == "object" and call.call.receiver is not None for call in calls)
            else None
        )

    # --- streams

    def _registered_on(self, registration: Site) -> list[Choice]:
        calls = (call for call in self.transfer.modelled(*registration) if call.row.effect == "callback")
        return [choice for call in calls for choice in self._chosen(registration.function, call.stream().register)]

    def _chosen(self, function: Function, register: int) -> Iterator[Choice]:
        """The streams that a register may hold, where these come from."""
        for source in self.carriers.sources(function, register) if register >= 0 else ():
            if (made := source.instruction) is not None:
                yield from self.choices.of_register(source.function, source.register, Site(source.function, made), (), False)

    def waits_for(self, function: Function, one: Instruction, streams: list[Choice]) -> bool:
        """Whether an instruction itself has the host wait for one of some streams, or for the device."""
        for operation in self.reach.operations.of(function, one):
            if operation.kind != device.SYNCHRONIZE or operation.is_event:
                continue
            if operation.of < 0 and operation.stream is None:
                return True
            if any(_is_same(each, other) for each in self._chosen(function, operation.of) for other in streams):
                return True
        return False


class _Walk:
    """Follows the ways on from a registration."""

    def __init__(self, wakes: LateWakes, wakers: frozenset[Site], streams: list[Choice]) -> None:
        self.wakes = wakes
        self.wakers = wakers
        self.streams = streams
        self._entered: dict[Function, Waked] = {}
        self._always: dict[Function, bool] = {}

    def behind(self, site: Site, depth: int, is_late: bool = False) -> Waked:
        """What wakes behind a call, in its function and in those that call that."""
        function = site.function
        block, index = function.homes[site.instruction]
        found, leaves = self._from(function, (block, index + 1))
        found = Waked().with_(found, is_late)
        callers = self.wakes.transfer.callers(function) if depth < _DEEPEST else ()
        for caller, call in callers:
            found = found.with_(self.behind(Site(caller, call), depth + 1, is_late or not leaves), False)
        return found

    def _from(self, function: Function, start: tuple[int, int]) -> tuple[Waked, bool]:
        """What wakes on the ways from a place to the end of a function, and whether one of them gets there without a wait."""
        ends: set[Instruction] = set()
        before = set(until(function.code, start, lambda one: self._is_end(function, one, ends)))
        found = Waked()
        for one in until(function.code, start, lambda one: False):
            is_late = one not in before and one not in ends
            if Site(function, one) in self.wakers:
                found = found.with_(Waked(frozenset({Site(function, one)})), is_late)
            for edge in self.wakes.reach.edges(function).get(one, ()):
                found = found.with_(self._within(edge.callee), is_late)
        return found, any(one[0] == op.RETURN for one in before)

    def _is_end(self, function: Function, one: Instruction, ends: set[Instruction]) -> bool:
        if self.wakes.waits_for(function, one, self.streams) or self._always_waits(function, one):
            ends.add(one)
            return True
        return False

    def _always_waits(self, function: Function, one: Instruction) -> bool:
        """Whether a call comes back behind a wait alone."""
        edges = self.wakes.reach.edges(function).get(one, ())
        return bool(edges) and all(self._waits_always(edge.callee) for edge in edges)

    def _waits_always(self, function: Function) -> bool:
        self._within(function)
        return self._always[function]

    def _within(self, function: Function) -> Waked:
        """What wakes in a function, and in what it calls."""
        if function not in self._entered:
            self._entered[function] = Waked()  # in a cycle, the others decide
            self._always[function] = False
            self._entered[function], leaves = self._from(function, (0, 0))
            self._always[function] = not leaves
        return self._entered[function]


def _is_same(one: Choice, other: Choice) -> bool:
    """Whether two choices mean one stream: that is made in the same place, or that one function is given."""
    if one.kind == MADE or other.kind == MADE:
        return bool(one.made & other.made)
    if one.key != other.key or one.place is None:
        return False
    holders = one.at.function, other.at.function
    return holders[0] is holders[1] or (holders[0].owner is not None and holders[0].owner is holders[1].owner)
