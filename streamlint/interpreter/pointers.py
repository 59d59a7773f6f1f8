"""Smart pointers (C++): who owns what they point to, and the deleter that ends it."""

from __future__ import annotations

from streamlint.findings import Span
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.cpp_types import class_of
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, ClassValue, Const, FunctionValue, Handle, Instance, LibraryName, Opaque, Value
from streamlint.program import Type
from streamlint.record import replace

SMART = ("std::unique_ptr", "std::shared_ptr", "unique_ptr", "shared_ptr", "std::weak_ptr", "c10::intrusive_ptr")
_POINTEE, _DELETER, _UNSET = "(pointee)", "(deleter)", "(unset)"


def make(run: Run, kind: Type, values: list[Value]) -> Handle:
    """``std::shared_ptr<T>(p, deleter)``, ``std::unique_ptr<T, Deleter>(p)``."""
    handle = Handle(kind.name, run.machine.fresh("pointer"))
    if values:
        target = values[0]
        if is_smart(target):
            return target  # type: ignore[return-value]
        if isinstance(target, Instance):
            target.shared = True
        handle.attrs[_POINTEE] = target
    deleter = values[1] if len(values) > 1 else _deleter_type(run, kind)
    if deleter is not None:
        handle.attrs[_DELETER] = deleter
    return handle


def unset(run: Run, kind: Type, name: str) -> Handle:
    """A smart pointer without an initialiser: somebody else may set it, so that what it points to is not known to be nothing."""
    handle = make(run, kind, [])
    handle.attrs[_UNSET] = empty = run.opaque(f"empty:{name}")
    empty.cpp_type = replace(kind.args[0], pointers=kind.args[0].pointers + 1) if kind.args else None
    return handle


def set_elsewhere(value: Handle) -> Type | None:
    """What an unset pointer points to, where nobody has touched it yet: by its type."""
    empty = value.attrs.get(_UNSET)
    return empty.cpp_type if isinstance(empty, Opaque) and not empty.attrs and empty.buffer is None else None


def _deleter_type(run: Run, kind: Type) -> Value | None:
    if len(kind.args) < 2:
        return None
    found = class_of(run, run.file.resolve_type(kind.args[1]))
    return Instance(found.definition, found.file) if found is not None else None


def is_smart(value: Value | None) -> bool:
    return isinstance(value, Handle) and value.type in SMART


def pointee(value: Value) -> Value | None:
    """What a smart pointer points to."""
    if not isinstance(value, Handle):
        return None
    return value.attrs.get(_POINTEE) or value.attrs.get(_UNSET)


def point(value: Handle, target: Value | None) -> None:
    """Give a smart pointer what it points to from now on; None: nothing."""
    value.attrs.pop(_UNSET, None)
    value.attrs.pop(_POINTEE, None)
    if target is not None:
        value.attrs[_POINTEE] = target


def moved(value: Handle) -> Handle:
    """``std::move(p)``: a new owner; the old one points to nothing."""
    owner = replace(value, attrs=dict(value.attrs))
    point(value, None)
    return owner


def is_lent(value: Handle) -> bool:
    """Whether whoever handed over what a shared pointer points to owns it as well."""
    target = value.attrs.get(_POINTEE)
    return value.type.endswith("shared_ptr") and isinstance(target, Instance) and target.foreign


def end(run: Run, value: Handle, span: Span | None) -> None:
    """The last owner is gone: the deleter runs, or what is pointed to is destroyed."""
    from streamlint.interpreter.calls import invoke
    from streamlint.interpreter.lifetimes import destroy
    from streamlint.program import Unknown

    target = value.attrs.pop(_POINTEE, None)
    if target is None:
        return
    deleter = value.attrs.get(_DELETER)
    place = span or Span(run.file.path, 0, 0, 0, 0)
    if isinstance(deleter, Instance | FunctionValue | LibraryName | ClassValue):
        invoke(run, deleter, Arguments([target]), CallSite(Unknown(), place, "deleter"))
        return
    if isinstance(target, Instance):
        target.shared = False
    if not isinstance(target, Buffer | Const):
        destroy(run, target, span)
