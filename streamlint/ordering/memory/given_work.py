"""Work of unknown callers on what they give: it is under way on their stream, and nothing but a known wait can order it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.traits import Trait
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.gradients import GRADIENT
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.transfer.actions import CURRENT, NAMED, Copied, Lost, Stream
from streamlint.transfer.contexts import Contexts
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of

Given = tuple[Function, int]
"""A register of a function, or the number of a parameter of it."""
_TAKING = frozenset({op.CALL, op.INVOKE})
_HOOKING: tuple[Trait, ...] = ("hooks-forward", "hooks-gradients", "hooks-module")
_UP = frozenset({"h2d", "device<unknown"})
_GIVING = frozenset({op.RETURN, op.YIELD, op.BUILD})


class GivenWork:
    """Finds the arguments that unknown callers may still be working on."""

    def __init__(self, transfer: Transfer, places: Places, lanes: Lanes) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places
        self.lanes = lanes
        self.contexts = transfer.one_of(Contexts, transfer)
        self._private: dict[tuple[Function, frozenset[Site]], bool] = {}
        self._above: dict[Given, tuple[list[Given], list[Given]]] = {}
        self._from_outside: dict[Given, bool] = {}

    def find(self, found: Iterable[tuple[Function, Instruction, Worked]]) -> dict[Function, set[int]]:
        """By function: the parameters that unknown callers give, and that it uses on a stream which is the program's own."""
        given: dict[Function, set[int]] = {}
        for function, one, work in found:
            if work.library != "torch" or work.assumed or function.is_cpp or not work.reads:
                continue
            lane = self.lanes.of(Frame(function, None, None, 0), one, work.stream)
            is_private = self.is_private(function, lane)
            for register in work.reads if is_private or lane.kind == CURRENT else ():
                if not ((work.evident and work.writes) or self._is_there(function, one, register)):
                    continue
                for place in [(function, register)] if is_private else self._under_private(function, register):
                    indices = {index for index in self._parameters(*place) if self._is_from_outside(place[0], index)}
                    if indices:  # nobody above can have made the stream wait
                        given.setdefault(place[0], set()).update(indices)
        return given

    def _under_private(self, function: Function, register: int) -> Iterator[Given]:
        """What callers give for a value where they call on a stream that is the program's own."""
        waiting = list(dict.fromkeys((function, index) for index in self._parameters(function, register)))
        seen = set(waiting)
        while waiting:
            place = waiting.pop()
            if place not in self._above:
                self._above[place] = self._given_above(*place)
            private, further = self._above[place]
            yield from private
            for caller, given in further:
                new = [each for index in self._parameters(caller, given) if (each := (caller, index)) not in seen]
                seen.update(new)
                waiting += new

    def _given_above(self, function: Function, index: int) -> tuple[list[Given], list[Given]]:
        """What callers give for a parameter: where they call on a stream that is the program's own, and on their own callers' stream."""
        private, further = list[Given](), list[Given]()
        for caller, call in self.transfer.callers(function):
            given = operand_of(caller, call, function, index) if call[0] in _TAKING else None
            if given is None or given < 0:
                continue
            lane = self.lanes.of(Frame(caller, None, None, 0), call, Stream(CURRENT))
            if self.is_private(caller, lane):
                private.append((caller, given))
            elif lane.kind == CURRENT:
                further.append((caller, given))
        return private, further

    def is_brought(self, function: Function, one: Instruction) -> bool:
        """Whether a hook brings to a device what a module has given there: then a call copies nothing, and waits for nothing."""
        is_moved = function.invokes(one, "same-elements") and function.invokes(one, "places")
        if function.is_cpp or not is_moved or not any(place[0].invokes(place[1], *_HOOKING) for place in self.facts.call_places(function)):
            return False
        copies = [each for each in self.transfer.of(function, one) if isinstance(each, Copied)]
        return bool(copies) and all(each.direction in _UP for each in copies)

    def is_private(self, function: Function, lane: Lane) -> bool:
        """Whether no unknown code can have made a stream wait: it is new, or only the receiver has it."""
        if lane.kind != NAMED or not lane.made:
            return False
        if all(site.function is function or self._is_fetched({function}, site) for site in lane.made):
            return True
        key = (function, lane.made)
        known = self._private.get(key)
        if known is None:
            known = self._private[key] = self._is_kept(function, lane.made)
        return known

    def _is_fetched(self, makers: Container[Function], made: Site) -> bool:
        """Whether a helper has made a stream and gives it to functions that call it, and to nobody else."""
        helper, one = made.function, made.instruction
        if not op.DEFINES[one[0]] or any(use[0] not in (op.RETURN, op.BIND) for use in helper.uses[one[2]]):
            return False
        callers = [caller for caller, _ in self.facts.call_places(helper)]
        return bool(callers) and all(caller in makers for caller in callers)

    def _is_kept(self, function: Function, made: frozenset[Site]) -> bool:
        """Whether a stream stays within an object or a function around, and is never made to wait."""
        around: list[Function] = []
        outer: Function | None = function
        while outer is not None:
            around.append(outer)
            outer = outer.parent
        owner = next((each.owner for each in around if each.owner is not None), None)
        methods = [each for named in owner.methods.values() for each in named] if owner is not None else []
        makers = {*around, *(method for method in methods if method.code.name == "__init__")}
        if not all(site.function in makers or self._is_fetched(makers, site) for site in made):
            return False
        return not any(self._lets_go(each, made) for each in dict.fromkeys((*around, *methods)) if each.code.kind != "module")

    def _lets_go(self, function: Function, made: frozenset[Site]) -> bool:
        """Whether a function makes a stream wait, or gives it to unknown code."""
        for each in (function, *function.below):
            for one in each.code.instructions():
                if one[0] not in _TAKING and one[0] not in _GIVING:
                    continue
                held = [register for register in op.reads(one) if register >= 0 and self._holds(each, register, made)]
                if not held:
                    continue
                actions = list(self.transfer.of(each, one))
                waits = [action.stream.register for action in actions if isinstance(action, Waited)]
                if one[0] in _GIVING or not set(held).isdisjoint(waits):
                    return True
                is_known = any(not isinstance(action, Lost) for action in actions)
                if not (is_known or self.transfer.libraries(each, one) or self.transfer.edges(each, one)):
                    return True
        return False

    def _holds(self, function: Function, register: int, made: frozenset[Site]) -> bool:
        values = self.transfer.values(function, register)
        return any(isinstance(value, LibraryObject) and value.kind == "stream" and value.site in made for value in values)

    def _is_there(self, function: Function, one: Instruction, register: int) -> bool:
        """Whether an argument is memory of a device: by its declaration, or as the source of a copy to the host that does not wait."""
        held = [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
        spaces = {value.space for value in held}
        if spaces == {"host"}:
            return False
        if (spaces and "host" not in spaces) or self._is_of_hook(function, register):
            return True
        copies = [each for each in self.transfer.of(function, one) if isinstance(each, Copied) and each.source == register]
        is_download = any(each.asynchronous is True and (each.direction == "d2h" or each.direction.startswith("host")) for each in copies)
        return is_download and not any(self._is_uploaded(function, each.target) for each in copies)

    def _is_of_hook(self, function: Function, register: int) -> bool:
        """Whether work is done on the gradient that a backward pass has just made, and calls a hook for."""
        one = function.definitions[register] if register >= 0 else None
        is_gradient = one is not None and one[0] == op.ATTR and function.text(one[4]) == GRADIENT
        return is_gradient and bool(self.transfer.registered(function))

    def _is_uploaded(self, function: Function, filled: int) -> bool:
        """Whether a buffer that is filled is uploaded next: then its source may be of the host as well."""
        names = set(self.places.names(function, filled))
        for one in (*function.by_opcode[op.INVOKE], *function.by_opcode[op.CALL]):
            for each in self.transfer.of(function, one):
                is_upload = isinstance(each, Copied) and each.direction in _UP and each.source >= 0
                if isinstance(each, Copied) and is_upload and not names.isdisjoint(self.places.names(function, each.source)):
                    return True
        return False

    def _joined(self, function: Function, register: int) -> list[int]:
        """A register, and those that it may be a view or part of, whichever way a path has come."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            more = one[3:] if one is not None and one[0] == op.PHI else self.transfer.shared(function, each)
            if one is not None and function.invokes(one, "same-elements"):
                more = (*more, one[3])  # the same memory, or another one that work on the current stream fills
            root = self.places.of(function, each).root
            whole = (int(str(root[1])),) if root[0] == "register" else ()
            found += [other for other in dict.fromkeys((*more, *whole)) if other >= 0 and other not in found]
        return found

    def _parameters(self, function: Function, register: int) -> Iterator[int]:
        """The parameters from which a value comes as a whole, or as a part."""
        for each in self._joined(function, register):
            root = self.places.of(function, each).root
            index = root[1] if root[0] == "parameter" else None
            if isinstance(index, int) and not (index == 0 and function.has_receiver):
                yield index

    def _is_from_outside(self, function: Function, index: int) -> bool:
        """Whether unknown callers give what a parameter is; a thread is given it where it is started."""
        first = (function, index)
        if first not in self._from_outside:
            waiting, seen = [first], {first}
            while waiting and not (self._from_outside.get(waiting[-1]) or self._has_no_caller(waiting[-1][0])):
                new = [each for each in self._passed_on(*waiting.pop()) if each not in seen]
                seen.update(new)
                waiting += new
            self._from_outside[first] = bool(waiting)
        return self._from_outside[first]

    def _has_no_caller(self, function: Function) -> bool:
        return not self.transfer.callers(function) and next(self._started(function), None) is None

    def _passed_on(self, function: Function, index: int) -> Iterator[Given]:
        """The parameters that callers, and who starts a thread of a function, pass on for one of its own."""
        given = [
            (caller, operand_of(caller, call, function, index)) for caller, call in self.transfer.callers(function) if call[0] in _TAKING
        ]
        for parameter in (one for one in function.by_opcode[op.PARAM] if one[3] == index):
            passed = (self.contexts.given(function, parameter, site) for site in self._started(function))
            given += [each for each in passed if each is not None]
        for caller, register in given:
            if register is not None and register >= 0:
                yield from ((caller, each) for each in self._parameters(caller, register))

    def _started(self, function: Function) -> Iterator[Site]:
        """The calls that have another thread run a function."""
        for caller, call in self.facts.call_places(function):
            if any(edge.is_elsewhere and edge.callee is function for edge in self.transfer.edges(caller, call)):
                yield Site(caller, call)
