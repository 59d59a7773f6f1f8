"""Python: what unknown calls do on the stream that is current there: they compute what they give, and fill new memory."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Element, Place, Places, rest_behind
from streamlint.ordering.streams.lanes import Lane
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked


def with_result(function: Function, one: Instruction, work: Worked) -> Worked:
    """The work of a call; an unknown one may give new memory of the stream that is current there."""
    return work._replace(made=one[2]) if work.assumed and not function.is_cpp and op.DEFINES[one[0]] else work


class UnknownCalls:
    """Knows what unknown calls must have done, by what the code around them does."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

    def filled(self, function: Function, one: Instruction, work: Worked) -> Iterator[int]:
        """The registers of new memory that a call is the first to be given: to read it would tell nothing, so the call fills it."""
        for register in work.reads:
            place = self.places.of(function, register) if register >= 0 else None
            made = self._made(function, place, one) if place is not None else None
            if place is None or made is None:
                continue
            call = self._left(function, made)
            path = place.path if place.root[0] == "register" else ()
            names = [*(Place(("register", each[2]), path) for each in call or ()), place]
            ahead = _between(function, call, one) if call else ()
            if call and not any(self._touches(function, before, names) for before in ahead):
                yield register

    def _made(self, function: Function, place: Place, one: Instruction) -> int | None:
        """The register of what an element is of, or of what the function has put into an attribute before an instruction."""
        if place.root[0] == "register" and all(isinstance(key, Element) for key in place.path):
            return int(str(place.root[1]))
        stores = [(each, pair) for each in function.by_opcode[op.SET_ATTR] for pair in self.places.assigned(function, each)]
        kept = [(each, value) for each, (target, value) in stores if target == place]
        return kept[0][1] if len(kept) == 1 and function.runs_before(kept[0][0], one) else None

    def _left(self, function: Function, register: int, depth: int = 4) -> list[Instruction] | None:
        """What has made memory: a factory that leaves it as it is, or one on each way, and where these meet; None for anything else."""
        one = function.definitions[register] if register >= 0 and depth else None
        if one is not None and one[0] == op.PHI:
            ways = [self._left(function, each, depth - 1) for each in one[3:]]
            return None if None in ways else [one, *(each for way in ways for each in way or ())]
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return None
        return [one] if any(each.made == register and not each.fills for each in self.transfer.works(function, one)) else None

    def _touches(self, function: Function, one: Instruction, places: list[Place]) -> bool:
        """Whether an instruction may work on memory that has several names."""
        used = (each for work in self.transfer.works(function, one) for each in (*work.reads, *work.writes) if each >= 0)
        names = [self.places.of(function, each) for each in used]
        return any(rest_behind(a, b) is not None or rest_behind(b, a) is not None for a in names for b in places)

    def is_awaited_behind(self, function: Function, one: Instruction, lane: Lane) -> bool:
        """Whether code behind a call has a stream wait for the one that the call works on: then the call has not waited for it."""
        for opcode in (op.CALL, op.INVOKE):
            for each in function.by_opcode[opcode]:
                if each is one or function.homes[each] < function.homes[one]:
                    continue
                waits = (action for action in self.transfer.of(function, each) if isinstance(action, Waited) and not action.is_event)
                if any(not set(self.places.names(function, wait.of)).isdisjoint(lane.places) for wait in waits if wait.of >= 0):
                    return True
        return False


def _between(function: Function, first: list[Instruction], last: Instruction) -> Iterator[Instruction]:
    """The instructions that may run after one of some and before another."""
    before: list[list[int]] = [[] for _ in function.code.blocks]
    for block, successors in enumerate(function.control.successors):
        for after in successors:
            before[after].append(block)
    begins = {function.homes[one] for one in first if one[0] != op.PHI}
    end, place = function.homes[last]
    seen, waiting = set[int](), [(end, place)]
    while waiting:
        block, place = waiting.pop()
        begun = max((index for number, index in begins if number == block and index < place), default=-1)
        yield from function.code.blocks[block][begun + 1 : place]
        if begun < 0:
            waiting += [(each, len(function.code.blocks[each])) for each in before[block] if each not in seen]
            seen.update(before[block])
