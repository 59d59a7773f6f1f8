"""Value flow between Python and C++: Python calls what an extension binds, C++ calls what Python gave it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import (
    ClassObject,
    Constant,
    CppName,
    External,
    FunctionObject,
    Instance,
    LibraryObject,
    Many,
    Memory,
    ModuleObject,
    Object,
    PartialObject,
    Site,
)
from streamlint.facts.cpp.cpp import Cpp
from streamlint.facts.files.exports import Export, Exports
from streamlint.facts.files.program import Unit
from streamlint.facts.files.scopes import Definition, ExternalName
from streamlint.facts.files.steps import Place
from streamlint.facts.files.tracker import Tracker
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.library_effects import SYMBOLS
from streamlint.facts.values.nodes import Node
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models

_OF_PYTHON = (ModuleObject, Instance, ClassObject)
_IMPORTS = ("module_::import", "module::import", "module_::import_")
_TYPES = {"torch.Tensor": "at::Tensor", "at::Tensor": "torch.Tensor", "torch::Tensor": "torch.Tensor"}
"""The same memory by its type in the other language."""


class BoundTracker(Tracker):
    """Follows a function of C++ through Python."""

    def _method_of_it(self, function: Function, use: Instruction, depth: int) -> None:
        if function.text(use[4]) == "default":  # an operator's only overload
            self.called(function, use)
        else:
            super()._method_of_it(function, use, depth)


class Bindings(Cpp):
    """Value flow over the border of the languages."""

    @cached_property
    def exports(self) -> Exports:
        return Exports(self.program)

    def is_private(self, function: Function) -> bool:
        """Python may call what C++ binds for it, lambdas too."""
        return super().is_private(function) and not (function.is_cpp and function in self.exports.bound)

    # --- from Python

    def meant(self, definition: Definition, target: Node) -> None:
        if isinstance(definition, ExternalName) and (self.of_c(definition.name, target) or self.exported(definition.name, target)):
            return
        super().meant(definition, target)

    def of_c(self, name: str, target: Node) -> bool:
        """What Cython means by a name that no file defines, and C or C++ does: a function or constant of a library, or of the program."""
        if not self._of_cython or self.knows(name):
            return False
        head, _, name = name.rpartition(".")
        if head and (self.models.is_known(head.partition(".")[0]) or self.cpp_models.calls.get(name) is None):
            return False
        constant = self.constant_of(name)
        found: list[Object] = [constant] if constant is not None else []
        if not found and self.cpp_models.call(name) is not None:
            found.append(self.objects(CppName, name, None))
        if not found:
            found = list(self._of_cpp(name))
        for value in found:
            self.solver.add(target, value)
        return bool(found)

    def _of_cpp(self, name: str) -> Iterator[Object]:
        """The classes and functions of C++ that the program has under a name."""
        for unit in self.program.cpp.mentioning(name):
            yield from (self.objects(ClassObject, one) for one in unit.classes if one.ir.name == name)
            own = (one for one in unit.functions if one.code.name == name and one.code.kind == "function" and one.owner is None)
            yield from (self.function_object(one, None) for one in own)

    @cached_property
    def _of_cython(self) -> list[Unit]:
        return [unit for unit in self.program.units.values() if unit.path.endswith((".pyx", ".pxd", ".pxi"))]

    def member(self, value: Object, name: str, target: Node, site: Site | None) -> None:
        if isinstance(value, FunctionObject) and value.function.is_cpp and name == "default":
            self.solver.add(target, value)
        elif isinstance(value, LibraryObject) and value.kind == SYMBOLS and (found := self.symbols(name)):
            for one in found:
                self.solver.add(target, self.function_object(one, None))
        elif type(value) is not External or not self.exported(f"{value.name}.{name}", target):
            super().member(value, name, target, site)

    def symbols(self, name: str) -> list[Function]:
        """The functions of C that a shared library may have by a name."""
        units = [unit for unit in self.program.mentioning(name) if unit.is_cpp]
        return [one for unit in units for one in unit.named.get(name, ()) if isinstance(one, Function)]

    def exported(self, name: str, target: Node) -> bool:
        """What C++ binds to a name of Python arrives at a node; false if there is nothing."""
        if "." not in name or not self.program.cpp.any:
            return False
        near = target.site.function.unit if target.site is not None else None
        found = self.exports.find(name, self.models.is_known(name.partition(".")[0]), near)
        if isinstance(found, ClassInfo):
            self.solver.add(target, self.objects(ClassObject, found))
            return True
        for one in found:
            if one.is_of_c:
                self.solver.when(self.bound(one), lambda held: self.solver.add(target, self._of_module(held)))
            else:
                self.solver.edge(self.bound(one), target)
        return bool(found)

    def _of_module(self, held: Object) -> Object:
        """A function of the C API, which is given its module first."""
        return self.objects(PartialObject, held, self._module_first) if isinstance(held, FunctionObject) else held

    @cached_property
    def _module_first(self) -> Arguments:
        found = Arguments(None, None)
        found.positional = [Node(None)]
        return found

    def bound(self, export: Export) -> Node:
        """What a binding binds."""
        return self.register(self.base(export.within), export.register)

    def _cpp_member(self, value: Instance, name: str, target: Node, site: Site | None) -> None:
        """What Python means by a name to which C++ binds a lambda is that, also where the class has a method of the name."""
        asking = site or target.site
        is_python = asking is not None and not asking.function.is_cpp
        bound = [one for one in self._bound_to(value, name) if _is_lambda(one)] if is_python else []
        if bound:
            self._give_bound(bound, value, target)
        else:
            super()._cpp_member(value, name, target, site)

    def not_a_member(self, value: Instance, name: str, target: Node) -> bool:
        """What is bound to a name of a class, where C++ has no member of that name."""
        bound = self._bound_to(value, name)
        self._give_bound(bound, value, target)
        return bool(bound)

    def _bound_to(self, value: Instance, name: str) -> list[Export]:
        return [one for each in self.hierarchy.order(value.definition) for one in self.exports.members.get((each, name), ())]

    def _give_bound(self, bound: list[Export], receiver: Instance, target: Node) -> None:
        for one in bound:
            self.solver.when(self.bound(one), lambda held: self.solver.add(target, self._with_receiver(held, receiver)))

    def _with_receiver(self, held: Object, receiver: Instance) -> Object:
        given = self.handing(receiver)
        return self.objects(PartialObject, held, given) if isinstance(held, FunctionObject) else held

    def enter(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        caller = arguments.frame.function if arguments.frame is not None else None
        if caller is None or caller.is_cpp == called.function.is_cpp:
            super().enter(called, receiver, arguments, target)
            return
        inner = Node(None, target.site)
        super().enter(called, receiver, arguments, inner)
        self.solver.when(inner, lambda value: self.solver.add(target, self.across(value), inner, inner.values[value].site))

    def across(self, value: Object) -> Object:
        """A value as the other language has it."""
        if isinstance(value, Memory) and value.type in _TYPES:
            return self.objects(Memory, value.space, value.pinning, _TYPES[value.type], value.evidence)
        return value

    def _bind(self, frame: Frame, index: int, arguments: Arguments, offset: int, node: Node) -> None:
        caller = arguments.frame.function if arguments.frame is not None else None
        if caller is None or caller.is_cpp == frame.function.is_cpp:
            super()._bind(frame, index, arguments, offset, node)
            return
        inner = Node(None, node.site)
        super()._bind(frame, index, arguments, offset, inner)
        self.solver.when(inner, lambda value: self.solver.add(node, self.across(value), inner, inner.values[value].site))

    # --- from C++

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        if isinstance(callee, CppName) and callee.name.endswith(_IMPORTS) and arguments.positional and arguments.site is not None:
            unit = arguments.site.function.unit
            self.solver.when(arguments.positional[0], lambda value: self._imported(value, unit, target))
        else:
            super().library_call(callee, arguments, target)

    def _imported(self, value: Object, unit: Unit, target: Node) -> None:
        """`py::module_::import("name")`."""
        module = str(value.value) if isinstance(value, Constant) else ""
        found = self.program.imported(module, unit) if module else None
        if found is not None:
            self.solver.add(target, self.objects(ModuleObject, found))
        else:
            self.unknown(target, "external")

    def callee(self, frame: Frame, one: Instruction) -> Node:
        if one[0] != op.INVOKE or not frame.function.is_cpp or frame.function.text(one[4]) != "attr":
            return super().callee(frame, one)
        key = (frame, one)
        found = self._callees.get(key)
        if found is None:
            receiver = self.register(frame, one[3])
            found = self._callees[key] = Node(lambda node: self.solver.when(receiver, lambda value: self._attr_of(value, node)))
        return found

    def named_in(self, frame: Frame, value: Object, name: str, node: Node) -> None:
        """C++ gets nothing of an object of Python by a member's name: it has what a caster made of it, or asks `attr`."""
        if not frame.function.is_cpp:
            super().named_in(frame, value, name, node)
        elif isinstance(value, Many):
            self.through(value, ("member in C++", name), lambda one, inner: self.named_in(frame, one, name, inner), node)
        elif isinstance(value, _OF_PYTHON) and not _is_cpp(value):
            self.unknown(node, "external")
        else:
            super().named_in(frame, value, name, node)

    def _attr_of(self, value: Object, node: Node) -> None:
        """`object.attr("name")` of an object of Python."""
        if isinstance(value, _OF_PYTHON) and not _is_cpp(value):
            given = self.handing(value)
            self.solver.add(node, self.objects(PartialObject, self.objects(External, "getattr", None), given))
        else:
            self.member(value, "attr", node, node.site)

    # --- who calls

    def bound_to(self, names: list[str], method: str) -> Iterator[Function]:
        if not self.cpp.any:
            return
        found = [self.exports.find(name, self.models.is_known(name.partition(".")[0])) for name in names if "." in name]
        for one in found:
            for export in one if isinstance(one, list) else ():
                yield from self.exports.targets(export)
        for (_, name), exports in self.exports.members.items() if method else ():
            for export in exports if name == method else ():
                yield from self.exports.targets(export)

    def mentioning(self, name: str) -> list[Unit]:
        found = self._mentioning.get(name)
        if found is None:
            found = self._mentioning[name] = [unit for unit in super().mentioning(name) if not unit.is_cpp]
        return found

    @cached_property
    def _mentioning(self) -> dict[str, list[Unit]]:
        return {}

    def _find_places(self, function: Function) -> list[Place]:
        found = super()._find_places(function)
        if function.is_cpp:
            exports = self.exports.of(function)
            binding = {(one.within, one.instruction) for one in exports}
            found = [place for place in found if place not in binding]  # what binds a function does not run it
            for name in self._names_in_python(function, exports):
                tracker = BoundTracker(self)
                tracker.attribute(name, function.unit)
                for unit in self.nearest(name, function.unit.path):
                    for inner in unit.functions:
                        for one in inner.by_opcode[op.IMPORT]:
                            if one[4] != op.NONE and inner.text(one[4]) == name:
                                tracker.follow(inner, one[2])
                tracker.run()
                found = [*found, *((caller, one) for caller, one in tracker.calls if op.DEFINES[one[0]])]
            if function.code.kind == "function" and function.owner is None:
                found = [*found, *self._places_in_cython(function.code.name)]
        else:
            found = [*found, *self._places_in_cpp(function)]
        return found

    def _places_in_cython(self, name: str) -> Iterator[Place]:
        """The calls in Cython of a function of C or C++, by its name."""
        for unit in self._of_cython:
            for caller in unit.functions if name in unit.source.text else ():
                for one in caller.by_opcode[op.CALL]:
                    if caller.dotted(one[3]).rpartition(".")[2] == name:
                        yield caller, one
                yield from ((caller, one) for one in caller.by_opcode[op.INVOKE] if caller.text(one[4]) == name)

    def _names_in_python(self, function: Function, exports: list[Export]) -> list[str]:
        """The names under which Python knows a function, or the class that it makes."""
        names = [one.name for one in exports]
        if function.owner is None and function.is_linked and self._opens_libraries:
            names.append(function.code.name)
        if function.code.name == "__init__":
            names += [name for name, held in self.exports.classes.items() if any(one is function.owner for _, one in held)]
        return list(dict.fromkeys(names))

    @cached_property
    def _opens_libraries(self) -> bool:
        """Whether Python opens shared libraries, whose functions it calls by symbol."""
        return any(unit for name in self.models.gathered(_opening_modules) for unit in self.program.mentioning(name))

    def _places_in_cpp(self, function: Function) -> list[Place]:
        """The calls in C++ of what Python knows by a name that stands in it as a text, or of a function that it was given."""
        found: list[Place] = []
        for unit in self.cpp.mentioning(function.code.name):
            for caller in unit.functions:
                named = [one for one in caller.by_opcode[op.INVOKE] if caller.text(one[4]) == "attr"]
                if any(caller.constant(one[6]) == function.code.name for one in named if len(one) > 6):
                    found += ((caller, one) for one in (*caller.by_opcode[op.CALL], *caller.by_opcode[op.INVOKE]))
        return found


def _is_lambda(export: Export) -> bool:
    """Whether a binding binds a lambda."""
    one = export.within.definitions[export.register] if export.register >= 0 else None
    return one is not None and one[0] == op.FUNCTION


def _is_cpp(value: Object) -> bool:
    return isinstance(value, (Instance, ClassObject)) and value.definition.unit.is_cpp


def _opening_modules(models: Models) -> frozenset[str]:
    """The modules of Python with functions that open shared libraries."""
    rows = (row for row in models.calls.values() if row.effect == "extension" and row.get("part") in ("symbols", "held"))
    return frozenset(row.names[0].partition(".")[0] for row in rows)
