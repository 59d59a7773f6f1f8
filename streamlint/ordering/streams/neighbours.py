"""What comes next to an operation on all paths: a wait of the host, other work, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import Site
from streamlint.facts.graph.conditions import Conditions
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop, led_to
from streamlint.models import Row
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.device_work import Handful
from streamlint.ordering.streams.earlier import Earlier
from streamlint.ordering.streams.queue_waits import Queue, QueueWaits
from streamlint.support.memo import memoized
from streamlint.transfer.actions import CURRENT, Copied, Read, Recorded, Stream, Synchronized, Written
from streamlint.transfer.host_copies import ASKED, HostCopy
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING
from streamlint.waits.operands import operand_of
from streamlint.waits.ways import MOST_BRIEF

WAITED, WORKED, READ, ENDED = "waited", "worked", "read", "ended"
_QUEUED = "queued"
"""Another copy of the same stream: the host has nothing else to do meanwhile."""
_LEFT = ("left", True)
"""What a path knows that has left the function of the operation."""
_SILENT = frozenset({"none", "stream_of", "view", "same", "device", "object", "touch", "destroy"})
_OF_CPP = frozenset({"write", "alloc"})
"""C++: a container is given an element, memory is asked for."""
_MOST = 300
_DEEPEST = 9
"""Calls that are entered within one another."""
_HIGHEST = 4
"""Functions that are left for their callers."""


class _At(NamedTuple):
    """A place that is come to: ``calls`` are those that were entered, the outermost first; ``left``: how many functions ended before."""

    function: Function
    block: int
    place: int
    calls: tuple[Site, ...]
    decided: frozenset[tuple[str, bool]] = frozenset()
    left: int = 0


Registers = set[tuple[Function, int]]


class _Search(NamedTuple):
    """The operation whose neighbours are looked for: the registers of its status, and of what it brings; some places that read that.

    ``is_alone``: the rounds of its loop do nothing else on the host. ``handful``: the operations on the way that are over at
    once."""

    call: ModelledCall
    queue: Queue
    status: Registers
    brought: Registers
    reads: frozenset[Site]
    is_alone: bool
    handful: Handful


class Neighbours:
    """Looks forward from operations until something else happens: in their functions, in those that are called, and in callers."""

    def __init__(self, earlier: Earlier) -> None:
        self.transfer = earlier.transfer
        self.work = earlier.work
        self.waits = QueueWaits(earlier)
        self.takes = earlier.takes

    def is_waited_for(self, copy: HostCopy, most: int = MOST_BRIEF) -> bool:
        """Whether the host waits for the stream of a copy before anything else happens, on some path, and on none is other work first:
        ``most`` brief operations are none."""
        ends = self._ends(copy.call, copy.origin.passed, op.NONE, frozenset(), self._is_alone(copy), most)
        outcomes = {outcome for outcome, _ in ends}
        return WAITED in outcomes and WORKED not in outcomes

    def _is_alone(self, copy: HostCopy) -> bool:
        """Whether the loop around a copy prepares nothing on the host that the copy of the round before could run beside."""
        function, home = copy.call.function, copy.call.function.blocks[copy.call.instruction]
        graph, made = function.control, copy.origin.site
        loop = graph.loops[graph.innermost[home]] if graph.innermost[home] != NOBODY else None
        if loop is None:
            return False
        if copy.direction == "h2d" and made is not None and made.function is function and function.blocks[made.instruction] in loop.body:
            return False
        inner = [one for one in graph.loops if one.header in loop.body and home not in one.body]
        written = {block: list(self._written(function, block)) for block in loop.body}
        mine = self.waits.places.of(function, copy.host) if copy.direction == "d2h" else None
        if any(place != mine for places in written.values() for place in places):
            return False
        return all(any(written[block] for block in one.body) for one in inner)

    def _written(self, function: Function, block: int) -> Iterator[Place]:
        """The memory that calls of a block write on the host: what an address was computed from."""
        for one in function.code.blocks[block]:
            for action in self.transfer.of(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
                if isinstance(action, Written):
                    made = function.definitions[action.register] if action.register >= 0 else None
                    yield self.waits.places.of(function, made[4] if made is not None and made[0] == op.BINARY else action.register)

    def is_wanted(
        self, call: ModelledCall, register: int, passed: tuple[Site, ...], reads: frozenset[Site] = frozenset(), most: int = MOST_BRIEF
    ) -> bool:
        """Whether the host reads what a copy brings before anything else happens, or has nothing else to do: a loop that reads in some of
        its rounds has read when it ends. ``reads`` are places that are known to read it."""
        ends = self._ends(call, passed, register, reads, most=most)
        reading = [
            (at.function, loop) for outcome, at in ends if outcome == READ for loop in at.function.control.loops if at.block in loop.body
        ]
        outcomes = {outcome for outcome, at in ends if not any(_is_past(at, *loop) for loop in reading)}
        return bool(outcomes) and outcomes <= {READ, ENDED}

    def after(self, call: ModelledCall, passed: tuple[Site, ...], brought: int = op.NONE) -> set[str]:
        """What comes behind a call: `WAITED`, `WORKED`, `READ`, `ENDED`."""
        return {outcome for outcome, _ in self._ends(call, passed, brought, frozenset())}

    def _ends(
        self,
        call: ModelledCall,
        passed: tuple[Site, ...],
        brought: int,
        reads: frozenset[Site],
        is_alone: bool = False,
        most: int = MOST_BRIEF,
    ) -> set[tuple[str, _At]]:
        """What comes behind a call, and where the stretch of code begins in which it comes."""
        function, found = call.function, set[tuple[str, _At]]()
        status = {(function, call.result)} if not call.memory(call.result) else set[tuple[Function, int]]()
        held = {(function, each) for each in self._shared(function, brought)}
        queue = Queue(Site(function, call.instruction), call.stream(), passed)
        work = _Search(call, queue, status, held, reads, is_alone, Handful(self.work, (*passed, queue.at), most))
        waiting, seen = [self._behind(Site(function, call.instruction), passed)], set[_At]()
        while waiting and len(seen) < _MOST:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            outcome = self._run(state, work)
            if isinstance(outcome, str):
                found.add((outcome, state))
            elif outcome:
                waiting += outcome
            else:
                after = list(self._beyond(state, work))
                waiting += after
                if not after and state.function.code.blocks[state.block][-1][0] == op.RETURN:
                    found.add((ENDED, state))
        return found

    def _shared(self, function: Function, register: int) -> list[int]:
        """The registers that hold the same memory, also before casts."""
        found: list[int] = []
        while register >= 0:
            found += self.transfer.shared(function, register)
            one = function.definitions[register]
            register = one[4] if one is not None and one[0] == op.CAST else op.NONE
        return found

    def _beyond(self, state: _At, work: _Search) -> Iterator[_At]:
        """Where a path goes on behind the end of a block."""
        function = state.function
        end = function.code.blocks[state.block][-1]
        if end[0] == op.RETURN:
            callers = self.transfer.callers(function) if not state.calls and state.left < _HIGHEST else ()
            for site in (*state.calls[-1:], *(Site(*place) for place in callers)):
                self._returned(function, end, site, work)
                decided = state.decided | {_LEFT} if function is work.call.function else state.decided
                yield self._behind(site, state.calls[:-1])._replace(decided=decided, left=state.left + (not state.calls))
        elif end[0] == op.BRANCH:
            yield from self._branched(state, end, work)
        else:
            yield from (state._replace(block=after, place=0) for after in function.control.successors[state.block])

    def _returned(self, function: Function, end: Instruction, site: Site, work: _Search) -> None:
        """Whether a function gives its caller the status, or what was brought."""
        caller, one = site.function, site.instruction
        if (function, end[2]) in work.status:
            work.status.add((caller, one[2]))
        if any((function, each) in work.brought for each in self._shared(function, end[2])):
            work.brought.add((caller, one[2]))
        for parameter in function.by_opcode[op.PARAM]:
            if (function, parameter[2]) in work.brought:
                given = operand_of(caller, one, function, parameter[3]) if one[0] in (op.CALL, op.INVOKE) else None
                work.brought.update((caller, each) for each in self._shared(caller, op.NONE if given is None else given))

    def _entered(self, state: _At, one: Instruction, work: _Search) -> Iterator[_At]:
        """The functions that a call runs."""
        function, site = state.function, Site(state.function, one)
        for edge in self.transfer.edges(function, one):
            callee = edge.callee
            for parameter in callee.by_opcode[op.PARAM] if work.brought and one[0] in (op.CALL, op.INVOKE) else ():
                given = operand_of(function, one, callee, parameter[3])
                if given is not None and any((function, each) in work.brought for each in self._shared(function, given)):
                    work.brought.add((callee, parameter[2]))
            yield _At(callee, 0, 0, (*state.calls, site), state.decided, state.left)

    def _branched(self, state: _At, end: Instruction, work: _Search) -> Iterator[_At]:
        """Both ways; of a status that is asked again the way that it went before, and into a loop that has had no round."""
        function = state.function
        condition, turned = unnegated(function, end[2])
        one = function.definitions[condition] if condition >= 0 else None
        name = function.text(one[4]) if one is not None and one[0] == op.INVOKE and (function, one[3]) in work.status else ""
        decided = dict(state.decided)
        loop = function.loop_heads.get(state.block)
        if loop is not None and (round_ := _round_of(function, loop)) not in decided:
            yield from (
                state._replace(block=into, place=0, decided=state.decided | {(round_, True)}) for into in end[3:5] if into in loop.body
            )
            return
        known = decided.get(name)
        for truth, block in ((True, end[3]), (False, end[4])):
            holds = truth != turned
            if not (self.takes(function, state.block, block) and self._returns_from(function, block)):
                continue
            if (state.block, block) in self._rare(function) or self._is_of_one_round(state, one, holds):
                continue
            if not name:
                yield state._replace(block=block, place=0)
            elif known is None or known == holds:
                yield state._replace(block=block, place=0, decided=state.decided | {(name, holds)})

    def _returns_from(self, function: Function, block: int) -> bool:
        """Whether a way on from a block comes to the end of a function, or to a handler, if any does: one that raises is none on which the
        host goes on."""
        returning = self._returning(function)
        return not returning or block in returning

    @memoized
    def _rare(self, function: Function) -> frozenset[tuple[int, int]]:
        """The edges of a function that few of its calls, or rounds, take: what is next there is not what mostly is."""
        rare, after = {(one.block, one.after) for one in self._conditions(function).rare({})}, function.control.successors
        return frozenset(one for one in rare if not rare.issuperset((one[0], each) for each in after[one[0]]))

    def _is_of_one_round(self, state: _At, asked: Instruction | None, holds: bool) -> bool:
        """Whether a condition holds in one round of a loop alone: that a parameter, for which the call gives the round's number, is another
        number."""
        if asked is None or asked[0] != op.COMPARE or not state.calls or state.function.text(asked[3]) != ("==" if holds else "!="):
            return False
        parameter, (caller, call) = state.function.definitions[asked[4]], state.calls[-1]
        if parameter is None or parameter[0] != op.PARAM or not isinstance(state.function.constant(asked[5]), int):
            return False
        given = operand_of(caller, call, state.function, parameter[3])
        return given is not None and self._conditions(caller).is_counter(given)

    @memoized
    def _conditions(self, function: Function) -> Conditions:
        return Conditions(self.transfer.facts, function)

    @memoized
    def _returning(self, function: Function) -> frozenset[int]:
        """The blocks from which a way comes to the end of a function, or to a handler."""
        ends = (*function.code.handlers, *(function.blocks[one] for one in function.by_opcode[op.RETURN]))
        return frozenset(led_to(ends, function.control.predecessors.__getitem__))

    def _behind(self, site: Site, calls: tuple[Site, ...]) -> _At:
        block, index = site.function.homes[site.instruction]
        return _At(site.function, block, index + 1, calls)

    def _outcome(self, function: Function, one: Instruction, work: _Search, calls: tuple[Site, ...]) -> str | None:
        """What an instruction does by itself: it waits, for the call or for something else, or puts work on a device."""
        here, outcome = Site(function, one), None
        if self.waits.reads(function, one):
            return WAITED if self.waits.is_same(work.queue, Queue(here, Stream(CURRENT), calls)) else WORKED
        for action in self.transfer.of(function, one):
            if isinstance(action, Synchronized):
                of = action.of
                return WORKED if isinstance(of, Stream) and self.waits.is_same(work.queue, Queue(here, of, calls)) is False else WAITED
            if isinstance(action, Copied) and self.waits.is_same(work.queue, Queue(here, action.stream, calls)):
                outcome = WAITED if self.waits.fetches(function, one) else _QUEUED
            elif isinstance(action, (Copied, Recorded)):
                return WORKED
        return outcome

    def _run(self, state: _At, work: _Search) -> str | list[_At]:
        """What happens in the rest of a block: an outcome, or the functions that a call enters."""
        function = state.function
        for one in function.code.blocks[state.block][state.place :]:
            if one[0] == op.LAUNCH or (one is work.call.instruction and _is_again(state, work)) or self._computes(state, one, work):
                return WORKED
            is_of_status = _follow_status(function, one, work.status)
            if self._reads(function, one, work.brought) or (work.reads and Site(function, one) in work.reads):
                return READ
            found = self._call(state, one, work, is_of_status) if one[0] in CALLING and one[0] not in (op.ENTER, op.NEXT) else None
            if found is not None:
                return found
        return []

    def _call(self, state: _At, one: Instruction, work: _Search, is_of_status: bool) -> str | list[_At] | None:
        """What a call comes to: an outcome, or the functions that it enters; None where the path goes on behind it."""
        function, outcome = state.function, self._outcome(state.function, one, work, state.calls)
        if outcome is not None:
            return None if outcome == _QUEUED else outcome
        if one[0] in (op.CALL, op.INVOKE) and is_of_status:
            work.status.add((function, one[2]))
        elif self._is_entered(state, one):
            return list(self._entered(state, one, work))
        elif self._works(function, one) and not self._is_brief(state, one, work):
            return READ if self._is_passed(function, one, work.brought) else WORKED
        return None

    def _computes(self, state: _At, one: Instruction, work: _Search) -> bool:
        """Whether an operator puts work on a device that takes longer than to start it."""
        is_operator = one[0] in (op.BINARY, op.INPLACE, op.UNARY)
        return is_operator and self.work.queues(state.function, one) and not self._is_brief(state, one, work)

    def _is_brief(self, state: _At, one: Instruction, work: _Search) -> bool:
        """Whether a call is one of a handful that the device is done with as soon as the host has started them."""
        site = Site(state.function, one)
        return work.handful.takes(site, (*state.calls, site)[0])

    def _reads(self, function: Function, one: Instruction, brought: Registers) -> bool:
        """Whether the host reads what was brought."""
        if not brought:
            return False
        read = [action.register for action in self.transfer.of(function, one) if isinstance(action, Read)]
        return any((function, each) in brought for register in read for each in self.transfer.shared(function, register))

    def _is_passed(self, function: Function, one: Instruction, brought: Registers) -> bool:
        """C++: whether an unknown function that knows no device is passed what was brought: it reads that, or frees it."""
        calls = self.transfer.libraries(function, one) if function.is_cpp else []
        if not calls or any(call.row is not None and call.row.effect != "free" for call in calls):
            return False
        return any((function, each) in brought for register in op.reads(one) for each in self._shared(function, register))

    def _is_entered(self, state: _At, one: Instruction) -> bool:
        """Whether a call runs functions that are known, and nothing else."""
        edges = self.transfer.edges(state.function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        running = {site.function for site in state.calls} | {state.function}
        if not edges or len(state.calls) >= _DEEPEST or self.transfer.libraries(state.function, one):
            return False
        return all(edge.is_followed and not edge.is_higher_order and edge.callee not in running for edge in edges)

    def _works(self, function: Function, one: Instruction) -> bool:
        """Whether a call works on a device, or keeps the host busy, by its row, or perhaps, as unknown code."""
        rows = [call.row for call in self.transfer.libraries(function, one) if call.row is not None]
        if not rows:
            return self.work.is_unknown_code(function, one)
        silent = _SILENT | _OF_CPP if function.is_cpp else _SILENT
        loud = {row.effect for row in rows if not _is_freed(row)} - silent
        return bool(loud) and not (loud == {"factory"} and self._is_of_host(function, one))

    def _is_of_host(self, function: Function, one: Instruction) -> bool:
        """Whether a call makes memory of the host, as far as the program says: no device works for that."""
        made = [value for call in self.transfer.modelled(function, one) for value in call.memory(call.result)]
        return {value.space for value in made if value.evidence != ASKED} == {"host"}


def _is_again(state: _At, work: _Search) -> bool:
    """Whether a path that has come to the operation again is in another round of it: not where another call of its function leads there."""
    passed = work.queue.passed
    if passed and state.calls[-len(passed) :] != passed:
        return False
    return not work.is_alone or _LEFT in state.decided


def _is_freed(row: Row) -> bool:
    """Whether a call gives memory back, and waits for no device: that of the host, or in the order of a stream."""
    return row.effect == "free" and (row.get("memory") == "pageable" or row.get("stream") is not None)


def _round_of(function: Function, loop: Loop) -> str:
    """What a path knows by of a loop that it has had a round."""
    return f"{function.unit.path}:{function.code.number}:{loop.header}"


def _is_past(at: _At, function: Function, loop: Loop) -> bool:
    """Whether a path has left a loop behind that it had a round of."""
    homes = [(at.function, at.block), *((site.function, site.function.blocks[site.instruction]) for site in at.calls)]
    return (_round_of(function, loop), True) in at.decided and not any(home is function and block in loop.body for home, block in homes)


def _follow_status(function: Function, one: Instruction, status: set[tuple[Function, int]]) -> bool:
    """Whether an instruction uses the status; what it computes from that, calls aside, is of the status as well."""
    if not status:
        return False
    reads = one[5:6] if one[0] == op.REBIND else op.reads(one)
    is_of_status = any((function, register) in status for register in reads)
    if is_of_status and op.DEFINES[one[0]] and one[0] not in (op.CALL, op.INVOKE):
        status.add((function, one[2]))
    return is_of_status
