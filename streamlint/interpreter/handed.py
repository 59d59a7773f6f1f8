"""What comes from out of view with work behind it: arguments that a caller's stream may still be writing, results of opaque calls.

Such a value has the work that made it as ``made``. It counts once the value turns out to be memory of a device.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.captures import Session
from streamlint.interpreter.extension import TENSORS
from streamlint.interpreter.reach import contents
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Access, Buffer, Opaque, Series, Storage, Value
from streamlint.operations import Evidence, Memory

# Nobody has put work on a stream before a program's own beginning.
_BEGINNINGS = frozenset({"main", "__init__"})


def enter(run: Run, name: str, span: Span, values: list[Value]) -> None:
    """A body is entered from out of view: its arguments were made behind the caller's work on the current stream."""
    if name in _BEGINNINGS or run.machine.captures.active:
        return
    made = run.machine.enter(ops.Entry(span, "torch", "entry", stream=run.stream_of("torch")))
    if made is None:
        return
    for value in values:
        for inner in (value, *contents(value)) if isinstance(value, Series) else (value,):
            mark(inner, made)


def mark(value: Value, made: Access | None) -> None:
    """If the value is memory of a device, this work wrote it."""
    if isinstance(value, Opaque) and value.made is None:
        value.made = made
    elif isinstance(value, Buffer) and value.storage.made is None and not value.storage.on_host:
        value.storage.made = made


def on_side_stream(run: Run) -> bool:
    """Whether PyTorch's current stream is one that code in view made, or was handed, and chose."""
    return run.stream_of("torch").kind in ("created", "parameter")


def from_outside(values: Iterable[Value], depth: int = 2) -> bool:
    """Whether any of the values was handed over by code out of view, or is computed from such."""
    for value in values:
        if isinstance(value, Buffer) and (value.storage.made is not None or value.storage.handed):
            return True
        if isinstance(value, Opaque) and value.made is not None and not value.type:
            return True
        if isinstance(value, Series) and depth and from_outside(contents(value), depth - 1):
            return True
    return False


def computed_from(run: Run, result: Value, values: Iterable[Value], span: Span, name: str) -> None:
    """What code of unknown effect gives for what was handed over is written on the current stream, if it is memory of a device."""
    if isinstance(result, Opaque) and not result.type and run.file.tensor_type == "torch.Tensor" and from_outside(values):
        stream = run.stream_of("torch")
        result.made = run.machine.presume_work(ops.Launch(span, "torch", name, stream=stream, kind="compute", assumed=True), stream)


def works_in_fork(run: Run, values: Iterable[Value], span: Span, name: str) -> None:
    """What was handed over is worked on. In the scope of a stream that was forked from a capture of PyTorch's it is captured there."""
    session = _capture(run)
    if session is None:
        return
    stream = run.stream_of("torch")
    if stream.key != session.origin.key and from_outside(values):
        run.machine.launch(ops.Launch(span, "torch", name, stream=stream, kind="compute", assumed=True))


def note_result(run: Run, result: Value) -> None:
    """A value from out of view, a module as a rule, was called with something: it is noted while PyTorch captures."""
    session = _capture(run)
    if session is not None:
        session.results.append(result)


def _capture(run: Run) -> Session | None:
    """The capture of PyTorch's that its current stream is in."""
    captures = run.machine.captures
    session = captures.of(run.stream_of("torch")) if captures.active else None
    return session if session is not None and session.library == "torch" else None


def captured(run: Run, value: Value) -> Buffer | None:
    """A tensor that was computed in a capture from what a module gave there is on the device: nothing else can be captured."""
    session = _capture(run)
    if session is None or not session.results:
        return None
    stack = [value]
    for _ in range(_MOST_BETWEEN):
        if not stack:
            return None
        found = stack.pop(0)
        if any(found is result for result in session.results):
            return Buffer(Storage(Memory.DEVICE, "captured", evidence=Evidence.SCOPE, library="torch"), type="torch.Tensor")
        stack.extend(found.reach if isinstance(found, Opaque) else ())
    return None


_MOST_BETWEEN = 20  # values that a tensor was computed from


def presumed(run: Run, value: Value) -> Buffer | None:
    """A value from out of view, or computed from such, that is worked on in an explicit stream's scope: taken as memory of a device."""
    if not on_side_stream(run) or not isinstance(value, Opaque | Buffer):
        return None
    if isinstance(value, Opaque) and (value.made is None or value.type):
        return None
    from streamlint.interpreter.effects import buffer_of

    buffer = buffer_of(run, value)
    if buffer is None or buffer.storage.host or not (buffer.type.startswith("torch.") or buffer.type in TENSORS):
        return None
    handed = buffer.storage.handed or (run.file.is_cuda and buffer.storage.owner == "caller")
    if buffer.storage.made is None and not handed:
        return None
    if buffer.storage.memory is Memory.UNKNOWN:
        buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.SCOPE
    return buffer if buffer.storage.on_device else None


def passed_at(run: Run, storage: Storage) -> Span | None:
    """The call by which a caller that has some memory passed it to the code in progress; None if this code got it by itself."""
    made_in, calls = storage.made_in, run.context.calls
    if made_in is None:
        return None
    if len(made_in) < len(calls) and calls[: len(made_in)] == made_in:
        return calls[len(made_in)]
    found = None
    for frame in reversed(run.frames):
        params = frame.function.params if frame.function is not None else ()
        held = (frame.environment.names.get(param.name) for param in params)
        if not any(isinstance(value, Buffer) and value.storage is storage for value in held):
            break
        found = frame.call
    return found
