"""Queues and pipes between processes: what goes in is pickled, device memory as a handle and an event; what comes out was another's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamlint.findings import Step
from streamlint.interpreter.beside import found_empty, hand_over, taken, wake
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.host import read_values
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Const, Event, Handle, Series, Storage, Table, Value
from streamlint.operations import Evidence, Memory

_FROM = "received:"  # in the name of a value that nobody in view has sent


def _put(call: Call) -> Value:
    """The value is read, and whoever takes it gets one like it."""
    run, value = call.run, call.value("of")
    if not isinstance(call.receiver, Handle) or value is None or call.flag("local"):
        if isinstance(call.receiver, Handle) and value is not None:
            hand_over(run, call.receiver.key, value)
        result = opaque_call(run, call.name, call.receiver, call.arguments, call.site)
        if isinstance(call.receiver, Handle) and value is not None:
            _keep(run, call.receiver.key, value)
        return result
    read_values(run, (value,), call.span, call.name, wait=False)
    channel = _end(call.receiver, "sends")
    _keep(run, channel, value)
    return Const(None)


def _keep(run: Run, channel: str, value: Value) -> None:
    """Who gets from the channel gets a value of this shape; who found it empty goes on."""
    held = run.remembered(f"channel:{channel}", lambda: Series([], name=channel))
    if isinstance(held, Series) and held.items is not None:
        held.items.append(value)
    if any(True for _ in _device_memory(value)):
        wake(run, channel)


def _device_memory(value: Value) -> Iterator[Buffer]:
    for inner in reachable([value], limit=40):
        if isinstance(inner, Buffer) and inner.storage.on_device:
            yield inner


def _pinned_memory(value: Value) -> Iterator[Buffer]:
    for inner in reachable([value], limit=40):
        if isinstance(inner, Buffer) and inner.storage.memory is Memory.PINNED:
            yield inner


def _get(call: Call) -> Value:
    run = call.run
    if not isinstance(call.receiver, Handle):
        return opaque_call(run, call.name, call.receiver, call.arguments, call.site)
    local = call.flag("local")
    channel = _end(call.receiver, "receives")
    key = run.visit_key(call.site.node)
    given = taken(run, channel) if local else None
    if given is not None:
        return given
    held = run.memo.get(f"channel:{channel}")
    sent = list(held.items or ()) if isinstance(held, Series) else []
    shown = next((value for value in sent if any(True for _ in _device_memory(value))), None)
    if shown is None and local:
        shown = next((value for value in sent if any(True for _ in _pinned_memory(value))), None)
    if shown is None:
        found_empty(run, channel)
    if local:
        result = opaque_call(run, call.name, call.receiver, call.arguments, call.site)
        return result if shown is None else _arrived(run, shown, "", key, Step("received from a queue here", call.span))
    if shown is None:
        return run.opaque(f"{_FROM}{channel}{key}")
    return _arrived(run, shown, channel, key, Step("received from another process here", call.span))


def _arrived(run: Run, value: Value, channel: str, key: str, step: Step) -> Value:
    """A value of the shape of what was sent; between processes, device memory that belongs to another one."""
    if isinstance(value, Buffer) and value.storage.on_device:
        evidence = Evidence(max(value.storage.evidence, Evidence.DERIVED))
        storage = Storage(Memory.DEVICE, f"received{key}", evidence=evidence, trail=(step,), library=value.storage.library)
        storage.owner = f"{_FROM}{channel}" if channel else ""
        return Buffer(storage, type=value.type)
    if isinstance(value, Buffer) and value.storage.memory is Memory.PINNED and not channel:
        pinned = Storage(
            Memory.PINNED, f"received{key}", nbytes=value.storage.nbytes, trail=value.storage.trail, library=value.storage.library
        )
        return Buffer(pinned, type=value.type)
    if isinstance(value, Event) and not channel:
        return run.new_event(value.type, True, step)
    if isinstance(value, Series) and value.items is not None:
        return Series([_arrived(run, v, channel, f"{key}[{n}]", step) for n, v in enumerate(value.items)], kind=value.kind)
    if isinstance(value, Table):
        items = {term: _arrived(run, v, channel, f"{key}[{term}]", step) for term, v in value.items.items()}
        return Table(items, dict(value.keys), value.complete)
    return run.opaque(f"sent{key}")


def _end(handle: Handle, which: str) -> str:
    """The channel of a queue, or of one direction of a pipe."""
    end = handle.args.get(which)
    return str(end.value) if isinstance(end, Const) else handle.key


def _pipe(call: Call) -> Value:
    key = call.run.machine.fresh("pipe")
    ends: list[Value] = []
    for sends, receives in ((">", "<"), ("<", ">")):
        end = Handle(call.text("type"), f"{key}{sends}", trail=(Step("created here", call.span),))
        end.args = {"sends": Const(f"{key}{sends}"), "receives": Const(f"{key}{receives}")}
        ends.append(end)
    return Series(ends, kind="tuple")


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "put": _put,
    "get": _get,
    "pipe": _pipe,
}
