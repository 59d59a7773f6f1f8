"""C++ that Python loads, and the arguments that the C API hands over."""

from __future__ import annotations

import os
from collections.abc import Callable

from streamlint import program as p
from streamlint.interpreter.assignment import store_at
from streamlint.interpreter.crossing import extension
from streamlint.interpreter.effects import Call
from streamlint.interpreter.values import Buffer, Const, Opaque, Series, Value
from streamlint.record import replace

_SOURCES = (".cpp", ".cc", ".cxx", ".cu", ".c")


def _extension(call: Call) -> Value:
    part = call.text("part")
    if part == "memory":
        return _address(call)
    if part == "inline":
        return extension(f"inline:{call.run.file.path}")
    if part == "source":
        texts = [n.value for n in p.walk(call.site.node) if isinstance(n, p.Const) and isinstance(n.value, str)]
        sources = sorted({os.path.basename(text) for text in texts if text.endswith(_SOURCES)})
        return extension(f"source:{','.join(name.replace('.', '/') for name in sources)}")
    return extension(f"{part}:")


def _address(call: Call) -> Value:
    """``ffi.from_buffer("float[]", array)``: a pointer to what the array holds."""
    held = next((v for v in call.arguments.all() if isinstance(v, Buffer)), None)
    return replace(held, type="pointer", attrs={}) if held is not None else call.opaque(*call.arguments.all())


def _unpack(call: Call) -> Value:
    given = call.value("of")
    held = given.items if isinstance(given, Series) and given.items is not None else []
    for index, target in enumerate(call.arguments.positional[int(call.text("from", "2")) :]):
        value = held[index] if index < len(held) else Opaque(f"{call.name}:{index}{call.run.visit_key(call.site.node)}")
        store_at(call.run, target, value, call.site.node)
    return Const(True)


def _operator(call: Call) -> Value:
    return call.receiver or Opaque(call.name)


EFFECTS: dict[str, Callable[[Call], Value]] = {"extension": _extension, "unpack": _unpack, "operator": _operator}
