"""C++ types: their sizes, their rows in the models, their classes at hand."""

from __future__ import annotations

from streamlint.interpreter.names import expanded
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    ClassValue,
)
from streamlint.models import TypeRow
from streamlint.program import Type
from streamlint.record import replace

SIZES = {
    "char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1, "bool": 1, "half": 2, "__half": 2, "int16_t": 2, "uint16_t": 2, "short": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "int32_t": 4, "uint32_t": 4, "long": 8, "unsigned long": 8, "double": 8,
    "size_t": 8, "int64_t": 8, "uint64_t": 8, "long long": 8, "float2": 8, "float4": 16,
}  # fmt: skip
_FLOATING = ("half", "__half", "float", "double", "float2", "float4")
SEQUENCES = ("std::vector", "std::deque", "std::list", "std::array", "std::queue", "vector", "std::set")
TABLES = ("std::map", "std::unordered_map", "map", "unordered_map")


def bytes_of(kind: Type | None) -> int | None:
    """The size of a variable in bytes where the type says it; scalars and small structs are small in any case."""
    if kind is None:
        return None
    if kind.pointers:
        return 8
    size = SIZES.get(kind.name.removeprefix("std::"), 64 if kind.name else None)
    if size is None:
        return None
    if kind.array is not None:
        return size * kind.array if kind.array else None
    return size


def is_whole(kind: Type) -> bool:
    """Whether a type holds whole numbers such as offsets and lengths have; in 8 bits stand pictures and quantized weights."""
    name = kind.name.removeprefix("std::")
    return not kind.pointers and SIZES.get(name, 1) > 1 and name not in _FLOATING


def type_row(run: Run, kind: Type) -> TypeRow | None:
    models = run.file.models
    name = expanded(run.file, kind.name.lstrip(":"))
    if name.startswith("hip") and len(name) > 3 and not name[3].islower():
        name = f"cuda{name[3:]}"
    found = models.type_named(name)
    if found is None:
        for prefix in run.file.module.using:
            found = found or models.type_named(f"{prefix}::{name}")
    return found


def class_of(run: Run, kind: Type) -> ClassValue | None:
    kind = _template_argument(run, kind.name) or kind
    found = run.file.class_at_hand(kind.name)
    if found is None:
        return None
    definition, file = found
    return ClassValue(definition, file, dict(zip(definition.template, (resolved(run, arg) for arg in kind.args), strict=False)))


def is_data(run: Run, kind: Type) -> bool:
    """Whether a class at hand is a struct of numbers, which is copied byte by byte: none of its members is known to be more."""
    found = class_of(run, kind)
    if found is None or not found.definition.fields or found.definition.bases or "__del__" in found.definition.methods:
        return False
    held = [field.type for field in found.definition.fields if not field.static]
    types = [found.types.get(one.name, found.file.resolve_type(one)) for one in held if one is not None]
    return bool(types) and len(types) == len(held) and all(_may_be_number(run, one) for one in types)


def _may_be_number(run: Run, kind: Type) -> bool:
    """No pointer, container, template or class, and of no library; a name of its own that nothing at hand explains stands for a number."""
    if kind.pointers or kind.reference or kind.args or kind.array is not None or kind.name in (*SEQUENCES, *TABLES):
        return False
    return "::" not in kind.name.removeprefix("std::") and class_of(run, kind) is None and type_row(run, kind) is None


def resolved(run: Run, kind: Type) -> Type:
    """A type with aliases replaced; a parameter of the class template at hand is what it stands for, and no alias of the same name."""
    if (bound := _template_argument(run, kind.name)) is not None:
        return replace(bound, pointers=bound.pointers + kind.pointers)
    this = run.frame.this if run.frames else None
    return kind if this is not None and kind.name in this.definition.template else run.file.resolve_type(kind)


def _template_argument(run: Run, name: str) -> Type | None:
    """The type that a class template's parameter stands for in the object at hand."""
    this = run.frame.this if run.frames else None
    return this.types.get(name) if this is not None else None


def is_container(run: Run, kind: Type) -> bool:
    row = type_row(run, kind)
    holds = row is not None and row.kind == "buffer" and not is_tensor(kind, row)
    return not kind.pointers and not kind.reference and (kind.name in (*SEQUENCES, *TABLES) or holds)


def is_tensor(kind: Type, row: TypeRow) -> bool:
    """A buffer of a library that says by itself where its memory is: a tensor, which any other may be made of."""
    return row.kind == "buffer" and row.space == "unknown" and kind.name not in SEQUENCES
