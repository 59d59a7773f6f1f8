"""Who owns what a round of a loop makes: where each round has an owner of its own, it ends nothing of the rounds before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.counters import is_counter, iterable_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Site
from streamlint.hazards.every_round import EveryRound
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import Element, Place, Places, cell_of, rest_behind
from streamlint.ordering.walk.across import given_for, outer_path
from streamlint.ordering.walk.lifetimes import End, Held

_FURTHER = ((op.BINARY, "+"), (op.BINARY, "-"))
_KEEPING = frozenset({op.SET_NAME, op.SET_ATTR, op.SET_ITEM, op.SET_DEREF})
_MAKING = frozenset({op.CONSTRUCT, op.NEW, op.DECLARE})


class Owners:
    """Asks for the owners of objects."""

    def __init__(self, rounds: EveryRound, places: Places) -> None:
        self.rounds = rounds
        self.places = places

    def is_of_another_round(self, held: Held, loop: Loop, end: End, is_inside: bool = False) -> bool:
        """Whether a round ends what was there before it makes the object: for each of many owners, of which the round has one. If it
        ``is_inside``, that holds for the rounds of a loop in this one."""
        named = self._named(held, end)
        if not is_inside and self._is_ended(held, end, loop.header):
            return False
        places = named or held.places
        return all(
            self._is_of_round(held.function, loop, each) and not (is_inside and self._is_of_others(held.function, loop, each))
            for each in places
        )

    def _is_of_others(self, function: Function, loop: Loop, place: Place) -> bool:
        """Whether a place is of an element of something that the round of a loop has not put together of what is its own."""
        one = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" else None
        if one is None or one[0] != op.NEXT:
            return False
        over = behind_copies(function, iterable_of(function, one), (op.CAST,))
        made = function.definitions[over] if over >= 0 else None
        if made is None or made[0] != op.BUILD:
            return True
        return not all(self._is_of_round(function, loop, self.places.of(function, part)) for part in made[4:])

    def _is_ended(self, held: Held, end: End, header: int) -> bool:
        """Whether an end may be one of the object itself, before the loop of a header begins its next round."""
        keeping = self._keeping(held, self._named(held, end), end.instruction)
        stops = frozenset(held.function.code.blocks[header][:1] if header != NOBODY else ())
        return any(leads_to(held.function, one, end.instruction, stops) for one in keeping)

    def _keeping(self, held: Held, named: list[Place], end: Instruction) -> list[Instruction]:
        """What puts an object at the places that an end goes by: the end itself, if it ends what stood there before; what makes it, where
        nothing puts it there later."""
        function = held.function
        if replaces(function, end):
            return [end]
        whole = {place._replace(path=place.path[:length]) for place in named for length in range(len(place.path) + 1)}
        roots = {place.root for place in held.places}
        stores = [
            one
            for one in function.code.instructions()
            if one[0] in _KEEPING
            and any(place in whole and ("register", value) in roots for place, value in self.places.assigned(function, one))
        ]
        return stores or [held.instruction]

    def _named(self, held: Held, end: End) -> list[Place]:
        """The places of an object that an end goes by."""
        function, one = held.function, end.instruction
        names = [name for register in op.reads(one) if register >= 0 for name in self.places.names(function, register)]
        names = [target for target, _ in self.places.assigned(function, one)] if one[0] in _KEEPING else names
        return [place for place in held.places if any(rest_behind(name, place) is not None for name in names)]

    def are_new(self, held: Held, function: Function, loop: Loop, made: tuple[Site, ...], ended: tuple[Site, ...]) -> bool:
        """Whether a function first ends what its owner held, and then makes the object, and each round has an owner of its own for it."""
        count = next((number for number, site in enumerate(made) if site.function is held.function), 0)
        if not count or len(ended) <= count:
            return False
        end = End(ended[count].instruction, ())
        inner = next(self.rounds.loops(held.function, made[count].instruction), None)
        if self._is_ended(held, end, inner.header if inner is not None else NOBODY):
            return False
        places = frozenset(self._named(held, end) or held.places)
        for number in range(count - 1, -1, -1):
            site, callee = made[number], made[number + 1].function
            if places and all(self._is_made_here(callee, each) for each in places):
                return True
            if site.instruction[0] in _MAKING and callee.has_receiver:
                return True
            places = frozenset(self._outside(site, callee, places))
        return bool(places) and all(self._is_of_round(function, loop, place) for place in places)

    def _outside(self, site: Site, callee: Function, places: Iterable[Place]) -> Iterator[Place]:
        """Places of a function as its caller has them."""
        for place in places:
            path = outer_path(self.places, site, callee, place)
            if place.root[0] == "parameter":
                given = given_for(site.function, site.instruction, callee, int(str(place.root[1])))
                if given is not None and given >= 0:
                    yield self.places.of(site.function, given).behind(*path)
            elif place.root[0] not in ("register", "cell"):
                yield Place(place.root, path)

    def _is_made_here(self, function: Function, place: Place) -> bool:
        """Whether each call of a function makes the owner at a place."""
        register = behind_copies(function, int(str(place.root[1]))) if place.root[0] == "register" else NOBODY
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] in _MAKING and register not in function.code.statics

    def _is_of_round(self, function: Function, loop: Loop, place: Place) -> bool:
        """Whether a place is another one in each round: of a variable that the round sets first, or an element that the loop counts."""
        body = self.rounds.body(function)
        if any(isinstance(key, Element) and self._is_counted(function, loop, key.key) for key in place.path):
            return True
        if place.root[0] == "cell":
            stores = [one for one in function.by_opcode[op.STORE] if cell_of(function, one[2]).root == place.root]
            return bool(stores) and all(body.home[one] in loop.body for one in stores)
        one = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" else None
        is_static = one is not None and one[2] in function.code.statics
        return one is not None and not is_static and one[0] != op.PHI and body.home[one] in loop.body

    def _is_counted(self, function: Function, loop: Loop, key: object) -> bool:
        """Whether an index is another one in each round of a loop: it counts them from anywhere (``i + 1``), or the loop takes it."""
        if isinstance(key, tuple) and key[:2] in _FURTHER:
            parts = [part for part in key if isinstance(part, tuple)]
            return any(part[0] == op.CONST for part in parts) and any(self._is_counted(function, loop, part) for part in parts)
        body = self.rounds.body(function)
        register = key[0] if isinstance(key, tuple) and len(key) == 1 else NOBODY
        one = function.definitions[register] if isinstance(register, int) and register >= 0 else None
        if one is None or body.graph.innermost[body.home[one]] != body.graph.innermost[loop.header]:
            return False
        if one[0] == op.NEXT:
            return True  # what a loop goes through has each key once
        return is_counter(function, one[2])


def replaces(function: Function, one: Instruction) -> bool:
    """C++: whether an instruction gives what holds an object another one, and so ends the one that stood there before."""
    return function.is_cpp and (one[0] in _KEEPING or (len(one) > 6 and function.invokes(one, "emplaces", "drops-reference")))
