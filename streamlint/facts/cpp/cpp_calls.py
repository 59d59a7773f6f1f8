"""C++: what names mean, whom calls enter, and how objects are made and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import with_kinds
from streamlint.facts.code.objects import (
    Address,
    BoundMethod,
    ClassObject,
    Constant,
    Elements,
    External,
    FunctionObject,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Site,
    Unknown,
)
from streamlint.facts.cpp.cpp_names import CppNames
from streamlint.facts.cpp.cpp_places import is_reset
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple

BEGIN = "begin"
"""The method by which the language begins to go through a range."""
_OPERANDS = {op.CONSTRUCT: (5, 4), op.NEW: (5, 4), op.INIT: (5, 4)}
"""Where the arguments of an instruction begin, and where their shape stands."""


class CppCalls(CppNames):
    """Value flow of C++ calls."""

    # --- calls

    def arguments(self, frame: Frame, instruction: Instruction) -> Arguments:
        key = (frame, instruction)
        found = self._arguments.get(key)
        if found is not None or not frame.function.is_cpp:
            return super().arguments(frame, instruction)
        if instruction[0] == op.BUILD:
            first, shape = 4, op.NONE
        elif instruction[0] == op.LAUNCH:
            first, shape = 6 + instruction[5], instruction[4]
        elif instruction[0] in _OPERANDS:
            first, place = _OPERANDS[instruction[0]]
            shape = instruction[place]
        else:
            return super().arguments(frame, instruction)
        found = self._arguments[key] = Arguments(frame, Site(frame.function, instruction))
        self._fill(found, frame, with_kinds(frame.function, instruction[first:], shape))
        return found

    def call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        if isinstance(callee, Address):
            if target.first("call", callee, arguments):
                self.solver.when(callee.place, lambda held: self.call(held, arguments, target))
        elif isinstance(callee, Instance) and callee.definition.unit.is_cpp:
            if target.first("call", callee, arguments):
                method = self.method_node(callee, "operator()", arguments.site)
                self.solver.when(method, lambda held: self.call(held, arguments, target))
        elif isinstance(callee, BoundMethod) and isinstance(callee.receiver, Address):
            if target.first("call", callee, arguments):
                again = callee.method
                self.solver.when(callee.receiver.place, lambda held: self.call(self.objects(BoundMethod, again, held), arguments, target))
        elif isinstance(callee, ClassObject) and callee.definition.unit.is_cpp:
            if target.first("call", callee, arguments):
                self.construct(callee.definition, arguments, target)
        else:
            super().call(callee, arguments, target)

    def enter(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        function = called.function
        if function.is_cpp and function.has_receiver and receiver is None:
            if arguments.positional:  # a pointer to a method, called through `std::thread` or `std::bind`
                rest = self.rest_of(arguments)
                self.each_instance(arguments.positional[0], lambda held: self.enter(called, held, rest, target))
        elif self.accepts(function, arguments):
            enter = super().enter
            self._where_fitting(function, arguments, lambda: enter(called, receiver, arguments, target))

    def _where_fitting(self, function: Function, arguments: Arguments, action: Callable[[], None]) -> None:
        """Run an action for a function, once for one of several call operators of a class: an object tells which of them it is for."""
        owner, kind = function.owner, function.code.parameters[1].type if len(function.code.parameters) > 1 else None
        several = owner is not None and function.code.name == "operator()" and len(owner.methods.get("operator()", ())) > 1
        wanted = self.named_type(function, kind)[1] if several and kind is not None and arguments.positional else None
        if not isinstance(wanted, ClassInfo):
            action()
            return

        def arrived(value: Object) -> None:
            if not isinstance(value, Instance) or self.hierarchy.derives(value.definition, wanted):
                action()

        self.each_pointed(arguments.positional[0], arrived)

    def notify(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
        if self.accepts(called.function, arguments):
            super().notify(called, receiver, arguments)

    def accepts(self, function: Function, arguments: Arguments) -> bool:
        """C++: whether a function takes as many arguments; a binding for Python may have defaults of its own. A destructor takes none,
        whatever the call gives that ends the object (``owner.reset(other)``)."""
        if not function.is_cpp or function.code.name == "__del__":
            return True
        given = len(arguments.positional) + len(arguments.keywords)
        from_python = arguments.frame is not None and not arguments.frame.function.is_cpp
        return function.accepts(given, bool(arguments.starred or arguments.double or from_python))

    def parameter(self, frame: Frame, index: int, node: Node) -> None:
        function = frame.function
        kind = function.code.parameters[index].type
        if not function.is_cpp or kind is None or (index == 0 and function.has_receiver):
            super().parameter(frame, index, node)
            return
        raw = Node(None, node.site)
        super().parameter(frame, index, raw)
        self.cast(frame, kind, raw, node)

    def _receiver(self, frame: Frame, node: Node) -> None:
        super()._receiver(frame, node)
        if frame.function.is_cpp and not node.values:
            self.unknown(node, "caller")

    def default(self, frame: Frame, index: int, node: Node) -> None:
        function = frame.function
        parameter = function.code.parameters[index]
        if not function.is_cpp or parameter.kind == "captured":
            super().default(frame, index, node)
            return
        default = function.default_of(parameter.name)
        if default is not None:
            self.solver.edge(self.result(self.base(default)), node)

    def _bind(self, frame: Frame, index: int, arguments: Arguments, offset: int, node: Node) -> None:
        function = frame.function
        super()._bind(frame, index, arguments, offset, node)
        parameter = function.code.parameters[index]
        left_out = index - offset >= len(arguments.positional) and not arguments.starred
        if function.is_cpp and parameter.kind == "plain" and not parameter.default and left_out:
            self.default(frame, index, node)

    def from_outside_cpp(self, frame: Frame, kind: TypeTuple | None, node: Node) -> None:
        """What callers outside of the program may hand over."""
        function = frame.function
        if self.is_private(function):
            return
        value = self.object_of(function, kind, ("outside", frame), False) if kind is not None else None
        if value is not None and not (isinstance(value, Memory) and value.type == "array"):
            self.solver.add(node, value)
        else:
            self.unknown(node, "caller")

    def rebound(self, frame: Frame, one: Instruction, node: Node) -> None:
        """A variable behind a call that may have taken it by reference."""
        function = frame.function
        self.solver.edge(self.register(frame, one[5]), node)
        call = function.definitions[one[3]]
        if call is None or call[0] not in (op.CALL, op.INVOKE):
            return

        def arrived(callee: Object) -> None:
            receiver = None
            if isinstance(callee, BoundMethod):
                receiver, callee = callee.receiver, callee.method
            if isinstance(callee, FunctionObject):
                index = one[4] + (1 if callee.function.has_receiver and receiver is not None else 0)
                inner = self._frame_of_call(callee, receiver, self.arguments(frame, call))
                for out in callee.function.by_opcode[op.OUT]:
                    if out[2] == index:
                        self.solver.edge(self.register(inner, out[3]), node, Site(function, call))

        self.solver.when(self.callee(frame, call), arrived)

    # --- objects

    def construct(self, definition: ClassInfo, arguments: Arguments, target: Node) -> None:
        """An object of a class is made."""
        value = self.objects(Instance, definition, True)
        self.solver.add(target, value, None, arguments.site)
        methods = [method for method in self.constructors(definition, arguments) if self.accepts(method, arguments)]
        copying = [method for method in methods if len(arguments.positional) == 1 and self.copies(method, definition)]
        for method in methods:
            if method not in copying:
                self.notify(self.function_object(method, None), value, arguments)
        if copying:
            is_only = len(copying) == len(methods)

            def arrived(given: Object) -> None:
                is_same = isinstance(given, Instance) and definition in self.hierarchy.order(given.definition)
                for method in copying if is_same or (is_only and isinstance(given, Unknown)) else ():
                    self.notify(self.function_object(method, None), value, arguments)

            self.solver.when(arguments.positional[0], arrived)
        self.constructed(self.objects(ClassObject, definition), arguments)

    def constructors(self, definition: ClassInfo, arguments: Arguments) -> list[Function]:
        """What constructors an object of a class may be made by: also those that it takes over from a base (``using Base::Base``)."""
        own = definition.methods.get("__init__", [])
        if not arguments.positional or any(self.accepts(method, arguments) for method in own):
            return own
        bases = (base.methods.get("__init__", []) for base in self.hierarchy.order(definition)[1:])
        return next((methods for methods in bases if any(self.accepts(method, arguments) for method in methods)), own)

    def copies(self, method: Function, definition: ClassInfo) -> bool:
        """Whether a constructor or an assignment takes an object of its class alone: it copies or moves it."""
        kind = method.code.parameters[1].type if len(method.code.parameters) == 2 else None
        return kind is not None and self.named_type(method, kind)[1] is definition

    def made(self, frame: Frame, one: Instruction, kind: TypeTuple, node: Node) -> None:
        """`T x`, `T x(args)`, `new T(args)`."""
        function = frame.function
        arguments = self.arguments(frame, one) if one[0] in _OPERANDS else self.no_arguments_of(frame, one)
        resolved, meant = self.named_type(function, kind)
        if isinstance(meant, ClassInfo) and not resolved[2] and resolved[4] is None:
            self.construct(meant, arguments, node)
            return
        value = self.object_of(function, kind, self.home_of(frame, one), True)
        if value is None and self.is_stream(function, kind) and one[0] == op.CONSTRUCT:
            for given in arguments.positional[:1]:
                self.converted(function, kind, given, node)
            if not arguments.positional:
                self.solver.add(node, self.null_stream(), None, arguments.site)
        elif one[0] == op.DECLARE and meant is not None and self._is_made_by_row(str(resolved[0]), value):
            self.made_of_library(str(resolved[0]), frame, arguments, node)  # a class: its constructor makes the object
        elif one[0] == op.DECLARE or isinstance(value, (Elements, Memory)):
            if value is not None and value is not self.scalar:
                self.solver.add(node, value, None, arguments.site)
            self._reset_later(frame, one, kind, value, node)
        else:
            self.made_of_library(str(resolved[0]), frame, arguments, node)

    def _is_made_by_row(self, name: str, value: Object | None) -> bool:
        """Whether what is known of a new object says the row of its constructor: of no smart pointer, which is empty first."""
        return _is_handle(value) and self.cpp_models.call(name) is not None and name not in self.cpp_models.marked("smart")

    def _reset_later(self, frame: Frame, one: Instruction, kind: TypeTuple, value: Object | None, node: Node) -> None:
        """What ``p.reset(new T)`` puts into a smart pointer that is declared there, or into the elements of a container of such."""
        function = frame.function
        taken = [one[2]] if one[0] == op.DECLARE and self.held_type(self.named_type(function, kind)[0]) is not None else []
        if isinstance(value, Elements):
            taken, node = [use[2] for use in function.uses[one[2]] if use[0] == op.ITEM], self.held_in(value)
        for register in taken:
            for use in function.uses[register]:
                if is_reset(function, use, register):
                    self.solver.edge(self.register(frame, use[6]), node, Site(function, use))

    def no_arguments_of(self, frame: Frame, one: Instruction) -> Arguments:
        """The empty arguments of an instruction that makes an object."""
        key = (frame, one)
        found = self._arguments.get(key)
        if found is None:
            found = self._arguments[key] = Arguments(frame, Site(frame.function, one))
        return found

    def made_of_library(self, name: str, frame: Frame, arguments: Arguments, node: Node) -> None:
        """An object of a library's type is made of arguments."""
        raise NotImplementedError

    def made_array(self, frame: Frame, one: Instruction, kind: TypeTuple, node: Node) -> None:
        """`new T[n]`."""
        function = frame.function
        site = Site(function, one)
        if self.is_plain(function, kind):
            self.solver.add(node, self.objects(Memory, "host", "pageable", "pointer"), None, site)
            return
        self.solver.add(node, self.objects(Elements, "array", self.home_of(frame, one)), None, site)

    def cast(self, frame: Frame, kind: TypeTuple, source: Node, node: Node) -> None:
        """A value becomes one of another type, or initialises a variable of it."""
        self.converted(frame.function, kind, source, node)

    def iterated(self, value: Object, target: Node, site: Site | None) -> None:
        if not isinstance(value, Instance) or not self.is_operator(value.definition, BEGIN):
            super().iterated(value, target, site)
        elif target.first("iterated", value):  # a range of the program's own
            given, arguments = Node(None, site), self.no_arguments(site)
            self.solver.when(self.method_node(value, BEGIN, site), lambda held: self.call(held, arguments, given))
            self.solver.when(given, lambda held: self.pointed_to(held, target))

    def is_cpp_tensor(self, value: Object) -> TypeGuard[Memory]:
        """C++: whether an object is a tensor: operators make other memory of it, and an element of it is memory again."""
        row = self.cpp_models.type_named(value.type) if isinstance(value, Memory) else None
        return row is not None and row.kind == "buffer" and row.space == "unknown"

    def operated(self, frame: Frame, operator: str, registers: tuple[int, ...], node: Node) -> None:
        """Arithmetic: of pointers it leads to the same memory; of numbers it gives one."""
        literal = [one for one in registers if (made := frame.function.definitions[one]) is not None and made[0] == op.CONST]
        for register in registers:
            if register in literal and len(literal) < len(registers):
                continue
            source = self.register(frame, register)

            def arrived(value: Object, source: Node = source) -> None:
                if self.is_cpp_tensor(value):
                    self.solver.add(node, self.computed(value), source)
                elif isinstance(value, (Memory, Address, Elements, Unknown)) and operator in ("+", "-", "++", "--"):
                    self.solver.add(node, value, source)
                elif isinstance(value, Instance) and value.definition.unit.is_cpp:
                    self.unknown(node, "dynamic")
                elif isinstance(value, Memory) and value.type not in ("pointer", "array"):
                    self.solver.add(node, self.computed(value), source)
                elif isinstance(value, (Constant, External)) or value is self.scalar:
                    self.solver.add(node, self.scalar)

            self.solver.when(source, arrived)


def _is_handle(value: Object | None) -> bool:
    """Whether a type says no more of an object than that there is one: what is known of it says its constructor."""
    return value is None or (isinstance(value, LibraryObject) and value.kind == "event")
