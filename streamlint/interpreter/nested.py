"""Modules that hold modules: a chain (``nn.Sequential``), which calls one after the other, and a list (``nn.ModuleList``)."""

from __future__ import annotations

from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Handle, Instance, Series, Value

_KEY = "(modules)"
MOST_CALLED = 8


def hold(module: Handle, given: list[Value], how: str) -> None:
    """Keep what a container of modules is made of, as far as it is known."""
    if how == "chain":
        module.attrs[_KEY] = Series(list(given), kind="chain")
    elif not given:
        module.attrs[_KEY] = Series([], kind="list")
    elif isinstance(given[0], Series):
        old = given[0]
        module.attrs[_KEY] = Series(list(old.items) if old.items is not None else None, dict(old.made), old.element, old.name, "list")


def listed(value: Value) -> Value:
    """The list that a container of modules stands for where it is iterated or indexed; any other value as it is."""
    held = value.attrs.get(_KEY) if isinstance(value, Handle) else None
    return held if held is not None else value


def chained(run: Run, value: Handle) -> list[Value]:
    """What a chain calls one after the other, where one of them is of a class at hand; else nothing, for it is like any layer."""
    held = value.attrs.get(_KEY)
    if not isinstance(held, Series) or held.kind != "chain" or run.file.is_cuda:
        return []
    modules = held.items or []
    known = all(isinstance(module, Handle | Instance) for module in modules)
    return modules if known and len(modules) <= MOST_CALLED and any(map(_at_hand, modules)) else []


def _at_hand(module: Value) -> bool:
    """Whether a module is of a class at hand, or a chain with one in it."""
    if isinstance(module, Instance):
        return True
    held = module.attrs.get(_KEY) if isinstance(module, Handle) else None
    return isinstance(held, Series) and held.kind == "chain" and any(map(_at_hand, held.items or []))
