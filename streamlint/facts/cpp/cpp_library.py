"""C++: what functions of the CUDA libraries and of the standard library do, from their model rows."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.facts.code.functions import ClassInfo
from streamlint.facts.code.instructions import placeholder
from streamlint.facts.code.objects import (
    Address,
    BoundMethod,
    ClassObject,
    CppName,
    DeviceValue,
    Elements,
    External,
    FunctionObject,
    Group,
    Instance,
    LibraryObject,
    Memory,
    Object,
    PartialObject,
)
from streamlint.facts.code.passing import STORES
from streamlint.facts.cpp.cpp_results import CppResults
from streamlint.facts.cpp.cpp_types import library_name
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.files.program import Unit
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.library import EFFECTS
from streamlint.facts.values.nodes import Node
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple, spelled
from streamlint.models import Row
from streamlint.models.vocabulary import SPACES, Selector

Effect = Callable[["CppLibrary", Row, "Object | None", Arguments, Node], None]


class CppLibrary(CppResults):
    """Value flow through libraries of C++."""

    def spelled(self, name: str) -> str:
        return library_name(name)

    # --- calls of names

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        if not isinstance(callee, CppName):
            super().library_call(callee, arguments, target)
            return
        name = callee.name
        if name in self.cpp_models.marked("gives-argument") or name in self.cpp_models.marked("smart"):  # `StreamPtr(s)`
            for node in arguments.positional[:1]:
                self.solver.edge(node, target)
        elif name == "std::get" and arguments.positional:
            key = self._template_text(arguments)
            source = arguments.positional[0]
            number = int(key) if key.isdecimal() else None
            self.solver.when(source, lambda value: self.element(value, number, target, source.site))
        elif name in self.cpp_models.marked("groups"):
            self.solver.add(target, self.objects(Group, "tuple", tuple(arguments.positional)))
        elif name in self.cpp_models.marked("binds-cpp") and arguments.positional:
            rest = self.rest_of(arguments)
            self.solver.when(arguments.positional[0], lambda value: self.solver.add(target, self.objects(PartialObject, value, rest)))
        elif name in self.cpp_models.marked("makes-held"):
            self._make(arguments, target)
        elif name.startswith("elements::"):
            self._elements_call(callee, name.removeprefix("elements::"), target)
        elif not self._calls_given(name, arguments, target):
            self._by_cpp_row(callee, arguments, target)

    def _calls_given(self, name: str, arguments: Arguments, target: Node) -> bool:
        """Call a function with each element, or with the parts of a tuple; whether that is all that a function of the library does."""
        if name in self.cpp_models.marked("calls-each") and len(arguments.positional) > 2:
            each = self._given_element(arguments)
            self.solver.when(arguments.positional[-1], lambda value: self._run_later(value, each))
        is_all = name in self.cpp_models.marked("calls-with-parts") and len(arguments.positional) == 2
        if is_all:
            given = self._given_parts(arguments)
            self.solver.when(arguments.positional[0], lambda value: self.call(value, given, target))
        return is_all

    def _given_parts(self, arguments: Arguments) -> Arguments:
        """The parts of a tuple as arguments."""
        found = self._remaining.get(arguments)
        if found is None:
            found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
            found.starred = arguments.positional[1:]
        return found

    def _given_element(self, arguments: Arguments) -> Arguments:
        """An element of what an iterator leads to as the only argument."""
        found = self._remaining.get(arguments)
        if found is None:
            found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
            found.positional = [self.given_elements(arguments.positional[0])]
        return found

    def _joined(self, before: Arguments, behind: Arguments) -> Arguments:
        site = before.site
        bound = site.instruction[6:] if site is not None and site.function.is_cpp and site.instruction[0] == op.CALL else ()
        places = [placeholder(site.function, register) for register in bound] if site is not None else []
        if not any(places) or (before, behind) in self._joined_arguments or len(places) != len(before.positional):
            return super()._joined(before, behind)
        found = self._joined_arguments[before, behind] = Arguments(behind.frame, behind.site, behind.joint)
        for place, node in zip(places, before.positional, strict=True):
            found.positional += behind.positional[place - 1 : place] if place else [node]
        return found

    def _template_text(self, arguments: Arguments) -> str:
        """The first template argument of a call."""
        site = arguments.site
        template = site.function.code.templates.get(site.instruction[1]) if site is not None else None
        return spelled(template[0]) if template else ""

    def _make(self, arguments: Arguments, target: Node) -> None:
        """`std::make_unique<T>(…)`."""
        frame, site = arguments.frame, arguments.site
        text = self._template_text(arguments)
        if frame is None or not text:
            self.unknown(target, "external")
            return
        name = text.partition("<")[0].rstrip("*&[]")
        kind: TypeTuple = (name, (), text.count("*"), False, 0 if text.endswith("[]") else None)
        definition = self.cpp.find_class(frame.function.unit, scope_of(frame.function), name)
        if definition is not None and kind[4] is None:
            self.construct(definition, arguments, target)
        elif kind[4] is not None and self.is_plain(frame.function, (name, (), kind[2], False, None)):
            self.solver.add(target, self.objects(Memory, "host", "pageable", "pointer"), None, site)
        elif kind[4] is None and not kind[2] and self.type_row(frame.function.unit, name) is not None:
            self.made_of_library(name, frame, arguments, target)
        else:
            self.unknown(target, "external")

    def row_of(self, callee: External) -> Row | None:
        if not isinstance(callee, CppName):
            return super().row_of(callee)
        row = self.cpp_models.call(callee.name)
        owner, _, method = callee.name.rpartition("::")
        return self.cpp_models.method(owner, method, "::") if row is None and owner else row

    def _by_cpp_row(self, callee: CppName, arguments: Arguments, target: Node) -> None:
        name = callee.name
        row = self.row_of(callee)
        if row is None:
            kind = self.cpp_models.type_named(name)
            if kind is not None and kind.kind != "buffer":
                self.solver.add(target, self.objects(LibraryObject, kind.name, kind.kind))
            elif kind is not None:
                self.solver.add(target, self.objects(Memory, kind.space, kind.memory, kind.name), None, arguments.site)
            else:
                self._unknown_cpp_call(arguments, target)
            return
        is_given = row.effect == "stream_of" and row.get("into") is None
        own = CPP_EFFECTS.get(row.effect) if not is_given else None
        shared = EFFECTS.get(row.effect)
        if own is not None:
            own(self, row, callee.receiver, arguments, target)
        elif shared is not None:
            made = Node(None, target.site)
            shared(self, row, callee.receiver, arguments, made)
            self.solver.when(made, lambda value: self.solver.add(target, self._in_cpp(value), made, made.values[value].site))
        else:
            self.solver.add(target, self.scalar)

    def _in_cpp(self, value: Object) -> Object:
        """A tensor or a stream by its type in C++."""
        if isinstance(value, Memory) and value.type == "torch.Tensor":
            return self.objects(Memory, value.space, value.pinning, "at::Tensor", value.evidence)
        if isinstance(value, LibraryObject) and value.type == self.models.own_type("torch", "stream"):
            return self.objects(LibraryObject, "at::cuda::CUDAStream", value.kind, value.detail, value.site)
        if isinstance(value, LibraryObject) and value.kind == "stream" and "." in value.type:  # a library without a type of its own
            return self.objects(LibraryObject, "cudaStream_t", value.kind, value.detail, value.site)
        return value

    def _unknown_cpp_call(self, arguments: Arguments, target: Node) -> None:
        """Code that is not part of the program may call the functions that it is given, and write where it is given an address."""
        self.unknown(target, "external")
        for node in arguments.positional:
            self.solver.when(node, lambda value: self._called_from_outside(value, arguments))

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        if arguments.frame is not None and arguments.frame.function.is_cpp:
            self._unknown_cpp_call(arguments, target)
        else:
            super().unknown_call(reason, arguments, target)

    def _called_from_outside(self, value: Object, arguments: Arguments) -> None:
        if isinstance(value, (FunctionObject, BoundMethod, PartialObject)):
            self.call(value, self.anything(arguments), Node(None))
        elif isinstance(value, Address):
            self.unknown(value.place, "external")

    def anything(self, arguments: Arguments) -> Arguments:
        """Arguments of which nothing is known."""
        found = self._remaining.get(arguments)
        if found is None:
            found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
            outside = Node(None)
            self.unknown(outside, "external")
            found.starred = [outside]
        return found

    # --- effects

    def into(self, row: Row, arguments: Arguments, target: Node, value: Object, default: str = "") -> None:
        """The result of a row arrives where it says: in an argument, or in what the call returns."""
        selector = row.get("into")
        place = selector if isinstance(selector, Selector) else None
        if place is None or place.kind == "result":
            self.solver.add(target, value, None, arguments.site)
        elif place.position is not None and place.position < len(arguments.positional):
            self.store_through(arguments.positional[place.position], value, arguments.site)
            self.solver.add(target, self.scalar)

    def cpp_alloc(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """Memory from the driver or the heap."""
        memory = str(row.get("memory", "device"))
        space = memory if memory in ("device", "managed") else "host"
        self.into(row, arguments, target, self.objects(Memory, space, memory if space == "host" else "unknown", "pointer"))

    def cpp_stream(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A stream is created: it is ordered with the null stream, or not, or that is not known."""
        flags = row.get("flags")
        node = self.selected(flags if isinstance(flags, Selector) else None, receiver, arguments)

        def made(detail: str) -> None:
            self.into(row, arguments, target, self.objects(LibraryObject, "cudaStream_t", "stream", detail, arguments.site))

        if node is None:
            made("blocking" if row.get("blocking") is True else "created")
            return

        def arrived(value: Object) -> None:
            word = self.word_of(value)
            made(word if word in ("blocking", "non-blocking") else "blocking" if self.is_zero(value) else "created")

        self.solver.when(node, arrived)

    def cpp_stream_of(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A stream that exists is stored where a pointer says (``cublasGetStream(handle, &stream)``): the one that a handle stands for."""

        def stored(which: str) -> None:
            self.into(row, arguments, target, self.objects(LibraryObject, "cudaStream_t", "stream", which, arguments.site))

        def arrived(value: Object) -> None:
            if isinstance(value, LibraryObject) and value.kind == "stream":
                stored(value.detail)

        stored(str(row.get("which")))
        source = row.get("from")
        handle = self.selected(source if isinstance(source, Selector) else None, receiver, arguments)
        if handle is not None:
            self.solver.when(handle, arrived)

    def cpp_same(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """What is given comes back, or is stored where a pointer says: the device's address of memory of the host."""
        of = self.selected(row.get("of"), receiver, arguments) if row.get("into") is not None else None
        if of is None:
            EFFECTS["same"](self, row, receiver, arguments, target)
        else:
            self.solver.when(of, lambda value: self.into(row, arguments, target, value))

    def is_zero(self, value: Object) -> bool:
        """Whether a constant is 0."""
        return getattr(value, "value", None) == 0

    def cpp_object(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A handle is made and stored where a pointer says: each call makes another one. Others are as they are made in Python."""
        name = str(row.get("type", ""))
        kind = self.cpp_models.type_named(name)
        device = self.selected(row.get("device"), receiver, arguments) if name == _OPTIONS else None
        if device is not None:
            self.solver.when(device, lambda value: self.solver.add(target, self._options_of(value, row), device, arguments.site))
        elif kind is None or kind.kind != "handle":
            EFFECTS["object"](self, row, receiver, arguments, target)
        else:
            self.into(row, arguments, target, self.objects(LibraryObject, name, kind.kind, "", arguments.site))

    def _options_of(self, value: Object, row: Row) -> Object:
        """Options that are made of one: of a device only that is kept. Those of the host say what options without a device say."""
        is_kept = isinstance(value, DeviceValue) and value.space != "host"
        return value if is_kept else self.objects(LibraryObject, str(row.get("type")), "object")

    def cpp_communicator(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A communicator is made and stored where a pointer says."""
        self.into(row, arguments, target, self.communicator(row, arguments))

    def cpp_event(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """An event is created: a handle, or an object of a class."""
        kind = next((name for name in row.names if self.cpp_models.type_named(name) is not None), "cudaEvent_t")
        self.into(row, arguments, target, self.objects(LibraryObject, kind, "event", "", arguments.site))

    def cpp_callback(self, row: Row, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """A function of the program is run later, or on another thread."""
        selector = row.get("function")
        position = selector.position if isinstance(selector, Selector) else None
        if position is not None and position < len(arguments.positional):
            given = self._given_later(row, position, arguments)
            self.solver.when(arguments.positional[position], lambda value: self._run_later(value, given))
        kind = row.get("type")
        self.solver.add(target, self.objects(LibraryObject, str(kind), "object") if kind else self.scalar)

    def _run_later(self, value: Object, given: Arguments) -> None:
        if isinstance(value, (FunctionObject, BoundMethod, PartialObject, Instance)):
            self.call(value, given, Node(None))

    def _given_later(self, row: Row, position: int, arguments: Arguments) -> Arguments:
        found = self._remaining.get(arguments)
        if found is not None:
            return found
        found = self._remaining[arguments] = Arguments(arguments.frame, arguments.site)
        places = row.get("arguments")
        for place in places if isinstance(places, tuple) else (places,):
            if not isinstance(place, Selector):
                continue
            if place.kind == "all":
                found.positional += arguments.positional[position + 1 :]
            elif place.position is not None and place.position < len(arguments.positional):
                found.positional.append(arguments.positional[place.position])
        if places is None:
            outside = Node(None)
            self.unknown(outside, "external")
            found.starred = [outside]
        return found

    def outside(self, unit: Unit, name: str, target: Node) -> None:
        """Cython: a function or constant of C that a library declares."""
        if unit.source.language == "cython" and (self.cpp_models.call(name) is not None or name in self.cpp_models.constants):
            self.solver.add(target, self.objects(CppName, name))
        else:
            super().outside(unit, name, target)

    def space_named(self, value: Object, action: Callable[[str, str], None]) -> None:
        space = SPACES.get(self.word_of(value)) if isinstance(value, CppName) else None
        if space is not None:
            action(space, "literal")
        else:
            super().space_named(value, action)

    # --- members of libraries' objects

    def library_member(self, value: Object, name: str, target: Node) -> None:
        kind = value.type if isinstance(value, (Memory, LibraryObject)) else ""
        if isinstance(value, DeviceValue) and target.site is not None and target.site.function.is_cpp:
            kind = _OPTIONS  # of options only the device is kept
        row = self.cpp_models.method(kind, name, "::") if kind and "." not in kind else None
        if row is not None:
            self.solver.add(target, self.objects(CppName, f"{kind}::{name}", value))
        elif name in ("get", "release") and (kind == "pointer" or _is_handle(value)):  # of the smart pointer that holds it
            self.solver.add(target, self.objects(CppName, f"elements::{name}", value))
        elif _is_of_c(kind) or (kind in ("pointer", "array") and not self._is_of_python(target)):
            self.unknown(target, "external")
        else:
            super().library_member(value, name, target)

    def _is_of_python(self, target: Node) -> bool:
        return target.site is not None and not target.site.function.is_cpp

    def elements_member(self, value: Elements, name: str, target: Node) -> None:
        if name in ("first", "second"):
            self.solver.edge(self.held_in(value), target)
        else:
            self.solver.add(target, self.objects(CppName, f"elements::{name}", value))
            if name in self.cpp_models.known("emplaces") and f"std::{value.kind}" not in self.cpp_models.marked("mapped"):
                self._constructed_in(value, target)

    def _constructed_in(self, value: Elements, target: Node) -> None:
        """A method of a container runs the constructor of what the container holds."""
        function, kind = self.element_types.get(value, (None, None))
        if function is None or kind is None or kind[2]:
            return
        kind, meant = self.named_type(function, kind)
        if isinstance(meant, ClassInfo):
            self.solver.add(target, self.objects(ClassObject, meant))
        elif self.cpp_models.call(str(kind[0])) is not None:
            self.solver.add(target, self.objects(CppName, str(kind[0])))

    def _elements_call(self, callee: CppName, name: str, target: Node) -> None:
        value = callee.receiver
        if isinstance(value, Memory | LibraryObject):
            self.solver.add(target, value)
            return
        if not isinstance(value, Elements):
            return
        if name in self.cpp_models.known("leads-inside"):
            self.solver.add(target, value)
        elif name in self.cpp_models.known("takes-element", *STORES):
            self.solver.edge(self.held_in(value), target)
        else:
            self.solver.add(target, self.scalar)

    def made_of_library(self, name: str, frame: Frame, arguments: Arguments, node: Node) -> None:
        if name in self.cpp_models.marked("smart") or name in self.cpp_models.marked("callable"):
            for given in arguments.positional[:1]:
                self.solver.edge(given, node)
            return
        external = self._external(frame.function, name)
        if isinstance(external, CppName):
            self.library_call(external, arguments, node)


def _is_handle(value: Object) -> bool:
    """Whether an object is a handle of CUDA's, which has no members."""
    return isinstance(value, LibraryObject) and value.type.startswith(("cuda", "CU"))


_OPTIONS = "at::TensorOptions"
CPP_EFFECTS: dict[str, Effect] = {
    "alloc": CppLibrary.cpp_alloc,
    "stream": CppLibrary.cpp_stream,
    "stream_of": CppLibrary.cpp_stream_of,
    "event": CppLibrary.cpp_event,
    "communicator": CppLibrary.cpp_communicator,
    "object": CppLibrary.cpp_object,
    "callback": CppLibrary.cpp_callback,
    "thread": CppLibrary.cpp_callback,
    "same": CppLibrary.cpp_same,
}
"""By effect of a row: what C++ does otherwise than Python."""


def _is_of_c(kind: str) -> bool:
    """Whether a type is one of C or C++, not of a module of Python's that is called alike."""
    return "::" in kind or (kind.startswith(("cuda", "CU")) and "." not in kind)
