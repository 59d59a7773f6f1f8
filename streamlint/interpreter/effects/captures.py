"""Stream capture as rows have it: where it begins and ends, with which mode, and the question whether it goes on."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.cuda_model.capture import Mode
from streamlint.findings import Step
from streamlint.interpreter.captures import CaptureScope, mode_of
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.streams import as_stream, stream_argument
from streamlint.interpreter.run import family
from streamlint.interpreter.values import Const, Series, Stream, Value
from streamlint.models.vocabulary import Selector


def _capture(call: Call) -> Value:
    part = call.text("part")
    if part == "scope":
        return CaptureScope(_scope_stream(call), family(call.library), kind="capture", mode=_mode(call))
    if part == "begin":
        return _begin(call)
    if part == "end":
        return _end(call)
    if part == "relax":
        call.run.machine.captures.relax()
        return call.status()
    return _asked(call)


def _scope_stream(call: Call) -> Stream:
    """The stream that the context manager captures: the one that is given, else one of its own, the same each time."""
    given = call.value("stream")
    stream = as_stream(call, given) if given is not None and not (isinstance(given, Const) and given.value is None) else None
    if stream is not None:
        return stream
    made = call.run.remembered("capture-stream", lambda: Stream("capture", "created", False, "torch", "torch.cuda.Stream"))
    assert isinstance(made, Stream)
    return made


def _mode(call: Call) -> Mode | None:
    field = call.row.get("mode")
    if not isinstance(field, Selector):
        return Mode.GLOBAL
    value = call.given(field)
    if value is None or (isinstance(value, Const) and value.value is None):
        return None if call.arguments.open else mode_of(field.default or "global")
    return mode_of(value.value if isinstance(value, Const) else value.term)


def _begin(call: Call) -> Value:
    run = call.run
    origin = stream_argument(call)
    if origin is None:
        origin = Stream(run.machine.fresh("captured"), "foreign", None, call.library)
    step = Step("capture begins here", call.span)
    library = family(call.library)
    session = run.machine.captures.begin(origin, _mode(call), step, library, len(run.context.calls))
    if session.origin is not origin and run.stream_of(library).key == origin.key:
        run.current[library] = session.origin
    return call.status()


def _end(call: Call) -> Value:
    call.run.machine.captures.end(stream_argument(call))
    if call.run.file.is_cuda:
        return call.status()
    return Series([Const(0), call.opaque()], kind="tuple") if call.is_tuple else call.opaque()


def _asked(call: Call) -> Value:
    """Whether a stream is being captured: it is where that is in view, else nobody knows."""
    captured = call.run.machine.captures.of(stream_argument(call)) is not None
    answer = Const("captured" if call.run.file.is_cuda else True) if captured else call.opaque()
    return call.store(answer) if call.row.get("into") is not None else answer


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "capture": _capture,
}
