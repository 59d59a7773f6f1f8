"""What subscripts, loops, ``with`` and ``await`` get out of objects."""

from __future__ import annotations

from streamlint.facts.code.objects import (
    Activation,
    ClassObject,
    Constant,
    Container,
    External,
    Group,
    Instance,
    Key,
    LibraryObject,
    Many,
    Memory,
    ModuleObject,
    Object,
    Rest,
    Scalar,
    Site,
    Unknown,
    Varargs,
)
from streamlint.facts.values.members import Members
from streamlint.facts.values.nodes import Node

LAST_POSITION = 16
"""Arguments behind this position are not distinguished."""


class Iteration(Members):
    """Value flow of elements, loops and scopes."""

    # --- elements

    def element(self, value: Object, key: Key | None, target: Node, site: Site | None) -> None:
        """An element of an object arrives at a node; ``key`` is None where it is not known which."""
        if not target.first("element", value, key):
            return
        if isinstance(value, ModuleObject):
            self._module_element(value, key, target)
        elif isinstance(value, (Container, Group, Varargs, Rest)):
            self._held_element(value, key, target)
        elif isinstance(value, Memory):
            kind = self.models.part_type(value.type)
            self.solver.add(target, self.objects(Memory, value.space, value.pinning, kind, value.evidence) if kind else value)
        elif isinstance(value, Instance):
            if not self.has_method(value, "__getitem__"):
                self._ask_keyed(value, key, target)
            self._method_result(value, "__getitem__", target, site, key)
        elif isinstance(value, (Scalar, Constant)):
            self._plain_element(value, target)
        elif isinstance(value, (External, ClassObject, Unknown)):
            self.solver.add(target, value)
            if key is not None:
                self._ask_keyed(value, key, target)
        elif isinstance(value, LibraryObject):
            self.library_element(value, target)
        elif isinstance(value, Activation):
            self.solver.edge(self.yielded(value.frame), target)
        elif isinstance(value, Many):
            self.through(value, ("element", key), lambda one, node: self.element(one, key, node, None), target)
        else:
            self.unknown(target, "dynamic")

    def _plain_element(self, value: Scalar | Constant, target: Node) -> None:
        """A text has elements; a number has none, as the capacity of a queue."""
        if isinstance(value, Scalar) or isinstance(value.value, (str, bytes)):
            self.solver.add(target, self.scalar)

    def _ask_keyed(self, value: Object, key: Key | None, target: Node) -> bool:
        """The element under a key of what keeps its elements by keys arrives at a node; false if an object does not."""
        held = self.keyed(value)
        if held is not None:
            self.ask(held, key, target)
        return held is not None

    def _held_element(self, value: Container | Group | Varargs | Rest, key: Key | None, target: Node) -> None:
        """An element of a container, or of the rest of some arguments."""
        if isinstance(value, Group):
            self._group_element(value, key, target)
        elif self._ask_keyed(value, key, target):
            return
        elif isinstance(value, Container):
            self.solver.edge(self.contained(value, key), target)
        elif isinstance(value, Varargs):
            self.varargs_element(value, key, target)
        else:
            self.solver.edge(self.rest_element(value, key), target)

    def _module_element(self, value: ModuleObject, key: Key | None, target: Node) -> None:
        """``globals()[name]``."""
        if isinstance(key, str):
            self._module_member(value, key, target)
        else:
            self.definitions_of(value, target)

    def library_element(self, value: LibraryObject, target: Node) -> None:
        """An element of a library's object: a batch of a loader."""
        raise NotImplementedError

    def rest_element(self, value: Rest, key: Key | None) -> Node:
        """The elements of ``*args`` or ``**kwargs`` over all calls of a function."""
        raise NotImplementedError

    def _group_element(self, value: Group, key: Key | None, target: Node) -> None:
        if value.kind == "mapping":
            self.solver.edge(value.nodes[0], target)
            return
        if isinstance(key, int) and value.kind == "tuple":
            if -len(value.nodes) <= key < len(value.nodes):
                self.solver.edge(value.nodes[key], target)
            return
        for node in value.nodes:
            self.solver.edge(node, target)

    def varargs_element(self, value: Varargs, key: Key | None, target: Node) -> None:
        arguments = value.arguments
        rest = arguments.positional[value.first :]
        if isinstance(key, int) and 0 <= key < len(rest):
            self.solver.edge(rest[key], target)
            return
        for node in rest if key is None else ():
            self.solver.edge(node, target)
        for node in arguments.starred:
            later = key - len(rest) + max(value.first - len(arguments.positional), 0) if isinstance(key, int) else None
            self.each_element(node, later if later is not None and 0 <= later <= LAST_POSITION else None, target)

    # --- loops and scopes

    def iterate(self, iterable: Node, target: Node) -> None:
        self.solver.when(iterable, lambda value: self.iterated(value, target, target.site))

    def iterated(self, value: Object, target: Node, site: Site | None) -> None:
        """The elements that a loop over an object gives."""
        if not target.first("iterated", value):
            return
        if isinstance(value, Many):
            self.through(value, ("iterated",), lambda one, node: self.iterated(one, node, None), target)
        elif isinstance(value, Instance):
            names = ("__iter__", "__next__") if self.has_method(value, "__iter__") else ("__next__", "__getitem__")
            if names[0] == "__iter__":
                held = Node(None)
                self._method_result(value, "__iter__", held, site)
                self.solver.when(held, lambda one: self._next_of(one, value, target, site))
            elif self.has_method(value, "__next__"):
                self._method_result(value, "__next__", target, site)
            else:
                self._method_result(value, "__getitem__", target, site)
        elif isinstance(value, Container) and value.kind == "dict":
            self.solver.add(target, self.scalar)
        elif isinstance(value, Group) and value.kind == "mapping":
            self.solver.edge(value.nodes[1], target)
        else:
            self.element(value, None, target, site)

    def _next_of(self, one: Object, value: Object, target: Node, site: Site | None) -> None:
        if one is value or (isinstance(one, Instance) and self.has_method(one, "__next__")):
            self._method_result(one, "__next__", target, site)
        elif one is not value:
            self.iterated(one, target, site)

    def entered(self, value: Object, target: Node, site: Site | None) -> None:
        """What ``with value as x`` gives."""
        if not target.first("entered", value):
            return
        if isinstance(value, Many):
            self.through(value, ("entered",), lambda one, node: self.entered(one, node, None), target)
        elif isinstance(value, Instance):
            name = "__enter__" if self.has_method(value, "__enter__") else "__aenter__"
            if self.has_method(value, name):
                self._method_result(value, name, target, site)
            else:
                self.solver.add(target, value)
        elif isinstance(value, Activation):
            self.solver.edge(self.yielded(value.frame), target)
        else:
            self.solver.add(target, value)

    def awaited(self, value: Object, target: Node) -> None:
        """What ``await value`` gives."""
        if isinstance(value, Activation):
            self.solver.edge(self.result(value.frame), target)
        else:
            self.solver.add(target, value)
