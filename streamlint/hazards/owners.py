"""Who owns what a round of a loop makes: where each round has an owner of its own, it ends nothing of the rounds before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.counters import is_counter
from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.hazards.every_round import EveryRound
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.across import given_for, outer_path
from streamlint.ordering.choice import behind_copies
from streamlint.ordering.leading import leads_to
from streamlint.ordering.lifetimes import End, Held
from streamlint.ordering.places import Element, Place, Places, cell_of, rest_behind

_FURTHER = ((op.BINARY, "+"), (op.BINARY, "-"))
_MAKING = frozenset({op.CONSTRUCT, op.NEW, op.DECLARE})


class Owners:
    """Asks for the owners of objects."""

    def __init__(self, rounds: EveryRound, places: Places) -> None:
        self.rounds = rounds
        self.places = places

    def is_of_another_round(self, held: Held, loop: Loop, end: End) -> bool:
        """Whether a round ends what was there before it makes the object: for each of many owners, of which the round has one."""
        if leads_to(held.function, held.instruction, end.instruction, loop.header):
            return False
        return all(self._is_of_round(held.function, loop, place) for place in self._named(held, end) or held.places)

    def _named(self, held: Held, end: End) -> list[Place]:
        """The places of an object that an end goes by."""
        names = [name for register in op.reads(end.instruction) if register >= 0 for name in self.places.names(held.function, register)]
        return [place for place in held.places if any(rest_behind(name, place) is not None for name in names)]

    def are_new(self, held: Held, function: Function, loop: Loop, made: tuple[Site, ...], ended: tuple[Site, ...]) -> bool:
        """Whether a function first ends what its owner held, and then makes the object, and each round has an owner of its own for it."""
        count = next((number for number, site in enumerate(made) if site.function is held.function), 0)
        if not count or len(ended) <= count or leads_to(held.function, made[count].instruction, ended[count].instruction):
            return False
        places = frozenset(self._named(held, End(ended[count].instruction, ())) or held.places)
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
        return one is not None and one[0] in _MAKING

    def _is_of_round(self, function: Function, loop: Loop, place: Place) -> bool:
        """Whether a place is another one in each round: of a variable that the round sets first, or an element that the loop counts."""
        body = self.rounds.body(function)
        if any(isinstance(key, Element) and self._is_counted(function, loop, key.key) for key in place.path):
            return True
        if place.root[0] == "cell":
            stores = [one for one in function.by_opcode[op.STORE] if cell_of(function, one[2]).root == place.root]
            return bool(stores) and all(body.home[one] in loop.body for one in stores)
        one = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" else None
        return one is not None and one[0] != op.PHI and body.home[one] in loop.body

    def _is_counted(self, function: Function, loop: Loop, key: object) -> bool:
        """Whether an index counts the rounds of a loop, from wherever it begins: ``i``, ``i + 1``."""
        if isinstance(key, tuple) and key[:2] in _FURTHER:
            parts = [part for part in key if isinstance(part, tuple)]
            return any(part[0] == op.CONST for part in parts) and any(self._is_counted(function, loop, part) for part in parts)
        body = self.rounds.body(function)
        register = key[0] if isinstance(key, tuple) and len(key) == 1 else NOBODY
        one = function.definitions[register] if isinstance(register, int) and register >= 0 else None
        if one is None or body.graph.innermost[body.home[one]] != body.graph.innermost[loop.header]:
            return False
        return is_counter(function, body.graph, body.home, one[2])
