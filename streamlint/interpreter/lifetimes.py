"""How objects and memory end: scopes left, destructors run, names dropped."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.cpp_types import type_row
from streamlint.interpreter.gil import GUARD
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    Environment,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Reference,
    Series,
    Stream,
    Table,
    Value,
    holds_raw_memory,
)
from streamlint.operations import Memory
from streamlint.record import replace

# What a guard of C++ remembers: the library whose current stream it has chosen, and the stream that was current before.
SWITCHED, BEFORE = "(library)", "(before)"


def leave_scope(run: Run, scope: Environment, keep: Value | None = None) -> None:
    """C++: destroy what a scope owns, in reverse order; what is returned lives on."""
    if not scope.owned:
        return
    kept = {id(v) for v in reachable([keep])} if keep is not None else set()
    for value in reversed(scope.owned):
        if id(value) in kept:
            continue
        if isinstance(value, Handle) and pointers.is_smart(value) and (pointers.is_lent(value) or _held_elsewhere(run, value, scope)):
            continue
        # In a callback the declaration is the statement that ends it.
        destroy(run, value, scope.declared.get(id(value)) if run.context.callback is not None else None)
    scope.owned.clear()


def _held_elsewhere(run: Run, value: Value, scope: Environment) -> bool:
    """Whether another owner of what a smart pointer points to is still there."""
    others: list[Value] = []
    for frame in run.frames:
        if frame.this is not None:
            others.append(frame.this)
        seen: Environment | None = frame.environment
        while seen is not None:
            if seen is not scope:
                others.extend(seen.names.values())
            seen = seen.parent
    others.extend(run.globals.values())
    return any(v is value for v in reachable(others, limit=1000))


def destroy(run: Run, value: Value, span: Span | None) -> None:
    """Run the destructor of an object, then those of its members; containers destroy their elements."""
    if isinstance(value, Instance):
        _destroy_instance(run, value, span)
    elif isinstance(value, Series):
        for item in list(value.all()):
            destroy(run, item, span)
        if not value.items and not value.made and value.element is not None:
            destroy(run, value.element, span)
    elif isinstance(value, Buffer) and value.storage.raw and not value.storage.freed:
        _emit_free(run, value, span)
    elif isinstance(value, Handle) and pointers.is_smart(value):
        pointers.end(run, value, span)
    elif isinstance(value, Handle) and GUARD in value.attrs:
        run.machine.gil.back()
    elif isinstance(value, Handle) and SWITCHED in value.attrs:
        switch_back(run, value)


def switch_back(run: Run, guard: Handle) -> None:
    """The end of a guard makes the stream current again that was current before it."""
    library, before = guard.attrs[SWITCHED], guard.attrs[BEFORE]
    assert isinstance(library, LibraryName)
    if isinstance(before, Stream):
        run.current[library.name] = before
    else:
        run.current.pop(library.name, None)


def moved(value: Value) -> Value:
    """``std::move(x)``: a new owner of what ``x`` holds; the end of ``x`` frees nothing from now on."""
    if isinstance(value, Handle) and pointers.is_smart(value):
        return pointers.moved(value)
    if not isinstance(value, Instance) or value.destroyed or value.shared:
        return value
    inside = {declared.name for declared in value.definition.fields if declared.type is not None and not declared.type.reference}
    attrs = {name: moved(held) if name in inside and not isinstance(held, Buffer) else held for name, held in value.attrs.items()}
    value.destroyed = True
    return replace(value, attrs=attrs, destroyed=False)


def _destroy_instance(run: Run, value: Instance, span: Span | None) -> None:
    from streamlint.interpreter.bodies import run_body

    if value.destroyed or value.shared:
        return
    value.destroyed = True
    found = find_method(run, value.definition, value.file, "__del__")
    if found is not None and run.can_enter(found[0]):
        function, owner, file = found
        body = FunctionValue(function, file, None, value, owner=owner)
        run_body(run, body, Environment(), span, teardown=not _guards_scope(run, value))
    for declared in reversed(value.definition.fields):
        held = value.attrs.get(declared.name)
        if held is not None and declared.type is not None and not declared.type.pointers and not declared.type.reference:
            destroy(run, held, span)


def _guards_scope(run: Run, value: Instance) -> bool:
    """Whether an object ends what it has begun on a stream that was lent to it, or runs a function that it was given: that is work."""
    if any(isinstance(held, FunctionValue) for held in value.attrs.values()):
        return True
    made = value.definition.methods.get("__init__", ())
    kinds = [param.type for function in made for param in function.params if param.type is not None]
    return any((row := type_row(run, kind)) is not None and row.kind == "stream" for kind in kinds)


def delete_object(run: Run, value: Value, node: p.DeleteExpr) -> None:
    """C++ ``delete p``."""
    span = run.node_span(node)
    if isinstance(value, Reference):
        value = run.at(value)
    if isinstance(value, Opaque) and value.buffer is not None:
        value = value.buffer
    if isinstance(value, Instance):
        value.shared = False
        destroy(run, value, span)
    elif isinstance(value, Series | Table | Handle):
        destroy(run, value, span)
    elif isinstance(value, Buffer):
        from streamlint.interpreter.effects.memory import free

        free(run, value, Memory.PAGEABLE, span, "delete")


def _emit_free(run: Run, value: Buffer, span: Span | None) -> None:
    storage = value.storage
    place = span or (storage.allocated.span if storage.allocated is not None else Span(run.file.path, 0, 0, 0, 0))
    run.machine.free(ops.Free(place, storage.library, "drop", memory=storage.memory, buffer=value, kind="drop"))


def released(run: Run, dropped: Value, span: Span | None) -> None:
    """Python: a name lost this value. Driver memory whose last reference it was is freed."""
    if not holds_raw_memory():
        return
    raw = [v for v in reachable([dropped], limit=40) if isinstance(v, Buffer) and v.storage.raw and not v.storage.freed]
    if not raw:
        return
    alive = _alive(run)
    for buffer in raw:
        if id(buffer.storage) not in alive:
            _emit_free(run, buffer, span)


def drop_locals(run: Run, environment: Environment, result: Value, receiver: Value | None) -> None:
    """Python: a function's names are gone; what only they held is freed."""
    if not holds_raw_memory():
        return
    raw = [
        v for v in reachable(list(environment.names.values()), limit=80) if isinstance(v, Buffer) and v.storage.raw and not v.storage.freed
    ]
    if not raw:
        return
    alive = _alive(run, result, *([receiver] if receiver is not None else []))
    for buffer in raw:
        if id(buffer.storage) not in alive:
            _emit_free(run, buffer, None)


def _alive(run: Run, *extra: Value) -> set[int]:
    values: list[Value] = list(extra)
    for frame in run.frames:
        scope: Environment | None = frame.environment
        while scope is not None:
            values.extend(scope.names.values())
            scope = scope.parent
    values.extend(run.globals.values())
    values.extend(run.rooted)
    return {id(v.storage) for v in reachable(values, limit=2000) if isinstance(v, Buffer)}
