"""SL005 d2h-read-before-sync."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import BY_PLACE, Conflict, Copy, Direction, Evidence, HostRead, Memory, Operation


class D2hReadBeforeSync(Check):
    """The host reads a buffer while an asynchronous copy from the device may still be writing it.

    ## What it does
    Reports host reads of a buffer that an asynchronous device-to-host copy fills, where nothing on the way makes the host wait for that
    copy: ``tolist()``, ``numpy()``, ``print``, arithmetic on the CPU, ``*pointer`` and the like.

    ## Why is this bad
    The copy returns before the data has arrived. The host reads what the buffer held before, without any error: results are wrong now and
    then, and right under a debugger. ``wait_stream``, ``wait_event`` and ``Event.wait`` do not help: they hold a stream, not the host.

    ## Example
    ```python
    tokens = logits.argmax(dim=-1).to("cpu", non_blocking=True)
    text = decode(tokens.tolist())
    ```

    ## Use instead
    ```python
    tokens = logits.argmax(dim=-1).to("cpu", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    copied.synchronize()
    text = decode(tokens.tolist())
    ```

    ## When it is fine
    Handing the buffer back to the device on the same stream, returning or storing it, and reading it behind ``synchronize()`` of the copy's
    stream, of the device, or of an event recorded after the copy. A later blocking copy or ``.item()`` of a device value on the same stream
    waits as well. Of pageable memory, for which today's drivers wait though nothing guarantees it, ``evidence = "possible"`` tells, and of
    methods of a private class that nothing calls.

    ## Verify
    The buffer is poisoned, the copy's stream is held shut by a gate, and the read takes place: the poison is read. With pageable memory
    CUDA does not guarantee either order; the GPU in hand shows which it kept.

    ## References
    - CUDA Runtime API, API synchronization behavior
    - PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"
    """

    code = "SL005"
    name = "d2h-read-before-sync"
    category = Category.RACE
    default = "on"
    rests_on = ("d2h-pinned-async-waits", "d2h-pageable-async-waits", "event-synchronize-waits")
    needs = (
        (
            (
                "non_blocking",
                "MemcpyAsync",
                "Memcpy2DAsync",
                "Memcpy3DAsync",
                "FromSymbolAsync",
                "copy_to_host",
                "DtoHAsync",
                "memcpyAsync",
                "blocking=False",
            ),
        ),
        (("True)", "true)"), (BY_PLACE,)),
        (("](",), ("tream",)),
    )
    signs = ("non_blocking", "Async", "copy_to_", "pin", "Pin", "cuda", "cpu(", "blocking", "numpy", BY_PLACE)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Copy) and operation.asked_async

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        copy, read = conflict.first, conflict.second
        if not isinstance(copy, Copy) or not isinstance(read, HostRead) or copy.direction is not Direction.D2H:
            return
        if copy.evidence > Evidence.SCOPE or read.context.callback is not None:
            return
        yield self.finding(
            read,
            self._message(copy),
            span=read.asked or read.span,
            shown=copy.host_memory is not Memory.PAGEABLE and not path.facts.is_uncalled(read),
            trail=self._trail(copy, read),
            help=self._help(copy),
            conflict=conflict,
            facts={
                "memory": copy.host_memory.value,
                "direction": "d2h",
                "bytes": copy.nbytes,
                "stream": copy.stream.kind if copy.stream else "unknown",
                "api": copy.api,
            },
        )

    def _message(self, copy: Copy) -> str:
        if copy.host_memory is Memory.PAGEABLE:
            return (
                "host read of a buffer that an asynchronous copy fills: nothing guarantees that the copy has ended "
                "(today's drivers wait for pageable memory)"
            )
        condition = " if the tensor is on a GPU" if copy.evidence > Evidence.DEFAULT else ""
        return f"host read before the asynchronous copy from the device has ended{condition}: the buffer may hold old data"

    def _trail(self, copy: Copy, read: HostRead) -> tuple[Step, ...]:
        return (
            Step("copied asynchronously from the device here; nothing makes the host wait for it before the read", copy.span),
            *call_trail(copy, "the copy is reached from here"),
            *((Step("the getter reads it here", read.span),) if read.asked is not None else ()),
            *(
                step
                for step in call_trail(read, "the read is reached from here")
                if step.span not in copy.context.calls and step.span != read.asked
            ),
        )

    def _help(self, copy: Copy) -> str:
        if copy.api == "torch":
            return "record an event after the copy and synchronize() it before the read, or copy without non_blocking"
        if copy.api == "cupy":
            return "synchronize the copy's stream, or an event recorded after the copy, before the read"
        return (
            "call cudaStreamSynchronize on the copy's stream, or cudaEventSynchronize on an event recorded after the copy, before the read"
        )
