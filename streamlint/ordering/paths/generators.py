"""Generators that stand still between two values: where they go on, and what their variables hold until then.

The iterator stands for the generator: behind it is what is tracked in its variables, and where it was left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.places.flow import BUFFER, LEFT, VARIABLE, Tracked
from streamlint.ordering.places.origins import YIELDED, Origins
from streamlint.ordering.places.places import ANY, Key, Place, register_place, rest_behind
from streamlint.support.memo import memoized

if TYPE_CHECKING:
    from streamlint.ordering.paths.states import State
    from streamlint.ordering.walk.walk_calls import Calls

IN_HAND = "in hand"
"""The type of what says that a generator was left, before its first value was taken."""
STILL = Tracked(LEFT, Place(("global", "still")))
"""Tracked on the way to who takes a value: a path goes there even with nothing but what is in variables of the generator."""
_ENDS = (op.YIELD, op.YIELD_FROM)
_MOST_ENDS = 3
"""Places at which a generator may have been left, beyond which nothing is known of one that was begun before the path."""
_DEEPEST = 3


class Taking(NamedTuple):
    """An instruction that takes the next value of a generator, and the registers of the iterator and of what has made that."""

    one: Instruction
    iterator: int
    source: int


def local(register: int) -> str:
    """The key of a variable of a generator. No attribute is called so."""
    return f"{VARIABLE}{register}"


def taking(function: Function, one: Instruction) -> Taking | None:
    """The iterator of which an instruction takes a value: of a loop, ``next``, or of a generator that hands on the values of another."""
    if function.is_cpp:
        return None
    if one[0] in (op.NEXT, op.YIELD_FROM):
        definition = function.definitions[one[3]] if one[3] >= 0 else None
        return Taking(one, one[3], definition[3] if definition is not None and definition[0] == op.ITER else one[3])
    is_next = one[0] == op.CALL and len(one) > 5 and last_name(function, one) == "next"
    return Taking(one, one[5], one[5]) if is_next else None


class Generators:
    """The generators of a walk."""

    def __init__(self, walk: Calls) -> None:
        self.walk = walk

    @cached_property
    def _origins(self) -> Origins:
        return self.walk.transfer.one_of(Origins, self.walk.transfer, self.walk.places)

    def _run(self, function: Function, taken: Taking) -> list[Function]:
        """The generators that go on where a value is taken."""
        transfer = self.walk.transfer
        edges = (edge for edge in transfer.edges(function, taken.one) if edge.is_direct)
        found = dict.fromkeys((*(edge.callee for edge in edges), *transfer.facts.resumed(transfer.values(function, taken.source))))
        return [each for each in found if any(each.by_opcode[opcode] for opcode in _ENDS)]

    def _making(self, function: Function, taken: Taking, generator: Function) -> Instruction:
        """The call that has given a generator its arguments, as far as the function shows it; else what takes a value."""
        definition = function.definitions[taken.source] if taken.source >= 0 else None
        is_call = definition is not None and definition[0] in (op.CALL, op.INVOKE)
        if definition is not None and is_call and any(edge.callee is generator for edge in self.walk.transfer.edges(function, definition)):
            return definition
        return taken.one

    # --- where a generator is left

    def left(self, at: Instruction, state: State, iterator: int, is_in_hand: bool) -> Iterator[Tracked]:
        """What is tracked of a generator by the names of who has the iterator, once it has given a value."""
        here = register_place(iterator)
        yield Tracked(LEFT, here, IN_HAND if is_in_hand else "", Site(state.frame.function, at))
        for held in state.tracked:
            if held.place.root[0] == "register":
                yield held._replace(place=here.behind(local(int(str(held.place.root[1]))), *held.place.path))

    def known(self, state: State, one: Instruction) -> tuple[Taking | None, list[Tracked]]:
        """The iterator of which an instruction takes a value, and where the generators behind it were left."""
        taken = taking(state.frame.function, one)
        names = self._names(state.frame.function, taken) if taken is not None else ()
        return taken, [held for held in state.tracked if held.kind == LEFT and held.place in names]

    def _names(self, function: Function, taken: Taking) -> tuple[Place, ...]:
        places = self.walk.places
        return tuple(dict.fromkeys((*places.names(function, taken.iterator), *places.names(function, taken.source))))

    def in_hand(self, tracked: frozenset[Tracked], marks: Iterable[Tracked]) -> frozenset[Tracked]:
        """What is tracked once the value has been taken that generators have given: they are to give another one."""
        sites = {mark.announced for mark in marks}
        every = {held.place for held in tracked if held.kind == LEFT and held.announced in sites}
        return frozenset(
            held._replace(type="") if held.kind == LEFT and held.announced in sites else held
            for held in tracked
            if not any(rest_behind(place.behind(ANY), held.place) is not None for place in every)
        )

    def resumed(self, state: State, taken: Taking, marks: Iterable[Tracked]) -> Iterator[State]:
        """The generators behind an iterator, where they were left."""
        frame = state.frame
        for mark in marks:
            if mark.announced is None or frame.runs(mark.announced.function):
                continue
            generator, at = mark.announced
            own = set(self._variables(state, mark))
            every = {held.place for held in state.tracked if held.kind == LEFT and held.announced == mark.announced}
            rest = frozenset(held for held in state.tracked if not any(_is_of(place, held.place) for place in every))
            making = self._making(frame.function, taken, generator)
            given = self.walk.given_to(state._replace(tracked=rest), making, generator)
            block, place = generator.homes[at]
            inner = Frame(generator, frame, taken.one, frame.depth + 1)
            tracked = given | own
            is_mine = any(held.place.root[0] != "aside" and (held.kind == BUFFER or not self.walk.meets_memory) for held in tracked)
            if is_mine or self.walk.may_order(generator):
                yield state._replace(frame=inner, block=block, place=place + (at[0] == op.YIELD), before=0, tracked=tracked)

    def _variables(self, state: State, mark: Tracked) -> Iterator[Tracked]:
        """What the variables of a generator hold that was left."""
        for held in state.tracked:
            rest = rest_behind(mark.place, held.place)
            if rest and isinstance(rest[0], str) and rest[0].startswith(VARIABLE):
                yield held._replace(place=Place(("register", int(rest[0].split()[1])), rest[1:]))

    def goes_on(self, state: State, condition: int) -> bool:
        """Whether a loop asks an iterator for more that was left in a generator which may order something before it ends."""
        function = state.frame.function
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or one[0] != op.MORE:
            return False
        names = self.walk.places.names(function, one[3])
        marks = (held.announced for held in state.tracked if held.kind == LEFT and held.place in names)
        return any(site is not None and self.walk.may_order(site.function) for site in marks)

    # --- generators that were begun before the path

    def begun(self, state: State) -> State:
        """A state with the generators that have given a value before, and the memory that they gave by their own names."""
        function, added = state.frame.function, set[Tracked]()
        for taken, generators in self._taken(function):
            if not self._is_before(function, taken.one, state.block, state.place):
                continue
            here = register_place(taken.iterator)
            if any(held.kind == LEFT and held.place == here for held in state.tracked):
                continue
            for generator in generators:
                ends = [one for opcode in _ENDS for one in generator.by_opcode[opcode]]
                if len(ends) <= _MOST_ENDS:
                    added.update(each for at in ends for each in self._stand(function, taken, generator, at, state, here))
        return state._replace(tracked=state.tracked | added) if added else state

    @memoized
    def _taken(self, function: Function) -> list[tuple[Taking, list[Function]]]:
        calls = [one for opcode in (op.NEXT, op.CALL) for one in function.by_opcode[opcode]] if not function.is_cpp else []
        found = [(taken, self._run(function, taken)) for one in calls if (taken := taking(function, one)) is not None]
        return [each for each in found if each[1]]

    def _is_before(self, function: Function, one: Instruction, block: int, place: int) -> bool:
        """Whether an instruction has run on all ways to a place."""
        home, index = function.homes[one]
        return index < place if home == block else function.control.dominates(home, block)

    def _stand(
        self, function: Function, taken: Taking, generator: Function, at: Instruction, state: State, here: Place
    ) -> Iterator[Tracked]:
        marks = list(self._marks(generator, at, here, _DEEPEST))
        given = [held for held in state.tracked if held.kind == BUFFER and held.place.root[0] == "register"] if marks else []
        yield from marks
        for held in given:
            register = int(str(held.place.root[1]))
            for place in self._origins.of(function, register):
                if place.root == ("register", taken.iterator) and place.path[:1] == (YIELDED,):
                    names = self._given_names(function, taken, generator, at, place.path[1:], here, _DEEPEST)
                    yield from (held._replace(place=name.behind(*held.place.path)) for name in names)

    def _marks(self, generator: Function, at: Instruction, here: Place, depth: int) -> Iterator[Tracked]:
        """That a generator was left at a place, and the one to which it hands on."""
        yield Tracked(LEFT, here, "", Site(generator, at))
        taken = taking(generator, at) if at[0] == op.YIELD_FROM and depth else None
        for inner in self._run(generator, taken) if taken is not None else ():
            for end in (one for opcode in _ENDS for one in inner.by_opcode[opcode]):
                yield from self._marks(inner, end, here.behind(local(at[3])), depth - 1)

    def _given_names(
        self, function: Function, taken: Taking, generator: Function, at: Instruction, path: tuple[Key, ...], here: Place, depth: int
    ) -> Iterator[Place]:
        """The names, for who has the iterator, of what a generator gives where it was left."""
        for name in self._own_names(generator, at, path, depth):
            root = name.root
            if root[0] == "register":
                yield here.behind(local(int(str(root[1]))), *name.path)
            elif root[0] == "parameter":
                making = self._making(function, taken, generator)
                for source in self.walk.sources(function, making, generator, int(str(root[1]))):
                    yield source.behind(*name.path)

    def _own_names(self, generator: Function, at: Instruction, path: tuple[Key, ...], depth: int) -> Iterator[Place]:
        """The names that a generator has for what it gives at a place, or another one by it."""
        if at[0] == op.YIELD:
            register = self._origins.inside(generator, at[3], path) if at[3] >= 0 else None
            yield from self.walk.places.names(generator, register) if register is not None and register >= 0 else ()
            return
        taken = taking(generator, at) if depth else None
        if taken is not None:
            inner = ((each, end) for each in self._run(generator, taken) for opcode in _ENDS for end in each.by_opcode[opcode])
            for each, end in inner:
                yield from self._given_names(generator, taken, each, end, path, register_place(at[3]), depth - 1)


def _is_of(iterator: Place, held: Place) -> bool:
    """Whether something is known of a generator that stands still: where, or what its variables hold."""
    rest = rest_behind(iterator, held)
    return rest is not None and (not rest or (isinstance(rest[0], str) and rest[0].startswith(VARIABLE)))
