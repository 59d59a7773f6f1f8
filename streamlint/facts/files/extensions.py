"""Which C++ files are parts of a PyTorch extension: by what they include, by the tensors that they take, by who links them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.files.cpp_scopes import SOURCES
from streamlint.facts.files.exports import Exports
from streamlint.facts.files.program import Program, Unit
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.models import first_part

_HEADERS = (
    "torch/extension.h",
    "torch/torch.h",
    "torch/script.h",
    "torch/all.h",
    "torch/library.h",
    "torch/types.h",
    "ATen/",
    "c10/cuda",
    "torch/serialize",
    "torch/csrc/stable/",
)


class Extensions:
    """The extensions of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._is_extension: dict[Unit, bool] = {}
        self._on_tensors: dict[Unit, bool] = {}
        self._bindings = program.rows_of("cuda").known("module-macro", "operator-macro", "registers-operators")

    def has(self, unit: Unit) -> bool:
        """Whether the work of a file is done for PyTorch, on a stream that the caller has chosen."""
        found = self._is_extension.get(unit)
        if found is None:
            self._is_extension[unit] = False
            is_part = self.works_on_tensors(unit) or self._is_linked(unit) or self._is_header(unit)
            found = self._is_extension[unit] = is_part and not self.is_own_program(unit)
        return found

    def _is_header(self, unit: Unit) -> bool:
        """Whether parts of extensions include a file, and no source that is none."""
        sources = [one for one in self.program.cpp.seeing(unit) if one is not unit and one.path.endswith(SOURCES)]
        return not unit.path.endswith(SOURCES) and bool(sources) and all(map(self.has, sources))

    def binds(self, unit: Unit) -> bool:
        """Whether a file says what Python can call of it."""
        return any(unit in self.program.mentioning(name) for name in self._bindings)

    def is_own_program(self, unit: Unit) -> bool:
        """Whether a file is a program that nobody calls: it has a ``main`` and binds nothing."""
        begins = any(name == "main" and kind == "function" and not owner for name, _, kind, _, owner, _ in unit.ir.outline)
        return begins and not self.binds(unit)

    def works_on_tensors(self, unit: Unit) -> bool:
        """Whether a file includes PyTorch's headers, or takes or gives tensors."""
        found = self._on_tensors.get(unit)
        if found is None:
            near = list(self.program.cpp.visible(unit))
            included = any(one.startswith(_HEADERS) for other in near for one in other.ir.includes)
            found = (included and not (self._is_pybind(unit) and not any(map(_speaks_of_pytorch, near)))) or self._takes_tensors(unit)
            self._on_tensors[unit] = found
        return found

    def _is_pybind(self, unit: Unit) -> bool:
        return unit in self.program.mentioning("PYBIND11_MODULE")

    def _takes_tensors(self, unit: Unit) -> bool:
        return any(kind[0] in unit.models.marked("tensor-type") for function in host_functions(unit) for kind in types_of(function))

    def _is_linked(self, unit: Unit) -> bool:
        """Whether an extension declares one of the functions that stand here: kernels and launchers in a file of plain pointers."""
        return any(
            function.name in self._declared and function.is_linked and not function.code.class_name
            for function in host_functions(unit)
            if function.code.kind == "function"
        )

    def is_uncalled(self, function: Function, exports: Exports) -> bool:
        """Whether a free function of an extension is neither bound nor named by anything at hand, where others are."""
        while function.code.kind == "lambda" and function.parent is not None:
            function = function.parent
        code, unit = function.code, function.unit
        if code.kind != "function" or code.class_name or code.template or unit.path.endswith((".h", ".hpp", ".cuh", ".hh")):
            return False
        cpp = [one for one in self.program.units.values() if one.is_cpp]
        if not any(map(self.binds, cpp)) or not self._has_company(unit) or exports.of(function):
            return False
        if any(one.cpp_uses.get(code.name) for one in cpp):
            return False
        return not any(not one.is_cpp for one in self.program.mentioning(code.name))

    def _has_company(self, unit: Unit) -> bool:
        """Whether a file binds, includes a file at hand, or is named by another one: of one by itself, who calls it is out of view."""
        if len(self.program.cpp.visible(unit)) > 1 or self.binds(unit):
            return True
        names = {one.code.name for one in host_functions(unit) if one.code.kind == "function" and one.is_linked}
        return any(other is not unit and name not in other.named for name in names for other in self.program.cpp.mentioning(name))

    @cached_property
    def _declared(self) -> frozenset[str]:
        units = [unit for unit in self.program.units.values() if unit.is_cpp and self.works_on_tensors(unit)]
        return frozenset(name for unit in units for name, held in unit.declared.items() if not all(one.class_name for one in held))


def host_functions(unit: Unit) -> Iterator[Function]:
    """The functions of a file that run on the host."""
    return (one for one in unit.functions if not {"kernel", "device"} & one.code.flags and one.code.kind not in ("module", "class"))


def types_of(function: Function) -> Iterator[TypeTuple]:
    """The types of a function's parameters and of its result."""
    yield from (one.type for one in function.code.parameters if one.type is not None)
    if isinstance(function.code.returns, tuple):
        yield function.code.returns


def _speaks_of_pytorch(unit: Unit) -> bool:
    for function in unit.functions:
        if any(
            _is_of_tensors(function, function.text(one[3])) for opcode in (op.NAME, op.ADDRESS_NAME) for one in function.by_opcode[opcode]
        ):
            return True
        if any(function.text(one[4]) == "data_ptr" for one in function.by_opcode[op.INVOKE]):
            return True
        if any(_is_of_tensors(function, kind[0]) or kind[0].endswith("Tensor") for kind in types_of(function)):
            return True
    return False


def _is_of_tensors(function: Function, name: str) -> bool:
    """Whether a name is one of PyTorch's own, by its namespace."""
    return "::" in name and first_part(name) in function.unit.models.marked("tensor-namespace")
