"""What a node keeps where it would hold too many objects: joined ones, in five steps, so that no set grows without bound.

Functions, methods and classes are joined to `Many`, which leads to each of them over one place for all calls of a kind: who calls one of
a thousand functions of a table adds its arguments to that place, and the thousand functions are given them from there. So n calls of m
functions cost n + m edges, and no target is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from posixpath import dirname

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import (
    Activation,
    BoundMethod,
    ClassObject,
    Constant,
    Container,
    External,
    FunctionObject,
    Group,
    Instance,
    LibraryObject,
    Many,
    Object,
    PartialObject,
    Rest,
    Scalar,
    Text,
    Unknown,
    Varargs,
)
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Unit
from streamlint.facts.values.flow import Flow
from streamlint.facts.values.frames import Arguments, Joint
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction

_HOLDING = (Container, Group, Rest, Varargs, Activation, PartialObject)
_ASKED_OF_OBJECTS = ("member", "element", "iterated")
"""What functions and methods have nothing known to give for."""


class Relatives:
    """Classes, and what waits until one of those comes that derive from a class or that it derives from."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._above: set[ClassInfo] = set()  # the classes that came, and their bases
        self._came: set[ClassInfo] = set()
        self._waiting: dict[ClassInfo, list[Callable[[], None]]] = {}  # by class: it or one that derives from it
        self._exact: dict[ClassInfo, list[Callable[[], None]]] = {}  # by class: it alone

    def add(self, definition: ClassInfo) -> None:
        """A class comes."""
        if definition not in self._came:
            order = self._hierarchy.order(definition)
            self._came.add(definition)
            self._above.update(order)
            for one in order:
                for action in self._waiting.pop(one, ()):
                    action()
            for action in self._exact.pop(definition, ()):
                action()

    def when(self, definition: ClassInfo, action: Callable[[], None]) -> None:
        """Run an action once a class comes that derives from this one, or from which it derives."""
        if definition in self._above or any(one in self._came for one in self._hierarchy.order(definition)):
            action()
        else:
            self._waiting.setdefault(definition, []).append(action)
            for one in self._hierarchy.order(definition)[1:]:
                self._exact.setdefault(one, []).append(action)


EVERYWHERE = "*"
"""Of what one stands for that is one of the callables of more than forty folders: which is called, nothing tells."""


class Joins(Flow):
    """Objects that stand for many."""

    # --- what is joined

    def joined(self, value: Object) -> Object:
        """The object that stands for this one and its like: of a class's subclasses, of all calls of a function, of many constants."""
        found = self._joins.get(value)
        if found is None:
            found = self._joins[value] = self._join_of(value)
        return found

    def _join_of(self, value: Object) -> Object:
        if isinstance(value, Constant):
            return value if value.value is None or isinstance(value.value, bool) else self.objects(Scalar, True)
        if isinstance(value, Text):
            return self.objects(Scalar, True)
        if isinstance(value, Instance):
            return self.objects(Instance, self.hierarchy.root(value.definition), False)
        if isinstance(value, BoundMethod):
            return self.objects(BoundMethod, self.joined(value.method), self.joined(value.receiver))
        if isinstance(value, FunctionObject) and value.frame is not None:
            return self.objects(FunctionObject, value.function, self.base(value.frame.function))
        if isinstance(value, Container):
            return self.objects(Container, value.kind, self.base(value.frame.function), value.instruction)
        if isinstance(value, Activation):
            return self.objects(Activation, self.base(value.frame.function), value.kind)
        if isinstance(value, External):
            return self._library_name(value)
        return value

    def _library_name(self, value: External) -> Object:
        """A name of a library stands for itself if a row is about it, or for all names that the pattern of a row covers."""
        if value.receiver is None:
            if self.models.named(value.name) is not None or self.models.attribute(value.name) is not None:
                return value
            if (pattern := self.models.pattern_of(value.name)) is not None:
                return self.objects(External, pattern)
        return self.objects(Unknown, "external")

    def gathered(self, value: Object) -> Object:
        """What stands for an object where even the joined ones are too many: callables of a file are one; what holds others is given up."""
        found = self._gathered.get(value)
        if found is None:
            found = self._gathered[value] = self._gather(value)
        return found

    def _gather(self, value: Object) -> Object:
        if not isinstance(value, Many) and (place := _place(value)) is not None:
            return self._merged(value) if isinstance(value, PartialObject) else self._many(*place, value)
        return self.objects(Unknown, "budget") if isinstance(value, _HOLDING) else value

    def gathered_more(self, value: Object) -> Object:
        """The same for many files: callables of a folder are one."""
        if isinstance(value, PartialObject) and (place := _place(value)) is not None:
            return self._many(*place, value)
        if not isinstance(value, Many) or not isinstance(value.of, Unit):
            return value
        return self._many(value.kind, dirname(value.of.path), value)

    def gathered_names(self, value: Object) -> Object:
        """The same for many names: methods of a folder are one, whatever they are called, and names of libraries, and objects of libraries
        by their types."""
        if isinstance(value, Many):
            kind, name = value.kind.partition(" ")[::2]
            if isinstance(value.of, Unit):
                return self._many(kind, dirname(value.of.path), value)
            return self._many(kind, value.of, value) if name else value
        if isinstance(value, LibraryObject):
            return self.objects(LibraryObject, value.type, value.kind)
        return self.objects(Unknown, "external") if isinstance(value, External) else value

    def gathered_all(self, value: Object) -> Object:
        """The same for many folders: callables of the program are one."""
        return self._many(value.kind, EVERYWHERE, value) if isinstance(value, Many) and value.of != EVERYWHERE else value

    def _merged(self, value: PartialObject) -> PartialObject:
        """A callable with all the arguments that it is bound to, as many at a time, anywhere."""
        key = (value.callee, value.arguments.shape)
        found = self._partials.get(key)
        if found is None:
            found = self._partials[key] = self.objects(PartialObject, value.callee, Joint(value.arguments))
        if isinstance(found.arguments, Joint) and found is not value:
            for source, node in found.arguments.take(value.arguments):
                self.solver.edge(source, node)
        return found

    @cached_property
    def _partials(self) -> dict[tuple[object, ...], PartialObject]:
        return {}

    def _many(self, kind: str, of: object, value: Object) -> Many:
        found = self.objects(Many, kind, of)
        self.solver.gather(self.members(found), value)
        if isinstance(value, Many):
            self.solver.widen(value, found)
        return found

    # --- what it leads to

    @cached_property
    def _relatives(self) -> dict[Many, Relatives]:
        return {}

    def members(self, value: Many) -> Node:
        """A node that holds all objects that one stands for."""
        found = self._members.get(value)
        if found is None:
            found = self._members[value] = Node(None)
        return found

    def members_of(self, value: Object) -> Iterator[Object]:
        """The objects that an object stands for; itself if it stands for no others."""
        if isinstance(value, Many):
            for one in list(self.members(value).values):
                yield from self.members_of(one)
        else:
            yield value

    def functions_in(self, values: Iterable[Object]) -> Iterator[FunctionObject]:
        """The functions of the program among objects, also with arguments or a receiver that they are bound to.

        What stands for callables of the whole program tells nothing, as where it is called.
        """
        waiting, seen = list(values)[::-1], set[Object]()
        while waiting:
            value = waiting.pop()
            if isinstance(value, FunctionObject):
                yield value
            elif isinstance(value, BoundMethod):
                yield value.method
            elif isinstance(value, PartialObject):
                waiting.append(value.callee)
            elif isinstance(value, Many) and value.of != EVERYWHERE and value not in seen:
                seen.add(value)
                waiting += reversed(self.members(value).values)

    def through(self, value: Many, what: tuple[object, ...], action: Callable[[Object, Node], None], target: Node) -> None:
        """Have an action bring what it finds for each member to one node, and from there to all that ask the same."""
        if what[0] in _ASKED_OF_OBJECTS and value.kind not in ("object", "class"):
            self.unknown(target, "dynamic")
            return
        key = (value, *what)
        found = self._through.get(key)
        if found is None:
            found = self._through[key] = node = Node(None)
            self.solver.when(self.members(value), lambda one: action(one, node))
        self.solver.edge(found, target)

    def each(self, value: Object, action: Callable[[Object], None]) -> None:
        """Run an action for an object, or for each that it stands for, now and later."""
        if isinstance(value, Many):
            self.solver.when(self.members(value), lambda one: self.each(one, action))
        else:
            action(value)

    def when_related(self, value: Many, definition: ClassInfo, action: Callable[[], None]) -> None:
        """Run an action once an object that one stands for may be of a class, or of one that derives from it or that it derives from."""
        found = self._relatives.get(value)
        if found is None:
            found = self._relatives[value] = relatives = Relatives(self.hierarchy)
            self.each(value, lambda one: relatives.add(one.definition) if isinstance(one, Instance) else None)
        found.when(definition, action)

    def called_through(self, value: Many, arguments: Arguments, target: Node, names: tuple[str, ...] = ()) -> None:
        """One of many is called, or one of several methods of it: the arguments of all calls with as many are passed together."""
        if value.of == EVERYWHERE:
            self.unknown_call("budget", arguments, target)
            return
        key = (value, names, arguments.shape)
        found = self._joints.get(key)
        if found is None:
            found = self._joints[key] = joint = Joint(arguments)
            call = partial(self.special, names=names) if names else self.call
            self.solver.when(self.members(value), lambda one: call(one, arguments=joint, target=joint.result))
        for source, node in found.take(arguments):
            self.solver.edge(source, node, arguments.site)
        self.solver.edge(found.result, target, arguments.site)
        if arguments.joint is not None:
            arguments.joint.within[found] = None
        if arguments.site is not None and (arguments.frame is None or arguments.frame.arguments is None):
            self.entered_through.setdefault((arguments.site.function, arguments.site.instruction), {})[found] = None

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        """Code of which nothing is known is called, and the result arrives at a node."""
        raise NotImplementedError

    def call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        """An object is called, and its result arrives at a node."""
        raise NotImplementedError

    def special(self, value: Object, names: tuple[str, ...], arguments: Arguments, target: Node) -> None:
        """Call the first of several methods that an object has."""
        raise NotImplementedError

    def enters(self, function: Function, instruction: Instruction) -> dict[Function, None]:
        """The functions that an instruction enters."""
        key = (function, instruction)
        found = self.entered_at.get(key)
        joints = self.entered_through.get(key)
        if joints is None:
            return found if found is not None else {}
        found = dict(found) if found is not None else {}
        for joint in joints:
            for one in joint.below():
                found.update(one.entered)
        return found


def _place(value: Object) -> tuple[str, object] | None:
    """The kind and the file by which callables are joined; None for what is none."""
    if isinstance(value, FunctionObject):
        return ("function", value.function.unit) if not value.function.is_cpp else None
    if isinstance(value, ClassObject):
        return ("class", value.definition.unit) if not value.definition.unit.is_cpp else None
    if isinstance(value, Instance):
        return ("object", value.definition.unit) if not value.definition.unit.is_cpp else None
    if isinstance(value, BoundMethod) and (place := _place(value.method)) is not None:
        return f"method {value.method.function.code.name}", place[1]
    if isinstance(value, PartialObject) and (place := _place(value.callee)) is not None:
        return "partial", place[1]
    return ("function", value.of) if isinstance(value, Many) else None
