"""Value flow of parameters: from the calls of a function, from its defaults, from outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    Constant,
    Container,
    FunctionObject,
    Group,
    Instance,
    Key,
    LibraryObject,
    Memory,
    Object,
    Rest,
    Scalar,
    SomeClass,
    Varargs,
)
from streamlint.facts.values.constructions import Constructions
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Parameter
from streamlint.ir import opcodes as op

Entered = Callable[[FunctionObject, "Object | None", Arguments], None]


class Parameters(Constructions):
    """Value flow of parameters, and who is told of calls."""

    def notify(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
        """A call of a function was found."""
        if arguments.frame is not None and arguments.frame.arguments is not None:
            return  # the frame that stands for all calls of the caller has the same call
        if (site := arguments.site) is not None:
            self.entered_at.setdefault((site.function, site.instruction), {})[called.function] = None
        elif arguments.joint is not None:
            arguments.joint.entered[called.function] = None
        self.tell(called, receiver, arguments)

    def tell(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
        """A function is given arguments: by a call that was found, or by a library that is passed it."""
        known = self._calls.setdefault(called.function, {}).setdefault(receiver, {})
        if arguments not in known:
            known[arguments] = called
            for asked, listeners in self._listeners.get(called.function, {}).items():
                if self._may_be_same(asked, receiver):
                    for listener in listeners:
                        listener(called, receiver, arguments)

    def when_called(self, function: Function, asked: Object | None, listener: Entered) -> None:
        """Run a listener for each call of a function, now and later; only for those whose receiver may be one that is asked for."""
        self._listeners.setdefault(function, {}).setdefault(asked, []).append(listener)
        for receiver, calls in list(self._calls.get(function, {}).items()):
            if self._may_be_same(asked, receiver):
                for arguments, called in list(calls.items()):
                    listener(called, receiver, arguments)

    def _may_be_same(self, one: Object | None, other: Object | None) -> bool:
        """Whether two receivers may be the same object, by their classes."""
        if one is other or not isinstance(one, Instance) or not isinstance(other, Instance):
            return True
        if one.exact:
            return not other.exact and self.hierarchy.derives(one.definition, other.definition)
        return not other.exact or self.hierarchy.derives(other.definition, one.definition)

    def parameter(self, frame: Frame, index: int, node: Node) -> None:
        """What a parameter holds."""
        function = frame.function
        parameter = function.code.parameters[index]
        if index == 0 and function.has_receiver:
            self._receiver(frame, node)
            return
        if parameter.kind == "captured":
            self.default(frame, index, node)
            return
        outside = node
        if self.is_declared_number(function, parameter):
            node = self._let_through(node, _is_number)
        elif self.is_declared_text(function, parameter):
            node = self._let_through(node, lambda value: not isinstance(value, Memory))
        if frame.arguments is not None:
            offset = 1 if function.has_receiver and frame.receiver is not None else 0
            self._bind(frame, index, frame.arguments, offset, node)
            return
        if parameter.kind in ("star", "double"):
            self.solver.add(node, self.objects(Rest, frame, index))
        elif not self.is_settled(function, parameter):
            self._from_all_calls(frame, index, node)
        self.from_outside(frame, parameter, outside)

    def _let_through(self, node: Node, fits: Callable[[Object], bool]) -> Node:
        """A node of whose values those arrive at another one that fit what is declared: what is declared as a number is nothing else."""
        held = Node(None)
        self.solver.when(held, lambda value: self.solver.add(node, value) if fits(value) else None)
        return held

    def _from_all_calls(self, frame: Frame, index: int, node: Node) -> None:
        """What a parameter, or ``*args``, is given by each call of a function."""
        function = frame.function
        self.searched(function)

        def called(found: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
            stands_for_all = frame.outer is None or frame.outer.arguments is None
            if stands_for_all or found.frame is frame.outer or found.frame is None:
                self._bind(frame, index, arguments, 1 if function.has_receiver and receiver is not None else 0, node)

        self.when_called(function, frame.receiver, called)

    def rest_element(self, value: Rest, key: Key | None) -> Node:
        found = self._rest_nodes.get((value, key))
        if found is None:
            found = self._rest_nodes[value, key] = Node(lambda node: self._rest_of_calls(value, key, node))
        return found

    def rest_held(self, value: Rest) -> Node:
        """A node for the arguments behind the last parameter, or those by names, of each call of a function."""
        held = self._rests_held.get(value)
        if held is None:
            held = self._rests_held[value] = Node(None)
            self._from_all_calls(value.frame, value.index, held)
        return held

    def _rest_of_calls(self, value: Rest, key: Key | None, node: Node) -> None:
        self.solver.when(self.rest_held(value), lambda one: self.varargs_element(one, key, node) if isinstance(one, Varargs) else None)

    def searched(self, function: Function) -> None:
        """Look for the calls of a function in the program."""
        raise NotImplementedError

    def is_settled(self, function: Function, parameter: Parameter) -> bool:
        """Whether the declared type of a parameter says all that its callers could tell."""
        raise NotImplementedError

    def is_declared_number(self, function: Function, parameter: Parameter) -> bool:
        """Whether a parameter is declared as a whole number or a truth value."""
        raise NotImplementedError

    def is_declared_text(self, function: Function, parameter: Parameter) -> bool:
        """Whether a parameter is declared as a text, or as a number or text."""
        raise NotImplementedError

    def from_outside(self, frame: Frame, parameter: Parameter, node: Node) -> None:
        """What callers outside of the program may hand over: what is declared, what a framework gives, or anything."""
        raise NotImplementedError

    def _receiver(self, frame: Frame, node: Node) -> None:
        function = frame.function
        owner = function.owner
        if frame.receiver is not None:
            self.solver.add(node, frame.receiver)
        elif owner is not None and function.is_class_method:
            self.solver.add(node, self.objects(SomeClass, owner))
        elif owner is not None:
            self.solver.add(node, self.objects(Instance, owner, False))

    def _bind(self, frame: Frame, index: int, arguments: Arguments, offset: int, node: Node) -> None:
        """What one call hands over for a parameter."""
        parameter = frame.function.code.parameters[index]
        position = index - offset
        if parameter.kind == "star":
            self.solver.gather(node, self.objects(Varargs, arguments, max(position, 0), None), arguments.site)
            return
        if parameter.kind == "double":
            named = frozenset(one.name for one in frame.function.code.parameters if one.kind in ("plain", "keyword"))
            self.solver.gather(node, self.objects(Varargs, arguments, 0, named), arguments.site)
            return
        found = False
        if parameter.kind == "plain" and 0 <= position < len(arguments.positional):
            self.solver.edge(arguments.positional[position], node, arguments.site)
            return
        if parameter.name in arguments.keywords:
            self.solver.edge(arguments.keywords[parameter.name], node, arguments.site)
            return
        if parameter.kind == "plain" and arguments.starred:
            found = True
            self._bind_behind(arguments, position - len(arguments.positional), node)
        for double in arguments.double:
            found = True
            self.ask(self.keyed_of_node(double), parameter.name, node, double.site)
            if parameter.default:
                self.when_absent(double, parameter.name, partial(self.default, frame, index, node))
        if parameter.default and arguments.is_all and not found:
            self.default(frame, index, node)

    def _bind_behind(self, arguments: Arguments, position: int, node: Node) -> None:
        """What arrives at a position behind the plain arguments: an element of what is spread, or one of the arguments that follow it.
        A tuple that is written out tells how long the first one is, also where other callers give another."""
        first, *others = arguments.starred
        self.spread(first, position, node)

        def placed() -> None:
            lengths = {length_of(value) for value in first.values if isinstance(value, Container)}
            length = lengths.pop() if len(lengths) == 1 else None
            ahead = others[: max(position - length + 1, 0)] if length is not None else others
            is_placed = length is not None and all(map(self._is_argument, ahead))
            for starred in ahead[position - length :] if length is not None and is_placed else others:
                self.spread(starred, position, node)

        if others:
            self.solver.at_last(placed)

    def _is_argument(self, node: Node) -> bool:
        """Whether what stands behind a list that is spread is one argument, no other list."""
        return any(isinstance(value, Group) and self.holding(value) is node for value in node.values)

    def spread(self, source: Node, key: int | str, node: Node) -> None:
        self.solver.when(source, lambda value: self.element(value, key, node, source.site))

    def default(self, frame: Frame, index: int, node: Node) -> None:
        """The default of a parameter, or what a closure has captured."""
        function = frame.function
        register = function.default(index)
        if register is not None and function.parent is not None:
            home = frame.outer if frame.outer is not None and frame.outer.function is function.parent else self.base(function.parent)
            self.solver.edge(self.register(home, register), node)


def _is_number(value: Object) -> bool:
    """Whether an object is a number, or what a number stands for: an address, the handle of a stream or an event."""
    if isinstance(value, LibraryObject):
        return value.kind in ("stream", "event")
    return isinstance(value, (Constant, Scalar)) or (isinstance(value, Memory) and value.type == "pointer")


def length_of(value: Container) -> int | None:
    """The number of elements of a tuple that is written out."""
    one = value.instruction
    kind = value.frame.function.unit.ir.constants[one[3]] if value.kind == "tuple" and one[0] == op.BUILD else None
    return len(one) - 4 if isinstance(kind, str) else None
