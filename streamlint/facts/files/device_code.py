"""The bodies of kernels and of functions of the device: files that hold some that a rule asks for are lowered once more, with these.

What else is found rests on the host's code alone, which is a small part of most CUDA sources.
"""

from __future__ import annotations

from functools import cached_property, partial

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.files.program import Program, SourceFile, Unit
from streamlint.frontends.cuda import lower
from streamlint.frontends.cuda_headers import Headers
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower as to_ir
from streamlint.support.memo import memoized

_ARCHITECTURE = 900  # what is left out for older devices counts
_MOST = 400_000  # characters of a file


class DeviceCode:
    """Functions of the device with their bodies."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._units: dict[Unit, Unit] = {}
        self._origins: dict[Unit, Unit] = {}

    @memoized
    def body(self, function: Function) -> Function | None:
        """A function of the program with its body; None where it has none, or stands in a string of another language."""
        return self._body(function)

    def _body(self, function: Function) -> Function | None:
        unit = function.unit
        if unit in self._origins:
            return function
        if not unit.is_cpp or unit.path not in self.program.units or len(unit.source.text) > _MOST:
            return None
        if unit not in self._units:
            source = SourceFile(unit.path, "cuda", unit.source.text, partial(self._lowered, unit))
            self._units[unit] = Unit(self.program, source, unit.number)
            self._origins[self._units[unit]] = unit
        wanted = function.code.qualname, function.code.first_row
        found = [one for one in self._units[unit].functions if (one.code.qualname, one.code.first_row) == wanted]
        return found[0] if len(found) == 1 else None

    def _lowered(self, unit: Unit) -> ModuleIR | None:
        try:
            return to_ir(lower(unit.path, unit.source.text, self._headers, _ARCHITECTURE))
        except RecursionError:
            return None

    @cached_property
    def _headers(self) -> Headers:
        units = (unit for path, unit in self.program.units.items() if unit.is_cpp and path == unit.path)
        return Headers({unit.path: unit.source.text for unit in units})

    def meant(self, function: Function, name: str) -> list[Function] | None:
        """The functions that a name means in a body, with their own bodies; None where it may mean one that has no body at hand."""
        unit = self._origins.get(function.unit, function.unit)
        found: list[Function] = []
        for meaning in self.program.cpp.find(unit, scope_of(function), name):
            body = self.body(meaning) if isinstance(meaning, Function) else None
            if body is None and not (isinstance(meaning, ClassInfo) and "__init__" not in meaning.methods):
                return None
            found += [body] if body is not None else []
        return found

    def is_plain_class(self, function: Function, name: str) -> bool:
        """Whether a name means a class of the program that has no constructor of its own."""
        unit = self._origins.get(function.unit, function.unit)
        found = self.program.cpp.find(unit, scope_of(function), name)
        return bool(found) and all(isinstance(one, ClassInfo) and "__init__" not in one.methods for one in found)
