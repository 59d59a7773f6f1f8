"""Handles of libraries: on which stream one works, by the call before that has set it, or by the one that has set it elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.places.places import ADDRESS, POINTEE, Place, Places, is_object
from streamlint.ordering.streams.handles import Handles
from streamlint.ordering.streams.streams import Currents
from streamlint.support.memo import memoized
from streamlint.transfer.actions import UNKNOWN
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of


class Bound(NamedTuple):
    """The stream that a handle was bound to elsewhere: its register there, and the places that the user of the handle has for it."""

    function: Function
    register: int
    places: tuple[Place, ...]


class BoundHandles(Handles):
    """The streams of handles."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        super().__init__(transfer, places)

    def before(self, function: Function, one: Instruction, handle: int) -> int | None:
        """The register of the stream that a handle was given last, on the way to an instruction in its function."""
        calls = {call.instruction: call for call in self._binds if call.function is function}
        if not calls:
            return None
        place = self.places.of(function, handle)
        for each in function.ahead(one):
            own = calls[each].one("handle") if each in calls else None
            if own is not None and self.places.of(function, own) == place:
                return calls[each].one("stream")
        return None

    @memoized
    def elsewhere(self, function: Function, handle: int) -> Bound | None:
        """The stream that a handle is bound to in another function, if one call alone does so."""
        return self._find_elsewhere(function, handle)

    def _find_elsewhere(self, function: Function, handle: int) -> Bound | None:
        found = [bound for call in self._binds if call.function is not function and (bound := self._bound(call, function, handle))]
        known = {(bound.function, bound.register) for bound in found}
        found += [bound for bound in self._of_getter(function, handle) if (bound.function, bound.register) not in known]
        return found[0] if len(found) == 1 else None

    def _of_getter(self, function: Function, handle: int) -> list[Bound]:
        """Where a function that gives the handle has bound it."""
        one = function.definitions[handle] if handle >= 0 else None
        getters = [edge.callee for edge in self.transfer.edges(function, one)] if one is not None and one[0] in (op.CALL, op.INVOKE) else []
        found: list[Bound] = []
        for getter in getters:
            given = {self.places.of(getter, end[2]) for end in getter.by_opcode[op.RETURN] if end[2] >= 0}
            for call in self._binds if given else ():
                theirs, stream = call.one("handle"), call.one("stream")
                if call.function is getter and theirs is not None and stream is not None and self.places.of(getter, theirs) in given:
                    found.append(Bound(getter, stream, ()))
        return found

    def _bound(self, call: ModelledCall, function: Function, handle: int) -> Bound | None:
        """The stream of a call that binds a handle, if it is the same handle."""
        theirs, stream = call.one("handle"), call.one("stream")
        if theirs is None or stream is None:
            return None
        mine, its = self.places.of(function, handle), self.places.of(call.function, theirs)
        creations = self._made(function, handle) & self._made(call.function, theirs)
        if not creations and not _is_same_member(function, mine, call.function, its):
            return None
        lane, base = self.places.of(call.function, stream), its.path[:-1]
        is_sibling = bool(mine.path and its.path) and lane.root == its.root and lane.path[: len(base)] == base
        places = (Place(mine.root, (*mine.path[:-1], *lane.path[len(base) :])),) if is_sibling else ()
        return Bound(call.function, stream, places)


def _is_same_member(function: Function, mine: Place, other: Function, its: Place) -> bool:
    """Whether two handles are the same member of objects of one class."""
    names = [[key for key in place.path if key not in (ADDRESS, POINTEE)] for place in (mine, its)]
    if not names[0] or not names[1]:
        return mine == its and mine.root[0] == "global"
    return names[0][-1] == names[1][-1] and _class_of(function, mine) == _class_of(other, its)


def _class_of(function: Function, place: Place) -> str:
    """The class of the object whose member a place is, as its function declares it."""
    owner = function.method.owner if function.method is not None else None
    if owner is not None and is_object(place.root):
        return owner.name
    index = place.root[1] if place.root[0] == "parameter" else None
    declared = function.code.parameters[index].type if isinstance(index, int) and index < len(function.code.parameters) else None
    return declared[0] if declared is not None else ""


def given_handle(function: Function, register: int) -> int | None:
    """The parameter that a handle is, as it was given."""
    one = function.definitions[register] if register >= 0 else None
    return one[3] if one is not None and one[0] == op.PARAM else None


def behind_number(function: Function, register: int) -> int:
    """The register of the stream that a number stands for: ``int(stream)``."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.CALL or function.is_cpp or function.dotted(one[3]) != "int" or len(one) != 6:
        return register
    return one[5]


class Scopes:
    """The streams of context managers that other functions have made: kept in attributes, or generators of the program."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.transfer = transfer
        self.places = places
        self.currents = currents

    def of(self, function: Function, register: int) -> Bound | None:
        """The stream that a context manager makes current."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or function.is_cpp:
            return None
        kept = self._kept(function, one) if one[0] == op.ATTR else None
        bound = self._of_generator(function, one) if one[0] in (op.CALL, op.INVOKE) else None
        return kept or bound or self._of_object(function, register)

    def _of_object(self, function: Function, register: int) -> Bound | None:
        """``with Aside(side):`` of a class whose ``__enter__`` makes a stream current that the object has."""
        entered = (use for use in function.uses.get(register, ()) if use[0] == op.ENTER and use[3] == register)
        for callee, stream in (found for use in entered for found in self.currents.entered_by(function, use)):
            inner = self.of(callee, stream.register) if stream.kind == UNKNOWN else Bound(callee, stream.register, ())
            if inner is None or callee is function:
                continue
            places = inner.places or (self.places.of(inner.function, inner.register),)
            own = (place for place in places if place.root == ("parameter", 0))
            named = tuple(name.behind(*place.path) for place in own for name in self.places.names(function, register))
            return inner._replace(places=named)
        return None

    def _kept(self, function: Function, one: Instruction) -> Bound | None:
        """``self.scope = torch.cuda.stream(self.side)``."""
        owner = function.method.owner if function.method is not None else None
        stores = owner.own_stores.get(function.text(one[4]), ()) if owner is not None else ()
        found: list[Bound] = []
        for store in stores if self.places.of(function, one[3]) == Place(("parameter", 0)) else ():
            definition = store.function.definitions[store.value]
            for call in (
                self.transfer.modelled(store.function, definition)
                if definition is not None and definition[0] in (op.CALL, op.INVOKE)
                else ()
            ):
                selector = call.row.get("stream")
                stream = call.given(selector) if call.row.effect == "scope" and isinstance(selector, Selector) else None
                if stream is not None:
                    place = self.places.of(store.function, stream)
                    found.append(Bound(store.function, stream, (place,) if place.root == ("parameter", 0) else ()))
        return found[0] if len(found) == 1 else None

    def _of_generator(self, function: Function, one: Instruction) -> Bound | None:
        """``with self.aside():`` of a generator that yields where it has made a stream current."""
        for callee, stream in self.currents.yielded(function, one):
            place = self.places.of(callee, stream.register)
            index = place.root[1] if place.root[0] == "parameter" else None
            given = operand_of(function, one, callee, index) if isinstance(index, int) else None
            if index == 0 and callee.has_receiver and one[0] == op.INVOKE:
                given = one[3]
            places = (self.places.of(function, given).behind(*place.path),) if given is not None and given >= 0 else ()
            return Bound(callee, stream.register, places)
        return None
