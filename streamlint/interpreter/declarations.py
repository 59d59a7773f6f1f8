"""C++ declarations: what a variable of a type is before and after its initialiser."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter import pointers
from streamlint.interpreter.calls import Arguments, CallSite, evaluate_arguments
from streamlint.interpreter.index import File
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    Environment,
    Event,
    Handle,
    Instance,
    Opaque,
    Reference,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.models import TypeRow
from streamlint.operations import Evidence, Memory
from streamlint.program import Type

_SIZES = {
    "char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1, "bool": 1, "half": 2, "__half": 2, "int16_t": 2, "uint16_t": 2, "short": 2,
    "int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "int32_t": 4, "uint32_t": 4, "long": 8, "unsigned long": 8, "double": 8,
    "size_t": 8, "int64_t": 8, "uint64_t": 8, "long long": 8, "float2": 8, "float4": 16,
}  # fmt: skip
_SMART = pointers.SMART
_SEQUENCES = ("std::vector", "std::deque", "std::list", "std::array", "std::queue", "vector", "std::set")
_TABLES = ("std::map", "std::unordered_map", "map", "unordered_map")


def bytes_of(kind: Type | None) -> int | None:
    """The size of a variable in bytes where the type says it; scalars and small structs are small in any case."""
    if kind is None:
        return None
    if kind.pointers:
        return 8
    size = _SIZES.get(kind.name.removeprefix("std::"), 64 if kind.name else None)
    if size is None:
        return None
    if kind.array is not None:
        return size * kind.array if kind.array else None
    return size


def declare(run: Run, node: p.Declare) -> None:
    """A local variable."""
    environment = run.frame.environment
    if node.names:
        from streamlint.interpreter.assignment import unpack

        value = run.evaluate(node.value) if node.value is not None else run.opaque("binding")
        for name in node.names:
            environment.names[name] = run.opaque(name)
        unpack(run, tuple(p.Name(name) for name in node.names), value, node)
        return
    if node.static and id(node) in run.statics:
        environment.names[node.name] = run.statics[id(node)]
        environment.types[node.name] = node.type
        return
    value = declared_value(run, node)
    environment.names[node.name] = value
    environment.types[node.name] = node.type
    if node.static:
        run.statics[id(node)] = value
    elif _owns(node.type, value):
        environment.owned.append(value)


def _owns(kind: Type, value: Value) -> bool:
    if kind.pointers or kind.reference:
        return False
    if isinstance(value, Instance):
        return not value.shared
    return isinstance(value, Series | Handle) or (isinstance(value, Buffer) and value.storage.raw)


def declared_value(run: Run, node: p.Declare, global_scope: bool = False) -> Value:
    """What a declared variable holds."""
    kind = run.file.resolve_type(node.type)
    if node.value is not None:
        value = run.evaluate(node.value)
        if kind.reference and isinstance(node.value, p.Name | p.Attr | p.Index) and isinstance(value, Const | Opaque):
            return value
        return converted(run, value, kind, node.name)
    if node.args is not None:
        span = run.node_span(node)
        arguments = evaluate_arguments(run, node.args)
        return construct(run, kind, [(None, v) for v in arguments.positional], span, node.name, node)
    return default_value(run, kind, f"{node.name}{run.visit_key(node)}", run.node_span(node))


def make_declared(run: Run, declared: p.Field, given: Arguments | None, name: str) -> Value:
    """A data member: from its member initialiser, its default, or as its type starts out."""
    kind = run.file.resolve_type(declared.type) if declared.type is not None else Type("auto")
    span = run.span(declared.at)
    if given is not None and given.positional:
        if len(given.positional) == 1 and not (_is_container(run, kind) and isinstance(given.positional[0], Const | Opaque)):
            return converted(run, given.positional[0], kind, name)
        return construct(run, kind, [(None, v) for v in given.positional], span, name)
    if declared.value is not None and given is None:
        return converted(run, run.evaluate(declared.value), kind, name)
    if declared.args is not None and given is None:
        arguments = evaluate_arguments(run, declared.args)
        if arguments.positional:
            return construct(run, kind, [(None, v) for v in arguments.positional], span, name)
    return default_value(run, kind, name, span)


def _is_container(run: Run, kind: Type) -> bool:
    row = type_row(run, kind)
    return not kind.pointers and not kind.reference and (kind.name in (*_SEQUENCES, *_TABLES) or (row is not None and row.kind == "buffer"))


def converted(run: Run, value: Value, kind: Type, name: str) -> Value:
    """A value given to a variable of a type."""
    if kind.name == "auto":
        return value
    if kind.name in _SMART and not isinstance(value, Const | Opaque):
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
    if isinstance(value, Series) and not value.items and kind.array is None and kind.name not in (*_SEQUENCES, *_TABLES):
        return default_value(run, kind, name, None)
    if isinstance(value, Opaque) and not value.type:
        return cast_to(run, value, kind)
    return value


def cast_to(run: Run, value: Value, kind: Type) -> Value:
    """A cast: the same value, known by its new type if nothing was known of it."""
    kind = run.file.resolve_type(kind)
    if isinstance(value, Const) and value.value in (None, 0):
        row = type_row(run, kind)
        if row is not None and row.kind == "stream" and not kind.pointers:
            return Stream("null", "null", None, row.library, kind.name, chosen=value.origin)
        return value
    if isinstance(value, Opaque) and value.buffer is None and not value.type:
        made = typed_value(run, kind, value.term, shared=True)
        if made is not None and not isinstance(made, Opaque):
            return run.remembered(f"cast:{value.term}:{kind.name}", lambda: made)
        value.type = kind.name if not kind.pointers else ""
        value.cpp_type = kind
    return value


def type_row(run: Run, kind: Type) -> TypeRow | None:
    from streamlint.interpreter.names import expanded

    models = run.file.models
    name = expanded(run.file, kind.name.lstrip(":"))
    if name.startswith("hip") and len(name) > 3 and name[3].islower() is False:
        name = f"cuda{name[3:]}"
    found = models.type_named(name)
    if found is None:
        for prefix in run.file.module.using:
            found = found or models.type_named(f"{prefix}::{name}")
    return found


def class_of(run: Run, kind: Type) -> ClassValue | None:
    if (bound := template_argument(run, kind.name)) is not None:
        kind = bound
    for file in (run.file, *run.file.neighbours()):
        definition = file.class_named(kind.name)
        if definition is not None:
            arguments = dict(zip(definition.template, (run.file.resolve_type(arg) for arg in kind.args), strict=False))
            return ClassValue(definition, file, arguments)
    return None


def template_argument(run: Run, name: str) -> Type | None:
    """The type that a class template's parameter stands for in the object at hand."""
    this = run.frame.this if run.frames else None
    return this.types.get(name) if this is not None else None


def default_value(run: Run, kind: Type, name: str, span: Span | None) -> Value:
    """A variable without an initialiser."""
    if kind.array is not None and not kind.pointers:
        return _array(run, kind, name, span)
    if kind.pointers:
        return run.opaque(f"uninitialised:{name}", type="")
    row = type_row(run, kind)
    if row is not None:
        if row.kind == "handle" and "*" not in row.name and row.name.startswith("cutlass::"):
            return Handle(row.name, run.machine.fresh("object"))
        if row.kind in ("stream", "event", "handle", "graph", "device"):
            if row.name in ("at::cuda::CUDAEvent",) or row.name.endswith("CUDAEvent"):
                return run.new_event(row.name)
            return Opaque(f"uninitialised:{name}", type=row.name)
        if row.kind == "buffer" and row.space == "unknown" and kind.name not in _SEQUENCES:
            return run.unknown_buffer(name, row.name)
        if row.kind == "buffer":
            return _container(run, kind, row, name, span, [])
    if kind.name in _SEQUENCES or kind.name in _TABLES:
        return _container(run, kind, row, name, span, [])
    if (found := class_of(run, kind)) is not None:
        return _object(run, found, [], span or Span(run.file.path, 0, 0, 0, 0), name)
    if kind.name in _SMART:
        return run.opaque(f"empty:{name}")
    return Opaque(f"uninitialised:{name}", type=kind.name, cpp_type=kind)


def _array(run: Run, kind: Type, name: str, span: Span | None) -> Value:
    row = type_row(run, Type(kind.name))
    if (row is not None and row.kind in ("stream", "event", "handle")) or class_of(run, Type(kind.name)) is not None:
        count = min(kind.array or 0, 4)
        made = [default_value(run, Type(kind.name, kind.args), f"{name}[{i}]", span) for i in range(count)]
        return Series(made or None, name=name)
    size = bytes_of(kind)
    trail = (Step("an array in pageable host memory (the stack or static memory)", span),) if span is not None else ()
    return Buffer(run.storage(Memory.PAGEABLE, name, nbytes=size, small=size is not None and size <= 65536, trail=trail))


def construct(run: Run, kind: Type, given: list[tuple[str | None, Value]], span: Span, name: str = "", node: p.Node | None = None) -> Value:
    """``T(args)``, ``T{args}``, ``T x(args)``."""
    kind = run.file.resolve_type(kind)
    values = [v for _, v in given]
    row = type_row(run, kind)
    if kind.name in _SMART:
        return pointers.make(run, kind, values)
    if kind.name in _SEQUENCES or kind.name in _TABLES:
        return _container(run, kind, row, name, span, values)
    if row is not None and not kind.pointers:
        return _library_value(run, kind, row, values, span, name)
    if (found := class_of(run, kind)) is not None and not kind.pointers:
        if len(values) == 1 and isinstance(values[0], Instance) and values[0].definition is found.definition:
            return values[0]
        return _object(run, found, values, span, name)
    if kind.name in _SMART:
        return pointers.make(run, kind, values)
    call = run.file.models.call(kind.name)
    if call is not None:
        from streamlint.interpreter.effects import apply

        return apply(run, call, kind.name, None, Arguments(values), CallSite(node or p.Unknown(), span, kind.name))
    if len(values) == 1:
        return cast_to(run, values[0], kind)
    return run.opaque(f"{kind.name}{run.visit_key(node or kind)}", *values)


def _library_value(run: Run, kind: Type, row: TypeRow, values: list[Value], span: Span, name: str) -> Value:
    call = run.file.models.call(kind.name)
    if call is not None:
        from streamlint.interpreter.effects import apply

        return apply(run, call, kind.name, None, Arguments(values), CallSite(p.Unknown(), span, kind.name))
    if row.kind == "buffer":
        return _container(run, kind, row, name, span, values)
    if row.kind in ("stream", "event") and len(values) == 1:
        return values[0]
    if row.kind == "pointer" and values:
        return _device_pointer(run, row, values[0])
    if row.kind == "event":
        return run.new_event(row.name)
    return library_object(run, row, kind.name, Arguments(values), CallSite(p.Unknown(), span, kind.name))


def _device_pointer(run: Run, row: TypeRow, value: Value) -> Value:
    """``thrust::device_ptr<T>(p)``: the same memory, on the device for sure."""
    from streamlint.interpreter.effects import buffer_of

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


def _object(run: Run, made: ClassValue, values: list[Value], span: Span, name: str) -> Value:
    from streamlint.interpreter import objects

    if len(run.frames) > 5:
        return run.opaque(name)
    value = Instance(made.definition, made.file, types=made.types)
    site = CallSite(made.definition, span, made.definition.name)
    objects.construct(run, value, Arguments(values), site)
    return value


def _container(run: Run, kind: Type, row: TypeRow | None, name: str, span: Span | None, values: list[Value]) -> Value:
    """std::vector of values, of streams, of numbers; thrust vectors."""
    element = kind.args[0] if kind.args else Type("")
    if kind.name in _TABLES:
        return Table(complete=False)
    if row is not None and row.space == "device":
        return _device_vector(run, row, name, span, values)
    element = run.file.resolve_type(element) if element.name else element
    held = type_row(run, element) if element.name else None
    if (
        element.pointers
        or (held is not None and held.kind != "buffer")
        or class_of(run, element) is not None
        or element.name in (*_SMART, *_SEQUENCES)
    ):
        made = _series(run, element, held, name, span, values)
        made.holds = element
        return made
    pinned = any("pinned" in a.name.lower() for a in kind.args[1:])
    allocator = len(kind.args) > 1 and kind.name not in ("std::array",)
    memory = Memory.PINNED if pinned else Memory.UNKNOWN if allocator else Memory.PAGEABLE
    trail = (Step(f"{kind.name}: pageable host memory", span),) if span is not None and memory is Memory.PAGEABLE else ()
    size = None
    if kind.name == "std::array" and len(kind.args) > 1 and kind.args[1].name.isdigit():
        size = int(kind.args[1].name) * _SIZES.get(element.name, 8)
        memory = Memory.PAGEABLE
    elif values and isinstance(values[0], Const) and isinstance(values[0].value, int):
        size = values[0].value * _SIZES.get(element.name, 8)
    elif values and isinstance(values[0], Series) and values[0].items is not None:
        size = len(values[0].items) * _SIZES.get(element.name, 8)
    storage = run.storage(memory, name, nbytes=size, small=size is not None and size <= 65536, trail=trail)
    return Buffer(storage, type=row.name if row is not None else kind.name)


def _series(run: Run, element: Type, held: TypeRow | None, name: str, span: Span | None, values: list[Value]) -> Series:
    first = values[0] if values else None
    if isinstance(first, Series):
        return Series(list(first.items) if first.items is not None else None, dict(first.made), first.element, name)
    made = (
        default_value(run, element, f"{name}[]", span)
        if values and not element.pointers and held is None and element.name not in _SMART
        else None
    )
    if not values:
        series = Series([], name=name)
        series.element = None
        return series
    count = first.value if isinstance(first, Const) and isinstance(first.value, int) else None
    if count is not None and count <= 4:
        return Series([default_value(run, element, f"{name}[{i}]", span) for i in range(count)], name=name)
    return Series(None, element=made, name=name)


def _device_vector(run: Run, row: TypeRow, name: str, span: Span | None, values: list[Value]) -> Value:
    storage = run.storage(Memory.DEVICE, name, evidence=Evidence.LITERAL, library="thrust")
    place = span or Span(run.file.path, 0, 0, 0, 0)
    storage.trail = (Step("allocates device memory here", place),)
    buffer = Buffer(storage, type=row.name)
    storage.raw = row.raw
    if row.raw:
        run.machine.alloc(ops.Alloc(place, "thrust", row.name, memory=Memory.DEVICE, buffer=buffer))
    return buffer


def new_object(run: Run, node: p.New) -> Value:
    """``new T(args)``, ``new T[n]``."""
    kind = run.file.resolve_type(node.type)
    span = run.node_span(node)
    if node.count is not None:
        count = run.evaluate(node.count)
        size = _SIZES.get(kind.name.removeprefix("std::"))
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


def typed_value(run: Run, kind: Type, name: str, shared: bool = False, parameter: bool = False) -> Value | None:
    """A value from out of view, of a known type."""
    from streamlint.interpreter.objects import foreign_object

    kind = run.file.resolve_type(kind)
    if kind.name in _SMART and kind.args and not kind.pointers:
        inner = typed_value(run, kind.args[0], f"*{name}")
        return pointers.make(run, kind, [inner] if inner is not None else [])
    row = type_row(run, kind)
    if row is not None and kind.pointers == 0:
        return _foreign_library_value(run, kind, row, name, parameter)
    found = class_of(run, kind)
    if found is not None and kind.pointers <= 1:
        made = foreign_object(run, found, name)
        made.shared = True
        return made
    if kind.name in _SEQUENCES and kind.args and not kind.pointers:
        return _foreign_sequence(run, kind, name)
    return None


def _foreign_library_value(run: Run, kind: Type, row: TypeRow, name: str, parameter: bool) -> Value:
    if row.kind == "stream":
        return Stream(f"opaque:{name}", "parameter" if parameter else "foreign", None, row.library, row.name)
    if row.kind == "event":
        return run.new_event(row.name, unknown=True)
    if row.kind == "handle":
        return Handle(row.name, f"opaque:{name}", unknown=True)
    if row.kind == "buffer":
        if row.space == "device":
            return Buffer(run.storage(Memory.DEVICE, name, evidence=Evidence.LITERAL, library=row.library, owner="caller"), type=row.name)
        if kind.name in _SEQUENCES and kind.args:
            return _foreign_sequence(run, kind, name)
        return Buffer(run.storage(Memory.UNKNOWN, name, library=row.library, owner="caller"), type=row.name)
    return Opaque(name, type=row.name, parameter=parameter)


def _foreign_sequence(run: Run, kind: Type, name: str) -> Value:
    element = run.file.resolve_type(kind.args[0])
    row = type_row(run, element)
    if (
        (row is not None and row.kind != "buffer")
        or class_of(run, element) is not None
        or element.pointers
        or element.name in (*_SMART, *_SEQUENCES)
    ):
        held = typed_value(run, element, f"{name}[]")
        return Series(None, element=held, name=name)
    # The caller's vector: ordinary host memory unless its allocator says otherwise.
    memory = Memory.UNKNOWN if len(kind.args) > 1 else Memory.PAGEABLE
    return Buffer(run.storage(memory, name, owner="caller", trail=()), type=kind.name)


def is_event(value: Value) -> bool:
    return isinstance(value, Event)


__all__ = ["Environment", "File", "Reference", "declare", "declared_value", "typed_value"]
