"""Rounds of loops that take memory from the default pool, give it back and then synchronize: the pool gives it back to the driver.

CUDA Programming Guide, stream-ordered memory allocator: what a pool holds beyond its release threshold, which is 0 by default, goes back
with the next synchronization of a stream, an event or the device. What is in use then stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, LibraryObject, Site
from streamlint.hazards.churn import Churn, Churning
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.places.places import Place
from streamlint.ordering.walk.lifetimes import Held, made_by
from streamlint.transfer.actions import NULL, Recorded, Stream, Synchronized, Viewed
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_FEW = 4
_DEEPEST = 4
_CALLS = (op.CALL, op.INVOKE)


class PoolRound(NamedTuple):
    """An allocation from the default pool that each round of a loop makes and frees, and a wait of the round while it is free."""

    call: ModelledCall
    churn: Churn
    wait: Site


class _Wait(NamedTuple):
    """A wait of the host in a round: the instruction at the level that it is looked for, the calls around that, and the wait itself."""

    at: Site
    calls: tuple[Site, ...]
    wait: Site

    @property
    def path(self) -> tuple[Site, ...]:
        """The calls that lead from the loop to the wait."""
        return (*self.calls, *((self.at,) if self.at != self.wait else ()))


def is_of_pool(row: Row) -> bool:
    """Whether a row's calls take memory from a pool, in the order of a stream."""
    return row.effect == "alloc" and row.get("stream") is not None


class PoolRounds(Churning):
    """Finds these rounds."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer, self._freed, _FEW)
        self._waits_of: dict[Function, tuple[Site, ...]] = {}

    def find(self) -> Iterator[PoolRound]:
        """The rounds of the program, if nothing in it says what a pool shall keep."""
        calls = [call for call in self.transfer.sites({"alloc"}, where=is_of_pool) if call.one("pool") is None]
        if not calls or any(map(self._keeps, self.transfer.sites({"setting", "object"}, where=_is_of_pools))):
            return
        found = [(call, churn) for call in calls for churn in self.follow(self._held(call)) if churn.ended]
        waits = {number: list(self._waits(churn)) for number, (_, churn) in enumerate(found)}
        for number, (call, churn) in enumerate(found):
            for wait in waits[number]:
                others = [each for other, each in enumerate(found) if other != number and wait not in waits[other]]
                if not self._is_in_use(calls, call, churn, found, others):
                    yield PoolRound(call, churn, wait)
                    break

    def _keeps(self, call: ModelledCall) -> bool:
        """Whether a call may let a pool keep memory: not if it sets another attribute, or a threshold of 0."""
        attribute, value = call.one("attribute"), call.one("value")
        if attribute is not None and call.word(attribute) == "other":
            return False
        return value is None or not self._is_zero(call.function, value)

    def _is_zero(self, function: Function, register: int) -> bool:
        """Whether a number is known to be 0, also as a number of a fixed size."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in _CALLS and len(given := operands_of(function, one, receiver=False)) == 1:
            return self._is_zero(function, given[0])
        held = self.transfer.values(function, register)
        return bool(held) and all(isinstance(value, Constant) and value.value == 0 for value in held)

    def _held(self, call: ModelledCall) -> Held:
        return Held(call.function, call.instruction, made_by(self.places, call), bool(call.row.get("owned")))

    def _freed(self, function: Function, one: Instruction) -> Iterator[int]:
        """The memory that an instruction gives back."""
        for call in self.transfer.modelled(function, one) if one[0] in _CALLS else ():
            of = call.one("of", call.receiver) if call.row.effect == "free" else None
            if of is not None:
                yield of

    # --- other memory of the pool

    def _is_in_use(
        self,
        calls: list[ModelledCall],
        mine: ModelledCall,
        churn: Churn,
        found: list[tuple[ModelledCall, Churn]],
        others: list[tuple[ModelledCall, Churn]],
    ) -> bool:
        """Whether other memory of the pool may be in use when a round synchronizes: it may keep what the round has given back."""
        here = (churn.function, churn.loop)
        if any((each.function, each.loop) == here for _, each in others):
            return True
        settled = {id(call) for call, each in found if (each.function, each.loop) == here}
        active = self._active(churn)
        return any(call is not mine and id(call) not in settled and not self._is_over(call, churn, active) for call in calls)

    def _active(self, churn: Churn) -> frozenset[Function]:
        """The functions that are being run while the loop is: its own, and those that call it."""
        seen = {churn.function}
        waiting = [churn.function]
        for function in waiting:
            for caller, _ in self.lifetimes.starts(function):
                if caller not in seen:
                    seen.add(caller)
                    waiting.append(caller)
        return frozenset(seen)

    def _is_over(self, call: ModelledCall, churn: Churn, active: frozenset[Function]) -> bool:
        """Whether memory is freed in the function that allocates it, and that is none around the loop, or done with it before the loop."""
        held = self.lifetimes.spread(self._held(call))
        ends = [end.instruction for end in self.lifetimes.ends(held)]
        if not ends or call.function not in active:
            return bool(ends)
        if call.function is not churn.function:
            return False
        body = self.rounds.body(call.function)
        home, header = body.home, churn.loop.header
        is_behind = home[call.instruction] not in churn.loop.body and body.graph.dominates(header, home[call.instruction])
        return is_behind or all(home[end] not in churn.loop.body and body.graph.dominates(home[end], header) for end in ends)

    # --- waits while the memory is free

    def _waits(self, churn: Churn) -> Iterator[Site]:
        """The waits of each round behind the free and before the allocation."""
        stream = self._stream_of_free(churn)
        for wait in self._candidates(churn):
            if self._covers(wait, churn, stream):
                yield wait.wait

    def _candidates(self, churn: Churn) -> Iterator[_Wait]:
        made, ended = churn.made, churn.ended
        common = 0
        while common < min(len(made), len(ended)) and made[common] == ended[common]:
            around = made[common]
            for site, wait in self._each(around.function, churn if common == 0 else None):
                if site != around:
                    yield _Wait(site, made[:common], wait)
            common += 1
        for level in range(common, max(len(made), len(ended))):
            first = made[level] if level < len(made) else None
            last = ended[level] if level < len(ended) else None
            for border, is_behind, calls in ((last, True, ended[:level]), (first, False, made[:level])):
                for site, wait in self._each(border.function, churn if level == 0 else None) if border is not None else ():
                    if border is not None and site != border and self._is_beyond(site, border, is_behind):
                        yield _Wait(site, calls, wait)

    def _is_beyond(self, site: Site, border: Site, is_behind: bool) -> bool:
        """Whether an instruction always comes behind, or before, another one of its function."""
        return self._precedes(border, site) if is_behind else self._precedes(site, border)

    def _precedes(self, first: Site, second: Site) -> bool:
        function = first.function
        body = self.rounds.body(function)
        home = body.home
        if home[first.instruction] != home[second.instruction]:
            return body.graph.dominates(home[first.instruction], home[second.instruction])
        block = function.code.blocks[home[first.instruction]]
        return block.index(first.instruction) < block.index(second.instruction)

    def _each(self, function: Function, churn: Churn | None) -> Iterator[tuple[Site, Site]]:
        """The instructions of a loop's rounds, or of each call of a function, in which the host waits, with the wait itself."""
        loop = churn.loop if churn is not None else None
        blocks = sorted(loop.body) if loop is not None else range(len(function.code.blocks))
        for number in blocks:
            for one in function.code.blocks[number]:
                for wait in self._waited(Site(function, one), _DEEPEST) if one[0] in _CALLS else ():
                    if self.rounds.runs(Site(function, one), loop):
                        yield Site(function, one), wait
                        break

    def _waited(self, site: Site, depth: int) -> Iterator[Site]:
        """The waits of the host in an instruction, or in each call of the functions that it runs."""
        if any(call.row.effect == "synchronize" for call in self.transfer.modelled(site.function, site.instruction)):
            yield site
        for edge in self.transfer.edges(site.function, site.instruction) if depth else ():
            if edge.is_followed and not (edge.is_guess or edge.is_higher_order):
                yield from self._waits_in(edge.callee, depth - 1)

    def _waits_in(self, function: Function, depth: int) -> tuple[Site, ...]:
        known = self._waits_of.get(function)
        if known is None:
            self._waits_of[function] = ()  # in a cycle, the others decide
            sites = (Site(function, one) for opcode in _CALLS for one in function.by_opcode[opcode])
            waits = [(site, wait) for site in sites for wait in self._waited(site, depth)]
            known = self._waits_of[function] = tuple(wait for site, wait in waits if self.rounds.runs(site, None))
        return known

    # --- for which stream

    def _stream_of_free(self, churn: Churn) -> tuple[Stream, Site, tuple[Site, ...]] | None:
        """The stream in whose order the memory is freed, and the calls that lead there; None where the host frees it."""
        site = churn.ended[-1]
        for call in self.transfer.modelled(site.function, site.instruction):
            if call.row.effect == "free" and call.row.get("stream") is not None:
                return call.stream(), site, churn.ended[:-1]
        return None

    def _covers(self, wait: _Wait, churn: Churn, freed: tuple[Stream, Site, tuple[Site, ...]] | None) -> bool:
        """Whether the free is over when the host has waited."""
        if freed is None:
            return True
        site = wait.wait
        for action in self.transfer.of(site.function, site.instruction):
            if not isinstance(action, Synchronized):
                continue
            if action.of is None:
                return True
            if isinstance(action.of, Stream):
                if self._is_same(action.of, site, wait.path, *freed):
                    return True
            elif self._is_recorded(action.of, wait, churn, freed):
                return True
        return False

    def _is_recorded(self, event: int, wait: _Wait, churn: Churn, freed: tuple[Stream, Site, tuple[Site, ...]]) -> bool:
        """Whether an event is recorded on the stream behind the free, in a function from which calls lead to the wait, or in one that it
        calls before."""
        mine = self._climbed(wait.wait.function, event, wait.path)
        made = self._made(wait.wait.function, event, "event")
        for level, before in enumerate((*wait.path, wait.wait)):
            for path, action in self._recorded(before.function, (), _DEEPEST):
                record, calls = path[-1], (*wait.path[:level], *path[:-1])
                if not self._precedes(path[0], before) or not self._is_behind_free(path, churn):
                    continue
                is_same = not mine.isdisjoint(self._climbed(record.function, action.event, calls))
                if is_same or (len(made) == 1 and made == self._made(record.function, action.event, "event")):
                    return self._is_same(action.stream, record, calls, *freed)
        return False

    def _recorded(self, function: Function, calls: tuple[Site, ...], depth: int) -> Iterator[tuple[tuple[Site, ...], Recorded]]:
        """The records of events by a function, and by those that it calls in any case, with the calls that lead there."""
        for one in (each for opcode in _CALLS for each in function.by_opcode[opcode]):
            path = (*calls, Site(function, one))
            if calls and not self.rounds.runs(path[-1], None):
                continue
            yield from ((path, action) for action in self.transfer.of(function, one) if isinstance(action, Recorded))
            for edge in self.transfer.edges(function, one) if depth else ():
                if edge.is_followed and not (edge.is_guess or edge.is_higher_order) and all(site.function != edge.callee for site in path):
                    yield from self._recorded(edge.callee, path, depth - 1)

    def _is_behind_free(self, path: tuple[Site, ...], churn: Churn) -> bool:
        """Whether what calls lead to comes behind the free, by where the calls part that lead to the two."""
        first = next((number for number, each in enumerate(churn.ended) if each.function is path[0].function), None)
        pairs = zip(churn.ended[first:], path, strict=False) if first is not None else ()
        parted = next(((border, site) for border, site in pairs if border != site), None)
        return first is None or (parted is not None and self._precedes(*parted))

    def _is_same(self, stream: Stream, site: Site, calls: tuple[Site, ...], other: Stream, freed: Site, path: tuple[Site, ...]) -> bool:
        if NULL in (stream.kind, other.kind) or min(stream.register, other.register) < 0:
            return stream.kind == other.kind and max(stream.register, other.register) < 0
        mine, theirs = self._climbed(site.function, stream.register, calls), self._climbed(freed.function, other.register, path)
        if not mine.isdisjoint(theirs):
            return True
        made = [
            self._made(function, register, "stream")
            for function, register in ((site.function, stream.register), (freed.function, other.register))
        ]
        return len(made[0]) == 1 and made[0] == made[1]

    def _made(self, function: Function, register: int, kind: str) -> frozenset[Site]:
        """Where a stream or an event is made."""
        held = self.transfer.values(function, self._stream_behind(function, register))
        return frozenset(value.site for value in held if isinstance(value, LibraryObject) and value.kind == kind and value.site)

    def _stream_behind(self, function: Function, register: int) -> int:
        """The register of the stream whose handle a register holds: ``stream.ptr``."""
        for _ in range(_DEEPEST):
            one = function.definitions[register] if register >= 0 else None
            views = [each for each in self.transfer.of(function, one) if isinstance(each, Viewed)] if one is not None else []
            if one is not None and one[0] == op.ATTR and not function.is_cpp and not views:
                kinds = [value for value in self.transfer.values(function, one[3]) if isinstance(value, LibraryObject)]
                views = [Viewed(one[3])] if any(value.kind == "stream" for value in kinds) else []
            if not views:
                break
            register = views[0].register
        return register

    def _climbed(self, function: Function, register: int, calls: tuple[Site, ...]) -> set[tuple[Function, Place]]:
        """The names of a stream, in its function and in those that the calls come from."""
        found: set[tuple[Function, Place]] = set()
        waiting = list(self.places.names(function, self._stream_behind(function, register)))
        for call in (*reversed(calls), None):
            found |= {(function, place) for place in waiting}
            if call is None:
                break
            above: list[Place] = []
            for place in waiting:
                if place.root[0] in ("parameter", "this"):
                    given = operand_of(call.function, call.instruction, function, int(str(place.root[1])) if len(place.root) > 1 else 0)
                    if given is not None and given >= 0:
                        given = self._stream_behind(call.function, given) if not place.path else given
                        above += [name.behind(*place.path) for name in self.places.names(call.function, given)]
                elif place.root[0] == "global":
                    above.append(place)
            function, waiting = call.function, above
        return found


def _is_of_pools(row: Row) -> bool:
    """Whether a row's calls set what a pool keeps, or which pool is the current one."""
    return row.get("what") == "pool"
