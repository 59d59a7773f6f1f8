"""Lifetimes: where an object that an instruction makes is held, what ends it, and which callers it is passed to.

The names of an object are found without order, function by function: an object that a function hands back, or leaves behind a parameter,
is made by the call, for whoever calls it, and one that a function was given is where that leaves it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Instance, Memory, Site
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.places.flow import BUFFER, Flow, Tracked, summed
from streamlint.ordering.places.lookup import Lookup, roots_of
from streamlint.ordering.places.places import ANY, POINTEE, Key, Place, Places, Root, register_place, rest_behind
from streamlint.ordering.walk.across import as_parameters, given_for, outer_path
from streamlint.ordering.walk.indices import is_range
from streamlint.ordering.walk.replaced import Replacing
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Viewed
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer

_DEEPEST = 9
_MOST_ROUNDS = 6
_MOST_MEMBERS = 2
_THIS = ("parameter", 0)
_LENGTH_OF_SETATTR = 8
Ends = Callable[[Function, Instruction], "Iterator[int]"]
"""The registers of what an instruction ends by itself."""


class Held(NamedTuple):
    """An object that an instruction makes, by itself or through calls that lead to where it is made, the outermost first; and where it is
    held in the function. ``is_owned``: it ends with its last reference. ``is_given``: it is a state of memory that was there before, which
    callers have under the names of what they give."""

    function: Function
    instruction: Instruction
    places: frozenset[Place]
    is_owned: bool
    calls: tuple[Site, ...] = ()
    is_given: bool = False


class End(NamedTuple):
    """What ends an object: an instruction of its function, and the calls that lead from there to the end itself."""

    instruction: Instruction
    calls: tuple[Site, ...]


class _Named:
    """The places of one object, by their roots."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._by_root: dict[Root, set[Tracked]] = {}
        self._fresh: list[Root] = []
        self.count = 0
        self.add(Tracked(BUFFER, place) for place in places)

    def add(self, found: Iterable[Tracked]) -> None:
        """Take more, but for names that lead far around."""
        for each in found:
            if _is_far(each.place):
                continue
            here = self._by_root.get(each.place.root)
            if here is None:
                here = self._by_root[each.place.root] = set()
                self._fresh.append(each.place.root)
            if each not in here:
                here.add(each)
                self.count += 1

    def behind(self, roots: Iterable[Root]) -> frozenset[Tracked]:
        """Those that begin at some roots."""
        return frozenset[Tracked]().union(*(self._by_root.get(root, ()) for root in roots))

    def roots(self) -> list[Root]:
        """Where they begin."""
        return list(self._by_root)

    def fresh(self) -> list[Root]:
        """Where those begin that have come since this was asked last."""
        found, self._fresh = self._fresh, []
        return found

    def places(self) -> frozenset[Place]:
        """All of them."""
        return frozenset(each.place for here in self._by_root.values() for each in here)


class Lifetimes:
    """The lifetimes of one kind of object. ``ends`` tells what an instruction ends."""

    def __init__(self, transfer: Transfer, places: Places, ends: Ends) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places
        self.flow = Flow(places)
        self.replacing = transfer.one_of(Replacing, transfer.facts, places)
        self._ends = ends
        self._inside: dict[Function, dict[tuple[Place, Site], tuple[Site, ...]]] = {}  # by place and end: the calls that lead there
        self._through: dict[tuple[Function, Place], frozenset[Place]] = {}  # what begins at parameters, by all its names
        self._ending: dict[Function, dict[Instruction, list[int]]] = {}
        self._entering: dict[Function, list[tuple[Instruction, Function]]] = {}

    # --- names

    def spread(self, held: Held) -> Held:
        """The object with all its names in the function."""
        function = held.function
        named, is_owned = _Named(held.places), held.is_owned
        for _ in range(_MOST_ROUNDS):
            before = named.count
            for one in self._lookup(function).naming(named.roots(), named.fresh):
                if one[0] == op.SET_ITEM and (is_range(function, one[3]) or self._is_data(function, one[2])):
                    continue
                tracked = named.behind(roots_of(function, self.places, one))
                if not tracked:
                    continue
                named.add(self._after(function, one, tracked))
                if self._is_smart(function, one) and any(self._has(tracked, function, each) for each in one[5:]):
                    named.add([Tracked(BUFFER, register_place(one[2]))])
                    is_owned = True
            if named.count == before:
                break
        return held._replace(places=named.places(), is_owned=is_owned)

    @memoized
    def _lookup(self, function: Function) -> Lookup:
        return Lookup(function, self.places)

    def _after(self, function: Function, one: Instruction, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        yield from self.flow.joined(function, one, tracked) if one[0] == op.PHI else self.flow.after(function, one, tracked, 0)
        for sources, target, keys in self._brought(function, one):
            yield from self.flow.moved(tracked, sources, target, keys)
        if one[0] in CALLING:
            yield from (Tracked(BUFFER, place) for place in self._left(function, one, frozenset(each.place for each in tracked)))

    def _brought(self, function: Function, one: Instruction) -> Iterator[tuple[tuple[Place, ...], Place, tuple[Key, ...]]]:
        """What an instruction brings beyond the flow of objects: views, the elements of joined containers, attributes by their names."""
        if op.DEFINES[one[0]] and one[0] in CALLING | {op.ATTR}:
            for action in self.transfer.of(function, one):
                if isinstance(action, Viewed) and action.register >= 0:
                    yield self.places.names(function, action.register), register_place(one[2]), ()
        for each in summed(function, one) if self._is_joined(function, one) else ():
            yield self.places.names(function, each), register_place(one[2]).behind(ANY), (ANY,)
        if one[0] == op.CALL and len(one) == _LENGTH_OF_SETATTR and function.dotted(one[3]) == "setattr":
            yield self.places.names(function, one[7]), self.places.of(function, one[5]).behind(ANY), ()

    def _left(self, function: Function, one: Instruction, places: frozenset[Place]) -> Iterator[Place]:
        """Where the functions that an instruction enters leave an object that it gives them: in what they give back, in what else they
        were given."""
        for callee in self._entered(function, one):
            for inner in dict.fromkeys(as_parameters(self.places, Site(function, one), callee, places)):
                yield from self._passed_back(Held(callee, one, self._names_of(callee, inner), False), function, one)

    def _names_of(self, function: Function, place: Place) -> frozenset[Place]:
        """All names in a function of what it is given at a place: one place after the other, for sets of them there are many."""
        key = function, place
        if key not in self._through:
            self._through[key] = frozenset({place})  # where the function calls itself
            self._through[key] = self.spread(Held(function, function.by_opcode[op.PARAM][0], frozenset({place}), False)).places
        return self._through[key]

    def _is_joined(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction puts the elements of a container behind those of another one: ``rows += [row]``."""
        parts = summed(function, one) if not function.is_cpp else []
        return bool(parts) and any(isinstance(value, Container) for value in self.transfer.values(function, parts[1]))

    def _is_smart(self, function: Function, one: Instruction) -> bool:
        """C++: whether an instruction makes a pointer that owns what it is given, whatever its type is called."""
        if not function.is_cpp or one[0] not in (op.CONSTRUCT, op.CALL):
            return False
        called = function.definitions[one[3]] if one[0] == op.CALL else None
        if one[0] == op.CALL and (called is None or called[0] != op.NAME):
            return False
        name = type_name(function, one[3]) if called is None else function.text(called[3])
        kind = self.transfer.facts.cpp.resolved(function.unit, scope_of(function), (name, (), 0, False, None))
        return str(kind[0]) in function.unit.models.marked("owner")

    def _is_data(self, function: Function, register: int) -> bool:
        """Whether a register holds a tensor or an array, whose elements are no objects."""
        values = list(self.transfer.values(function, register))
        return bool(values) and all(isinstance(value, Memory) for value in values)

    def _has(self, tracked: frozenset[Tracked], function: Function, register: int) -> bool:
        if register < 0:
            return False
        names = self.places.names(function, register)
        return any(rest_behind(name, each.place) is not None for name in names for each in tracked)

    # --- ends

    def ends(self, held: Held) -> Iterator[End]:
        """What ends an object in its function, through calls too."""
        found = [*self._own_ends(held), *self._inner_ends(held), *self._replaced_ends(held)]
        order = {one: number for number, one in enumerate(held.function.code.instructions())} if len(found) > 1 else {}
        yield from sorted(found, key=lambda end: order.get(end.instruction, 0))

    def _own_ends(self, held: Held) -> Iterator[End]:
        function = held.function
        ending = self._ending.get(function)
        if ending is None:
            ending = {one: list(self._ends(function, one)) for one in function.code.instructions()}
            self._ending[function] = ending = {one: registers for one, registers in ending.items() if registers}
        for one in self._lookup(function).naming({place.root for place in held.places}):
            for register in ending.get(one, ()):
                if self.holds(held, register):
                    yield End(one, ())
            if one[0] == op.DESTROY and held.is_owned and self._owns(held, one[2]) and not self.is_moved(function, one[2]):
                yield End(one, ())

    def _inner_ends(self, held: Held) -> Iterator[End]:
        function = held.function
        entering = self._entering.get(function)
        if entering is None:
            entered = ((one, callee) for one in function.code.instructions() for callee in self._entered(function, one))
            entering = self._entering[function] = [(one, callee) for one, callee in entered if self.ended_inside(callee)]
        for one, callee in entering:
            for place, calls in self.ended_inside(callee):
                if self._is_given(held, one, callee, place):
                    yield End(one, (Site(function, one), *calls))

    def _replaced_ends(self, held: Held) -> Iterator[End]:
        """C++: where something else is put in the place of the object, which is ended then."""
        for one, places, callee, index in self.replacing.of(held.function):
            for place, calls in self.ended_inside(callee):
                names = (name.behind(*place.path) for name in places) if place.root == ("parameter", index) else ()
                if any(rest_behind(name, mine) == () for name in names for mine in held.places):
                    yield End(one, (Site(held.function, one), *calls))

    def holds(self, held: Held, register: int) -> bool:
        """Whether a register holds the object, as far as the names of ``spread`` tell."""
        names = self.places.names(held.function, register)
        return any(rest_behind(name, place) == () or rest_behind(place, name) == () for name in names for place in held.places)

    def _owns(self, held: Held, register: int) -> bool:
        names = self.places.names(held.function, register)
        return any(rest_behind(name, place) is not None for name in names for place in held.places)

    def is_moved(self, function: Function, register: int) -> bool:
        """C++: whether the object at the end of a scope has been moved away, or is an owner that has given up what it owned."""
        one = function.definitions[register] if register >= 0 else None
        if one is not None and self._is_smart(function, one):
            return any(use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "release" for use in function.uses[register])
        return one is not None and one[0] == op.REBIND and self._moves(function, one[3])

    def _moves(self, function: Function, register: int) -> bool:
        one = function.definitions[register]
        return one is not None and any(call.row.effect == "move" for call in self.transfer.modelled(function, one))

    def _is_given(self, held: Held, one: Instruction, callee: Function, place: Place) -> bool:
        """Whether what a callee ends, by its name for it, is the object."""
        if place.root[0] != "parameter":
            return place.root[0] == "global" and place in held.places
        register = given_for(held.function, one, callee, int(str(place.root[1])))
        if register is None or register < 0 or self.is_moved(held.function, register):
            return False
        path = outer_path(self.places, Site(held.function, one), callee, place)
        outer = [name.behind(*path) for name in self.places.names(held.function, register)]
        return any(rest_behind(name, mine) == () for name in outer for mine in held.places)

    def ended_inside(self, function: Function) -> list[tuple[Place, tuple[Site, ...]]]:
        """What of its parameters and globals a function ends, with calls that lead to the end: those of one way to each end."""
        if function not in self._inside:
            self._find_inside(function)
        return [(place, calls) for (place, _), calls in self._inside[function].items()]

    def _find_inside(self, first: Function) -> None:
        """The least fixpoint: what a function ends is ended by all that call it, and by itself where it calls itself."""
        inside, calling = self._inside, defaultdict[Function, list[Site]](list)
        inside[first], waiting, passed = {}, [first], deque[tuple[Function, Place, tuple[Site, ...]]]()
        for function in waiting:
            for one in function.code.instructions():
                site = Site(function, one)
                for register in self._ends(function, one):
                    if (place := self._outer(function, register)) is not None:
                        inside[function][place, site] = (site,)
                for callee in self._entered(function, one):
                    calling[callee].append(site)
                    if callee not in inside:
                        inside[callee] = {}
                        waiting.append(callee)
        passed.extend((function, place, calls) for function in calling | {first: []} for (place, _), calls in inside[function].items())
        while passed:
            callee, inner, calls = passed.popleft()
            for site in calling[callee]:
                outer, way = self._given_to(callee, inner, site), (site, *calls)
                if outer is not None and inside[site.function].setdefault((outer, calls[-1]), way) is way:
                    passed.append((site.function, outer, way))

    def _given_to(self, callee: Function, inner: Place, site: Site) -> Place | None:
        """The place of a parameter of a function as a call has it, if that begins at a parameter or a global of the caller."""
        given = given_for(*site, callee, int(str(inner.root[1]))) if inner.root[0] == "parameter" else None
        outer = self._outer(site.function, given) if given is not None else None
        return outer.behind(*outer_path(self.places, site, callee, inner)) if outer is not None else None

    def _outer(self, function: Function, register: int) -> Place | None:
        """The place of a register, if it begins at a parameter or a global."""
        for _ in range(_DEEPEST):
            place = self.places.of(function, register)
            if place.root[0] in ("parameter", "global"):
                return place
            one = function.definitions[register] if register >= 0 else None
            if one is None or one[0] not in (op.REBIND, op.CALL, op.INVOKE):
                return None
            viewed = [action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed)]
            if one[0] == op.REBIND:
                register = one[5]
            elif viewed:
                register = viewed[0]
            else:
                return None
        return None

    def _entered(self, function: Function, one: Instruction) -> list[Function]:
        """The functions that an instruction enters, destructors among them."""
        if one[0] in (op.DECLARE, op.DELETE):
            name = "__init__" if one[0] == op.DECLARE else "__del__"
            classes = (value.definition for value in self.transfer.values(function, one[2]) if isinstance(value, Instance))
            return [method for each in classes for method in each.methods.get(name, ()) if method.accepts(0)]
        if one[0] not in CALLING:
            return []
        return [edge.callee for edge in self.transfer.edges(function, one) if edge.is_direct]

    # --- callers

    def outside(self, held: Held) -> Iterator[Held]:
        """The object in the functions that call this one, as far as it is passed to them."""
        function = held.function
        if len(held.calls) >= _DEEPEST:
            return
        for caller, call in (*self.starts(function), *self._rounds(function)):
            places = frozenset(self._passed_back(held, caller, call))
            owners = self._owners(held, caller, call)
            if places:
                yield Held(caller, call, places | owners, held.is_owned or bool(owners), (Site(caller, call), *held.calls), held.is_given)

    def _owners(self, held: Held, caller: Function, call: Instruction) -> frozenset[Place]:
        """Python: the object that a call makes, if its constructor is the function and its destructor ends what that has made."""
        if held.function.is_cpp or held.function.code.name != "__init__" or call[0] != op.CALL:
            return frozenset()
        classes = {value.definition for value in self.transfer.values(caller, call[2]) if isinstance(value, Instance)}
        found = (self.facts.hierarchy.lookup(each, "__del__") for each in classes)
        ended = [place for each in found if each is not None for method in each[1] for place, _ in self.ended_inside(method)]
        is_owner = any(place.root == _THIS and rest_behind(place, mine) == () for place in ended for mine in held.places)
        return frozenset({register_place(call[2])}) if is_owner else frozenset()

    def starts(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """The calls that run a function from its beginning."""
        for caller, call in self.facts.call_places(function):
            if call[0] not in (op.NEXT, op.ITER, op.AWAIT) and function in self._entered(caller, call):
                yield caller, call

    def _rounds(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """The instructions that let a generator run on to what it yields next."""
        yield from (place for place in self.facts.resumed_places(function) if place[1][0] == op.NEXT)

    def is_yielded(self, held: Held) -> bool:
        """Whether a generator that the program calls hands an object out, alone or in a tuple."""
        yielded = {("register", one[3]) for one in held.function.by_opcode[op.YIELD]}
        is_higher_order = any(place.root in yielded for place in held.places)
        return is_higher_order and any(True for _ in self.starts(held.function))

    def _passed_back(self, held: Held, caller: Function, call: Instruction) -> Iterator[Place]:
        function, site = held.function, Site(caller, call)
        for place in self._as_returned(held, call) if op.DEFINES[call[0]] else ():
            yield register_place(call[2]).behind(*outer_path(self.places, site, function, place))
        for place in held.places:
            path = outer_path(self.places, site, function, place)
            if place.root[0] == "global":
                yield Place(place.root, path)
            elif place.root[0] == "parameter" and (place.path or held.is_given):
                given = given_for(caller, call, function, int(str(place.root[1])))
                if given is not None and given >= 0:
                    yield from (name.behind(*path) for name in self.places.names(caller, given))

    def _as_returned(self, held: Held, call: Instruction) -> Iterator[Place]:
        """The object by its place in what a call of its function gives, or in what the function yields for the next round."""
        function, is_round = held.function, call[0] == op.NEXT
        registers = [one[3] if is_round else one[2] for one in function.by_opcode[op.YIELD if is_round else op.RETURN]]
        names = (name for register in registers if register >= 0 for name in self.places.names(function, register))
        for name in names:
            rests = ((place, rest_behind(name, place)) for place in held.places)
            yield from (Place(place.root, rest) for place, rest in rests if rest is not None)


def _is_far(place: Place) -> bool:
    """Whether a place leads through many members, or twice through one of the same name: of objects that refer to each other in circles
    there are names without end, and shorter ones for each."""
    members = [key for key in place.path if isinstance(key, str)]
    return len(members) > _MOST_MEMBERS or len(set(members)) < len(members)


def pointees(places: Places, function: Function, register: int) -> frozenset[Place]:
    """The places that a pointer points to, however it was cast."""
    return frozenset(name.behind(POINTEE) for name in places.names(function, register))


def type_name(function: Function, constant: int) -> str:
    """C++: a type by its name, without its arguments."""
    kind = function.unit.ir.constants[constant]
    return str(kind[0] if isinstance(kind, tuple) else kind)


def made_by(places: Places, call: ModelledCall) -> frozenset[Place]:
    """Where a call of a library puts what it makes, by the field ``into`` of its row."""
    into = call.row.get("into")
    if isinstance(into, Selector) and into.kind == "pointee":
        register = call.given(Selector("argument", into.position))
        return pointees(places, call.function, register) if register is not None else frozenset()
    return of_result(call.instruction[2])


def of_result(register: int) -> frozenset[Place]:
    """A register, and what may be unpacked from it."""
    alone = register_place(register)
    return frozenset({alone, alone.behind(ANY)})
