"""Names and members of C++."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import (
    Address,
    BoundMethod,
    ClassObject,
    CppName,
    Elements,
    Group,
    Instance,
    Object,
    Site,
)
from streamlint.facts.cpp.brace_lists import BraceLists
from streamlint.facts.cpp.cpp_places import CppPlaces
from streamlint.facts.files.cpp_scopes import Meaning, Variable, scope_of
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple

ARROW = "operator->"
_RESET = "reset"


class CppNames(CppPlaces):
    """Value flow of names and members of C++."""

    @cached_property
    def brace_lists(self) -> BraceLists:
        """The records that lists in braces make."""
        return BraceLists(self)

    def cpp_name(self, frame: Frame, name: str, node: Node, read: Instruction | None = None) -> None:
        """What a name that is no local means; ``read`` is the instruction that reads it."""
        function = frame.function
        owner = self.member_of(function, name)
        if owner is not None:
            self.solver.edge(self.field(owner, name.rpartition("::")[2]), node)
            return
        if self._own_method(frame, name, node):
            return
        found = self._found(function, name, read)
        for one in found:
            if isinstance(one, Variable):
                self.solver.edge(self.variable(one), node)
            elif isinstance(one, Function) and one.has_receiver and function.method is not None:
                self._bound_to_this(frame, one, node)
            else:
                self.meant(one, node)
        if not found:
            self._static_member(frame, name, node, read)

    def _found(self, function: Function, name: str, read: Instruction | None) -> Sequence[Meaning]:
        """What files define under a name; of a template's specialisations those that the arguments behind the name may mean."""
        found = self.cpp.find(function.unit, scope_of(function), name)
        given = function.code.templates.get(read[1], ()) if read is not None and len(found) > 1 else ()
        functions = [one for one in found if isinstance(one, Function)]
        if not given or not any(one.code.specialised for one in functions):
            return found
        return self.templates.chosen(functions, [self.templates.meant(function, one) for one in given])

    def _static_member(self, frame: Frame, name: str, node: Node, read: Instruction | None = None) -> None:
        """`C::x`, or a name of a library."""
        function = frame.function
        head, separator, last = name.rpartition("::")
        owner = self.cpp.class_named(function.unit, scope_of(function), head) if separator else None
        if owner is not None and (method := self.hierarchy.lookup(owner, last)) is not None:
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
            name = self._named_by(function, one) if one is not None else ""
            while name := name.rpartition("::")[0]:
                yield name

    def _named_by(self, function: Function, one: Instruction) -> str:
        """The constant, or the type, that an instruction names; "" for another one."""
        if one[0] == op.NAME:
            value = self._constant_named(function, function.text(one[3]))
            return value.name if isinstance(value, CppName) else ""
        kind = function.unit.ir.constants[one[3]] if one[0] == op.CAST else None
        return str(self.cpp.resolved(function.unit, scope_of(function), kind)[0]) if kind is not None else ""

    def spelled(self, name: str) -> str:
        """A library's name as the rows have it."""
        raise NotImplementedError

    def _own_method(self, frame: Frame, name: str, node: Node) -> bool:
        """A method of the class around, which is called without a receiver."""
        method = frame.function.method
        owner = method.owner if method is not None else None
        if owner is None or "::" in name or not any(_has_method(one, name) for one in self.hierarchy.order(owner)):
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

    def cpp_address_of_name(self, frame: Frame, name: str, node: Node, read: Instruction) -> None:
        """`&x` of a name that is no local."""
        function = frame.function
        owner = self.member_of(function, name)
        found = self._found(function, name, read)
        variable = next((one for one in found if isinstance(one, Variable)), None)
        if owner is not None:
            self.address(self.field(owner, name.rpartition("::")[2]), node)
        elif variable is not None:
            self.address(self.variable(variable), node)
        elif found:
            for one in found:
                if not isinstance(one, Variable):
                    self.meant(one, node)
        else:
            self._static_member(frame, name, node)

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
        if not looked_up and not self._behind_arrow(value, name, target, site) and not self.not_a_member(value, name, target):
            self._of_holder(value, classes, name, target, site)

    def _of_holder(self, value: Instance, classes: list[ClassInfo], name: str, target: Node, site: Site | None) -> None:
        """A method that the class of an object has not: one of what holds it and stands for it."""
        holder, is_made_anew = self._holder_with(name), name in self.cpp_models.known("emplaces")
        if is_made_anew or (name == _RESET and any(one.methods.get("__del__") for one in classes)):
            self._ends_held(classes, target, site)
            for definition in classes if is_made_anew else ():
                self.solver.add(target, self.objects(ClassObject, definition))
        elif holder is None:
            self.unknown(target, "external")
        else:
            self.solver.add(target, self.objects(CppName, f"{holder}::{name}", value))

    def _ends_held(self, classes: list[ClassInfo], target: Node, site: Site | None) -> None:
        """What holds an object ends it: ``owner.reset()``, ``slot.emplace()``."""
        for definition in classes:
            for method in definition.methods.get("__del__", ()):
                self.bind(self.function_object(method, None), self.objects(Instance, definition, True), definition, target, site)

    def _holder_with(self, name: str) -> str | None:
        """What holds an object and stands for it, as `std::optional` does, and has a method that the class of the object has not."""
        holders = sorted(self.cpp_models.marked("smart"))
        return next((holder for holder in holders if self.cpp_models.call(f"{holder}::{name}") is not None), None)

    def _behind_arrow(self, value: Instance, name: str, target: Node, site: Site | None) -> bool:
        """A member of what the `operator->` of a class gives; false if the class has none."""
        if name == ARROW or not self.is_operator(value.definition, ARROW):
            return False
        given = Node(None, site)
        arguments = self.no_arguments(site)
        self.solver.when(self.method_node(value, ARROW, site), lambda held: self.call(held, arguments, given))
        self.solver.when(given, lambda held: self.member(held, name, target, site))
        return True

    def is_operator(self, definition: ClassInfo, name: str) -> bool:
        """Whether a class of C++ defines an operator that takes the object alone."""
        methods = self.overloads(definition, name) if definition.unit.is_cpp else ()
        return any(len(method.code.parameters) == 1 for method in methods)

    def is_pointer(self, function: Function, register: int) -> bool:
        """Whether a register is known to hold a pointer, by how it is made or declared."""
        one = function.definitions[uncast(function, register)] if register >= 0 else None
        kind: TypeTuple | None = None
        if one is None or one[0] in (op.NEW, op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ATTR, op.ADDRESS_ITEM):
            return one is not None
        if one[0] == op.PARAM:
            kind = function.code.parameters[one[3]].type
        elif one[0] == op.NAME:
            kind = self._declared_member(function, one)
        return kind is not None and kind[2] > 0

    def _declared_member(self, function: Function, one: Instruction) -> TypeTuple | None:
        """The type of the member that a name reads in a method."""
        name = function.text(one[3])
        owner = function.method.owner if function.method is not None else None
        found = self.field_of(owner, name) if owner is not None else None
        return found[1].type if found is not None else None

    def not_a_member(self, value: Instance, name: str, target: Node) -> bool:
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


def _has_method(definition: ClassInfo, name: str) -> bool:
    """Whether a class defines a method, or declares one that classes below it define (``virtual void f() = 0;``)."""
    return name in definition.methods or f"{definition.ir.qualname}::{name}" in definition.unit.declared
