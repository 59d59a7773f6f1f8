"""C++ declarations: what a variable of a type is before and after its initialiser."""

from __future__ import annotations

from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter import objects, pointers
from streamlint.interpreter.arguments import Arguments, CallSite, evaluate_arguments
from streamlint.interpreter.assignment import unpack
from streamlint.interpreter.classes import lineage
from streamlint.interpreter.containers import array, container
from streamlint.interpreter.cpp_types import SEQUENCES, SIZES, TABLES, class_of, is_container, is_tensor, type_row
from streamlint.interpreter.effects import apply, buffer_of
from streamlint.interpreter.effects.streams import foreign_stream, holder_of
from streamlint.interpreter.foreign import typed_value
from streamlint.interpreter.run import MAX_DEPTH, Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Series,
    Stream,
    Value,
)
from streamlint.models import TypeRow
from streamlint.operations import Create, Evidence, Memory
from streamlint.program import Type


def declare(run: Run, node: p.Declare) -> None:
    """A local variable."""
    environment = run.frame.environment
    if node.names:
        value = run.evaluate(node.value) if node.value is not None else run.opaque("binding")
        for name in node.names:
            environment.names[name] = run.opaque(name)
        unpack(run, tuple(p.Name(name) for name in node.names), value, node)
        return
    if node.static and (last := run.statics.get(id(node))) is not None:
        environment.names[node.name] = last[0].names[node.name]  # what the call before left there
        environment.types[node.name] = node.type
        run.statics[id(node)] = environment, node.name
        return
    first = len(run.machine.operations)
    value = declared_value(run, node)
    environment.names[node.name] = value
    environment.types[node.name] = node.type
    if node.static:
        run.statics[id(node)] = environment, node.name
        for operation in run.machine.operations[first:]:
            if isinstance(operation, Create):
                operation.before = True  # once for all calls
    elif _owns(node.type, value):
        environment.owned.append(value)
        environment.declared[id(value)] = run.node_span(node)


def _owns(kind: Type, value: Value) -> bool:
    if kind.pointers or kind.reference:
        return False
    if isinstance(value, Instance):
        return not value.shared
    return isinstance(value, Series | Handle) or (isinstance(value, Buffer) and value.storage.raw)


def declared_value(run: Run, node: p.Declare) -> Value:
    """What a declared variable holds."""
    kind = run.file.resolve_type(node.type)
    if node.value is not None:
        value = run.evaluate(node.value)
        if kind.reference and isinstance(node.value, p.Name | p.Attr | p.Index) and isinstance(value, Const | Opaque):
            return value
        return converted(run, value, kind, node.name)
    if node.args is not None:
        arguments = evaluate_arguments(run, node.args)
        return construct(run, kind, _given(arguments), run.node_span(node), node.name, node)
    return default_value(run, kind, f"{node.name}{run.visit_key(node)}", run.node_span(node))


def make_declared(run: Run, declared: p.Field, given: Arguments | None, name: str) -> Value:
    """A data member: from its member initialiser, its default, or as its type starts out."""
    kind = run.file.resolve_type(declared.type) if declared.type is not None else Type("auto")
    span = run.span(declared.at)
    if given is not None and given.positional:
        first = given.positional[0]
        makes = _constructs(run, kind, first) or (is_container(run, kind) and isinstance(first, Const | Opaque | LibraryName))
        if len(given.positional) == 1 and not makes:
            return converted(run, first, kind, name)
        return construct(run, kind, [(None, v) for v in given.positional], span, name)
    if declared.value is not None and given is None:
        return converted(run, run.evaluate(declared.value), kind, name)
    if declared.args is not None and given is None:
        arguments = evaluate_arguments(run, declared.args)
        if arguments.positional or arguments.keywords:
            return construct(run, kind, _given(arguments), span, name)
    return default_value(run, kind, name, span)


def _given(arguments: Arguments) -> list[tuple[str | None, Value]]:
    """The items of a brace list, each with its designator: all of them have one, or none has."""
    return [*((None, value) for value in arguments.positional), *arguments.keywords.items()]


def _constructs(run: Run, kind: Type, value: Value) -> bool:
    """Whether ``member(value)`` makes something out of a value of another kind: an object of a class at hand, a thread of a function."""
    if isinstance(value, FunctionValue) and not kind.pointers and not kind.reference and run.file.models.call(kind.name) is not None:
        return True
    found = class_of(run, kind) if not kind.pointers and not kind.reference else None
    if found is None:
        return False
    if isinstance(value, Opaque):
        other = value.cpp_type
        return other is not None and not other.pointers and other.name in SIZES
    if isinstance(value, Instance):  # it is copied, seen as a base of its own, or another object is made with it
        related = any(one is found.definition for one, _ in lineage(run, value.definition, value.file))
        return not related and f"operator {kind.name}" not in value.definition.methods
    return not isinstance(value, Handle)


def converted(run: Run, value: Value, kind: Type, name: str) -> Value:
    """A value given to a variable of a type."""
    if kind.name == "auto":
        return value
    if isinstance(value, Series) and kind.array is not None:
        return _listed(run, kind, value, name)
    if kind.name in pointers.SMART and not isinstance(value, Const | Opaque):
        return pointers.make(run, kind, [value])
    row = type_row(run, kind)
    if row is not None and row.kind == "stream" and not kind.pointers:
        if isinstance(value, Const) and value.value in (None, 0):
            return Stream("null", "null", None, row.library, kind.name)
        return value
    if isinstance(value, Const) and value.value is None and row is not None and row.kind in ("event", "handle") and not kind.pointers:
        return default_value(run, kind, name, None)
    if isinstance(value, Series) and (class_of(run, kind) is not None) and not kind.pointers:
        return construct(run, kind, [(None, v) for v in value.items or []], Span(run.file.path, 0, 0, 0, 0), name)
    if isinstance(value, Series) and not value.items and kind.name not in (*SEQUENCES, *TABLES):
        return default_value(run, kind, name, None)
    if isinstance(value, Opaque) and not value.type:
        return cast_to(run, value, kind)
    return value


def _listed(run: Run, kind: Type, value: Series, name: str) -> Value:
    """``T x[4] = {a, b}``: what the list does not name starts as zero."""
    if kind.pointers:
        return value if value.items else default_value(run, kind, name, None)
    made = array(run, kind, name, None)
    if isinstance(made, Series) and value.items:
        made.items = [*value.items, *(made.items or [])[len(value.items) :]]
    return made


def cast_to(run: Run, value: Value, kind: Type) -> Value:
    """A cast: the same value, known by its new type if nothing was known of it."""
    kind = run.file.resolve_type(kind)
    if isinstance(value, Const) and value.value in (None, 0):
        row = type_row(run, kind)
        if row is not None and row.kind == "stream" and not kind.pointers:
            return Stream("null", "null", None, row.library, kind.name, chosen=value.origin, how="literal" if value.origin else "")
        return value
    if isinstance(value, Opaque) and value.buffer is None and not value.type:
        if holder_of(value.term) != value.term and (row := type_row(run, kind)) is not None and row.kind == "stream":
            return foreign_stream(run, value, holder_of(value.term))
        made = typed_value(run, kind, value.term)
        if made is not None and not isinstance(made, Opaque):
            return run.remembered(f"cast:{value.term}:{kind.name}", lambda: made)
        value.type = kind.name if not kind.pointers else ""
        value.cpp_type = kind
    return value


def default_value(run: Run, kind: Type, name: str, span: Span | None) -> Value:
    """A variable without an initialiser."""
    if kind.array is not None and not kind.pointers:
        return array(run, kind, name, span)
    if kind.pointers:
        return Opaque(f"uninitialised:{name}", cpp_type=kind)
    row = type_row(run, kind)
    if row is not None:
        if row.kind == "handle" and "*" not in row.name and row.name.startswith("cutlass::"):
            return Handle(row.name, run.machine.fresh("object"))
        if row.kind == "scope" and (call := run.file.models.call(row.name)) is not None and call.effect in ("gil", "scope"):
            return apply(run, call, row.name, None, Arguments(), CallSite(p.Unknown(), span or Span(run.file.path, 0, 0, 0, 0), row.name))
        if row.kind in ("stream", "event", "handle", "graph", "device"):
            if row.kind == "event" and (call := run.file.models.call(row.name)) is not None:
                site = CallSite(p.Unknown(), span, row.name) if span is not None else None
                return apply(run, call, row.name, None, Arguments(), site) if site is not None else run.new_event(row.name)
            return Opaque(f"uninitialised:{name}", type=row.name)
        if is_tensor(kind, row):
            return run.unknown_buffer(name, row.name)
        if row.kind == "buffer":
            return container(run, kind, row, name, span, [])
    if kind.name in SEQUENCES or kind.name in TABLES:
        return container(run, kind, row, name, span, [])
    if (found := class_of(run, kind)) is not None:
        return _object(run, found, [], span or Span(run.file.path, 0, 0, 0, 0), name)
    if kind.name in pointers.SMART:
        return pointers.unset(run, kind, name)
    return Opaque(f"uninitialised:{name}", type=kind.name, cpp_type=kind)


def construct(run: Run, kind: Type, given: list[tuple[str | None, Value]], span: Span, name: str = "", node: p.Node | None = None) -> Value:
    """``T(args)``, ``T{args}``, ``T x(args)``."""
    kind = run.file.resolve_type(kind)
    values = [v for _, v in given]
    row = type_row(run, kind)
    if kind.name in pointers.SMART:
        return pointers.make(run, kind, values)
    if kind.name in SEQUENCES or kind.name in TABLES:
        return container(run, kind, row, name, span, values)
    if row is not None and not kind.pointers:
        return _struct(run, kind, row, given, name) if row.fields else _library_value(run, kind, row, values, span, name)
    if (found := class_of(run, kind)) is not None and not kind.pointers:
        if len(values) == 1 and isinstance(values[0], Instance) and values[0].definition is found.definition:
            return values[0]
        return _object(run, found, given, span, name)
    call = run.file.models.call(kind.name)
    if call is not None:
        return apply(run, call, kind.name, None, Arguments(values), CallSite(node or p.Unknown(), span, kind.name))
    if len(values) == 1:
        return cast_to(run, values[0], kind)
    return run.opaque(f"{kind.name}{run.visit_key(node or kind)}", *values)


def _struct(run: Run, kind: Type, row: TypeRow, given: list[tuple[str | None, Value]], name: str) -> Value:
    """A struct of a library with the values of its fields, in their order or by their names; the others are zero."""
    if len(given) == 1 and given[0][0] is None and isinstance(given[0][1], Opaque):
        return given[0][1]  # a copy of another one
    made = default_value(run, kind, name or kind.name.rpartition("::")[2], None)
    if isinstance(made, Opaque):
        made.attrs.update({named or row.fields[place]: value for place, (named, value) in enumerate(given[: len(row.fields)])})
    return made


def _library_value(run: Run, kind: Type, row: TypeRow, values: list[Value], span: Span, name: str) -> Value:
    call = run.file.models.call(kind.name)
    if call is not None:
        return apply(run, call, kind.name, None, Arguments(values), CallSite(p.Unknown(), span, kind.name))
    if len(values) == 1 and isinstance(values[0], FunctionValue):
        return values[0]  # std::function and its like stand for what they hold
    if row.kind == "buffer":
        if len(values) == 1 and is_tensor(kind, row):
            return cast_to(run, values[0], kind)
        return container(run, kind, row, name, span, values)
    if row.kind in ("stream", "event") and len(values) == 1:
        return values[0]
    if row.kind == "pointer" and values:
        return _device_pointer(run, row, values[0])
    if row.kind == "event":
        return run.new_event(row.name)
    return library_object(run, row, kind.name, Arguments(values), CallSite(p.Unknown(), span, kind.name))


def _device_pointer(run: Run, row: TypeRow, value: Value) -> Value:
    """``thrust::device_ptr<T>(p)``: the same memory, on the device for sure."""
    buffer = buffer_of(run, value)
    if buffer is None:
        return value
    if row.space == "device" and buffer.storage.memory is Memory.UNKNOWN:
        buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.LITERAL
    return buffer


def library_object(run: Run, row: TypeRow, name: str, arguments: Arguments, site: CallSite) -> Value:
    """An object of a library's type whose constructor has no row."""
    if row.kind == "buffer":
        return run.unknown_buffer(f"{name}{run.visit_key(site.node)}", row.name)
    if row.kind == "device":
        return Device("unknown")
    handle = Handle(row.name, run.machine.fresh("object"))
    handle.args = {**{str(i): v for i, v in enumerate(arguments.positional)}, **arguments.keywords}
    return handle


def _object(run: Run, made: ClassValue, given: list[tuple[str | None, Value]], span: Span, name: str) -> Value:
    if len(run.frames) > MAX_DEPTH or id(made.definition) in run.stack:
        return run.opaque(name)
    value = Instance(made.definition, made.file, types=made.types)
    site = CallSite(made.definition, span, made.definition.name)
    named = {name: item for name, item in given if name is not None}
    objects.construct(run, value, Arguments([item for name, item in given if name is None], named), site)
    return value


def new_object(run: Run, node: p.New) -> Value:
    """``new T(args)``, ``new T[n]``."""
    kind = run.file.resolve_type(node.type)
    span = run.node_span(node)
    if node.count is not None:
        count = run.evaluate(node.count)
        size = SIZES.get(kind.name.removeprefix("std::"))
        nbytes = count.value * size if isinstance(count, Const) and isinstance(count.value, int) and size else None
        if class_of(run, kind) is not None:
            return Series(None, name=f"new{run.visit_key(node)}")
        storage = run.storage(Memory.PAGEABLE, f"new{run.visit_key(node)}", nbytes=nbytes, small=nbytes is not None and nbytes <= 65536)
        storage.trail = (Step("allocated in pageable host memory here (new[])", span),)
        return Buffer(storage)
    arguments = evaluate_arguments(run, node.args)
    value = construct(run, kind, [(None, v) for v in arguments.positional], span, f"new{run.visit_key(node)}", node)
    if isinstance(value, Instance):
        value.shared = True
    return value
