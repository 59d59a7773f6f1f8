"""What a function does to devices, by itself or through what it calls: the first operation, and the calls that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import ClassObject, FunctionObject, Instance, Site, are_plain
from streamlint.facts.files.cpp_scopes import CppScopes, scope_of
from streamlint.facts.graph.call_graph import Edge
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.support.memo import memoized
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperation, DeviceOperations, stores_of
from streamlint.transfer.transfer import CALLING, Transfer

_OPERATING = (*CALLING, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.FORMAT, op.BRANCH, op.SET_ITEM)
_ENDING = (op.DELETE, op.DESTROY)
_DEEPEST = 4
Wanted = Callable[[Function, DeviceOperation], bool]


class Reached(NamedTuple):
    """An operation, and the calls that lead to it, the outermost first."""

    operation: DeviceOperation
    site: Site
    calls: tuple[Site, ...] = ()


class Reach:
    """The operations that functions lead to. ``wanted`` says which count."""

    def __init__(self, transfer: Transfer, operations: DeviceOperations, wanted: Wanted) -> None:
        self.transfer = transfer
        self.operations = operations
        self.wanted = wanted
        self._first: dict[Function, Reached | None] = {}
        self._edges: dict[Function, dict[Instruction, list[Edge]]] = {}

    def own(self, function: Function) -> Iterator[Reached]:
        """The operations of a function's own instructions."""
        for one in function.code.instructions():
            if one[0] in _OPERATING:
                for operation in self.operations.of(function, one):
                    if self.wanted(function, operation):
                        yield Reached(operation, Site(function, one))
                        break

    def edges(self, function: Function) -> dict[Instruction, list[Edge]]:
        """The functions that the instructions of a function run as a part of it, in the order of the instructions."""
        found = self._edges.get(function)
        if found is None:
            found = self._edges[function] = {}
            for one in function.code.instructions():
                followed = [edge for edge in self._run_by(function, one) if edge.is_direct]
                if followed:
                    found[one] = followed
        return found

    def _run_by(self, function: Function, one: Instruction) -> Sequence[Edge]:
        """The functions that an instruction calls, and those that it runs without a call: of declared or deleted objects."""
        if one[0] in _ENDING and function.is_cpp and not self.transfer.facts.has_deleter(function, one[2]):
            return [Edge(one, callee) for callee in self._ended(function, one)]
        if one[0] == op.DEL_ATTR and not function.is_cpp:
            return [Edge(one, callee) for callee in self._deleted(function, one)]
        edges = self.transfer.edges(function, one) if one[0] in CALLING else ()
        if not edges and not function.is_cpp:
            edges = self._implicit(function).get(one, ())
        if function.is_cpp:
            edges = self._of_cpp(function, one, edges)
        return fitting(self.transfer, function, one, edges) if len({edge.callee for edge in edges}) > 1 else edges

    @memoized
    def _implicit(self, function: Function) -> dict[Instruction, tuple[Edge, ...]]:
        """Python: the methods that instructions run without naming them: for the text of an object, its truth, an operator, a property."""
        found: dict[Instruction, tuple[Edge, ...]] = {}
        for edge in self.transfer.graph.all_calls(function).edges:
            found[edge.instruction] = (*found.get(edge.instruction, ()), edge)
        return found

    def _of_cpp(self, function: Function, one: Instruction, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        """C++: also the constructors of what is declared, and methods by the declared types of their objects."""
        if one[0] == op.DECLARE:
            return tuple(Edge(one, made) for made in self._made(function, one))
        if edges or one[0] != op.INVOKE:
            return edges
        dropped = self._dropped(function, one) if function.invokes(one, "drops-reference") else ()
        return tuple(Edge(one, callee) for callee in (*self._declared(function, one), *dropped))

    def _dropped(self, function: Function, one: Instruction) -> Iterator[Function]:
        """What a smart pointer runs that lets go of what may be the last reference."""
        for kind, definition in self._member_types(function, one[3]):
            resolved = self.transfer.facts.cpp.resolved(definition.unit, definition.name, kind)
            if resolved[0] in function.unit.models.marked("smart"):
                yield from self._of_type(function, kind, definition.name)

    def _ended(self, function: Function, one: Instruction) -> Iterator[Function]:
        """The destructors that the end of an object runs: its own, those of its bases, and of the members that it holds itself."""
        facts = self.transfer.facts
        if one[0] == op.DESTROY and not self._is_owner(function, one[2]):
            return
        objects = [value for value in self.transfer.values(function, one[2]) if isinstance(value, Instance)]
        if one[0] == op.DELETE:
            yield from self._of_deleted_type(function, one[2], not objects)
        for value in objects:
            for definition in facts.possible_classes(value) if one[0] == op.DELETE else [value.definition]:
                yield from self._destructors(definition, 0)

    def _of_deleted_type(self, function: Function, register: int, is_unknown: bool) -> Iterator[Function]:
        """The destructors of what a container or a smart pointer holds that is deleted, by its type; and where no value is known
        (``is_unknown``), of the class that a pointer is cast to."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.CAST:
            return
        kind, scope = function.unit.ir.constants[one[3]], scope_of(function)
        yield from self._of_type(function, kind, scope)
        cpp = self.transfer.facts.cpp
        resolved = cpp.resolved(function.unit, scope, kind) if is_unknown and kind is not None else None
        meant = cpp.find_class(function.unit, scope, str(resolved[0])) if resolved is not None else None
        yield from self._destructors(meant, 0) if meant is not None else ()

    def _of_type(self, function: Function, whole: TypeTuple | None, scope: str) -> Iterator[Function]:
        """The destructors of what a type holds, and the deleters of its smart pointers."""
        cpp = self.transfer.facts.cpp
        kinds = [whole]
        for kind in kinds:
            if kind is None:
                continue
            kind = cpp.resolved(function.unit, scope, kind)
            if str(kind[0]).startswith("std::"):
                kinds += kind[1]
                yield from self._deleters(function, kind) if kind[0] in function.unit.models.marked("smart") else ()
            elif len(kinds) > 1 and not kind[2]:
                meant = cpp.find_class(function.unit, scope, str(kind[0]))
                yield from (*self._destructors(meant, 0), *meant.methods.get("operator()", ())) if meant is not None else ()

    def _deleters(self, function: Function, kind: TypeTuple) -> Iterator[Function]:
        """The functions that smart pointers of a type are made with in the file, to be run with the last reference."""
        cpp = self.transfer.facts.cpp
        for holder in function.unit.functions:
            for one in (*holder.by_opcode[op.CALL], *holder.by_opcode[op.CONSTRUCT]):
                named = _named_type(holder, one) if len(one) > 6 else None
                if named is not None and cpp.resolved(holder.unit, scope_of(holder), named)[:2] == kind[:2]:
                    values = self.transfer.values(holder, one[6])
                    yield from (value.function for value in values if isinstance(value, FunctionObject))

    def _made(self, function: Function, one: Instruction) -> Iterator[Function]:
        """The constructor without arguments that a declaration runs."""
        for method in self.transfer.facts.made_by(function, one):
            if all(each.default for each in method.code.parameters[1:]):
                yield method

    def _declared(self, function: Function, one: Instruction) -> Iterator[Function]:
        """The methods that a call means by the declared type of the member that it is called of, where nothing is known of its value."""
        for kind, definition in self._member_types(function, one[3]):
            meant = self.transfer.facts.cpp.find_class(definition.unit, definition.name, str(kind[0]))
            yield from meant.methods.get(function.text(one[4]), ()) if meant is not None else ()

    def _member_types(self, function: Function, register: int) -> Iterator[tuple[TypeTuple, ClassInfo]]:
        """The types with which a member is declared that a register holds, and the classes that it is declared in."""
        definition = function.definitions[register] if register >= 0 else None
        for value in self.transfer.values(function, definition[3]) if definition is not None and definition[0] == op.ATTR else ():
            if isinstance(value, Instance) and definition is not None:
                name = function.text(definition[4])
                yield from ((each.type, value.definition) for each in value.definition.ir.fields if each.name == name and each.type)

    def _deleted(self, function: Function, one: Instruction) -> Iterator[Function]:
        """Cython: the destructors of what a member points to that is deleted."""
        owner = function.owner
        fields = [each for each in owner.ir.fields if each.name == function.text(one[3])] if owner is not None else []
        if not any(each.type is not None and each.type[2] for each in fields):
            return
        facts = self.transfer.facts
        names = [str(each.type[0]) for each in fields if each.type is not None]
        for name in names:
            for value in facts.global_values(function.unit, name):
                if isinstance(value, ClassObject) and value.definition.unit.is_cpp:
                    yield from self._destructors(value.definition, 0)

    def _is_owner(self, function: Function, register: int) -> bool:
        """Whether an object that ends with its scope owns what it holds: it is the object, or a smart pointer made for it alone."""
        definition = function.definitions[register]
        if definition is not None and definition[0] == op.LOAD:
            return any(self._is_owner(holder, each) for holder, each in stores_of(function, definition[3]) if holder is function)
        if definition is None or definition[0] not in (op.DECLARE, op.CONSTRUCT, op.CALL, op.NEW, op.COPY):
            return False
        if definition[0] == op.COPY:
            return self._is_owner(function, definition[3])
        return (
            definition[0] != op.CALL
            or function.dotted(definition[3]).rpartition("::")[2].startswith("make_unique")
            or self._makes(function, definition)
        )

    def _makes(self, function: Function, call: Instruction) -> bool:
        """Whether a call is a constructor's."""
        return any(edge.callee.code.name == "__init__" for edge in self.transfer.edges(function, call))

    def _destructors(self, definition: ClassInfo, depth: int) -> Iterator[Function]:
        facts = self.transfer.facts
        for each in facts.hierarchy.order(definition):
            yield from each.methods.get("__del__", ())
            for field in each.ir.fields if depth < _DEEPEST else ():
                kind = field.type
                if kind is None or kind[2] or kind[3] or field.static:
                    continue
                inner = kind[1][0] if kind[0] == "std::unique_ptr" and kind[1] else kind
                meant = facts.cpp.find_class(each.unit, each.name, str(inner[0])) if inner is not None else None
                if meant is not None and meant is not each:
                    yield from self._destructors(meant, depth + 1)

    def first(self, function: Function) -> Reached | None:
        """The first operation that a function leads to."""
        if function not in self._first:
            self._first[function] = None  # in a cycle, the others tell
            self._first[function] = next(self.all(function), None)
        return self._first[function]

    def all(self, function: Function) -> Iterator[Reached]:
        """The operations of a function, and for each call the first one behind it."""
        own = {reached.site.instruction: reached for reached in self.own(function)}
        edges = self.edges(function)
        for one in function.code.instructions():
            if one in own:
                yield own[one]
                continue
            for edge in edges.get(one, ()):
                behind = self.first(edge.callee)
                if behind is not None:
                    yield behind._replace(calls=(Site(function, one), *behind.calls))
                    break


def _named_type(function: Function, one: Instruction) -> TypeTuple | None:
    """The type that a call names, which makes an object of it."""
    if one[0] == op.CONSTRUCT:
        kind: TypeTuple | None = function.unit.ir.constants[one[3]]
        return kind
    called = function.definitions[one[3]]
    return (function.text(called[3]), (), 0, False, None) if called is not None and called[0] == op.NAME else None


def fitting(transfer: Transfer, function: Function, one: Instruction, edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Of overloads, those whose parameters take the arguments: objects of classes go to classes, numbers to numbers."""
    given = one[6:] if one[0] == op.INVOKE else one[5:]
    kept = [edge for edge in edges if _takes(transfer, function, edge.callee, given)] or list(edges)
    overloads = len({edge.callee.owner for edge in kept}) == 1  # else one overrides the other
    exact = [edge for edge in kept if overloads and _is_exact(transfer, function, edge.callee, given)]
    return tuple(exact or kept)


def _is_exact(transfer: Transfer, function: Function, callee: Function, given: tuple[int, ...]) -> bool:
    """Whether a C++ function's parameters have the very types of the arguments, all of which are declared."""
    if not (function.is_cpp and callee.is_cpp):
        return False
    cpp = transfer.facts.cpp
    parameters = callee.code.parameters[1 if callee.has_receiver else 0 :]
    for parameter, register in zip(parameters, given, strict=False):
        own, other = _declared_type(function, register), parameter.type
        if own is None or other is None or _written(cpp, function, own) != _written(cpp, callee, other):
            return False
    return len(parameters) == len(given) > 0


def _written(cpp: CppScopes, function: Function, kind: TypeTuple) -> tuple[object, ...]:
    """A type as overloads tell it apart: without aliases, and without what makes it a reference."""
    name, arguments, pointers, _, array = cpp.resolved(function.unit, scope_of(function), kind)
    meant = cpp.find_class(function.unit, scope_of(function), str(name))
    return meant if meant is not None else name, arguments, pointers, array


def _declared_type(function: Function, register: int) -> TypeTuple | None:
    """The type with which a parameter is declared that a register holds, also one of a function around."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] in (op.COPY, op.REBIND):
        one = function.definitions[one[3] if one[0] == op.COPY else one[5]]
    if one is not None and one[0] == op.PARAM:
        return function.code.parameters[one[3]].type
    if one is None or one[0] != op.LOAD:
        return None
    name, number = function.unit.ir.constants[one[3]]
    parameters = function.unit.function(number).code.parameters
    return next((parameter.type for parameter in parameters if parameter.name == name), None)


def _takes(transfer: Transfer, function: Function, callee: Function, given: tuple[int, ...]) -> bool:
    if not callee.is_cpp:
        return True
    parameters = callee.code.parameters[1 if callee.has_receiver else 0 :]
    for parameter, register in zip(parameters, given, strict=False):
        kind = parameter.type
        if kind is None or kind[2]:
            continue
        is_class = transfer.facts.cpp.find_class(callee.unit, scope_of(callee), str(kind[0])) is not None
        is_object = _is_object(transfer, function, register)
        if is_object is not None and is_object != is_class:
            return False
    return True


def _is_object(transfer: Transfer, function: Function, register: int) -> bool | None:
    """Whether an argument is an object of a class; None where that is not known."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and (one[0] == op.DEREF or (one[0] == op.CALL and function.dotted(one[3]).rpartition(".")[2] == "dereference")):
        return True
    values = list(transfer.values(function, register)) if register >= 0 else []
    if any(isinstance(value, Instance) for value in values):
        return True
    return False if not function.is_cpp or are_plain(values) else None


def is_cuda(operations: DeviceOperations) -> Wanted:
    """Whether an operation calls CUDA for sure."""

    def wanted(function: Function, operation: DeviceOperation) -> bool:
        if operation.kind in (device.READ, device.COMPUTE) or (operation.kind == device.COPY and operation.needs is not None):
            return any(operations.on_device(function, register) for register in operation.needs or () if register >= 0)
        if operation.kind == device.COPY:
            return operation.direction in ("h2d", "d2h", "d2d") or not operation.library.startswith("torch")
        return operation.kind not in (device.PIN, device.COLLECTIVE, device.OTHERS)

    return wanted
