"""What a node keeps where it would hold too many objects: joined ones, in four steps, so that no set grows without bound.

Functions, methods and classes are joined to `Many`, which leads to each of them over one place for all calls of a kind: who calls one of
a thousand functions of a table adds its arguments to that place, and the thousand functions are given them from there. So n calls of m
functions cost n + m edges, and no target is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from posixpath import dirname

from streamlint.facts.flow import Flow
from streamlint.facts.frames import Arguments, Joint
from streamlint.facts.functions import Function
from streamlint.facts.nodes import Node
from streamlint.facts.objects import (
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
    Unknown,
    Varargs,
)
from streamlint.facts.program import Unit
from streamlint.ir import Instruction

_HOLDING = (Container, Group, Rest, Varargs, Activation, PartialObject)


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
            if value.name in self.models.calls or self.models.attribute(value.name) is not None:
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
            return self._many(*place, value)
        return self.objects(Unknown, "budget") if isinstance(value, _HOLDING) else value

    def gathered_more(self, value: Object) -> Object:
        """The same for many files: callables of a folder are one."""
        if not isinstance(value, Many) or not isinstance(value.of, Unit):
            return value
        return self._many(value.kind, dirname(value.of.path), value)

    def gathered_all(self, value: Object) -> Object:
        """The same for many folders: callables of the program are one, and names of libraries, and objects of libraries by their types."""
        if isinstance(value, Many):
            return self._many(value.kind.partition(" ")[0], "*", value) if value.of != "*" else value
        if isinstance(value, LibraryObject):
            return self.objects(LibraryObject, value.type, value.kind)
        return self.objects(Unknown, "external") if isinstance(value, External) else value

    def _many(self, kind: str, of: object, value: Object) -> Many:
        found = self.objects(Many, kind, of)
        self.solver.gather(self.members(found), value)
        return found

    # --- what it leads to

    def members(self, value: Many) -> Node:
        """A node that holds all objects that one stands for."""
        found = self._members.get(value)
        if found is None:
            found = self._members[value] = Node(None)
        return found

    def members_of(self, value: Object) -> Iterator[Object]:
        """The objects that an object stands for; itself if it stands for no others."""
        if isinstance(value, Many):
            for one in self.members(value).values:
                yield from self.members_of(one)
        else:
            yield value

    def functions_in(self, values: Iterable[Object]) -> Iterator[FunctionObject]:
        """The functions of the program among objects, also with arguments or a receiver that they are bound to."""
        for value in values:
            while isinstance(value, PartialObject):
                value = value.callee
            for one in self.members_of(value):
                if isinstance(one, PartialObject):
                    yield from self.functions_in([one])
                one = one.method if isinstance(one, BoundMethod) else one
                if isinstance(one, FunctionObject):
                    yield one

    def through(self, value: Many, what: tuple[object, ...], action: Callable[[Object, Node], None], target: Node) -> None:
        """Have an action bring what it finds for each member to one node, and from there to all that ask the same."""
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

    def called_through(self, value: Many, arguments: Arguments, target: Node, names: tuple[str, ...] = ()) -> None:
        """One of many is called, or one of several methods of it: the arguments of all calls with as many are handed over together."""
        key = (value, names, len(arguments.positional), bool(arguments.starred), tuple(sorted(arguments.keywords)), bool(arguments.double))
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
