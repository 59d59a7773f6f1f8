"""Values from out of view that are known by their type: what a caller hands over, what other code made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.classes import find_method, lineage
from streamlint.interpreter.cpp_types import SEQUENCES, class_of, is_data, type_row
from streamlint.interpreter.index import File, assigned_attributes
from streamlint.interpreter.makers import class_given
from streamlint.interpreter.objects import construct, is_dataclass
from streamlint.interpreter.roots import declares_number, parameters, typed_by_annotation
from streamlint.interpreter.run import Frame, RaiseSignal, Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Environment,
    Handle,
    Instance,
    Opaque,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.models import TypeRow
from streamlint.operations import Evidence, Memory
from streamlint.program import Type

DEEPEST = 8
"""Containers in one another of a type: an alias that is defined by itself has no end."""


def typed_value(run: Run, kind: Type, name: str, parameter: bool = False, depth: int = 0) -> Value | None:
    """A value from out of view, of a known type; None where containers of it hold one another without end."""
    if depth > DEEPEST:
        return None
    kind = run.file.resolve_type(kind)
    if kind.name in pointers.SMART and kind.args and not kind.pointers:
        inner = typed_value(run, kind.args[0], f"*{name}", depth=depth + 1)
        return pointers.make(run, kind, [inner] if inner is not None else [])
    row = type_row(run, kind)
    if row is not None and kind.pointers == 0:
        return _foreign_library_value(run, kind, row, name, parameter, depth)
    found = class_of(run, kind)
    if found is not None and kind.pointers <= 1:
        made = foreign_object(run, found, name)
        made.shared = True
        return made
    if kind.name in SEQUENCES and kind.args and not kind.pointers:
        return _foreign_sequence(run, kind, name, depth)
    return None


def _foreign_library_value(run: Run, kind: Type, row: TypeRow, name: str, parameter: bool, depth: int) -> Value:
    if row.kind == "stream":
        return Stream(f"opaque:{name}", "parameter" if parameter else "foreign", None, row.library, row.name)
    if row.kind == "event":
        return run.new_event(row.name, unknown=True)
    if row.kind == "handle":
        return Handle(row.name, f"opaque:{name}", unknown=True)
    if row.kind == "buffer":
        if row.space == "device":
            return Buffer(run.storage(Memory.DEVICE, name, evidence=Evidence.LITERAL, library=row.library, owner="caller"), type=row.name)
        if kind.name in SEQUENCES and kind.args:
            return _foreign_sequence(run, kind, name, depth)
        return Buffer(run.storage(Memory.UNKNOWN, name, library=row.library, owner="caller"), type=row.name)
    return Opaque(name, type=row.name, parameter=parameter)


def _foreign_sequence(run: Run, kind: Type, name: str, depth: int) -> Value:
    element = run.file.resolve_type(kind.args[0])
    row = type_row(run, element)
    if (
        (row is not None and (row.kind != "buffer" or row.space == "unknown"))
        or (class_of(run, element) is not None and not is_data(run, element))
        or element.pointers
        or element.name in (*pointers.SMART, *SEQUENCES)
    ):
        held = typed_value(run, element, f"{name}[]", depth=depth + 1)
        return Series(None, element=held, name=name)
    # The caller's vector: ordinary host memory unless its allocator says otherwise.
    memory = Memory.UNKNOWN if len(kind.args) > 1 else Memory.PAGEABLE
    return Buffer(run.storage(memory, name, owner="caller", trail=()), type=kind.name)


def foreign_object(run: Run, made: ClassValue, name: str, given: Arguments | None = None) -> Instance:
    """An object that code out of view made: its constructor is run, with unknowns if nothing is given; nothing is in flight on entry."""
    value = Instance(made.definition, made.file, foreign=True, name=name, types=made.types)
    site = CallSite(made.definition, Span(made.file.path, *made.definition.at), made.definition.name)
    found = find_method(run, made.definition, made.file, "__init__")
    arguments = given or Arguments()
    depth = len(run.frames)
    if found is not None and depth < 5 and id(found[0]) not in run.stack:
        if given is None:
            run.stack.append(id(found[0]))  # `x = Wrap(x)` twice: what the constructor is given may be another object of the class
            try:
                arguments = _unknowns(run, found[0], made.definition, found[2])
            finally:
                run.stack.pop()
    elif found is not None or id(made.definition) in run.stack:
        return value
    elif given is None and not made.file.is_cuda and is_dataclass(made.definition):
        _foreign_fields(run, value)
        return value
    with run.within(setup=True, loops=(), guards=(), callback=None), run.machine.gil.entered(None), contextlib.suppress(RaiseSignal):
        construct(run, value, arguments, site)  # the object is there: nothing was raised, whatever the likely path says
    widen(run, value)
    return value


def _unknowns(run: Run, maker: p.Function, owner: p.Class, file: File) -> Arguments:
    """What a constructor may have been given: nothing is known of it but what its file gives wherever it makes such an object."""
    given = parameters(run, maker, file)
    for param in maker.params[1:] if not file.is_cuda else ():
        held = class_given(maker, owner, file, param) if param.annotation is None and isinstance(given.get(param.name), Opaque) else None
        if held is not None:
            given[param.name] = foreign_object(run, ClassValue(*held), f"{maker.qualname}:{param.name}")
    plain = [pm.name for pm in maker.params if pm.kind == "plain"]
    offset = 0 if file.is_cuda else 1
    return Arguments([given[n] for n in plain[offset:]], {pm.name: given[pm.name] for pm in maker.params if pm.kind == "keyword"})


def _foreign_fields(run: Run, value: Instance) -> None:
    for owner, file in lineage(run, value.definition, value.file):
        for declared in owner.fields:
            if declared.name not in value.attrs and declared.annotation is not None:
                with run.entered(Frame(None, file, Environment(), qualname=owner.qualname), None):
                    made = typed_by_annotation(run, f"{value.term}.{declared.name}", declared.annotation)
                if made is None:
                    made = run.opaque(f"{value.term}.{declared.name}")
                    made.plain = declares_number(declared.annotation)
                value.attrs[declared.name] = made


def widen(run: Run, value: Instance, depth: int = 0) -> None:
    """Other methods may have filled the containers that the constructor left empty, and set what it left null."""
    if value.file.is_cuda and depth < _DEEPEST:
        for inner in [i for held in value.attrs.values() for i in _objects_in(held) if i.file.is_cuda and not i.foreign]:
            widen(run, inner, depth + 1)
    types = {f.name: f.type for f in value.definition.fields if f.type is not None and not f.static} if value.file.is_cuda else {}
    for name, held in list(value.attrs.items()):
        if name in types and (isinstance(held, Const) or (isinstance(held, Stream) and held.kind == "null")):
            value.attrs[name] = _set_elsewhere(run, value, name, types[name])
            continue
        if isinstance(held, Const) and isinstance(held.value, bool) and _is_chosen(value, name):
            value.attrs[name] = run.opaque(f"{value.term}.{name}")
        elif isinstance(held, Series) and held.items == []:
            value.attrs[name] = Series(None, element=_element(run, value, name), name=f"{value.term}.{name}", kind=held.kind)
        elif isinstance(held, Table) and held.complete and not held.items:
            value.attrs[name] = Table(complete=False)


_DEEPEST = 2


def _objects_in(held: Value) -> Iterator[Instance]:
    """The objects that a member holds: itself, what it points to, its elements."""
    for value in (held, *(held.all() if isinstance(held, Series) else ())):
        target = pointers.pointee(value) if pointers.is_smart(value) else value
        if isinstance(target, Instance):
            yield target


def _is_chosen(value: Instance, name: str) -> bool:
    """Whether the constructor gives a flag this value in one case and that in another: which of them, the caller knows."""
    makers = value.definition.methods.get("__init__", ())
    given = [e for maker in makers for e in assigned_attributes(maker).get(name, ())] if not value.file.is_cuda else []
    return len({e.value for e in given if isinstance(e, p.Const)}) > 1


def _set_elsewhere(run: Run, value: Instance, name: str, kind: Type) -> Value:
    """C++: a member of an object from out of view that its constructor leaves at a constant."""
    with run.entered(Frame(None, value.file, Environment(), value, qualname=value.definition.qualname), None):
        row = type_row(run, value.file.resolve_type(kind))
    term = f"{value.term}.{name}"
    if row is not None and row.kind == "stream" and not kind.pointers:
        return Stream(f"opaque:{term}", "foreign", None, row.library, row.name)
    return Opaque(term, type=row.name if row is not None and not kind.pointers else "", cpp_type=kind)


def _element(run: Run, value: Instance, name: str) -> Value | None:
    """C++: what a member container holds, by its type."""
    declared = next((f for f in value.definition.fields if f.name == name), None)
    if declared is None or declared.type is None or len(run.frames) > 4:
        return None
    kind = value.file.resolve_type(declared.type)
    if not kind.args:
        return None
    with run.entered(Frame(None, value.file, Environment(), value, qualname=value.definition.qualname), None):
        made = typed_value(run, kind.args[0], f"{value.term}.{name}[]")
    if isinstance(made, Instance):
        made.shared = False
    return made
