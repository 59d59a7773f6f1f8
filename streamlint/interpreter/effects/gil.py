"""Python's GIL: guards and calls that let it go or take it. What is bound to Python is run as roots of its own (``bindings.py``)."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.interpreter.effects import Call
from streamlint.interpreter.gil import GUARD
from streamlint.interpreter.values import Const, Handle, Opaque, Value


def _gil(call: Call) -> Value:
    gil, part = call.run.machine.gil, call.text("part")
    {"drop": gil.let_go, "take": gil.take, "back": gil.back}[part]()
    if not call.flag("scope"):
        return call.opaque()
    guard = Handle(call.text("type", call.name), call.run.machine.fresh("guard"))
    guard.attrs[GUARD] = Const(part)
    return guard


def _bind(call: Call) -> Value:
    return call.receiver or Opaque(call.name)


EFFECTS: dict[str, Callable[[Call], Value]] = {"gil": _gil, "bind": _bind}
