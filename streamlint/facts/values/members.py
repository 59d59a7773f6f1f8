"""Members of objects: attributes and methods."""

from __future__ import annotations

import builtins

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import is_dictionary
from streamlint.facts.code.language_members import _OF_CONTAINERS, _OF_SCALARS
from streamlint.facts.code.objects import (
    Activation,
    BoundMethod,
    BoundPartial,
    ClassObject,
    Constant,
    Container,
    DeviceValue,
    External,
    FunctionObject,
    Group,
    Instance,
    Key,
    LibraryObject,
    Many,
    Memory,
    ModuleObject,
    Object,
    PartialMethod,
    Rest,
    Scalar,
    Site,
    SomeClass,
    SuperObject,
    Unknown,
    Varargs,
)
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import ExternalName
from streamlint.facts.values.containers import Containers
from streamlint.facts.values.frames import Arguments
from streamlint.facts.values.nodes import Node
from streamlint.ir import opcodes as op

LONGEST_NAME = 6
"""Parts of a dotted name of a library."""
MOST_DEFINERS = 200
"""Overriding methods of a name that a call may enter."""
ELEMENT_TYPE = "numpy.dtype.kind"
"""What stands for the type of a tensor's elements: a name of a library that is no device."""
ADDRESS = "ctypes.c_void_p"
"""The type of addresses."""


class Members(Containers):
    """Value flow of members."""

    def member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        """A member of an object arrives at a node."""
        if not target.first("member", value, name):
            return
        place = (site or target.site) if name == "dtype" else None  # in C++ it is a method
        if place is not None and not place.function.is_cpp and isinstance(value, (Memory, Unknown)):
            self.solver.add(target, self.objects(External, ELEMENT_TYPE, None))
        elif isinstance(value, (Instance, ClassObject, ModuleObject, SuperObject)):
            self._program_member(value, name, target, site)
        elif isinstance(value, External):
            self._external_member(value, name, target)
        elif isinstance(value, Many):
            self.through(value, ("member", name), lambda one, node: self._member_of_one(one, value, name, node), target)
        elif isinstance(value, (Memory, LibraryObject, DeviceValue)):
            self.library_member(value, name, target)
        elif isinstance(value, (Container, Varargs, Rest, Group)):
            self._container_member(value, name, target, site)
        elif isinstance(value, (Scalar, Constant)):
            if name in _OF_SCALARS:
                self.solver.add(target, self.objects(External, f"builtins.scalar.{name}", self.scalar))
        elif isinstance(value, Activation):
            self.solver.add(target, self.objects(External, f"builtins.activation.{name}", value))
        else:
            self._other_member(value, name, target)

    def _other_member(self, value: Object, name: str, target: Node) -> None:
        """A member of what is not known, or of a function: of a function of C that calls it, the address (``cast(f, c_void_p).value``)."""
        is_address = isinstance(value, (FunctionObject, BoundMethod)) and self.models.member(ADDRESS, name) is not None
        if isinstance(value, Unknown) or is_address:
            self.solver.add(target, value)
        else:
            self.unknown(target, "dynamic")

    def _program_member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        """A member of an object, a class or a file of the program."""
        if isinstance(value, Instance):
            self._instance_member(value, name, target, site)
        elif isinstance(value, ClassObject):
            self._class_member(value, name, target, site)
        elif isinstance(value, ModuleObject):
            self._module_member(value, name, target)
        elif isinstance(value, SuperObject):
            self._super_member(value, name, target, site)

    def _external_member(self, value: External, name: str, target: Node) -> None:
        """A member of a name of a library or of the language."""
        root = getattr(builtins, value.name.partition(".")[0], None)
        is_unknown = value.receiver is not None or value.name == ELEMENT_TYPE or (root is not None and not hasattr(root, name))
        if is_unknown or value.name.count(".") >= LONGEST_NAME:  # a loop that walks along an attribute
            self.unknown(target, "external")
        elif not self.library_constant(f"{value.name}.{name}", target):
            self.solver.add(target, self.objects(External, f"{value.name}.{name}", None))

    def _container_member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        is_variable = isinstance(value, Container) and value.kind == "variable"
        if name in _OF_CONTAINERS or is_variable:
            self.solver.add(target, self.objects(External, f"builtins.container.{name}", value))
        elif isinstance(value, Container) and value.kind == "modules":
            self.modules_member(value, name, target)
        elif isinstance(value, Container) and value.kind == "dict" and not self._is_plain(value):  # the attributes of a namespace
            self.element(value, name, target, site)

    def _is_plain(self, value: Container) -> bool:
        """Whether a dictionary is Python's own: it has no attributes."""
        return value.instruction[0] == op.BUILD or is_dictionary(value.frame.function, value.instruction)

    def modules_member(self, value: Container, name: str, target: Node) -> None:
        """A member of a list of modules that is no list's: it is a module itself."""
        raise NotImplementedError

    def _member_of_one(self, one: Object, value: Many, name: str, node: Node) -> None:
        """A member of one of many. What their classes do not have is looked up in libraries for all of them."""
        if isinstance(one, (Instance, ClassObject)) and not self.hierarchy.has_member(one.definition, name):
            for library in self.hierarchy.libraries(one.definition)[:1] or ["object"]:
                if self.models.method(library, name) or self.models.member(library, name):
                    self.solver.add(node, self.objects(External, f"{library}.{name}", value))
                else:
                    self.unknown(node, "external")
        else:
            self.member(one, name, node, None)

    def library_member(self, value: Object, name: str, target: Node) -> None:
        """A member of a library's object."""
        raise NotImplementedError

    def class_of(self, value: Object) -> ClassObject:
        """The class of an object; a class is given back."""
        if isinstance(value, ClassObject):
            return value
        assert isinstance(value, Instance)
        return self.objects(ClassObject if value.exact else SomeClass, value.definition)

    def _instance_member(self, value: Instance, name: str, target: Node, site: Site | None) -> None:
        if name == "__class__":
            self.solver.add(target, self.class_of(value))
            return
        self.solver.edge(self.attribute(value, name), target)
        found = self._looked_up(value.definition, name, value, target, site, self.hierarchy.order(value.definition))
        definers = self.hierarchy.definers(value.definition, name) if not value.exact else []
        for definition in definers if len(definers) <= MOST_DEFINERS else ():
            found |= self._looked_up(definition, name, self.objects(Instance, definition, False), target, site, [definition])
        if not found and not self.asked_for(value, name, target, site):
            self._inherited(value, name, target)

    def asked_for(self, value: Instance, name: str, target: Node, site: Site | None) -> bool:
        """Whether ``__getattr__`` is asked for what an object does not have."""
        raise NotImplementedError

    def described(self, value: Instance, receiver: Object, definition: ClassInfo, target: Node, site: Site | None) -> None:
        """A descriptor of a class is asked for its value."""
        raise NotImplementedError

    def members_begun(self, value: Object, prefix: str, target: Node, site: Site | None) -> None:
        """The members of an object whose names begin so arrive at a node."""
        if isinstance(value, ModuleObject):
            names = [name for name in value.unit.globals if name.startswith(prefix)]
        elif isinstance(value, (Instance, ClassObject)):
            names = self.hierarchy.members_begun(value.definition, prefix, derived=isinstance(value, Instance) and not value.exact)
        else:
            names = []
        for name in names:
            self.member(value, name, target, site)

    def definitions_of(self, value: Object, target: Node) -> None:
        """The functions and classes that a file defines arrive at a node, and those that a package takes from its files: one of them is
        taken by a name that is one of many."""
        if not isinstance(value, ModuleObject):
            self.unknown(target, "dynamic")
            return
        for name in value.unit.defined:
            self._module_member(value, name, target)
        for name in self.taken_by_package(value.unit):
            self.solver.when(self.global_name(value.unit, name), lambda held: self._defined(held, target))

    def _defined(self, value: Object, target: Node) -> None:
        if isinstance(value, (ClassObject, FunctionObject)):
            self.solver.add(target, value)

    def possible_classes(self, value: Instance) -> list[ClassInfo]:
        """The classes that an object may have."""
        if value.exact:
            return [value.definition]
        return self.hierarchy.cone(value.definition) or [value.definition]

    def _looked_up(
        self, definition: ClassInfo, name: str, receiver: Object, target: Node, site: Site | None, order: list[ClassInfo]
    ) -> bool:
        """A member that a class or one of its bases defines, bound to its receiver."""
        for one in order:
            if name in one.methods or name in one.assigned:
                for method in one.methods.get(name, ()):
                    if not self.is_wrapped(method):
                        self.bind(self.function_object(method, None), receiver, definition, target, site)
                if name in one.assigned and (name not in one.methods or any(map(self.is_wrapped, one.methods[name]))):
                    node = self.class_attribute(one, name)
                    self.solver.when(node, lambda held: self._from_class(held, receiver, definition, target, site))
                return True
        return False

    def is_wrapped(self, method: Function) -> bool:
        """Whether a decorator of the program stands around a method. One of a library gives back what behaves like the method."""
        return any(
            not name or any(not isinstance(meant, ExternalName) for meant in self.scopes.find(method.unit, name))
            for name in method.decorators
        )

    def _from_class(self, value: Object, receiver: Object, definition: ClassInfo, target: Node, site: Site | None) -> None:
        if isinstance(value, FunctionObject) and not isinstance(receiver, ClassObject):
            self.bind(value, receiver, definition, target, site)
        elif isinstance(value, PartialMethod) and not isinstance(receiver, ClassObject):
            bound = Node(None)
            self._from_class(value.callee, receiver, definition, bound, site)
            self.solver.when(bound, lambda held: self.solver.add(target, self.objects(BoundPartial, held, value.arguments)))
        elif isinstance(value, Many) and value.kind == "function":
            what = ("bound", receiver, definition)
            self.through(value, what, lambda one, node: self._from_class(one, receiver, definition, node, None), target)
        elif isinstance(value, Instance) and self.has_method(value, "__get__"):
            self.described(value, receiver, definition, target, site)
        else:
            self.solver.add(target, value)

    def bind(self, method: FunctionObject, receiver: Object, definition: ClassInfo, target: Node, site: Site | None) -> None:
        """A function found in a class arrives as what it is for a receiver: bound, static, or the value of a property."""
        function = method.function
        if function.is_static:
            self.solver.add(target, method)
        elif function.is_class_method:
            bound = self.class_of(receiver) if isinstance(receiver, (Instance, ClassObject)) else self.objects(ClassObject, definition)
            self.solver.add(target, self.objects(BoundMethod, method, bound))
        elif function.is_property and not isinstance(receiver, ClassObject):
            arguments = self.no_arguments(site)
            self.enter(method, receiver, arguments, target)
        elif isinstance(receiver, ClassObject):
            self.solver.add(target, method)
        else:
            self.solver.add(target, self.objects(BoundMethod, method, receiver))

    def no_arguments(self, site: Site | None, key: Key | None = None) -> Arguments:
        """The arguments of a call without any, or with a key alone."""
        found = self._no_arguments.get((site, key))
        if found is None:
            found = self._no_arguments[site, key] = Arguments(None, site)
            found.positional += [self.holding(self.objects(Constant, key))] if key is not None else ()
        return found

    def enter(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A function of the program is called, and its result arrives at a node."""
        raise NotImplementedError

    def _inherited(self, value: Instance, name: str, target: Node) -> None:
        """A member of the library's class that a class of the program derives from."""
        libraries = self.hierarchy.libraries(value.definition)
        is_set = any(name in one.own_stores for one in self.hierarchy.order(value.definition))
        for library in libraries:
            if not is_set and (itself := self.models.member(library, name)) is not None and itself.effect == "same":
                self.solver.add(target, value)
                return
            row = self.models.method(library, name) or self.models.member(library, name)
            if row is not None:
                self.solver.add(target, self.objects(External, f"{library}.{name}", value))
                return
        if is_set:
            return
        named = [library for library in libraries if library not in self.models.marked("plain-base")]
        if named:
            self.solver.add(target, self.objects(External, f"{named[0]}.{name}", value))

    def _class_member(self, value: ClassObject, name: str, target: Node, site: Site | None) -> None:
        if name == "__subclasses__":
            self.solver.add(target, self.objects(External, "builtins.class.__subclasses__", value))
            return
        definition = value.definition
        order = self.hierarchy.order(definition)
        found = self._looked_up(definition, name, value, target, site, order)
        definers = self.hierarchy.definers(definition, name) if isinstance(value, SomeClass) else []
        for one in definers if len(definers) <= MOST_DEFINERS else ():
            found |= self._looked_up(one, name, self.objects(SomeClass, one), target, site, [one])
        if found:
            return
        if self.of_metaclass(value, name, target, site):
            return
        for inner in definition.unit.classes:
            if inner.ir.name == name and any(inner.ir.parent == one.ir.body for one in order if one.unit is inner.unit):
                self.solver.add(target, self.objects(ClassObject, inner))
                return
        self.solver.edge(self.attribute(self.objects(Instance, definition, True), name), target)
        for library in self.hierarchy.libraries(definition):
            self.solver.add(target, self.objects(External, f"{library}.{name}", value))

    def of_metaclass(self, value: ClassObject, name: str, target: Node, site: Site | None) -> bool:
        """Whether the metaclass of a class defines a member; it arrives at a node."""
        raise NotImplementedError

    def _module_member(self, value: ModuleObject, name: str, target: Node) -> None:
        self.solver.edge(self.global_name(value.unit, name), target)

    def _super_member(self, value: SuperObject, name: str, target: Node, site: Site | None) -> None:
        receiver = value.receiver
        start = receiver.definition if isinstance(receiver, (Instance, ClassObject)) else value.after
        order = self.hierarchy.order(start)
        behind = order[order.index(value.after) + 1 :] if value.after in order else self.hierarchy.order(value.after)[1:]
        if not self._looked_up(start, name, receiver, target, site, behind):
            for library in self.hierarchy.libraries(value.after):
                self.solver.add(target, self.objects(External, f"{library}.{name}", receiver))

    def stored_outside(self, value: Instance, name: str, node: Node) -> None:
        order = self.hierarchy.order(value.definition)
        for unit in self.nearest(name, value.definition.unit.path):
            for store in unit.attribute_stores.get(name, ()):
                receiver = self.register(self.base(store.function), store.receiver)
                stored = self.register(self.base(store.function), store.value)

                def arrived(held: Object, stored: Node = stored) -> None:
                    if isinstance(held, Many):
                        self.when_related(held, value.definition, lambda: self.solver.edge(stored, node))
                    elif isinstance(held, Instance) and (
                        held.definition in order or value.definition in self.hierarchy.order(held.definition)
                    ):
                        self.solver.edge(stored, node)

                self.solver.when(receiver, arrived)

    def nearest(self, name: str, path: str) -> list[Unit]:
        """The files that mention a name, the nearest to a path first, as many as are looked at."""
        raise NotImplementedError

    # --- methods that the language calls

    def _method_result(self, value: Object, name: str, target: Node, site: Site | None, key: Key | None = None) -> None:
        """The result of a method that the language calls; ``key``: what is written in the subscript."""
        method = self.method_node(value, name, site)
        arguments = self.no_arguments(site, key)
        self.solver.when(method, lambda held: self.call(held, arguments, target))

    def method_node(self, value: Object, name: str, site: Site | None) -> Node:
        """A method of an object, looked up."""
        key = (value, name)
        found = self._methods.get(key)
        if found is None:
            found = self._methods[key] = Node(None)
            self.member(value, name, found, site)
        return found

    def call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        """An object is called, and the result arrives at a node."""
        raise NotImplementedError

    def has_method(self, value: Instance, name: str) -> bool:
        """Whether the class of an object, or a base in the program, defines a method."""
        return self.hierarchy.lookup(value.definition, name) is not None
