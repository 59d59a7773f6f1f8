"""What comes next to an operation on all paths: a wait of the host, other work, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.streams import Currents, sites_of
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Copied, Read, Recorded, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.questions import unnegated

WAITED, WORKED, READ, ENDED = "waited", "worked", "read", "ended"
_SILENT = frozenset({"none", "stream_of", "view", "same", "device", "object", "touch", "destroy"})
_MOST = 300


class _At(NamedTuple):
    function: Function
    block: int
    place: int
    calls: tuple[Site, ...]
    decided: frozenset[tuple[str, bool]]


class _Search(NamedTuple):
    call: ModelledCall
    stream: Stream
    status: set[int]
    brought: set[int]


class Neighbours:
    """Looks forward from operations until something else happens."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.currents = Currents(transfer)

    def is_waited_for(self, call: ModelledCall, passed: tuple[Site, ...]) -> bool:
        """Whether the host waits for the stream of a copy before anything else happens, on some path, and on none is other work first."""
        outcomes = self.after(call, passed)
        return WAITED in outcomes and WORKED not in outcomes

    def is_wanted(self, call: ModelledCall, register: int, passed: tuple[Site, ...]) -> bool:
        """Whether the host reads what a copy brings before anything else happens, or has nothing else to do."""
        outcomes = self.after(call, passed, register)
        return bool(outcomes) and outcomes <= {READ, ENDED}

    def after(self, call: ModelledCall, passed: tuple[Site, ...], brought: int = op.NONE) -> set[str]:
        """What comes behind a call: `WAITED`, `WORKED`, `READ`, `ENDED`."""
        function, found = call.function, set[str]()
        status = {call.result} if function.is_cpp and not call.memory(call.result) else set[int]()
        work = _Search(call, call.stream(), status, set(self.transfer.shared(function, brought)) if brought >= 0 else set())
        start = _At(function, *self._behind(function, call.instruction), passed, frozenset())
        waiting, seen = [start], set[_At]()
        while waiting and len(seen) < _MOST:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            outcome = self._run(state.function, state.block, state.place, work)
            if outcome:
                found.add(outcome)
                continue
            end = state.function.code.blocks[state.block][-1]
            if end[0] == op.RETURN and not state.calls:
                found.add(ENDED)
            elif end[0] == op.RETURN:
                site = state.calls[-1]
                status.add(site.instruction[2])
                behind = self._behind(site.function, site.instruction)
                waiting.append(_At(site.function, *behind, state.calls[:-1], state.decided))
            elif end[0] == op.BRANCH:
                waiting += self._branched(state, end, status)
            else:
                successors = state.function.control.successors[state.block]
                waiting += [state._replace(block=after, place=0) for after in successors]
        return found

    def _branched(self, state: _At, end: Instruction, status: set[int]) -> Iterator[_At]:
        """Both ways; of a status that is asked again the way that it went before."""
        function = state.function
        condition, turned = unnegated(function, end[2])
        one = function.definitions[condition] if condition >= 0 else None
        name = function.text(one[4]) if one is not None and one[0] == op.INVOKE and one[3] in status else ""
        known = dict(state.decided).get(name)
        for truth, block in ((True, end[3]), (False, end[4])):
            holds = truth != turned
            if not name:
                yield state._replace(block=block, place=0)
            elif known is None or known == holds:
                yield state._replace(block=block, place=0, decided=state.decided | {(name, holds)})

    def _behind(self, function: Function, one: Instruction) -> tuple[int, int]:
        block, index = function.homes[one]
        return block, index + 1

    def _run(self, function: Function, block: int, place: int, work: _Search) -> str:
        call, stream, status = work.call, work.stream, work.status
        for one in function.code.blocks[block][place:]:
            if one is call.instruction:
                return WORKED
            if one[0] == op.LAUNCH:
                return WORKED
            if op.DEFINES[one[0]] and one[0] not in (op.CALL, op.INVOKE, op.REBIND) and not status.isdisjoint(op.reads(one)):
                status.add(one[2])
            if work.brought and function is call.function:
                read = [action.register for action in self.transfer.of(function, one) if isinstance(action, Read)]
                if not work.brought.isdisjoint(each for register in read for each in self.transfer.shared(function, register)):
                    return READ
            if one[0] not in CALLING or one[0] in (op.ENTER, op.NEXT):
                continue
            for action in self.transfer.of(function, one):
                if isinstance(action, Synchronized):
                    return WAITED if self._is_of(function, one, action, call, stream) else WORKED
                if isinstance(action, (Copied, Recorded)):
                    return WORKED
            reads = op.reads(one)
            if one[0] in (op.CALL, op.INVOKE) and not status.isdisjoint(reads):
                status.add(one[2])
                continue
            if self._works(function, one):
                return WORKED
        return ""

    def _works(self, function: Function, one: Instruction) -> bool:
        rows = [each.row for each in self.transfer.libraries(function, one)]
        if any(row is None for row in rows):
            return True
        if rows:
            return any(row is not None and row.effect not in _SILENT for row in rows)
        return one[0] in (op.CALL, op.INVOKE, op.LAUNCH)

    def _is_of(self, function: Function, one: Instruction, action: Synchronized, call: ModelledCall, stream: Stream) -> bool:
        """Whether a wait is for the stream of the copy."""
        if action.of is None or isinstance(action.of, int):
            return True
        mine = self.currents.at(call.function, call.instruction) or stream if stream.kind == CURRENT else stream
        other = self.currents.at(function, one) or action.of if action.of.kind == CURRENT else action.of
        if UNKNOWN in (mine.kind, other.kind):
            return True
        if mine.kind != NAMED or other.kind != NAMED:
            return mine.kind == other.kind
        if mine.register == other.register and function is call.function:
            return True
        made, _ = sites_of(list(self.transfer.values(call.function, mine.register)))
        others, _ = sites_of(list(self.transfer.values(function, other.register)))
        return bool(made & others) or (not made and not others)
