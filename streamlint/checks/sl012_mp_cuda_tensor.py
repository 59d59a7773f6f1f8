"""SL012 mp-cuda-tensor."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import (
    Block,
    Copy,
    Create,
    Direction,
    Evidence,
    Get,
    Launch,
    Opaque,
    Operation,
    Put,
    Spawn,
    Synchronize,
    Touch,
    starts,
)

# Words of calls out of view that wait for another process: they may be the answer that a tensor is no longer needed.
_ANSWERS = frozenset({"wait", "acquire", "get", "recv", "recv_bytes", "join", "barrier", "poll", "result", "sleep"})


class MpCudaTensor(Check):
    """A CUDA tensor is sent to another process in a way that CUDA IPC does not support.

    ## What it does
    Follows CUDA tensors through ``torch.multiprocessing`` queues and pipes. The ``kind`` in a finding's facts names the error:

    - ``a``: a forked process uses CUDA after its parent has used it
    - ``b``: a process puts a tensor and exits, which ends the lifetime of the tensor's memory
    - ``c``: a tensor received from another process is forwarded
    - ``d``: a tensor is written in place after it was put, without an answer from the receiver
    - ``e``: the tensor's work is on a stream for which the receiver does not wait
    - ``f``: as ``d``, and the same buffer is put again
    - ``g``: one process puts a tensor and takes it again

    ## Why is this bad
    ``put`` copies nothing: it sends a handle of the memory, and an event recorded on the current stream of the thread that pickles.
    That is the default stream of the feeder thread for ``Queue``, and the current stream of the putting thread for ``SimpleQueue`` and
    ``Pipe``. The receiver does not wait for work on another stream or for later writes, and a second event does not reach a process
    that still holds the buffer.

    ## Example
    ```python
    weights = torch.zeros(1024, device="cuda")
    outbox = torch.multiprocessing.SimpleQueue()
    for step in range(100):
        outbox.put(weights)
        weights.add_(gradients)
    ```

    ## Use instead
    ```python
    weights = torch.zeros(1024, device="cuda")
    outbox = torch.multiprocessing.SimpleQueue()
    for step in range(100):
        outbox.put(weights.clone())
        weights.add_(gradients)
    ```

    ## When it is fine
    CPU tensors; tensors that are never accessed again; a put on the stream that wrote the tensor; an answer (an event, a barrier, a
    queue) before the next write; spawned processes that are joined.

    ## Verify
    A gate blocks the writer's stream; the child reads the old values. ``c`` and ``a`` raise an error.

    ## References
    - PyTorch, ``torch.multiprocessing``: sharing CUDA tensors
    - PyTorch, ``torch/multiprocessing/reductions.py``
    """

    code = "SL012"
    name = "mp-cuda-tensor"
    category = Category.RACE
    default = "on"
    rests_on = ("event-order", "event-covers-later-work")
    signs = (".put", ".send(", "Process(", ".start(", "Pool(", ".submit(", "map(", ".apply", "spawn(", "xecutor(", "fork", "cuda")
    looks_at = (Put, Spawn)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Put) or starts(operation, "process")

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if isinstance(operation, Put) and operation.context.callback is None:
            yield from self._unordered(operation)
            yield from self._relayed(operation, path)
            yield from self._written_later(operation, path)
            yield from self._outlived(operation, path)
            yield from self._own(operation, path)
        elif isinstance(operation, Spawn):
            yield from self._forked(operation, path)

    # --- on the way out ---------------------------------------------------------------------------------------------------------------

    def _unordered(self, put: Put) -> Iterator[Finding]:
        missed = next((o for o in put.missed if _evidence(o) <= Evidence.SCOPE), None)
        if missed is None:
            return
        stream = getattr(missed, "stream", None)
        made = next((step.span for step in getattr(stream, "trail", ())[:1]), None)
        yield self.told_unordered(put, missed.span, made, put.feeder, getattr(stream, "kind", "unknown"))

    def told_unordered(self, put: Operation, written: Span, made: Span | None, feeder: bool, kind: str = "created") -> Finding:
        """A put of memory whose stream has not finished, as a finding."""
        pickling = "the feeder thread uses another stream" if feeder else "the current stream is another one"
        return self.finding(
            put,
            f"put of a CUDA tensor before its stream finishes; {pickling}",
            trail=(
                *((Step("stream created here", made),) if made is not None else ()),
                Step("tensor written on its stream here", written),
                *call_trail(put, "the put is reached from here"),
            ),
            help="synchronize the stream before the put, or put into a SimpleQueue while the stream is current"
            if feeder
            else "put the tensor while its stream is current, or synchronize that stream first",
            facts={"kind": "e", "api": "torch", "stream": kind},
        )

    def _relayed(self, put: Put, path: Trace) -> Iterator[Finding]:
        source = next((o for o in path.operations if isinstance(o, Put) and o.buffers and o.channel in put.received), None)
        if source is None or _process(source) == _process(put):
            return
        begun = _begun(put)
        yield self.told_relayed(put, source.span, begun[0].span if begun else None)

    def told_relayed(self, put: Operation, source: Span, started: Span | None) -> Finding:
        """A put of what another process has sent, as a finding."""
        return self.finding(
            put,
            "forwarding of a received CUDA tensor to another process; PyTorch raises an error",
            trail=(
                Step("tensor received here", source),
                *((Step("process started here", started),) if started is not None else ()),
            ),
            category=Category.ERROR,
            help="send a clone() of the tensor",
            facts={"kind": "c", "api": "torch"},
        )

    def _outlived(self, put: Put, path: Trace) -> Iterator[Finding]:
        own = put.context.beside
        if own is None or own.kind != "process" or not put.buffers or any(loop.head in ("while", "do") for loop in put.context.loops):
            return
        given = {channel for o in path.operations if isinstance(o, Spawn) and o.beside is own for channel in o.channels}
        if given - {put.channel}:
            return  # another channel may tell it when to end
        behind = [o for o in path.after(put) if o.context.beside is own]
        if any(_may_answer(o) or (isinstance(o, Put) and o.buffers) for o in behind):
            return
        yield self.told_outlived(put, own.started.span)

    def told_outlived(self, put: Operation, started: Span) -> Finding:
        """A put by a process that ends behind it, as a finding."""
        return self.finding(
            put,
            "put of a CUDA tensor before process exit; the receiver may lose the memory",
            trail=(Step("process started here", started),),
            category=Category.RACE,
            help="wait for the receiver's answer (an event, a barrier) before the process exits",
            facts={"kind": "b", "api": "torch"},
        )

    def _own(self, put: Put, path: Trace) -> Iterator[Finding]:
        given = {channel for o in path.operations if isinstance(o, Spawn | Opaque) for channel in o.channels}
        if not put.buffers or put.channel in given or put.context.beside is not None:
            return
        taken = next((o for o in path.after(put) if isinstance(o, Get) and o.channel == put.channel and o.context.beside is None), None)
        if taken is None:
            return
        yield self.told_own(taken, put.span)

    def told_own(self, taken: Operation, put: Span) -> Finding:
        """A get of what the same process has put, as a finding."""
        return self.finding(
            taken,
            "get of a CUDA tensor by the process that put it; CUDA rejects the handle",
            trail=(Step("put here", put),),
            category=Category.ERROR,
            help="use queue.Queue within one process",
            facts={"kind": "g", "api": "torch"},
        )

    # --- afterwards -------------------------------------------------------------------------------------------------------------------

    def _written_later(self, put: Put, path: Trace) -> Iterator[Finding]:
        for operation in path.after(put):
            if _process(operation) != _process(put):
                continue
            if self._answers(operation, put, path):
                return
            if self._writes(operation, put):
                again = any(isinstance(o, Put) and _shares(o, put) and _process(o) == _process(put) for o in path.after(operation))
                yield self.told_written(operation, put.span, again)
                return

    def told_written(self, write: Operation, put: Span, again: bool) -> Finding:
        """A write to what was sent, as a finding. ``again``: the same memory is put again behind it."""
        return self.finding(
            write,
            "in-place write to a CUDA tensor after sending it; the receiver may read mixed data",
            trail=(Step("sent here; the receiver has not confirmed the end of its work", put), *call_trail(write)),
            help="send a clone(), or wait for the receiver's answer before writing",
            facts={"kind": "f" if again else "d", "api": "torch"},
        )

    def _answers(self, operation: Operation, put: Put, path: Trace) -> bool:
        if isinstance(operation, Get):
            return not _replies_often(operation.channel, path) and operation.channel != put.channel
        return _may_answer(operation)

    def _writes(self, operation: Operation, put: Put) -> bool:
        if isinstance(operation, Launch):
            written = operation.writes
        elif isinstance(operation, Copy) and operation.dst is not None:
            written = (operation.dst,)
        else:
            return False
        return any(w.storage is b.storage and _meet(w.part, b.part) and _known(b) for w in written for b in put.buffers)

    # --- processes ----------------------------------------------------------------------------------------------------------------------

    def _forked(self, spawn: Spawn, path: Trace) -> Iterator[Finding]:
        child = spawn.beside
        if child is None or child.kind != "process" or child.method not in ("fork", "default") or spawn.context.beside is not None:
            return
        before = next((o for o in path.operations[: spawn.since] if o.context.beside is None and _uses_cuda(o)), None)
        inside = next((o for o in path.after(spawn) if o.context.beside is child and _uses_cuda(o)), None)
        if before is None or inside is None:
            return
        yield self.told_fork(spawn, before.span, inside.span, child.method)

    def told_fork(self, start: Operation, before: Span, inside: Span, method: str) -> Finding:
        """The start of a forked process between two uses of CUDA, as a finding."""
        how, when = ("", "") if method == "fork" else (" (Linux default)", "; fork is the default on Linux before Python 3.14")
        return self.finding(
            start,
            f"fork{how} after CUDA initialization; CUDA work in the child raises an error",
            trail=(Step("CUDA used before the fork here", before), Step("CUDA used in the forked process here", inside)),
            category=Category.ERROR,
            help=f'start the process with the context of multiprocessing.get_context("spawn"){when}',
            facts={"kind": "a", "api": "torch", "method": method},
        )


def _process(operation: Operation) -> int:
    """Which process runs an operation; 0 is the path's own."""
    who = operation.context.beside
    return who.key + 1 if who is not None and who.kind in ("process", "worker") else 0


def _begun(operation: Operation) -> tuple[Step, ...]:
    return (operation.context.beside.started,) if operation.context.beside is not None else ()


def _shares(one: Put, two: Put) -> bool:
    return any(a.storage is b.storage for a in one.buffers for b in two.buffers)


def _known(buffer: object) -> bool:
    return bool(getattr(buffer, "storage").evidence <= Evidence.SCOPE)  # noqa: B009


def _meet(one: tuple[object, ...], two: tuple[object, ...]) -> bool:
    """Whether two parts of one memory overlap for sure: the same part, or the whole."""
    return one == two or not one or not two


def _may_answer(operation: Operation) -> bool:
    """Whether an operation may wait for word of another process."""
    if isinstance(operation, Opaque):
        return operation.callee.rpartition(".")[2] in _ANSWERS or bool(operation.channels)
    return isinstance(operation, Block | Get)


def _replies_often(channel: str, path: Trace) -> bool:
    """Whether the process that fills a channel puts there several times for one value that it takes: no reply to one put.

    What it puts behind its loop stands behind another value: the one that ended the loop.
    """
    puts, most = 0, 0
    last: Put | None = None
    for operation in path.operations:
        if isinstance(operation, Get) and operation.channel != channel and operation.context.beside is not None:
            puts = 0
        elif isinstance(operation, Put) and operation.channel == channel and operation.context.beside is not None:
            puts = puts + 1 if last is None or last.context.loops == operation.context.loops else 1
            most, last = max(most, puts), operation
    return most > 1


def _evidence(operation: Operation) -> Evidence:
    if isinstance(operation, Copy):
        return operation.evidence
    if isinstance(operation, Opaque):
        return operation.works
    buffers = (*operation.reads, *operation.writes) if isinstance(operation, Launch) else ()
    return min((buffer.storage.evidence for buffer in buffers), default=Evidence.NONE)


def _uses_cuda(operation: Operation) -> bool:
    """Whether an operation needs a CUDA context for sure."""
    if isinstance(operation, Copy | Launch):
        host = isinstance(operation, Copy) and operation.direction is Direction.UNKNOWN
        return not host and _evidence(operation) <= Evidence.DEFAULT
    if isinstance(operation, Touch):
        return operation.evidence <= Evidence.DEFAULT
    return isinstance(operation, Synchronize | Create)
