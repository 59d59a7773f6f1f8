"""SL006 cross-stream-use-without-wait."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import (
    Alloc,
    Conflict,
    Copy,
    Create,
    Direction,
    Entry,
    Evidence,
    Free,
    Launch,
    Opaque,
    Operation,
    Record,
    Wait,
    Work,
    on_other_stream,
)


class CrossStreamUseWithoutWait(Check):
    """Two streams access one buffer, at least one writes it, and neither waits for the other.

    ## What it does
    Reports device work that reads or writes a buffer on one stream while work on another stream may still be writing or reading it: no
    event, ``wait_stream`` or synchronization orders the two accesses.

    ## Why is this bad
    Streams run concurrently. The reader may see old or partly written data; the writer may overwrite data that is still being read. No
    error is raised, and the outcome depends on the load of the GPU.

    ## Example
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weights = torch.rand(4096, 4096, device="cuda").softmax(dim=-1)
    total = weights.sum()
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weights = torch.rand(4096, 4096, device="cuda").softmax(dim=-1)
    torch.cuda.current_stream().wait_stream(side)
    total = weights.sum()
    ```

    ## When it is fine
    Both accesses use the same stream, the null stream orders the two (blocking streams), or the second stream waits for an event
    recorded after the first access, also in another method. Disjoint parts of a buffer may be accessed concurrently.

    ## Verify
    A gate blocks the first stream before its write; the second access runs anyway and sees the old value.

    ## References
    - CUDA Programming Guide, Asynchronous Execution, events
    - PyTorch, CUDA semantics, "CUDA streams"
    """

    code = "SL006"
    name = "cross-stream-use-without-wait"
    category = Category.RACE
    default = "on"
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")
    signs = (
        "tream",
        "cupy",
        "cp.",
    )

    def begins_with(self, operation: Operation) -> bool:
        return on_other_stream(operation)

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        first, second = conflict.first, conflict.second
        if conflict.missing != "stream-wait" or not isinstance(second, Work | Free) or conflict.buffer is None:
            return
        if isinstance(first, Alloc | Entry) and isinstance(second, Work):
            yield from self._out_of_view(first, second, conflict, path)
        if not isinstance(first, Work) or _may_be_one(first, second) or _passes_on(first, second, path):
            return
        storage = conflict.buffer.storage
        unknown_place = storage.evidence > Evidence.SCOPE and not path.facts.file.is_cuda
        if storage.on_host or unknown_place or first.context.callback or second.context.callback or _libraries(first, second) > 1:
            return
        yield self.finding(
            second,
            self._message(conflict),
            trail=self._trail(first, second, conflict.first_writes),
            help=self._help(first, second),
            conflict=conflict,
            facts={"api": second.api, "first_stream": _kind(first), "stream": _kind(second)},
        )

    def told(self, first: Launch, second: Launch, writes: bool, streams: tuple[Step, ...]) -> Finding:
        """Two pieces of work that nothing orders, as a finding; ``streams`` are where their streams were made."""
        conflict = Conflict(first, second, "stream-wait", 0, writes, None)
        words = "written" if writes else "read"
        calls = (step for step in call_trail(second, "the use is reached from here") if step.span not in first.context.calls)
        return self.finding(
            second,
            self._message(conflict),
            trail=(Step(f"{words} on another stream here", first.span), *streams, *calls),
            help=self._help(first, second),
            conflict=conflict,
            facts={"api": second.api, "first_stream": "unknown", "stream": "unknown"},
        )

    def told_out_of_view(self, first: Launch, second: Launch, streams: tuple[Step, ...], is_recycled: bool) -> Finding:
        """Work on what callers give, or on new memory: work that is not in view may still use it on another stream. A finding."""
        if is_recycled:
            message = "access to memory just allocated on another stream; its earlier users may still run"
            step = Step("allocated on another stream here; earlier work there may still use the block", first.span)
        else:
            message = "access to an argument that the caller's stream may still be writing; nothing orders them"
            step = Step("the caller's stream may still be writing the arguments of this function", first.span)
        calls = (step for step in call_trail(second, "the use is reached from here") if step.span not in first.context.calls)
        return self.finding(
            second,
            message,
            trail=(step, *streams, *calls),
            help=self._help(first, second),
            conflict=Conflict(first, second, "stream-wait", 0, True, None),
            facts={"api": second.api, "first_stream": "unknown", "stream": "unknown"},
        )

    def _out_of_view(self, first: Alloc | Entry, second: Work, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        """The other stream's work is not in view: a caller's, which made an argument, or that of a recycled block's last user."""
        assert conflict.buffer is not None
        if second.api not in ("torch", "cupy") or conflict.buffer.storage.evidence > Evidence.SCOPE or second.context.callback:
            return
        if not _private(second, path) or _stages(second, path):
            return
        if isinstance(first, Alloc):
            message = "access to memory just allocated on another stream; its earlier users may still run"
            step = Step("allocated on another stream here; earlier work there may still use the block", first.span)
        else:
            message = "access to an argument that the caller's stream may still be writing; nothing orders them"
            step = Step("the caller's stream may still be writing the arguments of this function", first.span)
        made = second.stream.trail[:1] if second.stream is not None else ()
        yield self.finding(
            second,
            message,
            shown=not any(guard.kind == "first" for guard in second.context.guards),  # a run to warm up is thrown away, as a rule
            trail=(step, *(Step(f"this stream: {s.message}", s.span) for s in made), *call_trail(second, "the use is reached from here")),
            help=self._help(first, second),
            conflict=conflict,
            facts={"api": second.api, "first_stream": _kind(first), "stream": _kind(second)},
        )

    def _message(self, conflict: Conflict) -> str:
        if isinstance(conflict.second, Free):
            return "free of a buffer that another stream may still be using; nothing orders them"
        if conflict.first_writes:
            return "access to a buffer that another stream may still be writing; nothing orders them"
        if isinstance(conflict.second, Launch) and conflict.second.kind == "upload":  # nothing is written over: it gets other memory
            return "move of a module whose weights another stream may still be reading; nothing orders them"
        return "overwrite of a buffer that another stream may still be reading; nothing orders them"

    def _trail(self, first: Work, second: Work | Free, writes: bool) -> tuple[Step, ...]:
        words = "written" if writes else "read"
        steps = [Step(f"{words} on another stream here", first.span)]
        for operation, which in ((first, "that stream"), (second, "this stream")):
            if operation.stream is not None:
                steps.extend(Step(f"{which}: {step.message}", step.span) for step in operation.stream.trail[:1])
        calls = call_trail(second, "the use is reached from here")
        return (*steps, *(step for step in calls if step.span not in first.context.calls))

    def _help(self, first: Operation, second: Operation) -> str:
        if second.api == "torch":
            return "make this stream wait first: wait_stream(other), or wait_event() on an event recorded on the other stream"
        if second.api == "cupy":
            return "record an event on the other stream after its work, and call wait_event() on this stream before the use"
        return "record an event on the other stream after its work, and make this stream wait for it with cudaStreamWaitEvent"


def _private(second: Work, path: Trace) -> bool:
    """Whether no code out of view can have made a stream wait: it is new, made in the body that uses it."""
    stream = second.stream
    if stream is None or stream.kind != "created":
        return False
    made = next((o for o in path.operations if isinstance(o, Create) and o.value is stream), None)
    if made is None:
        return False
    entered = max((o.index for o in path.before(second) if isinstance(o, Entry)), default=-1)
    if made.index > entered:
        return True
    if any(isinstance(o, Wait) and o.stream is stream for o in path.operations):
        return False  # others make it wait, maybe before they come here
    return not made.context.setup or path.facts.is_private(made.span)


def _may_be_one(first: Work, second: Work | Free) -> bool:
    """Whether two streams may be the same: a call out of view gave one of them, and the other was not made in view either."""
    streams = (first.stream, second.stream)
    return any(s is not None and s.how == "given by a call" for s in streams) and not any(
        s is not None and s.kind == "created" for s in streams
    )


def _passes_on(first: Work, second: Work | Free, path: Trace) -> bool:
    """Whether functions out of view are all that had the buffer, and a wait stands behind them: they may only hand it on."""
    if not isinstance(first, Opaque) or not isinstance(second, Opaque) or second.works is not Evidence.NONE:
        return False
    records = [o.event for o in path.after(first) if isinstance(o, Record) and o.stream is first.stream]
    waits = (o for o in path.after(second) if isinstance(o, Wait) and o.stream is second.stream and o.context.calls == second.context.calls)
    return any(wait.on is first.stream or any(wait.on is event for event in records) for wait in waits)


def _stages(second: Work, path: Trace) -> bool:
    """Whether what was taken for a download fills a buffer that is uploaded next: then its source may be of the host as well."""
    if not isinstance(second, Copy) or second.evidence < Evidence.SCOPE or second.dst is None:
        return False
    filled = second.dst.storage
    return any(
        isinstance(o, Copy) and o.direction is Direction.H2D and o.src is not None and o.src.storage is filled for o in path.after(second)
    )


def _kind(operation: Work | Alloc | Entry | Free) -> str:
    return operation.stream.kind if operation.stream is not None else "unknown"


def _libraries(first: Work, second: Work | Free) -> int:
    """Two libraries that do not know each other's streams are a hazard of its own."""
    known = {operation.api for operation in (first, second) if operation.api in ("torch", "cupy", "numba")}
    return len(known)
