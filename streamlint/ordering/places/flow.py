"""Where an object is after an instruction, if it was at these places before: assignments, containers, loops, unpacking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Memory, Site
from streamlint.facts.values.containers import ends_of
from streamlint.facts.values.language import MAKING_DICTS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.cpp_flow import element_taken, put_together
from streamlint.ordering.places.given_places import PAIR
from streamlint.ordering.places.library_flow import given_by_library, set_by_keywords
from streamlint.ordering.places.places import ADDRESS, ANY, NEWEST, POINTEE, Element, Key, Place, Places, Root, register_place, rest_behind
from streamlint.ordering.places.prepared import kept
from streamlint.ordering.places.queues import aged, is_newest, is_variable, may_be_taken, moved_up, takes_first
from streamlint.waits.operands import argument_registers

BUFFER, STREAM, EVENT, SIGNAL = "buffer", "stream", "event", "signal"
OBJECTS = frozenset({BUFFER, STREAM, EVENT, SIGNAL})
DONE, LATE, STATUS = "done", "late", "status"
"""What a query has said: true once the work is done, true before, or zero once it is."""
SET, FILLED = "set", "filled"
"""What a path has put at a place: something true, something that is not None."""
LEFT, VARIABLE = "left", "variable "
"""Tracked of an iterator: its generator was left at a place. How the key begins of what a variable of that holds."""
UPDATER = "updater"
"""An optimizer that works on the memory."""
REPLACED = "replaced"
"""Something else stands under this key of a container whose elements are the memory, whichever they are."""
EXACT = frozenset({BUFFER, SET, FILLED, REPLACED})
"""Of these one element is not another: where an index cannot be named, nothing is known."""
_SAME = {op.COPY: 3, op.AWAIT: 3, op.CAST: 4, op.REBIND: 5, op.ITER: 3, op.ENTER: 3}
_READ = frozenset({op.ATTR, op.NAME, op.LOAD, op.ITEM, op.DEREF, op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ITEM, op.ADDRESS_ATTR})
_MAKING = frozenset({op.BUILD, op.DICT, op.CONSTRUCT, op.NEW})
_PUTS_TOGETHER = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.BUILD})
SAME_ELEMENTS = frozenset({"list", "tuple", "reversed", "sorted", "iter"})


class Tracked(NamedTuple):
    """An object that is followed, at one place. ``type`` is the library's; ``announced`` is where a view of it for the host was made
    (``x.numpy()``); ``part`` is how far behind the copied range it begins (`parts.Sum`)."""

    kind: str
    place: Place
    type: str = ""
    announced: Site | None = None
    part: tuple[tuple[tuple[object, ...], int], ...] = ()


def is_at(tracked: Collection[Tracked], names: Iterable[Place], *kinds: str) -> bool:
    """Whether something tracked of some kinds stands at one of some places."""
    return any(held.kind in kinds and rest_behind(name, held.place) == () for name in names for held in tracked)


def leads_to(tracked: Collection[Tracked], names: Iterable[Place], *kinds: str) -> bool:
    """Whether something tracked of some kinds stands at one of some places, or inside of what stands there."""
    return any(held.kind in kinds and rest_behind(name, held.place) is not None for name in names for held in tracked)


def summed(function: Function, one: Instruction) -> list[int]:
    """The operands of ``a + b`` and ``a += b``: of lists the elements of both are in the result."""
    return list(one[4:6]) if one[0] in (op.BINARY, op.INPLACE) and function.text(one[3]) == "+" else []


class Flow:
    """Moves tracked objects over instructions."""

    is_of_references = False
    """Whether it is asked what keeps an object, not what is done with it: also functions that give back what they are given count."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.facts = places.facts

    def after(self, function: Function, one: Instruction, tracked: frozenset[Tracked], before: int) -> frozenset[Tracked]:
        """Where the objects are behind an instruction; ``before`` is the number of the edge by which its block was entered."""
        added = set(self._added(function, one, tracked, before))
        added.update(*(self._replaced(function, target, register, tracked) for target, register in self.places.assigned(function, one)))
        if op.DEFINES[one[0]]:
            gone = ("register", one[2])
            tracked = frozenset(held for held in tracked if held.place.root != gone)
        for target, _ in self.places.assigned(function, one):
            if not target.path or not isinstance(target.path[-1], Element) or target.path[-1].key is not None:
                tracked = frozenset(held for held in tracked if not is_exactly(target, held.place))
        return (self._behind(function, one, tracked) if one[0] == op.INVOKE else tracked) | added

    def _behind(self, function: Function, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """Where elements of a container are once one was put in behind them, or the first was taken."""
        if is_newest(function, one) or function.invokes(one, "extends"):
            behind = ((held, aged(self.places, function, one, held.place)) for held in tracked)
            return frozenset(held._replace(place=place) for held, place in behind if place is not None)
        if not takes_first(function, one) or function.text(one[4]) not in function.known("takes"):
            return tracked
        rest = ((held, moved_up(self.places, function, one, held.place)) for held in tracked)
        return frozenset(held._replace(place=place) for held, place in rest if place is not None)

    def moved(self, tracked: Iterable[Tracked], sources: Iterable[Place], target: Place, keys: tuple[Key, ...] = ()) -> Iterator[Tracked]:
        """What is behind some places, behind another one; ``keys`` lead from the sources to where that is."""
        sources = tuple(source.behind(*keys) for source in sources) if keys else tuple(sources)
        for held in tracked:
            for source in sources:
                rest = rest_behind(source, held.place)
                if rest is not None and (rest or held.kind != REPLACED):
                    yield held._replace(place=target.behind(*rest))
                    break
                if source.path and source.path[-1] == ADDRESS and (places := _pointed(source, held.place, target)):
                    yield from (held._replace(place=place) for place in places)
                    break

    def _replaced(self, function: Function, target: Place, register: int, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        """That other things than the memory are put under one key of a container that has it under any."""
        key = target.path[-1] if target.path else None
        if not isinstance(key, Element) or key.key is None or isinstance(key.key, tuple):
            return
        whole = Place(target.root, (*target.path[:-1], ANY))
        if leads_to(tracked, (whole,), BUFFER) and not any(self.moved(tracked, self.places.names(function, register), target)):
            yield Tracked(REPLACED, target)

    def _added(self, function: Function, one: Instruction, tracked: frozenset[Tracked], before: int) -> Iterator[Tracked]:
        opcode, places = one[0], self.places
        for target, register in places.assigned(function, one):
            yield from self.moved(tracked, places.names(function, register), target)
        if opcode in (op.APPEND, op.PUT):
            yield from self.moved(tracked, places.names(function, one[-1]), places.of(function, one[2]).behind(self._key(function, one)))
        if not op.DEFINES[opcode]:
            return
        target = register_place(one[2])
        if function.is_cpp:
            yield from self._of_cpp(function, one, tracked, target)
        if opcode in (op.CALL, op.INVOKE):
            yield from self._called(function, one, tracked, target)
        elif opcode in _MAKING:
            yield from self._gathered(function, tracked, self._parts(function, one, target))
        elif opcode in _READ:
            yield from self._read(function, one, tracked, target)
        elif opcode == op.PHI:
            if 0 <= before < len(one) - 3:
                yield from self.moved(tracked, places.names(function, one[3 + before]), target)
        elif opcode in _SAME:
            yield from self.moved(tracked, places.names(function, one[_SAME[opcode]]), target)
        elif opcode in (op.NEXT, op.UNPACK):
            key, behind = _taken(places, function, one)
            sources = places.names(function, one[3]) if opcode == op.UNPACK else places.ranged(function, one[3])
            yield from self.moved(tracked, sources, target.behind(*behind), (key,))
        if opcode in (op.BINARY, op.INPLACE, op.BUILD):
            yield from self._concatenated(function, one, tracked, target)

    def _read(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """What is read by its name, unless another was put there, and what a slice of a container has of it."""
        source = self.places.of(function, one[2])
        yield from self.moved(tracked, [source] if Tracked(REPLACED, source) not in tracked else (), target)
        inside = self.moved(tracked, self.places.names(function, one[3]), target) if one[0] == op.ITEM else ()
        yield from (held for each in inside if (held := _cut(function, one, each, target)) is not None)

    def _of_cpp(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """What the library of C++ puts together, and the value of an entry of a map, which stands for the entry."""
        places = self.places
        if function.invokes(one, "takes-element") and not function.invokes(one, "takes", "ends"):
            yield from self.moved(tracked, places.names(function, one[3]), target, element_taken(places, function, one))
        elif one[0] in _PUTS_TOGETHER:
            for register, keys, stands in put_together(places, function, one, target):
                yield from self.moved(tracked, places.names(function, register), stands, keys)
        elif (one[0] == op.ATTR and function.text(one[4]) == PAIR[1]) or (one[0] == op.UNPACK and one[4:6] == (1, 2)):
            yield from self._of_entry(function, one, tracked, target)
        elif one[0] == op.DEREF:  # the members of what a pointer leads to are known as behind the pointer
            behind = self.moved(tracked, places.names(function, one[3]), target)
            yield from (held for held in behind if isinstance(key := (*held.place.path, ANY)[0], str) and key != POINTEE)

    def _of_entry(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """The second part of a pair; the value of an entry of a map stands for the entry."""
        places = self.places
        entry = places.names(function, one[3])
        is_pair = leads_to(tracked, (name.behind(part) for name in entry for part in PAIR), *{held.kind for held in tracked})
        value = [name.behind(PAIR[1]) for name in entry] if one[0] == op.UNPACK else []
        for each in dict.fromkeys((target, places.of(function, one[2]))):  # what is inside is known by both names
            yield from self.moved(tracked, value if is_pair else entry, each)

    def _concatenated(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """Elements of lists that become those of another: ``[*a, *b]``, ``a + b``, ``a += b``. A sum of memory is other memory."""
        if one[0] == op.BUILD:
            kind = function.unit.ir.constants[one[3]]
            parts = [one[4 + index] for index in kind[1]] if isinstance(kind, tuple) else []
        else:
            parts = summed(function, one)
            if not any(map(partial(self._is_made_container, function), parts)):
                tracked = frozenset(held for held in tracked if held.kind not in EXACT)
        targets = (target, self.places.of(function, one[4])) if parts and one[0] == op.INPLACE else (target,)
        for part in parts if tracked else ():
            for each in targets:
                yield from self.moved(tracked, self.places.names(function, part), each.behind(ANY), (ANY,))

    def _parts(self, function: Function, one: Instruction, target: Place) -> Iterator[tuple[int, Place]]:
        """The registers that a container or object is made of, each with its place in it."""
        if one[0] == op.BUILD:
            is_record = function.is_cpp and self.facts.brace_lists.record(function, one) is not None
            yield from ((register, target.behind(Element(index))) for index, register in enumerate(one[4:]) if not is_record)
        elif one[0] == op.DICT:
            for key, value in zip(one[3::2], one[4::2], strict=False):
                yield value, target.behind(self.places.element(function, key)) if key != op.NONE else target
        else:
            for field, register in zip(self.places.members(function, one), one[5:], strict=False):
                yield register, target.behind(field)

    def _gathered(self, function: Function, tracked: frozenset[Tracked], parts: Iterable[tuple[int, Place]]) -> Iterator[Tracked]:
        """What the parts of a container bring into it, each to its place. A literal may have thousands: they are found by their roots."""
        by_root: dict[Root, list[Tracked]] = {}
        for held in tracked:
            by_root.setdefault(held.place.root, []).append(held)
        for register, target in parts:
            for name in self.places.names(function, register):
                yield from self.moved(by_root.get(name.root, ()), (name,), target)

    def joined(self, function: Function, phi: Instruction, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        """What all edges together bring to where they meet: of thousands, each brings what begins at its own register."""
        yield from self._gathered(function, tracked, ((register, register_place(phi[2])) for register in dict.fromkeys(phi[3:])))

    def _key(self, function: Function, one: Instruction) -> Element:
        """Where a comprehension puts what a round has made: under the key of each, all rounds do the same."""
        constant = function.constant(one[3]) if one[0] == op.PUT else None
        return ANY if constant is None else Element(constant)

    def _called(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """Methods and functions that keep, take out and pass on elements of containers."""
        places = self.places
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2]
        yield from self._passed(function, one, tracked, target)
        if (inside := owned(function, one)) is not None:
            owner = places.of(function, one[3]) if name == "reset" else target
            yield from self.moved(tracked, places.names(function, inside), owner)
            return
        yield from self._recorded(function, one, tracked, target)
        given = [register for _, register in argument_registers(function, one)]
        if given and self.is_of_references and name in function.known("same-object"):
            yield from self.moved(tracked, places.names(function, given[-1]), target)
        elif one[0] == op.INVOKE:
            yield from self._of_method(function, one, name, given, tracked)
        elif name in function.known("zips"):
            for index, register in enumerate(given):
                yield from self._generators(tracked, places.names(function, register), target)
                yield from self.moved(tracked, places.names(function, register), target.behind(ANY, Element(index)), (ANY,))
        elif name in MAKING_DICTS - function.known("namespace"):
            yield from self._of_dict(function, one, tracked, target)
        elif given:
            yield from self._of_function(function, name, tracked, places.names(function, given[0]), target)

    def _passed(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """What an object keeps until it is called, and what functions of the library pass on."""
        for sources, stands in kept(self.places, function, one, target):
            yield from self.moved(tracked, sources, stands)
        for sources, stands, keys in given_by_library(self.places, function, one, target):
            yield from self.moved(tracked, sources, stands, keys)
        for source, stands in set_by_keywords(self.places, function, one, {held.place for held in tracked}):
            yield from (held._replace(place=stands) for held in tracked if held.place == source)

    def _of_function(
        self, function: Function, name: str, tracked: frozenset[Tracked], sources: tuple[Place, ...], target: Place
    ) -> Iterator[Tracked]:
        """What functions give of the elements of their first argument."""
        if name in SAME_ELEMENTS or name in function.known("whole"):
            yield from self.moved(tracked, sources, target)
        elif name in ("all", "any"):
            answer = DONE if name == "all" else LATE
            yield from (held for held in self.moved(tracked, sources, target, (ANY,)) if held.kind == answer)
        elif name == "enumerate":
            yield from self._generators(tracked, sources, target)
            yield from self.moved(tracked, sources, target.behind(ANY, Element(1)), (ANY,))
        elif name == "next":
            yield from self.moved(tracked, sources, target, (ANY,))

    def _generators(self, tracked: frozenset[Tracked], sources: tuple[Place, ...], target: Place) -> Iterator[Tracked]:
        """The generator of an iterator, for what goes through that."""
        for held in self.moved(tracked, sources, target):
            key = held.place.path[len(target.path)] if len(held.place.path) > len(target.path) else None
            if held.kind == LEFT if key is None else isinstance(key, str) and key.startswith(VARIABLE):
                yield held

    def _of_dict(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """``dict(pairs, key=value)``: the elements of another dict or of pairs, and each keyword's value."""
        for kind, register in argument_registers(function, one):
            names = self.places.names(function, register)
            if isinstance(kind, str):
                yield from self.moved(tracked, names, target if kind.startswith("*") else target.behind(Element(kind)))
                continue
            for held in self.moved(tracked, names, target):
                is_pair = len(held.place.path) > len(target.path) + 1 and held.place.path[len(target.path) + 1] == Element(1)
                yield held._replace(place=target.behind(ANY, *held.place.path[len(target.path) + 2 :])) if is_pair else held

    def _puts(self, function: Function, one: Instruction, name: str) -> bool:
        """Whether a method puts what it is given into a container, or into what holds one object at a time."""
        if name in function.known("sets-variable") and is_variable(self.places, function, one):
            return True
        return name in function.known("puts") and self._is_container(function, one[3])

    def _of_method(
        self, function: Function, one: Instruction, name: str, given: list[int], tracked: frozenset[Tracked]
    ) -> Iterator[Tracked]:
        """What methods put into a container, and take out of it."""
        places, target = self.places, register_place(one[2])
        receiver = places.names(function, one[3])
        if self._puts(function, one, name):
            key = NEWEST if is_newest(function, one) else ANY
            for register in given:
                yield from self.moved(tracked, places.names(function, register), places.of(function, one[3]).behind(key))
        elif name in function.known("extends"):
            yield from self._extended(function, one, name, given, tracked)
        elif name in function.known("takes", "ends"):
            yield from self._put_if_absent(function, one, name, given, tracked)
            looked_up = given[0] if given and name in function.known("looks-up", "pops-key") else None
            yield from self._taken(function, one, looked_up, tracked)
        elif name in function.known("gives-entries", "gives-values"):
            keys = (Element(1),) if function.invokes(one, "gives-entries") else ()
            yield from self.moved(tracked, receiver, target.behind(ANY, *keys), (ANY,))
        elif name in SAME_ELEMENTS or name in function.known("whole") or (name == "result" and self._is_outcome(function, one)):
            yield from self.moved(tracked, receiver, target)

    def _extended(
        self, function: Function, one: Instruction, name: str, given: list[int], tracked: frozenset[Tracked]
    ) -> Iterator[Tracked]:
        """The elements of others that a method puts into a container."""
        whole = self.places.of(function, one[3])
        if name in function.known("puts-entries"):
            yield from self._of_dict(function, one, tracked, whole)
            return
        for register in given:
            yield from self.moved(tracked, self.places.names(function, register), whole.behind(ANY), (ANY,))

    def _put_if_absent(
        self, function: Function, one: Instruction, name: str, given: list[int], tracked: frozenset[Tracked]
    ) -> Iterator[Tracked]:
        """What a method puts under a key where nothing is."""
        if name in function.known("puts-if-absent") and len(given) > 1:
            stands = self.places.of(function, one[3]).behind(self.places.element(function, given[0]))
            yield from self.moved(tracked, self.places.names(function, given[1]), stands)

    def _taken(self, function: Function, one: Instruction, looked_up: int | None, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        """The element that a method takes out of a container, by its key or not, unless another was put in its place."""
        key = self.places.element(function, looked_up) if looked_up is not None else ANY
        sources = [each for each in self.places.names(function, one[3]) if Tracked(REPLACED, each.behind(key)) not in tracked]
        if takes_first(function, one):
            key, tracked = ANY, frozenset(held for held in tracked if may_be_taken(self.places, function, one, held.place))
        yield from self.moved(tracked, sources, register_place(one[2]), (key,))

    def _recorded(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        """What a record is made of, each to its field."""
        for field, register in self.places.records.given(function, one):
            index = self.places.records.of(function, one).index(field)
            for key in (field, Element(index)):
                yield from self.moved(tracked, self.places.names(function, register), target.behind(key))

    def _is_outcome(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives what a function has returned that a thread has run: the object in hand stands for that as well."""
        return any(row.effect == "block" and row.get("what") == "result" for row in self.facts.rows(function, one))

    def _is_made_container(self, function: Function, register: int) -> bool:
        """Whether a register holds a container of the program, and no memory."""
        values = self.facts.values(function, register).values
        return any(isinstance(value, Container) for value in values) and not any(isinstance(value, Memory) for value in values)

    def _is_container(self, function: Function, register: int) -> bool:
        values = self.facts.values(function, register).values
        return not values or any(isinstance(value, Container) or type(value).__name__ in ("Elements", "Unknown") for value in values)


def owned(function: Function, one: Instruction) -> int | None:
    """C++: the register of what an owner, such as a smart pointer, is given, gives, or is made of."""
    if not function.is_cpp or one[0] not in (op.CALL, op.INVOKE):
        return None
    name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3])
    given = [register for _, register in argument_registers(function, one)]
    if one[0] == op.INVOKE:
        if name == "reset" and given:
            return given[0]
        return one[3] if name in ("get", "release") and not given else None
    return given[0] if name in function.unit.ir.aliases and len(given) == 1 else None


def _pointed(source: Place, held: Place, target: Place) -> tuple[Place, ...]:
    """C++: where what stands at a place, or behind it, is found by a pointer to the place: ``p->x`` is a member of what it leads to,
    ``p[n].x`` of a parameter one of an element of the container that the pointer leads into."""
    rest = rest_behind(Place(source.root, source.path[:-1]), held)
    if rest is None:
        return ()
    is_given = target.root[0] == "parameter" and len(source.path) > 1 and isinstance(source.path[-2], Element)
    inside = (target.behind(ANY, *rest),) if is_given else ()
    return (target.behind(*rest) if rest and isinstance(rest[0], str) else target.behind(POINTEE, *rest), *inside)


def _cut(function: Function, one: Instruction, held: Tracked, target: Place) -> Tracked | None:
    """What stands at an element of a container, in a slice of it that is written out with numbers (``items[1:-1]``)."""
    rest = held.place.path[len(target.path) :]
    definition = function.definitions[one[4]] if one[4] >= 0 else None
    ends = ends_of(function, definition) if definition is not None and definition[0] == op.SLICE and not function.is_cpp else None
    if ends is None or not rest or not isinstance(rest[0], Element):
        return None
    key, first, last = rest[0].key, ends.start or 0, ends.stop
    if key is None:
        return held
    if not isinstance(key, int) or key < 0 or (first >= 0 and key < first) or (last is not None and 0 <= last <= key):
        return None
    return held._replace(place=target.behind(Element(key - first) if first >= 0 else ANY, *rest[1:]))


def is_exactly(target: Place, held: Place) -> bool:
    """Whether a place is another one, or a part of it, by the same keys."""
    return target.root == held.root and held.path[: len(target.path)] == target.path


def _taken(places: Places, function: Function, one: Instruction) -> tuple[Key, tuple[Element, ...]]:
    """The key of what an instruction takes out of a container, and what leads there behind it: the rest of a starred target is a list."""
    if one[0] != op.UNPACK:
        return ANY, ()
    is_counted = one[6] == op.NONE or one[4] < one[6]
    return places.part(function, one) if is_counted else ANY, (ANY,) if one[4] == one[6] else ()
