"""``value[index]``, elements of containers and batches, pointers and what they point to."""

from __future__ import annotations

from streamlint import program as p
from streamlint.findings import Step
from streamlint.interpreter import pointers
from streamlint.interpreter.batches import batch, leaf
from streamlint.interpreter.copies import alike
from streamlint.interpreter.factories import made_by_factory
from streamlint.interpreter.held import may_be_among, parts_at, put_in
from streamlint.interpreter.named_tuples import as_tuple
from streamlint.interpreter.nested import listed
from streamlint.interpreter.places import held_memory, is_place, pointer_to
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Event,
    FunctionValue,
    Instance,
    KernelConfig,
    LibraryName,
    Loader,
    Opaque,
    Reference,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.operations import Memory
from streamlint.record import replace


def get_item(run: Run, value: Value, node: p.Index, write: bool = False) -> Value:
    """An element that is read (or is about to be written)."""
    from streamlint.interpreter.attributes import settle_method

    value = settle_method(run, value)
    if pointers.is_smart(value):
        value = held_memory(value)
    value = listed(value)
    if isinstance(value, FunctionValue | LibraryName):
        return _of_function(run, value, node)
    if isinstance(value, Buffer):
        return _of_buffer(run, value, node, write)
    indices = [_index_value(run, index) for index in node.indices]
    value = as_tuple(value) or value
    if isinstance(value, Series):
        return of_series(run, value, indices[0], node.indices[0])
    if isinstance(value, Table):
        return _of_table(run, value, key_of(indices))
    if isinstance(value, Instance):
        return _of_instance(run, value, indices, node)
    if isinstance(value, Opaque):
        return _of_opaque(run, value, indices, node, write)
    return run.opaque(f"{value.term}[{', '.join(i.term for i in indices)}]", value)


def _index_value(run: Run, index: p.Expression) -> Value:
    if isinstance(index, p.Slice):
        low = run.evaluate(index.lower) if index.lower is not None else Const(None)
        high = run.evaluate(index.upper) if index.upper is not None else Const(None)
        return run.opaque(f"{low.term}:{high.term}")
    return run.evaluate(index)


def key_of(indices: list[Value]) -> Value:
    """``table[a, b]``: the key is the pair."""
    return indices[0] if len(indices) == 1 else Series(indices, kind="tuple")


def _of_function(run: Run, value: FunctionValue | LibraryName, node: p.Index) -> Value:
    from streamlint.interpreter.bodies import is_kernel

    config = tuple(_index_value(run, index) for index in node.indices)
    numba = is_kernel(value)
    if (numba and len(config) >= 2) or (not numba and isinstance(value, FunctionValue) and not run.file.is_cuda):
        return KernelConfig(value, config, run.span(node.value.at))
    return value  # a generic: List[int]


def of_series(run: Run, value: Series, index: Value, node: p.Expression | None = None) -> Value:
    """One element of a list."""
    if isinstance(node, p.Slice):
        return _slice_of_series(run, value, node)
    items, number = value.items, index.value if isinstance(index, Const) else None
    if items is not None and isinstance(number, int) and -len(items) <= number < len(items):
        return items[number]
    return element_of(run, value, index.term)


def _slice_of_series(run: Run, value: Series, node: p.Slice) -> Value:
    bounds = [run.evaluate(b) if b is not None else Const(None) for b in (node.lower, node.upper, node.step)]
    known = [b.value for b in bounds if isinstance(b, Const) and (b.value is None or isinstance(b.value, int))]
    if value.items is not None and len(known) == len(bounds):
        low, high, step = known
        return Series(value.items[slice(low, high, step)], kind=value.kind)
    return Series(None, element=element_of(run, value, f"{bounds[0].term}:"), name=value.name, kind=value.kind)


def element_of(run: Run, value: Value, term: str) -> Value:
    """One element of a container whose elements are not known one by one: the same for the same term."""
    value = listed(value)
    if isinstance(value, Series):
        if term not in value.made and (element := _some_lane(run, value, term)) is not None:
            value.made[term] = element
        if term not in value.made:
            if value.items:
                # One of several: which is not known. Like its siblings, but equal to none of them.
                value.made[term] = similar(run, value.items, f"{value.term}[{term}]")
            elif value.element is not None:
                value.made[term] = similar(run, [value.element], f"{value.term}[{term}]")
            else:
                value.made[term] = run.opaque(f"{value.name or value.term}[{term}]")
        return may_be_among(value.made[term], put_in(value))
    if isinstance(value, Table):
        if term not in value.items:
            name = f"{value.term}[{term}]"
            made = similar(run, [value.element], name) if value.element else made_by_factory(run, value.factory, name)
            value.items[term] = made or run.opaque(name)
        return value.items[term]
    if isinstance(value, Buffer):
        if value.leaves is not None:
            return leaf(value, f"[{term}]")
        return Buffer(value.storage, (*value.part, ("i", term)), value.type, value.gapped)
    if isinstance(value, Loader):
        return batch(run, value, term)
    if isinstance(value, Opaque):
        key = f"[{term}]"
        if key not in value.attrs:
            value.attrs[key] = Opaque(f"{value.term}[{term}]", parameter=value.parameter, made=value.made, module=value.module)
        return may_be_among(value.attrs[key], parts_at(value.reach, term)) if value.held else value.attrs[key]
    return run.opaque(f"{value.term}[{term}]", value)


def _some_lane(run: Run, value: Series, term: str) -> Value | None:
    """C++: a stream, an event or an object at an index that is not known: each such index in turn stands for one of the first few."""
    if not run.file.is_cuda or term.isdigit():
        return None
    sample = value.items[0] if value.items else value.made.get("0") or value.element
    if not isinstance(sample, Stream | Event | Instance):
        row = run.file.models.type_named(sample.type) if isinstance(sample, Opaque) and sample.type else None
        if row is None or row.kind not in ("stream", "event"):
            return None
    number = sum(not key.isdigit() for key in value.made)
    if value.items:
        length = len(value.items)
        if term.endswith(f" % {length})"):
            run.ring = max(run.ring, length)  # it goes round: a loop meets the first again
        elif number >= length and isinstance(sample, Instance):
            return None  # which of them comes again is not known
        return value.items[number % length]
    return element_of(run, value, str(number % run.rounds))


def similar(run: Run, values: list[Value], name: str) -> Value:
    """A value that is one of several, without saying which: what they share."""
    first = values[0]
    if len(values) == 1 and isinstance(first, Buffer) and first.storage.owner == "caller" and first.storage.host:
        return Buffer(replace(first.storage, name=name, writes=[], reads=[]), type=first.type)  # an array of the caller's list
    if len(values) == 1 and isinstance(first, Stream | Instance) and run.file.is_cuda:
        return alike(run, first, name)
    if len(values) == 1 or all(v is first for v in values):
        return first
    if all(isinstance(v, type(first)) for v in values):
        if isinstance(first, Buffer):
            memories = {v.storage.memory for v in values if isinstance(v, Buffer)}
            return _other(run, first, memories.pop() if len(memories) == 1 else Memory.UNKNOWN, name)
        if isinstance(first, Instance) and not run.file.is_cuda:
            return _sibling(run, first, name)
        if isinstance(first, Instance | Series):
            return first
    made = run.opaque(name, *values)
    made.there = not any(isinstance(v, Const) or (isinstance(v, Opaque) and not v.there) for v in values)
    return made


def _other(run: Run, buffer: Buffer, memory: Memory, name: str) -> Buffer:
    """Memory that was made like this."""
    old = buffer.storage
    return Buffer(run.storage(memory, name, evidence=old.evidence, trail=old.trail, library=old.library), type=buffer.type)


def _sibling(run: Run, first: Instance, name: str) -> Instance:
    """An object that was made like this one: it has memory of its own."""
    made = Instance(first.definition, first.file, foreign=first.foreign, name=name, types=first.types)
    made.shared = first.shared
    made.attrs = {
        key: _other(run, held, held.storage.memory, f"{name}.{key}") if isinstance(held, Buffer) and held.leaves is None else held
        for key, held in first.attrs.items()
    }
    return made


def repeated(value: Series, count: Value) -> Value:
    if isinstance(count, Const) and isinstance(count.value, int) and value.items and len(value.items) * count.value <= 8:
        return Series(value.items * count.value, kind=value.kind)
    return Series(None, element=value.items[0] if value.items else None, kind=value.kind)


def _of_table(run: Run, value: Table, index: Value) -> Value:
    if index.term in value.items:
        return value.items[index.term]
    return element_of(run, value, index.term)


def _of_instance(run: Run, value: Instance, indices: list[Value], node: p.Index) -> Value:
    from streamlint.interpreter.bodies import call_method

    name = "operator[]" if run.file.is_cuda else "__getitem__"
    found = call_method(run, value, name, indices, run.node_span(node))
    if found is not None:
        return found
    return run.opaque(f"{value.term}[{', '.join(i.term for i in indices)}]", value)


def _of_opaque(run: Run, value: Opaque, indices: list[Value], node: p.Index, write: bool) -> Value:
    if run.file.is_cuda:
        if value.buffer is not None:
            return _of_buffer(run, value.buffer, node, write, indices)
        return element_of(run, value, indices[0].term)
    if not write and len(indices) == 1 and _gathers(indices[0]):
        made = run.unknown_buffer(f"{value.term}[{indices[0].term}]", "torch.Tensor" if _speaks_torch(run) else "numpy.ndarray")
        made.storage.fresh = True
        made.storage.trail = (Step("indexing by a list gathers into new memory here; pageable if it is on the host", run.node_span(node)),)
        return made
    found = element_of(run, value, ", ".join(i.term for i in indices))
    if value.type == "list" and isinstance(node.indices[0], p.Slice) and isinstance(found, Opaque):
        found.type = "list"
    return found


def _gathers(index: Value) -> bool:
    """Whether an index is a list of numbers: only arrays and tensors take one, and give new memory."""
    if isinstance(index, Opaque):
        return index.type == "list"
    if not isinstance(index, Series) or index.kind != "list":
        return False
    return not any(isinstance(v, Const) and not isinstance(v.value, int) for v in index.all())


def _speaks_torch(run: Run) -> bool:
    return any(name.partition(".")[0] == "torch" for name in run.file.imports.values())


def _of_buffer(run: Run, value: Buffer, node: p.Index, write: bool, indices: list[Value] | None = None) -> Value:
    if run.file.is_cuda or (run.file.is_cython and value.type == "pointer"):
        indices = indices or [run.evaluate(index) for index in node.indices]
        return _cpp_element(run, value, indices[0], node, write)
    if value.leaves is not None:
        indices = [_index_value(run, index) for index in node.indices]
        if not isinstance(node.indices[0], p.Slice):
            return leaf(value, f"[{', '.join(i.term for i in indices)}]")
    if is_named(run, value, node):
        return run.opaque(f"{value.term}[{run.evaluate(node.indices[0]).term}]", value)
    part, kind = subscript(run, node)
    if kind == "gather" and not write:
        return _gather(run, value, node)
    gapped = value.gapped or kind == "gapped"
    return Buffer(value.storage, (*value.part, *part), value.type, gapped, value.strided, attrs={})


def is_named(run: Run, value: Buffer, node: p.Index) -> bool:
    """Whether a tensor is asked by a name (``state["step"]``), as no tensor can be: it is a mapping that code out of view has made."""
    if not value.type.startswith("torch.") or len(node.indices) != 1 or not isinstance(node.indices[0], p.Const | p.Name):
        return False
    index = run.evaluate(node.indices[0])
    return isinstance(index, Const) and isinstance(index.value, str)


def _gather(run: Run, value: Buffer, node: p.Index) -> Value:
    """Indexing by a list, a mask or a tensor: new memory."""
    from streamlint.interpreter.effects.work import compute

    made = compute(run, (value,), run.node_span(node), "indexing")
    if isinstance(made, Buffer):
        made.storage.fresh = True
    return made


def subscript(run: Run, node: p.Index) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The part that a subscript names, and whether it is plain, leaves gaps, or gathers into new memory."""
    part: list[tuple[str, ...]] = []
    kind = "plain"
    for axis, index in enumerate(node.indices):
        if isinstance(index, p.Slice):
            low, high, step = (run.evaluate(b) if b is not None else Const(None) for b in (index.lower, index.upper, index.step))
            whole = isinstance(low, Const) and low.value in (None, 0) and isinstance(high, Const) and high.value is None
            part.append(("s", "" if isinstance(low, Const) and low.value in (None, 0) else low.term, "" if whole else high.term))
            stepped = not (isinstance(step, Const) and step.value in (None, 1))
            # A range of a later axis behind whole or ranged earlier axes leaves gaps; so does a step.
            if stepped or (axis > 0 and not whole and any(entry[0] != "i" for entry in part[:axis])):
                kind = "gapped"
            continue
        value = run.evaluate(index)
        if isinstance(value, Const) and (value.value is None or value.value is Ellipsis):
            part.append(("s", "", ""))
        elif isinstance(value, Buffer | Series) or _gathers(value) or (isinstance(value, Const) and isinstance(value.value, bool)):
            return (("*", "", ""),), "gather"
        else:
            part.append(("i", value.term))
            if axis > 0 and any(entry[0] != "i" for entry in part[:axis]):
                kind = "gapped"
    return tuple(part), kind


def _cpp_element(run: Run, value: Buffer, index: Value, node: p.Index, write: bool) -> Value:
    from streamlint.interpreter.effects.host import host_read

    part = Buffer(value.storage, (*value.part, ("i", index.term)), value.type)
    if not write and value.type != "pointer" and value.access is None and "at::Tensor" in run.file.models.lineage(value.type):
        return Buffer(part.storage, part.part, part.type, value.gapped, value.strided, attrs={})  # a tensor again: nothing is read
    key = f"[{index.term}]"
    if not write and (value.storage.on_host or value.storage.writes):
        host_read(run, part, run.node_span(node), "operator[]")
    if key in value.attrs:
        return value.attrs[key]
    made = run.opaque(f"{value.term}[{index.term}]")
    value.attrs[key] = made
    return made


def address_of_element(run: Run, node: p.Index) -> Value:
    """C++ ``&p[i]``: a pointer into the same memory, and no read."""
    value = run.evaluate(node.value)
    if isinstance(value, Instance):
        element = _of_instance(run, value, [run.evaluate(index) for index in node.indices], node)
        if isinstance(element, Buffer):
            return pointer_to(element) if is_place(element) else element
        return element if isinstance(element, Instance) else run.address(node)
    index = run.evaluate(node.indices[0])
    value = held_memory(value)
    if isinstance(value, Buffer):
        held = value.attrs.get(f"[{index.term}]")
        if held is not None and not isinstance(held, Opaque):
            return held
        zero = isinstance(index, Const) and index.value == 0
        return Buffer(value.storage, value.part if zero else (*value.part, ("s", index.term, "?")), "pointer", attrs=value.attrs)
    if isinstance(value, Series):
        element = of_series(run, value, index, node.indices[0])
        if isinstance(element, Instance):
            return element
    return run.address(node)


def dereference(run: Run, value: Value, node: p.Deref, write: bool = False) -> Value:
    """C++ ``*p``."""
    from streamlint.interpreter.effects.host import host_read

    value = held_memory(value)
    if isinstance(value, Reference):
        return run.at(value)
    if isinstance(value, Buffer):
        if not write and (value.storage.on_host or value.storage.writes):
            host_read(run, Buffer(value.storage, (*value.part, ("i", "0")), value.type), run.node_span(node), "operator*")
        return run.remembered(f"*{value.term}", lambda: run.opaque(f"*{value.term}"))
    if isinstance(value, Instance):
        return value
    if (target := pointers.pointee(value)) is not None:
        return target
    if isinstance(value, Opaque):
        return element_of(run, value, "0")
    return value
