"""Streams that an object keeps, and what conditions of its methods say of them: that they were not made, so that none is current."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import is_none, unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places
from streamlint.ordering.streams.bound_handles import Scopes
from streamlint.ordering.streams.streams import Currents
from streamlint.support.memo import memoized
from streamlint.transfer.actions import UNKNOWN, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike, conditions

_OF_OBJECT = "object"
_Known = frozenset[tuple[Key, bool]]


class MadeStreams:
    """What denies that the streams were made which methods make current."""

    def __init__(self, transfer: Transfer, places: Places, currents: Currents) -> None:
        self.places = places
        self.currents = currents
        self.scopes = Scopes(transfer, places, currents)
        self._denied: dict[tuple[Function, Stream], _Known] = {}

    @memoized
    def tested(self, function: Function) -> frozenset[Key]:
        """The conditions of a function that may deny one of the streams that it makes current."""
        streams = self.currents.streams(function)
        return frozenset(key for stream in streams for key, _ in self.denied_by(function, stream))

    def denied_by(self, function: Function, stream: Stream) -> _Known:
        """The conditions of a function, each with what it says, where a stream that its object keeps was not made."""
        known = self._denied.get((function, stream))
        if known is None:
            known = self._denied[function, stream] = frozenset(self._denied_by(function, stream))
        return known

    def _denied_by(self, function: Function, stream: Stream) -> Iterator[tuple[Key, bool]]:
        owner = function.method.owner if function.method is not None and not function.is_cpp and stream.register >= 0 else None
        if owner is None:
            return
        names, made = self._kept(function, owner, stream)
        homes = {home for home, _ in made}
        said: set[tuple[Key, bool]] = {each for home, one in made for each in _said_where(home, one)}
        said.update(((op.ATTR, name, (_OF_OBJECT,)), True) for name in names)
        for branch in function.by_opcode[op.BRANCH] if homes else ():
            key = alike(function, unnegated(function, branch[2])[0])
            positive, is_there = as_positive(key)
            for whole, is_made in ((_of_object(function, positive), is_there), (_of_object(function, key), True)):
                if whole is None or not _is_settled(owner, whole, homes):
                    continue
                if (whole, True) in said:
                    yield key, not is_made
                elif (whole, False) in said:
                    yield key, is_made

    def _kept(self, function: Function, owner: ClassInfo, stream: Stream) -> tuple[list[object], list[tuple[Function, Instruction]]]:
        """The attributes in which an object keeps a stream, and what makes it, each with its function."""
        bound = self.scopes.of(function, stream.register) if stream.kind == UNKNOWN else None
        lanes = bound.places if bound is not None else (self.places.of(function, stream.register),)
        names: list[object] = [place.path[0] for place in lanes if place.root == ("parameter", 0) and len(place.path) == 1]
        creations = [each for name in names if len(found := _made(owner, str(name))) == 1 for each in found]
        scope = bound.function.definitions[bound.register] if bound is not None else None
        if bound is not None and scope is not None:
            creations.append((bound.function, scope))
        return names, creations


def as_positive(key: Key) -> tuple[Key, bool]:
    """What a condition asks for, as a whole, or whether it is None, and whether that is there where the condition holds."""
    if len(key) > 3 and key[0] == op.COMPARE and key[1] in ("is", "is not") and isinstance(key[2], tuple):
        return key[2], key[1] == "is not"
    return key, True


def _made(owner: ClassInfo, name: str) -> list[tuple[Function, Instruction]]:
    """What makes that which an attribute holds, but None."""
    found = []
    for store in owner.own_stores.get(name, ()):
        function, one = store.function, store.function.definitions[store.value] if store.value >= 0 else None
        parts = one[3:] if one is not None and one[0] == op.PHI else (store.value,)
        definition = ((function, function.definitions[part]) for part in parts if not is_none(function, part))
        found += [(home, each if len(parts) > 1 and each is not None else store.instruction) for home, each in definition]
    return found


def _said_where(function: Function, one: Instruction) -> Iterator[tuple[Key, bool]]:
    """The conditions under which an instruction runs, each with what it says."""
    for asked, holds in conditions(function, function.homes[one][0]):
        key = _of_object(function, alike(function, asked))
        if key is not None:
            yield key, holds


def _of_object(function: Function, key: Key) -> Key | None:
    """A condition on attributes of the object at hand, in terms that its methods share; None where it asks for something else."""
    kept = _kept_in(function).get(key)
    if kept is not None:
        return (op.ATTR, kept, (_OF_OBJECT,))
    if len(key) == 1:
        one = function.definitions[int(str(key[0]))]
        return (_OF_OBJECT,) if one is not None and one[0] == op.PARAM and one[3] == 0 and function.has_receiver else None
    if key[0] not in (op.ATTR, op.COMPARE, op.CONST):
        return None
    inner = [_of_object(function, part) for part in key if isinstance(part, tuple)]
    return None if None in inner else (*(part for part in key[:-1] if not isinstance(part, tuple)), *inner)


def _kept_in(function: Function) -> dict[Key, str]:
    """What a method keeps in its object, by what it was computed from."""
    owner = function.method.owner if function.method is not None else None
    stores = [] if owner is None else [store for each in owner.own_stores.values() for store in each if store.function is function]
    found = {alike(function, store.value): store.name for store in stores if store.value >= 0}
    return {key: name for key, name in found.items() if key[0] != op.CONST}


def _is_settled(owner: ClassInfo, key: Key, homes: set[Function]) -> bool:
    """Whether what a condition asks for is set by a constructor, or where the stream is made, alone."""
    if key[0] == op.ATTR and key[2] == (_OF_OBJECT,):
        stores = owner.own_stores.get(str(key[1]), ())
        return bool(stores) and all(store.function in homes or store.function.code.name == "__init__" for store in stores)
    return all(_is_settled(owner, part, homes) for part in key if isinstance(part, tuple))
