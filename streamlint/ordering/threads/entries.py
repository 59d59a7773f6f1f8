"""SL009: the functions of C++ and Cython that Python calls, with the GIL held, and where that is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Object, Site, without_partials
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.exports import Export, marks
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple, spelled
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer

_TABLES = re.compile(r"^Py(MethodDef|TypeObject|Type_Slot|GetSetDef|\w+Methods|BufferProcs)$")
_SLOTS = re.compile(r"^(tp|nb|sq|mp|bf|am)_\w+$")
_RELEASE = "gil_scoped_release"
"""Functions of pybind11 whose calls are bound."""


class Entry(NamedTuple):
    """A function that Python calls. ``binding`` is the call that binds it, where a guard can be added; None where the function itself has
    to release the GIL. ``is_end``: a destructor, which Python runs where it collects the object."""

    function: Function
    binding: Site | None
    is_end: bool = False


class Binding(NamedTuple):
    """A call that binds a function to Python. ``lets_go``: with a guard that releases the GIL; ``is_operator``: to PyTorch's dispatcher."""

    site: Site
    lets_go: bool
    is_operator: bool


class Entries:
    """The entries of a program."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.program = transfer.facts.program

    def find(self) -> Iterator[Entry]:
        """All entries, those of bindings first."""
        units = dict.fromkeys(unit for mark in marks(self.program) for unit in self.program.cpp.mentioning(mark))
        for unit in units:
            for function in unit.functions:
                yield from self._bound(function)
                yield from self._ended(function)
        yield from self._of_held_libraries()
        yield from self._of_capsules()
        yield from self._of_strings()
        for unit in dict.fromkeys(self.program.mentioning("PyObject")):
            yield from self._of_c_api(unit)
        for unit in self.program.units.values():
            if unit.path.endswith((".pyx", ".pxd", ".pxi")):
                yield from self._of_cython(unit)

    def bindings(self, unit: Unit) -> Iterator[Binding]:
        """The calls of a file that bind functions to Python."""
        for function in unit.functions:
            is_operator = function.code.name in function.known("operator-macro")
            for one in function.by_opcode[op.INVOKE]:
                if len(one) > 6 and (is_operator or function.text(one[4]) in function.known("binds", "binds-static")):
                    lets_go = any(self._releases(function, register) for register in one[6:])
                    yield Binding(Site(function, one), lets_go, is_operator)

    def released(self) -> Iterator[Function]:
        """The functions that a binding releases the GIL around."""
        for unit in dict.fromkeys(unit for mark in marks(self.program) for unit in self.program.cpp.mentioning(mark)):
            for binding in self.bindings(unit):
                function, one = binding.site
                for register in one[6:] if binding.lets_go or binding.is_operator else ():
                    yield from self._functions(function, one, register)

    def _of_held_libraries(self) -> Iterator[Entry]:
        """Functions of a library that Python opened so that its calls keep the GIL: each call is a binding of its own."""
        for call in self.transfer.sites({"extension"}):
            if call.row.get("part") != "held":
                continue
            for function in call.function.unit.functions:
                for one in function.by_opcode[op.INVOKE]:
                    if self._is_result(function, one[3], call):
                        site, name = Site(function, one), function.text(one[4])
                        units = self.program.cpp.mentioning(name)
                        bodies = (each for unit in units for each in unit.functions if each.code.name == name and each.owner is None)
                        yield from (Entry(body, site) for body in bodies)

    def _of_capsules(self) -> Iterator[Entry]:
        """Functions that end what a capsule holds: Python runs them where it collects the capsule."""
        for call in self.transfer.sites({"none"}, where=lambda row: bool(row.get("later")) and row.library == "python-c"):
            given = (value for register in call.operands for value in self.transfer.values(call.function, register))
            ends = dict.fromkeys(filter(None, map(_function_of, given)))
            yield from (Entry(each, None, is_end=True) for each in ends if each.is_cpp)

    def _of_strings(self) -> Iterator[Entry]:
        """Functions of C++ that stands in strings of Python, which a call binds by their names."""
        for call in self.transfer.sites({"extension"}):
            register = call.one("functions")
            definition = call.function.definitions[register] if register is not None and register >= 0 else None
            named = definition[4:] if definition is not None and definition[0] == op.BUILD else (register,) if register is not None else ()
            names = {call.function.constant(each) for each in named}
            for unit in self.program.units.values() if names else ():
                if unit.is_cpp and unit.path == call.function.unit.path:
                    yield from (Entry(one, None) for one in unit.functions if one.code.name in names and one.owner is None)

    def _is_result(self, function: Function, register: int, call: ModelledCall) -> bool:
        """Whether a register holds what a call gave, by the global name that it was stored under."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.NAME:
            return one == call.instruction
        stored = function.unit.globals.get(function.text(one[3]), ())
        return any(holder is call.function and holder.definitions[each] == call.instruction for holder, each in stored)

    # --- pybind11, nanobind

    def _bound(self, function: Function) -> Iterator[Entry]:
        if function.code.name in function.known("operator-macro"):
            return
        for one in function.by_opcode[op.INVOKE]:
            if function.text(one[4]) not in function.known("binds", "binds-static") or len(one) <= 6:
                continue
            if not any(self._releases(function, register) for register in one[6:]):
                site = Site(function, one)
                bound = dict.fromkeys(each for register in one[6:] for each in self._functions(function, one, register))
                yield from (Entry(each, site) for each in bound)

    def _functions(self, function: Function, binding: Instruction, register: int) -> Iterator[Function]:
        """The functions that an argument of a binding stands for."""
        one = function.definitions[register] if register >= 0 else None
        if one is None:
            return
        if one[0] in (op.CALL, op.INVOKE):
            name = _called(function, one)
            if name in function.known("wraps-without-gil") or any(self._releases(function, each) for each in one[5:]):
                return
            if name == "overload_cast" or name in function.known("hands-functions"):
                yield from self._of_helper(function, binding, one, name)
                return
        kind: TypeTuple | None = function.unit.ir.constants[one[3]] if one[0] == op.CAST else None
        if kind is not None and kind[1]:
            yield from self._overload(function, binding, register, [_plain(str(each[0])) for each in kind[1] if each is not None])
            return
        found = list(filter(None, map(_function_of, self.transfer.values(function, register))))
        is_named = one[0] in (op.NAME, op.ADDRESS_NAME, op.CAST) and not found
        yield from self.facts.exports.targets(Export(function, binding, register, "", "")) if is_named else found

    def _of_helper(self, function: Function, binding: Instruction, one: Instruction, name: str) -> Iterator[Function]:
        """The functions that a call stands for which wraps functions for a binding, or chooses an overload."""
        if name == "overload_cast":
            wanted = [_plain(spelled(each)) for each in function.code.templates.get(one[1], ())]
            for each in one[5:6]:
                yield from self._overload(function, one, each, wanted)
            return
        if name == "init":
            yield from self._constructors(function, binding, one)
        for each in one[5:]:
            yield from self._functions(function, binding, each)

    def _overload(self, function: Function, call: Instruction, register: int, wanted: list[str]) -> Iterator[Function]:
        """The overload that has the types which are named; ``void`` is the type of no parameter."""
        for one in self.facts.exports.targets(Export(function, call, register, "", "")):
            own = [last_part(str(each.type[0])) for each in one.code.parameters[1 if one.has_receiver else 0 :] if each.type is not None]
            if own == [each for each in wanted if each != "void"]:
                yield one

    def _constructors(self, function: Function, binding: Instruction, call: Instruction) -> Iterator[Function]:
        definition = self._class_of(function, binding[3])
        wanted = len(function.code.templates.get(call[1], ()))
        if definition is None or len(call) > 5:
            return
        for one in definition.methods.get("__init__", ()):
            parameters = one.code.parameters[1 if one.has_receiver else 0 :]
            if len([each for each in parameters if not each.default]) <= wanted <= len(parameters):
                yield one

    def _ended(self, function: Function) -> Iterator[Entry]:
        """The destructors of the classes that are bound, but for those that are asked to run without the GIL."""
        for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.CONSTRUCT]):
            kind = function.unit.ir.constants[one[3]] if one[0] == op.CONSTRUCT else None
            name = str(kind[0]) if kind is not None else function.dotted(one[3]) if one[0] == op.CALL else ""
            if last_part(name) not in function.known("binds-class") or any(self._ends_free(function, each) for each in one[5:]):
                continue
            definition = self._class_of(function, one[2])
            ends = definition.methods.get("__del__", ()) if definition is not None and not _has_deleter(function, definition) else ()
            yield from (Entry(each, Site(function, one), is_end=True) for each in ends)

    def _ends_free(self, function: Function, register: int) -> bool:
        """Whether an argument asks for the GIL to be released around the destructor."""
        one = function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.CALL and _called(function, one) in function.known("ends-without-gil")

    def _class_of(self, function: Function, register: int) -> ClassInfo | None:
        """The class whose members are bound to an object."""
        one = function.definitions[register]
        while one is not None and one[0] in (op.INVOKE, op.COPY, op.CAST, op.REBIND):
            one = function.definitions[one[5] if one[0] == op.REBIND else one[4] if one[0] == op.CAST else one[3]]
        if one is None:
            return None
        if one[0] == op.CONSTRUCT:
            kind: TypeTuple | None = function.unit.ir.constants[one[3]]
            named = kind[1][0] if kind is not None and kind[1] else None
            text = str(named[0]) if named is not None else ""
        else:
            held = next(iter(function.code.templates.get(one[1], ())), None) if one[0] == op.CALL else None
            text = str(held[0]) if isinstance(held, tuple) else ""
        return self.facts.cpp.find_class(function.unit, scope_of(function), text) if text else None

    def _releases(self, function: Function, register: int) -> bool:
        """Whether an argument of a binding is a guard that releases the GIL around each call."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.REBIND, op.COPY):
            one = function.definitions[one[5] if one[0] == op.REBIND else one[3]]
        if one is None or one[0] != op.CALL:
            return False
        if any(_RELEASE in spelled(each) for each in function.code.templates.get(one[1], ())):
            return True
        named = function.definitions[one[3]]
        alias = (
            self.facts.cpp.context(function.unit).aliases.get(function.text(named[3]))
            if named is not None and named[0] == op.NAME
            else None
        )
        return alias is not None and any(each is not None and _RELEASE in str(each[0]) for each in alias[1])

    # --- the C API

    def _of_c_api(self, unit: Unit) -> Iterator[Entry]:
        if not unit.is_cpp:
            return
        found: dict[Function, None] = {}
        for function in unit.functions:
            for one in (*function.by_opcode[op.CAST], *function.by_opcode[op.CONSTRUCT]):
                kind = function.unit.ir.constants[one[3]]
                if kind is not None and _TABLES.match(str(kind[0])):
                    parts = one[4:5] if one[0] == op.CAST else one[5:]
                    found.update(dict.fromkeys(each for part in parts for each in self._in_table(function, part, 0)))
            for one in function.by_opcode[op.SET_ATTR]:
                if _SLOTS.match(function.text(one[3])):
                    found.update(dict.fromkeys(self._named(function, one[4])))
        yield from (Entry(one, None) for one in found)

    def _in_table(self, function: Function, register: int, depth: int) -> Iterator[Function]:
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.BUILD and depth < 3:
            for part in one[4:]:
                yield from self._in_table(function, part, depth + 1)
        elif one is not None and one[0] in (op.CAST, op.NAME, op.ADDRESS_NAME):
            yield from self._named(function, register)

    def _named(self, function: Function, register: int) -> Iterator[Function]:
        one = function.definitions[register]
        while one is not None and one[0] in (op.CAST, op.COPY):
            register = one[4] if one[0] == op.CAST else one[3]
            one = function.definitions[register]
        if one is not None and one[0] in (op.NAME, op.ADDRESS_NAME):
            found = self.facts.cpp.find(function.unit, scope_of(function), function.text(one[3]))
            yield from (each for each in found if isinstance(each, Function))

    # --- Cython

    def _of_cython(self, unit: Unit) -> Iterator[Entry]:
        """Functions that are declared with ``def`` or ``cpdef``, and methods that the language calls."""
        for function in unit.functions:
            if function.code.kind == "function" and not any("cfunc" in one for one in function.decorators):
                yield Entry(function, None)


def _function_of(value: Object) -> Function | None:
    value = without_partials(value)
    if isinstance(value, BoundMethod):
        value = value.method
    return value.function if isinstance(value, FunctionObject) else None


def _plain(text: str) -> str:
    """A type as it is compared: its name without qualifiers."""
    return last_part(re.sub(r"\bconst\b|[&*]|<.*", "", text).strip())


def _called(function: Function, one: Instruction) -> str:
    """The last part of the name that a call calls."""
    return last_part(function.dotted(one[3])) if one[0] == op.CALL else function.text(one[4])


def _has_deleter(function: Function, definition: ClassInfo) -> bool:
    """Whether the file of a binding has a deleter of its own for the objects of a class, which says what is held when they end."""
    deleters = (each for each in function.unit.functions if each.code.name.endswith("operator()"))
    ended = ((each, each.definitions[one[2]]) for each in deleters for one in each.by_opcode[op.DELETE] if one[2] >= 0)
    kinds = (each.code.parameters[made[3]].type for each, made in ended if made is not None and made[0] == op.PARAM)
    return any(kind is not None and last_part(str(kind[0])) == definition.ir.name for kind in kinds)
