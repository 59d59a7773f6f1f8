"""Assignment: names, attributes, elements, unpacking, and what a name held before."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter import items, pointers, weights
from streamlint.interpreter.addresses import is_address
from streamlint.interpreter.classes import has_member
from streamlint.interpreter.guards import lvalue
from streamlint.interpreter.held import put_somewhere
from streamlint.interpreter.lifetimes import released
from streamlint.interpreter.named_tuples import as_tuple
from streamlint.interpreter.names import cpp_global_key
from streamlint.interpreter.places import held_memory, is_place
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Environment,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Reference,
    Series,
    Table,
    Value,
)


def assign(run: Run, target: p.Expression, value: Value, statement: p.Node) -> None:
    """Give ``target`` the value."""
    if isinstance(target, p.Name):
        _assign_name(run, target.id, value, statement)
    elif isinstance(target, p.Attr):
        _assign_attribute(run, target, value)
    elif isinstance(target, p.Index):
        _assign_item(run, target, value, statement)
    elif isinstance(target, p.Collection):
        unpack(run, target.items, value, statement)
    elif isinstance(target, p.Starred):
        assign(run, target.value, value, statement)
    elif isinstance(target, p.Deref):
        _assign_pointee(run, run.evaluate(target.value), value, target, statement)
    elif isinstance(target, p.Call) and run.file.is_cuda:
        from streamlint.interpreter.calls import call

        _write_place(run, call(run, target), target)
    elif isinstance(target, p.Cast | p.Unary):
        run.evaluate(target)


def _write_place(run: Run, element: Value, target: p.Expression) -> bool:
    """C++: ``h[i] = x`` and ``h.at(i) = x`` through a reference that a method returns."""
    if not is_place(element):
        return False
    from streamlint.interpreter.effects.host import host_write

    assert isinstance(element, Buffer)
    host_write(run, element, run.node_span(target), "operator[]")
    return True


def _assign_name(run: Run, name: str, value: Value, statement: p.Node) -> None:
    frame = run.frame
    scope = frame.environment.find(name) if frame.file.is_cuda else None
    if scope is not None:
        held = scope.names[name]
        if isinstance(held, Reference) and (kind := scope.types.get(name)) is not None and kind.reference:
            assign(run, held.target, value, statement)
            return
    elif frame.file.is_cuda and frame.this is not None and _is_member(frame.this, name):
        _set_member(run, frame.this, name, value)
        return
    elif frame.file.is_cuda:
        run.globals[cpp_global_key(run, name)] = value
        return
    scope = scope or _scope_for(run, name)
    dropped = scope.names.get(name)
    scope.names[name] = value
    if dropped is not None and dropped is not value and not run.file.is_cuda:
        released(run, dropped, run.node_span(statement))


def _scope_for(run: Run, name: str) -> Environment:
    environment = run.frame.environment
    outer = environment.names.get(f"nonlocal {name}")
    if outer is not None and environment.parent is not None:
        return environment.parent.find(name) or environment
    return environment


def _is_member(this: Instance, name: str) -> bool:
    return has_member(this, name)


def _set_member(run: Run, holder: Instance, name: str, value: Value) -> None:
    dropped = holder.attrs.get(name)
    holder.attrs[name] = value
    if dropped is not None and dropped is not value and not run.file.is_cuda:
        released(run, dropped, None)


def _assign_attribute(run: Run, target: p.Attr, value: Value) -> None:
    holder = run.evaluate(target.value)
    if isinstance(holder, Reference):
        holder = run.at(holder)
    if target.arrow and pointers.is_smart(holder):
        holder = pointers.pointee(holder) or holder
    if isinstance(holder, Instance):
        _set_member(run, holder, target.name, value)
    elif isinstance(holder, Opaque | Buffer | Handle):
        holder.attrs[target.name] = value
        if target.name == "data" and not run.file.is_cuda:
            weights.rebind(holder, value)
        if isinstance(holder, Buffer) and run.file.is_cuda:
            from streamlint.interpreter.effects.host import host_write

            member = Buffer(holder.storage, (*holder.part, ("i", f".{target.name}")), holder.type)
            host_write(run, member, run.node_span(target), "operator->")
    elif isinstance(holder, LibraryName) and holder.name.startswith("file:"):
        run.globals[(holder.name[5:], target.name)] = value
    elif isinstance(holder, ClassValue):
        run.globals[(holder.term, target.name)] = value


def _assign_item(run: Run, target: p.Index, value: Value, statement: p.Node) -> None:
    holder = run.evaluate(target.value)
    holder = held_memory(holder)
    if isinstance(holder, Buffer):
        _write_elements(run, holder, target, value)
        return
    indices = [items._index_value(run, index) for index in target.indices]
    key = indices[0]
    if isinstance(holder, Table):
        key = items.key_of(indices)
        holder.items[key.term] = value
        holder.keys[key.term] = key
    elif isinstance(holder, Series):
        if (
            holder.items is not None
            and isinstance(key, Const)
            and isinstance(key.value, int)
            and -len(holder.items) <= key.value < len(holder.items)
        ):
            holder.items[key.value] = value
        else:
            holder.made[key.term] = value
    elif isinstance(holder, Opaque) and isinstance(value, Buffer) and (_is_region(target) or _are_places(indices)):
        # Elements of an array that is not known: it is written where the value is.
        from streamlint.interpreter.effects import buffer_of
        from streamlint.interpreter.effects.work import compute

        whole = buffer_of(run, holder, value.type)
        compute(run, (value,), run.node_span(target), "indexing", writes=(whole,) if whole is not None else ())
    elif isinstance(holder, Opaque):
        holder.attrs[f"[{', '.join(i.term for i in indices)}]"] = value
    elif isinstance(holder, Instance):
        from streamlint.interpreter.bodies import call_method

        if run.file.is_cuda:
            element = call_method(run, holder, "operator[]", indices, run.node_span(target))
            if element is None or not _write_place(run, element, target):
                holder.attrs[f"[{key.term}]"] = value
        else:
            call_method(run, holder, "__setitem__", [key, value], run.node_span(statement))


def _is_region(target: p.Index) -> bool:
    """``a[...]``, ``a[:]``, ``a[i, j]``: only arrays are assigned so."""
    return len(target.indices) > 1 or any(
        isinstance(i, p.Slice) or (isinstance(i, p.Const) and i.value is Ellipsis) for i in target.indices
    )


def _are_places(indices: list[Value]) -> bool:
    """``a[rows]`` with a tensor of indices, which is no number that was taken out of one: what it stands for are elements of an array."""
    tensors = [i for i in indices if isinstance(i, Buffer) and i.type.startswith("torch.") and not i.storage.small]
    return any(all(axis[0] != "i" for axis in tensor.part) for tensor in tensors)


def _write_elements(run: Run, holder: Buffer, target: p.Index, value: Value) -> None:
    """``buffer[part] = value``: a copy or a fill on the device, or a host write."""
    from streamlint.interpreter.effects.host import host_write
    from streamlint.interpreter.effects.work import assign_elements

    if run.file.is_cuda:
        index = run.evaluate(target.indices[0])
        holder.attrs[f"[{index.term}]"] = value
        host_write(run, Buffer(holder.storage, (*holder.part, ("i", index.term)), holder.type), run.node_span(target), "operator[]")
        return
    if holder.leaves is not None:
        key = f"[{', '.join(items._index_value(run, i).term for i in target.indices)}]"
        holder.leaves[key] = value
        return
    if items.is_named(run, holder, target):
        return
    part, kind = items.subscript(run, target)
    view = Buffer(holder.storage, (*holder.part, *part), holder.type, holder.gapped or kind == "gapped")
    assign_elements(run, view, value, run.node_span(target))


def _assign_pointee(run: Run, pointer: Value, value: Value, target: p.Deref, statement: p.Node) -> None:
    from streamlint.interpreter.effects.host import host_write

    pointer = held_memory(pointer)
    if isinstance(pointer, Reference):
        with run.seen_from(pointer):
            assign(run, pointer.target, value, statement)
    elif isinstance(pointer, Buffer):
        run.memo[f"*{pointer.term}"] = value
        host_write(run, pointer, run.node_span(target), "operator*")
    elif isinstance(pointer, Opaque):
        pointer.attrs["[0]"] = value


def store_at(run: Run, pointer: Value, value: Value, statement: p.Node) -> None:
    """What an out-parameter does: ``*pointer = value``."""
    if isinstance(pointer, Reference):
        _assign_pointee(run, pointer, value, p.Deref(p.Unknown()), statement)
    elif isinstance(pointer, (Opaque, Buffer)):
        pointer.attrs["[0]"] = value


def unpack(run: Run, targets: tuple[p.Expression, ...], value: Value, statement: p.Node) -> None:
    """``a, *b = value``."""
    value = as_tuple(value) or value
    items_known = value.items if isinstance(value, Series) else None
    starred = next((i for i, t in enumerate(targets) if isinstance(t, p.Starred)), None)
    for index, target in enumerate(targets):
        if isinstance(target, p.Starred):
            after = len(targets) - index - 1
            rest = items_known[index : len(items_known) - after] if items_known is not None else None
            held: Value = Series(rest) if rest is not None else Series(None, element=items.element_of(run, value, "rest"))
            assign(run, target.value, held, statement)
            continue
        from_end = starred is not None and index > starred
        position = index - len(targets) if from_end else index
        if items_known is not None and -len(items_known) <= position < len(items_known):
            assign(run, target, items_known[position], statement)
        elif (same := _wrapped(run, targets, index, statement)) is not None:
            assign(run, target, same, statement)
        else:
            assign(run, target, items.element_of(run, value, str(position)), statement)


_WRAPPED = ("torch.nn.Module", "torch.optim.Optimizer")


def _wrapped(run: Run, targets: tuple[p.Expression, ...], index: int, statement: p.Node) -> Value | None:
    """``model, optimizer = engine.prepare(model, optimizer)``: a module stays a module, an optimizer an optimizer, in whatever wrapper."""
    if not isinstance(statement, p.Assign) or not isinstance(statement.value, p.Call):
        return None
    given = [arg.value for arg in statement.value.args if arg.keyword is None and not arg.stars]
    if [lvalue(target) for target in targets] != [lvalue(value) for value in given] or None in map(lvalue, given):
        return None
    held = run.evaluate(given[index])
    known = isinstance(held, Handle) and any(kind in _WRAPPED for kind in run.file.models.lineage(held.type))
    return held if known else None


def augmented(run: Run, node: p.Node, target: p.Expression, op: str, value: Value) -> Value:
    """``target op= value``; tensors are changed in place."""
    from streamlint.interpreter.arithmetic import combine
    from streamlint.interpreter.effects.work import in_place

    old = run.evaluate(target)
    if isinstance(old, Buffer) and not run.file.is_cuda and not is_address(old):
        in_place(run, old, value, run.node_span(node), f"{op}=")
        return old
    if isinstance(old, Series) and op == "+" and isinstance(value, Series) and _is_extended(old, value):
        return old
    result = combine(run, node, op, old, value)
    assign(run, target, result, node)
    return result


def _is_extended(old: Series, more: Series) -> bool:
    """Extend a list in place; False where it is none."""
    if old.items is not None and more.items is not None:
        old.items.extend(more.items)
    elif old.kind != "list":
        return False
    elif old.items is not None:
        old.name = "open"  # and nothing tells by how many
    else:
        for item in list(more.all()):
            put_somewhere(old, item)
    return True
