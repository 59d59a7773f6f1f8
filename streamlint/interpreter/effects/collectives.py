"""Collectives of several processes: they work behind the current stream; ``wait`` on their handle holds the stream, not the host."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import operations as ops
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.host import buffers_in
from streamlint.interpreter.handed import on_side_stream, presumed
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.values import Const, Series, Value

_WORK = "torch.distributed.Work"


def _collective(call: Call) -> Value:
    run = call.run
    if call.text("part") == "wait":
        return _wait(call)
    result = opaque_call(run, call.name, None, call.arguments, call.site)
    asynchronous = call.switch("asynchronous")
    for value in call.values("writes"):
        presumed(run, value)
    touched = tuple(b for v in call.values("writes") for b in buffers_in(v) if not b.storage.on_host)
    if on_side_stream(run) and (there := tuple(b for b in touched if b.storage.on_device)):
        stream = run.stream_of("torch")  # NCCL's own stream waits for it
        run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream, reads=there, writes=there, kind="library"))
    run.machine.note(ops.Collective(call.span, call.library, call.name, writes=touched, asynchronous=asynchronous is True))
    if asynchronous is False:
        return result
    handle = run.opaque(f"work{run.visit_key(call.site.node)}", *call.arguments.all(), type=_WORK)
    handle.there = asynchronous is True  # a process outside of the group gets none, and issues nothing
    return Series([handle], name="open", kind="list") if call.text("result") == "sequence" else handle


def _wait(call: Call) -> Value:
    """With a time limit the host waits (ProcessGroupNCCL.cpp)."""
    run = call.run
    limit = call.value("timeout")
    stream = run.stream_of("torch")
    if limit is not None and not (isinstance(limit, Const) and limit.value is None):
        run.machine.synchronize(ops.Synchronize(call.span, call.library, call.name, of=stream))
    else:
        run.machine.wait(ops.Wait(call.span, call.library, call.name, stream=stream, on=run.new_event("", unknown=True)))
    return Const(True)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "collective": _collective,
}
