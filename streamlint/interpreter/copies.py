"""C++: one of several values that were made alike: what it knows of itself is the same, its memory and its streams are its own."""

from __future__ import annotations

from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Instance, Opaque, Stream, Value
from streamlint.operations import Memory
from streamlint.record import replace

_DEEPEST = 3


def alike(run: Run, value: Value | None, name: str, depth: int = _DEEPEST) -> Value:
    """A value of which only its likeness is known: another element of the same container."""
    if value is None:
        return run.opaque(f"uninitialised:{name}")
    if isinstance(value, Buffer):
        host = value.storage.on_host or value.storage.memory is Memory.UNKNOWN or value.storage.owner == "caller"
        return Buffer(replace(value.storage, name=name, writes=[], reads=[]), type=value.type) if host else value
    if isinstance(value, Opaque):
        return Opaque(f"{value.name}:{name}", type=value.type, cpp_type=value.cpp_type, parameter=value.parameter)
    if isinstance(value, Stream) and value.kind not in ("null", "ambient", "ptds", "created"):
        return replace(value, key=f"{value.key}:{name}")
    if isinstance(value, Instance) and value.file.is_cuda and depth:
        made = Instance(value.definition, value.file, foreign=value.foreign, name=name, types=value.types)
        made.shared = value.shared
        made.attrs = {key: alike(run, held, f"{name}.{key}", depth - 1) for key, held in value.attrs.items()}
        return made
    return value
