"""Places: how code names an object, from a register, parameter, cell or global over attributes and elements.

Two places with equal keys are the same object as long as nothing is assigned in between; `flow` follows what is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import COPIES, assigned_at_once, element_given, uncast
from streamlint.facts.code.objects import Constant, Container, Group, Instance, LibraryObject
from streamlint.facts.code.passing import attribute_of
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.c_api import taken_apart
from streamlint.ordering.places.class_attributes import ClassAttributes
from streamlint.ordering.places.getters import Getters
from streamlint.ordering.places.given_places import is_value, leads_inside, static_local, takes_element
from streamlint.ordering.places.old_values import OldValues
from streamlint.waits.indices import is_gathered
from streamlint.waits.questions import alike
from streamlint.waits.record_fields import RecordFields

MOST_KEYS = 5
"""Attributes and elements on the way to an object that are distinguished."""


class Element(NamedTuple):
    """An element of a container: a constant index, the expression of the index, or None for any."""

    key: object


ANY = Element(None)
NEWEST = Element(("newest",))
"""What was put into a container last: any element, but where the first of several is taken."""
TUPLE = "tuple"
"""Begins the key of an index that is a tuple; its parts follow, each a constant or an expression."""
ASIDE = "aside"
"""Begins the root of a place by the names of a caller on the path: those of the function at hand say nothing of it."""
ADDRESS = "&"
"""The key of a pointer to a place: what is behind it is the place itself."""
POINTEE = "*"
_ADDRESSED = {op.ADDRESS_NAME: op.NAME, op.ADDRESS: op.LOAD, op.ADDRESS_ATTR: op.ATTR, op.ADDRESS_ITEM: op.ITEM}
"""By opcode that takes an address: the one that reads what is there."""
ARROW = "operator->"
BEGIN = "begin"
_METHODS = {
    op.INVOKE: (),
    op.CALL: ("operator()",),
    op.DEREF: ("operator*",),
    op.ATTR: (ARROW,),
}
"""C++: by opcode of what may run a method of an object, the operators that it may be."""
Key = str | Element
Root = tuple[object, ...]


class Place(NamedTuple):
    """``root`` is ``("register", n)``, ``("parameter", n)``, ``("cell", name, owner, file)`` or ``("global", file, name)``; ``path``
    leads on: an attribute's name, or an `Element`. An owner is the number of its code, a file that of its unit."""

    root: Root
    path: tuple[Key, ...] = ()

    def behind(self, *keys: Key) -> Place:
        """A place that keys lead to from here."""
        if POINTEE not in keys and not (keys and self.path and self.path[-1] == ADDRESS):
            return Place(self.root, (self.path + keys)[:MOST_KEYS])
        path = self.path
        for key in keys:
            path = _pointed_to(path[:-1], key) if path and path[-1] == ADDRESS else (*path, key)
        return Place(self.root, path[:MOST_KEYS])


def _pointed_to(path: tuple[Key, ...], key: Key) -> tuple[Key, ...]:
    """Behind a pointer to a place: the place itself, a member of it, another element of the container that it is an element of."""
    if not isinstance(key, Element):
        return path if key == POINTEE else (*path, key)
    if path and isinstance(path[-1], Element):
        return path if key.key == 0 else (*path[:-1], ANY)
    return path if key.key == 0 else (*path, ADDRESS, key)


OWN = Place(("parameter", 0))
"""The object of a method."""


def register_place(register: int) -> Place:
    """The place of a register alone."""
    return Place(("register", register))


def cell_of(function: Function, constant: int) -> Place:
    """The place of a cell that a constant of a function's file names."""
    return Place(("cell", *function.unit.ir.constants[constant], function.unit.number))


def object_of(function: Function) -> Place:
    """What a method of C++, or a lambda in one, has for its object."""
    method = function.method
    return OWN if method is None or method is function else in_lambdas(method)


def in_lambdas(method: Function) -> Place:
    """What the lambdas in a method of C++ have for its object."""
    return Place(("this", method.code.number, method.unit.number))


def is_object(root: Root) -> bool:
    """Whether a root is the object of a method, there or in a lambda in it."""
    return root == OWN.root or root[0] == "this"


def is_own_cell(root: Root, function: Function) -> bool:
    """Whether a root is a cell of a function itself, not of one around it."""
    return root[0] == "cell" and root[2:] == (function.code.number, function.unit.number)


def is_around(root: Root, function: Function) -> bool:
    """Whether a root is a cell of a function around another one."""
    return root[0] == "cell" and not is_own_cell(root, function)


def rest_behind(outer: Place, inner: Place) -> tuple[Key, ...] | None:
    """The keys that lead from one place to another; None where the second is not behind the first."""
    length = len(outer.path)
    if outer.root != inner.root or length > len(inner.path):
        return None
    rest = inner.path[length:]
    return rest if not length or inner.path[:length] == outer.path or all(map(meets, outer.path, inner.path)) else None


def meets(first: Key, second: Key) -> bool:
    """Whether two keys may mean the same: any element meets each, equal terms meet; all else is disjoint."""
    if first == second:
        return True
    if not isinstance(first, Element) or not isinstance(second, Element):
        return False
    return first.key is None or second.key is None or NEWEST in (first, second)


class Places:
    """The places of a program's registers."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[Function, dict[int, Place]] = {}
        self._apart: dict[Function, dict[object, int]] = {}
        self.records = RecordFields(facts)
        self._old = OldValues()
        self._global: dict[tuple[Unit, str], Place] = {}
        self.getters = Getters(self)
        self._class_attributes = ClassAttributes(facts)

    def of(self, function: Function, register: int) -> Place:
        """Where the value of a register is found: by the names that it was read by."""
        known = self._known.setdefault(function, {})
        found = known.get(register)
        if found is None:
            known[register] = register_place(register)  # a cycle of registers ends here
            found = known[register] = self._find(function, register)
        return found

    def names(self, function: Function, register: int) -> tuple[Place, ...]:
        """The register alone, and where its value is found."""
        alone, found = register_place(register), self.of(function, register)
        return (alone,) if alone == found or self.is_old(function, register) else (alone, found)

    def is_old(self, function: Function, register: int) -> bool:
        """Whether a register holds what an attribute of the receiver has held before it was set anew."""
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.ATTR and self._old.is_old(function, one)

    def _find(self, function: Function, register: int) -> Place:
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return register_place(register)
        if (same := self._same(function, one)) is not None:
            return self.of(function, same)
        if (given := self._given(function, one)) is not None:
            return given
        opcode = one[0]
        if opcode == op.UNPACK:
            return self._unpacked(function, one)
        if function.is_cpp and opcode in _METHODS and (led := self._of_cpp(function, one)) is not None:
            return led
        if opcode == op.DEREF:
            return self.of(function, one[3]).behind(POINTEE)
        if opcode == op.PHI:
            return self._given_on(function, register) if function.is_cpp else self._bound(function, register, one)
        named = self._named(function, one, _ADDRESSED.get(opcode, opcode))
        if named is None:
            return register_place(register)
        return named.behind(ADDRESS) if opcode in _ADDRESSED else named

    def _of_cpp(self, function: Function, one: Instruction) -> Place | None:
        """C++: the object that a call gives a reference to, that an operator of a class leads to, or that an `std::optional` holds."""
        if one[0] in (op.CALL, op.INVOKE) and (led := self._led_to(function, one)) is not None:
            return led
        if is_value(self.facts, function, one):
            return self._pointee(function, self.of(function, one[3]))
        if (given := self._given_back(function, one)) is not None:
            return given.behind(function.text(one[4])) if one[0] == op.ATTR else given
        is_held = one[0] == op.DEREF and self.facts.brace_lists.is_holder(function, one[3])
        return self.of(function, one[3]) if is_held else None

    def _same(self, function: Function, one: Instruction) -> int | None:
        """The register whose value an instruction gives another name."""
        if one[0] in COPIES:
            return one[COPIES[one[0]]]
        if one[0] == op.ENTER:
            return one[3] if self._is_itself(function, one) else None
        if one[0] == op.INVOKE and function.is_cpp and function.invokes(one, "address"):  # the handle that a smart pointer holds
            held = self.facts.values(function, one[2]).values
            return one[3] if any(isinstance(value, LibraryObject) for value in held) else None
        return assigned_at_once(function, one) if one[0] == op.UNPACK else None

    def _given(self, function: Function, one: Instruction) -> Place | None:
        """The place of what a function is given: a parameter, its object, or in C++ an argument that the C API has taken out of a tuple."""
        if one[0] == op.PARAM:
            return Place(("parameter", one[3]))
        if one[0] in (op.CALL, op.INVOKE) and not function.is_cpp:
            lookup = self._by_function if one[0] == op.CALL else self._looked_up
            return lookup(function, one) or self.getters.given(function, one)
        if one[0] == op.UNDEF and function.is_cpp and function.method is not None:
            return self.of_name(function, function.text(one[3]))  # a member that the initialisers of a constructor name
        index = self._argument(function, one) if one[0] == op.LOAD else None
        return Place(("parameter", 1), (Element(index),)) if index is not None else None

    def _by_function(self, function: Function, one: Instruction) -> Place | None:
        """What the language gives of an object: ``super()`` itself, ``getattr(o, "x")`` its attribute, where only one name is known."""
        if function.has_receiver and function.dotted(one[3]) == "super":
            return Place(("parameter", 0))
        if (asked := attribute_of(function, one)) is None:
            return None
        names = {value.value for value in self.facts.values(function, asked[1]).values if isinstance(value, Constant)}
        return self.of(function, asked[0]).behind(*str(names.pop()).split(".")) if len(names) == 1 else None

    def _looked_up(self, function: Function, one: Instruction) -> Place | None:
        """Python: the element that a method of a dictionary gives and leaves there: ``held.setdefault("events", []).append(event)``."""
        if len(one) < 7 or function.text(one[4]) not in function.known("looks-up"):
            return None
        held = self.facts.values(function, one[3]).values
        is_dict = any(isinstance(value, Container) and value.kind == "dict" for value in held)
        return self.of(function, one[3]).behind(self.element(function, one[6])) if is_dict else None

    def _led_to(self, function: Function, one: Instruction) -> Place | None:
        """C++: where a call leads: to the one object that a function keeps, or to an element of a container."""
        if (name := static_local(self.facts, function, one)) is not None:
            return Place(("global", -1, name))
        is_inside = one[0] == op.INVOKE and leads_inside(self.facts, function, one)
        if not is_inside and (one[0] != op.INVOKE or not takes_element(self.facts, function, one)):
            return None
        key = self.element(function, one[6]) if len(one) > 6 else ANY
        return self._pointee(function, self.of(function, one[3])).behind(key, *((ADDRESS,) if is_inside else ()))

    def _unpacked(self, function: Function, one: Instruction) -> Place:
        """A part of what has a name: ``slot, sent = ring[turn]``."""
        whole = self.of(function, one[3])
        is_named = one[6] == op.NONE and (whole.path or whole.root[0] != "register")
        return whole.behind(self.part(function, one)) if is_named else register_place(one[2])

    def part(self, function: Function, one: Instruction) -> Key:
        """The key of a part that a statement takes out of a tuple; C++: of an object of a class, the member in its place."""
        name = self.facts.member_taken(function, one) if function.is_cpp and one[6] == op.NONE else None
        return Element(one[4]) if name is None else name

    def _given_back(self, function: Function, one: Instruction) -> Place | None:
        """C++: the object of a method, or the member of it, that the only method that can run gives back:
        ``buffer.data()``, ``*stream``; of a reference to an element, what the element is of."""
        if one[0] != op.INVOKE and not any(map(self.facts.program.defines, _METHODS[one[0]])):
            return None
        entered = self.facts.callee_functions(function, one)
        callees = [callee for callee in entered if (callee.code.name == ARROW) == (one[0] == op.ATTR)]
        path = self._returned(callees[0]) if len(callees) == 1 else None
        return None if path is None else self.receiver(function, one).behind(*path)

    def receiver(self, function: Function, one: Instruction) -> Place:
        """C++: the object whose member or method an instruction names: also that to which the object's `operator->` leads."""
        place = self._pointee(function, self.of(function, one[3]))
        is_behind = one[0] == op.INVOKE and self.facts.program.defines(ARROW)
        arrows = [each for each in self.facts.callee_functions(function, one) if each.code.name == ARROW] if is_behind else []
        given = self._returned(arrows[0]) if len(arrows) == 1 else None
        return place if given is None else place.behind(*given)

    def _returned(self, method: Function, is_inside: bool = False) -> tuple[Key, ...] | None:
        """C++: the keys that lead from an object to the member that a method of it gives back, or of which it gives an element
        (``is_inside``); None of any other method."""
        ends = method.by_opcode[op.RETURN]
        given = self.of(method, ends[0][2]) if len(ends) == 1 and ends[0][2] >= 0 else None
        if given is None or given.root != OWN.root or not method.has_receiver:
            return None
        path = tuple(key for key in given.path if key not in (ADDRESS, POINTEE))
        if path and isinstance(path[-1], Element) and (is_inside or element_given(method) is not None):
            path = path[:-1]
        return None if any(isinstance(key, Element) for key in path) else path

    def converted(self, function: Function, register: int, callee: Function, index: int) -> Place | None:
        """C++: the member that an object is converted to for a parameter which is no object of a class."""
        kind = callee.code.parameters[index].type if function.is_cpp and index < len(callee.code.parameters) else None
        if kind is None or isinstance(self.facts.named_type(callee, kind)[1], ClassInfo):
            return None
        methods = {method for value in self.facts.values(function, register).values for method in self.facts.conversions(value)}
        path = self._returned(methods.pop()) if len(methods) == 1 else None
        return None if path is None else self._pointee(function, self.of(function, register)).behind(*path)

    def ranged(self, function: Function, register: int) -> tuple[Place, ...]:
        """The names of what a loop goes through: of an object of the program in C++, the member that its ``begin`` leads into."""
        names, iterator = self.names(function, register), function.definitions[register] if register >= 0 else None
        if not function.is_cpp or iterator is None or iterator[0] != op.ITER or not self.facts.program.defines(BEGIN):
            return names
        objects = [value for value in self.facts.values(function, iterator[3]).values if isinstance(value, Instance)]
        methods = {method for value in objects for method in self.facts.overloads(value.definition, BEGIN)}
        path = self._returned(methods.pop(), True) if len(methods) == 1 else None
        return names if path is None else tuple(name.behind(*path) for name in names)

    def _is_itself(self, function: Function, one: Instruction) -> bool:
        """Whether entering a scope gives the object of a library that is entered: ``with self.streams[0] as stream``."""
        if not any(use[0] != op.EXIT for use in function.uses[one[2]]):
            return False
        entered, given = (set(self.facts.values(function, each).values) for each in (one[3], one[2]))
        return bool(given) and given <= entered and all(isinstance(value, LibraryObject) for value in given)

    def _named(self, function: Function, one: Instruction, opcode: int) -> Place | None:
        """The place of a name, a variable, an attribute or an element."""
        if opcode == op.NAME:
            return self.of_name(function, function.text(one[3]))
        if opcode == op.LOAD:
            is_this = function.is_cpp and function.unit.ir.constants[one[3]][0] == "this"
            return object_of(function) if is_this else cell_of(function, one[3])
        if opcode == op.ATTR:
            return self._forwarded(function, one) or self.member(function, one[3], function.text(one[4]))
        is_part = opcode == op.ITEM and not (is_gathered(self.facts, function, one) or self._is_cut(function, one))
        return self.of(function, one[3]).behind(self.element(function, one[4])) if is_part else None

    def _is_cut(self, function: Function, one: Instruction) -> bool:
        """Python: whether an element by a slice is another container, whose elements have places of their own."""
        index = function.definitions[one[4]] if one[4] >= 0 and not function.is_cpp else None
        if index is None or index[0] != op.SLICE:
            return False
        return any(isinstance(value, (Container, Group)) for value in self.facts.values(function, one[3]).values)

    def _given_on(self, function: Function, register: int) -> Place:
        """C++: a parameter that a loop hands to calls in each round, which might be given a reference to it."""
        leaves: set[int] = set()
        seen = {register}
        waiting = [register]
        for each in waiting:
            one = function.definitions[each] if each >= 0 else None
            behind = one[3:] if one is not None and one[0] == op.PHI else one[5:6] if one is not None and one[0] == op.REBIND else ()
            leaves |= set() if behind else {each}
            waiting += [other for other in behind if other not in seen]
            seen.update(behind)
        leaf = function.definitions[leaves.pop()] if len(leaves) == 1 and min(leaves) >= 0 else None
        return self.of(function, leaf[2]) if leaf is not None and leaf[0] == op.PARAM else register_place(register)

    def _bound(self, function: Function, register: int, phi: Instruction) -> Place:
        """A variable that one way alone binds was bound there wherever it is read: else reading it is an error."""
        definition = ((each, function.definitions[each]) for each in dict.fromkeys(phi[3:]) if each != register)
        bound = [each for each, one in definition if one is None or one[0] != op.UNDEF]
        place = self.of(function, bound[0]) if len(bound) == 1 else register_place(register)
        return place if place.root[0] != "register" else register_place(register)

    def _argument(self, function: Function, one: Instruction) -> int | None:
        """C++: which argument of Python's a variable holds that a function of the C API has put there."""
        if not function.is_cpp:
            return None
        if function not in self._apart:
            self._apart[function] = taken_apart(self.facts, function)
        return self._apart[function].get(function.unit.ir.constants[one[3]])

    def _pointee(self, function: Function, base: Place) -> Place:
        """C++: ``p->x`` and ``o.x`` are the same member, however ``o`` was passed."""
        if function.is_cpp and base.path and base.path[-1] == ADDRESS:
            return base.behind(POINTEE)
        return base

    def member(self, function: Function, register: int, name: str) -> Place:
        """An attribute of what a register holds: of a file of the program, its global name."""
        base = self.of(function, register)
        unit = self.getters.module(function, register) if base.root[0] == "global" and not base.path and not function.is_cpp else None
        if unit is not None:
            return self.of_name(unit.body, name)
        owner = self._class_attributes.owner(function, base, register, name)
        return self.of_name(owner.unit.body, owner.name).behind(name) if owner is not None else self._pointee(function, base).behind(name)

    def _forwarded(self, function: Function, one: Instruction) -> Place | None:
        """What ``__getattr__`` takes of an object that the object at hand holds."""
        path = self.getters.forwarded(function, one) if not function.is_cpp else None
        return None if path is None else self.of(function, one[3]).behind(*path, function.text(one[4]))

    def element(self, function: Function, register: int) -> Element:
        """An index as a key."""
        register = uncast(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.BUILD and function.text(one[3]) == "tuple":
            return Element((TUPLE, *(self.element(function, part).key for part in one[4:])))
        constant = function.constant(register)
        if constant is None and one is not None and one[0] in (op.ATTR, op.NAME) and not function.is_cpp:
            constant = self.getters.fixed_key(function, register)
        return Element(constant if constant is not None else alike(function, register))

    def of_name(self, function: Function, name: str) -> Place:
        """A global name, or in C++ a member of the receiver."""
        if function.is_cpp:
            owner, last = self.facts.member_of(function, name), name.rpartition("::")[2]
            if owner is None:
                return Place(("global", -1, name))
            if function.method is not None and not self.facts.is_static(owner, last):
                return object_of(function).behind(last)
            return Place(("global", -1, f"{owner.ir.qualname}::{last}"))
        found = self._global.get((function.unit, name))
        if found is None:
            found = self._global[function.unit, name] = self._of_global(function.unit, name)
        return found

    def _of_global(self, unit: Unit, name: str) -> Place:
        """A global name of the file that makes it, whichever files import it from one another."""
        for _ in range(4):
            definition = (holder.definitions[register] for holder, register in unit.globals.get(name, ()))
            taken = next((one for one in definition if one is not None and one[0] == op.IMPORT and one[4] != op.NONE), None)
            target = self.facts.program.imported(unit.body.text(taken[3]), unit) if taken is not None else None
            if taken is None or target is None:
                break
            unit, name = target, unit.body.text(taken[4])
        return Place(("global", unit.number, name))

    def members(self, function: Function, one: Instruction) -> Iterator[str]:
        """C++: the members that a list of initialisers gives values, of a class without constructor."""
        for value in list(self.facts.values(function, one[2]).values):
            if isinstance(value, Instance) and not value.definition.methods.get("__init__"):
                yield from (member.name for member in value.definition.ir.fields if not member.static)
                return

    def assigned(self, function: Function, one: Instruction) -> Iterator[tuple[Place, int]]:
        """The places that an instruction assigns a register to."""
        opcode = one[0]
        if opcode == op.STORE:
            yield cell_of(function, one[2]), one[3]
        elif opcode == op.SET_NAME:
            yield self.of_name(function, function.text(one[2])), one[3]
        elif opcode == op.SET_ATTR:
            yield self.member(function, one[2], function.text(one[3])), one[4]
        elif opcode == op.INIT and len(one) > 5:
            yield self.of(function, one[2]).behind(function.text(one[3])), one[5]
        elif opcode == op.SET_ITEM:
            yield self.of(function, one[2]).behind(self.element(function, one[3])), one[4]
        elif opcode == op.CALL and len(one) == 8 and function.dotted(one[3]) == "setattr" and not function.is_cpp:
            if isinstance(name := function.constant(one[6]), str):
                yield self.of(function, one[5]).behind(name), one[7]
        elif opcode == op.SET_DEREF:
            yield self.of(function, one[2]).behind(POINTEE), one[3]
