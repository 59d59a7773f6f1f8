"""C++: variables, members and elements as places, and what is stored in them through pointers and references."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import (
    Address,
    Container,
    CppName,
    DeviceValue,
    Elements,
    Group,
    Instance,
    Key,
    LibraryObject,
    Memory,
    Object,
    Site,
)
from streamlint.facts.code.stores import Store
from streamlint.facts.cpp.cpp_types import CppTypes
from streamlint.facts.files.cpp_scopes import Variable, scope_of
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import FieldIR, Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.models import Models
from streamlint.support.memo import memoized

Place = tuple[Function, Instruction]


class CppPlaces(CppTypes):
    """Value flow through memory."""

    def __init__(self, program: Program, models: Models | None = None, cpp_models: Models | None = None) -> None:
        super().__init__(program, models, cpp_models)

    # --- cells: locals that are shared, or whose address is taken

    def _stored(self, home: Frame, name: str, node: Node) -> None:
        super()._stored(home, name, node)
        if home.function.is_cpp:
            constant = (name, home.function.code.number)
            below = home.function.below
            taken = ((one, each) for one in below for each in one.by_opcode[op.ADDRESS] if one.unit.ir.constants[each[3]] == constant)
            self.stored_through(taken, node)

    def stored_through(self, addresses: Iterator[Place], node: Node) -> None:
        """What is stored in a place through its addresses, wherever they go."""
        for function, stored in self.stores_through(addresses):
            frame = self.base(function)
            source = self.register(frame, stored[3])
            place = Site(function, stored)

            def arrived(value: Object, source: Node = source, site: Site = place) -> None:
                if isinstance(value, Address) and value.place is node:
                    self.solver.edge(source, node, site)

            self.solver.when(self.register(frame, stored[2]), arrived)

    def stores_through(self, addresses: Iterator[Place]) -> list[Place]:
        """The instructions that may store something through addresses; calls that are given one are evaluated."""
        raise NotImplementedError

    # --- variables of files and namespaces

    @memoized
    def variable(self, variable: Variable) -> Node:
        """A variable of a file or namespace."""
        return Node(lambda node: self._variable(variable, node))

    def _variable(self, variable: Variable, node: Node) -> None:
        body = variable.unit.body
        kind = variable.unit.ir.globals.get(variable.name)
        value = self.object_of(body, kind, ("variable", variable), True) if kind is not None else None
        if isinstance(value, CppName):  # its type says which function of the driver it leads to
            self.solver.add(node, value)
            return
        for one in body.by_opcode[op.SET_NAME]:
            if body.text(one[2]) == variable.name:
                self.solver.edge(self.register(self.base(body), one[3]), node)
        last = variable.name.rpartition("::")[2]
        for unit in self.cpp.mentioning(last):
            for store in unit.cpp_stores.get(last, ()):
                if store.receiver == op.NONE and self.means(store.function, self._spelled(store), variable):
                    self.solver.edge(self.register(self.base(store.function), store.value), node)
        if value is not None and not isinstance(value, LibraryObject) and value is not self.scalar:
            self.solver.add(node, value)
        self.stored_through(self._addresses(last, variable), node)

    def _spelled(self, store: Store) -> str:
        return store.function.text(store.instruction[2]) if store.instruction[0] == op.SET_NAME else store.name

    def means(self, function: Function, name: str, variable: Variable) -> bool:
        """Whether a name in a function is a variable, and no member or local."""
        return self.member_of(function, name) is None and variable in self.cpp.find(function.unit, scope_of(function), name)

    def _addresses(self, last: str, variable: Variable) -> Iterator[Place]:
        for unit in self.cpp.mentioning(last):
            for function, one in unit.cpp_uses.get(last, ()):
                if one[0] == op.ADDRESS_NAME and self.means(function, function.text(one[3]), variable):
                    yield function, one

    # --- members

    def field_of(self, definition: ClassInfo, name: str) -> tuple[ClassInfo, FieldIR] | None:
        """The data member of a name that objects of a class have, with the class that declares it."""
        for one in self.hierarchy.order(definition):
            for member in one.ir.fields:
                if member.name == name:
                    return one, member
        return None

    def member_of(self, function: Function, name: str) -> ClassInfo | None:
        """The class whose data member a name means: a plain one in a method, or one behind the class's own (``C::x``)."""
        head, is_qualified, last = name.rpartition("::")
        if is_qualified:
            owner = self.cpp.class_named(function.unit, scope_of(function), head)
        else:
            owner = function.method.owner if function.method is not None else None
        found = self.field_of(owner, last) if owner is not None else None
        return found[0] if found is not None else None

    def is_static(self, owner: ClassInfo, name: str) -> bool:
        """Whether a data member is one for all objects."""
        return any(one.static for one in owner.ir.fields if one.name == name)

    def member_at(self, definition: ClassInfo, index: int) -> str | None:
        """The data member that a structured binding takes out of an object by its number."""
        names = [one.name for one in definition.ir.fields if not one.static]
        return names[index] if 0 <= index < len(names) else None

    def member_taken(self, function: Function, one: Instruction) -> str | None:
        """The data member that a statement takes out of what may be an object of one class alone (``auto [a, b] = o``)."""
        found: set[str | None] = set()
        held = self.solver.demand(self.register(self.base(function), one[3]))
        self.solver.solve()
        self.each_pointed(held, lambda value: found.add(self._name_at(value, one[4])))
        self.solver.solve()
        return found.pop() if len(found) == 1 else None

    def _name_at(self, value: Object, index: int) -> str | None:
        return self.member_at(value.definition, index) if isinstance(value, Instance) and value.definition.unit.is_cpp else None

    @memoized
    def field(self, owner: ClassInfo, name: str) -> Node:
        """A data member of all objects of the class that declares it."""
        return Node(lambda node: self._field(owner, name, node))

    def _field(self, owner: ClassInfo, name: str, node: Node) -> None:
        kind = next((one.type for one in owner.ir.fields if one.name == name), None)
        node = self.found_for_field(owner, name, node)
        raw = Node(None)
        for register in owner.assigned.get(name, ()):
            self.solver.edge(self.register(self.base(owner.body), register), raw)
        for unit in self.cpp.mentioning(name):
            for store in unit.cpp_stores.get(name, ()):
                self._stored_in_field(owner, name, store, raw)
            for function, use in self._resets(unit, owner, name) if kind is not None and self.held_type(kind) else ():
                self.solver.edge(self.register(self.base(function), use[6]), raw, Site(function, use))
        if kind is not None:
            value = self.object_of(owner.body, kind, ("field", owner, name), not self._is_only_declared(owner, kind, name))
            is_given = isinstance(value, DeviceValue) and self._is_initialised(owner, name)
            if value is not None and value is not self.scalar and not is_given:
                self.solver.add(node, value)
        self.given_as_field(self.objects(Instance, owner, True), name, raw)
        self.stored_through(self._member_addresses(owner, name), node)
        self.converted(owner.body, kind, raw, node)

    def _is_only_declared(self, owner: ClassInfo, kind: TypeTuple, name: str) -> bool:
        """Whether a member is a pointer to an object of the program that nothing in view assigns: it has the class that is declared."""
        if not kind[2] or owner.assigned.get(name) or any(unit.cpp_stores.get(name) for unit in self.cpp.mentioning(name)):
            return False
        return isinstance(self.named_type(owner.body, kind)[1], ClassInfo)

    def _is_initialised(self, owner: ClassInfo, name: str) -> bool:
        """Whether a constructor in view initialises a member: what has no constructor without arguments is there in no other way."""
        stores = (store for unit in self.cpp.mentioning(name) for store in unit.cpp_stores.get(name, ()))
        return any(store.instruction[0] == op.INIT and self.member_of(store.function, name) is owner for store in stores)

    def _resets(self, unit: Unit, owner: ClassInfo, name: str) -> Iterator[Place]:
        """Where a member that is a smart pointer gets another object: ``member_.reset(p)``."""
        for function, one in unit.cpp_uses.get(name, ()):
            if one[0] == op.NAME and self.member_of(function, function.text(one[3])) is owner:
                yield from ((function, use) for use in function.uses[one[2]] if is_reset(function, use, one[2]))

    def _is_constructed(self, owner: ClassInfo, name: str, store: Store) -> bool:
        """Whether an initialiser gives a member's constructor its arguments, none of which is the member."""
        kind = next((one.type for one in owner.ir.fields if one.name == name), None) if store.instruction[0] == op.INIT else None
        if kind is None:
            return False
        kind, meant = self.named_type(owner.body, kind)
        return isinstance(meant, ClassInfo) and not kind[2] and not kind[3] and kind[4] is None

    def _stored_in_field(self, owner: ClassInfo, name: str, store: Store, node: Node) -> None:
        source = self.register(self.base(store.function), store.value)
        site = Site(store.function, store.instruction)
        if store.receiver == op.NONE or store.instruction[0] == op.INIT:
            if self.member_of(store.function, self._spelled(store)) is owner and not self._is_constructed(owner, name, store):
                self.solver.edge(source, node, site)
            return
        receiver = self.register(self.base(store.function), store.receiver)
        self.each_instance(receiver, lambda held: self._of_class(held, owner, lambda: self.solver.edge(source, node, site)))

    def _of_class(self, value: Instance, owner: ClassInfo, action: Callable[[], None]) -> None:
        if self.hierarchy.derives(value.definition, owner) or self.hierarchy.derives(owner, value.definition):
            action()

    def each_instance(self, node: Node, action: Callable[[Instance], None]) -> None:
        """Run an action for each object of a class that a node holds or points to."""
        self.each_pointed(node, lambda value: action(value) if isinstance(value, Instance) else None)

    def each_pointed(self, node: Node, action: Callable[[Object], None]) -> None:
        """Run an action for all that a node holds or points to. Places may lead to one another in a circle: each is followed once."""
        seen = {node}

        def arrived(value: Object) -> None:
            if not isinstance(value, Address):
                action(value)
            elif value.place not in seen:
                seen.add(value.place)
                self.solver.when(value.place, arrived)

        self.solver.when(node, arrived)

    def _member_addresses(self, owner: ClassInfo, name: str) -> Iterator[Place]:
        for unit in self.cpp.mentioning(name):
            for function, one in unit.cpp_uses.get(name, ()):
                if one[0] == op.ADDRESS_NAME and self.member_of(function, function.text(one[3])) is owner:
                    yield function, one
            for function, one in unit.attribute_uses.get(name, ()):
                if one[0] == op.ADDRESS_ATTR:
                    yield function, one

    # --- what pointers lead to

    def address(self, place: Node, target: Node) -> None:
        """The address of a place arrives at a node."""
        self.solver.add(target, self.objects(Address, place))

    def pointed_to(self, value: Object, target: Node) -> None:
        """What a pointer leads to arrives at a node."""
        if not target.first("pointed", value):
            return
        if isinstance(value, Address):
            self.solver.edge(value.place, target)
        elif isinstance(value, Elements):
            self.solver.edge(self.held_in(value), target)
        elif isinstance(value, Memory):
            self.solver.add(target, value if value.type not in ("pointer", "array") else self.scalar)
        else:
            self.solver.add(target, value)

    def store_through(self, pointer: Node, value: Object, site: Site | None) -> None:
        """An object is stored in each place that a pointer may lead to."""

        def arrived(held: Object) -> None:
            if isinstance(held, Address):
                self.solver.add(held.place, value, None, site)
            elif isinstance(held, Elements):
                self.solver.add(self.held_in(held), value, None, site)

        self.solver.when(pointer, arrived)

    # --- elements

    @memoized
    def held_in(self, value: Elements) -> Node:
        """The elements of a container."""
        return Node(lambda node: self._contents_of(value, node))

    def _contents_of(self, value: Elements, node: Node) -> None:
        """What is put into a container: its first elements, and what is stored in it wherever it goes."""
        raise NotImplementedError

    def element(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        if isinstance(value, Elements):
            self.solver.edge(self.held_in(value), target)
        elif isinstance(value, Address):
            if target.first("element", value, key):
                self.solver.when(value.place, lambda held: self._element_at(held, key, target, site))
        elif isinstance(value, Instance) and isinstance(key, int) and (name := self._name_at(value, key)) is not None:
            found = self.field_of(value.definition, name)
            if found is not None:
                self.solver.edge(self.field(found[0], name), target)
        else:
            super().element(value, key, target, site)

    def _element_at(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        if isinstance(value, (Elements, Container, Group)) or (isinstance(value, Instance) and isinstance(key, int)):
            self.element(value, key, target, site)
        else:
            self.solver.add(target, value)

    def iterated(self, value: Object, target: Node, site: Site | None) -> None:
        if isinstance(value, Elements) and f"std::{value.kind}" in self.cpp_models.marked("mapped"):
            key = Node(None)
            self.unknown(key, "external")
            self.solver.add(target, self.objects(Group, "tuple", (key, self.held_in(value))))
        elif isinstance(value, (Elements, Address)):
            self.element(value, None, target, site)
        else:
            super().iterated(value, target, site)

    def home_of(self, frame: Frame, one: Instruction) -> tuple[object, ...]:
        """What names a container that an instruction makes."""
        return ("made", frame, one)


def is_reset(function: Function, use: Instruction, register: int) -> bool:
    """Whether an instruction gives the smart pointer in a register another object: ``p.reset(q)``."""
    return use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "reset" and len(use) > 6
