"""C++: which objects a declared type stands for, and what a value becomes where it is given one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.assertions import Assertions
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Constant, CppName, DeviceValue, Elements, Instance, LibraryObject, Memory, Object, Site, Unknown
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.files.cpp_templates import Templates
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.values.frames import Frame
from streamlint.facts.values.language import Language
from streamlint.facts.values.nodes import Node
from streamlint.ir.code import TypeTuple
from streamlint.ir.cpp import PLAIN
from streamlint.models import Models, TypeRow, builtin
from streamlint.models.vocabulary import SPACES
from streamlint.support.declared_words import Said
from streamlint.support.memo import memoized

_ENTRY_POINT = re.compile(r"PFN_(cu\w+?)(_v\d+)?(_pt[sd]s?z?)?")
"""Types of pointers to functions of the driver: ``cudaTypedefs.h`` of CUDA 12 names them after the function and its version."""


_OTHERS = frozenset({"operator bool", "operator new", "operator delete", "operator co_await"})


def _is_handle(value: Object) -> bool:
    """Whether an object is a stream or an event, and no data."""
    return isinstance(value, LibraryObject) and value.kind in ("stream", "event")


def _is_of_other_type(value: Object, stream: bool, is_data: bool) -> bool:
    """Whether a value is of another type than what it would arrive at: a class template holds values of all types at one place."""
    return _is_handle(value) if is_data else stream and isinstance(value, Memory) and value.space == "device"


def _is_conversion(name: str) -> bool:
    """Whether a method's name is that of a conversion to what may hold memory, a stream or an event."""
    return name.startswith("operator ") and name not in _OTHERS


class CppTypes(Language):
    """Objects by their C++ types."""

    def __init__(self, program: Program, models: Models | None = None, cpp_models: Models | None = None) -> None:
        super().__init__(program, models)
        self.cpp = program.cpp
        self._cpp_models = cpp_models
        program.tell("cuda", cpp_models)
        self.templates = Templates(program.cpp, lambda: self.cpp_models.constants)
        self.element_types: dict[Object, tuple[Function, TypeTuple]] = {}  # what containers of C++ hold

    @property
    def cpp_models(self) -> Models:
        """The rows about C++; they are read when somebody asks."""
        if self._cpp_models is None:
            self._cpp_models = builtin("cuda")
        return self._cpp_models

    @memoized
    def type_row(self, unit: Unit, name: str) -> TypeRow | None:
        """The row of a library's type, by the name that a file gives it."""
        spelled, prefixes = self.cpp.spellings(unit, "", name)
        names = (library_name(f"{prefix}::{spelled}" if prefix else spelled) for prefix in prefixes)
        return next((row for one in names if (row := self.cpp_models.type_named(one)) is not None), None)

    def named_type(self, function: Function, kind: TypeTuple) -> tuple[TypeTuple, ClassInfo | TypeRow | None]:
        """A type without its aliases, and the class or the row that it means."""
        scope = scope_of(function)
        kind = self.cpp.resolved(function.unit, scope, kind)
        definition = self.cpp.find_class(function.unit, scope, str(kind[0]))
        if definition is not None and kind[1]:
            definition = self.templates.class_for(function, kind, definition)
        return kind, definition if definition is not None else self.type_row(function.unit, str(kind[0]))

    def is_plain(self, function: Function, kind: TypeTuple) -> bool:
        """Whether a type is plain data: a number, or a structure of which nothing more is known."""
        kind, meant = self.named_type(function, kind)
        return (
            not (kind[2] or kind[1] or kind[4] is not None)
            and not isinstance(meant, ClassInfo)
            and (meant is None or (meant.kind == "object" and self.cpp_models.call(str(kind[0])) is None))
        )

    def held_type(self, kind: TypeTuple) -> TypeTuple | None:
        """The type that a smart pointer or optional holds."""
        if kind[0] in self.cpp_models.marked("smart") and kind[1]:
            inner: TypeTuple = kind[1][0]
            return (inner[0], inner[1], inner[2] + 1, False, inner[4])
        return None

    def object_of(self, function: Function, kind: TypeTuple, home: tuple[object, ...], exact: bool) -> Object | None:
        """The object that a variable of a type is, or what it points to; None for types that say too little.

        ``home`` names the variable if it is a container; ``exact`` says that the variable is the object itself, made here.
        """
        kind, meant = self.named_type(function, kind)
        inner = self.held_type(kind) if kind[4] is None else None
        if inner is not None:
            return self._held_inside(function, kind) if exact else self.object_of(function, inner, home, False)
        name, _, pointers, reference, array = kind
        if array is not None or name in self.cpp_models.marked("sequence"):
            return self._sequence(function, kind, home)
        if isinstance(meant, ClassInfo):
            return None if exact and pointers else self.objects(Instance, meant, exact and not reference)
        return self._undeclared(str(name), pointers) if meant is None else self._of_row(function, kind, meant, exact)

    def _held_inside(self, function: Function, kind: TypeTuple) -> Object | None:
        """The object of a class of the program that an `std::optional` may hold; None of what begins empty and is a pointer."""
        is_inside = kind[0] in self.cpp_models.marked("holds-value")
        meant = self.named_type(function, kind[1][0])[1] if is_inside and not kind[1][0][2] else None
        return self.objects(Instance, meant, True) if isinstance(meant, ClassInfo) else None

    def _undeclared(self, name: str, pointers: int) -> Object | None:
        """The object of a type of which neither the program nor a row tells: a function of the driver, a number."""
        if pointers:
            return None
        if (entry := _ENTRY_POINT.fullmatch(name)) is not None:
            return self.objects(CppName, entry[1], None)
        return self.scalar if name in PLAIN and name != "void" else None

    def _of_row(self, function: Function, kind: TypeTuple, meant: TypeRow, exact: bool) -> Object | None:
        """The object of a library's type."""
        pointers = kind[2]
        if meant.kind == "buffer":
            return None if pointers else self._buffer(function, kind, meant)
        if meant.kind == "device":
            return self.objects(DeviceValue, "unknown")
        if meant.kind in ("stream", "event", "pointer", "graph") and exact and not _is_class(meant):
            return None
        if meant.kind == "pointer" or (pointers and meant.kind != "object"):
            return None
        return self.objects(LibraryObject, meant.name, meant.kind)

    def _buffer(self, function: Function, kind: TypeTuple, meant: TypeRow) -> Object:
        """The memory that a library's container holds, as its allocator has it; one that nobody knows may have any."""
        own = next(self._kinds_of_memory(function, kind[1]), "")
        is_open = meant.name in self.cpp_models.marked("resized") and len(kind[1]) > 1
        return self.objects(Memory, meant.space, own or ("unknown" if is_open else meant.memory), meant.base or meant.name, "none")

    def _kinds_of_memory(self, function: Function, given: tuple[TypeTuple | None, ...], depth: int = 3) -> Iterator[str]:
        """What memory the arguments of a type have, among them allocators, and what these are made of."""
        for one in given:
            resolved = self.cpp.resolved(function.unit, scope_of(function), one) if isinstance(one, tuple) else None
            row = self.cpp_models.type_named(str(resolved[0])) if resolved is not None else None
            if row is not None and row.memory != "unknown":
                yield row.memory
            elif resolved is not None and depth:
                yield from self._kinds_of_memory(function, resolved[1], depth - 1)

    @cached_property
    def assertions(self) -> Assertions:
        """What functions show of memory before they go on."""
        return Assertions(self.cpp_models)

    def found_for(self, frame: Frame, register: int, node: Node) -> Node:
        space = self.assertions.of(frame.function).get(register) if frame.function.is_cpp else None
        return super().found_for(frame, register, self._as_asserted(Said(space), node) if space is not None else node)

    def _as_asserted(self, said: Said, node: Node) -> Node:
        """A node whose memory arrives at another one: where that was not known, it is where the function asserts it to be."""
        held = Node(None, node.site)
        self.solver.when(held, lambda value: self.solver.add(node, self.refined(value, said), held))
        return held

    def cpp_declared(self, function: Function, kind: TypeTuple) -> Object | None:
        return self.object_of(function, kind, ("declared", function), False)

    def _sequence(self, function: Function, kind: TypeTuple, home: tuple[object, ...]) -> Object:
        name, args, pointers, _, array = kind
        element: TypeTuple | None = (name, args, pointers, False, None) if array is not None else args[0] if args else None
        plain = element is not None and self.is_plain(function, element)
        if array is not None and plain:
            return self.objects(Memory, "host", "pageable", "array")
        if array is None and name in self.cpp_models.marked("contiguous") and plain:
            return self.objects(Memory, "host", "pageable" if len(args) == 1 or name == "std::array" else "unknown", str(name))
        made = self.objects(Elements, "array" if array is not None else str(name).removeprefix("std::"), home)
        held = element if array is not None else self.kind_inside(str(name), args)
        if held is not None:
            self.element_types[made] = function, held
        return made

    def kind_inside(self, name: str, args: tuple[TypeTuple, ...]) -> TypeTuple | None:
        """The type of all elements of a container: of a map that of its values."""
        place = 1 if name in self.cpp_models.marked("mapped") else 0 if name in self.cpp_models.marked("one-type") else len(args)
        return args[place] if place < len(args) else None

    def is_stream(self, function: Function, kind: TypeTuple | None) -> bool:
        """Whether a type is that of a stream of the driver."""
        if kind is None or kind[4] is not None:
            return False
        kind, meant = self.named_type(function, kind)
        return isinstance(meant, TypeRow) and meant.kind == "stream" and not kind[2]

    def converted(self, function: Function, kind: TypeTuple | None, source: Node, node: Node) -> None:
        """What a node holds arrives at another one that has a type: 0 as a stream is the null stream, and of what is not known
        the type still tells the class."""
        if kind is None:
            self.solver.edge(source, node)
            return
        stream = self.is_stream(function, kind)
        resolved, meant = self.named_type(function, kind)
        is_class, is_data = isinstance(meant, ClassInfo), resolved[2] > 0 and resolved[0] in PLAIN and resolved[0] != "void"

        def arrived(value: Object) -> None:
            methods = [] if is_class else self.conversions(value)
            for method in methods:
                self.solver.when(self.result(self.base(method)), arrived)
            if not methods and not _is_of_other_type(value, stream, is_data):
                self._arrived_as(value, source, node, stream)
                self._declared_as(function, kind, value, node, source.site)

        self.solver.when(source, arrived)

    def _arrived_as(self, value: Object, source: Node, node: Node, stream: bool) -> None:
        """A value arrives at what has a type: 0 as a stream is the null stream."""
        known = source.values.get(value)
        site = known.site if known is not None and known.site is not None else source.site
        if stream and (isinstance(value, Constant) or self.word_of(value) == "blocking"):
            self.solver.add(node, self.null_stream(), source, site)
        elif not stream or value is not self.scalar:
            self.solver.add(node, value, source if known is not None else None, None if known is not None else site)

    def _declared_as(self, function: Function, kind: TypeTuple, value: Object, node: Node, site: Site | None) -> None:
        """Of what is not known its declared type still tells the class."""
        known = self.object_of(function, kind, ("unknown", function), False) if isinstance(value, Unknown) else None
        if isinstance(known, (Instance, LibraryObject, Memory, DeviceValue)):
            self.solver.add(node, known, None, site)

    def conversions(self, value: Object) -> list[Function]:
        """The methods that make something else of an object where that is wanted (``operator T``)."""
        if not self._converts or not isinstance(value, Instance) or not value.definition.unit.is_cpp:
            return []
        return [each for name, methods in value.definition.methods.items() if _is_conversion(name) for each in methods]

    @cached_property
    def _converts(self) -> bool:
        """Whether a class of the program has a conversion."""
        return any(_is_conversion(name) for unit in self.program.mentioning("operator") for name in unit.methods)

    def null_stream(self) -> Object:
        """The stream 0."""
        return self.objects(LibraryObject, "cudaStream_t", "stream", "null")

    def constant_of(self, name: str) -> Object | None:
        """What a constant of a library is: a stream, a flag."""
        value = self.cpp_models.constants.get(library_name(name))
        if value is None:
            return None
        if value in ("null-stream", "ptds-stream"):
            return self.objects(LibraryObject, "cudaStream_t", "stream", {"null-stream": "null"}.get(value, "per-thread"))
        if value in SPACES:
            return self.objects(DeviceValue, SPACES[value])
        return self.objects(CppName, library_name(name), None)

    def word_of(self, value: Object) -> str:
        """The word that the rows have for a constant."""
        return self.cpp_models.constants.get(value.name, "") if isinstance(value, CppName) else ""


def _is_class(meant: TypeRow) -> bool:
    """Whether a type is a class, which makes its graph or event itself, no handle that a function fills in."""
    return meant.kind in ("graph", "event") and "::" in meant.name


def library_name(name: str) -> str:
    """The public name of a library's function or type: HIP's aliases are CUDA's."""
    name = name.removeprefix("::")
    return f"cuda{name[3:]}" if name.startswith("hip") and len(name) > 3 and not name[3].islower() else name
