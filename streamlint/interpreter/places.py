"""C++ places: an element that is handed out by reference is read, written or pointed to where it is used, not where it is named."""

from __future__ import annotations

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.cpp_types import class_of
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Opaque, Series, Value

ELEMENT = "element"


def held_memory(value: Value) -> Value:
    """What a smart pointer or a value that turned out to be memory points to; else the value."""
    target = pointers.pointee(value) if pointers.is_smart(value) else None
    if target is not None:
        value = target
    return value.buffer if isinstance(value, Opaque) and value.buffer is not None else value


def returned(run: Run, node: p.Expression) -> Value:
    """What a ``return`` gives back: of a function that returns a reference the place, not what stands there."""
    function = run.frame.function
    gives_place = run.file.is_cuda and function is not None and function.returns is not None and function.returns.reference
    if not gives_place or not isinstance(node, p.Index | p.Deref):
        value = run.evaluate(node)
        return _made_of_list(run, value, function.returns) if function is not None and function.returns is not None else value
    from streamlint.interpreter import items

    holder = held_memory(run.evaluate(node.value))
    if not isinstance(holder, Buffer) or not (holder.storage.on_host or holder.storage.writes):
        return items.dereference(run, holder, node) if isinstance(node, p.Deref) else items.get_item(run, holder, node)
    term = run.evaluate(node.indices[0]).term if isinstance(node, p.Index) else "0"
    held = holder.attrs.get(f"[{term}]")
    if held is not None and not isinstance(held, Opaque):
        return held
    return Buffer(holder.storage, (*holder.part, ("i", term)), ELEMENT)


def _made_of_list(run: Run, value: Value, kind: p.Type) -> Value:
    """``return {a, b};``: an object of a class at hand."""
    if not run.file.is_cuda or not isinstance(value, Series) or kind.pointers or kind.reference:
        return value
    from streamlint.interpreter.declarations import converted

    kind = run.file.resolve_type(kind)
    return converted(run, value, kind, kind.name) if class_of(run, kind) is not None else value


def is_place(value: Value | None) -> bool:
    """Whether a value is an element that nobody has looked at yet."""
    return isinstance(value, Buffer) and value.type == ELEMENT


def looked_at(run: Run, value: Value, span: Span, name: str) -> Value:
    """A value that is used: of an element that was handed out, what stands there is read now."""
    if not isinstance(value, Buffer) or value.type != ELEMENT:
        return value
    from streamlint.interpreter.effects.host import host_read

    if value.storage.on_host or value.storage.writes:
        host_read(run, value, span, name)
    return run.remembered(f"{value.storage.name}{value.part}", lambda: run.opaque(f"{value.storage.name}{value.part}"))


def pointer_to(value: Buffer) -> Buffer:
    """``&element``: a pointer into the same memory; the first element is where it begins."""
    *outer, last = value.part or (("i", "0"),)
    rest = () if last == ("i", "0") else (("s", last[1], "?"),)
    return Buffer(value.storage, (*outer, *rest), "pointer")
