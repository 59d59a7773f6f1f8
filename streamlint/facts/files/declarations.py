"""What users declare of values: the words of an annotation, and the object that a value is if nothing else is known of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import LibraryObject, Memory, Object, Objects
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.hierarchy import Hierarchy
from streamlint.facts.files.program import Program, Unit
from streamlint.facts.files.scopes import ExternalName, Scopes
from streamlint.ir import DeclarationIR, Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.models import Models
from streamlint.support.declared_words import ANYTHING, PREFIX, Said, said_by, word_of
from streamlint.support.memo import memoized
from streamlint.support.records import record

_TYPED = frozenset({op.CAST, op.CONSTRUCT, op.DECLARE})
_ANYTHING = frozenset({ANYTHING, "object"})


@record(frozen=True, slots=True, eq=False)
class Declaration:
    """What is declared of a value: the words, and an object of the declared type of which they say all that is known."""

    said: Said
    object: Object


class Types(Protocol):
    """What is asked about types."""

    program: Program
    scopes: Scopes
    hierarchy: Hierarchy
    models: Models
    objects: Objects

    def of_type(self, name: ExternalName) -> Object | None:
        """An object of a library's type."""

    def cpp_declared(self, function: Function, kind: TypeTuple) -> Object | None:
        """What a variable of a C++ type holds."""

    def refined(self, value: Object, said: Said) -> Object:
        """A value of which a declaration says what is not known."""


class Declarations:
    """The declarations of a program."""

    def __init__(self, types: Types) -> None:
        self.types = types

    def of_register(self, function: Function, register: int) -> Declaration | None:
        """What is declared of what a register holds."""
        return self.in_function(function).get(register)

    @memoized
    def in_function(self, function: Function) -> dict[int, Declaration]:
        """By register: what is declared of the parameters and variables of a function."""
        return dict(self._in_function(function))

    @memoized
    def of_result(self, function: Function) -> Declaration | None:
        """What is declared of what a function returns."""
        return self._result(function)

    @memoized
    def of_field(self, owner: ClassInfo, member: str) -> Declaration | None:
        """What is declared of a member of the objects of a class."""
        return next(self._of_field(owner, member), None)

    def waits(self, function: Function) -> bool:
        """Whether a function is declared to wait for its stream."""
        return "waits" in function.code.flags or any(one.waits for _, one in self._declared_elsewhere(function))

    def _of_field(self, owner: ClassInfo, member: str) -> Iterator[Declaration]:
        for one in self.types.hierarchy.order(owner):
            annotation, kind = annotation_of(one, member)
            found = self._read(one.unit, annotation, one.body, kind)
            if found is not None:
                yield found

    def _in_function(self, function: Function) -> Iterator[tuple[int, Declaration]]:
        code, constants = function.code, function.unit.ir.constants
        said = dict(code.declared)
        for one in function.by_opcode[op.PARAM]:
            if one[3] < len(code.parameters):
                said[one[2]] = code.parameters[one[3]].annotation or self._given_elsewhere(function, one[3])
        for register, annotation in said.items():
            made = function.definitions[register] if register >= 0 else None
            if made is not None and annotation:
                kind = code.parameters[made[3]].type if made[0] == op.PARAM else constants[made[3]] if made[0] in _TYPED else None
                found = self._read(function.unit, annotation, function, kind)
                if found is not None:
                    yield register, found
        for one in function.by_opcode[op.CALL] if function.is_cpp else ():
            declared = self.called(function, one)
            found = self._read(function.unit, declared.annotation, function, None) if declared is not None else None
            if found is not None:
                yield one[2], found

    def _result(self, function: Function) -> Declaration | None:
        returns = function.code.returns
        texts = [returns] if isinstance(returns, str) else [function.code.declared.get(op.NONE, "")]
        texts += [one.annotation for _, one in self._declared_elsewhere(function)]
        kind = returns if isinstance(returns, tuple) else None
        return next((found for text in texts if (found := self._read(function.unit, text, function, kind)) is not None), None)

    # --- C++: what a header says

    def _declared_elsewhere(self, function: Function) -> list[tuple[Unit, DeclarationIR]]:
        return self.types.program.cpp.declarations(function) if function.is_cpp else []

    def _given_elsewhere(self, function: Function, index: int) -> str:
        """What a header says of a parameter of a function that is defined elsewhere."""
        place = index - (1 if function.code.parameters[0].name == "this" else 0)
        held = (one.parameters[place].annotation for _, one in self._declared_elsewhere(function) if 0 <= place < len(one.parameters))
        return next(filter(None, held), "")

    def called(self, function: Function, one: Instruction) -> DeclarationIR | None:
        """C++: the declaration of the function that a call means by its name, where a comment says something of its result or that it
        waits."""
        made = function.definitions[one[3]] if one[0] == op.CALL and one[3] >= 0 else None
        if made is None or made[0] != op.NAME:
            return None
        cpp, name = self.types.program.cpp, function.text(made[3])
        spelled, prefixes = cpp.spellings(function.unit, scope_of(function), name)
        near = cpp.visible(function.unit)
        homes = [home for home in cpp.mentioning(last_part(spelled)) if home in near]
        wanted = [f"{prefix}::{spelled}" if prefix else spelled for prefix in prefixes]
        found = (each for name in wanted for home in homes for each in home.declared.get(name, ()))
        return next((each for each in found if each.annotation or each.waits), None)

    # --- what an annotation says

    def _read(self, unit: Unit, annotation: str, function: Function, kind: TypeTuple | None) -> Declaration | None:
        for home, base, metadata in self.types.scopes.with_metadata(unit, annotation) if annotation else ():
            said = said_by(word for literal in metadata if (word := word_of(literal)))
            if said is None:
                continue
            value = self._of_cpp(function, kind, said) if unit.is_cpp else self.object_of(home, base, metadata)
            if value is not None:
                return Declaration(said, value)
        return None

    def object_of(self, unit: Unit, base: str, metadata: tuple[str, ...]) -> Object | None:
        """The object of a type with metadata; None if no word of it is ours, or it is no type of memory or streams.

        Where the words are said in a comment, or begin with ``streamlint:``, they count for types of which no row tells as well.
        """
        said = said_by(word for literal in metadata if (word := word_of(literal)))
        if said is None:
            return None
        if base.rpartition(".")[2] in _ANYTHING:
            return self._default(unit, said)
        for _, inner, one in self.types.scopes.annotated(unit, base):
            value = self.types.of_type(one) if isinstance(one, ExternalName) else None
            if isinstance(value, Memory) and said.space:
                return self.types.refined(value, said)
            if isinstance(value, LibraryObject) and value.kind == "stream" and said.stream:
                return self.types.refined(value, said)
            is_ours = any(literal.strip("\"'").startswith(PREFIX) for literal in metadata)
            if value is None and isinstance(one, ExternalName) and is_ours and not inner:
                return self._default(unit, said)
        return None

    def _default(self, unit: Unit, said: Said) -> Object:
        """Memory, or a stream, of the type that the libraries have which a file imports."""
        models, roots = self.types.models, {module.partition(".")[0] for module, _ in unit.imports}
        library = next((each for each in models.array_types.values() if each in roots), next(iter(models.array_types.values()), ""))
        if said.stream:
            return self.types.objects(LibraryObject, models.own_type(library, "stream") or "", "stream", said.stream, None)
        rows = [row for row in models.types.values() if row.kind == "buffer" and row.base is None and row.name.partition(".")[0] in roots]
        fitting = sorted((row for row in rows if row.space in ("unknown", said.space)), key=lambda row: row.space != "unknown")
        return self._memory(fitting[0].name if fitting else next(iter(models.array_types), ""), said)

    def _of_cpp(self, function: Function, kind: TypeTuple | None, said: Said) -> Object:
        value = self.types.cpp_declared(function, kind) if kind is not None else None
        if isinstance(value, Memory) and said.space:
            return self.types.refined(value, said)
        if said.stream:
            name = value.type if isinstance(value, LibraryObject) else "cudaStream_t"
            return self.types.objects(LibraryObject, name, "stream", "null" if said.stream == "default" else said.stream, None)
        return self._memory("pointer", said)

    def _memory(self, name: str, said: Said) -> Object:
        return self.types.objects(Memory, said.space, said.pinning or "unknown", name, "literal" if said.space == "device" else "none")


def annotation_of(owner: ClassInfo, member: str) -> tuple[str, TypeTuple | None]:
    """The annotation of a member of a class, in the body of the class or where a method sets it, and its C++ type."""
    held = owner.fields.get(member)
    said = held.annotation if held is not None else ""
    return said or owner.annotated.get(f"self.{member}", ""), held.type if held is not None else None
