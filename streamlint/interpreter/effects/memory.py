"""Allocations that go to the driver, page-locking, and what gives memory back."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import operations as ops
from streamlint.findings import Span, Step
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.sizes import is_small
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Const, ScopeValue, Stream, Value
from streamlint.operations import Evidence, Memory

_WORDS = {
    Memory.DEVICE: "allocated on the device here",
    Memory.PINNED: "allocated in pinned host memory here",
    Memory.PAGEABLE: "allocated in pageable host memory here",
    Memory.MANAGED: "allocated in managed memory here",
}


def made_here(call: Call, memory: Memory) -> Step:
    return Step(_WORDS.get(memory, "allocated here"), call.span)


def is_raw(call: Call) -> bool:
    """Whether a buffer comes from the driver each time: a library without a pool, or one whose pool was switched off."""
    return call.run.file.settings.get(call.library, call.flag("raw"))


def _alloc(call: Call) -> Value:
    run = call.run
    memory = Memory(call.text("memory", "device"))
    size = call.value("bytes")
    nbytes = size.value if isinstance(size, Const) and isinstance(size.value, int) else None
    ordered = call.row.get("stream") is not None
    storage = run.storage(
        memory, f"{call.name}{run.visit_key(call.site.node)}", nbytes=nbytes, evidence=Evidence.LITERAL, library=call.library
    )
    storage.small = is_small(nbytes)
    storage.extent = size.term if size is not None else ""
    storage.device = run.device if memory is Memory.DEVICE else None
    storage.raw = not ordered and memory is not Memory.PAGEABLE
    storage.trail = (made_here(call, memory),)
    buffer = Buffer(storage)
    if memory is not Memory.PAGEABLE:
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=memory, nbytes=nbytes, cached=ordered, buffer=buffer))
    storage.raw = call.flag("owned")  # else freed by hand, not by a last reference
    return call.store(buffer)


def _free(call: Call) -> Value:
    buffer = buffer_of(call.run, call.value("of"))
    free(
        call.run,
        buffer,
        Memory(call.text("memory", "device")),
        call.span,
        call.name,
        call.library,
        ordered=call.row.get("stream") is not None,
        stream=stream_argument(call) if call.row.get("stream") is not None else None,
    )
    return call.status()


def free(
    run: Run,
    buffer: Buffer | None,
    memory: Memory,
    span: Span,
    name: str,
    library: str = "",
    ordered: bool = False,
    stream: Stream | None = None,
) -> None:
    """Memory goes back to the driver, to a pool in the order of ``stream``, or (pageable) to the host's heap."""
    run.machine.free(ops.Free(span, library, name, memory=memory, cached=ordered, stream=stream, buffer=buffer))


def _register(call: Call) -> Value:
    buffer = buffer_of(call.run, call.value("of"), "numpy.ndarray")
    if call.library == "numba" and buffer is not None:
        return ScopeValue(buffer=buffer, kind="pinned")
    if buffer is not None:
        register(call.run, buffer, call.span, call.name)
    return call.status()


def register(run: Run, buffer: Buffer, span: Span, name: str) -> None:
    """Page-lock memory at hand."""
    buffer.storage.trail = (*buffer.storage.trail, Step("page-locked here", span))
    run.machine.register(ops.Register(span, buffer.storage.library, name, buffer=buffer))


def _unregister(call: Call) -> Value:
    buffer = buffer_of(call.run, call.value("of"))
    if buffer is not None:
        unregister(call.run, buffer, call.span, call.name)
    return call.status()


def unregister(run: Run, buffer: Buffer, span: Span, name: str) -> None:
    run.machine.free(ops.Free(span, buffer.storage.library, name, memory=Memory.PINNED, buffer=buffer, kind="unregister"))
    buffer.storage.freed = False
    buffer.storage.memory = Memory.PAGEABLE


def _trim(call: Call) -> Value:
    call.run.machine.free(ops.Free(call.span, call.library, call.name, memory=Memory.DEVICE, kind="trim"))
    return Const(None)


def _collect(call: Call) -> Value:
    call.run.machine.free(ops.Free(call.span, call.library, call.name, memory=Memory.PAGEABLE, kind="collect"))
    return Const(None)


def _memset(call: Call) -> Value:
    buffer = buffer_of(call.run, call.value("dst"))
    if buffer is not None and buffer.storage.memory is Memory.UNKNOWN:
        buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.DERIVED
    writes = (buffer,) if buffer is not None else ()
    stream = stream_argument(call)
    call.run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream, writes=writes, kind="memset"))
    call.run.coverage.launches[(call.span, call.name)] = stream is not None
    return call.status()


def _record_use(call: Call) -> Value:
    buffer = buffer_of(call.run, call.value("of"))
    if buffer is not None and buffer.storage.memory is Memory.UNKNOWN and not buffer.storage.host:
        buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.DERIVED
    stream = stream_argument(call)
    if buffer is not None and stream is not None and stream.key == call.run.stream_of("torch").key:
        call.run.lent[id(buffer.storage)] = buffer.storage
    return Const(None)


def _setting(call: Call) -> Value:
    """What a setting changes is read off the whole file (``File.settings``); but the current device changes here."""
    if call.text("what") == "device":
        number = call.value("value")
        call.run.device = number.value if isinstance(number, Const) and isinstance(number.value, int) else None
    return call.status()


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "alloc": _alloc,
    "free": _free,
    "register": _register,
    "unregister": _unregister,
    "trim": _trim,
    "collect": _collect,
    "memset": _memset,
    "record_use": _record_use,
    "setting": _setting,
}
