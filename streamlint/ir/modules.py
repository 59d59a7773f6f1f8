"""Lowers a file: the shared syntax tree in, a `ModuleIR` out."""

from __future__ import annotations

from streamlint.ir import opcodes as op
from streamlint.ir.builder import Constants
from streamlint.ir.code import ClassIR, Code, DeclarationIR, ModuleIR, TypeTuple
from streamlint.ir.cpp import CppLowering
from streamlint.ir.definitions import DefinitionLowering
from streamlint.ir.lowering import type_tuple
from streamlint.ir.scopes import forget, module_scope
from streamlint.program import Function, Module, Type


class ModuleLowering:
    """What the codes of one file share."""

    def __init__(self) -> None:
        self.constants = Constants()
        self.codes: list[Code] = []
        self.classes: list[ClassIR | None] = []
        self.annotations: dict[tuple[int, str], str] = {}
        self.bound: frozenset[str] = frozenset()  # the names that the file itself binds
        self.numbers: dict[Function, int] = {}  # C++: a method that is defined outside of its class stands in both

    def new_code(self, name: str, qualname: str, kind: str, row: int, parent: int) -> Code:
        """An empty code with the next number."""
        code = Code(len(self.codes), name, qualname, kind)
        code.first_row, code.parent = row, parent
        self.codes.append(code)
        return code

    def reserve_class(self) -> int:
        """The number of the next class."""
        self.classes.append(None)
        return len(self.classes) - 1

    def annotate(self, code: Code, target: str, annotation: str) -> None:
        """Keep the declared type of a name or attribute."""
        self.annotations.setdefault((code.number, target), annotation)


def global_types(module: Module) -> dict[str, Type]:
    """C++: the declared types of the variables of a file and its namespaces, those included that another file defines."""
    return {**module.elsewhere, **{one.name: one.type for one in module.globals if one.name}}


def spelled_types(types: dict[str, Type]) -> dict[str, TypeTuple]:
    """C++ types as plain tuples, by name."""
    return {name: spelled for name, kind in types.items() if (spelled := type_tuple(kind)) is not None}


_READ_BY_HEADERS = ("CUDA_API_",)
"""How the names of macros begin that headers of the runtime read."""


def lower(module: Module) -> ModuleIR:
    """The intermediate representation of one file."""
    shared = ModuleLowering()
    is_cpp = module.language != "python"
    code = shared.new_code("<module>", "<module>", "module", 1, op.NONE)
    scope = module_scope(module.body, is_cpp)
    scope.outermost |= scope.bound
    shared.bound = frozenset(scope.bound)
    kind = CppLowering if is_cpp else DefinitionLowering
    lowering = kind(shared, code, scope, is_cpp)
    lowering.locals, lowering.cells = set(), set()
    lowering.body(module.body)
    declared: tuple[DeclarationIR, ...] = ()
    if isinstance(lowering, CppLowering):
        lowering.loose_classes(module)
        declared = tuple(lowering.declaration(one) for held in module.functions.values() for one in held if one not in shared.numbers)
    lowering.finish((1, 1, 1, 1))
    forget()
    found = ModuleIR(module.path, module.language, tuple(shared.constants.values), shared.codes, [one for one in shared.classes if one])
    found.annotations = shared.annotations
    found.includes, found.namespaces, found.using = module.includes, dict(module.namespaces), module.using
    found.included_at = tuple(module.position(*one) for one in module.included_at)
    found.defined = tuple(
        (one.name, module.macros.get(one.name, ""), module.position(one.offset, one.offset + len(one.name)), one.includes_above)
        for one in module.defined
        if one.name.startswith(_READ_BY_HEADERS)
    )
    found.inline = [lower(one) for one in module.inline]
    found.problems = list(module.problems)
    found.declared = declared
    found.globals, found.aliases = spelled_types(global_types(module)), spelled_types(module.aliases)
    return found
