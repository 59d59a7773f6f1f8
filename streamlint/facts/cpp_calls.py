"""C++: what names mean, whom calls enter, and how objects are made and end."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.cpp_places import CppPlaces
from streamlint.facts.cpp_scopes import Variable, scope_of
from streamlint.facts.frames import Arguments, Frame
from streamlint.facts.functions import ClassInfo, Function
from streamlint.facts.nodes import Node
from streamlint.facts.objects import (
    Address,
    BoundMethod,
    ClassObject,
    Constant,
    CppName,
    Elements,
    External,
    FunctionObject,
    Group,
    Instance,
    Memory,
    Object,
    Site,
    Unknown,
)
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple

_OPERANDS = {op.CONSTRUCT: (5, 4), op.NEW: (5, 4), op.INIT: (5, 4)}
"""Where the arguments of an instruction begin, and where their shape stands."""


class CppCalls(CppPlaces):
    """Value flow of C++ calls."""

    # --- names

    def cpp_name(self, frame: Frame, name: str, node: Node, read: Instruction | None = None) -> None:
        """What a name that is no local means; ``read`` is the instruction that reads it."""
        function = frame.function
        owner = self.member_of(function, name)
        if owner is not None:
            self.solver.edge(self.field(owner, name), node)
            return
        if self._own_method(frame, name, node):
            return
        found = self.cpp.find(function.unit, scope_of(function), name)
        for one in found:
            if isinstance(one, Variable):
                self.solver.edge(self.variable(one), node)
            elif isinstance(one, Function) and one.has_receiver and function.method is not None:
                self._bound_to_this(frame, one, node)
            else:
                self.meant(one, node)
        if not found:
            self._static_member(frame, name, node, read)

    def _static_member(self, frame: Frame, name: str, node: Node, read: Instruction | None = None) -> None:
        """`C::x`, or a name of a library."""
        function = frame.function
        head, separator, last = name.rpartition("::")
        owner = self.cpp.class_named(function.unit, scope_of(function), head) if separator else None
        found = self.field_of(owner, last) if owner is not None else None
        if found is not None:
            self.solver.edge(self.field(found[0], last), node)
        elif owner is not None and (method := self.hierarchy.lookup(owner, last)) is not None:
            for one in method[1]:
                self.solver.add(node, self.function_object(one, None))
        else:
            value = self._constant_named(function, name) or self._declared_elsewhere(function, name)
            self.solver.add(node, value if value is not None else self._external(function, name, read))

    def _constant_named(self, function: Function, name: str) -> Object | None:
        """The constant of a library that a name means, maybe in a namespace that takes it in."""
        known = self.constant_of(name)
        others = self._spelled_names(function, name) if known is None and "::" in name else ()
        return known or next((value for one in others if (value := self.constant_of(one)) is not None), None)

    def _declared_elsewhere(self, function: Function, name: str) -> Object | None:
        """A variable that a file in view only declares, by its type."""
        types = [one.ir.globals[name] for one in self.cpp.visible(function.unit) if name in one.ir.globals]
        return self.object_of(function, types[0], ("extern", name), False) if types else None

    def _external(self, function: Function, name: str, read: Instruction | None = None) -> Object:
        """A name of a library, as its rows spell it."""
        names = [self.spelled(one) for one in self._spelled_names(function, name)]
        if read is not None and "::" not in name:
            names += [f"{space}::{name}" for space in self._spaces_given(function, read)]
        known = next((one for one in names if self.cpp_models.call(one) is not None or self.cpp_models.type_named(one) is not None), None)
        return self.objects(CppName, known or self.spelled(self.cpp.spellings(function.unit, scope_of(function), name)[0]), None)

    def _spelled_names(self, function: Function, name: str) -> list[str]:
        """The qualified names that a name may stand for, the innermost scope first; a scope may take in a name of another one."""
        spelled, prefixes = self.cpp.spellings(function.unit, scope_of(function), name)
        aliases = self.cpp.context(function.unit).aliases
        full = [f"{prefix}::{spelled}" if prefix else spelled for prefix in prefixes]
        return [each for one in full for each in (one, str(aliases[one][0]) if one in aliases else "") if each]

    def _spaces_given(self, function: Function, read: Instruction) -> Iterator[str]:
        """The namespaces of the constants and types that a call of a name is given: a plain name is looked up there, too."""
        calls = (use for use in function.uses[read[2]] if use[0] == op.CALL and use[3] == read[2])
        for register in (each for call in calls for each in call[5:]):
            one = function.definitions[register] if register >= 0 else None
            while one is not None and one[0] in (op.INVOKE, op.CALL, op.COPY):
                one = function.definitions[one[3]]
            names: list[str] = []
            if one is not None and one[0] == op.NAME:
                value = self._constant_named(function, function.text(one[3]))
                names = [value.name] if isinstance(value, CppName) else []
            elif one is not None and one[0] == op.CAST and (kind := function.unit.ir.constants[one[3]]) is not None:
                names = [str(self.cpp.resolved(function.unit, scope_of(function), kind)[0])]
            for name in names:
                while name := name.rpartition("::")[0]:
                    yield name

    def spelled(self, name: str) -> str:
        """A library's name as the rows have it."""
        raise NotImplementedError

    def _own_method(self, frame: Frame, name: str, node: Node) -> bool:
        """A method of the class around, which is called without a receiver."""
        method = frame.function.method
        owner = method.owner if method is not None else None
        if owner is None or "::" in name or not any(name in one.methods for one in self.hierarchy.order(owner)):
            return False
        if not any(one.has_receiver for one in (method,) if one is not None):
            self.member(self.objects(ClassObject, owner), name, node, node.site)
            return True
        self.solver.when(self.this(frame), lambda value: self.member(value, name, node, node.site))
        return True

    def this(self, frame: Frame) -> Node:
        """The receiver of the method that a frame is, or stands in."""
        method = frame.function.method
        assert method is not None
        home: Frame | None = frame
        while home is not None and home.function is not method:
            home = home.outer
        home = home if home is not None else self.base(method)
        parameter = next((one for one in method.by_opcode[op.PARAM] if one[3] == 0), None)
        return self.register(home, parameter[2]) if parameter is not None and method.has_receiver else Node(None)

    def _bound_to_this(self, frame: Frame, method: Function, node: Node) -> None:
        """`Base::f()`: exactly this method, on the receiver at hand."""
        called = self.function_object(method, None)
        self.solver.when(self.this(frame), lambda value: self.solver.add(node, self.objects(BoundMethod, called, value)))

    def cpp_address_of_name(self, frame: Frame, name: str, node: Node) -> None:
        """`&x` of a name that is no local."""
        function = frame.function
        owner = self.member_of(function, name)
        found = self.cpp.find(function.unit, scope_of(function), name)
        variable = next((one for one in found if isinstance(one, Variable)), None)
        if owner is not None:
            self.address(self.field(owner, name), node)
        elif variable is not None:
            self.address(self.variable(variable), node)
        elif found:
            for one in found:
                if not isinstance(one, Variable):
                    self.meant(one, node)
        else:
            self._static_member(frame, name, node)

    # --- members

    def member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        if isinstance(value, Address):
            if target.first("member", value, name):
                self.solver.when(value.place, lambda held: self.member(held, name, target, site))
        elif isinstance(value, Instance) and value.definition.unit.is_cpp:
            if target.first("member", value, name):
                self._cpp_member(value, name, target, site)
        elif isinstance(value, Elements):
            self.elements_member(value, name, target)
        elif isinstance(value, Group) and name in ("first", "second"):
            self.element(value, 0 if name == "first" else 1, target, site)
        elif isinstance(value, CppName):
            self.unknown(target, "external")
        else:
            super().member(value, name, target, site)

    def elements_member(self, value: Elements, name: str, target: Node) -> None:
        """A method of a container."""
        raise NotImplementedError

    def _cpp_member(self, value: Instance, name: str, target: Node, site: Site | None) -> None:
        found = self.field_of(value.definition, name)
        if found is not None:
            self.solver.edge(self.field(found[0], name), target)
            return
        classes = self.possible_classes(value)
        if not classes:
            self.unknown(target, "dynamic")
            return
        looked_up = False
        for definition in classes:
            methods = self.overloads(definition, name)
            looked_up |= bool(methods)
            receiver = self.objects(Instance, definition, True)
            for method in methods:
                self.bind(self.function_object(method, None), receiver, definition, target, site)
            if not methods and (own := self.field_of(definition, name)) is not None:
                self.solver.edge(self.field(own[0], name), target)
        if not looked_up and not self.not_a_member(value, name, target, site):
            self.unknown(target, "external")

    def not_a_member(self, value: Instance, name: str, target: Node, site: Site | None) -> bool:
        """What else a name may mean that no class of an object has; false if nothing."""
        return False

    def overloads(self, definition: ClassInfo, name: str) -> list[Function]:
        """The methods of a name that an object of a class has; those of a base that the class does not hide."""
        found = self.hierarchy.lookup(definition, name)
        return found[1] if found is not None else []

    def _class_member(self, value: ClassObject, name: str, target: Node, site: Site | None) -> None:
        definition = value.definition
        if not definition.unit.is_cpp:
            super()._class_member(value, name, target, site)
            return
        for method in self.overloads(definition, name):
            self.solver.add(target, self.function_object(method, None))

    def is_wrapped(self, method: Function) -> bool:
        return not method.is_cpp and super().is_wrapped(method)

    # --- calls

    def arguments(self, frame: Frame, instruction: Instruction) -> Arguments:
        key = (frame, instruction)
        found = self._arguments.get(key)
        if found is not None or not frame.function.is_cpp:
            return super().arguments(frame, instruction)
        if instruction[0] == op.LAUNCH:
            first, shape = 6 + instruction[5], instruction[4]
        elif instruction[0] in _OPERANDS:
            first, place = _OPERANDS[instruction[0]]
            shape = instruction[place]
        else:
            return super().arguments(frame, instruction)
        found = self._arguments[key] = Arguments(frame, Site(frame.function, instruction))
        self._fill(found, frame, instruction[first:], shape)
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
            super().enter(called, receiver, arguments, target)

    def notify(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> None:
        if self.accepts(called.function, arguments):
            super().notify(called, receiver, arguments)

    def accepts(self, function: Function, arguments: Arguments) -> bool:
        """C++: whether a function takes as many arguments; a binding for Python may have defaults of its own."""
        if not function.is_cpp:
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
        for method in definition.methods.get("__init__", ()):
            self.notify(self.function_object(method, None), value, arguments)
        self.constructed(self.objects(ClassObject, definition), arguments)

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
        elif one[0] == op.DECLARE and value is None and meant is not None and self.cpp_models.call(str(resolved[0])) is not None:
            self.made_of_library(str(resolved[0]), resolved, frame, arguments, node)  # a class: its constructor makes the object
        elif one[0] == op.DECLARE or isinstance(value, (Elements, Memory)):
            if value is not None and value is not self.scalar:
                self.solver.add(node, value, None, arguments.site)
        else:
            self.made_of_library(str(resolved[0]), resolved, frame, arguments, node)

    def no_arguments_of(self, frame: Frame, one: Instruction) -> Arguments:
        """The empty arguments of an instruction that makes an object."""
        key = (frame, one)
        found = self._arguments.get(key)
        if found is None:
            found = self._arguments[key] = Arguments(frame, Site(frame.function, one))
        return found

    def made_of_library(self, name: str, kind: TypeTuple, frame: Frame, arguments: Arguments, node: Node) -> None:
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

    def operated(self, frame: Frame, operator: str, registers: tuple[int, ...], node: Node) -> None:
        """Arithmetic: of pointers it leads to the same memory; of numbers it gives one."""
        literal = [one for one in registers if (made := frame.function.definitions[one]) is not None and made[0] == op.CONST]
        for register in registers:
            if register in literal and len(literal) < len(registers):
                continue
            source = self.register(frame, register)

            def arrived(value: Object, source: Node = source) -> None:
                if isinstance(value, (Memory, Address, Elements, Unknown)) and operator in ("+", "-", "++", "--"):
                    self.solver.add(node, value, source)
                elif isinstance(value, Instance) and value.definition.unit.is_cpp:
                    self.unknown(node, "dynamic")
                elif isinstance(value, Memory) and value.type not in ("pointer", "array"):
                    self.solver.add(node, self.computed(value), source)
                elif isinstance(value, (Constant, External)) or value is self.scalar:
                    self.solver.add(node, self.scalar)

            self.solver.when(source, arrived)
