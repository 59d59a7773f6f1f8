"""SL014 legacy-sync-misses-nonblocking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import (
    Conflict,
    Copy,
    Direction,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    Record,
    Synchronize,
    Wait,
    on_other_stream,
)


class LegacySyncMissesNonblocking(Check):
    """A synchronization of the default stream does not wait for a non-blocking stream.

    ## What it does
    Reports synchronous copies, synchronizations and event records on the default (null) stream between work on a non-blocking stream
    and an access to its result, where nothing else orders the two.

    ## Why is this bad
    The null stream waits for blocking streams only. It does not wait for a stream created with ``cudaStreamNonBlocking`` (all of
    PyTorch's are): ``cudaMemcpy``, ``cudaStreamSynchronize(0)`` and ``cudaEventRecord(event)`` return or complete early, and the host
    reads old data. The bug often appears when a blocking stream is made non-blocking to remove stalls.

    ## Example
    ```cuda
    __global__ void square(float* values);

    void sum(float* values, float* host, size_t bytes) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemsetAsync(values, 0, bytes, stream);
      cudaMemcpy(host, values, bytes, cudaMemcpyDeviceToHost);
    }
    ```

    ## Use instead
    ```cuda
    __global__ void square(float* values);

    void sum(float* values, float* host, size_t bytes) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMemsetAsync(values, 0, bytes, stream);
      cudaMemcpyAsync(host, values, bytes, cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## When it is fine
    With blocking streams (``cudaStreamCreate``, ``cupy.cuda.Stream()``), the null stream orders the work. The stream itself, the
    device, or an event recorded on the stream may be synchronized as well.

    ## Verify
    A gate blocks the non-blocking stream; the synchronization of the null stream returns anyway, and the old value is read.

    ## References
    - CUDA Runtime API, stream synchronization behavior
    """

    code = "SL014"
    name = "legacy-sync-misses-nonblocking"
    category = Category.RACE
    default = "on"
    rests_on = ("null-synchronize-waits-for-blocking", "null-barrier-holds-nonblocking")
    signs = ("tream",)
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        return on_other_stream(operation)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        """A function that works on the stream it is given fetches, on the default stream, what its caller hands it."""
        if not isinstance(operation, Copy) or not path.facts.makes_only_non_blocking or not self._fetches_argument(operation, path):
            return
        work = next(
            (o for o in path.after(operation) if isinstance(o, Launch) and o.stream is not None and o.stream.kind == "parameter"), None
        )
        if work is None:
            return
        yield self.finding(
            operation,
            "synchronous copy on the default stream; it does not wait for the caller's non-blocking stream",
            trail=(Step("this function works on its stream parameter", work.span), *call_trail(operation)),
            help="copy on the caller's stream, and synchronize it before the value is needed",
            facts={"api": operation.api, "stream": "null"},
        )

    def _fetches_argument(self, copy: Copy, path: Trace) -> bool:
        """A synchronous copy to the host, on the default stream, of a caller's memory, with nothing waited for before."""
        if copy.asked_async or copy.direction is not Direction.D2H or not _on_null(copy) or copy.src is None or copy.context.setup:
            return False
        function = copy.context.functions[-1] if copy.context.functions else ""
        if copy.src.storage.owner != "caller" or not path.facts.is_given_stream(function, copy.span):
            return False
        return not any(isinstance(o, Synchronize) for o in path.before(copy))

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        first, second = conflict.first, conflict.second
        if not isinstance(first, Copy | Launch) or first.stream is None or second.context.callback is not None:
            return
        if first.stream.kind != "created" or first.stream.blocking is not False:
            return
        legacy = self._legacy(first, second, path)
        if legacy is None:
            return
        place = _chosen(legacy)
        yield self.finding(
            legacy,
            f"{self._named(legacy)} default stream; it does not wait for the non-blocking stream",
            span=place,
            trail=(
                Step("work on the non-blocking stream", first.span),
                *(Step("non-blocking stream created here", step.span) for step in first.stream.trail[:1]),
                *((Step("result accessed here, possibly incomplete", second.span),) if second is not legacy else ()),
                *((Step("call that passes the default stream", legacy.span),) if place != legacy.span else ()),
                *(step for step in call_trail(legacy) if step.span != place),
            ),
            help="synchronize the non-blocking stream, or an event recorded on it",
            conflict=conflict,
            facts={"api": legacy.api, "stream": "null"},
        )

    def told(
        self,
        legacy: Span,
        kind: str,
        work: Span | None,
        made: Span | None,
        read: Span | None,
        passed: Span | None,
        calls: Iterable[Span],
        qualname: str,
    ) -> Finding:
        """A call on the default stream that misses work, as a finding; without ``made`` the stream is a caller's."""
        help = "synchronize the non-blocking stream, or an event recorded on it"
        whose = "the non-blocking stream"
        first = "work on the non-blocking stream"
        if made is None:
            help = "copy on the caller's stream, and synchronize it before the value is needed"
            whose, first = "the caller's non-blocking stream", "this function works on its stream parameter"
        steps = [Step(first, work)] if work is not None else []
        steps += [Step("non-blocking stream created here", made)] if made is not None else []
        steps += [Step("result accessed here, possibly incomplete", read)] if read is not None else []
        steps += [Step("call that passes the default stream", passed)] if passed is not None else []
        steps += [Step("called from here", call) for call in calls]
        message = f"{kind} default stream; it does not wait for {whose}"
        found = self.finding_at(legacy, message, trail=steps, help=help, qualname=qualname)
        return found if work is None else replace(found, pairs=((work, read or legacy),))

    def _legacy(self, first: Operation, second: Operation, path: Trace) -> Operation | None:
        """The call on the default stream that stands for the order which is missing."""
        if isinstance(second, Copy) and not second.asked_async and second.api != "torch" and _on_null(second):
            return second
        if not isinstance(second, HostRead | HostWrite | Copy | Launch):
            return None
        for operation in reversed(path.operations[first.index + 1 : second.index]):
            if isinstance(operation, Synchronize) and _is_null(operation.of):
                return operation
            if isinstance(operation, Record) and _on_null(operation) and self._is_awaited(operation, second, path):
                return operation
        return None

    def _is_awaited(self, record: Record, second: Operation, path: Trace) -> bool:
        between = path.operations[record.index + 1 : second.index]
        return any((isinstance(o, Synchronize) and o.of is record.event) or (isinstance(o, Wait) and o.on is record.event) for o in between)

    def _named(self, legacy: Operation) -> str:
        if isinstance(legacy, Synchronize):
            return "synchronization of the"
        if isinstance(legacy, Record):
            return "event record on the"
        return "synchronous copy on the"


def _is_null(value: object) -> bool:
    return getattr(value, "kind", "") == "null"


def _chosen(legacy: Operation) -> Span:
    """The call that gives a helper the default stream, or leaves out the parameter that then is it; else the operation."""
    stream = legacy.of if isinstance(legacy, Synchronize) else legacy.stream if isinstance(legacy, Record) else None
    chosen = getattr(stream, "chosen", None)
    return chosen if chosen is not None and chosen in legacy.context.calls else legacy.span


def _on_null(operation: Copy | Record) -> bool:
    return operation.stream is not None and _is_null(operation.stream)
