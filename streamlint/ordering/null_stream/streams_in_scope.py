"""C++: which functions and classes have a stream in scope: as a parameter, as a member, or as the current one."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.files.cpp_scopes import scope_of
from streamlint.facts.values.constructions import is_constructor
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.models import Models
from streamlint.ordering.streams.choices import NULL
from streamlint.ordering.streams.concurrent_work import ConcurrentWork
from streamlint.transfer.launch_rows import GIVEN
from streamlint.transfer.transfer import Transfer


class StreamsInScope:
    """The streams that the functions of a program can name."""

    def __init__(self, transfer: Transfer, concurrent: ConcurrentWork) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.concurrent = concurrent
        self._given: dict[Function, bool] = {}

    @cached_property
    def _asking(self) -> frozenset[str]:
        """The last parts of the names of functions that give the current stream, or one of a pool."""
        return self.facts.cpp_models.gathered(_asking) & self._free_functions

    @cached_property
    def _free_functions(self) -> frozenset[str]:
        return self.facts.cpp_models.gathered(_free_functions)

    @cached_property
    def _making(self) -> frozenset[str]:
        return self.transfer.names(frozenset({"stream"}))

    def is_stream(self, function: Function, kind: TypeTuple | None) -> bool:
        """Whether a type is that of a stream, or of something made of streams."""
        if kind is None:
            return False
        name = self.facts.program.cpp.resolved(function.unit, scope_of(function), kind)[0]
        row = self.facts.cpp_models.type_named(name)
        if row is not None and row.kind == "stream":
            return True
        return any(isinstance(arg, tuple) and self.is_stream(function, arg) for arg in kind[1])

    def brings_stream(self, function: Function, kind: TypeTuple | None) -> bool:
        """Whether a parameter's type is a stream, or a class that holds one."""
        if kind is None:
            return False
        if self.is_stream(function, kind):
            return True
        name = self.facts.program.cpp.resolved(function.unit, scope_of(function), kind)[0]
        row = self.facts.cpp_models.type_named(name)
        if row is not None and row.holds_stream:
            return True
        definition = self.facts.program.cpp.find_class(function.unit, scope_of(function), kind[0])
        return definition is not None and any(self.is_stream(definition.body, field.type) for field in definition.ir.fields)

    def given_by(self, function: Function) -> list[int]:
        """The numbers of the parameters that bring a stream."""
        return [
            index for index, one in enumerate(function.code.parameters) if one.name != "this" and self.brings_stream(function, one.type)
        ]

    def is_given(self, function: Function) -> bool:
        """Whether a function takes a stream, or asks for the current one."""
        found = self._given.get(function)
        if found is None:
            found = bool(self.given_by(function)) or any(last_name(function, one) in self._asking for one in function.by_opcode[op.CALL])
            self._given[function] = found
        return found

    def has_members(self, definition: ClassInfo) -> bool:
        """Whether objects of a class have streams of their own: as members, or wrapped in one."""
        return any(
            field.type is not None
            and not field.static
            and (self.is_stream(definition.body, field.type) or self._wraps(definition, field.type))
            for field in definition.ir.fields
        )

    def _wraps(self, definition: ClassInfo, kind: TypeTuple) -> bool:
        """Whether a type is a class that is a stream and no more."""
        if kind[2] or kind[3]:
            return False
        inner = self.facts.program.cpp.find_class(definition.unit, definition.name, kind[0])
        fields = [field for field in inner.ir.fields if not field.static] if inner is not None else []
        return inner is not None and bool(fields) and all(self.is_stream(inner.body, field.type) for field in fields)

    def makes(self, function: Function) -> bool:
        """Whether a function makes streams itself."""
        return any(last_name(function, one) in self._making for one in function.by_opcode[op.CALL])

    def works_with(self, function: Function) -> bool:
        """Whether a function launches kernels on a stream that is not null."""
        for event in self.concurrent.own(function):
            choice, work = event.choice, event.work
            if work is not None and work.how == GIVEN and work.kind == "kernel" and choice is not None and choice.kind != NULL:
                return True
        return False

    def is_named(self, function: Function) -> bool:
        """Whether a function can name a stream."""
        owner = function.method.owner if function.method is not None else None
        if self.is_given(function):
            return True
        if owner is not None and self.has_members(owner) and not is_constructor(function):
            return True
        return self.works_with(function)


def _asking(models: Models) -> frozenset[str]:
    rows = models.with_effect("stream_of").items()
    return frozenset(name for name, each in rows if any(row.get("which") in ("current", "pool", "attribute") for row in each))


def _free_functions(models: Models) -> frozenset[str]:
    free = (name for name in models.calls if models.type_named(name.rpartition("::")[0]) is None)
    return frozenset(name.rpartition("::")[2] for name in free)
