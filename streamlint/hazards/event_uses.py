"""What the program does with an event that it makes: what only orders, what asks for its time, and where it escapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ANY, Element, Key, Place, Places, cell_of, is_object, register_place, rest_behind
from streamlint.ordering.walk.across import given_for
from streamlint.ordering.walk.lifetimes import Held, Lifetimes, made_by
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer

_ORDERING = frozenset({"record", "wait", "synchronize", "query"})
_SILENT = frozenset({"destroy", "event"})
_DEEPEST = 8
_HEADERS = (".h", ".hpp", ".cuh", ".hh", ".hxx")
_OWN = frozenset({"parameter", "this"})


class EventUses:
    """The uses of one event. ``orders`` are those that record it, wait for it or query it."""

    def __init__(self, orders: list[tuple[Site, str]], is_timed: bool, is_lost: bool) -> None:
        self.orders = orders
        self.is_timed = is_timed
        self.is_lost = is_lost


class Events:
    """Follows the events of a program, over members of objects too."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = self.transfer.one_of(Places, self.facts)
        self.lifetimes = Lifetimes(transfer, self.places, lambda function, one: iter(()))
        self._orders: list[tuple[Site, str]] = []
        self._seen: set[tuple[Function, frozenset[Place]]] = set()
        self._is_timed = self._is_lost = False

    @cached_property
    def measures(self) -> bool:
        """Whether the time between events is asked for that other functions may know: not between variables of a function alone."""
        return any(not self._are_own(call) for call in self.transfer.sites({"elapsed"}))

    def _are_own(self, call: ModelledCall) -> bool:
        places = [self.places.of(call.function, register) for register in call.operands]
        return call.function.is_cpp and all(place.root[0] == "cell" and not place.path for place in places[-2:])

    def of(self, call: ModelledCall) -> EventUses:
        """The uses of the event that a call makes."""
        self._orders, self._seen, self._is_timed, self._is_lost = [], set(), False, False
        self._follow(call.function, call.instruction, made_by(self.places, call), 0)
        return EventUses(self._orders, self._is_timed, self._is_lost)

    def _follow(self, function: Function, made: Instruction, places: frozenset[Place], depth: int) -> None:
        """Look at all that a function does with the event at these places."""
        key = (function, places)
        if key in self._seen:
            return
        self._seen.add(key)
        held = self.lifetimes.spread(Held(function, made, places, False))
        for place in sorted(held.places, key=repr):  # the first way to a function decides how deep it is looked into
            if place.root[0] in _OWN and place.path and isinstance(place.path[0], str) and self._is_own(function, place):
                self._follow_member(function, place.path[0], depth, any(isinstance(key, Element) for key in place.path[1:]))
            elif place.root[0] in ("global", "this") or (place.root[0] == "parameter" and place not in places and place.path):
                self._is_lost = True
        for one in function.code.instructions():
            if one != made:
                self._look_at(held, one, depth)
        self._is_lost |= self._is_shared(held)

    def _is_own(self, function: Function, place: Place) -> bool:
        return function.has_receiver and (place.root == ("register", 0) or is_object(place.root))

    def _is_shared(self, held: Held) -> bool:
        """Whether a function that is defined inside may use the event."""
        cells = {place.root for place in held.places if place.root[0] == "cell"}
        inner = [function for function in held.function.below if function is not held.function]
        loads = (one for function in inner for opcode in (op.LOAD, op.ADDRESS) for one in function.by_opcode[opcode])
        return any(cell_of(held.function, one[3]).root in cells for one in loads)

    # --- members

    def _follow_member(self, function: Function, name: str, depth: int, is_inside: bool) -> None:
        """The member of an object, or what ``is_inside`` it: in the methods of its class, and wherever a member of this name is read."""
        owner = function.method.owner if function.method is not None else None
        if owner is None or depth >= _DEEPEST:
            self._is_lost = True
            return
        self._is_lost |= owner.unit.is_cpp and owner.unit.path.endswith(_HEADERS)
        for unit in self.facts.program.mentioning(name):
            for other in unit.functions if unit.is_cpp == function.is_cpp else ():
                for one, place in self._reads(other, name):
                    other_owner = other.method.owner if other.method is not None else None
                    if one[0] == op.ATTR or other_owner is owner:
                        self._follow(other, one, frozenset({place, place.behind(ANY)} if is_inside else {place}), depth + 1)

    def _reads(self, function: Function, name: str) -> Iterator[tuple[Instruction, Place]]:
        for opcode, at in ((op.ATTR, 4), (op.ADDRESS_ATTR, 4), (op.NAME, 3), (op.ADDRESS_NAME, 3)):
            if opcode in (op.NAME, op.ADDRESS_NAME) and not function.is_cpp:
                continue
            for one in function.by_opcode[opcode]:
                if function.text(one[at]) == name:
                    place = self.places.of(function, one[2])
                    yield one, place.behind("*") if opcode in (op.ADDRESS_ATTR, op.ADDRESS_NAME) else place

    # --- uses

    def _look_at(self, held: Held, one: Instruction, depth: int) -> None:
        function = held.function
        if one[0] == op.RETURN:
            if one[2] >= 0 and self._is_in(held, one[2]):
                self._leave(held, one[2], depth)
        elif one[0] in (op.YIELD, op.YIELD_FROM, op.AWAIT):
            self._is_lost |= any(self._is_in(held, register) for register in op.reads(one))
        elif one[0] in CALLING and one[0] not in (op.NEXT, op.DESTROY):
            given = [register for register in op.reads(one) if self.lifetimes.holds(held, register) or self._is_in(held, register)]
            if given:
                self._called(held, one, depth)
        elif one[0] == op.ATTR and self.lifetimes.holds(held, one[3]) and not function.uses[one[2]]:
            self._is_lost = True

    def _is_in(self, held: Held, register: int) -> bool:
        """Whether a register holds the event, or a container or object that does; the receiver of a method does not count."""
        for name in self.places.names(held.function, register):
            is_receiver = name.root[0] == "parameter" and not name.path and held.function.has_receiver and name.root[1] == 0
            if not is_receiver and any(rest_behind(name, place) is not None for place in held.places):
                return True
        return False

    def _called(self, held: Held, one: Instruction, depth: int) -> None:
        function = held.function
        modelled = list(self.transfer.modelled(function, one))
        effects = {call.row.effect for call in modelled}
        if "elapsed" in effects:
            self._is_timed = True
        elif effects & _ORDERING:
            self._orders.append((Site(function, one), min(effects & _ORDERING)))
        elif not effects & _SILENT:
            edges = [edge for edge in self.transfer.edges(function, one) if edge.is_followed and not edge.is_higher_order]
            if not edges or depth >= _DEEPEST:
                self._is_lost |= not (one[0] == op.INVOKE and function.text(one[4]) in function.known("puts"))
            for edge in edges if depth < _DEEPEST else ():
                is_taken = self._enter(held, one, edge.callee, depth)
                self._is_lost |= not is_taken

    def _leave(self, held: Held, register: int, depth: int) -> None:
        """Follow the event to the callers that a function returns it to; it escapes where none is known."""
        callers = list(self.transfer.callers(held.function))
        self._is_lost |= not callers or depth >= _DEEPEST
        for caller, call in callers if depth < _DEEPEST else ():
            places = frozenset(register_place(call[2]).behind(*rest) for rest in self._rests(held, register))
            if places:
                self._follow(caller, call, places, depth + 1)

    def _rests(self, held: Held, register: int) -> set[tuple[Key, ...]]:
        """The keys that lead from a register to the event."""
        names = self.places.names(held.function, register)
        return {rest for name in names for place in held.places if (rest := rest_behind(name, place)) is not None}

    def _enter(self, held: Held, one: Instruction, callee: Function, depth: int) -> bool:
        """Follow the event into a function that it is given to; whether a parameter takes it, as ``**options`` does not by itself."""
        is_taken = False
        for param in callee.by_opcode[op.PARAM]:
            register = given_for(held.function, one, callee, param[3])
            if register is None or register < 0:
                continue
            rests = self._rests(held, register)
            if rests:
                is_taken = True
                self._follow(callee, param, frozenset(Place(("parameter", param[3]), rest) for rest in rests), depth + 1)
        return is_taken
