"""Streams, events, waits, and the binding of handles to streams."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from streamlint import operations as ops
from streamlint.findings import Step
from streamlint.interpreter.effects import Call, own_stream
from streamlint.interpreter.effects.handles import BOUND, handle_stream
from streamlint.interpreter.lifetimes import BEFORE, SWITCHED
from streamlint.interpreter.queries import answer
from streamlint.interpreter.run import STREAM_TYPES, Run, family
from streamlint.interpreter.unknowns import truth
from streamlint.interpreter.values import (
    Const,
    Device,
    Event,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Reference,
    ScopeValue,
    Series,
    Stream,
    Value,
)
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.record import replace

T = TypeVar("T")

NO_WAIT = "no-wait"  # how a stream was chosen: by a policy that leaves the host alone


def as_stream(call: Call, value: Value | None, how: str = "literal") -> Stream | None:
    """A value used as a stream: 0 and None are the null stream, chosen here or where the value came from."""
    run = call.run
    if isinstance(value, Reference):
        value = run.at(value)
    if isinstance(value, Stream):
        if value.kind == "null" and value.chosen is None:
            return replace(value, chosen=call.span, how=value.how or "given")
        return value
    if isinstance(value, Const) and (value.value is None or value.value == 0):
        return Stream("null", "null", None, call.library, chosen=value.origin or call.span, how=how)
    if isinstance(value, Const) and value.value in (1, 2):
        return (
            Stream("null", "null", None, call.library, chosen=call.span, how=how)
            if value.value == 1
            else Stream("ptds", "ptds", True, call.library)
        )
    if isinstance(value, Handle):
        return value.stream or foreign_stream(run, value, value.key)
    if isinstance(value, Instance):
        return _stream_member(run, value)
    if isinstance(value, Opaque):
        library = "torch" if not run.file.is_cuda and family(call.library) == "torch" else ""
        return _config_stream(call, value) or foreign_stream(run, value, holder_of(value.term), library)
    return None


_ADDRESS = re.compile(r"\.(?:cuda_stream|ptr|handle|value)\Z")


def holder_of(term: str) -> str:
    """A stream from out of view is the same one as its address: ``stream.cuda_stream``, ``stream.ptr``."""
    return _ADDRESS.sub("", term)


def _config_stream(call: Call, config: Opaque) -> Stream | None:
    """``cudaLaunchConfig_t``: its field ``stream``; null in a config of this function that was never given one."""
    kind = config.type or (config.cpp_type.name if config.cpp_type is not None else "")
    row = call.run.file.models.type_named(kind.rpartition("::")[2]) if kind else None
    name = next((name for name in ("stream", "hStream") if row is not None and name in row.fields), "")
    if not name:
        return None
    if name in config.attrs:
        return as_stream(call, config.attrs[name], "literal")
    local = config.name.startswith("uninitialised:") and "." not in config.name and ":" not in config.name.partition(":")[2]
    return Stream("null", "null", None, call.library, chosen=call.span, how="omitted") if local else None


def _stream_member(run: Run, value: Instance) -> Stream:
    """A project's stream wrapper: the stream that it holds, if it holds one."""
    return _only(value, Stream) or foreign_stream(run, value, value.term)


def _only(wrapper: Instance, kind: type[T]) -> T | None:
    """What a project's wrapper stands for: the one value of a kind that it holds."""
    held = [v for v in wrapper.attrs.values() if isinstance(v, kind)]
    return held[0] if len(held) == 1 else None


def blocking_of(library: str) -> bool | None:
    """PyTorch makes its streams non-blocking, all but the default one (CUDAStream.cpp)."""
    return False if library == "torch" else None


def foreign_stream(run: Run, value: Value, term: str, library: str = "") -> Stream:
    """A stream from out of view: equal for equal terms, different from all others."""
    kind = "parameter" if isinstance(value, Opaque) and value.parameter else "foreign"
    # Two calls of a getter out of view may give one stream.
    how = "given by a call" if run.file.is_cuda and kind == "foreign" and term.startswith("result") else ""
    made = run.remembered(
        f"stream:{term}",
        lambda: Stream(f"opaque:{term}", kind, blocking_of(library), library, _stream_type(library) if library else "", how=how),
    )
    assert isinstance(made, Stream)
    if isinstance(value, Opaque):
        value.attrs["(stream)"] = made  # whoever reaches the value reaches the stream
    return made


def stream_argument(call: Call, name: str = "stream", default: str = "current") -> Stream | None:
    """The stream that a row's ``stream`` field names; None where it cannot be known."""
    field = call.row.get(name, default)
    if isinstance(field, Selector):
        if field.kind == "all":
            return _stream_among(call, field)
        value = call.given(field)
        if value is None:
            if call.arguments.open:
                return None
            given = next((v for v in reversed(call.arguments.positional) if isinstance(v, Stream)), None)
            if given is not None and call.run.file.is_cuda:
                return given  # an overload that takes it elsewhere
            return named_stream(call, field.default or "current", omitted=True)
        if isinstance(value, Const) and value.value is None and not call.run.file.is_cuda:
            # Python: stream=None means what leaving it out means.
            return named_stream(call, field.default or "current", omitted=True)
        return as_stream(call, value)
    return named_stream(call, str(field), omitted=True)


def _stream_among(call: Call, field: Selector) -> Stream | None:
    values = call.arguments.all()
    found = [v for v in values if isinstance(v, Stream)]
    if found:
        return as_stream(call, found[-1])
    typed = [v for v in values if isinstance(v, Opaque) and "tream" in v.type]
    if typed:
        return as_stream(call, typed[-1])
    if any(_may_be_stream(v) for v in values[3:]):
        return None
    return named_stream(call, field.default or "null", omitted=True)


def _may_be_stream(value: Value) -> bool:
    """Whether an unknown value could be a stream: not where its type or its making says that it is a number or a pointer."""
    if not isinstance(value, Opaque) or value.type or value.buffer is not None:
        return False
    if value.cpp_type is not None:
        return value.cpp_type.name in ("auto", "cudaStream_t") and not value.cpp_type.pointers
    return not value.name.startswith(("(", "-", "~", "sizeof", "not "))


def named_stream(call: Call, word: str, omitted: bool = False) -> Stream | None:
    """``null``, ``current``, ``handle``, ``ptds``."""
    run = call.run
    if word == "null":
        return Stream("null", "null", None, call.library, chosen=call.span, how="omitted" if omitted else "literal")
    if word == "own":
        return own_stream(call) or named_stream(call, "null", omitted)
    if word == "ptds":
        return Stream("ptds", "ptds", True, call.library)
    if word == "handle":
        return handle_stream(call)
    if word == "current":
        stream = run.stream_of(family(call.library))
        if stream.kind == "null" and stream.chosen is None:
            return replace(stream, chosen=call.span, how="omitted")
        return stream
    return None


def stream_of_row(run: Run, row: Row, values: list[Value]) -> Value:
    """A stream that exists already, as a row or an attribute names it."""
    which = str(row.get("which", "current"))
    library = family(str(row.get("library") or row.library))
    if which == "current":
        return run.stream_of(library)
    if which in ("default", "null"):
        made = run.remembered(
            f"default:{library}", lambda: Stream("null", "null", None, library, type=_stream_type(library), how="literal")
        )
        assert isinstance(made, Stream)
        return made
    if which == "ptds":
        return Stream("ptds", "ptds", True, library)
    if which == "attribute":
        return values[0] if values and isinstance(values[0], Stream) else run.opaque(f"{values[0].term if values else ''}.stream")
    if which == "pool":
        return Stream(run.machine.fresh("pool"), "created", False, library, type=_stream_type(library))
    if values and run.file.is_cuda and isinstance(values[0], Instance):
        values = [_stream_member(run, values[0])]  # a project's wrapper, which becomes the stream that it holds
    if values and isinstance(values[0], Stream):
        return replace(values[0], type=_stream_type(library), library=library)  # the same stream under another library's type
    if values and isinstance(values[0], Const) and values[0].value in (0, None):
        return Stream("null", "null", None, library, _stream_type(library))
    return foreign_stream(run, values[0], values[0].term, library) if values else run.opaque("stream")


def _stream_type(library: str) -> str:
    return STREAM_TYPES.get(library, "cudaStream_t")


def _stream_of(call: Call) -> Value:
    source = call.value("from")
    found = stream_of_row(call.run, call.row, [source] if source is not None else [call.receiver] if call.receiver is not None else [])
    if isinstance(found, Stream) and call.text("which") == "external" and found.library != call.library and not call.run.file.is_cuda:
        # One stream as another library's object: its methods and its scope are that library's.
        found = replace(found, library=call.library, type=_stream_type(call.library))
    if call.text("which") == "default" and isinstance(found, Stream) and call.run.file.is_cuda:
        found = replace(found, trail=(Step("default stream requested here", call.span),))
    if call.flag("no_wait") and isinstance(found, Stream):
        found = replace(found, how=NO_WAIT)
    return call.store(found) if call.row.get("into") is not None else found


def _create_stream(call: Call) -> Value:
    run = call.run
    blocking: bool | None = call.switch("blocking") if call.row.get("blocking") is not None else None
    if call.row.get("flags") is not None:
        flags = call.value("flags")
        if flags is None:
            blocking = True
        elif isinstance(flags, Const) and isinstance(flags.value, int | str):
            blocking = flags.value in (0, "blocking")
        elif isinstance(flags, Opaque) and "onBlocking" in flags.term:
            blocking = False
        else:
            blocking = None
    kind = run.file.models.types.get(call.name)
    type_name = call.name if kind is not None and kind.kind == "stream" else _stream_type(call.library)
    stream = Stream(run.machine.fresh(f"{call.library}-stream"), "created", blocking, call.library, type_name)
    stream.trail = (Step("stream created here", call.span),)
    run.machine.create(ops.Create(call.span, call.library, call.name, value=stream, before=run.in_prelude))
    return call.store(stream)


def _create_event(call: Call) -> Value:
    kind = call.run.file.models.types.get(call.name)
    type_name = call.name if kind is not None and kind.kind == "event" else _event_type(call.library)
    event = call.run.new_event(type_name)
    event.trail = (Step("event created here", call.span),)
    event.timing = _timing(call)
    event.external = truth(call.arguments.keywords.get("external", Const(False))) is not False
    call.run.machine.create(ops.Create(call.span, call.library, call.name, value=event, what="event", before=call.run.in_prelude))
    return call.store(event)


def _timing(call: Call) -> bool | None:
    """Whether an event measures time: by a switch, or unless its flags say otherwise."""
    flags = call.value("flags")
    if flags is None:
        return call.switch("timing") if call.row.get("timing") is not None else None
    if isinstance(flags, Const) and isinstance(flags.value, int):
        return not flags.value & 2
    text = flags.term.lower().replace("_", "")
    if "disabletiming" in text:
        return False
    return True if isinstance(flags, LibraryName) else None


def _elapsed(call: Call) -> Value:
    for value in (call.receiver, *call.arguments.all()):
        if isinstance(value, Event):
            value.timed = True
    return call.store(call.opaque())


def _clock(call: Call) -> Value:
    call.run.machine.note(ops.Clock(call.span, call.library, call.name))
    return call.opaque()


def _event_type(library: str) -> str:
    return {"torch": "torch.cuda.Event", "cupy": "cupy.cuda.Event", "numba": "numba.cuda.cudadrv.driver.Event"}.get(library, "cudaEvent_t")


def as_event(run: Run, value: Value | None) -> Event | None:
    """A value used as an event; one from out of view orders everything."""
    if isinstance(value, Reference):
        value = run.at(value)
    if isinstance(value, Event):
        return value
    if isinstance(value, Instance) and (held := _only(value, Event)) is not None:
        return held
    if isinstance(value, Opaque | Instance | Handle):
        made = run.remembered(f"event:{value.term}", lambda: run.new_event("", unknown=True))
        assert isinstance(made, Event)
        return made
    return None


def _record(call: Call) -> Value:
    run = call.run
    value = call.value("event")
    event = as_event(run, value) if value is not None and not (isinstance(value, Const) and value.value is None) else None
    if event is None:
        event = run.new_event(_event_type(call.library))
        event.timing = call.library == "cupy"  # Stream.record() makes one that measures time
        event.trail = (Step("event created here", call.span),)
        run.machine.create(ops.Create(call.span, call.library, call.name, value=event, what="event", before=run.in_prelude))
    was_unknown = event.unknown and (isinstance(value, Opaque) or run.file.is_cuda)
    run.machine.record(ops.Record(call.span, call.library, call.name, event=event, stream=stream_argument(call)))
    if was_unknown and event.snapshot is not None:
        event.unknown = False  # recorded in view: from here on it is known
    return event if call.flag("creates") else call.status(event) if call.is_tuple else event if not run.file.is_cuda else call.status()


def _wait(call: Call) -> Value:
    run = call.run
    on = call.value("on")
    target: Event | Stream | None = on if isinstance(on, Stream) else as_event(run, on)
    if isinstance(on, Opaque) and call.name.rpartition(".")[2] == "wait_stream":
        target = as_stream(call, on)
    run.machine.wait(ops.Wait(call.span, call.library, call.name, stream=stream_argument(call), on=target))
    return call.status()


def _synchronize(call: Call) -> Value:
    run = call.run
    field = call.row.get("of")
    target: Event | Stream | None = None
    if isinstance(field, Selector):
        value = call.given(field)
        if isinstance(value, Reference):
            value = run.at(value)
        if value is None:
            target = named_stream(call, field.default or "current")
        elif isinstance(value, Stream):
            target = value
        elif isinstance(value, Device):
            target = None
        elif isinstance(value, Const):
            target = as_stream(call, value)
        elif call.receiver is value or run.file.is_cuda or call.is_tuple:
            is_event = (
                "vent" in call.name.rpartition(".")[2] or "vent" in call.name.rpartition("::")[0] or "vent" in getattr(value, "type", "")
            )
            target = as_event(run, value) if is_event else as_stream(call, value)
    elif field in ("current", "null"):
        target = named_stream(call, str(field))
    run.machine.synchronize(ops.Synchronize(call.span, call.library, call.name, of=target))
    return call.status()


def _query(call: Call) -> Value:
    run = call.run
    value = call.value("of") or call.receiver
    target = value if isinstance(value, Stream) else as_event(run, value)
    run.machine.query(ops.Query(call.span, call.library, call.name, of=target))
    is_status = call.is_tuple or (call.receiver is None and (run.file.is_cuda or "runtime." in call.name))
    made = answer(run, target, is_status, run.visit_key(call.site.node))
    return Series([made], kind="tuple") if call.is_tuple else made


def _set_stream(call: Call) -> Value:
    stream = stream_argument(call)
    if stream is not None:
        call.run.current[_switched(call)] = stream
        call.run.machine.alike.made_current.append(stream.key)
    return call.status()


def _switched(call: Call) -> str:
    """Whose current stream a call sets."""
    return family(call.text("library") or call.library)


def _scope(call: Call) -> Value:
    library = _switched(call)
    value = call.value("stream")
    stream = None if value is None or (isinstance(value, Const) and value.value is None) else as_stream(call, value)
    if call.run.file.is_cuda:
        guard = Handle(call.name, call.run.machine.fresh("scope"), stream)
        guard.attrs[SWITCHED] = LibraryName(library)
        guard.attrs[BEFORE] = call.run.current.get(library) or Const(None)
        if stream is not None:
            call.run.current[library] = stream
        return guard
    if call.flag("synchronizes"):
        return ScopeValue(stream, library, value=value, kind="synchronizes")
    return ScopeValue(stream, library, value=value)


def _bind_stream(call: Call) -> Value:
    handle = call.value("handle")
    if isinstance(handle, Reference):
        handle = call.run.at(handle)
    stream = stream_argument(call)
    if isinstance(handle, Handle):
        handle.stream = stream
        handle.unknown = stream is None
    elif isinstance(handle, Opaque):
        handle.attrs[BOUND] = stream or Const(None)
    return call.status()


def _destroy(call: Call) -> Value:
    value = call.value("of")
    event = value if isinstance(value, Event) else None
    what = "event" if event is not None or "EventDestroy" in call.name else ""
    call.run.machine.note(ops.Destroy(call.span, call.library, call.name, what=what, value=event))
    return call.status()


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "stream": _create_stream,
    "stream_of": _stream_of,
    "event": _create_event,
    "record": _record,
    "elapsed": _elapsed,
    "clock": _clock,
    "wait": _wait,
    "synchronize": _synchronize,
    "query": _query,
    "set_stream": _set_stream,
    "scope": _scope,
    "bind_stream": _bind_stream,
    "destroy": _destroy,
}
