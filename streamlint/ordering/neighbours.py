"""What comes next to an operation on all paths: a wait of the host, other work, or nothing."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph
from streamlint.ordering.streams import Currents, sites_of
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Copied, Recorded, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer

WAITED, WORKED, ENDED = "waited", "worked", "ended"
_SILENT = frozenset({"none", "stream_of", "view", "same", "device", "object", "touch", "destroy"})
_MOST = 300


class Neighbours:
    """Looks forward from operations until something else happens."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.currents = Currents(transfer)
        self._homes: dict[Function, dict[Instruction, tuple[int, int]]] = {}

    def is_waited_for(self, call: ModelledCall, passed: tuple[Site, ...]) -> bool:
        """Whether the host waits for the stream of a copy before anything else happens, on some path, and on none is other work first."""
        outcomes = self.after(call, passed)
        return WAITED in outcomes and WORKED not in outcomes

    def after(self, call: ModelledCall, passed: tuple[Site, ...]) -> set[str]:
        """What comes behind a call: `WAITED`, `WORKED`, `ENDED`."""
        function, found = call.function, set[str]()
        stream = call.stream()
        status = {call.result}
        waiting: list[tuple[Function, int, int, tuple[Site, ...]]] = [(function, *self._behind(function, call.instruction), passed)]
        seen = set()
        while waiting and len(seen) < _MOST:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            where, block, place, calls = state
            outcome = self._run(where, block, place, call, stream, status)
            if outcome:
                found.add(outcome)
                continue
            end = where.code.blocks[block][-1]
            if end[0] == op.RETURN:
                if not calls:
                    found.add(ENDED)
                else:
                    site = calls[-1]
                    status.add(site.instruction[2])
                    waiting.append((site.function, *self._behind(site.function, site.instruction), calls[:-1]))
            waiting += [(where, after, 0, calls) for after in Graph.of(where.code, exceptions=False).successors[block]]
        return found

    def _behind(self, function: Function, one: Instruction) -> tuple[int, int]:
        homes = self._homes.get(function)
        if homes is None:
            homes = self._homes[function] = {
                each: (number, index) for number, block in enumerate(function.code.blocks) for index, each in enumerate(block)
            }
        block, index = homes[one]
        return block, index + 1

    def _run(self, function: Function, block: int, place: int, call: ModelledCall, stream: Stream, status: set[int]) -> str:
        for one in function.code.blocks[block][place:]:
            if one is call.instruction:
                return WORKED
            if one[0] == op.LAUNCH:
                return WORKED
            if op.DEFINES[one[0]] and one[0] not in (op.CALL, op.INVOKE) and not status.isdisjoint(op.reads(one)):
                status.add(one[2])
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


__all__ = ["Constant", "ENDED", "Neighbours", "WAITED", "WORKED"]
