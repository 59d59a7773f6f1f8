"""Functions that a program hands to a library, which calls them again and again: hooks. Two calls follow one another on the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.counters import is_counter
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.streams.stream_map import StreamMap
from streamlint.transfer.actions import NAMED, Recorded, Stream, Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.operands import kept_by

_MOST = 60
"""Functions that are looked at below a hook."""
_ORDERING = frozenset({"wait", "synchronize", "record"})


class PrivateHooks:
    """Which functions are hooks whose stream only they know."""

    def __init__(self, transfer: Transfer, streams: StreamMap) -> None:
        self.transfer = transfer
        self.streams = streams
        self._given_away: dict[Function, bool] = {}
        self._below: dict[Function, frozenset[Function] | None] = {}

    def is_rerun(self, function: Function, lane: Lane) -> bool:
        """Whether a function is called once more, and nothing but itself can have waited for the work of a stream meanwhile."""
        return self._is_private(lane, function) and self.waits_inside(lane, function)

    def others(self, function: Function, lane: Lane) -> list[Function]:
        """The hooks of the same object that run behind a hook: what may have waited for the work meanwhile is one of the two."""
        if function.owner is None or not self._is_private(lane, function):
            return []
        methods = (each for named in function.owner.methods.values() for each in named if each is not function and each.has_receiver)
        return [each for each in methods if self.is_higher_order(each) and self.waits_inside(lane, function, each)]

    def may_be_awaited(self, function: Function, lane: Lane) -> bool:
        """Whether a hook of the file may let somebody wait for a stream: they run where calls of modules do, which no path shows."""
        hooks = [each for each in function.unit.functions if self.is_higher_order(each)]
        return any(self._awaits(each, lane) for hook in hooks for each in self._reached(hook) or (hook,))

    def _awaits(self, function: Function, lane: Lane) -> bool:
        """Whether a function waits for a stream, for an event or for the device."""
        if any(function in self._waiting.get(site, ()) for site in lane.made):
            return True
        calls = (one for opcode in CALLING for one in function.by_opcode[opcode])
        actions = (action for one in calls for action in self.transfer.of(function, one))
        return any(isinstance(each, Synchronized) or (isinstance(each, Waited) and each.is_event) for each in actions)

    def counted(self, function: Function) -> frozenset[int]:
        """The registers of the parameters for which a hook is given a number with it, one more in each round of a loop: in a partial
        object, or as a default."""
        found = set[int]()
        for param in function.by_opcode[op.PARAM] if self.is_higher_order(function) else ():
            given = list(self._given_before(function, param[3]))
            if given and all(_counts(maker, register) for maker, register in given):
                found.add(param[2])
        return frozenset(found)

    def _given_before(self, function: Function, index: int) -> Iterator[tuple[Function, int]]:
        """What is given for a parameter before a hook is called, and where."""
        default, place = function.default_place(index), index - function.has_receiver
        if default is not None:
            yield default
        for maker, call in self.transfer.facts.call_places(function):
            kept = kept_by(maker, call)
            plain = [register for kind, register in kept.given if kind is None] if kept is not None else []
            if 0 <= place < len(plain):
                yield maker, plain[place]

    def _is_private(self, lane: Lane, function: Function) -> bool:
        """Whether a function is a hook, and a stream is known to the program alone."""
        return lane.kind == NAMED and self.is_higher_order(function) and self.streams.is_own(lane)

    def waits_inside(self, lane: Lane, *functions: Function) -> bool:
        """Whether none but some functions, and those that they call, wait for the work of a stream."""
        waiting = {other for site in lane.made for other in self._waiting.get(site, ())}
        below = [self._reached(function) for function in functions] if waiting else [frozenset[Function]()]
        return all(each is not None for each in below) and waiting <= frozenset().union(*(each or () for each in below))

    def is_higher_order(self, function: Function) -> bool:
        """Whether no known code calls a function that its function makes and gives to a call."""
        found = self._given_away.get(function)
        if found is None:
            found = self._given_away[function] = not function.is_cpp and self._is_given(function)
        return found

    def _is_given(self, function: Function) -> bool:
        """Whether a closure, or a method or function by its name or in a partial object, is given to calls that nobody sees run it."""
        parent = function.parent
        places = self.transfer.facts.call_places(function)
        if function.owner is None and parent is not None and parent.code.kind != "module":
            is_given = _is_argument(parent, function.definition)
        else:
            is_given = bool(places) and all(_is_passed_on(*place) for place in places)
        edges = [edge for place in places for edge in self.transfer.edges(*place) if edge.callee is function] if is_given else []
        return is_given and all(edge.is_higher_order and not edge.is_elsewhere for edge in edges)

    def _reached(self, function: Function) -> frozenset[Function] | None:
        """A function, and those that it calls; None where these are too many."""
        if function not in self._below:
            below = [function]
            for each in below:
                calls = (one for opcode in CALLING for one in each.by_opcode[opcode])
                edges = (edge for one in calls for edge in self.transfer.edges(each, one) if edge.is_direct)
                below += [callee for callee in dict.fromkeys(edge.callee for edge in edges) if callee not in below]
                if len(below) > _MOST:
                    break
            self._below[function] = frozenset(below) if len(below) <= _MOST else None
        return self._below[function]

    @cached_property
    def _waiting(self) -> dict[Site, set[Function]]:
        """By where streams were made: the functions that wait for one, or record an event behind its work."""
        found: dict[Site, set[Function]] = {}
        for call in self.transfer.sites(_ORDERING):
            function = call.function
            for action in self.transfer.of(function, call.instruction) if not function.is_cpp else ():
                registers = [action.of] if isinstance(action, Waited) and not action.is_event else []
                of = action.of if isinstance(action, Synchronized) else action.stream if isinstance(action, Recorded) else None
                registers += [of.register] if isinstance(of, Stream) else []
                for register in (each for each in registers if each >= 0):
                    for value in self.transfer.values(function, register):
                        if isinstance(value, LibraryObject) and value.kind == "stream" and value.site is not None:
                            found.setdefault(value.site, set()).add(function)
        return found


def _is_passed_on(function: Function, call: Instruction) -> bool:
    """Whether a call that may run a function gives it away: a partial object is given to another call."""
    if call[0] not in (op.CALL, op.INVOKE):
        return False
    return kept_by(function, call) is None or any(use[0] in CALLING and use[3] != call[2] for use in function.uses[call[2]])


def _counts(function: Function, register: int) -> bool:
    return is_counter(function, register)


def _is_argument(maker: Function, made: Instruction | None) -> bool:
    """Whether what an instruction makes is an argument of a call."""
    return made is not None and any(use[0] in CALLING and use[3] != made[2] for use in maker.uses[made[2]])
