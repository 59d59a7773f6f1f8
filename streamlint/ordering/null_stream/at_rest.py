"""C++: work on the null stream with nothing beside it: the host has waited for the other streams, and waits for it before they get more."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name, unnegated
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Conditions, Frame
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.streams.choices import NULL
from streamlint.ordering.streams.concurrent_work import ConcurrentWork, Event, waits_for
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import given_to


class AtRest:
    """Looks at the ways on from work on the null stream."""

    def __init__(self, transfer: Transfer, concurrent: ConcurrentWork) -> None:
        self.transfer = transfer
        self.concurrent = concurrent
        self.conditions = transfer.one_of(Conditions, transfer)

    def is_alone(self, function: Function, one: Instruction) -> bool:
        """Whether other streams have had work before, which is over, and get none again before the host has waited for this."""
        if self.concurrent.in_flight(function, one) or not any(map(is_on_stream, self.concurrent.before(function, one))):
            return False
        return self._is_waited_for(function, one, self._sorted(function)[0])

    def is_ended(self, function: Function, one: Instruction) -> bool:
        """Whether nothing of the function's other streams is in flight, and the host waits for the whole device before they get work."""
        if self.concurrent.in_flight(function, one):
            return False
        return self._is_waited_for(function, one, frozenset(filter(partial(self._is_for_device, function), function.code.instructions())))

    def comes_at_rest(self, function: Function, one: Instruction, streams: Collection[int]) -> bool:
        """Whether all calls of a function stand behind a wait of the host, with nothing in flight there: for the device, or for each of the
        streams that they give for some parameters; and whether the function puts no work on another stream before an instruction."""
        places = list(self.transfer.facts.call_places(function))
        if not places or any(is_on_stream(event) for event in self.concurrent.before(function, one)):
            return False
        return all(self._is_idle_at(caller, call, function, streams) for caller, call in places)

    def _is_idle_at(self, caller: Function, call: Instruction, function: Function, streams: Collection[int]) -> bool:
        """Whether the host has waited for the streams of a call before it, on all ways, and nothing came behind that."""
        inside = (event for event in self.concurrent.events(caller) if event.instruction == call)
        is_again = caller.is_repeated(call) and any(map(is_on_stream, inside))
        if is_again or self.concurrent.in_flight(caller, call):
            return False
        waits = [
            event
            for event in self.concurrent.own(caller)
            if event.work is None and caller.control.dominates(caller.homes[event.instruction][0], caller.homes[call][0])
            if leads_to(caller, event.instruction, call)
        ]
        if any(wait.choice is None for wait in waits):
            return True
        given = [given_to(caller, call, function, index) for index in streams]
        return bool(given) and all(register is not None and self._waits_for(caller, call, register, waits) for register in given)

    def _waits_for(self, caller: Function, call: Instruction, register: int, waits: list[Event]) -> bool:
        found = list(self.concurrent.choices.of_register(caller, register, Site(caller, call), (), False)) if register >= 0 else []
        return bool(found) and all(any(waits_for(wait, choice) for wait in waits) for choice in found)

    def _is_for_device(self, function: Function, one: Instruction) -> bool:
        """Whether the host waits for the whole device at an instruction."""
        actions = self.transfer.of(function, one) if one[0] in CALLING else ()
        return any(isinstance(action, Synchronized) and action.of is None for action in actions)

    def _is_waited_for(self, function: Function, one: Instruction, waits: frozenset[Instruction]) -> bool:
        """Whether all ways on come to a wait before work of another stream, another device, and the end of the function; one that leaves
        because a call has failed does not count."""
        others = self._sorted(function)[1]
        block, index = function.homes[one]
        waiting, seen = [(block, index + 1)], set[int]()
        while waiting:
            number, start = waiting.pop()
            code = function.code.blocks[number]
            first = next((each for each in code[start:] if each in waits or each in others or each[0] == op.RETURN), None)
            if first is not None:
                if first not in waits:
                    return False
                continue
            fresh = [after for after in self._ways_on(function, number) if after not in seen]
            seen.update(fresh)
            waiting += [(after, 0) for after in fresh]
        return True

    def _ways_on(self, function: Function, block: int) -> tuple[int, ...]:
        end = function.code.blocks[block][-1]
        if end[0] == op.BRANCH:
            condition, turned = unnegated(function, end[2])
            holds = self.conditions.truth(Frame(function, None, None, 0), condition)
            if holds is not None:
                return (end[3] if holds != turned else end[4],)
        return tuple(function.control.successors[block])

    @memoized
    def _sorted(self, function: Function) -> tuple[frozenset[Instruction], frozenset[Instruction]]:
        """The instructions at which the host waits for the null stream, and those that give other streams work or choose a device."""
        events = self.concurrent.events(function)
        names = self.transfer.names(frozenset({"setting"}))
        chosen = (one for opcode in CALLING for one in function.by_opcode[opcode] if last_name(function, one) in names)
        devices = (one for one in chosen for call in self.transfer.modelled(function, one) if call.row.get("what") == "device")
        others = frozenset((*(event.instruction for event in events if is_on_stream(event)), *devices))
        return frozenset(event.instruction for event in events if _waits(event)) - others, others


def is_on_stream(event: Event) -> bool:
    """Whether an event is work on another stream than the null stream."""
    return event.work is not None and event.choice is not None and event.choice.kind != NULL


def _waits(event: Event) -> bool:
    """Whether the host waits for the null stream: itself, or for what it fetches there."""
    if event.via or (event.choice is not None and event.choice.kind != NULL):
        return False
    return event.work is None or (event.work.waits and event.work.direction == "d2h")
