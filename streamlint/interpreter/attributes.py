"""``value.name``: attributes of objects at hand, of modelled types, of unknown values."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter import pointers
from streamlint.interpreter.batches import leaf
from streamlint.interpreter.classes import library_bases
from streamlint.interpreter.cpp_types import class_of
from streamlint.interpreter.custom_gradients import is_function_of_autograd
from streamlint.interpreter.gradients import beside
from streamlint.interpreter.held import may_be_among
from streamlint.interpreter.members import class_member, member
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    Event,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Loader,
    Method,
    Opaque,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.models import Row
from streamlint.operations import Evidence, Memory


def get_attribute(run: Run, value: Value, name: str, node: p.Attr) -> Value:
    """The value of an attribute that is read."""
    if isinstance(value, Instance):
        return _of_instance(run, value, name, node)
    if isinstance(value, LibraryName):
        return _of_library(run, value, name)
    if isinstance(value, Buffer):
        return _of_buffer(run, value, name, node)
    if isinstance(value, Opaque):
        return _of_opaque(run, value, name, node)
    if isinstance(value, ClassValue):
        return _of_class(run, value, name)
    if pointers.is_smart(value):
        return _of_smart(run, value, name, node)
    if isinstance(value, Stream) and name == "value":
        return value  # ctypes: the address in a pointer object
    if isinstance(value, Stream | Event | Handle | Loader):
        found = _of_modelled(run, value, name)
        if isinstance(value, Stream | Event) and isinstance(found, Opaque) and found.name == f"query:{value.term}":
            run.machine.query(ops.Query(run.node_span(node), value.type.partition(".")[0], name, of=value))
        return found
    if isinstance(value, Device):
        return _of_device(run, value, name)
    if isinstance(value, FunctionValue):
        return value if name == "value" else Method(value, name)  # ctypes: the address in a pointer object
    if (
        isinstance(value, Series)
        and value.kind == "tuple"
        and run.file.is_cuda
        and name in _OF_PAIRS
        and value.items is not None
        and len(value.items) == len(_OF_PAIRS)
    ):
        return value.items[_OF_PAIRS.index(name)]
    if isinstance(value, Series | Table | Const):
        return Method(value, name)
    return run.opaque(f"{value.term}.{name}", value)


def _of_instance(run: Run, value: Instance, name: str, node: p.Attr) -> Value:
    if value.file.is_cuda and not run.file.is_cuda:
        from streamlint.interpreter.crossing import is_foreign, member_of

        if is_foreign(run, value):
            return member_of(run, value, name)
    found = member(run, value, name, node)
    if found is not None:
        if value.memory is not None and not isinstance(found, FunctionValue):
            _read_member(run, value.memory, node)
        return found
    if name in ("__dict__", "__class__"):
        return run.opaque(f"{value.term}.{name}")
    if not value.file.is_cuda and (inherited := _of_library_base(run, value, name)) is not None:
        return inherited
    made = run.opaque(f"{value.term}.{name}")
    value.attrs[name] = made
    return made


def _of_library_base(run: Run, value: Instance, name: str) -> Value | None:
    """What a class at hand has from ``threading.Thread`` and its like, and what a module does that gives itself or has no effect here."""
    for base in library_bases(run, value.definition, value.file):
        row = value.file.models.method(base, name)
        if row is not None and (name in ("start", "join") or (row.effect in _OF_MODULES and base.startswith("torch."))):
            return Method(value, name, row)
    return None


_OF_PAIRS = ("first", "second")  # std::pair
_OF_MODULES = frozenset({"none", "same", "module_to"})


def _of_library(run: Run, value: LibraryName, name: str) -> Value:
    if value.name.startswith("file:"):
        from streamlint.interpreter.names import lookup_global

        target = run.program.files[value.name[5:]]
        return lookup_global(run, target, name) or run.opaque(f"{target.path}:{name}")
    dotted = _of_facade(run, value.name, name)
    row = run.file.models.attribute(dotted)
    if row is not None and row.effect == "gil":
        return LibraryName(dotted)
    if row is not None:
        return modelled_attribute(run, value, row, dotted)
    if dotted.startswith(("cuda.", "cupy.", "torch.version.")):
        from streamlint.interpreter.names import constant

        found = constant(run, dotted) or constant(run, name)
        if found is not None:
            return found
    return LibraryName(dotted)


def _of_facade(run: Run, holder: str, name: str) -> str:
    """The full name of a member; what stands for a module has that module's."""
    dotted = f"{holder}.{name}"
    row = run.file.models.calls.get(holder)
    if row is None or row.effect != "facade" or dotted in run.file.models.calls:
        return dotted
    return f"{row.get('module')}.{name}"


def modelled_attribute(run: Run, holder: Value, row: Row, name: str) -> Value:
    """What a model says of an attribute that is read."""
    from streamlint.interpreter.effects.streams import stream_of_row

    effect = row.effect
    if effect == "stream_of":
        return stream_of_row(run, row, [holder])
    if effect == "view" and isinstance(holder, Buffer):
        part = row.get("part", "whole")
        gapped = holder.gapped or part == "some"
        return Buffer(holder.storage, holder.part, str(row.get("type", holder.type)), gapped, holder.strided or part == "strided")
    if effect == "factory" and isinstance(holder, Buffer) and (holder.storage.on_device or holder.storage.on_host):
        return beside(run, holder, name)
    if effect == "device":
        return _device_of(run, holder)
    if effect == "same":
        return holder
    if effect == "query":
        return run.opaque(f"query:{holder.term}", holder)
    return run.opaque(f"{holder.term}.{name.rpartition('.')[2]}", holder)


def _device_of(run: Run, holder: Value) -> Value:
    if isinstance(holder, Buffer):
        if holder.storage.on_device:
            return Device("device", Evidence.DERIVED, trail=holder.storage.trail)
        if holder.storage.on_host:
            return Device("host", Evidence.DERIVED)
    return run.remembered(f"device-of:{holder.term}", lambda: Device("unknown", Evidence.ASKED, f"{holder.term}.device", of=holder))


def _of_buffer(run: Run, value: Buffer, name: str, node: p.Attr) -> Value:
    if name in value.attrs:
        if run.file.is_cuda:
            _read_member(run, value, node)
        return value.attrs[name]
    if run.file.is_cuda:
        return _member_of_pointer(run, value, name, node)
    models = run.file.models
    if name in PLACES:
        known = _is_placed(value, name)
        return known if known is not None else run.opaque(f"{value.term}.{name}", value)
    if name == "device":
        return _device_of(run, value)
    row = models.member(value.type, name)
    if row is not None:
        return modelled_attribute(run, value, row, name)
    if value.leaves is not None and models.calls.get(f"{value.type}.{name}") is None:
        return Method(value, name) if name in _TABLE_METHODS else leaf(value, f".{name}")
    return Method(value, name, models.method(value.type, name))


# What tells where a tensor is: whether it says so of the device.
PLACES = {"is_cuda": True, "is_cpu": False}


def _is_placed(buffer: Buffer, name: str) -> Const | None:
    """The answer to one of ``PLACES``, where it is known."""
    storage = buffer.storage
    if storage.on_device or storage.on_host:
        return Const(storage.on_device is PLACES[name])
    return Const(False) if storage.memory is not Memory.UNKNOWN and name == "is_cuda" else None


_TABLE_METHODS = {"items", "keys", "values", "get", "pop", "update", "append", "copy"}


def _read_member(run: Run, memory: Buffer, node: p.Attr) -> None:
    """C++: ``p->x`` and ``s.x`` look into the object's memory, which a copy may be filling."""
    from streamlint.interpreter.effects.host import host_read

    if run.machine.in_flight(memory) is not None:
        host_read(run, memory, run.node_span(node), node.name)


def _member_of_pointer(run: Run, value: Buffer, name: str, node: p.Attr) -> Value:
    """C++: a method of a container, or a member of what a pointer points to."""
    row = run.file.models.method(value.type, name, "::")
    if row is not None:
        return Method(value, name, row)
    if (held := run.file.models.member(value.type, name, "::")) is not None:
        return modelled_attribute(run, value, held, name)
    if value.type != "pointer":
        return Method(value, name)
    if _is_array(run, node):
        return Buffer(value.storage, (*value.part, ("i", f".{name}")), "pointer")
    _read_member(run, value, node)
    made = run.opaque(f"{value.term}.{name}")
    value.attrs[name] = made
    return made


def _is_array(run: Run, node: p.Attr) -> bool:
    """C++: whether a member is an array, by the class that a variable or a member is declared to point to: it stands in that memory."""
    if not isinstance(node.value, p.Name):
        return False
    scope, this = run.frame.environment.find(node.value.id), run.frame.this
    kind = scope.type_of(node.value.id) if scope is not None else None
    if scope is None and this is not None:
        kind = next((field.type for field in this.definition.fields if field.name == node.value.id), None)
    owner = class_of(run, kind) if kind is not None else None
    fields = owner.definition.fields if owner is not None else ()
    return any(f.name == node.name and f.type is not None and f.type.array is not None and not f.type.pointers for f in fields)


def _of_opaque(run: Run, value: Opaque, name: str, node: p.Attr) -> Value:
    from streamlint.interpreter.effects import buffer_of

    if value.buffer is not None and run.file.is_cuda and node.arrow:
        _read_member(run, value.buffer, node)
    data = value.attrs.get("data")
    if (name == "device" or name in PLACES) and isinstance(data, Buffer) and (data.storage.on_device or data.storage.on_host):
        return _of_buffer(run, data, name, node)
    if name in value.attrs:
        return may_be_among(value.attrs[name], value.reach) if value.held else value.attrs[name]
    if value.buffer is not None and not run.file.is_cuda:
        if value.buffer.storage.writes:
            return _of_buffer(run, value.buffer, name, node)
        if name in PLACES and (known := _is_placed(value.buffer, name)) is not None:
            return known
    if value.type:
        separator = "::" if run.file.is_cuda else "."
        row = run.file.models.member(value.type, name, separator)
        if row is not None:
            return modelled_attribute(run, value, row, name)
    elif (sole := run.file.models.soles.get(name)) is not None:
        value.type = sole
        buffer = buffer_of(run, value, sole)
        return _of_buffer(run, buffer, name, node) if buffer is not None else value
    return Method(value, name, run.file.models.method(value.type, name, "::" if run.file.is_cuda else ".") if value.type else None)


def settle_method(run: Run, value: Value) -> Value:
    """An attribute that turns out not to be called: of an unknown value, an unknown value with a stable term."""
    if isinstance(value, Method) and isinstance(value.receiver, Opaque) and not value.row:
        holder, name = value.receiver, value.name
        if name not in holder.attrs:
            made = Opaque(f"{holder.term}.{name}", (), evidence=Evidence.NONE, parameter=holder.parameter, made=holder.made)
            if name == "device":
                holder.attrs[name] = _device_of(run, holder)
                return holder.attrs[name]
            holder.attrs[name] = made
        return may_be_among(holder.attrs[name], holder.reach) if holder.held else holder.attrs[name]
    return value


def _of_smart(run: Run, value: Value, name: str, node: p.Attr) -> Value:
    """``p->x`` is a member of what the pointer points to; ``p.get()`` a method of the pointer."""
    target = pointers.pointee(value)
    if node.arrow and target is not None:
        return get_attribute(run, target, name, node)
    return Method(value, name)


def _of_class(run: Run, value: ClassValue, name: str) -> Value:
    found = class_member(run, value, name)
    if found is None and name == "apply" and is_function_of_autograd(run, value):
        return Method(value, name)
    return found if found is not None else run.opaque(f"{value.term}.{name}")


def _of_modelled(run: Run, value: Stream | Event | Handle | Loader, name: str) -> Value:
    if isinstance(value, Handle) and name in value.attrs:
        return value.attrs[name]
    separator = "::" if run.file.is_cuda else "."
    kind = _IN_CPP.get(value.type, value.type) if run.file.is_cuda else value.type
    row = run.file.models.member(kind, name, separator)
    if row is not None:
        return modelled_attribute(run, value, row, name)
    return Method(value, name, run.file.models.method(kind, name, separator))


# What a library's stream is called in C++, where its methods stand.
_IN_CPP = {"torch.cuda.Stream": "c10::cuda::CUDAStream"}


def _of_device(run: Run, value: Device, name: str) -> Value:
    if name == "type":
        if value.space in ("device", "host"):
            run.tested.extend([value.told] if value.told else [])  # who asks for it asks what told it
            return Const("cuda" if value.space == "device" else "cpu")
        return run.opaque(f"{value.term}.type", value)
    if run.file.is_cuda:
        return Method(value, name, run.file.models.method("at::TensorOptions", name, "::"))
    models = run.file.models
    return Method(value, name, models.method("torch.device", name) or models.method("cupy.cuda.Device", name))
