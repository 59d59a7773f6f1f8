"""C++ containers and arrays: memory of the host or the device, or a series of values."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.findings import Span, Step
from streamlint.interpreter import pointers
from streamlint.interpreter.copies import alike
from streamlint.interpreter.cpp_types import SEQUENCES, SIZES, TABLES, bytes_of, class_of, is_data, is_tensor, is_whole, resolved, type_row
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Series,
    Table,
    Value,
)
from streamlint.models import TypeRow
from streamlint.operations import Evidence, Memory
from streamlint.program import Attr, Call, Name, Type, walk
from streamlint.record import replace

LONGEST = 4
"""Elements of a container of streams, events, handles or objects that are told apart."""


def array(run: Run, kind: Type, name: str, span: Span | None) -> Value:
    from streamlint.interpreter.declarations import default_value

    if kind.extent and (counted := _count(run, kind.extent)) is not None:
        kind = replace(kind, array=counted, extent="")
    row = type_row(run, Type(kind.name))
    if (row is not None and row.kind in ("stream", "event", "handle")) or class_of(run, Type(kind.name)) is not None:
        count = min(kind.array or 0, LONGEST)
        made = [default_value(run, Type(kind.name, kind.args), f"{name}[{i}]", span) for i in range(count)]
        return Series(made or None, name=name)
    size = bytes_of(kind)
    trail = (Step("array in pageable host memory (stack or static storage)", span),) if span is not None else ()
    return Buffer(run.storage(Memory.PAGEABLE, name, nbytes=size, small=size is not None and size <= 65536, trail=trail))


def _count(run: Run, text: str) -> int | None:
    """A number of elements: written out, or the name of a constant at hand."""
    if text.isdigit():
        return int(text)
    value = run.evaluate(Name(text)) if text.replace("::", "").isidentifier() else None
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None


def container(run: Run, kind: Type, row: TypeRow | None, name: str, span: Span | None, values: list[Value]) -> Value:
    """std::vector of values, of streams, of numbers; thrust vectors."""
    element = kind.args[0] if kind.args else Type("")
    if kind.name in TABLES:
        return Table(complete=False)
    if row is not None and row.space == "device":
        return _device_vector(run, row, name, span)
    element = resolved(run, element) if element.name else element
    held = type_row(run, element) if element.name else None
    if (
        element.pointers
        or (held is not None and (held.kind != "buffer" or is_tensor(element, held)))
        or (class_of(run, element) is not None and not is_data(run, element))
        or element.name in (*pointers.SMART, *SEQUENCES)
    ):
        if kind.name == "std::array" and not values:
            values = [Const(count) for arg in kind.args[1:2] if (count := _count(run, arg.name)) is not None]
        made = _series(run, element, held, name, span, values)
        made.holds = element
        made.kind = kind.name if kind.name.endswith("queue") else made.kind
        return made
    return _host_memory(run, kind, row, name, span, values, element)


@remembered(64)
def registered_members(file: File) -> frozenset[str]:
    """The members whose memory some code at hand page-locks: of an object from out of view it is not known whether it is, by now."""
    return frozenset(
        node.args[0].value.function.value.name
        for other in (file, *file.neighbours())
        if "HostRegister" in other.module.text
        for node in walk_module(other.module)
        if isinstance(node, Call) and isinstance(node.function, Name) and node.function.id.endswith("HostRegister") and node.args
        if isinstance(node.args[0].value, Call) and isinstance(node.args[0].value.function, Attr)
        if isinstance(node.args[0].value.function.value, Attr)
    )


def _host_memory(run: Run, kind: Type, row: TypeRow | None, name: str, span: Span | None, values: list[Value], element: Type) -> Buffer:
    """A container of plain values on the host: pageable unless its allocator may say otherwise. One made of another reads that one."""
    from streamlint.interpreter.effects.host import host_read

    source = values[0] if values else None
    if isinstance(source, Buffer) and span is not None and source.storage.on_host:
        host_read(run, source, span, kind.name)
    memory = _memory_of_allocator(run, kind.args[1]) if len(kind.args) > 1 and kind.name != "std::array" else _memory_of_row(row)
    if memory is Memory.PAGEABLE and name.rpartition(".")[2] in registered_members(run.file):
        memory = Memory.UNKNOWN
    trail = (Step(f"{kind.name} allocates pageable host memory", span),) if span is not None and memory is Memory.PAGEABLE else ()
    size = None
    if kind.name == "std::array" and len(kind.args) > 1 and (count := _count(run, kind.args[1].name)) is not None:
        size = count * SIZES.get(element.name, 8)
        memory = Memory.PAGEABLE
    elif values and isinstance(values[0], Const) and isinstance(values[0].value, int):
        size = values[0].value * SIZES.get(element.name, 8)
    elif values and isinstance(values[0], Series) and values[0].items is not None:
        size = len(values[0].items) * SIZES.get(element.name, 8)
    storage = run.storage(memory, name, nbytes=size, small=size is not None and size <= 65536, trail=trail, width=SIZES.get(element.name))
    storage.counted = size is None and is_whole(element)
    return Buffer(storage, type=row.name if row is not None else kind.name)


def _memory_of_row(row: TypeRow | None) -> Memory:
    """What a row says of a container's memory; plain containers have pageable memory."""
    return Memory(row.memory) if row is not None and row.memory != "unknown" else Memory.PAGEABLE


def _memory_of_allocator(run: Run, kind: Type) -> Memory:
    """The memory that an allocator gives: what its row says, or what all its ``allocate`` ask CUDA for. No name of a class tells it."""
    kind = run.file.resolve_type(kind)
    row = type_row(run, kind)
    if row is not None:
        return Memory(row.memory)
    made = class_of(run, kind)
    if made is None:
        return Memory.UNKNOWN
    calls = (node for method in made.definition.methods.get("allocate", ()) for node in walk(method) if isinstance(node, Call))
    rows = (made.file.models.call(node.function.id) for node in calls if isinstance(node.function, Name))
    given = {row.get("memory") for row in rows if row is not None and row.effect == "alloc"}
    return Memory.PINNED if given == {"pinned"} else Memory.UNKNOWN


def _series(run: Run, element: Type, held: TypeRow | None, name: str, span: Span | None, values: list[Value]) -> Series:
    from streamlint.interpreter.declarations import default_value

    first = values[0] if values else None
    if isinstance(first, Series):
        return Series(list(first.items) if first.items is not None else None, dict(first.made), first.element, name)
    if not values:
        return Series([], name=name)
    plain = not element.pointers and (held is None or element.name in SEQUENCES) and element.name not in pointers.SMART
    filled = values[1] if len(values) > 1 else None
    count = first.value if isinstance(first, Const) and isinstance(first.value, int) else None
    if count is not None and count <= LONGEST:
        places = [f"{name}[{i}]" for i in range(count)]
        return Series([alike(run, filled, at) if filled is not None else default_value(run, element, at, span) for at in places], name=name)
    made = filled if filled is not None else default_value(run, element, f"{name}[]", span) if plain else None
    return Series(None, element=made, name=name)


def _device_vector(run: Run, row: TypeRow, name: str, span: Span | None) -> Value:
    storage = run.storage(Memory.DEVICE, name, evidence=Evidence.LITERAL, library="thrust")
    place = span or Span(run.file.path, 0, 0, 0, 0)
    storage.trail = (Step("allocates device memory here", place),)
    buffer = Buffer(storage, type=row.name)
    storage.raw = row.raw
    if row.raw:
        run.machine.alloc(ops.Alloc(place, "thrust", row.name, memory=Memory.DEVICE, buffer=buffer))
    return buffer
